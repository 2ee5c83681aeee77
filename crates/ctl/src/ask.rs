//! What a running command sees: its words and options, and the node.

use crate::endpoint::{Endpoint, host_name};
use crate::failure::{BAD_VALUE, Failure, TIMED_OUT, UNAVAILABLE, USAGE};
use crate::http::{self, Answer, Request};
use crate::line::CommandLine;
use crate::tool::Tool;
use serde_json::Value;
use std::io::{self, Write};
use std::time::Duration;

/// Where the API tells whether the broker runs inside its process.
pub const APPLICATION: &str = "/leveret/application";

/// One call of a tool.
#[derive(Debug)]
pub struct Ask<'a> {
    /// The command line.
    pub line: &'a CommandLine,
    /// The name the program was called by.
    pub tool: Tool,
    /// The version of RabbitMQ that the tools stand in for.
    pub version: &'a str,
    /// RabbitMQ's plugins whose features are built in, with what they are.
    pub plugins: &'static [(&'static str, &'static str)],
    /// Where the node is.
    pub endpoint: Endpoint,
    /// The user and the password, if they were given.
    pub credentials: Option<(String, String)>,
    /// How long one answer may take; no limit by default.
    pub timeout: Option<Duration>,
}

/// What a listener says to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// More is wanted.
    GoOn,
    /// It is enough.
    Enough,
}

impl<'a> Ask<'a> {
    /// A word behind the command's name; empty if there are fewer.
    pub fn word(&self, at: usize) -> &'a str {
        self.line.words.get(at).map_or("", String::as_str)
    }

    /// The virtual host that the command is about.
    pub fn vhost(&self) -> &'a str {
        self.line.value("vhost").unwrap_or("/")
    }

    /// The node's name, as messages have it.
    pub fn node(&self) -> String {
        let given = self.line.value("node").filter(|name| !name.contains("://"));
        let given = given.map(str::to_owned);
        let here = || {
            std::env::var("RABBITMQ_NODENAME")
                .ok()
                .filter(|name| !name.is_empty())
        };
        let name = match &self.endpoint {
            Endpoint::Socket(_) => given.or_else(here).or_else(|| self.told_name()),
            Endpoint::Web { .. } => given,
        };
        match (name, &self.endpoint) {
            (Some(name), _) if name.contains('@') => name,
            // RabbitMQ: a name without a host is one of this machine.
            (Some(name), _) => format!("{name}@{}", host_name()),
            (None, Endpoint::Socket(_)) => format!("rabbit@{}", host_name()),
            (None, Endpoint::Web { host, .. }) => format!("rabbit@{host}"),
        }
    }

    /// What the node of this machine calls itself, whether its broker runs or not; `None` if it does not answer.
    fn told_name(&self) -> Option<String> {
        let request = Request {
            method: "GET",
            path: &format!("/api{APPLICATION}"),
            body: None,
            credentials: None,
            reason: None,
        };
        let answer = http::send(&self.endpoint, &request, self.timeout).ok()?;
        let state: Value = serde_json::from_slice(&answer.body).ok()?;
        state.get("node")?.as_str().map(str::to_owned)
    }

    /// Tells what is about to happen, unless the user wants less or a program reads along.
    pub fn say(&self, text: impl AsRef<str>) {
        let for_program = matches!(self.line.value("formatter"), Some("json" | "csv" | "json_stream"));
        if self.line.has("quiet") || self.line.has("silent") || for_program {
            return;
        }
        // Nobody may be reading; the command is carried out all the same.
        let _ = writeln!(io::stdout(), "{}", text.as_ref());
    }

    /// Tells on standard error what scripts need not read, unless the user wants less.
    pub fn note(&self, text: impl AsRef<str>) {
        if !self.line.has("quiet") && !self.line.has("silent") {
            let _ = writeln!(io::stderr(), "{}", text.as_ref());
        }
    }

    /// Makes a request.
    ///
    /// # Errors
    /// The node is not reached, does not answer in time, or does not know who asks.
    pub fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Answer, Failure> {
        let credentials = self.credentials.as_ref();
        let credentials = credentials.map(|(user, password)| (user.as_str(), password.as_str()));
        self.call_as(method, path, body, credentials, None)
    }

    /// Makes a request in somebody's name.
    ///
    /// # Errors
    /// See [`Ask::call`].
    pub fn call_as(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
        credentials: Option<(&str, &str)>,
        reason: Option<&str>,
    ) -> Result<Answer, Failure> {
        let body = body.map(|body| body.to_string().into_bytes());
        let path = format!("/api{path}");
        let request = Request {
            method,
            path: &path,
            body: body.as_deref(),
            credentials,
            reason,
        };
        http::send(&self.endpoint, &request, self.timeout).map_err(|error| self.unreached(&error))
    }

    /// Listens to an answer that goes on (server-sent events), until `hear` has heard enough or the node ends it. It
    /// gets each event's kind and document.
    ///
    /// # Errors
    /// The node is not reached or refuses.
    pub fn listen(&self, path: &str, hear: &mut dyn FnMut(&str, Value) -> Heard) -> Result<(), Failure> {
        let credentials = self.credentials.as_ref();
        let path = format!("/api{path}");
        let request = Request {
            method: "GET",
            path: &path,
            body: None,
            credentials: credentials.map(|(user, password)| (user.as_str(), password.as_str())),
            reason: None,
        };
        let mut kind = String::new();
        let answer = http::follow(&self.endpoint, &request, self.timeout, &mut |line| {
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.to_owned();
            } else if let Some(document) = line.strip_prefix("data: ") {
                let document = serde_json::from_str(document).unwrap_or(Value::Null);
                return hear(&kind, document) == Heard::GoOn;
            }
            true
        });
        match answer.map_err(|error| self.unreached(&error))? {
            None => Ok(()),
            Some(answer) => self.accepted(&answer).map(drop),
        }
    }

    /// Reads an object or a list; nothing if it is not there.
    ///
    /// # Errors
    /// The node is not reached or refuses.
    pub fn find(&self, path: &str) -> Result<Option<Value>, Failure> {
        let answer = self.call("GET", path, None)?;
        match answer.status {
            404 => Ok(None),
            _ => self.accepted(&answer).map(Some),
        }
    }

    /// Reads an object or a list that is there.
    ///
    /// # Errors
    /// The node is not reached or refuses.
    pub fn get(&self, path: &str) -> Result<Value, Failure> {
        let answer = self.call("GET", path, None)?;
        self.accepted(&answer)
    }

    /// Changes something.
    ///
    /// # Errors
    /// The node is not reached or refuses.
    pub fn put(&self, path: &str, body: &Value) -> Result<(), Failure> {
        let answer = self.call("PUT", path, Some(body))?;
        self.accepted(&answer).map(drop)
    }

    /// Takes something away; false if it was not there.
    ///
    /// # Errors
    /// The node is not reached or refuses.
    pub fn delete(&self, path: &str) -> Result<bool, Failure> {
        let answer = self.call("DELETE", path, None)?;
        match answer.status {
            404 => Ok(false),
            _ => self.accepted(&answer).map(|_| true),
        }
    }

    /// The JSON of an answer that is no refusal.
    ///
    /// # Errors
    /// It is one.
    pub fn accepted(&self, answer: &Answer) -> Result<Value, Failure> {
        let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
        if (200..300).contains(&answer.status) {
            return Ok(json);
        }
        if is_stopped(answer) {
            let text = "Error: this command requires the 'rabbit' app to be running on the target node. Start it with 'rabbitmqctl start_app'.";
            return Err(Failure::plain(USAGE, text));
        }
        let reason = reason(&json);
        Err(match answer.status {
            401 => Failure::error(
                UNAVAILABLE,
                format!(
                    "the node refuses: {reason}. Use --username and --password, or the admin socket of its machine"
                ),
            ),
            400 => Failure::error(UNAVAILABLE, reason),
            404 => Failure::plain(BAD_VALUE, reason),
            405 => Failure::error(
                UNAVAILABLE,
                "this version of the node does not support the request",
            ),
            status => Failure::error(UNAVAILABLE, format!("the node answers {status}: {reason}")),
        })
    }

    /// The requested virtual host exists.
    ///
    /// # Errors
    /// It does not, or the node is not reached.
    pub fn vhost_exists(&self) -> Result<(), Failure> {
        match self.find(&format!("/vhosts/{}?columns=name", encode(self.vhost())))? {
            Some(_) => Ok(()),
            None => Err(no_vhost(self.vhost())),
        }
    }

    fn unreached(&self, error: &io::Error) -> Failure {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            let seconds = self.timeout.unwrap_or_default().as_secs();
            let text = format!(
                "Error: operation on node {} timed out. Timeout value used: {seconds}",
                self.node()
            );
            return Failure::plain(TIMED_OUT, text);
        }
        let (tried, hint) = match &self.endpoint {
            Endpoint::Socket(path) => (
                format!("its admin socket {}", path.display()),
                "set its data directory with --data-dir or LEVERET_DATA_DIR; the socket belongs to the user who \
                 started the node",
            ),
            Endpoint::Web { host, port, .. } => (
                format!("its HTTP API at {host}:{port}"),
                "set its HTTP API with --url http://HOST:15672, --username and --password",
            ),
        };
        Failure::plain(
            UNAVAILABLE,
            format!(
                "Error: unable to perform an operation on node '{}'. Please see diagnostics information and suggestions below.\n\n\
                 Tried {tried}: {error}\n\n \
                 * Is the node running? Its log says where it listens\n \
                 * If it runs elsewhere, {hint}",
                self.node()
            ),
        )
    }
}

