//! One connection that calls methods and waits for their answers.

use super::connect;
use super::inbox::{Event, Inbox};
use super::login;
use super::refusal;
use super::transport::Transport;
use crate::failure::Failure;
use crate::plan::Connecting;
use crate::uri::Uri;
use model::table::Table;
use protocol::amqp::method::{
    ChannelClose, ChannelCloseOk, ChannelFlowOk, ChannelOpen, ConnectionClose, ConnectionCloseOk,
};
use protocol::amqp::{Arguments, Method, encode};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// How long the broker may take for an answer. PerfTest waits for ten minutes; nobody sits before a silent tool that long.
const ANSWER: Duration = Duration::from_secs(60);
/// How long the broker may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// What both sides keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// The largest frame in bytes, its framing included; 0: no limit.
    pub frame_max: u32,
    /// The highest channel number; 0: no limit.
    pub channel_max: u16,
    /// Seconds; 0: no heartbeats. A client that is at rest sends none, so the broker may close it then.
    pub heartbeat_s: u16,
}

/// A channel, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Channel {
    Open,
    /// The broker closed it while nobody waited for an answer on it; the next call is told why.
    Closed(Failure),
}

/// See the module.
pub struct Client {
    transport: Transport,
    inbox: Inbox,
    agreed: Agreed,
    server: Table,
    /// Host and port, for messages.
    place: String,
    channels: BTreeMap<u16, Channel>,
    /// Why the broker takes no messages for now, if it has said so.
    blocked: Option<String>,
}

impl Client {
    /// Connects, logs in and opens the virtual host. `name` is the connection's name in the broker's lists, `id` the client
    /// property of that name; a `token` takes the place of user and password, as PerfTest has it.
    ///
    /// # Errors
    /// [`Failure::Connect`], which says what is wrong and what to do about it.
    pub fn open(
        uri: &Uri,
        how: &Connecting,
        name: &str,
        id: &str,
        token: Option<&str>,
    ) -> Result<Self, Failure> {
        let transport = connect::connect(uri, how)?;
        login::open(transport, uri, how, name, id, token)
    }

    pub(super) fn logged_in(
        transport: Transport,
        mut inbox: Inbox,
        agreed: Agreed,
        server: Table,
        place: String,
    ) -> Self {
        inbox.frame_max = agreed.frame_max;
        Self {
            transport,
            inbox,
            agreed,
            server,
            place,
            channels: BTreeMap::new(),
            blocked: None,
        }
    }

    /// What the broker says of itself.
    pub fn server_properties(&self) -> &Table {
        &self.server
    }

    /// Major and minor number of the broker's version; `None` if it does not look like one.
    pub fn server_version(&self) -> Option<(u32, u32)> {
        let mut parts = self.server.get("version")?.as_str()?.split(['.', '-', '+', '~']);
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    /// What both sides keep to.
    pub fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// True if the channel was opened and, as far as we know, is open still.
    pub fn is_open(&self, channel: u16) -> bool {
        self.channels.get(&channel) == Some(&Channel::Open)
    }

    /// Opens a channel; one that the broker has closed may be opened again.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the broker has no channels of this number; as [`Self::call`].
    pub fn open_channel(&mut self, channel: u16) -> Result<(), Failure> {
        let most = self.agreed.channel_max;
        if most != 0 && channel > most {
            let text = format!(
                "the broker at {} opens {most} channels on a connection at most: use more connections with fewer channels",
                self.place
            );
            return Err(Failure::Usage(text));
        }
        self.channels.remove(&channel);
        self.call(channel, &ChannelOpen {}, |method| {
            matches!(method, Method::ChannelOpenOk(_)).then_some(())
        })?;
        self.channels.insert(channel, Channel::Open);
        Ok(())
    }

    /// Closes a channel.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn close_channel(&mut self, channel: u16) -> Result<(), Failure> {
        let goodbye = ChannelClose {
            reply_code: 200,
            reply_text: "",
            class_id: 0,
            method_id: 0,
        };
        let closed = self.call(channel, &goodbye, |method| {
            matches!(method, Method::ChannelCloseOk(_)).then_some(())
        });
        self.channels.remove(&channel);
        closed
    }

    /// Says goodbye; a broker that does not answer is left all the same.
    pub fn close(mut self) {
        let goodbye = ConnectionClose {
            reply_code: 200,
            reply_text: "Closed by leveret perf",
            class_id: 0,
            method_id: 0,
        };
        let mut frame = Vec::new();
        encode::method(&mut frame, 0, &goodbye);
        if self.write(&frame).is_ok() {
            let deadline = Instant::now() + GOODBYE;
            let answered = |method: &Method<'_>| matches!(method, Method::ConnectionCloseOk(_)).then_some(());
            // Whatever comes instead, the connection is over.
            let _ = self.wait(0, deadline, answered);
        }
    }

