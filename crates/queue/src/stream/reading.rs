//! Who reads a stream on this node, where each one stands, and how many chunks it may be sent.
//!
//! Nothing of it is on record or agreed on with other nodes. It is told how far all is committed, whoever decides what the stream
//! has, and it goes on as it was when another machine takes the place of that one: what is committed stays so.

use crate::ends::Ends;
use model::ConsumerId;
use std::collections::{BTreeMap, BTreeSet};

/// What readers want. Imperative.
#[derive(Debug)]
pub enum ReadRequest<E: Ends> {
    /// Add a reader, which begins with the chunk that has the offset `at`, or as near to it as there is something, and may be
    /// sent so many chunks.
    Attach {
        reader: ConsumerId,
        outlet: E::Outlet,
        at: u64,
        credit: u32,
    },
    /// Add one that reads nothing, and is told when the stream is gone.
    Watch { reader: ConsumerId, outlet: E::Outlet },
    /// It may be sent so many chunks more.
    Credit { reader: ConsumerId, chunks: u32 },
    /// What [`ReadEffect::Read`] ordered was done: the reader stands at `next`, and was sent so many chunks.
    Sent {
        reader: ConsumerId,
        next: u64,
        chunks: u32,
    },
    /// It reads no more.
    Detach { reader: ConsumerId },
}

/// What readers are to be given. Imperative.
#[derive(Debug, PartialEq)]
pub enum ReadEffect<E: Ends> {
    /// Send the reader chunks of messages: from the one with offset `from` on, or the first that is there, none that begins at
    /// `below` or later, and `chunks` at most. Those that its filter passes over cost nothing. Answered by [`ReadRequest::Sent`].
    Read {
        reader: ConsumerId,
        outlet: E::Outlet,
        from: u64,
        below: u64,
        chunks: u32,
    },
    /// Tell the reader that the stream is gone.
    Gone { reader: ConsumerId, outlet: E::Outlet },
}

struct Reader<O> {
    outlet: O,
    /// The next offset that it is to be sent; `None` if it reads nothing.
    position: Option<u64>,
    credit: u32,
    /// It was ordered to be sent something, and that has not been answered.
    is_read_for: bool,
}

/// Who reads a stream on this node.
pub struct Reading<E: Ends> {
    readers: BTreeMap<ConsumerId, Reader<E::Outlet>>,
    /// Where those stand that read, the one that is furthest behind first.
    positions: BTreeSet<(u64, ConsumerId)>,
    /// Those who may be sent something and have all that is there.
    idle: BTreeSet<ConsumerId>,
    /// Everything below may be read.
    committed: u64,
    /// The stream is gone.
    ended: bool,
}

impl<E: Ends> Reading<E> {
    /// Of a stream of which everything below this offset may be read.
    pub fn new(committed: u64) -> Self {
        Self {
            readers: BTreeMap::new(),
            positions: BTreeSet::new(),
            idle: BTreeSet::new(),
            committed,
            ended: false,
        }
    }

    /// Does what readers want. Of one that is not there nothing is known. If the stream is gone, whoever comes is told.
    pub fn handle(&mut self, request: ReadRequest<E>, effects: &mut Vec<ReadEffect<E>>) {
        match request {
            ReadRequest::Attach { reader, outlet, .. } | ReadRequest::Watch { reader, outlet }
                if self.ended =>
            {
                effects.push(ReadEffect::Gone { reader, outlet });
            }
            ReadRequest::Attach {
                reader,
                outlet,
                at,
                credit,
            } => {
                self.attach(reader, outlet, Some(at), credit);
                self.go_on(reader, effects);
            }
            ReadRequest::Watch { reader, outlet } => self.attach(reader, outlet, None, 0),
            ReadRequest::Credit { reader, chunks } => {
                if let Some(it) = self.readers.get_mut(&reader) {
                    it.credit = it.credit.saturating_add(chunks);
                }
                self.go_on(reader, effects);
            }
            ReadRequest::Sent { reader, next, chunks } => {
                self.sent(reader, next, chunks);
                self.go_on(reader, effects);
            }
            ReadRequest::Detach { reader } => self.detach(reader),
        }
    }

    /// Everything below this offset may be read now, whatever was said before; it never falls.
    pub fn commit(&mut self, below: u64, effects: &mut Vec<ReadEffect<E>>) {
        if below <= self.committed {
            return;
        }
        self.committed = below;
        for reader in std::mem::take(&mut self.idle) {
            self.go_on(reader, effects);
        }
    }

