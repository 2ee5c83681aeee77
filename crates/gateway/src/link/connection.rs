//! One end of a link: bytes in, frames out, and back. It has no socket; the shell that serves clients' connections serves it.

use super::lane::New;
use super::node::{Guest, LinkNode, Peer};
use super::outgoing::Outgoing;
use super::question::{Awaited, QUESTION_LIMIT, Reply};
use crate::connection::{Connection, Done, Millis, OtherThreads};
use crate::output::Output;
use broker::{Event, Outbox};
use bytes::Bytes;
use listener::Security;
use protocol::link::{
    Choice, Dialled, FrameReader, Greeting, Handshake, Lane, LinkNumber, Present, Progress, Received,
    Refusal, Refused, Small, choose, put_head, put_small, settle,
};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;
use tokio::sync::oneshot;

/// How long a handshake may take, in milliseconds.
const HANDSHAKE: Millis = 5_000;

/// A link that carried so many bytes has something to do; less is what nodes say to each other though no client is busy.
const BUSY: usize = 16 * 1024;

/// With so many bytes of answers to heartbeats waiting nothing more is read: nobody asks so much.
const ANSWERS: usize = 4_096;

/// How long a question may wait for its answer, in milliseconds.
const ANSWER: Millis = 10_000;

/// How a dial ended: the link is used, or why not.
pub(super) type Outcome = Result<(), Refused>;

/// How a question ended: with its answer, or why there is none.
pub(super) type Answered = Result<Bytes, Refused>;

/// One end of a link.
pub(super) struct LinkConnection {
    node: Arc<LinkNode>,
    /// Where the other end is, for the log.
    at: String,
    is_secured: bool,
    outbox: Arc<Outbox>,
    outgoing: Outgoing,
    state: State,
    /// When it was turned last.
    turned: Millis,
    /// Bytes came since then.
    heard: bool,
    /// How many bytes of frames came or left since it counted as busy.
    carried: usize,
    /// See [`super::places`].
    place: u64,
}

enum State {
    Greeting(Box<Introduction>),
    Linked(Linked),
    /// Somebody who has no link asks, or this end does.
    Questioned(Box<Questioned>),
    Over,
}

/// A link that is being made.
struct Introduction {
    handshake: Handshake,
    until: Millis,
    /// What this end has dialled for.
    dialled: Option<Purpose>,
    /// Of the end that was dialled.
    _guest: Option<Guest>,
    /// What TLS says of who has dialled.
    security: Option<Security>,
    /// Something has come.
    spoken: bool,
}

/// What a connection was dialled for, and who waits for how that ends.
enum Purpose {
    /// A link with a peer.
    Link(Arc<Peer>, oneshot::Sender<Outcome>),
    /// The answer to this question.
    Question(Bytes, oneshot::Sender<Answered>),
}

impl Purpose {
    /// It comes to nothing.
    fn fail(self, refused: Refused) {
        // Nobody waits once the node stops.
        match self {
            Self::Link(_, outcome) => drop(outcome.send(Err(refused))),
            Self::Question(_, outcome) => drop(outcome.send(Err(refused))),
        }
    }
}

/// A question on its way.
struct Questioned {
    reader: FrameReader,
    until: Millis,
    end: QuestionEnd,
}

enum QuestionEnd {
    /// This end has asked.
    Asks(Option<oneshot::Sender<Answered>>),
    /// This node is about to ask.
    IsAsked(Box<str>),
    /// What was asked is to be answered.
    Answers(Arc<Awaited>),
}

/// A link that is used.
struct Linked {
    peer: Arc<Peer>,
    lane: Lane,
    epoch: u64,
    reader: FrameReader,
    heard_at: Millis,
    ping_at: Millis,
    /// The number of the last heartbeat, and when it was sent.
    ping: (u64, Instant),
}

impl LinkConnection {
    /// Of a node that was dialled. `at` is where the other end is; `security` what TLS says of it, if there is a session.
    pub fn accepted(node: Arc<LinkNode>, at: String, security: Option<Security>, now: Millis) -> Self {
        let guest = node.guest();
        let greeting = node.greeting(None);
        let mut connection = Self::new(node, at, security.is_some(), now);
        let greeting = match (greeting, &guest) {
            (Ok(greeting), Some(_)) => greeting,
            (Err(why), _) => {
                let at = &connection.at;
                tracing::error!(area = "links", "a connection from {at} is closed: {why}");
                return connection;
            }
            (_, None) => {
                let why = Refusal::Crowded;
                let line = format!("a connection to the port of links was closed: {why}");
                connection.node.tell(&line);
                return connection;
            }
        };
        let binding = security.as_ref().map(|security| &security.binding);
        let handshake = Handshake::listen(greeting, connection.node.secret.clone(), bound(binding));
        connection.state = State::Greeting(Box::new(Introduction {
            handshake,
            until: now + HANDSHAKE,
            dialled: None,
            _guest: guest,
            security,
            spoken: false,
        }));
        connection
    }