    /// Asks something on a channel and waits for the answer that `pick` picks. Messages that come in between are dropped.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the broker closes the channel or the connection over it; [`Failure::Lost`] if the connection
    /// breaks or the broker does not answer within a minute.
    pub fn call<'a, A: Arguments<'a>, T>(
        &mut self,
        channel: u16,
        arguments: &A,
        pick: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        if let Some(Channel::Closed(_)) = self.channels.get(&channel)
            && let Some(Channel::Closed(why)) = self.channels.remove(&channel)
        {
            return Err(why);
        }
        let mut frame = Vec::new();
        encode::method(&mut frame, channel, arguments);
        self.write(&frame)?;
        self.answer(channel, A::NAME, pick)
    }

    /// Waits for the answer that `pick` picks, to a `method` that was written before.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn answer<T>(
        &mut self,
        channel: u16,
        method: &str,
        pick: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<T, Failure> {
        match self.wait(channel, Instant::now() + ANSWER, pick)? {
            Some(answer) => Ok(answer),
            None => Err(self.silent(method)),
        }
    }

    /// Waits for a method that `pick` picks, until `deadline`; `None` if it did not come.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn wait<T>(
        &mut self,
        channel: u16,
        deadline: Instant,
        mut pick: impl FnMut(&Method<'_>) -> Option<T>,
    ) -> Result<Option<T>, Failure> {
        loop {
            while let Some(event) = self.inbox.next(channel, &mut pick, &self.place)? {
                if let Some(picked) = self.take(event, channel)? {
                    return Ok(Some(picked));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.fill(left)?;
        }
    }

    /// Acts on what the broker said unasked.
    fn take<T>(&mut self, event: Event<T>, waiting: u16) -> Result<Option<T>, Failure> {
        match event {
            Event::Picked(picked) => return Ok(Some(picked)),
            Event::Passed => {}
            Event::Blocked(why) => self.blocked = why,
            Event::Flow(channel, active) => self.send(channel, &ChannelFlowOk { active })?,
            Event::ChannelClosed(channel, code, text, cause) => {
                self.send(channel, &ChannelCloseOk {})?;
                let failure = Failure::Refused {
                    code,
                    text: refusal::on_channel(code, &text, cause),
                };
                if channel == waiting {
                    self.channels.remove(&channel);
                    return Err(failure);
                }
                self.channels.insert(channel, Channel::Closed(failure));
            }
            Event::ConnectionClosed(code, text, cause) => {
                // It waits for this; whether it comes through makes no difference to us.
                let _ = self.send(0, &ConnectionCloseOk {});
                self.channels.clear();
                return Err(Failure::Refused {
                    code,
                    text: refusal::on_channel(code, &text, cause),
                });
            }
        }
        Ok(None)
    }

    fn send<'a, A: Arguments<'a>>(&mut self, channel: u16, arguments: &A) -> Result<(), Failure> {
        let mut frame = Vec::new();
        encode::method(&mut frame, channel, arguments);
        self.write(&frame)
    }

    /// Writes frames, all of them.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the connection is broken or the broker does not read; with the broker's reason, if it gave one.
    pub fn write(&mut self, frames: &[u8]) -> Result<(), Failure> {
        let Err(error) = connect::write_all(&mut self.transport, frames) else {
            return Ok(());
        };
        let place = &self.place;
        let failure = match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Lost(format!(
                "the broker at {place} does not read what it is sent: it may be overloaded or stopped"
            )),
            _ => Failure::Lost(format!("the connection to the broker at {place} broke: {error}")),
        };
        // A close that it sent before it hung up says more than the system's error.
        while let Ok(Some(event)) = self.inbox.next(0, &mut |_| None::<()>, &self.place) {
            if let Event::ConnectionClosed(code, text, cause) = event {
                return Err(Failure::Refused {
                    code,
                    text: refusal::on_channel(code, &text, cause),
                });
            }
        }
        Err(failure)
    }

    fn fill(&mut self, timeout: Duration) -> Result<(), Failure> {
        match self.inbox.fill(&mut self.transport, timeout) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Lost(format!(
                "the broker at {} closed the connection without a reason: its log may tell more",
                self.place
            ))),
            Err(error) if connect::is_timeout(&error) => Ok(()),
            Err(error) => Err(Failure::Lost(format!(
                "the connection to the broker at {} broke: {error}",
                self.place
            ))),
        }
    }

    /// What a broker that does not answer is told of with.
    pub(super) fn silent(&self, method: &str) -> Failure {
        let why = match &self.blocked {
            Some(reason) => format!("it has blocked publishers ({reason})"),
            None => "it may be overloaded or stopped".to_owned(),
        };
        let (place, waited) = (&self.place, ANSWER.as_secs());
        Failure::Lost(format!(
            "the broker at {place} did not answer {method} within {waited} s: {why}"
        ))
    }

    /// Waits as long as for any answer.
    pub(super) fn answer_deadline() -> Instant {
        Instant::now() + ANSWER
    }

    /// Gives the connection to somebody who does not block: the transport, what was agreed, and what was read and not used.
    ///
    /// # Errors
    /// [`Failure::Lost`] if the system does not let the socket be changed.
    pub fn hand_over(self) -> Result<(Transport, Agreed, Vec<u8>), Failure> {
        self.transport
            .set_nonblocking(true)
            .map_err(|error| Failure::Lost(format!("a socket can't be made non-blocking: {error}")))?;
        Ok((self.transport, self.agreed, self.inbox.into_unread()))
    }
}
