//! What a node has asked the catalog, until it is answered: numbered, sent again, and refused when nobody decides for too long.

use super::frame::Frame;
use bytes::Bytes;
use catalog::Refusal;
use catalog::shared::{MOST_OPEN, Numbered, Said, Sender};
use std::collections::VecDeque;
use std::sync::Arc;

/// Who is told the answer; called without a lock.
pub type Reply = Box<dyn FnOnce(Said) + Send>;

/// After so long without an answer a request is refused, in milliseconds.
pub const TIMEOUT_MS: u64 = 2_000;

/// The same for many changes as one, which may take a while to be decided and carried out on every node.
const MANY_TIMEOUT_MS: u64 = 10_000;

/// After so long without a decision a request is sent again, in milliseconds.
const AGAIN_MS: u64 = 300;

/// Looks at the node's copy; called without a lock.
pub type Look = Box<dyn FnOnce() -> Said + Send>;

/// A question that changes nothing.
struct Reading {
    number: u64,
    /// Until the copy may be believed.
    look: Option<Look>,
    /// What was seen, and the version that may have been in it.
    seen: Option<(Said, u64)>,
    reply: Option<Reply>,
    asked_ms: u64,
}

/// A request.
struct Open {
    request: catalog::Request,
    actor: Option<Arc<str>>,
    reply: Option<Reply>,
    asked_ms: u64,
    /// When it was sent last, to the node that decides now.
    sent_ms: Option<u64>,
    /// What was decided, and in which version of the catalog.
    decided: Option<(Said, u64)>,
}

/// See the module.
pub struct Requests {
    sender: Sender,
    /// The number of the first one that is open.
    first: u64,
    open: VecDeque<Open>,
    readings: VecDeque<Reading>,
    /// The number of the last one.
    read: u64,
    /// All changes up to this version have been applied on every node that counts.
    everywhere: u64,
}

impl Requests {
    /// Those of a start of a node, of which there are none yet.
    pub fn new(sender: Sender) -> Self {
        Self {
            sender,
            first: 1,
            open: VecDeque::new(),
            readings: VecDeque::new(),
            read: 0,
            everywhere: 0,
        }
    }

    /// Whose they are.
    pub fn sender(&self) -> Sender {
        self.sender
    }

    /// How many have no answer.
    pub fn waiting(&self) -> usize {
        self.open.iter().filter(|open| open.reply.is_some()).count() + self.readings.len()
    }

    /// A question that changes nothing.
    pub fn read(&mut self, look: Look, reply: Reply, now_ms: u64) {
        self.read += 1;
        self.readings.push_back(Reading {
            number: self.read,
            look: Some(look),
            seen: None,
            reply: Some(reply),
            asked_ms: now_ms,
        });
    }

    /// What is to be looked at, if the copy may be believed now: each with its number. [`Requests::seen`] follows for each.
    pub fn looks(&mut self) -> Vec<(u64, Look)> {
        let readings = self.readings.iter_mut();
        let looks = readings.filter_map(|reading| Some((reading.number, reading.look.take()?)));
        looks.collect()
    }

    /// What the reading of this number has seen; the copy had no later version than this.
    pub fn seen(&mut self, number: u64, said: Said, version: u64) {
        if let Ok(at) = self
            .readings
            .binary_search_by_key(&number, |reading| reading.number)
        {
            self.readings[at].seen = Some((said, version));
        }
    }

    /// Another one, of this user if it is one's.
    pub fn ask(&mut self, request: catalog::Request, actor: Option<Arc<str>>, reply: Reply, now_ms: u64) {
        self.open.push_back(Open {
            request,
            actor,
            reply: Some(reply),
            asked_ms: now_ms,
            sent_ms: None,
            decided: None,
        });
    }

    /// Somebody else decides: everything is sent again.
    pub fn begin_anew(&mut self) {
        self.open.iter_mut().for_each(|open| open.sent_ms = None);
    }

    /// All up to this one have been decided.
    fn decided_below(&self) -> u64 {
        let decided = self.open.iter().take_while(|open| open.decided.is_some());
        self.first + decided.count() as u64
    }

