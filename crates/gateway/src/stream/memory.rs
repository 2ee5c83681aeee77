//! Streams in memory, for tests: what a store does, without a disk, rights or other nodes. Every flush makes one chunk, which is
//! committed at once.

use super::inbox::{Inbox, Told};
use super::streams::*;
use broker::{NextChunk, ReadChunk, Session};
use bytes::Bytes;
use protocol::stream::{Body, Entry, OffsetSpec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// The streams of a node that has one virtual host. Those whose names begin with `secret` nobody may write, read or remove, and
/// none that is called `broken` can be made. Of those whose names begin with `copy` another node is the leader, and those whose
/// names begin with `silent` confirm nothing.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<BTreeMap<String, Kept>>>);

#[derive(Default)]
struct Kept {
    chunks: Vec<(u64, ReadChunk)>,
    next: u64,
    offsets: BTreeMap<Vec<u8>, u64>,
    sequences: BTreeMap<Vec<u8>, u64>,
    readers: Vec<(ReaderNumber, Arc<Inbox>)>,
    /// Connections that know the stream.
    known: Vec<Arc<Inbox>>,
    /// Single active consumers, the first being the active one.
    single: Vec<(String, ReaderNumber, Arc<Inbox>)>,
    /// If it is a super stream: its streams with their keys.
    partitions: Vec<(String, String)>,
}

impl Source for Memory {
    fn open(&self, _: &Arc<Session>, inbox: Arc<Inbox>, _: bool) -> Box<dyn Streams> {
        let memory = self.clone();
        Box::new(Opened { memory, inbox })
    }
}

struct Opened {
    memory: Memory,
    inbox: Arc<Inbox>,
}

impl Opened {
    fn with<T>(&self, stream: &str, of: impl FnOnce(&mut Kept) -> Result<T, Refused>) -> Result<T, Refused> {
        if stream.starts_with("secret") {
            return Err(Refused::Access);
        }
        let mut all = self.memory.0.lock().unwrap();
        of(all.get_mut(stream).ok_or(Refused::NoStream)?)
    }

    /// The same for what only the leader does.
    fn lead<T>(&self, stream: &str, of: impl FnOnce(&mut Kept) -> Result<T, Refused>) -> Result<T, Refused> {
        self.with(stream, |kept| match is_copy(stream) {
            true => Err(Refused::NotAvailable),
            false => of(kept),
        })
    }

    fn answer(&self, question: Question, answer: Result<Answer, Refused>) {
        self.inbox.tell(Told::Answer { question, answer });
    }

    fn remove(&self, stream: &str) -> Result<Answer, Refused> {
        self.with(stream, |_| Ok(()))?;
        let gone = self.memory.0.lock().unwrap().remove(stream);
        for inbox in gone.into_iter().flat_map(|gone| gone.known) {
            inbox.tell(Told::Gone {
                stream: stream.into(),
            });
        }
        Ok(Answer::Done)
    }
}

fn is_copy(stream: &str) -> bool {
    stream.starts_with("copy")
}

impl Streams for Opened {
    fn event(&mut self, _: broker::Event) {}

    fn create(&mut self, question: Question, stream: &str, arguments: &[(&str, &str)]) {
        let mut all = self.memory.0.lock().unwrap();
        let answer = match stream {
            _ if arguments.contains(&("max-age", "1Q")) => Err(Refused::Precondition),
            _ if all.contains_key(stream) => Err(Refused::Exists),
            "broken" => Err(Refused::Internal),
            _ => {
                all.insert(stream.into(), Kept::default());
                Ok(Answer::Done)
            }
        };
        self.answer(question, answer);
    }

    fn delete(&mut self, question: Question, stream: &str) {
        self.answer(question, self.remove(stream));
    }

    fn create_super_stream(&mut self, question: Question, super_stream: &NewSuperStream<'_>) {
        let wrong = super_stream.arguments.contains(&("max-age", "1Q"));
        if wrong || super_stream.partitions.len() != super_stream.keys.len() {
            return self.answer(question, Err(Refused::Precondition));
        }
        let mut all = self.memory.0.lock().unwrap();
        let mut made = Kept::default();
        for (partition, key) in super_stream.partitions.iter().zip(super_stream.keys) {
            all.insert((*partition).into(), Kept::default());
            made.partitions.push(((*partition).into(), (*key).into()));
        }
        all.insert(super_stream.name.into(), made);
        self.answer(question, Ok(Answer::Done));
    }

    fn delete_super_stream(&mut self, question: Question, super_stream: &str) {
        let partitions = self.partitions(super_stream).unwrap_or_default();
        let answer = self.remove(super_stream);
        for partition in partitions {
            let _ = self.remove(&partition);
        }
        self.answer(question, answer);
    }

    fn locate(&self, stream: &str) -> Result<Located, Refused> {
        let at = |host: &str| Address {
            host: host.into(),
            port: 5552,
        };
        self.with(stream, |_| {
            Ok(match is_copy(stream) {
                true => Located {
                    leader: Some(at("there")),
                    replicas: vec![at("here"), at("away")],
                },
                false => Located {
                    leader: Some(at("here")),
                    replicas: Vec::new(),
                },
            })
        })
    }

    fn partitions(&self, super_stream: &str) -> Result<Vec<String>, Refused> {
        self.with(super_stream, |kept| {
            Ok(kept.partitions.iter().map(|(name, _)| name.clone()).collect())
        })
    }

    fn route(&self, super_stream: &str, key: &str) -> Result<Vec<String>, Refused> {
        self.with(super_stream, |kept| {
            let to = kept.partitions.iter().filter(|(_, of)| of == key);
            Ok(to.map(|(name, _)| name.clone()).collect())
        })
    }

    fn publisher(
        &mut self,
        number: PublisherNumber,
        stream: &str,
        reference: Option<&[u8]>,
    ) -> Result<Box<dyn Publisher>, Refused> {
        self.lead(stream, |kept| {
            kept.known.push(self.inbox.clone());
            Ok(())
        })?;
        Ok(Box::new(Publishing {
            memory: self.memory.clone(),
            inbox: self.inbox.clone(),
            stream: stream.into(),
            number,
            reference: reference.map(<[u8]>::to_vec),
            ids: Vec::new(),
            data: Vec::new(),
            entries: 0,
            records: 0,
        }))
    }

    fn sequence(&mut self, question: Question, stream: &str, reference: &[u8]) {
        let sequence = self.lead(stream, |kept| {
            Ok(kept.sequences.get(reference).copied().unwrap_or_default())
        });
        self.answer(question, sequence.map(Answer::Number));
    }

    fn offset(&mut self, question: Question, stream: &str, reference: &[u8]) {
        let offset = self.with(stream, |kept| {
            kept.offsets.get(reference).copied().ok_or(Refused::NoOffset)
        });
        self.answer(question, offset.map(Answer::Number));
    }

    fn store_offset(&mut self, stream: &str, reference: &[u8], offset: u64) {
        let _ = self.with(stream, |kept| {
            kept.offsets.insert(reference.to_vec(), offset);
            Ok(())
        });
    }

    fn flush(&mut self) {}

    fn stats(&mut self, question: Question, stream: &str) {
        let stats = self.with(stream, |kept| {
            let last = kept.chunks.last().map_or(-1, |(first, _)| *first as i64);
            Ok(vec![("committed_chunk_id", last)])
        });
        self.answer(question, stats.map(Answer::Stats));
    }

    fn resolve(&mut self, question: Question, stream: &str, from: OffsetSpec, _: Option<Filter>) {
        let found = self.with(stream, |kept| {
            let chunk = kept.chunks.get(kept.at(from)).or(kept.chunks.last());
            chunk.map(|(first, _)| *first).ok_or(Refused::NoOffset)
        });
        self.answer(question, found.map(Answer::Number));
    }

    fn reader(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        from: OffsetSpec,
        _: Option<Filter>,
    ) -> Result<Box<dyn Reader>, Refused> {
        let inbox = self.inbox.clone();
        let at = self.with(stream, |kept| {
            kept.known.push(inbox.clone());
            kept.readers.push((number, inbox));
            Ok(kept.at(from))
        })?;
        Ok(Box::new(Reading {
            memory: self.memory.clone(),
            stream: stream.into(),
            at,
        }))
    }

    fn join(
        &mut self,
        number: ReaderNumber,
        stream: &str,
        group: &str,
        super_stream: Option<&str>,
    ) -> Result<Option<u32>, Refused> {
        let partition = super_stream.map(|of| {
            let partitions = self.partitions(of)?;
            let place = partitions.iter().position(|it| it == stream);
            place.map(|place| place as u32).ok_or(Refused::Precondition)
        });
        let partition = partition.transpose()?;
        let inbox = self.inbox.clone();
        self.with(stream, |kept| {
            let first = !kept.single.iter().any(|(of, ..)| of == group);
            kept.single.push((group.into(), number, inbox.clone()));
            if first {
                let (reader, active) = (number, true);
                inbox.tell(Told::Active { reader, active });
            }
            Ok(partition)
        })
    }

    fn stepped_down(&mut self, _: ReaderNumber) {}

    fn leave(&mut self, number: ReaderNumber) {
        for kept in self.memory.0.lock().unwrap().values_mut() {
            let Some(at) = kept.single.iter().position(|(_, of, _)| *of == number) else {
                continue;
            };
            let (group, ..) = kept.single.remove(at);
            if let Some((_, reader, inbox)) = kept.single.iter().find(|(of, ..)| *of == group) {
                let (reader, active) = (*reader, true);
                inbox.tell(Told::Active { reader, active });
            }
        }
    }

    fn writable(&self, stream: &str) -> Result<(), Refused> {
        self.lead(stream, |_| Ok(()))
    }

    fn readable(&self, stream: &str) -> Result<(), Refused> {
        self.with(stream, |_| Ok(()))
    }
}

impl Kept {
    /// The chunk with which to begin.
    fn at(&self, from: OffsetSpec) -> usize {
        match from {
            OffsetSpec::First | OffsetSpec::Timestamp(_) => 0,
            OffsetSpec::Last => self.chunks.len().saturating_sub(1),
            OffsetSpec::Next => self.chunks.len(),
            OffsetSpec::Offset(offset) => {
                let after = self.chunks.partition_point(|(first, _)| *first <= offset);
                after.saturating_sub(usize::from(offset < self.next))
            }
        }
    }
}

struct Publishing {
    memory: Memory,
    inbox: Arc<Inbox>,
    stream: String,
    number: PublisherNumber,
    reference: Option<Vec<u8>>,
    ids: Vec<u64>,
    data: Vec<u8>,
    entries: u16,
    records: u32,
}

impl Publisher for Publishing {
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), Refused> {
        if matches!(entry.body(), Ok(Body::Batch { compression: 5.., .. })) {
            return Err(Refused::Precondition);
        }
        self.ids.push(entry.publishing_id);
        let mut all = self.memory.0.lock().unwrap();
        let Some(kept) = all.get_mut(&self.stream) else {
            return Ok(());
        };
        if let Some(reference) = &self.reference {
            match kept.sequences.get_mut(reference) {
                Some(last) if *last >= entry.publishing_id => return Ok(()),
                Some(last) => *last = entry.publishing_id,
                None => drop(kept.sequences.insert(reference.clone(), entry.publishing_id)),
            }
        }
        self.data.extend_from_slice(entry.bytes);
        self.entries += 1;
        self.records += u32::from(entry.records());
        Ok(())
    }

    fn flush(&mut self) {
        let (publisher, ids) = (self.number, std::mem::take(&mut self.ids));
        let mut all = self.memory.0.lock().unwrap();
        if !all.contains_key(&self.stream) {
            let why = Refused::NotAvailable;
            return self.inbox.tell(Told::Rejected { publisher, ids, why });
        }
        if let (Some(kept), true) = (all.get_mut(&self.stream), self.entries > 0) {
            let mut header = [0; 48];
            header[0] = 0x50;
            header[2..4].copy_from_slice(&self.entries.to_be_bytes());
            header[4..8].copy_from_slice(&self.records.to_be_bytes());
            header[24..32].copy_from_slice(&kept.next.to_be_bytes());
            header[36..40].copy_from_slice(&(self.data.len() as u32).to_be_bytes());
            let entries = Bytes::from(std::mem::take(&mut self.data));
            kept.chunks.push((kept.next, ReadChunk { header, entries }));
            kept.next += u64::from(std::mem::take(&mut self.records));
            self.entries = 0;
            for (reader, inbox) in &kept.readers {
                inbox.tell(Told::Readable(*reader));
            }
        }
        if !self.stream.starts_with("silent") {
            self.inbox.tell(Told::Confirmed { publisher, ids });
        }
    }
}

struct Reading {
    memory: Memory,
    stream: String,
    at: usize,
}

impl Reader for Reading {
    fn next(&mut self) -> NextChunk {
        let all = self.memory.0.lock().unwrap();
        match all.get(&self.stream).and_then(|kept| kept.chunks.get(self.at)) {
            Some((_, chunk)) => {
                self.at += 1;
                NextChunk::Here(chunk.clone())
            }
            None => NextChunk::Later,
        }
    }

    fn committed_chunk(&self) -> u64 {
        let all = self.memory.0.lock().unwrap();
        let last = all.get(&self.stream).and_then(|kept| kept.chunks.last());
        last.map_or(0, |(first, _)| *first)
    }

    fn position(&self) -> u64 {
        let all = self.memory.0.lock().unwrap();
        let kept = all.get(&self.stream);
        kept.map_or(0, |kept| {
            kept.chunks.get(self.at).map_or(kept.next, |(first, _)| *first)
        })
    }
}