    /// Of a node that dials, for this lane of a peer. `outcome` is told how it ends; or dropped, if the connection is.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn dialled(
        node: Arc<LinkNode>,
        (peer, lane): (Arc<Peer>, Lane),
        binding: Option<&[u8; 32]>,
        outcome: oneshot::Sender<Outcome>,
    ) -> Result<impl FnOnce(Millis) -> Box<dyn Connection>, String> {
        let greeting = node.greeting(Some(Dialled {
            lane: Some(lane),
            number: node.next_number(),
            knows: peer.lane(lane).knows(),
        }))?;
        let at = peer.address().to_string();
        let mut connection = Self::new(node, at, binding.is_some(), 0);
        let secret = connection.node.secret.clone();
        let out = connection.outgoing.between();
        let handshake = Handshake::dial(greeting, &peer.name, secret, bound(binding), out);
        Ok(move |now| -> Box<dyn Connection> {
            connection.turned = now;
            connection.state = State::Greeting(Box::new(Introduction {
                handshake,
                until: now + HANDSHAKE,
                dialled: Some(Purpose::Link(peer, outcome)),
                _guest: None,
                security: None,
                spoken: true,
            }));
            Box::new(connection)
        })
    }

    /// Of a node that asks another one, of this name, something; `outcome` is told the answer, or dropped.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn asks(
        node: Arc<LinkNode>,
        name: &str,
        binding: Option<&[u8; 32]>,
        (question, outcome): (Bytes, oneshot::Sender<Answered>),
    ) -> Result<impl FnOnce(Millis) -> Box<dyn Connection> + use<>, String> {
        let greeting = node.greeting(Some(Dialled {
            lane: None,
            number: 0,
            knows: LinkNumber::default(),
        }))?;
        let mut connection = Self::new(node, name.to_owned(), binding.is_some(), 0);
        let secret = connection.node.secret.clone();
        let out = connection.outgoing.between();
        let handshake = Handshake::dial(greeting, name, secret, bound(binding), out);
        Ok(move |now| -> Box<dyn Connection> {
            connection.turned = now;
            connection.state = State::Greeting(Box::new(Introduction {
                handshake,
                until: now + HANDSHAKE,
                dialled: Some(Purpose::Question(question, outcome)),
                _guest: None,
                security: None,
                spoken: true,
            }));
            Box::new(connection)
        })
    }

    fn new(node: Arc<LinkNode>, at: String, is_secured: bool, now: Millis) -> Self {
        Self {
            node,
            at,
            is_secured,
            outbox: Arc::default(),
            outgoing: Outgoing::default(),
            state: State::Over,
            turned: now,
            heard: false,
            carried: 0,
            place: 0,
        }
    }

    /// Takes note of the time.
    fn note(&mut self, now: Millis) {
        let silence = self.node.silence;
        // Its thread, or the whole process, stood still; it would have been turned for a heartbeat otherwise.
        let stood_still = now.saturating_sub(self.turned) > silence / 2;
        self.turned = now;
        let heard = std::mem::take(&mut self.heard);
        match &mut self.state {
            State::Linked(link) if heard => link.heard_at = now,
            // What came meanwhile is not read yet.
            State::Linked(link) if stood_still => {
                link.heard_at = link.heard_at.max(now.saturating_sub(silence / 2));
            }
            _ => {}
        }
    }

    /// Takes bytes of a handshake.
    fn greet(&mut self, bytes: &[u8], now: Millis) -> usize {
        let State::Greeting(introduction) = &mut self.state else {
            return bytes.len();
        };
        introduction.spoken |= !bytes.is_empty();
        let out = self.outgoing.between();
        match introduction.handshake.input(bytes, out) {
            Ok((taken, Progress::Waits)) => taken,
            Ok((taken, Progress::Proven | Progress::Linked)) => {
                if let Err(refused) = self.link(now) {
                    self.refused(refused);
                }
                taken
            }
            Err(refused) => {
                self.refused(refused);
                bytes.len()
            }
        }
    }

    /// Both ends have proven who they are: uses the link, unless another one is used.
    fn link(&mut self, now: Millis) -> Result<(), Refused> {
        let State::Greeting(introduction) = &mut self.state else {
            return Ok(());
        };
        let (handshake, out) = (&mut introduction.handshake, self.outgoing.between());
        // What is said only if the link is used.
        let mut welcome = Vec::new();
        if introduction.dialled.is_none() {
            let security = introduction.security.as_ref();
            let may_be = |peer: &Greeting| self.node.may_be(&peer.name, security);
            if !handshake.peer().is_some_and(may_be) {
                return Err(handshake.refuse(Refusal::Certificate, out));
            }
            handshake
                .welcome(&mut welcome)
                .inspect_err(|_| out.append(&mut welcome))?;
        }
        let asking = handshake
            .peer()
            .filter(|peer| peer.dialled.is_some_and(|it| it.lane.is_none()));
        let asks = match (&mut introduction.dialled, asking) {
            (Some(Purpose::Question(question, _)), _) => {
                let question = std::mem::take(question);
                // It is no longer than a frame may be.
                let _ = put_head(std::slice::from_ref(&question), out);
                out.extend_from_slice(&question);
                true
            }
            (None, Some(peer)) => {
                out.append(&mut welcome);
                let end = QuestionEnd::IsAsked(peer.name.clone());
                self.state = State::Questioned(Questioned::new(end, now));
                return Ok(());
            }
            _ => false,
        };
        if asks {
            if let State::Greeting(introduction) = std::mem::replace(&mut self.state, State::Over)
                && let Some(Purpose::Question(_, outcome)) = introduction.dialled
            {
                let end = QuestionEnd::Asks(Some(outcome));
                self.state = State::Questioned(Questioned::new(end, now));
            }
            return Ok(());
        }
        let used = match (&introduction.dialled, handshake.peer()) {
            (Some(Purpose::Link(peer, _)), Some(greeting)) => Ok((peer.clone(), greeting.clone())),
            (Some(Purpose::Question(..)), _) => Err(Refusal::Rubbish),
            (None, Some(greeting)) => {
                let peer = self.node.peer(&greeting.name).ok_or(Refusal::Stranger);
                peer.map(|peer| (peer, greeting.clone()))
            }
            (_, None) => Err(Refusal::Secret),
        };
        let used = used
            .and_then(|(peer, greeting)| use_link(&self.node, handshake, peer, &greeting, self.is_secured));
        let (peer, lane, epoch) = used.map_err(|why| match introduction.dialled {
            None => handshake.refuse(why, out),
            // The other end is at frames already.
            Some(_) => {
                put_small(Small::Goodbye(why), out);
                Refused::here(why)
            }
        })?;
        out.append(&mut welcome);
        let limit = self.node.limits.of(lane).frame;
        let former = std::mem::replace(
            &mut self.state,
            State::Linked(Linked {
                peer: peer.clone(),
                lane,
                epoch,
                reader: FrameReader::new(limit),
                heard_at: now,
                ping_at: now,
                ping: (0, Instant::now()),
            }),
        );
        if let State::Greeting(introduction) = former
            && let Some(Purpose::Link(_, outcome)) = introduction.dialled
        {
            // Nobody waits once the node stops.
            let _ = outcome.send(Ok(()));
        }
        match lane {
            Lane::Consensus => tracing::info!(area = "links", "node {} is linked, at {}", peer.name, self.at),
            _ => tracing::debug!(
                area = "links",
                "node {} is linked, lane {}",
                peer.name,
                lane.name()
            ),
        }
        Ok(())
    }

    /// There is no link.
    fn refused(&mut self, refused: Refused) {
        let State::Greeting(introduction) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        match introduction.dialled {
            // Who has dialled logs it.
            Some(purpose) => purpose.fail(refused),
            None if refused.why.is_usual() || refused.why == Refusal::Stopping || !introduction.spoken => {
                tracing::debug!(area = "links", "no link with {}: {refused}", self.at);
            }
            None => {
                let said = introduction.handshake.peer();
                let name = said.map_or(String::new(), |peer| format!(", which says it is {}", peer.name));
                let host = self.at.rsplit_once(':').map_or(&*self.at, |(host, _)| host);
                let line = format!("no link with a node at {host}{name}: {refused}");
                self.node.tell_of(&format!("{host} {:?}", refused.why), &line);
            }
        }
    }

    /// Takes bytes of a question, or of the answer to one.
    fn question(&mut self, bytes: &[u8]) -> usize {
        let State::Questioned(questioned) = &mut self.state else {
            return bytes.len();
        };
        let (taken, received) = match questioned.reader.read(bytes) {
            Ok(read) => read,
            Err(fault) => {
                self.end_question(Refused::here(fault.refusal()));
                return bytes.len();
            }
        };
        match (received, &mut questioned.end) {
            (None, _) => {}
            (Some(Received::Goodbye(why)), _) => {
                let refused = Refused {
                    by_peer: true,
                    ..Refused::here(why.unwrap_or(Refusal::Stopping))
                };
                self.end_question(refused);
            }
            (Some(Received::Data(answer)), QuestionEnd::Asks(outcome)) => {
                if let Some(outcome) = outcome.take() {
                    // Nobody waits once the node stops.
                    let _ = outcome.send(Ok(answer));
                }
                self.state = State::Over;
            }
            (Some(Received::Data(question)), QuestionEnd::IsAsked(name)) => {
                let (reply, awaited) = Reply::new();
                let name = std::mem::take(name);
                questioned.end = QuestionEnd::Answers(awaited);
                match self.node.receiver() {
                    Some(receiver) => receiver.asked(&name, question, reply),
                    None => drop(reply),
                }
            }
            (Some(_), _) => self.end_question(Refused::here(Refusal::Rubbish)),
        }
        taken
    }

    /// A question ends without an answer.
    fn end_question(&mut self, refused: Refused) {
        let State::Questioned(questioned) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        if !refused.by_peer {
            put_small(Small::Goodbye(refused.why), self.outgoing.between());
        }
        match questioned.end {
            QuestionEnd::Asks(Some(outcome)) => drop(outcome.send(Err(refused))),
            _ => tracing::debug!(
                area = "links",
                "a question of {} has no answer: {refused}",
                self.at
            ),
        }
    }

    /// The link is over.
    fn lose(&mut self, why: Refusal, by_peer: bool, detail: &str) {
        let State::Linked(link) = std::mem::replace(&mut self.state, State::Over) else {
            return;
        };
        if !by_peer {
            self.outgoing.put(Small::Goodbye(why));
        }
        let refused = Refused {
            why,
            by_peer,
            detail: detail.to_owned(),
        };
        link.lost(
            &refused.to_string(),
            &self.node,
            why.is_usual() || why == Refusal::Stopping,
        );
    }

    /// Takes bytes of frames.
    fn frames(&mut self, bytes: &[u8]) -> usize {
        let State::Linked(link) = &mut self.state else {
            return bytes.len();
        };
        let (mut taken, mut come, mut end) = (0, Vec::<Bytes>::new(), None);
        while end.is_none() {
            match link.reader.read(&bytes[taken..]) {
                Ok((some, received)) => {
                    taken += some;
                    match received {
                        Some(Received::Data(frame)) => come.push(frame),
                        Some(Received::Ping(stamp)) => self.outgoing.put(Small::Pong(stamp)),
                        Some(Received::Pong(stamp)) => link.came_back(stamp),
                        Some(Received::Goodbye(why)) => {
                            end = Some((why.unwrap_or(Refusal::Stopping), true, String::new()))
                        }
                        None => break,
                    }
                }
                Err(fault) => end = Some((fault.refusal(), false, format!("{fault:?}"))),
            }
        }
        if !come.is_empty() {
            self.carried += come.iter().map(Bytes::len).sum::<usize>();
            let receiver = self.node.receiver();
            link.peer.lane(link.lane).deliver(link.epoch, come, &receiver);
        }
        if let Some((why, by_peer, detail)) = end {
            self.lose(why, by_peer, &detail);
            return bytes.len();
        }
        taken
    }
}

