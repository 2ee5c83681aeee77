//! Tokens from an OAuth 2 server.

use crate::failure::Failure;
use crate::http::{self, Refusals};
use crate::plan::OAuth2;
use serde_json::Value;
use std::fmt;
use std::time::Duration;

/// How long the token server may take in all.
const TIMEOUT: Duration = Duration::from_secs(60);
/// No answer of a token server is longer, in bytes.
const LARGEST_ANSWER: u64 = 1024 * 1024;

/// A token. Its debug form keeps the value to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What stands in the place of the password; the user's name is empty then, as PerfTest has it.
    pub value: String,
    /// How long it is good; `None`: the server did not say, so it is never refreshed.
    pub expires_in: Option<Duration>,
}

impl Token {
    /// When to fetch the next one, counted from the moment in which this one was fetched: four fifths of its life, as
    /// PerfTest's client library does.
    pub fn refresh_after(&self) -> Option<Duration> {
        self.expires_in.map(|life| life.mul_f64(0.8))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("expires_in", &self.expires_in)
            .finish_non_exhaustive()
    }
}

/// The token server.
pub struct Tokens;

impl Tokens {
    /// Asks for a token. The client's id and secret go as HTTP basic authentication, the rest as a form, as PerfTest sends
    /// them. Unlike PerfTest, the server's certificate is always verified (`SSL_CERT_FILE` names other authorities than the
    /// system's), since it is given a secret.
    ///
    /// # Errors
    /// [`Failure::Connect`] if there is no token; no secret is in it.
    pub fn fetch(oauth2: &OAuth2) -> Result<Token, Failure> {
        let endpoint = &oauth2.endpoint;
        let fail = |why: String| Failure::Connect(format!("no token from {endpoint}: {why}"));
        let form = [("grant_type".to_owned(), oauth2.grant_type.clone())];
        let form = form
            .iter()
            .chain(&oauth2.parameters)
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let login = http::basic(&oauth2.client_id, &oauth2.client_secret);
        let sent = http::agent(TIMEOUT, Refusals::AreAnswers)
            .post(endpoint)
            .header("authorization", login)
            .header("accept", "application/json")
            .send_form(form);
        let mut answer = sent.map_err(|error| {
            fail(format!(
                "{error}; check --oauth2-token-endpoint and that the server is running"
            ))
        })?;
        let status = answer.status().as_u16();
        let body = answer
            .body_mut()
            .with_config()
            .limit(LARGEST_ANSWER)
            .read_to_string();
        let body = body.map_err(|error| fail(error.to_string()))?;
        if !(200..300).contains(&status) {
            let said = reason(&body).map(|it| format!(" ({it})")).unwrap_or_default();
            return Err(fail(format!(
                "it answered with status {status}{said}; check --oauth2-client-id, --oauth2-client-secret and --oauth2-parameters"
            )));
        }
        read(&body).ok_or_else(|| fail("its answer is not a JSON object with an access_token".into()))
    }
}

fn read(body: &str) -> Option<Token> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let value = answer.get("access_token")?.as_str()?.to_owned();
    // Some servers write the number as a string.
    let seconds = answer.get("expires_in").and_then(|it| match it {
        Value::String(text) => text.parse().ok(),
        other => other.as_u64(),
    });
    Some(Token {
        value,
        expires_in: seconds.map(Duration::from_secs),
    })
}

/// RFC 6749 section 5.2: what went wrong, and perhaps a sentence about it.
fn reason(body: &str) -> Option<String> {
    let answer: Value = serde_json::from_str(body).ok()?;
    let error = answer.get("error")?.as_str()?.to_owned();
    let more = answer.get("error_description").and_then(Value::as_str);
    Some(more.map_or(error.clone(), |more| format!("{error}: {more}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    /// A token server that answers once; gives what it was sent.
    fn server(status: &'static str, body: &'static str) -> (OAuth2, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let oauth2 = OAuth2 {
            endpoint: format!("http://{}/token", listener.local_addr().unwrap()),
            client_id: "me".into(),
            client_secret: "s3cret".into(),
            grant_type: "client_credentials".into(),
            parameters: vec![("org id".into(), "1&2".into())],
        };
        let thread = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(socket.try_clone().unwrap());
            let (mut request, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = number.trim().parse().unwrap();
                }
                request.push_str(&line);
                if line == "\r\n" {
                    break;
                }
            }
            let mut form = vec![0; length];
            reader.read_exact(&mut form).unwrap();
            request.push_str(std::str::from_utf8(&form).unwrap());
            let head =
                format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
            write!(socket, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
            request
        });
        (oauth2, thread)
    }

    #[test]
    fn a_token_is_asked_for_with_a_form_and_basic_authentication() {
        let (oauth2, thread) = server("200 OK", r#"{"access_token":"t0ken","expires_in":"100","x":1}"#);
        let token = Tokens::fetch(&oauth2).unwrap();
        assert_eq!(token.value, "t0ken");
        assert_eq!(token.refresh_after(), Some(Duration::from_secs(80)));
        assert!(!format!("{token:?}").contains("t0ken"));
        let request = thread.join().unwrap();
        assert!(request.starts_with("POST /token"), "{request}");
        assert!(
            request
                .to_ascii_lowercase()
                .contains("authorization: basic bwu6czn"),
            "{request}"
        );
        assert!(
            request.ends_with("grant_type=client_credentials&org+id=1%262")
                || request.ends_with("grant_type=client_credentials&org%20id=1%262"),
            "{request}"
        );
    }

    #[test]
    fn a_refusal_says_why_and_tells_no_secret() {
        let (oauth2, thread) = server(
            "401 Unauthorized",
            r#"{"error":"invalid_client","error_description":"who?"}"#,
        );
        let text = Tokens::fetch(&oauth2).unwrap_err().to_string();
        thread.join().unwrap();
        assert!(
            text.contains("401") && text.contains("invalid_client: who?"),
            "{text}"
        );
        assert!(
            text.contains("--oauth2-client-secret") && !text.contains("s3cret"),
            "{text}"
        );
    }

    #[test]
    fn an_answer_without_a_token_is_refused() {
        let (oauth2, thread) = server("200 OK", "<html>");
        let text = Tokens::fetch(&oauth2).unwrap_err().to_string();
        thread.join().unwrap();
        assert!(text.contains("access_token"), "{text}");
        assert_eq!(read(r#"{"access_token":"a"}"#).unwrap().expires_in, None);
    }
}