    /// What is to be sent now, in order.
    pub fn send(&mut self, now_ms: u64) -> Vec<Numbered> {
        let (below, sender) = (self.decided_below(), self.sender);
        let mut sent = Vec::new();
        for (number, open) in (self.first..below + MOST_OPEN).zip(&mut self.open) {
            let is_due = open.sent_ms.is_none_or(|sent| now_ms >= sent + AGAIN_MS);
            if open.decided.is_none() && is_due {
                open.sent_ms = Some(now_ms);
                sent.push(Numbered {
                    sender,
                    number,
                    below,
                    request: open.request.clone(),
                });
            }
        }
        sent
    }

    /// One was decided, in this version.
    pub fn decided(&mut self, number: u64, said: Said, version: u64) {
        let at = number.checked_sub(self.first);
        let open = at.and_then(|at| self.open.get_mut(at as usize));
        if let Some(open) = open.filter(|open| open.decided.is_none()) {
            open.decided = Some((said, version));
        }
    }

    /// Who asked for this one, if it is not over.
    pub fn actor(&self, number: u64) -> Option<Arc<str>> {
        let at = number.checked_sub(self.first)?;
        self.open.get(at as usize)?.actor.clone()
    }

    /// All changes up to this version are everywhere.
    pub fn everywhere(&mut self, version: u64) {
        self.everywhere = self.everywhere.max(version);
    }

    /// Takes out what can be answered now, and refuses what has waited for too long.
    pub fn answers(&mut self, now_ms: u64) -> Vec<(Reply, Said)> {
        let mut answers = Vec::new();
        for open in &mut self.open {
            let known = open
                .decided
                .as_ref()
                .filter(|(_, version)| *version <= self.everywhere);
            if let Some((said, _)) = known {
                answers.extend(open.reply.take().map(|reply| (reply, said.clone())));
            } else if now_ms >= open.asked_ms + timeout_ms(&open.request)
                && let Some(reply) = open.reply.take()
            {
                answers.push((reply, Err(timed_out(&open.request))));
                // Its number is used: what comes behind it waits for it. Nobody waits for what it was.
                open.request = catalog::Request::EndTransient { at_most: 0 };
            }
        }
        self.answer_readings(now_ms, &mut answers);
        while self
            .open
            .front()
            .is_some_and(|open| open.reply.is_none() && open.decided.is_some())
        {
            self.open.pop_front();
            self.first += 1;
        }
        answers
    }

    /// What was seen is told once it is everywhere: nobody sees less afterwards.
    fn answer_readings(&mut self, now_ms: u64, answers: &mut Vec<(Reply, Said)>) {
        let everywhere = self.everywhere;
        self.readings.retain_mut(|reading| {
            let is_late = now_ms >= reading.asked_ms + TIMEOUT_MS;
            // One that looks just now is told of it later.
            let looks = reading.look.is_none() && reading.seen.is_none();
            let said = match reading.seen.take() {
                Some((said, version)) if version <= everywhere => Some(said),
                _ if is_late && !looks => Some(Err(nobody_knows())),
                seen => {
                    reading.seen = seen;
                    None
                }
            };
            let Some(said) = said else { return true };
            answers.extend(reading.reply.take().map(|reply| (reply, said)));
            false
        });
    }
}

/// What whoever asks is told if this node's copy may be out of date and stays so.
pub fn nobody_knows() -> Refusal {
    Refusal::Internal {
        reason: "failed to read the metadata because the operation timed out".into(),
    }
}

/// A request as a frame; `None` if it has no bytes.
pub fn framed(asked: &Numbered) -> Option<Bytes> {
    let request = asked.request.encode()?;
    let frame = Frame::Ask {
        start: asked.sender.start,
        number: asked.number,
        below: asked.below,
        request: request.into(),
    };
    Some(frame.encode())
}

fn timeout_ms(request: &catalog::Request) -> u64 {
    match request {
        catalog::Request::All { .. } => MANY_TIMEOUT_MS,
        _ => TIMEOUT_MS,
    }
}