    /// What is behind this offset was taken back, since a disk had no room for it, and comes again: until then nobody is sent
    /// any of it.
    pub fn retract(&mut self, below: u64) {
        self.committed = self.committed.min(below);
    }

    /// The stream is gone: all are told.
    pub fn end(&mut self, effects: &mut Vec<ReadEffect<E>>) {
        self.ended = true;
        self.idle.clear();
        self.positions.clear();
        let readers = std::mem::take(&mut self.readers);
        effects.extend(readers.into_iter().map(|(reader, it)| ReadEffect::Gone {
            reader,
            outlet: it.outlet,
        }));
    }

    /// Of those who only watch these are told that it is over for them, and are gone: somebody else decides now.
    pub fn end_watches(&mut self, ends: impl Fn(ConsumerId) -> bool, effects: &mut Vec<ReadEffect<E>>) {
        let watches: Vec<ConsumerId> = self
            .readers
            .iter()
            .filter(|(reader, it)| it.position.is_none() && ends(**reader))
            .map(|(reader, _)| *reader)
            .collect();
        for reader in watches {
            if let Some(it) = self.readers.remove(&reader) {
                let outlet = it.outlet;
                effects.push(ReadEffect::Gone { reader, outlet });
            }
        }
    }

    /// Everything below may be read.
    pub fn committed(&self) -> u64 {
        self.committed
    }

    /// How many read.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True if nobody reads.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The offset of whoever is furthest behind, which is what retention is to be told
    /// ([`Request::Pinned`](super::Request::Pinned)); `None` if nobody reads.
    pub fn lowest(&self) -> Option<u64> {
        self.positions.first().map(|(position, _)| *position)
    }

    fn attach(&mut self, reader: ConsumerId, outlet: E::Outlet, position: Option<u64>, credit: u32) {
        self.detach(reader);
        self.positions.extend(position.map(|position| (position, reader)));
        self.readers.insert(
            reader,
            Reader {
                outlet,
                position,
                credit,
                is_read_for: false,
            },
        );
    }

    fn detach(&mut self, reader: ConsumerId) {
        self.idle.remove(&reader);
        let known = self.readers.remove(&reader);
        if let Some(position) = known.and_then(|known| known.position) {
            self.positions.remove(&(position, reader));
        }
    }

    fn sent(&mut self, id: ConsumerId, next: u64, chunks: u32) {
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        reader.is_read_for = false;
        reader.credit = reader.credit.saturating_sub(chunks);
        if let Some(position) = &mut reader.position
            && *position < next
        {
            self.positions.remove(&(*position, id));
            self.positions.insert((next, id));
            *position = next;
        }
    }