/// What a proof has of the TLS session: nothing without one.
fn bound(binding: Option<&[u8; 32]>) -> &[u8] {
    binding.map_or(&[], |binding| binding)
}

/// Uses the link that a handshake has led to from now on.
fn use_link(
    node: &LinkNode,
    handshake: &Handshake,
    peer: Arc<Peer>,
    greeting: &Greeting,
    is_secured: bool,
) -> Result<(Arc<Peer>, Lane, u64), Refusal> {
    let (me, incarnation) = (handshake.me(), greeting.incarnation);
    if peer.is_gone() {
        return Err(Refusal::Stranger);
    }
    if !peer.started(incarnation) {
        return Err(Refusal::Stale);
    }
    let by_peer = greeting.dialled.is_some();
    let dialled = greeting.dialled.or(me.dialled);
    let Some((dialled, lane)) = dialled.and_then(|dialled| Some((dialled, dialled.lane?))) else {
        return Err(Refusal::Rubbish);
    };
    let number = LinkNumber {
        incarnation: if by_peer { incarnation } else { me.incarnation },
        number: dialled.number,
    };
    let new = New {
        present: Present {
            by_peer,
            number,
            peer_incarnation: incarnation,
        },
        epoch: node.next_epoch(),
        version: handshake.version(),
        is_secured,
        clock_ahead_ms: greeting.clock_ms as i64 - me.clock_ms as i64,
    };
    let epoch = new.epoch;
    let chosen = |present: Option<Present>| -> Choice {
        match by_peer {
            true => choose(present, &dialled, incarnation),
            false => settle(present, incarnation, node.name < peer.name),
        }
    };
    peer.lane(lane).take(new, chosen, &node.receiver())?;
    Ok((peer, lane, epoch))
}

