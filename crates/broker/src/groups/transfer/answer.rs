//! The side that answers: one question at a time for each peer, from what it has at this moment. What it remembers
//! between two questions spares it reading the same once more, and is given up when nobody asks.

use super::frame::{Asked, ENTRIES, Entry, PIECE_BYTES, SPANS, Said, Why};
use bytes::Bytes;
use cluster::{Mark, NodeId};
use model::{Index, Ranges, Seq};
use std::collections::BTreeMap;

/// Ticks for which something is kept that nobody asks for.
const KEPT: u32 = 600;

/// What the answering side is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// Nothing: the question is answered already, or it is being.
    Nothing,
    /// Say this.
    Say(NodeId, Said),
    /// Read the last checkpoint, and come back with [`Answers::contents`].
    ReadContents(NodeId),
    /// Read these bodies, and come back with [`Answers::bodies`].
    ReadBodies(NodeId, Ranges),
}

/// What the member has.
#[derive(Debug, Clone, Copy)]
pub struct Standing {
    /// Up to here its contents are committed and applied; `None` while it has none.
    pub applied: Option<Index>,
    /// The last durable checkpoint.
    pub checkpoint: Index,
}

/// Questions of peers.
#[derive(Debug, Default)]
pub struct Answers {
    /// What is being read, and for which question.
    reading: BTreeMap<NodeId, (Asked, Said)>,
    contents: Option<(Mark, Bytes)>,
    /// A message that is sent in slices.
    large: Option<Entry>,
    /// Ticks since somebody asked.
    idle: u32,
}

impl Answers {
    /// Whether there is anything that is to be given up some time.
    pub fn is_idle(&self) -> bool {
        self.reading.is_empty() && self.contents.is_none() && self.large.is_none()
    }

    /// A peer asks. What isn't a question is no matter of this side.
    pub fn asked(&mut self, from: NodeId, incarnation: u64, said: Said, here: Standing) -> Task {
        let (Said::WantsContents { number, .. } | Said::WantsBodies { number, .. }) = &said else {
            return Task::Nothing;
        };
        let asked = Asked {
            incarnation,
            number: *number,
        };
        self.idle = 0;
        // A peer has one question under way. What is being read is not read twice, whatever it asks meanwhile.
        if self.reading.contains_key(&from) {
            return Task::Nothing;
        }
        let not_now = |why| Task::Say(from, Said::NotNow { asked, why });
        let behind = |wanted: Index| match here.applied {
            None => Some(Why::Later),
            Some(applied) => (applied < wanted).then_some(Why::Behind),
        };
        match &said {
            Said::WantsContents {
                least, at, offset, ..
            } => {
                if let Some(piece) = self.piece(asked, *least, *at, *offset) {
                    return Task::Say(from, piece);
                }
                if *at != 0 {
                    return not_now(Why::Newer);
                }
                if here.checkpoint == 0 || here.checkpoint < *least {
                    return not_now(Why::Behind);
                }
                self.reading.insert(from, (asked, said));
                Task::ReadContents(from)
            }
            Said::WantsBodies {
                applied,
                offset,
                seqs,
                ..
            } => {
                if let Some(why) = behind(*applied) {
                    return not_now(why);
                }
                if let Some(slice) = self.slice(asked, seqs.first(), *offset) {
                    return Task::Say(from, slice);
                }
                let seqs = seqs.clone();
                self.reading.insert(from, (asked, said));
                Task::ReadBodies(from, seqs)
            }
            _ => Task::Nothing,
        }
    }

    /// The contents of the last checkpoint, without places; `None` if they could not be read.
    pub fn contents(&mut self, from: NodeId, read: Option<(Mark, Bytes)>) -> Option<Said> {
        let (asked, said) = self.reading.remove(&from)?;
        let Said::WantsContents { least, .. } = said else {
            return None;
        };
        if read.is_some() {
            self.contents = read;
        }
        let why = Why::Later;
        let later = Said::NotNow { asked, why };
        Some(self.piece(asked, least, 0, 0).unwrap_or(later))
    }

    /// Bodies that were read. What is in none of the three was not, this time.
    pub fn bodies(
        &mut self,
        from: NodeId,
        mut entries: Vec<Entry>,
        gone: Ranges,
        lost: Ranges,
    ) -> Option<Said> {
        let (asked, said) = self.reading.remove(&from)?;
        let Said::WantsBodies { offset, seqs, .. } = said else {
            return None;
        };
        if let Some(large) = entries.iter().position(|entry| entry.bytes.len() > PIECE_BYTES) {
            // What comes before it is asked for first, and it comes first then.
            if large == 0 {
                self.large = Some(entries.swap_remove(0));
                let first = seqs.first().filter(|_| gone.is_empty() && lost.is_empty());
                if let Some(slice) = self.slice(asked, first, offset) {
                    return Some(slice);
                }
                entries.clear();
            }
            entries.truncate(large);
        }
        entries.truncate(ENTRIES);
        Some(Said::Bodies {
            asked,
            gone: first_spans(&gone),
            lost: first_spans(&lost),
            entries,
        })
    }

    fn piece(&self, asked: Asked, least: Index, at: Index, offset: u64) -> Option<Said> {
        let (mark, bytes) = self.contents.as_ref()?;
        let fits = match at {
            0 => mark.index >= least,
            at => mark.index == at,
        };
        let from = usize::try_from(offset).ok().filter(|from| *from <= bytes.len())?;
        fits.then(|| Said::Contents {
            asked,
            at: *mark,
            total: bytes.len() as u64,
            offset,
            bytes: bytes.slice(from..bytes.len().min(from + PIECE_BYTES)),
        })
    }

    fn slice(&self, asked: Asked, first: Option<Seq>, offset: u64) -> Option<Said> {
        let large = self
            .large
            .as_ref()
            .filter(|large| Some(large.head.first) == first)?;
        let length = large.bytes.len();
        let from = usize::try_from(offset).ok().filter(|from| *from < length)?;
        Some(Said::Slice {
            asked,
            head: large.head,
            total: length as u64,
            offset,
            bytes: large.bytes.slice(from..length.min(from + PIECE_BYTES)),
        })
    }

    /// So much time has passed.
    pub fn tick(&mut self) {
        self.idle += 1;
        if self.idle >= KEPT {
            (self.contents, self.large) = (None, None);
        }
    }
}

/// As many as an answer may name. What is left out is asked for once more.
fn first_spans(seqs: &Ranges) -> Ranges {
    let mut first = Ranges::new();
    seqs.spans()
        .take(SPANS)
        .for_each(|(from, to)| first.push_span(from, to));
    first
}
