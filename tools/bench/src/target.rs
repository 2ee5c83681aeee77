//! A broker to measure: its name, its URI and its process.

use crate::listener;
use std::net::{TcpStream, ToSocketAddrs};
use std::process::Command;
use std::time::Duration;

/// A broker on the same machine or the same wire answers in milliseconds.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The schemes of AMQP, and their ports.
const AMQP: [(&str, u16); 2] = [("amqp", 5672), ("amqps", 5671)];
/// The same of the stream protocol.
const STREAM: [(&str, u16); 2] = [("rabbitmq-stream", 5552), ("rabbitmq-stream+tls", 5551)];
/// So much lower than AMQP's is the stream protocol's port expected.
const BELOW_AMQP: u16 = 120;

/// `NAME=URI[,pid=PID]`, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetSpec {
    pub name: String,
    /// With the password.
    pub uri: String,
    pub pid: PidSpec,
    /// The node of a cluster on which queues are declared, if it is not the one that loads connect to; with the password.
    pub declare: Option<String>,
    /// Where it speaks the stream protocol, if it is not expected beside AMQP; with the password.
    pub stream: Option<String>,
    /// Where its management API is, if it is not expected beside AMQP; with the password.
    pub http: Option<String>,
    pub host: String,
    pub port: u16,
}

/// Where a target's process id comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PidSpec {
    /// The process that listens on the URI's port, if the host is this machine.
    Listener,
    Fixed(u32),
    /// A command that prints the id, or those of all nodes, so that a broker may be started anew meanwhile.
    Command(String),
}