impl Questioned {
    fn new(end: QuestionEnd, now: Millis) -> Box<Self> {
        Box::new(Self {
            reader: FrameReader::new(QUESTION_LIMIT),
            until: now + ANSWER,
            end,
        })
    }
}

impl Linked {
    fn came_back(&mut self, stamp: u64) {
        let (last, sent) = self.ping;
        if stamp == last {
            let us = u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX);
            self.peer.lane(self.lane).measured(self.epoch, us);
        }
    }

    /// Tells that it is over, if it was used until now.
    fn lost(&self, why: &str, node: &LinkNode, is_usual: bool) {
        let (name, lane) = (&self.peer.name, self.lane.name());
        let lane_of = self.peer.lane(self.lane);
        let was_used = lane_of.lose(self.epoch, why.to_owned(), &node.receiver());
        match was_used && !is_usual {
            true => node.tell(&format!("the link with node {name}, lane {lane}, is lost: {why}")),
            false => tracing::debug!(
                area = "links",
                "a link with node {name}, lane {lane}, is over: {why}"
            ),
        }
    }
}

impl Connection for LinkConnection {
    fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    fn wants_input(&self, _: &Output) -> bool {
        self.outgoing.waiting_between() < ANSWERS
    }

    fn is_tired(&self) -> bool {
        false
    }

