//! Moving and copying messages from a queue to an exchange, and sending dead ones back to where they came from. What is moved
//! leaves its queue only once its new queues have confirmed it: after a crash in between it is in both.

use crate::access::Right;
use crate::arguments::text;
use crate::call::Call;
use crate::desk::{CHANNEL, Desk};
use crate::exchanges::real_name;
use crate::json;
use crate::messages::{Held, need, next, told};
use crate::queues;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::Route;
use broker::{Disposal, Event, Publish, QueueRef};
use model::properties::Properties;
use model::{Limits, Message, Ranges, Seq};
use serde_json::{Map, Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/queues/:vhost/:name/move",
    verbs: &[("POST", Right::Vhost, move_messages)],
}];

/// How many messages one request moves at the most; whoever wants more asks again, and can stop in between.
const MESSAGES: u64 = 1000;
/// How many messages wait for their confirms at a time.
const BATCH: usize = 100;
/// How many bytes of bodies do, and one message more.
const BATCH_BYTES: usize = 8 * 1024 * 1024;

/// What is asked for.
struct Asked {
    count: u64,
    /// The messages stay where they are as well.
    copy: bool,
    /// Where to; `None` for where each one died first.
    target: Option<(String, String)>,
}

impl Asked {
    fn of(body: &Map<String, Value>) -> Result<Self, Refusal> {
        need(body, &["count"])?;
        let count = body["count"].as_u64();
        let count = count.ok_or_else(|| Refusal::BadRequest(json!(["not_integer", body["count"]])))?;
        let flag = |name: &str| match body.get(name) {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(Refusal::BadRequest(json!(["not_boolean", other]))),
        };
        let target = match flag("origin")? {
            true => None,
            false => {
                need(body, &["exchange", "routing_key"])?;
                let word = |name| Ok::<_, Refusal>(text(body, name)?.unwrap_or_default().to_owned());
                Some((word("exchange")?, word("routing_key")?))
            }
        };
        Ok(Self {
            count: count.min(MESSAGES),
            copy: flag("copy")?,
            target,
        })
    }
}

/// What became of the messages of a request.
#[derive(Default)]
struct Outcome {
    moved: u64,
    /// No queue took them, or one had no room.
    refused: u64,
    /// They never died.
    without_origin: u64,
    /// Ready messages behind the last one.
    left: u64,
}

/// Messages that are published and not confirmed yet.
#[derive(Default)]
struct Pending {
    seqs: Vec<Seq>,
    /// How many queues have yet to answer, by confirm number less one, and whether one refused.
    awaited: Vec<(u32, bool)>,
    bytes: usize,
}

fn move_messages(call: &Call<'_>) -> Result<Reply, Refusal> {
    let asked = Asked::of(&call.json()?)?;
    queues::find(call).map_err(|_| Refusal::Missing("queue_not_found".into()))?;
    let desk = Desk::open(call)?;
    let limits = call.hall.broker.limits();
    let mut outcome = Outcome::default();
    // What is not moved goes back to its place at the end, so that no message is met twice.
    let mut back = Held::default();
    let mut seen = 0;
    let mut more = true;
    while more && seen < asked.count {
        let mut batch = Pending::default();
        let mut from = None;
        while seen < asked.count && batch.seqs.len() < BATCH && batch.bytes < BATCH_BYTES {
            let Some((delivery, remaining, queue)) = next(&desk, call.part("name"))? else {
                more = false;
                outcome.left = 0;
                break;
            };
            let Some(seq) = delivery.seqs.first() else {
                break;
            };
            seen += 1;
            outcome.left = remaining;
            // Held first: whatever ends this request gives it back.
            back.hold(&queue, seq);
            from = Some(queue);
            let message = delivery.block.message((seq - delivery.base) as usize);
            let target = asked.target.clone().or_else(|| origin(&message, limits));
            match target {
                Some((exchange, key)) => batch.publish(&desk, &message, seq, &exchange, &key)?,
                None => outcome.without_origin += 1,
            }
        }
        if let Some(queue) = from {
            let (arrived, refused) = batch.settle(&desk, &queue, asked.copy, &mut back)?;
            outcome.moved += arrived;
            outcome.refused += refused;
        }
    }
    let stay = outcome.refused + outcome.without_origin + if asked.copy { outcome.moved } else { 0 };
    drop(back);
    tracing::info!(
        area = "management",
        user = call.user.name,
        vhost = call.part("vhost"),
        queue = call.part("name"),
        copy = asked.copy,
        moved = outcome.moved,
        stay,
        "messages were moved by an operator"
    );
    Ok(Reply::json(&json!({
        "moved": outcome.moved,
        "refused": outcome.refused,
        "without_origin": outcome.without_origin,
        "left": outcome.left,
    })))
}

