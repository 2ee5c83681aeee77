//! What operators ask one node about the whole cluster, that node asks the others: short questions, each with one answer, over
//! links. Nothing here knows what is in them.
//!
//! A question is given up after a second, with its link, and by a node that has too many. What may go wrong between two steps
//! stands in decision note 50.

use crate::link::{Links, Sent, Topic};
use broker::groups::NodeId;
use bytes::{Bytes, BytesMut};
use protocol::link::Lane;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The version of the envelope.
const VERSION: u8 = 1;

/// Questions and answers are not longer, in bytes: a publish on the same lane waits for no more than these.
pub const LONGEST: usize = 4 << 20;

/// How long a node waits for answers.
const TIMEOUT: Duration = Duration::from_secs(1);

/// So many threads answer.
const THREADS: usize = 2;

/// So many questions of others wait for an answer; further ones are answered with nothing.
const WAITING: usize = 64;

/// What answers a question of another node.
pub type Answerer = Arc<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// The questions of this node that are open, and those of others.
pub(super) struct Questions {
    links: Arc<Links>,
    /// Which start of this node it is: an answer to a question of an earlier one is nobody's.
    start: u64,
    state: Mutex<State>,
    /// Something was answered, or given up.
    answered: Condvar,
    /// There is something to answer, or nothing any more.
    asked: Condvar,
}

#[derive(Default)]
struct State {
    /// The number of the last question.
    last: u64,
    open: BTreeMap<u64, Open>,
    /// They did not answer the last question in time, nor any since: one thread at a time waits for them.
    slow: BTreeSet<NodeId>,
    waiting: VecDeque<(NodeId, Head, Bytes)>,
    answerer: Option<Answerer>,
    threads: Vec<JoinHandle<()>>,
    is_over: bool,
}

/// A question of this node.
struct Open {
    to: NodeId,
    /// `None` as long as nothing came; then what came, if there is an answer.
    told: Option<Option<Bytes>>,
}

/// What stands before a question or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    kind: Kind,
    /// Which start of the asking node it is.
    start: u64,
    /// Rises with each question of that start.
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Question = 1,
    Answer = 2,
    /// There is no answer.
    Nothing = 3,
}

impl Head {
    const BYTES: usize = 18;

    fn encode(self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&[VERSION, self.kind as u8]);
        bytes.extend_from_slice(&self.start.to_be_bytes());
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.freeze()
    }

    /// `None` if it is nothing that this version knows.
    fn decode(frame: &[u8]) -> Option<Self> {
        let (start, rest) = frame.strip_prefix(&[VERSION])?.split_first_chunk::<9>()?;
        let number = rest.first_chunk::<8>()?;
        let (kind, start) = start.split_first_chunk::<1>()?;
        let kind = match kind {
            [1] => Kind::Question,
            [2] => Kind::Answer,
            [3] => Kind::Nothing,
            _ => return None,
        };
        Some(Self {
            kind,
            start: u64::from_be_bytes(start.try_into().ok()?),
            number: u64::from_be_bytes(*number),
        })
    }
}

