//! `/api/login`: what RabbitMQ's pages ask first, and `/api/auth`: how people log in by OAuth 2. No session is kept
//! here: whoever asks brings the credentials each time.

use crate::access::Right;
use crate::call::Call;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

/// Where credentials stand in the body.
pub const PATH: &str = "/login";

pub const ROUTES: &[Route] = &[
    Route {
        path: PATH,
        verbs: &[
            ("POST", Right::Management, log_in),
            ("DELETE", Right::Anyone, log_out),
        ],
    },
    Route {
        path: "/auth",
        verbs: &[("GET", Right::Anyone, sign_on)],
    },
];

/// The header `authorization` that says the same as a form's `username` and `password`; of other bodies one that lets nobody in.
pub fn authorization(body: &[u8]) -> String {
    let form = Query::parse(&String::from_utf8_lossy(body));
    let [name, password] = ["username", "password"].map(|field| form.get(field).unwrap_or_default());
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

fn log_in(call: &Call<'_>) -> Result<Reply, Refusal> {
    let authorization = authorization(call.body);
    let (_, value) = authorization.split_once(' ').unwrap_or_default();
    Ok(Reply::json(&json!({
        "user": {"name": &*call.user.name, "tags": call.user.tags, "is_internal_user": call.user.is_internal()},
        "token": {"type": "basic", "value": value},
    })))
}

fn sign_on(call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::json(&call.api.options.sign_on.json()))
}

fn log_out(_: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::empty(204))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_says_what_the_header_would() {
        let said = "Basic Z3Vlc3Q6YSBi";
        assert_eq!(authorization(b"username=guest&password=a%20b"), said);
        assert_eq!(authorization(b"password=a+b&username=gu%65st"), said);
    }

    #[test]
    fn other_bodies_name_nobody() {
        for body in [&b""[..], b"{\"username\":\"guest\"}", b"\xff"] {
            assert_eq!(authorization(body), "Basic Og==");
        }
    }
}
