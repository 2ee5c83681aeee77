//! What a shared catalog has at one moment: what exists, and which requests have been decided.
//!
//! ```text
//! format u8, version, generation and next queue u64, number of senders u64, each with
//!   node, start, decided u64, number of answers u64, each with its number u64
//! then the facts that exist, each with its length before it, to the end
//! ```

use super::codec::{encode_record, encode_said, read_records, read_said, read_sender, sender};
use super::{Known, MOST_OPEN, Said, Sender, known_as};
use crate::codec::{Reader, Writer};
use crate::{Catalog, View};
use model::{Journaled, Machine, Outcome, QueueId};
use std::collections::{BTreeMap, VecDeque};

/// The format that is written and read.
const FORMAT: u8 = 1;

/// What a shared catalog has. Cheap to take: nothing is copied that does not change.
#[derive(Clone, Debug)]
pub struct Contents {
    pub(super) version: u64,
    pub(super) next_queue: QueueId,
    pub(super) view: View,
    pub(super) senders: BTreeMap<u64, Known>,
}

impl Contents {
    /// Those of a catalog of which one node alone has decided everything so far.
    pub fn begin(view: View, next_queue: QueueId) -> Self {
        Self {
            version: 0,
            next_queue,
            view,
            senders: BTreeMap::new(),
        }
    }

    /// What exists.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// How many requests have been decided.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The answers that this start of a node may not have, by the numbers of its requests.
    pub fn kept(&self, sender: Sender) -> impl Iterator<Item = &(u64, Said)> {
        known_as(&self.senders, sender)
            .into_iter()
            .flat_map(|known| &known.kept)
    }

    pub(super) fn catalog(&self) -> Catalog<()> {
        let mut catalog = Catalog::of(self.view.clone());
        catalog.next_queue = catalog.next_queue.max(self.next_queue.0);
        catalog
    }
}

impl Journaled for Contents {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.byte(FORMAT);
        let numbers = [
            self.version,
            self.view.generation,
            self.next_queue.0,
            self.senders.len() as u64,
        ];
        numbers.into_iter().for_each(|number| out.number(number));
        for (node, known) in &self.senders {
            let (node, start) = (*node, known.start);
            sender(&mut out, Sender { node, start });
            out.number(known.decided);
            out.number(known.kept.len() as u64);
            for (number, said) in &known.kept {
                out.number(*number);
                encode_said(&mut out, said);
            }
        }
        for fact in self.view.facts() {
            encode_record(&mut out, &fact);
        }
        // An end that is there says that nothing was cut off.
        out.bytes(&[]);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, end) = bytes.split_at_checked(bytes.len().checked_sub(END.len())?)?;
        let mut reader = Reader::new(bytes);
        if end != END || reader.byte()? != FORMAT {
            return None;
        }
        let (version, generation) = (reader.number()?, reader.number()?);
        let (next_queue, count) = (QueueId(reader.number()?), reader.number()?);
        // However many are announced, there are no more than bytes for them.
        let senders = (0..count).map(|_| known(&mut reader));
        let senders = senders.collect::<Option<BTreeMap<_, _>>>()?;
        let mut catalog = Catalog::<()>::new();
        for fact in read_records(&mut reader)? {
            catalog.apply(0, fact, &mut Outcome::default());
        }
        let mut view = catalog.view();
        view.generation = generation;
        Some(Self {
            version,
            next_queue,
            view,
            senders,
        })
    }
}

/// A fact without bytes.
const END: [u8; 4] = [0; 4];

fn known(reader: &mut Reader<'_>) -> Option<(u64, Known)> {
    let Sender { node, start } = read_sender(reader)?;
    let (decided, count) = (reader.number()?, reader.number()?);
    if count > MOST_OPEN {
        return None;
    }
    let kept = (0..count).map(|_| Some((reader.number()?, read_said(reader)?)));
    let kept = kept.collect::<Option<VecDeque<_>>>()?;
    let known = Known { start, decided, kept };
    Some((node, known))
}
