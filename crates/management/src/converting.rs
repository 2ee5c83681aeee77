//! Queues become ones of another kind, in their place and by their names. See decision note 64.

use crate::access::Right;
use crate::arguments::{boolean, text};
use crate::call::Call;
use crate::json;
use crate::others::{self, Question};
use crate::queues::find;
use crate::refusal::{Refusal, need};
use crate::reply::Reply;
use crate::route::Route;
use broker::{Conversion, QueueKind, QueueView};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/queues/:vhost/:name/convert",
    verbs: &[("POST", Right::Administrator, convert)],
}];

/// Converts a queue, or says what would be otherwise. Asked again it says whether the queue is where it is to be; so does a dry
/// run of what has been done.
fn convert(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    let body = call.json()?;
    let wanted = Wanted::of(&body)?;
    let conversion = call.view.conversion(queue, wanted.kind)?;
    if wanted.dry_run && queue.kind != wanted.kind {
        return Ok(Reply::json(&told(queue, &wanted, &conversion)));
    }
    if !conversion.lost.is_empty() && !wanted.force {
        return Err(Refusal::bad_request(format!(
            "queue '{}' in vhost '{}' would lose {}: it is converted if you force it",
            queue.name,
            queue.vhost,
            conversion.lost.join(", ")
        )));
    }
    // Whoever decides of the queue knows how far it is, and has to run for it.
    let place = call.view.node_name(call.api.broker.place_of(queue));
    if !call.for_node {
        let question = Question {
            verb: "POST",
            body: Value::Object(body),
            ..Question::again(call)
        };
        if let Some(answer) = others::said_by(call, place, question)? {
            return Ok(answer.into());
        }
    }
    let converts = queue.kind != wanted.kind && !wanted.dry_run;
    if converts {
        tracing::info!(
            area = "management",
            "user '{}' converts queue '{}' in vhost '{}' to a {} queue",
            call.user.name,
            queue.name,
            queue.vhost,
            wanted.kind.name()
        );
        let by = call.api.broker.administrator(&call.user.name);
        by.convert_queue(&queue.vhost, &queue.name, wanted.kind)?;
    }
    let view = call.api.broker.view();
    let now = view.queue(&queue.vhost, &queue.name);
    let mut answer = told(queue, &wanted, &conversion);
    answer["converted"] = converts.into();
    answer["in_place"] = now.is_some_and(|now| call.api.broker.is_in_place(now)).into();
    Ok(Reply::json(&answer))
}

/// What a body asks for.
struct Wanted {
    kind: QueueKind,
    dry_run: bool,
    force: bool,
}

impl Wanted {
    fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        need(body, &["type"])?;
        let kind = match text(body, "type")? {
            Some("classic") => QueueKind::Classic,
            Some("quorum") => QueueKind::Quorum,
            _ => return Err(Refusal::bad_request("type must be one of: classic, quorum")),
        };
        Ok(Self {
            kind,
            dry_run: boolean(body, "dry_run")?,
            force: boolean(body, "force")?,
        })
    }
}

fn told(queue: &QueueView, wanted: &Wanted, conversion: &Conversion) -> Value {
    json!({
        "vhost": &*queue.vhost,
        "name": &*queue.name,
        "from": queue.kind.name(),
        "type": wanted.kind.name(),
        "arguments": {
            "from": json::table(&queue.arguments),
            "to": json::table(&conversion.arguments),
        },
        "lost": conversion.lost,
        "differences": conversion.differences,
    })
}