    fn is_giving_back(&self) -> bool {
        false
    }

    fn received(&mut self, _: usize) {
        self.heard = true;
    }

    fn sent(&mut self, _: usize) {}

    /// Who publishes through another node brings a link as much to do.
    fn take_done(&mut self) -> Done {
        if self.carried < BUSY {
            return Done::Nothing;
        }
        self.carried = 0;
        Done::Published
    }

    fn leaves_for(&mut self) -> Option<OtherThreads> {
        match &self.state {
            State::Linked(link) if link.lane == Lane::Work => self.node.places.left_for(&mut self.place),
            _ => None,
        }
    }

    fn input(&mut self, bytes: &[u8], now: Millis, _: &mut Output) -> usize {
        self.note(now);
        let taken = self.greet_or_read(bytes, 0, now);
        match self.state {
            // What stands behind a handshake is of the link that it led to.
            State::Linked(_) | State::Questioned(_) if taken < bytes.len() => {
                self.greet_or_read(bytes, taken, now)
            }
            _ => taken,
        }
    }

    fn frame_length(&self, _: &[u8]) -> Option<usize> {
        None
    }

    fn turn(&mut self, waker: &Waker, now: Millis, out: &mut Output) {
        self.note(now);
        let mut events = Vec::new();
        self.outbox.take(&mut events, waker);
        let stops = events.iter().any(|event| matches!(event, Event::Close(_)));
        match &self.state {
            State::Linked(_) if stops => self.lose(Refusal::Stopping, false, ""),
            State::Linked(link) if link.peer.is_gone() => self.lose(Refusal::Stranger, false, ""),
            State::Linked(link) => {
                let (lane, frames) = (link.peer.lane(link.lane), self.outgoing.frames());
                if !lane.pull(link.epoch, waker, frames) {
                    self.lose(Refusal::Replaced, false, "");
                }
            }
            State::Greeting(_) if stops => self.refuse(Refusal::Stopping),
            State::Questioned(_) if stops => self.end_question(Refused::here(Refusal::Stopping)),
            State::Questioned(questioned) => {
                let awaited = match &questioned.end {
                    QuestionEnd::Answers(awaited) => awaited.look(waker),
                    _ => None,
                };
                match awaited {
                    Some(Some(answer)) => {
                        let out = self.outgoing.between();
                        // It is no longer than a frame may be.
                        let _ = put_head(std::slice::from_ref(&answer), out);
                        out.extend_from_slice(&answer);
                        self.state = State::Over;
                    }
                    Some(None) => self.end_question(Refused::here(Refusal::Stranger)),
                    None => {}
                }
            }
            _ => {}
        }
        if let State::Over = self.state {
            self.outgoing.end(out);
        }
    }