    /// Orders that the reader is sent what it may have, if there is something.
    fn go_on(&mut self, id: ConsumerId, effects: &mut Vec<ReadEffect<E>>) {
        let Some(reader) = self.readers.get_mut(&id) else {
            return;
        };
        let Some(position) = reader.position else {
            return;
        };
        if reader.is_read_for || reader.credit == 0 {
            self.idle.remove(&id);
        } else if position >= self.committed {
            self.idle.insert(id);
        } else {
            reader.is_read_for = true;
            self.idle.remove(&id);
            effects.push(ReadEffect::Read {
                reader: id,
                outlet: reader.outlet.clone(),
                from: position,
                below: self.committed,
                chunks: reader.credit,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Ranges;

    #[derive(Debug, PartialEq)]
    struct Plain;

    impl Ends for Plain {
        type Receipt = ();
        type Reply = ();
        type Outlet = &'static str;

        fn split((): &mut (), _: &Ranges, _: usize) {}
    }

    const ONE: ConsumerId = ConsumerId(1);
    const TWO: ConsumerId = ConsumerId(2);

    fn attach(reader: ConsumerId, at: u64, credit: u32) -> ReadRequest<Plain> {
        let outlet = "reads";
        ReadRequest::Attach {
            reader,
            outlet,
            at,
            credit,
        }
    }

    fn sent(reader: ConsumerId, next: u64, chunks: u32) -> ReadRequest<Plain> {
        ReadRequest::Sent { reader, next, chunks }
    }

    fn read(reader: ConsumerId, from: u64, below: u64, chunks: u32) -> ReadEffect<Plain> {
        let outlet = "reads";
        ReadEffect::Read {
            reader,
            outlet,
            from,
            below,
            chunks,
        }
    }

    fn orders(reading: &mut Reading<Plain>, request: ReadRequest<Plain>) -> Vec<ReadEffect<Plain>> {
        let mut effects = Vec::new();
        reading.handle(request, &mut effects);
        effects
    }

    fn committed(reading: &mut Reading<Plain>, below: u64) -> Vec<ReadEffect<Plain>> {
        let mut effects = Vec::new();
        reading.commit(below, &mut effects);
        effects
    }

    #[test]
    fn a_reader_is_sent_what_is_committed_and_what_it_has_credit_for() {
        let mut reading = Reading::new(10);
        assert_eq!(orders(&mut reading, attach(ONE, 4, 2)), [read(ONE, 4, 10, 2)]);
        // One order at a time.
        assert_eq!(committed(&mut reading, 12), []);
        assert_eq!(orders(&mut reading, sent(ONE, 8, 1)), [read(ONE, 8, 12, 1)]);
        assert_eq!(orders(&mut reading, sent(ONE, 12, 1)), []);
        assert_eq!(committed(&mut reading, 14), [], "it has no credit");
        let (reader, chunks) = (ONE, 3);
        let credit = ReadRequest::Credit { reader, chunks };
        assert_eq!(orders(&mut reading, credit), [read(ONE, 12, 14, 3)]);
        assert_eq!(orders(&mut reading, sent(ONE, 14, 1)), []);
        // What is committed never falls, whoever says so.
        assert_eq!(committed(&mut reading, 9), []);
        assert_eq!(reading.committed(), 14);
        assert_eq!(committed(&mut reading, 15), [read(ONE, 14, 15, 2)]);
    }

    #[test]
    fn who_stands_where_something_was_taken_back_is_sent_it_once_it_comes_again() {
        let mut reading = Reading::new(10);
        assert_eq!(orders(&mut reading, attach(ONE, 8, 5)), [read(ONE, 8, 10, 5)]);
        reading.retract(9);
        assert_eq!(orders(&mut reading, sent(ONE, 9, 1)), []);
        assert_eq!(committed(&mut reading, 9), []);
        assert_eq!(committed(&mut reading, 10), [read(ONE, 9, 10, 4)]);
    }

    #[test]
    fn whoever_is_furthest_behind_and_reads_is_the_lowest() {
        let mut reading = Reading::new(10);
        let (reader, outlet) = (ConsumerId(3), "watches");
        assert_eq!(orders(&mut reading, ReadRequest::Watch { reader, outlet }), []);
        assert_eq!((reading.lowest(), reading.len()), (None, 0));
        orders(&mut reading, attach(ONE, 4, 0));
        orders(&mut reading, attach(TWO, 6, 0));
        assert_eq!((reading.lowest(), reading.len()), (Some(4), 2));
        orders(&mut reading, sent(ONE, 8, 1));
        assert_eq!(reading.lowest(), Some(6));
        orders(&mut reading, sent(ONE, 5, 1));
        orders(&mut reading, ReadRequest::Detach { reader: TWO });
        assert_eq!((reading.lowest(), reading.len()), (Some(8), 1), "it goes on only");
        // Once more under the same name: the other one is gone.
        orders(&mut reading, attach(ONE, 2, 0));
        assert_eq!((reading.lowest(), reading.len()), (Some(2), 1));
        orders(&mut reading, ReadRequest::Detach { reader: ONE });
        assert!(reading.is_empty());
        // Who is not there changes nothing.
        orders(&mut reading, sent(ONE, 1, 1));
        assert_eq!(reading.lowest(), None);
    }

    #[test]
    fn all_are_told_when_the_stream_is_gone_and_so_is_whoever_comes_later() {
        let mut reading = Reading::new(0);
        let watch = |reader| {
            let outlet = "watches";
            ReadRequest::Watch { reader, outlet }
        };
        let gone = |reader, outlet| ReadEffect::Gone { reader, outlet };
        orders(&mut reading, attach(TWO, 0, 1));
        orders(&mut reading, watch(ONE));
        let mut effects = Vec::new();
        reading.end(&mut effects);
        assert_eq!(effects, [gone(ONE, "watches"), gone(TWO, "reads")]);
        assert_eq!((reading.lowest(), reading.len()), (None, 0));
        assert_eq!(orders(&mut reading, watch(ONE)), [gone(ONE, "watches")]);
        assert_eq!(orders(&mut reading, attach(TWO, 0, 1)), [gone(TWO, "reads")]);
        assert_eq!(committed(&mut reading, 5), []);
    }
}
