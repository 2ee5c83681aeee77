//! What other nodes ask about this one, and what they are answered: the handlers of the API, for what is here alone.

use crate::access::Asker;
use crate::call::Api;
use crate::errand::Errand;
use crate::others::Answer;
use crate::pieces::Cut;
use crate::query::Query;
use crate::routes;
use crate::snapshot::Snapshot;
use broker::User;
use hyper::HeaderMap;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use serde_json::Value;
use std::sync::Arc;

/// What may be asked. Everything else a node does itself, by what all nodes agree on.
const ANSWERED: &[(&str, &str)] = &[
    ("GET", "/overview"),
    ("GET", "/nodes/:node"),
    ("GET", "/nodes/:node/memory"),
    ("GET", "/nodes/:node/memory/relative"),
    ("GET", "/nodes/:node/memory/ets"),
    ("GET", "/nodes/:node/memory/ets/relative"),
    ("GET", "/nodes/:node/memory/ets/:filter"),
    ("GET", "/nodes/:node/memory/ets/:filter/relative"),
    ("DELETE", "/reset/:node"),
    ("GET", "/auth/attempts/:node"),
    ("DELETE", "/auth/attempts/:node"),
    ("DELETE", "/auth/attempts/:node/source"),
    ("GET", "/auth/attempts/:node/source"),
    ("GET", "/vhosts"),
    ("GET", "/vhosts/:vhost"),
    ("GET", "/exchanges"),
    ("GET", "/queues"),
    ("GET", "/queues/detailed"),
    ("GET", "/queues/:vhost"),
    ("GET", "/queues/:vhost/:name"),
    ("POST", "/queues/:vhost/:name/get"),
    ("GET", "/leveret/queues/:vhost/:name/messages"),
    ("POST", "/leveret/queues/:vhost/:name/messages"),
    ("GET", "/leveret/queues/:vhost/:name/messages/:position/body"),
    ("GET", "/connections"),
    ("GET", "/connections/:connection"),
    ("DELETE", "/connections/:connection"),
    ("GET", "/connections/username/:user"),
    ("DELETE", "/connections/username/:user"),
    ("GET", "/connections/:connection/channels"),
    ("GET", "/vhosts/:vhost/connections"),
    ("GET", "/channels"),
    ("GET", "/channels/:channel"),
    ("GET", "/vhosts/:vhost/channels"),
    ("GET", "/consumers"),
    ("GET", "/consumers/:vhost"),
    ("GET", "/stream/connections"),
    ("GET", "/stream/connections/:vhost"),
    ("GET", "/stream/connections/:vhost/:connection"),
    ("DELETE", "/stream/connections/:vhost/:connection"),
    ("GET", "/stream/connections/:vhost/:connection/consumers"),
    ("GET", "/stream/connections/:vhost/:connection/publishers"),
    ("GET", "/stream/consumers"),
    ("GET", "/stream/consumers/:vhost"),
    ("GET", "/stream/consumers/:vhost/:name"),
    ("GET", "/stream/publishers"),
    ("GET", "/stream/publishers/:vhost"),
    ("GET", "/stream/publishers/:vhost/:name"),
    ("GET", "/stream/:vhost/:name/tracking"),
    ("DELETE", "/leveret/streams/:vhost/:name/offsets/:reference"),
    ("GET", "/leveret/streams/:vhost/:name/replicas"),
    ("GET", "/health/checks/local-alarms"),
    ("GET", "/leveret/alarms"),
    ("GET", "/leveret/why/queues/:vhost/:name"),
    ("GET", "/leveret/availability/queues/:vhost/:name"),
    ("GET", "/leveret/why/connections/:connection"),
    ("GET", "/leveret/times/queues/:vhost/:name"),
    ("GET", "/queues/quorum/:vhost/:name/status"),
    ("POST", "/leveret/queues/:vhost/:name/leader"),
    ("POST", "/leveret/queues/:vhost/:name/convert"),
    ("POST", "/leveret/leaders"),
    ("GET", "/leveret/rebalance"),
    ("POST", "/leveret/rebalance"),
    ("GET", "/leveret/times"),
    ("GET", "/leveret/logs"),
    ("GET", "/leveret/logs/follow"),
    ("GET", "/leveret/happenings"),
    ("GET", "/leveret/audit"),
    ("GET", "/leveret/config"),
    ("GET", "/leveret/process"),
    ("GET", "/leveret/interfaces"),
    ("GET", "/leveret/certificates"),
    ("GET", "/leveret/message-sizes"),
    ("PUT", "/leveret/trace/:vhost"),
    ("DELETE", "/leveret/trace/:vhost"),
];

/// The answer to a question; 400 for one that makes no sense.
pub fn answer(api: &Arc<Api>, question: &[u8]) -> Vec<u8> {
    let answered = serde_json::from_slice(question)
        .ok()
        .and_then(|question: Value| run(api, &question));
    answered.unwrap_or_else(|| Answer::encode(400, b""))
}

fn run(api: &Arc<Api>, question: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| question.get(name).and_then(Value::as_str);
    let (verb, path) = (text("verb")?, text("path")?);
    let (route, parts) = routes::find(path)?;
    let (verb, _) = ANSWERED.iter().find(|known| **known == (verb, route.path))?;
    let (right, handler) = route.handler(verb)?;
    let user = User {
        tags: serde_json::from_value(question.get("tags")?.clone()).ok()?,
        ..User::named(text("user")?)
    };
    let errand = Errand {
        right,
        handler,
        path: path.to_owned(),
        parts,
        query: Query::of(serde_json::from_value(question.get("query")?.clone()).ok()?),
        reads: *verb == "GET",
        cut: Cut::Whole,
    };
    let asker = Asker {
        user,
        operator: true,
        for_node: true,
    };
    let mut headers = HeaderMap::new();
    if let Some(reason) = text("reason").and_then(|reason| HeaderValue::from_str(reason).ok()) {
        headers.insert("x-reason", reason);
    }
    let body = match question.get("body")? {
        Value::Null => Bytes::new(),
        body => body.to_string().into(),
    };
    let snapshot = Snapshot::of(api.broker.view());
    let reply = match errand.run(api, &snapshot, asker, &headers, &body) {
        Ok(reply) => reply,
        Err(refusal) => refusal.into(),
    };
    Some(Answer::encode(
        reply.status,
        reply.body.as_deref().unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_asked_is_there() {
        for (verb, path) in ANSWERED {
            let (route, _) = routes::find(&format!("/api{}", path.replace(':', "x"))).unwrap();
            assert_eq!(route.path, *path);
            assert!(route.handler(verb).is_some(), "{verb} {path}");
        }
    }
}
