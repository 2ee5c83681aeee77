//! Pages of other sites, which a browser shows beside ours: what they may read of the API's answers (CORS, RabbitMQ's
//! `management.cors.*`), and that they may not change anything in the name of whoever has logged in (CSRF).
//!
//! A browser keeps the credentials of HTTP's Basic scheme and sends them with whatever any page asks for. So a request that
//! changes something is refused if it comes from a page of another site that is not allowed by name. Programs that are no browser
//! send none of the headers that this looks at, and notice nothing.

use hyper::Method;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// RabbitMQ's, in seconds.
const MAX_AGE_S: u32 = 1_800;

/// The sites whose pages may use the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origins {
    /// As browsers write them, `https://admin.example.com`; `*` is all.
    pub allowed: Vec<String>,
    /// For how long, in seconds, a browser may remember what it was told.
    pub max_age_s: u32,
}

impl Default for Origins {
    /// Nobody else.
    fn default() -> Self {
        Self {
            allowed: Vec::new(),
            max_age_s: MAX_AGE_S,
        }
    }
}

impl Origins {
    /// The origin of the page that asks, if it is one that is allowed by name.
    pub fn admitted(&self, asked: &HeaderMap) -> Option<HeaderValue> {
        let origin = asked.get(header::ORIGIN)?;
        let text = origin.to_str().ok()?;
        let allowed = text != "null" && self.allowed.iter().any(|it| it == "*" || it == text);
        allowed.then(|| origin.clone())
    }

    /// True if a page of another site, which is not allowed by name, wants something changed.
    pub fn refuses(&self, method: &Method, asked: &HeaderMap) -> bool {
        ![Method::GET, Method::HEAD, Method::OPTIONS].contains(method) && self.are_foreign(asked)
    }

    /// True if a page of another site, which is not allowed by name, asks.
    pub fn are_foreign(&self, asked: &HeaderMap) -> bool {
        if self.admitted(asked).is_some() {
            return false;
        }
        let text = |name: &str| asked.get(name).and_then(|value| value.to_str().ok());
        // What a browser says of its own knowledge counts more than a comparison: a proxy may have changed the host.
        match text("sec-fetch-site") {
            Some("same-origin" | "none") => return false,
            Some(_) => return true,
            None => {}
        }
        let Some(origin) = asked.get(header::ORIGIN) else {
            return false;
        };
        let host = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let hosts = [text("host"), text("x-forwarded-host")];
        host.is_none_or(|(_, host)| !hosts.contains(&Some(host)))
    }

    /// Tells the browser of an admitted page that it may show it the answer; to its question beforehand (`OPTIONS`), which verbs
    /// and headers it may use, as RabbitMQ does.
    pub fn admit(&self, origin: HeaderValue, asked: &HeaderMap, is_question: bool, answer: &mut HeaderMap) {
        let mut set = |name: HeaderName, value: HeaderValue| answer.insert(name, value);
        set(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        set(
            header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
            HeaderValue::from_static("true"),
        );
        set(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static("location"),
        );
        if !is_question {
            return;
        }
        set(header::ACCESS_CONTROL_MAX_AGE, self.max_age_s.into());
        if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
            set(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
        }
        if let Some(verbs) = answer.get(header::ALLOW).cloned() {
            answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, verbs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let headers = headers.iter();
        headers
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn origins(allowed: &[&str]) -> Origins {
        Origins {
            allowed: allowed.iter().map(|it| (*it).to_owned()).collect(),
            ..Origins::default()
        }
    }

    #[test]
    fn no_page_of_another_site_changes_anything_unless_it_is_allowed_by_name() {
        let strict = origins(&[]);
        let host = ("host", "mq.example:15672");
        let refused: [&[(&str, &str)]; 5] = [
            &[host, ("origin", "https://evil.example")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[
                host,
                ("sec-fetch-site", "same-site"),
                ("origin", "http://mq.example:15672"),
            ],
            &[host, ("origin", "http://mq.example")],
        ];
        for headers in refused {
            let asked = asked(headers);
            assert!(strict.refuses(&Method::POST, &asked), "{headers:?}");
            assert!(strict.refuses(&Method::DELETE, &asked), "{headers:?}");
            assert!(!strict.refuses(&Method::GET, &asked), "{headers:?}");
        }
        let allowed: [&[(&str, &str)]; 4] = [
            &[host],
            &[host, ("origin", "http://mq.example:15672")],
            &[
                host,
                ("origin", "https://front.example"),
                ("sec-fetch-site", "same-origin"),
            ],
            &[
                host,
                ("origin", "https://front.example"),
                ("x-forwarded-host", "front.example"),
            ],
        ];
        for headers in allowed {
            assert!(!strict.refuses(&Method::PUT, &asked(headers)), "{headers:?}");
        }
        let named = origins(&["https://admin.example"]);
        let from = |origin| asked(&[host, ("origin", origin), ("sec-fetch-site", "cross-site")]);
        assert!(!named.refuses(&Method::PUT, &from("https://admin.example")));
        assert!(named.refuses(&Method::PUT, &from("https://admin.example.evil")));
    }

    #[test]
    fn an_allowed_page_is_told_what_it_may_do() {
        let named = origins(&["https://admin.example"]);
        let asked = asked(&[
            ("origin", "https://admin.example"),
            ("access-control-request-headers", "authorization"),
        ]);
        let origin = named.admitted(&asked).unwrap();
        let mut answer =
            HeaderMap::from_iter([(header::ALLOW, HeaderValue::from_static("HEAD, GET, OPTIONS"))]);
        named.admit(origin.clone(), &asked, false, &mut answer);
        assert_eq!(answer["access-control-allow-origin"], "https://admin.example");
        assert!(!answer.contains_key("access-control-allow-methods"));
        named.admit(origin, &asked, true, &mut answer);
        assert_eq!(answer["access-control-allow-methods"], "HEAD, GET, OPTIONS");
        assert_eq!(answer["access-control-allow-headers"], "authorization");
        assert_eq!(answer["access-control-max-age"], "1800");
        assert_eq!(origins(&[]).admitted(&asked), None);
        assert!(origins(&["*"]).admitted(&asked).is_some());
    }
}