/// What RabbitMQ says when its metadata store gives no answer: an internal error.
fn timed_out(request: &catalog::Request) -> Refusal {
    let what = match request {
        catalog::Request::DeclareExchange { vhost, declare, .. } => {
            format!("declare exchange '{}' in vhost '{vhost}'", declare.name)
        }
        catalog::Request::DeclareQueue { vhost, declare, .. } => {
            format!("declare queue '{}' in vhost '{vhost}'", declare.name)
        }
        catalog::Request::DeleteExchange { vhost, name, .. } => {
            format!("delete exchange '{name}' in vhost '{vhost}'")
        }
        catalog::Request::Bind { vhost, binding } => {
            format!("bind {} in vhost '{vhost}'", ends(binding))
        }
        catalog::Request::Unbind { vhost, binding } => {
            format!("unbind {} in vhost '{vhost}'", ends(binding))
        }
        _ => "change the metadata".to_owned(),
    };
    Refusal::Internal {
        reason: format!("failed to {what} because the operation timed out"),
    }
}

fn ends(binding: &catalog::WantedBinding) -> String {
    format!("'{}' and '{}'", binding.source, binding.destination.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalog::{Answer, Request};
    use std::sync::Mutex;

    fn vhost(name: &str) -> Request {
        Request::CreateVhost { name: name.into() }
    }

    fn requests() -> Requests {
        Requests::new(Sender { node: 1, start: 1 })
    }

    fn numbers(sent: &[Numbered]) -> Vec<(u64, u64)> {
        sent.iter().map(|asked| (asked.number, asked.below)).collect()
    }

    fn told(requests: &mut Requests, now_ms: u64) -> usize {
        let answers = requests.answers(now_ms);
        let count = answers.len();
        answers.into_iter().for_each(|(reply, said)| reply(said));
        count
    }

    #[test]
    fn a_request_is_sent_until_it_is_decided_and_answered_once_it_is_everywhere() {
        let mut requests = requests();
        let heard = Arc::new(Mutex::new(Vec::new()));
        for name in ["a", "b"] {
            let heard = heard.clone();
            let reply = Box::new(move |said: Said| heard.lock().unwrap().push((name, said.is_ok())));
            requests.ask(vhost(name), None, reply, 0);
        }
        assert_eq!(numbers(&requests.send(0)), [(1, 1), (2, 1)]);
        assert_eq!(numbers(&requests.send(299)), []);
        assert_eq!(numbers(&requests.send(300)), [(1, 1), (2, 1)]);
        requests.decided(1, Ok(Answer::Done), 7);
        requests.begin_anew();
        assert_eq!(numbers(&requests.send(301)), [(2, 2)]);
        assert_eq!(told(&mut requests, 301), 0, "not everywhere");
        requests.everywhere(7);
        assert_eq!(told(&mut requests, 301), 1);
        requests.decided(2, Ok(Answer::Done), 6);
        requests.decided(2, Err(Refusal::DefaultExchange), 8);
        assert_eq!(told(&mut requests, 302), 1);
        assert_eq!(*heard.lock().unwrap(), [("a", true), ("b", true)]);
        requests.ask(vhost("c"), None, Box::new(drop), 303);
        assert_eq!(numbers(&requests.send(303)), [(3, 3)]);
    }

    #[test]
    fn what_nobody_decides_is_refused_and_what_it_was_is_not_asked_any_more() {
        let mut requests = requests();
        let heard = Arc::new(Mutex::new(None));
        let hears = heard.clone();
        let reply = Box::new(move |said: Said| *hears.lock().unwrap() = Some(said));
        requests.ask(vhost("a"), None, reply, 10);
        requests.send(10);
        assert_eq!(told(&mut requests, 2_009), 0);
        assert_eq!(told(&mut requests, 2_010), 1);
        assert!(matches!(
            *heard.lock().unwrap(),
            Some(Err(Refusal::Internal { .. }))
        ));
        let sent = requests.send(5_000);
        assert_eq!(sent[0].request, Request::EndTransient { at_most: 0 });
        requests.decided(1, Ok(Answer::Cleared(0)), 1);
        assert_eq!((told(&mut requests, 5_001), requests.first), (0, 2));
    }
}
