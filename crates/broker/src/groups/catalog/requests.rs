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

/// So long new requests wait at most for others of their kind: for those of whoever was answered a moment ago, in microseconds.
const TOGETHER_US: u64 = 1_000;

/// And so long for the answers to those that were sent before, in microseconds.
const ROUND_US: u64 = 20_000;

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
    asked_us: u64,
    /// When it was sent last, to the node that decides now, in milliseconds.
    sent_ms: Option<u64>,
    /// What was decided, and in which version of the catalog.
    decided: Option<(Said, u64)>,
}

impl Open {
    /// Whether it was never sent to the node that decides now.
    fn is_new(&self) -> bool {
        self.sent_ms.is_none() && self.decided.is_none()
    }

    /// Whether somebody waits for it who is to be answered before new ones are sent.
    fn is_under_way(&self) -> bool {
        self.sent_ms.is_some() && self.reply.is_some()
    }
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
    /// How many were answered since some were sent last, and when the last one was: as many are expected again.
    expected: usize,
    answered_us: u64,
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
            expected: 0,
            answered_us: 0,
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
    pub fn ask(&mut self, request: catalog::Request, actor: Option<Arc<str>>, reply: Reply, now_us: u64) {
        self.open.push_back(Open {
            request,
            actor,
            reply: Some(reply),
            asked_us: now_us,
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

    /// Until when new ones wait for more of their kind, in microseconds; `None` if they are to be sent now. Clients that are
    /// answered together mostly ask again together, and what is sent together is one frame, one commit and one answer
    /// for all of them: that costs three nodes a small part of what one after the other does. Who asks alone never waits.
    pub fn waits_until(&self, now_us: u64) -> Option<u64> {
        let mut new = self.open.iter().filter(|open| open.is_new());
        let oldest = new.next()?.asked_us;
        let until = match self.open.iter().any(Open::is_under_way) {
            true => oldest + ROUND_US,
            false if 1 + new.count() < self.expected => self.answered_us + TOGETHER_US,
            false => return None,
        };
        (now_us < until).then_some(until)
    }

    /// What is to be sent now, in order.
    pub fn send(&mut self, now_us: u64) -> Vec<Numbered> {
        let (below, sender) = (self.decided_below(), self.sender);
        let (now_ms, waits) = (now_us / 1_000, self.waits_until(now_us).is_some());
        let mut sent = Vec::new();
        for (number, open) in (self.first..below + MOST_OPEN).zip(&mut self.open) {
            let is_due = open.sent_ms.map_or(!waits, |sent| now_ms >= sent + AGAIN_MS);
            if open.decided.is_none() && is_due {
                if open.sent_ms.is_none() {
                    self.expected = 0;
                }
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
    pub fn answers(&mut self, now_us: u64) -> Vec<(Reply, Said)> {
        let (mut answers, now_ms) = (Vec::new(), now_us / 1_000);
        for open in &mut self.open {
            let known = open
                .decided
                .as_ref()
                .filter(|(_, version)| *version <= self.everywhere);
            if let Some((said, _)) = known {
                answers.extend(open.reply.take().map(|reply| (reply, said.clone())));
            } else if now_us >= open.asked_us + timeout_ms(&open.request) * 1_000
                && let Some(reply) = open.reply.take()
            {
                answers.push((reply, Err(timed_out(&open.request))));
                // Its number is used: what comes behind it waits for it. Nobody waits for what it was.
                open.request = catalog::Request::EndTransient { at_most: 0 };
            }
        }
        if !answers.is_empty() {
            self.expect(answers.len(), now_us);
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

    /// So many are answered now.
    fn expect(&mut self, answered: usize, now_us: u64) {
        if now_us >= self.answered_us + TOGETHER_US {
            self.expected = 0;
        }
        self.expected += answered;
        self.answered_us = now_us;
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

/// So long a request is waited for, in milliseconds.
pub fn timeout_ms(request: &catalog::Request) -> u64 {
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

    fn sent(requests: &mut Requests, now_ms: u64) -> Vec<(u64, u64)> {
        numbers(&requests.send(now_ms * 1_000))
    }

    fn told(requests: &mut Requests, now_ms: u64) -> usize {
        let answers = requests.answers(now_ms * 1_000);
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
        assert_eq!(sent(&mut requests, 0), [(1, 1), (2, 1)]);
        assert_eq!(sent(&mut requests, 299), []);
        assert_eq!(sent(&mut requests, 300), [(1, 1), (2, 1)]);
        requests.decided(1, Ok(Answer::Done), 7);
        requests.begin_anew();
        assert_eq!(sent(&mut requests, 301), [(2, 2)]);
        assert_eq!(told(&mut requests, 301), 0, "not everywhere");
        requests.everywhere(7);
        assert_eq!(told(&mut requests, 301), 1);
        requests.decided(2, Ok(Answer::Done), 6);
        requests.decided(2, Err(Refusal::DefaultExchange), 8);
        assert_eq!(told(&mut requests, 302), 1);
        assert_eq!(*heard.lock().unwrap(), [("a", true), ("b", true)]);
        requests.ask(vhost("c"), None, Box::new(drop), 303_000);
        assert_eq!(sent(&mut requests, 303), [(3, 3)]);
    }

    #[test]
    fn what_nobody_decides_is_refused_and_what_it_was_is_not_asked_any_more() {
        let mut requests = requests();
        let heard = Arc::new(Mutex::new(None));
        let hears = heard.clone();
        let reply = Box::new(move |said: Said| *hears.lock().unwrap() = Some(said));
        requests.ask(vhost("a"), None, reply, 10_000);
        requests.send(10_000);
        assert_eq!(told(&mut requests, 2_009), 0);
        assert_eq!(told(&mut requests, 2_010), 1);
        assert!(matches!(
            *heard.lock().unwrap(),
            Some(Err(Refusal::Internal { .. }))
        ));
        let sent = requests.send(5_000_000);
        assert_eq!(sent[0].request, Request::EndTransient { at_most: 0 });
        requests.decided(1, Ok(Answer::Cleared(0)), 1);
        assert_eq!((told(&mut requests, 5_001), requests.first), (0, 2));
    }

    fn ask(requests: &mut Requests, count: usize, now_us: u64) {
        for _ in 0..count {
            requests.ask(vhost("a"), None, Box::new(drop), now_us);
        }
    }

    /// Decides and answers everything that was sent up to this number.
    fn answer(requests: &mut Requests, up_to: u64, now_us: u64) {
        for number in requests.first..=up_to {
            requests.decided(number, Ok(Answer::Done), number);
        }
        requests.everywhere(up_to);
        let answers = requests.answers(now_us);
        answers.into_iter().for_each(|(reply, said)| reply(said));
    }

    #[test]
    fn who_asks_alone_never_waits_and_who_was_answered_together_is_waited_for() {
        let mut requests = requests();
        ask(&mut requests, 1, 0);
        assert_eq!(requests.send(0).len(), 1);
        ask(&mut requests, 7, 100);
        assert_eq!(requests.send(100).len(), 0, "one is under way");
        assert_eq!(requests.waits_until(100), Some(100 + ROUND_US));
        answer(&mut requests, 1, 400);
        assert_eq!(requests.send(400).len(), 7);
        ask(&mut requests, 1, 500);
        answer(&mut requests, 8, 900);
        assert_eq!(requests.send(900).len(), 0, "seven may ask again");
        ask(&mut requests, 6, 1_000);
        assert_eq!(requests.send(1_000).len(), 7, "as many as were answered");
        answer(&mut requests, 15, 2_000);
        ask(&mut requests, 2, 2_100);
        assert_eq!(requests.waits_until(2_100), Some(2_000 + TOGETHER_US));
        assert_eq!(requests.send(2_999).len(), 0);
        assert_eq!(requests.send(3_000).len(), 2, "the others ask no more");
        answer(&mut requests, 17, 3_500);
        ask(&mut requests, 1, 9_000);
        assert_eq!(requests.send(9_000).len(), 1, "nobody is expected any more");
    }

    #[test]
    fn what_takes_long_to_answer_holds_others_back_for_a_while_only() {
        let mut requests = requests();
        ask(&mut requests, 1, 0);
        requests.send(0);
        ask(&mut requests, 1, 1_000);
        assert_eq!(requests.send(999 + ROUND_US).len(), 0);
        assert_eq!(requests.send(1_000 + ROUND_US).len(), 1);
        requests.begin_anew();
        ask(&mut requests, 1, 7_000);
        assert_eq!(
            requests.send(7_000).len(),
            3,
            "nothing is under way to whoever decides now"
        );
    }
}
