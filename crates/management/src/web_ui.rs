//! The pages of the web UI: files that are part of the binary, in the forms that browsers accept.

use crate::unread::Whole;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response, StatusCode};

/// One file of the UI.
struct File {
    /// Its address.
    path: &'static str,
    /// Changes with its contents.
    tag: &'static str,
    plain: &'static [u8],
    gzip: Option<&'static [u8]>,
    brotli: Option<&'static [u8]>,
}

/// What the build found in `ui/dist`; nothing, if the UI had not been built.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/web_ui.rs"));

/// Nothing but our own files runs or is shown; nobody may put the pages into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The same for pages that may ask these sites, too.
pub fn policy_with(sites: &str) -> String {
    POLICY.replace("connect-src 'self'", &format!("connect-src 'self' {sites}"))
}

const WITHOUT: &str = "This leveret was built without its web UI (`make build` builds both; it needs npm).\n\
                       The HTTP API is at /api, for example /api/overview.\n";

/// Answers a request for a page. `None` if the path belongs to the API.
pub fn answer(method: &Method, path: &str, asked: &HeaderMap) -> Option<Response<Whole>> {
    if path == "/api" || path.starts_with("/api/") {
        return None;
    }
    Some(serve(FILES, method, path, asked))
}

fn serve(files: &[File], method: &Method, path: &str, asked: &HeaderMap) -> Response<Whole> {
    if method != Method::GET && method != Method::HEAD {
        let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "Pages are only read.\n");
        set(&mut response, header::ALLOW, "GET, HEAD");
        return response;
    }
    let wanted = if path == "/" { "/index.html" } else { path };
    let Some(file) = files.iter().find(|file| file.path == wanted) else {
        let without = files.is_empty() && wanted == "/index.html";
        let words = if without {
            WITHOUT
        } else {
            "There is no such page.\n"
        };
        return text(StatusCode::NOT_FOUND, words);
    };
    let known = value(asked, header::IF_NONE_MATCH)
        .split(',')
        .any(|tag| tag.trim().trim_start_matches("W/") == file.tag);
    let (encoding, body) = file.form(value(asked, header::ACCEPT_ENCODING));
    let mut response = if known {
        Response::new(Whole::default())
    } else {
        Response::new(Whole::new(Bytes::from_static(body), None))
    };
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if let Some(encoding) = encoding {
        set(&mut response, header::CONTENT_ENCODING, encoding);
    }
    set(&mut response, header::ETAG, file.tag);
    set(&mut response, header::CONTENT_TYPE, kind(file.path));
    set(&mut response, header::VARY, "accept-encoding");
    // The names of assets change with their contents (Vite puts a hash into them); the page that names them is asked for anew.
    let lasting = file.path.starts_with("/assets/");
    let caching = if lasting {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    set(&mut response, header::CACHE_CONTROL, caching);
    guarded(response)
}

impl File {
    /// The smallest form that the browser takes.
    fn form(&self, accepted: &str) -> (Option<&'static str>, &'static [u8]) {
        let takes = |name: &str| {
            accepted.split(',').any(|offer| {
                let mut parts = offer.split(';').map(str::trim);
                let named = parts.next().is_some_and(|word| word.eq_ignore_ascii_case(name));
                named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
            })
        };
        match (self.brotli, self.gzip) {
            (Some(bytes), _) if takes("br") => (Some("br"), bytes),
            (_, Some(bytes)) if takes("gzip") => (Some("gzip"), bytes),
            _ => (None, self.plain),
        }
    }
}

fn text(status: StatusCode, words: &'static str) -> Response<Whole> {
    let mut response = Response::new(Whole::new(Bytes::from_static(words.as_bytes()), None));
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, "text/plain; charset=utf-8");
    set(&mut response, header::CACHE_CONTROL, "no-cache");
    guarded(response)
}

fn guarded(mut response: Response<Whole>) -> Response<Whole> {
    set(&mut response, header::CONTENT_SECURITY_POLICY, POLICY);
    set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(&mut response, header::X_FRAME_OPTIONS, "DENY");
    set(&mut response, header::REFERRER_POLICY, "no-referrer");
    response
}

fn set(response: &mut Response<Whole>, name: HeaderName, value: &'static str) {
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
}

fn value(headers: &HeaderMap, name: HeaderName) -> &str {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn kind(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[File] = &[
        File {
            path: "/index.html",
            tag: "\"1\"",
            plain: b"page",
            gzip: None,
            brotli: None,
        },
        File {
            path: "/assets/app-x.js",
            tag: "\"2\"",
            plain: b"plain",
            gzip: Some(b"gz"),
            brotli: Some(b"br"),
        },
    ];

    fn ask(path: &str, headers: &[(HeaderName, &'static str)]) -> Response<Whole> {
        let mut asked = HeaderMap::new();
        for (name, value) in headers {
            asked.insert(name, HeaderValue::from_static(value));
        }
        serve(SAMPLE, &Method::GET, path, &asked)
    }

    #[test]
    fn a_browser_gets_the_smallest_form_that_it_takes() {
        for (accepted, encoding) in [
            ("gzip, deflate, br", Some("br")),
            ("GZIP;q=0.5, br;q=0", Some("gzip")),
            ("zstd", None),
        ] {
            let response = ask("/assets/app-x.js", &[(header::ACCEPT_ENCODING, accepted)]);
            let found = response
                .headers()
                .get(header::CONTENT_ENCODING)
                .map(|value| value.to_str().unwrap());
            assert_eq!(found, encoding, "{accepted}");
        }
    }

    #[test]
    fn what_a_browser_has_is_not_sent_again() {
        let fresh = ask("/", &[]);
        assert_eq!(fresh.status(), 200);
        let tag = fresh.headers()[header::ETAG].to_str().unwrap();
        assert_eq!(
            (tag, &fresh.headers()[header::CACHE_CONTROL]),
            ("\"1\"", &HeaderValue::from_static("no-cache"))
        );
        assert_eq!(
            ask("/", &[(header::IF_NONE_MATCH, "\"0\", W/\"1\"")]).status(),
            304
        );
        assert!(
            ask("/assets/app-x.js", &[]).headers()[header::CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
    }

    #[test]
    fn pages_run_no_script_but_their_own() {
        let policy = ask("/", &[]).headers()[header::CONTENT_SECURITY_POLICY]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(
            policy.contains("script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
    }

    #[test]
    fn paths_of_the_api_are_left_to_it_and_unknown_pages_are_said_to_be_unknown() {
        let none = HeaderMap::new();
        assert!(answer(&Method::GET, "/api/queues", &none).is_none());
        assert_eq!(ask("/apis", &[]).status(), 404);
        assert_eq!(serve(SAMPLE, &Method::PUT, "/", &none).status(), 405);
        assert_eq!(serve(&[], &Method::GET, "/", &none).status(), 404);
    }
}