    fn fill(&mut self, out: &mut Output) {
        let written = self.outgoing.fill(out);
        self.carried += written.bytes;
        if let (State::Linked(link), true) = (&self.state, written.frames > 0) {
            let lane = link.peer.lane(link.lane);
            lane.wrote(link.epoch, written.frames, written.bytes, &self.node.receiver());
        }
    }

    fn behind(&self) -> &[u8] {
        self.outgoing.behind()
    }

    fn wrote_behind(&mut self, bytes: usize) {
        self.outgoing.wrote_behind(bytes);
    }

    fn next_tick(&self) -> Option<Millis> {
        match &self.state {
            State::Greeting(introduction) => Some(introduction.until),
            State::Questioned(questioned) => Some(questioned.until),
            State::Linked(link) => Some(link.ping_at.min(link.heard_at + self.node.silence)),
            State::Over => None,
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Output) {
        self.note(now);
        match &mut self.state {
            State::Greeting(introduction) if now >= introduction.until => self.refuse(Refusal::Slow),
            State::Questioned(questioned) if now >= questioned.until => {
                self.end_question(Refused::here(Refusal::Slow));
            }
            State::Linked(link) if now >= link.heard_at + self.node.silence => {
                self.lose(Refusal::Silent, false, "");
                // Nobody takes it.
                out.clear();
            }
            State::Linked(link) if now >= link.ping_at => {
                link.ping_at = now + self.node.silence / 4;
                link.ping = (link.ping.0 + 1, Instant::now());
                self.outgoing.put(Small::Ping(link.ping.0));
            }
            _ => {}
        }
        if let State::Over = self.state {
            self.outgoing.end(out);
        }
    }

    fn hung_up(&mut self, why: &str, _: Millis, out: &mut Output) {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Linked(link) => link.lost(&format!("{} ({why})", Refusal::Broken), &self.node, false),
            State::Greeting(introduction) => {
                self.state = State::Greeting(introduction);
                self.broke(why);
            }
            State::Questioned(questioned) => {
                self.state = State::Questioned(questioned);
                self.end_question(Refused {
                    detail: why.to_owned(),
                    ..Refused::here(Refusal::Broken)
                });
            }
            State::Over => {}
        }
        out.clear();
    }

    fn is_finished(&self) -> bool {
        matches!(self.state, State::Over)
    }

    fn is_over(&self) -> bool {
        self.is_finished()
    }
}

impl LinkConnection {
    fn greet_or_read(&mut self, bytes: &[u8], from: usize, now: Millis) -> usize {
        let rest = &bytes[from..];
        from + match self.state {
            State::Greeting(_) => self.greet(rest, now),
            State::Questioned(_) => self.question(rest),
            _ => self.frames(rest),
        }
    }

    /// Ends a handshake, and tells the other end why.
    fn refuse(&mut self, why: Refusal) {
        if let State::Greeting(introduction) = &mut self.state {
            let refused = introduction.handshake.refuse(why, self.outgoing.between());
            self.refused(refused);
        }
    }

    /// The connection broke during a handshake.
    fn broke(&mut self, why: &str) {
        let detail = why.to_owned();
        self.refused(Refused {
            detail,
            ..Refused::here(Refusal::Broken)
        });
    }
}

impl Drop for LinkConnection {
    /// The threads stop, or the socket could not be served.
    fn drop(&mut self) {
        if let State::Linked(link) = std::mem::replace(&mut self.state, State::Over) {
            link.lost("the connection was dropped", &self.node, true);
        }
    }
}