/// True if a process answers whose broker is stopped (`stop_app`).
pub fn is_stopped(answer: &Answer) -> bool {
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    answer.status == 503 && json.get("error").and_then(Value::as_str) == Some("application_stopped")
}

/// The failure of a command whose virtual host is missing.
pub fn no_vhost(vhost: &str) -> Failure {
    Failure::plain(BAD_VALUE, format!("Virtual host '{vhost}' does not exist"))
}

/// Why a request was refused.
pub fn reason(json: &Value) -> String {
    let member = |name: &str| json.get(name).filter(|value| !value.is_null());
    match member("reason").or_else(|| member("error")) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "no reason given".into(),
    }
}

/// A name as it stands in a path.
pub fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_whatever_is_in_them() {
        assert_eq!(encode("/"), "%2F");
        assert_eq!(encode("a b?ü.x"), "a%20b%3F%C3%BC.x");
    }

    #[test]
    fn reasons_are_taken_from_what_the_node_says() {
        let of = |text: &str| reason(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"error":"bad_request","reason":"why"}"#), "why");
        assert_eq!(
            of(r#"{"error":"bad_request","reason":["not_base64","x"]}"#),
            r#"["not_base64","x"]"#
        );
        assert_eq!(of(r#"{"error":"only"}"#), "only");
        assert_eq!(of("null"), "no reason given");
    }
}
