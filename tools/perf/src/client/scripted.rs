//! A broker for tests: a thread that speaks the server's side on a loopback socket, as a script says.

use crate::plan::{Connecting, Plan};
use crate::subcommand::Request;
use crate::uri::Uri;
use model::table::Table;
use protocol::amqp::handshake::PROTOCOL_HEADER;
use protocol::amqp::method::*;
use protocol::amqp::{Arguments, LongStr, Method, Part, RawTable, encode, next_frame};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

/// What a fake broker offers and says of itself.
pub struct Offer {
    pub version: &'static str,
    pub mechanisms: &'static str,
    pub tune: ConnectionTune,
}

impl Default for Offer {
    fn default() -> Self {
        let tune = ConnectionTune {
            channel_max: 2047,
            frame_max: 131_072,
            heartbeat: 60,
        };
        Self {
            version: "4.2.1",
            mechanisms: "PLAIN AMQPLAIN EXTERNAL",
            tune,
        }
    }
}

/// What a client showed of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    pub properties: Table,
    pub mechanism: String,
    pub response: Vec<u8>,
    pub tune: ConnectionTuneOk,
    pub vhost: String,
}

/// One client, seen from the broker.
pub struct Peer<S> {
    pub socket: S,
    bytes: Vec<u8>,
}

/// Starts a broker for one client; the thread gives what the script gives.
pub fn start<T: Send + 'static>(
    script: impl FnOnce(Peer<TcpStream>) -> T + Send + 'static,
) -> (Uri, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = Uri::parse(&format!("amqp://{}", listener.local_addr().unwrap())).unwrap();
    let thread = thread::spawn(move || script(Peer::new(listener.accept().unwrap().0)));
    (uri, thread)
}

/// PerfTest's defaults.
pub fn connecting() -> Connecting {
    Connecting {
        frame_max: 0,
        heartbeat_s: 0,
        send_buffer: None,
        receive_buffer: None,
        no_delay: true,
        verify_peer: false,
        server_names: Vec::new(),
        sasl_external: false,
        recovery: None,
        startup_timeout: None,
        servers_up_limit: None,
        oauth2: None,
    }
}

impl<S: Read + Write> Peer<S> {
    pub fn new(socket: S) -> Self {
        Self {
            socket,
            bytes: Vec::new(),
        }
    }

    pub fn send<'a, A: Arguments<'a>>(&mut self, channel: u16, arguments: &A) {
        let mut frame = Vec::new();
        encode::method(&mut frame, channel, arguments);
        self.socket.write_all(&frame).unwrap();
    }

    fn fill(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let read = self.socket.read(&mut buffer).unwrap_or(0);
        self.bytes.extend_from_slice(&buffer[..read]);
        read > 0
    }

    /// Reads the protocol header.
    pub fn header(&mut self) {
        while self.bytes.len() < PROTOCOL_HEADER.len() && self.fill() {}
        assert_eq!(self.bytes[..8], PROTOCOL_HEADER);
        self.bytes.drain(..8);
    }

