//! Dialling: one task for each lane of each peer, which waits while there is a link and otherwise makes one.

use super::connection::{Answered, LinkConnection, Outcome};
use super::node::{LinkNode, Peer};
use crate::threads::Acceptor;
use aws_lc_rs::rand;
use bytes::Bytes;
use listener::{Parked, Socket, Stream, Tls};
use protocol::link::{Lane, Refusal};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

/// How long it may take until a peer's system has answered.
const CONNECT: Duration = Duration::from_secs(2);

/// The first pause after a link was lost or could not be made, and the longest, in milliseconds. Each is at least half of
/// what it may be, by chance.
const FIRST_PAUSE: u64 = 40;
const LONGEST_PAUSE: u64 = 1_000;

/// The longest pause when an operator has to do something first, in milliseconds.
const LONG_PAUSE: u64 = 5_000;

/// After a link that was used for so long the first pause is short again.
const STEADY: Duration = Duration::from_secs(5);

/// What dials.
#[derive(Clone)]
pub(super) struct Dialler {
    pub node: Arc<LinkNode>,
    pub acceptor: Acceptor,
    pub tls: Option<Arc<Tls>>,
}

/// Pauses between attempts.
#[derive(Debug, Default)]
struct Pauses {
    last_ms: u64,
}

impl Pauses {
    /// The next pause, which a random number shortens.
    fn next(&mut self, needs_operator: bool, random: u64) -> Duration {
        let longest = match needs_operator {
            true => LONG_PAUSE,
            false => LONGEST_PAUSE,
        };
        self.last_ms = (2 * self.last_ms).clamp(FIRST_PAUSE, longest);
        Duration::from_millis(self.last_ms - random % (self.last_ms / 2))
    }
}

/// Why an attempt came to nothing.
struct Failed {
    why: String,
    needs_operator: bool,
    /// It is no trouble: there is another link.
    is_usual: bool,
}

impl Failed {
    fn with(what: &str, error: &dyn std::fmt::Display) -> Self {
        Self {
            why: format!("{what}: {error}"),
            needs_operator: false,
            is_usual: false,
        }
    }
}

impl Dialler {
    /// Dials a peer that is new, for as long as it is one.
    pub fn keep(&self, peer: &Arc<Peer>) {
        for lane in Lane::ALL {
            let (dialler, peer) = (self.clone(), peer.clone());
            self.acceptor
                .run(async move { dialler.keep_lane(&peer, lane).await });
        }
    }

    async fn keep_lane(&self, peer: &Arc<Peer>, lane: Lane) {
        let mut pauses = Pauses::default();
        while !peer.is_gone() {
            let failed = match self.attempt(peer, lane).await {
                Ok(()) => {
                    let since = Instant::now();
                    peer.lane(lane).empty().await;
                    // What breaks a link as soon as it is made would otherwise do so all the time.
                    if since.elapsed() >= STEADY {
                        pauses = Pauses::default();
                    }
                    None
                }
                Err(failed) => Some(failed),
            };
            let needs_operator = failed.as_ref().is_some_and(|failed| failed.needs_operator);
            if let Some(Failed {
                why, is_usual: false, ..
            }) = failed
            {
                let (name, at) = (&peer.name, peer.address());
                self.node
                    .tell(&format!("no link with node {name} at {at}: {why}"));
                peer.lane(lane).failed(why);
            }
            sleep(pauses.next(needs_operator, random())).await;
            peer.lane(lane).empty().await;
        }
    }

    /// Connects to the node of this name, with TLS if links have that.
    async fn socket(
        &self,
        name: &str,
        (host, port): (&str, u16),
    ) -> Result<(Socket<Parked>, Option<[u8; 32]>), Failed> {
        let stream = match timeout(CONNECT, connect(host, port)).await {
            Ok(connected) => connected.map_err(|error| Failed::with("it cannot be connected to", &error))?,
            Err(_) => return Err(Failed::with("it cannot be connected to", &"nobody answers")),
        };
        let secured = match &self.tls {
            None => Ok((Socket::Plain(Stream::Tcp(stream)), None)),
            Some(tls) => tls
                .connect(stream, host)
                .await
                .map(|(socket, security)| (socket, Some(security))),
        };
        let (socket, security) = secured.map_err(|error| Failed::with("it cannot be spoken with", &error))?;
        if !self.node.may_be(name, security.as_ref()) {
            return Err(Failed {
                why: Refusal::Certificate.to_string(),
                needs_operator: true,
                is_usual: false,
            });
        }
        let parked = socket.into_std();
        let socket = parked.map_err(|error| Failed::with("the socket cannot be used", &error))?;
        Ok((socket, security.map(|security| security.binding)))
    }

    /// Asks a node something that there is no link with, and says what it answers, or why it does not.
    pub async fn ask(&self, name: &str, at: (&str, u16), question: Bytes) -> Result<Bytes, String> {
        let (socket, binding) = self.socket(name, at).await.map_err(|failed| failed.why)?;
        let (outcome, told) = oneshot::channel::<Answered>();
        let asks = LinkConnection::asks(self.node.clone(), name, binding.as_ref(), (question, outcome))?;
        self.acceptor.begin(socket, asks);
        match told.await {
            Ok(answered) => answered.map_err(|refused| refused.to_string()),
            Err(_) => Err("the connection was dropped".to_owned()),
        }
    }

    /// Makes a link.
    async fn attempt(&self, peer: &Arc<Peer>, lane: Lane) -> Result<(), Failed> {
        let at = peer.address();
        let (socket, binding) = self.socket(&peer.name, (&at.host, at.port)).await?;
        let (outcome, told) = oneshot::channel::<Outcome>();
        let connection =
            LinkConnection::dialled(self.node.clone(), (peer.clone(), lane), binding.as_ref(), outcome);
        let connection = connection.map_err(|why| Failed::with("it cannot be dialled", &why))?;
        self.acceptor.begin(socket, connection);
        match told.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(refused)) => Err(Failed {
                why: refused.to_string(),
                needs_operator: refused.why.needs_operator(),
                is_usual: refused.why.is_usual(),
            }),
            Err(_) => Err(Failed::with(
                "it cannot be dialled",
                &"the connection was dropped",
            )),
        }
    }
}

async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// A random number, or 0 if the system has none just now: a pause is not shortened then.
fn random() -> u64 {
    let mut bytes = [0; 8];
    match rand::fill(&mut bytes) {
        Ok(()) => u64::from_le_bytes(bytes),
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_are_never_shorter_than_half() {
        let mut pauses = Pauses::default();
        let mut whole = |needs_operator, random| pauses.next(needs_operator, random).as_millis();
        let grown: Vec<_> = (0..7).map(|_| whole(false, 0)).collect();
        assert_eq!(grown, [40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(whole(false, 499), 501);
        let grown: Vec<_> = (0..4).map(|_| whole(true, 0)).collect();
        assert_eq!(grown, [2000, 4000, 5000, 5000]);
        assert_eq!(whole(false, 0), 1000);
    }
}
