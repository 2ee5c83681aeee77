//! Who looks at the firehose of a virtual host: a queue of their own takes copies, and each turn empties it.
//!
//! The queue is exclusive to a session that ends with the answer, and bounded: when more passes than is looked at, the
//! oldest copies go.

use crate::access::Asker;
use crate::api_session::{ApiSession, CHANNEL};
use crate::messages::{described, next};
use crate::refusal::Refusal;
use crate::telling::TraceFilter;
use crate::text::event;
use broker::{Binding, Broker, DeclareQueue, Delivery, User};
use model::Limits;
use model::table::Table;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;

/// The exchange of the firehose.
const EXCHANGE: &str = "amq.rabbitmq.trace";
/// How many copies wait for the next turn at the most, and how many bytes of bodies.
const WAITING: (i64, i64) = (1_000, 16 * 1024 * 1024);
/// How many copies one turn tells at the most, and how many bytes of JSON. Those that passed last are told.
const TOLD: (usize, usize) = (200, 1024 * 1024);

/// A queue at the firehose.
pub struct Tap {
    session: ApiSession,
    queue: String,
    broker: Arc<Broker>,
    wanted: TraceFilter,
}

impl Tap {
    /// Begins to look. Whoever asks is an administrator: no other permission is asked for.
    ///
    /// # Errors
    /// The virtual host is gone, or the queue can't be made.
    pub fn open(broker: &Arc<Broker>, user: User, wanted: TraceFilter) -> Result<Self, Refusal> {
        let operator = Asker {
            user,
            operator: true,
            for_node: false,
        };
        let session = ApiSession::open_as(broker, operator, &wanted.vhost)?;
        let (messages, bytes) = WAITING;
        let declared = session
            .inner()
            .declare_queue(
                CHANNEL,
                DeclareQueue {
                    exclusive: true,
                    arguments: Table::new()
                        .with("x-max-length", messages)
                        .with("x-max-length-bytes", bytes),
                    ..DeclareQueue::default()
                },
            )
            .map_err(|refusal| Refusal::of_broker(&refusal))?;
        session.durable(declared.durable)?;
        let queue = declared.value.name;
        let bound = session
            .inner()
            .bind_queue(
                CHANNEL,
                Binding {
                    source: EXCHANGE,
                    destination: &queue,
                    routing_key: wanted.key.as_bytes(),
                    arguments: Table::new(),
                },
            )
            .map_err(|refusal| Refusal::of_broker(&refusal))?;
        session.durable(bound.durable)?;
        Ok(Self {
            session,
            queue,
            broker: broker.clone(),
            wanted,
        })
    }

    /// What has passed since the last turn, as events: `trace` with the copies, if there are any, then `turn`.
    ///
    /// # Errors
    /// The virtual host is gone, or the queue can't be read.
    pub fn turn(&self) -> Result<String, Refusal> {
        let mut told = Told::default();
        let (mut passed, mut is_full) = (0, false);
        while passed < WAITING.0 {
            let Some((delivery, remaining, _)) = next(&self.session, &self.queue, true)? else {
                break;
            };
            is_full |= remaining + 1 >= WAITING.0 as u64;
            passed += 1;
            if let Some(row) = row(&delivery, &self.wanted, &Limits::STORED) {
                told.push(&row);
            }
        }
        let is_on = self.broker.is_traced(&self.wanted.vhost);
        let mut events = String::new();
        if passed > 0 {
            let head = json!({"passed": passed, "full": is_full}).to_string();
            let messages = told.lines.make_contiguous().join(",");
            let line = format!("{},\"messages\":[{messages}]}}", head.trim_end_matches('}'));
            events.push_str(&event("trace", &line));
        }
        let now_ms = self.session.inner().now_ms();
        events.push_str(&event(
            "turn",
            &json!({"at": now_ms, "tracing": is_on}).to_string(),
        ));
        Ok(events)
    }
}

/// The last copies of a turn, as lines of JSON.
#[derive(Default)]
struct Told {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Told {
    fn push(&mut self, row: &Value) {
        let line = row.to_string();
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > TOLD.0 || (self.bytes > TOLD.1 && self.lines.len() > 1) {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

/// A copy as it is told: what the message was, and who sent or got it. `None` if it isn't meant.
fn row(delivery: &Delivery, wanted: &TraceFilter, limits: &Limits) -> Option<Value> {
    let seq = delivery.seqs.first()?;
    let copy = delivery.block.message((seq - delivery.base) as usize);
    let mut row = described(&copy, false, wanted.truncate, limits);
    let mut headers = match row.remove("properties").map(|mut it| it["headers"].take()) {
        Some(Value::Object(headers)) => headers,
        _ => Map::new(),
    };
    if !wanted.takes(&headers) {
        return None;
    }
    let key = row.remove("routing_key").unwrap_or_default();
    let (kind, name) = key
        .as_str()
        .and_then(|key| key.split_once('.'))
        .unwrap_or_default();
    row.insert("kind".into(), kind.into());
    if kind == "deliver" {
        row.insert("queue".into(), name.into());
    }
    row.insert("at".into(), delivery.block.received().0.into());
    row.insert(
        "exchange".into(),
        headers.remove("exchange_name").unwrap_or_default(),
    );
    let keys = headers.remove("routing_keys").unwrap_or_default();
    row.insert(
        "routing_key".into(),
        keys.get(0).cloned().unwrap_or_else(|| "".into()),
    );
    for name in ["user", "connection", "channel", "properties", "routed_queues"] {
        if let Some(value) = headers.remove(name) {
            row.insert(name.into(), value);
        }
    }
    if let Some(again) = headers.remove("redelivered") {
        row.insert("redelivered".into(), (again == 1).into());
    }
    Some(Value::Object(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_copies_the_last_are_told() {
        let mut told = Told::default();
        (0..TOLD.0 + 5).for_each(|at| told.push(&at.into()));
        assert_eq!((told.lines.len(), told.lines[0].as_str()), (TOLD.0, "5"));
    }

    #[test]
    fn large_copies_are_fewer_and_one_is_always_told() {
        let mut told = Told::default();
        (0..5).for_each(|_| told.push(&"x".repeat(TOLD.1 / 2 - 2).into()));
        assert_eq!(told.lines.len(), 2);
        told.push(&"x".repeat(TOLD.1 * 2).into());
        assert_eq!((told.lines.len(), told.bytes), (1, TOLD.1 * 2 + 2));
    }
}
