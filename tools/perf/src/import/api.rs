//! A broker's management API.

use crate::failure::Failure;
use crate::http::{self, Refusals};
use crate::uri::Uri;
use serde_json::Value;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// No answer that is read here is longer, in bytes.
const LARGEST_ANSWER: u64 = 16 << 20;
/// RabbitMQ's port of the API is so much above that of AMQP, also in most setups with other ports.
const PORTS_ABOVE: u16 = 10_000;

/// Requests with one login.
#[derive(Debug)]
pub struct Api {
    agent: Agent,
    /// Up to and with `/api`.
    base: String,
    authorization: String,
}

impl Api {
    /// The API at `http`, or where it is expected beside AMQP.
    ///
    /// # Errors
    /// [`Failure::Usage`] for an address that is none.
    pub fn new(uri: &Uri, http: Option<&str>, timeout: Duration) -> Result<Self, Failure> {
        let (base, login) = match http {
            Some(http) => split(http)?,
            None => (beside(uri)?, None),
        };
        let login = login.unwrap_or_else(|| (uri.user.clone(), uri.password.clone()));
        Ok(Self {
            agent: http::agent(timeout, Refusals::AreAnswers),
            base: format!("{base}/api"),
            authorization: http::basic(&login.0, &login.1),
        })
    }

    /// # Errors
    /// The API was not reached or did not answer with JSON.
    pub fn get(&self, path: &str) -> Result<Value, Failure> {
        let sent = self
            .agent
            .get(self.address(path))
            .header("authorization", &self.authorization)
            .call();
        let body = self.answer(path, sent)?;
        serde_json::from_str(&body).map_err(|_| self.refusal(path, "its answer is not JSON"))
    }

    /// # Errors
    /// The API was not reached or refused the body.
    pub fn post(&self, path: &str, body: &str) -> Result<(), Failure> {
        let request = self
            .agent
            .post(self.address(path))
            .header("authorization", &self.authorization);
        let sent = request.header("content-type", "application/json").send(body);
        self.answer(path, sent).map(drop)
    }

    /// Deletes what may be gone already.
    ///
    /// # Errors
    /// The API was not reached or refused it.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        let sent = self
            .agent
            .delete(self.address(path))
            .header("authorization", &self.authorization)
            .call();
        match sent {
            Ok(answer) if answer.status().as_u16() == 404 => Ok(()),
            sent => self.answer(path, sent).map(drop),
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn answer(&self, path: &str, sent: Result<Response<Body>, ureq::Error>) -> Result<String, Failure> {
        let mut answer = sent.map_err(|error| self.refusal(path, error))?;
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_string();
        let body = body.map_err(|error| self.refusal(path, error))?;
        match answer.status().as_u16() {
            200..=299 => Ok(body),
            status => Err(self.refusal(path, format!("{status} {}", body.trim()))),
        }
    }

    fn refusal(&self, path: &str, why: impl std::fmt::Display) -> Failure {
        Failure::Connect(format!(
            "{}{path}: {why}; check --http, and that the broker's management is on.",
            self.base
        ))
    }
}

/// A name as a part of a path.
pub fn encoded(name: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| {
            if safe(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}

fn beside(uri: &Uri) -> Result<String, Failure> {
    let port = uri
        .port
        .checked_add(PORTS_ABOVE)
        .ok_or_else(|| Failure::Usage(format!("no management port is known beside {uri}: give --http.")))?;
    let mut api = uri.clone();
    api.port = port;
    Ok(format!(
        "{}://{}",
        if uri.tls { "https" } else { "http" },
        api.place()
    ))
}

/// An address without its login, and the login.
fn split(http: &str) -> Result<(String, Option<(String, String)>), Failure> {
    let none =
        || Failure::Usage("--http is not an address: write http://USER:PASSWORD@HOST:PORT.".to_owned());
    let (scheme, rest) = http.split_once("://").ok_or_else(none)?;
    if !["http", "https"].contains(&scheme) {
        return Err(none());
    }
    let rest = rest.trim_end_matches('/');
    match rest.rsplit_once('@') {
        None => Ok((format!("{scheme}://{rest}"), None)),
        Some((login, place)) => {
            let login =
                crate::uri::read_login(login).map_err(|why| Failure::Usage(format!("--http {why}.")))?;
            Ok((format!("{scheme}://{place}"), Some(login)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_beside_amqp_unless_it_is_named() {
        let base = |uri: &str, http: Option<&str>| {
            let api = Api::new(&Uri::parse(uri).unwrap(), http, Duration::from_secs(1));
            api.map(|api| (api.base, api.authorization))
                .map_err(|failure| failure.to_string())
        };
        let guest = "Basic Z3Vlc3Q6Z3Vlc3Q=".to_owned();
        assert_eq!(
            base("amqp://h", None).unwrap(),
            ("http://h:15672/api".to_owned(), guest.clone())
        );
        assert_eq!(base("amqps://[::1]", None).unwrap().0, "https://[::1]:15671/api");
        let (place, login) = base("amqp://h", Some("http://a:b%40@x:1/prefix/")).unwrap();
        assert_eq!(
            (place.as_str(), login.as_str()),
            ("http://x:1/prefix/api", "Basic YTpiQA==")
        );
        assert_eq!(base("amqp://h", Some("https://x")).unwrap().1, guest);
        assert!(base("amqp://h:60000", None).unwrap_err().contains("--http"));
        assert!(
            base("amqp://h", Some("ftp://s3cret@x"))
                .unwrap_err()
                .contains("write http://")
        );
    }

    #[test]
    fn names_are_encoded_for_paths() {
        assert_eq!(encoded("a/b c~é"), "a%2Fb%20c~%C3%A9");
    }
}