    /// Shows the next method, with its channel; `None` when the client has hung up.
    pub fn next<T>(&mut self, look: impl FnOnce(u16, &Method<'_>) -> T) -> Option<T> {
        loop {
            let Some((frame, used)) = next_frame(&self.bytes, 0).unwrap() else {
                if self.fill() {
                    continue;
                }
                return None;
            };
            let seen = match frame.part().unwrap() {
                Part::Method(id, fields) => Some(look(frame.channel, &Method::decode(id, fields).unwrap())),
                _ => {
                    self.bytes.drain(..used);
                    continue;
                }
            };
            self.bytes.drain(..used);
            return seen;
        }
    }

    /// Header and start.
    pub fn greet(&mut self, offer: &Offer) {
        self.header();
        let mut properties = Vec::new();
        Table::new()
            .with("version", offer.version)
            .encode(&mut properties);
        self.send(
            0,
            &ConnectionStart {
                version_minor: 9,
                server_properties: RawTable(&properties),
                mechanisms: LongStr(offer.mechanisms.as_bytes()),
                locales: LongStr(b"en_US"),
                ..Default::default()
            },
        );
    }

    /// Header, start, tune, up to the client's wish for a virtual host, which is not answered.
    pub fn until_vhost(&mut self, offer: &Offer) -> Seen {
        let mut seen = Seen::default();
        self.greet(offer);
        self.next(|_, method| {
            let Method::ConnectionStartOk(ok) = method else {
                panic!("{method:?}")
            };
            seen.properties = ok.client_properties.decode(&Default::default()).unwrap();
            seen.mechanism = ok.mechanism.to_owned();
            seen.response = ok.response.0.to_vec();
        });
        self.send(0, &offer.tune);
        self.next(|_, method| {
            let Method::ConnectionTuneOk(ok) = method else {
                panic!("{method:?}")
            };
            seen.tune = *ok;
        });
        self.next(|_, method| {
            let Method::ConnectionOpen(open) = method else {
                panic!("{method:?}")
            };
            seen.vhost = open.virtual_host.to_owned();
        });
        seen
    }

    /// A whole login.
    pub fn log_in(&mut self, offer: &Offer) -> Seen {
        let seen = self.until_vhost(offer);
        self.send(0, &ConnectionOpenOk {});
        seen
    }

    /// Answers everything with success until the client is gone, but what `refuse` gives a code and a text for. Gives what
    /// was asked, a line each.
    pub fn serve(&mut self, refuse: impl Fn(&Method<'_>) -> Option<(u16, String)>) -> Vec<String> {
        let mut lines = Vec::new();
        let mut made_up = 0;
        loop {
            let mut answer = Vec::new();
            let more = self.next(|channel, method| {
                lines.extend(line(method));
                match refuse(method) {
                    Some((code, text)) => {
                        let id = method.id();
                        let close = ChannelClose {
                            reply_code: code,
                            reply_text: &text,
                            class_id: id.class,
                            method_id: id.method,
                        };
                        encode::method(&mut answer, channel, &close);
                    }
                    None => reply(&mut answer, channel, method, &mut made_up),
                }
            });
            if more.is_none() || self.socket.write_all(&answer).is_err() {
                return lines;
            }
        }
    }
}

fn reply(out: &mut Vec<u8>, channel: u16, method: &Method<'_>, made_up: &mut u32) {
    let name;
    let reply: Method<'_> = match method {
        Method::ChannelOpen(_) => ChannelOpenOk {}.into(),
        Method::ChannelClose(_) => ChannelCloseOk {}.into(),
        Method::ConnectionClose(_) => ConnectionCloseOk {}.into(),
        Method::ExchangeDeclare(_) => ExchangeDeclareOk {}.into(),
        Method::ExchangeDelete(_) => ExchangeDeleteOk {}.into(),
        Method::QueueBind(_) => QueueBindOk {}.into(),
        Method::QueueUnbind(_) => QueueUnbindOk {}.into(),
        Method::QueueDelete(_) => QueueDeleteOk { message_count: 0 }.into(),
        Method::QueueDeclare(declare) => {
            name = if declare.queue.is_empty() {
                *made_up += 1;
                format!("amq.gen-{made_up}")
            } else {
                declare.queue.to_owned()
            };
            let ok = QueueDeclareOk {
                queue: &name,
                message_count: 3,
                consumer_count: 2,
            };
            ok.into()
        }
        Method::BasicQos(_) => BasicQosOk {}.into(),
        Method::ConfirmSelect(_) => ConfirmSelectOk {}.into(),
        Method::BasicConsume(_) => BasicConsumeOk { consumer_tag: "tag" }.into(),
        _ => return,
    };
    encode::any_method(out, channel, &reply);
}

/// What a method asks for; `None` for what every client says.
fn line(method: &Method<'_>) -> Option<String> {
    let flags = |all: &[(bool, &str)]| {
        let on: Vec<&str> = all.iter().filter(|it| it.0).map(|it| it.1).collect();
        on.join(" ")
    };
    let text = match method {
        Method::ExchangeDeclare(it) => {
            let flags = flags(&[
                (it.passive, "passive"),
                (it.durable, "durable"),
                (it.auto_delete, "auto-delete"),
            ]);
            format!("exchange {} {} {flags}", it.exchange, it.kind)
        }
        Method::ExchangeDelete(it) => format!("delete exchange {}", it.exchange),
        Method::QueueDeclare(it) => {
            let flags = flags(&[
                (it.passive, "passive"),
                (it.durable, "durable"),
                (it.exclusive, "exclusive"),
                (it.auto_delete, "auto-delete"),
            ]);
            format!("queue '{}' {flags}", it.queue)
        }
        Method::QueueBind(it) => format!("bind {} to {} by {}", it.queue, it.exchange, it.routing_key),
        Method::QueueUnbind(it) => format!("unbind {} from {} by {}", it.queue, it.exchange, it.routing_key),
        Method::QueueDelete(it) => format!("delete queue {}", it.queue),
        Method::ChannelOpen(_) => "channel".to_owned(),
        _ => return None,
    };
    Some(text.trim_end().to_owned())
}

/// The plan of a command line.
pub fn plan(line: &str) -> Plan {
    let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match crate::cli::plan(&arguments, &|_| None) {
        Ok(Request::Run(plan)) => *plan,
        other => panic!("{line}: {other:?}"),
    }
}