impl Pending {
    fn publish(
        &mut self,
        desk: &Desk,
        message: &Message<'_>,
        seq: Seq,
        exchange: &str,
        key: &str,
    ) -> Result<(), Refusal> {
        self.seqs.push(seq);
        self.bytes += message.body.len();
        let mut publisher = desk.session().publisher(CHANNEL);
        let taken = publisher
            .publish(
                &Publish {
                    exchange: real_name(exchange).as_bytes(),
                    routing_key: key.as_bytes(),
                    properties: message.properties,
                    body: message.body,
                },
                Some(self.seqs.len() as u64),
            )
            .map_err(|refusal| told(&refusal))?;
        publisher.flush();
        self.awaited.push((taken.queues, taken.is_lost()));
        Ok(())
    }

    /// Waits for the confirms, and lets go of what has arrived. Returns how many did and how many did not.
    fn settle(
        mut self,
        desk: &Desk,
        queue: &QueueRef,
        copy: bool,
        back: &mut Held,
    ) -> Result<(u64, u64), Refusal> {
        while self.awaited.iter().any(|(queues, _)| *queues > 0) {
            let (numbers, refused) = desk.wait(|event| match event {
                Event::Confirm { numbers, .. } => Some((numbers, false)),
                Event::Reject { numbers, .. } => Some((numbers, true)),
                _ => None,
            })?;
            for (first, last) in numbers.spans() {
                for number in first..=last {
                    if let Some(awaited) = self.awaited.get_mut(number as usize - 1) {
                        awaited.0 = awaited.0.saturating_sub(1);
                        awaited.1 |= refused;
                    }
                }
            }
        }
        let arrived = self
            .seqs
            .iter()
            .zip(&self.awaited)
            .filter(|(_, (_, refused))| !refused);
        let mut gone = Ranges::new();
        let mut count = 0;
        for (seq, _) in arrived {
            count += 1;
            if !copy {
                gone.push(*seq);
            }
        }
        if !gone.is_empty() {
            back.let_go(&gone);
            queue.settle(None, gone, Disposal::Accepted);
        }
        Ok((count, self.seqs.len() as u64 - count))
    }
}

/// Where a message died first: the exchange and the key by which it came into that queue.
fn origin(message: &Message<'_>, limits: &Limits) -> Option<(String, String)> {
    let headers = Properties::new(message.properties).headers_table(limits).ok()?;
    let headers = json::table(&headers);
    // The oldest death is the last of the list.
    let death = headers.get("x-death")?.as_array()?.last()?;
    let key = death.get("routing-keys")?.get(0)?.as_str()?;
    Some((death.get("exchange")?.as_str()?.to_owned(), key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Asked, Refusal> {
        let value: Value = serde_json::from_str(text).unwrap();
        Asked::of(value.as_object().unwrap())
    }

    #[test]
    fn a_move_needs_a_number_and_a_target_or_the_origin() {
        let asked = read(r#"{"count": 5000, "origin": true}"#).unwrap();
        assert_eq!((asked.count, asked.copy, asked.target), (MESSAGES, false, None));
        let asked = read(r#"{"count": 1, "copy": true, "exchange": "e", "routing_key": ""}"#).unwrap();
        assert_eq!(asked.target, Some(("e".into(), String::new())));
        for wrong in [
            r#"{"count": "x", "origin": true}"#,
            r#"{"count": 1}"#,
            r#"{"count": 1, "exchange": "e"}"#,
            r#"{"count": 1, "origin": 1}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
