//! A session of the broker for the time of one request, or of an answer that goes on: what changes objects does it as a
//! client would, with the asker's permissions.

use crate::access::Asker;
use crate::call::{Call, NO_VHOST};
use crate::refusal::Refusal;
use broker::{
    AlarmReason, Answer, Broker, ChannelId, Event, OpenRefusal, Outbox, QueueQuestion, Session, Ticket,
    Unconfirmed,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// The one channel of the session.
pub const CHANNEL: ChannelId = ChannelId(1);

/// How long the broker may take to make something durable, or to read a message back.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The same where another node has asked, which waits for a second: others who ask wait for this thread.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);

/// A session and what comes back from it.
pub struct ApiSession {
    inner: Arc<Session>,
    outbox: Arc<Outbox>,
    timeout: Duration,
    /// What came back and has not been looked at: several events may come at a time.
    backlog: RefCell<VecDeque<Event>>,
}

impl ApiSession {
    /// Opens the virtual host of the path.
    ///
    /// # Errors
    /// There is none of this name, or the asker has no permissions in it.
    pub fn open(call: &Call<'_>) -> Result<Self, Refusal> {
        let asker = Asker {
            user: call.user.clone(),
            operator: call.operator,
            for_node: call.for_node,
        };
        Self::open_as(&call.api.broker, asker, call.part("vhost"))
    }

    /// Opens a virtual host for somebody. An operator is asked for no permission.
    ///
    /// # Errors
    /// As [`ApiSession::open`].
    pub fn open_as(broker: &Arc<Broker>, asker: Asker, vhost: &str) -> Result<Self, Refusal> {
        let outbox = Arc::new(Outbox::new());
        let connected = match asker.operator {
            true => broker.connect_operator(asker.user, vhost, outbox.clone()),
            false => broker.connect(asker.user, vhost, outbox.clone()),
        };
        let session = connected.map_err(|refusal| match refusal {
            OpenRefusal::NoVhost { .. } => Refusal::Missing(NO_VHOST.into()),
            OpenRefusal::VhostLimit { .. }
            | OpenRefusal::UserLimit { .. }
            | OpenRefusal::NodeLimit { .. } => Refusal::bad_request(refusal.to_string()),
            OpenRefusal::NoAccess { .. } => Refusal::not_authorised("Access refused."),
        })?;
        session.may_wait();
        Ok(Self {
            inner: session,
            outbox,
            timeout: if asker.for_node { NODE_TIMEOUT } else { TIMEOUT },
            backlog: RefCell::default(),
        })
    }

    /// The session of the broker.
    pub fn inner(&self) -> &Arc<Session> {
        &self.inner
    }

    /// Waits until what was promised is durable.
    ///
    /// # Errors
    /// It took too long: the log failed, or the disk hangs.
    pub fn durable(&self, ticket: Option<Ticket>) -> Result<(), Refusal> {
        let Some(awaited) = ticket else {
            return Ok(());
        };
        self.wait(|event| match event {
            Event::Durable { ticket, .. } if ticket == awaited => Some(Ok(())),
            Event::Alarm(Some(failed @ AlarmReason::LogFailed)) => {
                Some(Err(Refusal::Internal(failed.to_string())))
            }
            _ => None,
        })?
    }

    /// Waits for a queue's answer; `None` if the queue cannot be reached.
    ///
    /// # Errors
    /// It took too long.
    pub fn answer(&self, awaited: QueueQuestion) -> Result<Option<Answer>, Refusal> {
        self.wait(|event| match event {
            Event::Answer { question, answer, .. } if question == awaited => Some(answer),
            _ => None,
        })
    }

    /// Waits until queues have answered for all that was published; `told` gets each number, and whether it is safe.
    ///
    /// # Errors
    /// It took too long.
    pub fn await_confirms(
        &self,
        awaited: &mut Unconfirmed,
        mut told: impl FnMut(u64, bool),
    ) -> Result<(), Refusal> {
        while !awaited.is_empty() {
            let (queue, numbers, safe) = self.wait(|event| match event {
                Event::Confirm { queue, numbers, .. } => Some((queue, numbers, true)),
                Event::Reject { queue, numbers, .. } => Some((queue, numbers, false)),
                _ => None,
            })?;
            match safe {
                true => awaited.confirmed(queue, &numbers, |number| told(number, true)),
                false => awaited.rejected(&numbers, |number| told(number, false)),
            }
        }
        Ok(())
    }

    /// Waits for an event of which `wanted` makes something. Others are passed over.
    ///
    /// # Errors
    /// It took too long.
    pub fn wait<T>(&self, mut wanted: impl FnMut(Event) -> Option<T>) -> Result<T, Refusal> {
        let until = Instant::now() + self.timeout;
        // A session that is kept is used from one thread after another.
        let waker: Waker = Arc::new(Unpark(std::thread::current())).into();
        let mut events = Vec::new();
        loop {
            let mut backlog = self.backlog.borrow_mut();
            while let Some(event) = backlog.pop_front() {
                if let Some(found) = wanted(event) {
                    return Ok(found);
                }
            }
            self.outbox.take(&mut events, &waker);
            backlog.extend(events.drain(..));
            if !backlog.is_empty() {
                continue;
            }
            drop(backlog);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Refusal::Internal("timeout".into()));
            }
            std::thread::park_timeout(left);
        }
    }
}

impl Drop for ApiSession {
    fn drop(&mut self) {
        self.inner.close();
    }
}

/// Wakes the thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