impl TargetSpec {
    /// Reads `NAME=URI[,declare=URI][,stream=URI][,http=URI][,pid=PID|,pid=COMMAND]`; a command may have commas in it.
    ///
    /// # Errors
    /// A sentence that says what is wrong and how it is written right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let form = "write NAME=URI or NAME=URI,pid=PID, such as leveret=amqp://localhost:5672";
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} has no name: {form}"))?;
        let name = name.trim();
        if name.is_empty() || name.contains("://") {
            return Err(format!("{text:?} has no name: {form}"));
        }
        let (mut uri, pid) = match rest.split_once(",pid=") {
            None => (rest, PidSpec::Listener),
            Some((uri, pid)) => (uri, PidSpec::parse(pid)?),
        };
        let (mut declare, mut stream, mut http) = (None, None, None);
        while let Some((before, key, value)) = last_key(uri) {
            let place = match key {
                "declare" => &mut declare,
                "stream" => &mut stream,
                _ => &mut http,
            };
            if place.replace(value.to_owned()).is_some() {
                return Err(format!("{name} has {key}= twice; {form}"));
            }
            uri = before;
        }
        let place = |uri: &str, schemes| {
            address(uri, schemes).map_err(|e| format!("{}: {e}; {form}", without_password(uri)))
        };
        if let Some(declare) = &declare {
            place(declare, &AMQP)?;
        }
        if let Some(stream) = &stream {
            place(stream, &STREAM)?;
        }
        let (host, port) = place(uri, &AMQP)?;
        Ok(Self {
            name: name.to_owned(),
            uri: uri.to_owned(),
            pid,
            declare,
            stream,
            http,
            host,
            port,
        })
    }

    /// The URI for people.
    pub fn uri_shown(&self) -> String {
        without_password(&self.uri)
    }

    /// Whether the URI has a password that must not be written to a file. The well-known `guest` is no secret.
    pub fn has_secret(&self) -> bool {
        self.passwords().any(|password| password != "guest")
    }

    fn passwords(&self) -> impl Iterator<Item = &str> {
        let uris = [
            Some(self.uri.as_str()),
            self.declare.as_deref(),
            self.stream.as_deref(),
            self.http.as_deref(),
        ];
        uris.into_iter().flatten().filter_map(password)
    }

    /// A text of somebody else's, without our password in it.
    pub fn hide_secret(&self, text: &str) -> String {
        let secrets = self.passwords().filter(|it| !["", "guest"].contains(it));
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }

    /// Whether somebody accepts connections there.
    ///
    /// # Errors
    /// A line that names the target and says what to do.
    pub fn reach(&self) -> Result<(), String> {
        connect(&self.host, self.port).map_err(|why| {
            format!(
                "target {} is not reachable at {}:{} ({why}); start it, or correct its URI",
                self.name, self.host, self.port
            )
        })
    }

    /// Whether somebody accepts connections of the stream protocol.
    ///
    /// # Errors
    /// A line that says where it was expected and what to do.
    pub fn reach_streams(&self) -> Result<(), String> {
        let (host, port) = address(&self.stream_uri(), &STREAM)?;
        connect(&host, port).map_err(|why| {
            format!(
                "nobody listens for the stream protocol at {host}:{port} ({why}); switch it on, or add ,stream=URI to the target"
            )
        })
    }

    /// Where the stream protocol is spoken, with the password: as it was given, or with AMQP's login on the port that is 120
    /// lower, as 5552 is than 5672 and 5551 than 5671.
    pub fn stream_uri(&self) -> String {
        if let Some(given) = &self.stream {
            return given.clone();
        }
        let (scheme, rest) = self.uri.split_once("://").unwrap_or_default();
        let scheme = if scheme == "amqps" {
            "rabbitmq-stream+tls"
        } else {
            "rabbitmq-stream"
        };
        let rest = rest.split('?').next().unwrap_or_default();
        let (authority, vhost) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let login = authority
            .rfind('@')
            .and_then(|at| authority.get(..=at))
            .unwrap_or_default();
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let port = self.port.saturating_sub(BELOW_AMQP);
        format!("{scheme}://{login}{host}:{port}{vhost}")
    }

    /// The broker's process, or those of all nodes; none if it runs on another machine and nothing was said about it.
    ///
    /// # Errors
    /// A line that says why it can't be told.
    pub fn find_pids(&self) -> Result<Vec<u32>, String> {
        match &self.pid {
            PidSpec::Fixed(pid) => Ok(vec![*pid]),
            PidSpec::Command(command) => pids_from(command),
            PidSpec::Listener if is_here(&self.host) => Ok(vec![listener::listening(self.port)?]),
            PidSpec::Listener => Ok(Vec::new()),
        }
    }
}

impl PidSpec {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("pid= needs a process id, or a command that prints it".to_owned());
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            let pid = text.parse().map_err(|_| format!("{text} is not a process id"))?;
            return Ok(Self::Fixed(pid));
        }
        Ok(Self::Command(text.to_owned()))
    }
}

fn pids_from(command: &str) -> Result<Vec<u32>, String> {
    let done = Command::new("sh")
        .args(["-c", command])
        .output()
        .map_err(|e| format!("`{command}`: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let pid = |word: &str| {
        let expected = || format!("`{command}` printed {word:?} where a process id was expected");
        word.parse().map_err(|_| expected())
    };
    let pids: Vec<u32> = text.split_ascii_whitespace().map(pid).collect::<Result<_, _>>()?;
    match pids.is_empty() {
        true => Err(format!("`{command}` printed no process id")),
        false => Ok(pids),
    }
}

/// `,KEY=URI` at the end of a text, and what stands before it.
fn last_key(text: &str) -> Option<(&str, &'static str, &str)> {
    let found = ["declare", "stream", "http"]
        .into_iter()
        .filter_map(|key| Some((text.rfind(&format!(",{key}="))?, key)));
    let (at, key) = found.max()?;
    let value = text.get(at + key.len() + 2..)?;
    Some((text.get(..at)?, key, value))
}

/// Sees whether somebody accepts connections; else answers why not.
fn connect(host: &str, port: u16) -> Result<(), String> {
    let addresses = (host, port).to_socket_addrs().map_err(|e| e.to_string())?;
    let mut last = "the name has no address".to_owned();
    for address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(_) => return Ok(()),
            Err(e) => last = e.to_string(),
        }
    }
    Err(last)
}

