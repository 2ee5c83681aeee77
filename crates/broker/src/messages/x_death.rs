//! What a dead letter carries of its past: `x-death` and its companions, as RabbitMQ 4.3 writes them.

use model::properties::{Properties, PropertiesBuf};
use model::table::{Table, Value};
use model::{DEAD_LETTERED, Limits, Message, Timestamp};
use queue::DropReason;

/// The headers that name the first and the last death.
const FIRST: [&str; 3] = [
    "x-first-death-reason",
    "x-first-death-queue",
    "x-first-death-exchange",
];
const LAST: [&str; 3] = [
    "x-last-death-reason",
    "x-last-death-queue",
    "x-last-death-exchange",
];

/// A message after it was dead-lettered once more.
#[derive(Debug)]
pub struct Dead {
    /// Its new properties: without the expiration, with the history.
    pub properties: PropertiesBuf,
    /// Queue and reason of each death, the latest first.
    history: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What happened to a message.
#[derive(Clone, Copy, Debug)]
pub struct Death<'a> {
    /// The queue that it died in.
    pub queue: &'a str,
    /// Why.
    pub reason: DropReason,
    /// When.
    pub now: Timestamp,
    /// The keys that it was routed by, those of `CC` included and those of `BCC` not.
    pub routing_keys: &'a [Vec<u8>],
}

impl Dead {
    /// Buries a message: one entry per queue and reason, the latest first, with how often it happened. The history that a client
    /// sent along does not count (RabbitMQ since 4.0). `None` if its properties cannot be read.
    pub fn bury(message: Message<'_>, death: Death<'_>, limits: &Limits) -> Option<Self> {
        let properties = message.properties;
        let mut headers = properties.headers_table(limits).ok()?;
        let known = message.flags & DEAD_LETTERED != 0;
        let mut deaths = match headers.get("x-death") {
            Some(Value::Array(deaths)) if known => deaths.clone(),
            _ => Vec::new(),
        };
        let (queue, reason) = (death.queue.as_bytes(), reason_name(death.reason).as_bytes());
        let same = |it: &Value| is_death(it, queue, reason);
        let entry = match deaths.iter().position(same).map(|at| deaths.remove(at)) {
            Some(Value::Table(mut entry)) => {
                let count = entry.get("count").and_then(Value::as_integer).unwrap_or(0);
                entry.insert("count", Value::Long(count.saturating_add(1)));
                entry
            }
            _ => first_death(message, properties, death),
        };
        deaths.insert(0, Value::Table(entry));
        let history = deaths.iter().filter_map(named).collect();
        headers.insert("x-death", Value::Array(deaths));
        let exchange = message.exchange();
        for (name, value) in LAST.into_iter().zip([reason, queue, exchange]) {
            headers.insert(name, Value::LongStr(value.to_vec()));
        }
        if !known {
            for (name, value) in FIRST.into_iter().zip([reason, queue, exchange]) {
                headers.insert(name, Value::LongStr(value.to_vec()));
            }
        }
        // RabbitMQ orders the headers of what it changed by name.
        let headers = headers.sorted();
        let properties = properties.without_expiration()?;
        let properties = properties.as_properties().with_headers(&headers)?;
        Some(Self { properties, history })
    }

    /// True if the message would go round without anybody having rejected it: it has died in this queue before, and since then
    /// (that death included) always by itself.
    pub fn goes_round(&self, queue: &str) -> bool {
        let back = self
            .history
            .iter()
            .position(|(known, _)| known == queue.as_bytes());
        back.is_some_and(|at| {
            self.history[..=at]
                .iter()
                .all(|(_, reason)| reason != b"rejected")
        })
    }
}

/// The reason as clients see it.
pub fn reason_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::MaxLength => "maxlen",
        DropReason::Rejected => "rejected",
        DropReason::Expired => "expired",
        DropReason::DeliveryLimit => "delivery_limit",
        DropReason::Purged => "purged",
        DropReason::Unreadable => "unreadable",
    }
}

fn first_death(message: Message<'_>, properties: Properties<'_>, death: Death<'_>) -> Table {
    let mut entry = Table::new();
    if let Some(expiration) = properties.expiration_ms() {
        let shown = expiration.map_or_else(|invalid| invalid.text.to_vec(), |ms| ms.to_string().into_bytes());
        entry.push("original-expiration", Value::LongStr(shown));
    }
    let keys = death.routing_keys.iter().cloned().map(Value::LongStr).collect();
    entry.push("count", Value::Long(1));
    entry.push("reason", Value::LongStr(reason_name(death.reason).into()));
    entry.push("queue", Value::LongStr(death.queue.into()));
    entry.push("time", Value::Timestamp(death.now.0 / 1000));
    entry.push("exchange", Value::LongStr(message.exchange().to_vec()));
    entry.push("routing-keys", Value::Array(keys));
    entry
}

fn is_death(entry: &Value, queue: &[u8], reason: &[u8]) -> bool {
    named(entry).is_some_and(|(known, why)| known == queue && why == reason)
}