impl Questions {
    pub(super) fn new(links: Arc<Links>, start: u64) -> Arc<Self> {
        Arc::new(Self {
            links,
            start,
            state: Mutex::default(),
            answered: Condvar::new(),
            asked: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on questions of others are answered by `answerer`, which may take its time, but asks nobody.
    pub(super) fn answer_with(self: &Arc<Self>, answerer: Answerer) -> io::Result<()> {
        let mut state = self.state();
        state.answerer = Some(answerer);
        while state.threads.len() < THREADS {
            let questions = Arc::clone(self);
            let name = format!("questions-{}", state.threads.len());
            let thread = std::thread::Builder::new()
                .name(name)
                .spawn(move || questions.work())?;
            state.threads.push(thread);
        }
        Ok(())
    }

    /// Asks each of these nodes a question, and waits for what they say, for a second at the most. `None` for those that say
    /// nothing.
    pub(super) fn ask(&self, questions: Vec<(NodeId, Bytes)>) -> Vec<Option<Bytes>> {
        let numbers: Vec<Option<u64>> = questions
            .into_iter()
            .map(|(to, question)| self.send(to, question))
            .collect();
        let until = Instant::now() + TIMEOUT;
        let mut state = self.state();
        let is_open =
            |state: &State, number: &u64| state.open.get(number).is_some_and(|it| it.told.is_none());
        while !state.is_over && numbers.iter().flatten().any(|number| is_open(&state, number)) {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                break;
            };
            let waited = self.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let mut told = Vec::with_capacity(numbers.len());
        for number in numbers {
            let open = number.and_then(|number| state.open.remove(&number));
            told.push(open.and_then(|open| {
                if open.told.is_none() {
                    state.slow.insert(open.to);
                }
                open.told.flatten()
            }));
        }
        told
    }

    /// The question's number, if it is on its way.
    fn send(&self, to: NodeId, question: Bytes) -> Option<u64> {
        if question.len() > LONGEST {
            return None;
        }
        let mut state = self.state();
        let is_asked = |state: &State| state.open.values().any(|open| open.to == to);
        if state.is_over || state.slow.contains(&to) && is_asked(&state) {
            return None;
        }
        state.last += 1;
        let number = state.last;
        state.open.insert(number, Open { to, told: None });
        drop(state);
        let head = Head {
            kind: Kind::Question,
            start: self.start,
            number,
        };
        let parts = Topic::Questions.mark(vec![head.encode(), question]);
        if self.links.send(to, Lane::Work, parts) == Sent::Queued {
            return Some(number);
        }
        self.state().open.remove(&number);
        None
    }

    /// What another node asks or answers.
    pub(super) fn receive(&self, from: NodeId, frame: &Bytes) {
        let Some(head) = Head::decode(frame).filter(|_| frame.len() <= LONGEST + Head::BYTES) else {
            return;
        };
        let rest = frame.slice(Head::BYTES..);
        let mut state = self.state();
        if head.kind == Kind::Question {
            if state.is_over || state.answerer.is_none() || state.waiting.len() >= WAITING {
                drop(state);
                return self.reply(from, head, None);
            }
            state.waiting.push_back((from, head, rest));
            return self.asked.notify_one();
        }
        if head.start != self.start {
            return;
        }
        state.slow.remove(&from);
        let open = state.open.get_mut(&head.number);
        if let Some(open) = open.filter(|open| open.to == from && open.told.is_none()) {
            open.told = Some((head.kind == Kind::Answer).then_some(rest));
            self.answered.notify_all();
        }
    }

    /// The link is lost, and what was under way with it.
    pub(super) fn down(&self, peer: NodeId) {
        let mut state = self.state();
        state.slow.remove(&peer);
        for open in state.open.values_mut().filter(|open| open.to == peer) {
            open.told.get_or_insert(None);
        }
        self.answered.notify_all();
    }

    fn reply(&self, to: NodeId, head: Head, answer: Option<Vec<u8>>) {
        let answer = answer.filter(|answer| answer.len() <= LONGEST);
        let kind = if answer.is_some() {
            Kind::Answer
        } else {
            Kind::Nothing
        };
        let head = Head { kind, ..head };
        // Whoever asks waits no longer than a second for what is lost.
        let parts = vec![head.encode(), answer.unwrap_or_default().into()];
        let _: Sent = self.links.send(to, Lane::Work, Topic::Questions.mark(parts));
    }

    /// Answers others until it is over.
    fn work(&self) {
        let mut state = self.state();
        while !state.is_over {
            let next = state.waiting.pop_front().zip(state.answerer.clone());
            let Some(((from, head, question), answerer)) = next else {
                state = self.asked.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            drop(state);
            // There is no other thread that would go on in its place.
            let answer = catch_unwind(AssertUnwindSafe(|| answerer(&question)));
            if answer.is_err() {
                tracing::error!(
                    area = "cluster",
                    "a question of another node could not be answered: this is a fault of the broker"
                );
            }
            self.reply(from, head, answer.ok());
            state = self.state();
        }
    }

    /// Nobody asks or answers any more. Waits for what is being answered. May be called twice.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.answerer = None;
        state.waiting.clear();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        self.asked.notify_all();
        self.answered.notify_all();
        for thread in threads {
            // One that failed has answered nobody since.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{LinkOptions, Secret};

    #[test]
    fn a_head_is_read_as_it_was_written_and_nothing_shorter_is() {
        let head = Head {
            kind: Kind::Answer,
            start: 7,
            number: u64::MAX,
        };
        let bytes = head.encode();
        assert_eq!((bytes.len(), Head::decode(&bytes)), (Head::BYTES, Some(head)));
        for length in 0..bytes.len() {
            assert_eq!(Head::decode(&bytes[..length]), None, "{length}");
        }
        for (at, wrong) in [(0, 9), (1, 0), (1, 4)] {
            let mut bytes = bytes.to_vec();
            bytes[at] = wrong;
            assert_eq!(Head::decode(&bytes), None);
        }
    }

    fn questions(start: u64) -> Arc<Questions> {
        let secret = Secret::new(b"s3cret").unwrap();
        let links = Links::new(&LinkOptions::new("rabbit@n1", start, secret));
        Questions::new(Arc::new(links), start)
    }

    fn answer(start: u64, number: u64, text: &str) -> Bytes {
        let kind = Kind::Answer;
        let head = Head { kind, start, number }.encode();
        [&head[..], text.as_bytes()].concat().into()
    }

    /// Enters a question as if it was sent.
    fn asked(questions: &Questions, number: u64, to: NodeId) {
        let open = Open { to, told: None };
        questions.state().open.insert(number, open);
    }

    fn told(questions: &Questions, number: u64) -> Option<Option<Bytes>> {
        questions.state().open[&number].told.clone()
    }

    #[test]
    fn an_answer_counts_if_it_is_of_the_node_and_the_start_that_were_asked() {
        let questions = questions(5);
        asked(&questions, 1, NodeId(2));
        for (from, frame) in [
            (NodeId(3), answer(5, 1, "another node")),
            (NodeId(2), answer(4, 1, "to an earlier start")),
            (NodeId(2), answer(5, 2, "to another question")),
        ] {
            questions.receive(from, &frame);
            assert_eq!(told(&questions, 1), None);
        }
        questions.receive(NodeId(2), &answer(5, 1, "yes"));
        questions.receive(NodeId(2), &answer(5, 1, "once more"));
        assert_eq!(told(&questions, 1), Some(Some("yes".into())));
    }

    #[test]
    fn who_has_no_link_is_not_waited_for_and_who_was_slow_has_one_question_at_a_time() {
        let questions = questions(1);
        let nobody = questions.ask(vec![(NodeId(2), Bytes::from_static(b"?"))]);
        assert_eq!(nobody, [None]);
        assert!(questions.state().open.is_empty());

        asked(&questions, 7, NodeId(2));
        questions.state().slow.insert(NodeId(2));
        let last = questions.state().last;
        assert_eq!(questions.ask(vec![(NodeId(2), Bytes::new())]), [None]);
        assert_eq!(questions.state().last, last, "it is not asked");
        questions.receive(NodeId(2), &answer(1, 7, "late"));
        assert!(questions.state().slow.is_empty());
    }

    #[test]
    fn what_is_lost_with_a_link_is_not_waited_for() {
        let questions = questions(1);
        asked(&questions, 1, NodeId(2));
        asked(&questions, 2, NodeId(3));
        questions.down(NodeId(2));
        assert_eq!((told(&questions, 1), told(&questions, 2)), (Some(None), None));
    }

    #[test]
    fn so_many_questions_of_others_wait_and_no_more() {
        let questions = questions(1);
        let ask = || {
            let kind = Kind::Question;
            let (start, number) = (9, 1);
            questions.receive(NodeId(2), &Head { kind, start, number }.encode());
            questions.state().waiting.len()
        };
        assert_eq!(ask(), 0, "nobody answers yet");
        questions.state().answerer = Some(Arc::new(|_| Vec::new()));
        assert_eq!((0..WAITING + 3).map(|_| ask()).max(), Some(WAITING));
        questions.stop();
        assert_eq!(ask(), 0);
    }
}