/// Host and port of a URI of one of two schemes, each with its usual port.
fn address(uri: &str, schemes: &[(&str, u16); 2]) -> Result<(String, u16), String> {
    let (scheme, rest) = uri.split_once("://").ok_or("this is not a URI")?;
    let Some((_, default_port)) = schemes.iter().find(|(name, _)| *name == scheme) else {
        let [(plain, _), (over_tls, _)] = schemes;
        return Err(format!("{scheme} is neither {plain} nor {over_tls}"));
    };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let (host, port) = split_port(place);
    let port = match port {
        None => *default_port,
        Some(text) => text.parse().map_err(|_| format!("{text:?} is not a port"))?,
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((host.to_owned(), port))
}

/// An IPv6 address stands in brackets, because it has colons itself.
fn split_port(place: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = place.strip_prefix('[').and_then(|p| p.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match place.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (place, None),
    }
}

/// Start and end of the password in a URI.
fn password_range(uri: &str) -> Option<std::ops::Range<usize>> {
    let start = uri.find("://")? + 3;
    let rest = uri.get(start..)?;
    let authority = rest.get(..rest.find(['/', '?']).unwrap_or(rest.len()))?;
    let at = authority.rfind('@')?;
    let colon = authority.get(..at)?.find(':')?;
    Some(start + colon + 1..start + at)
}

fn password(uri: &str) -> Option<&str> {
    uri.get(password_range(uri)?)
}

/// The URI with `***` in place of the password.
pub fn without_password(uri: &str) -> String {
    let mut shown = uri.to_owned();
    if let Some(range) = password_range(uri) {
        shown.replace_range(range, "***");
    }
    shown
}

fn is_here(host: &str) -> bool {
    host == "localhost" || host == "::1" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_target_is_a_name_a_uri_and_perhaps_a_process() {
        let target = TargetSpec::parse("ours=amqp://localhost,pid=1234").unwrap();
        assert_eq!(
            (target.name.as_str(), target.host.as_str(), target.port),
            ("ours", "localhost", 5672)
        );
        assert_eq!(target.pid, PidSpec::Fixed(1234));
        let target = TargetSpec::parse("r=amqps://u:p@[::1]:9999/vh?x=1,pid=./rabbitmq pid").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 9999));
        assert_eq!(target.pid, PidSpec::Command("./rabbitmq pid".to_owned()));
        assert_eq!(TargetSpec::parse("r=amqps://").unwrap().port, 5671);
        let target = TargetSpec::parse("r=amqp://h,http=http://a:b@h:1,pid=echo 1,2").unwrap();
        assert_eq!(
            (target.uri.as_str(), target.http.as_deref()),
            ("amqp://h", Some("http://a:b@h:1"))
        );
        assert_eq!(target.pid, PidSpec::Command("echo 1,2".to_owned()));
        assert!(target.has_secret() && !target.hide_secret("http://a:b@h").contains(":b"));
    }

    #[test]
    fn a_target_written_wrongly_is_refused_with_the_right_form() {
        for wrong in [
            "amqp://localhost",
            "x=localhost:5672",
            "x=http://a",
            "x=amqp://a:b,pid=",
            "x=amqp://a:port",
            "=amqp://a",
            "x=amqp://a,stream=amqp://a",
            "x=amqp://a,http=http://b,http=http://b",
        ] {
            let said = TargetSpec::parse(wrong).unwrap_err();
            assert!(!said.is_empty(), "{wrong}");
        }
        let said = TargetSpec::parse("x=amqp://u:secret@a:port").unwrap_err();
        assert!(!said.contains("secret"), "{said}");
    }

    #[test]
    fn a_password_is_never_shown() {
        let target = TargetSpec::parse("x=amqp://me:s3@cret@host/vh").unwrap();
        assert_eq!(target.uri_shown(), "amqp://me:***@host/vh");
        assert!(target.has_secret());
        assert_eq!(target.hide_secret("me:s3@cret refused"), "me:*** refused");
        assert!(
            !TargetSpec::parse("x=amqp://guest:guest@host")
                .unwrap()
                .has_secret()
        );
        assert!(!TargetSpec::parse("x=amqp://me@host").unwrap().has_secret());
    }

    #[test]
    fn a_listener_of_this_machine_is_reached_and_its_process_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = TargetSpec::parse(&format!("x=amqp://127.0.0.1:{port}")).unwrap();
        assert_eq!(target.reach(), Ok(()));
        assert_eq!(target.find_pids(), Ok(vec![std::process::id()]));
        drop(listener);
        let said = target.reach().unwrap_err();
        assert!(
            said.contains("target x is not reachable") && said.contains("start it"),
            "{said}"
        );
    }

    #[test]
    fn the_stream_protocol_is_expected_beside_amqp_unless_it_is_given() {
        let uri = |text: &str| TargetSpec::parse(text).unwrap().stream_uri();
        assert_eq!(uri("x=amqp://h"), "rabbitmq-stream://h:5552");
        assert_eq!(
            uri("x=amqps://u:p%40q@[::1]/v%2F?heartbeat=3"),
            "rabbitmq-stream+tls://u:p%40q@[::1]:5551/v%2F"
        );
        assert_eq!(
            uri("x=amqp://u:p@h:5673/,pid=echo 1"),
            "rabbitmq-stream://u:p@h:5553/"
        );
        let given = "x=amqp://h,http=http://h:1,stream=rabbitmq-stream://a:secret@h:9,declare=amqp://i,pid=7";
        let target = TargetSpec::parse(given).unwrap();
        assert_eq!(target.stream_uri(), "rabbitmq-stream://a:secret@h:9");
        assert_eq!(
            (
                target.uri.as_str(),
                target.http.as_deref(),
                target.declare.as_deref()
            ),
            ("amqp://h", Some("http://h:1"), Some("amqp://i"))
        );
        assert!(target.has_secret() && target.hide_secret("a:secret@h") == "a:***@h");
    }

    #[test]
    fn who_does_not_listen_for_streams_is_told_where_it_was_looked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = format!("x=amqp://127.0.0.1:1,stream=rabbitmq-stream://127.0.0.1:{port}");
        let target = TargetSpec::parse(&target).unwrap();
        assert_eq!(target.reach_streams(), Ok(()));
        drop(listener);
        let said = target.reach_streams().unwrap_err();
        assert!(
            said.contains(&format!("127.0.0.1:{port}")) && said.contains("add ,stream=URI"),
            "{said}"
        );
    }

    #[test]
    fn a_command_may_tell_the_process() {
        let target = TargetSpec::parse("x=amqp://elsewhere,pid=echo 77").unwrap();
        assert_eq!(target.find_pids(), Ok(vec![77]));
        let target =
            TargetSpec::parse("x=amqp://elsewhere,declare=amqp://a:b@h:1,pid=echo 77; echo 78").unwrap();
        assert_eq!(target.find_pids(), Ok(vec![77, 78]));
        assert_eq!(target.declare.as_deref(), Some("amqp://a:b@h:1"));
        assert!(target.has_secret());
        let target = TargetSpec::parse("x=amqp://elsewhere,pid=echo none").unwrap();
        assert!(target.find_pids().unwrap_err().contains("none"));
        assert!(TargetSpec::parse("x=amqp://elsewhere,declare=h:1").is_err());
        let target = TargetSpec::parse("x=amqp://elsewhere,pid=true").unwrap();
        assert!(target.find_pids().unwrap_err().contains("no process id"));
        assert_eq!(
            TargetSpec::parse("x=amqp://elsewhere").unwrap().find_pids(),
            Ok(Vec::new())
        );
    }
}