fn named(entry: &Value) -> Option<(Vec<u8>, Vec<u8>)> {
    let entry = entry.as_table()?;
    let text = |name| entry.get(name).and_then(Value::as_bytes).map(<[u8]>::to_vec);
    Some((text("queue")?, text("reason")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::properties::PropertiesBuilder;
    use model::{BlockBuilder, RouteBuf};

    fn bury(properties: Properties<'_>, flags: u8, queue: &str, reason: DropReason) -> Dead {
        let mut builder = BlockBuilder::new();
        builder.push_message(&Message {
            route: RouteBuf::new(b"x", b"k").as_route(),
            properties,
            body: b"body",
            flags,
        });
        let block = builder.finish(false, Timestamp(0));
        let death = Death {
            queue,
            reason,
            now: Timestamp(5_999),
            routing_keys: &[b"k".to_vec()],
        };
        Dead::bury(block.message(0), death, &Limits::STORED).unwrap()
    }

    fn headers(dead: &Dead) -> Table {
        dead.properties
            .as_properties()
            .headers_table(&Limits::default())
            .unwrap()
    }

    fn entries(dead: &Dead) -> Vec<String> {
        let told = headers(dead);
        let Some(Value::Array(deaths)) = told.get("x-death") else {
            panic!("{dead:?}")
        };
        let shown = |entry: &Value| {
            let (queue, reason) = named(entry).unwrap();
            let count = entry
                .as_table()
                .unwrap()
                .get("count")
                .unwrap()
                .as_integer()
                .unwrap();
            format!(
                "{} {} {count}",
                String::from_utf8(queue).unwrap(),
                String::from_utf8(reason).unwrap()
            )
        };
        deaths.iter().map(shown).collect()
    }

    #[test]
    fn the_first_death_is_told_in_full_and_the_expiration_goes() {
        let sent = Table::new().with("z", 1).with("a", 2);
        let properties = PropertiesBuilder::new()
            .headers(&sent)
            .expiration("0100")
            .delivery_mode(2)
            .encode();
        let dead = bury(Properties::amqp091(&properties), 0, "q", DropReason::Expired);
        let told = headers(&dead);
        let names: Vec<_> = told
            .iter()
            .map(|(name, _)| String::from_utf8_lossy(name))
            .collect();
        assert_eq!(
            names.join(" "),
            "a x-death x-first-death-exchange x-first-death-queue x-first-death-reason x-last-death-exchange \
             x-last-death-queue x-last-death-reason z"
        );
        let Some(Value::Array(deaths)) = told.get("x-death") else {
            panic!("{told:?}")
        };
        let wanted = Table::new()
            .with("original-expiration", "100")
            .with("count", Value::Long(1))
            .with("reason", "expired")
            .with("queue", "q")
            .with("time", Value::Timestamp(5))
            .with("exchange", "x")
            .with("routing-keys", Value::Array(vec![Value::LongStr(b"k".to_vec())]));
        assert_eq!(deaths, &[Value::Table(wanted)]);
        let properties = dead.properties.as_properties();
        assert_eq!(properties.expiration_ms(), None);
        assert!(properties.persistent());
    }

    #[test]
    fn deaths_are_counted_by_queue_and_reason_and_the_latest_stands_first() {
        let one = bury(Properties::amqp091(&[0, 0]), 0, "a", DropReason::Expired);
        let two = bury(
            one.properties.as_properties(),
            DEAD_LETTERED,
            "b",
            DropReason::Expired,
        );
        assert_eq!(entries(&two), ["b expired 1", "a expired 1"]);
        let three = bury(
            two.properties.as_properties(),
            DEAD_LETTERED,
            "a",
            DropReason::Expired,
        );
        assert_eq!(entries(&three), ["a expired 2", "b expired 1"]);
        let four = bury(
            three.properties.as_properties(),
            DEAD_LETTERED,
            "a",
            DropReason::MaxLength,
        );
        assert_eq!(entries(&four), ["a maxlen 1", "a expired 2", "b expired 1"]);
        assert_eq!(
            headers(&four).get("x-first-death-queue").unwrap().as_str(),
            Some("a")
        );
        assert_eq!(
            headers(&four).get("x-first-death-reason").unwrap().as_str(),
            Some("expired")
        );
        assert_eq!(
            headers(&four).get("x-last-death-reason").unwrap().as_str(),
            Some("maxlen")
        );
    }

    #[test]
    fn a_history_may_be_longer_than_what_a_client_may_send() {
        let mut properties = PropertiesBuf::amqp091(vec![0, 0]);
        for at in 0..200 {
            let flags = if at == 0 { 0 } else { DEAD_LETTERED };
            let before = properties.as_properties();
            properties = bury(before, flags, &format!("q{at}"), DropReason::Expired).properties;
        }
        let properties = properties.as_properties();
        let told = properties.headers_table(&Limits::STORED).unwrap();
        assert!(properties.headers_table(&Limits::default()).is_err());
        assert!(matches!(told.get("x-death"), Some(Value::Array(deaths)) if deaths.len() == 200));
    }

    #[test]
    fn a_history_that_a_client_sends_does_not_count() {
        let one = bury(Properties::amqp091(&[0, 0]), 0, "a", DropReason::Expired);
        let again = bury(one.properties.as_properties(), 0, "b", DropReason::Rejected);
        assert_eq!(entries(&again), ["b rejected 1"]);
        assert_eq!(
            headers(&again).get("x-first-death-queue").unwrap().as_str(),
            Some("b")
        );
    }

    #[test]
    fn only_what_goes_round_by_itself_is_a_cycle() {
        let one = bury(Properties::amqp091(&[0, 0]), 0, "a", DropReason::Expired);
        assert!(one.goes_round("a"));
        assert!(!one.goes_round("b"));
        let two = bury(
            one.properties.as_properties(),
            DEAD_LETTERED,
            "b",
            DropReason::Rejected,
        );
        assert!(!two.goes_round("a"));
        assert!(!two.goes_round("b"));
        let three = bury(
            two.properties.as_properties(),
            DEAD_LETTERED,
            "c",
            DropReason::MaxLength,
        );
        assert!(three.goes_round("c"));
        assert!(!three.goes_round("a"));
    }
}
