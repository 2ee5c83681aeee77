//! A load's properties as a specification names them, and the flags of `leveret perf` that mean the same.

use serde_json::{Map, Value};

/// How a value becomes flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Behind the flag; PerfTest cuts numbers to whole ones.
    Plain,
    /// A number behind the flag.
    Decimal,
    /// The flag alone, if it is `true`.
    Switch,
    /// Several in one, with commas: a list, or a text that has them.
    Joined,
    /// The flag again for each.
    Repeated,
    /// `KEY=VALUE,...`: such a text, or an object.
    Pairs,
}

use Form::{Decimal, Joined, Pairs, Plain, Repeated, Switch};

/// PerfTest's properties (the setters of its `MulticastParams`) with our flags.
const PROPERTIES: &[(&str, &str, Form)] = &[
    ("autoAck", "autoack", Switch),
    ("autoDelete", "auto-delete", Plain),
    ("bodyContentType", "body-content-type", Plain),
    ("bodyCount", "body-count", Plain),
    ("bodyFieldCount", "body-field-count", Plain),
    ("bodyFiles", "body", Joined),
    ("channelPrefetch", "global-qos", Plain),
    ("confirm", "confirm", Plain),
    ("confirmTimeout", "confirm-timeout", Plain),
    ("consumerArguments", "consumer-args", Pairs),
    ("consumerChannelCount", "consumer-channel-count", Plain),
    ("consumerCount", "consumers", Plain),
    ("consumerLatencies", "variable-latency", Repeated),
    ("consumerLatencyInMicroseconds", "consumer-latency", Plain),
    ("consumerMsgCount", "cmessages", Plain),
    ("consumerPrefetch", "qos", Plain),
    ("consumerRateLimit", "consumer-rate", Decimal),
    ("consumerSlowStart", "slow-start", Switch),
    ("consumerTxSize", "ctxsize", Plain),
    ("consumersThreadPools", "consumers-thread-pools", Plain),
    ("exchangeName", "exchange", Plain),
    ("exchangeType", "type", Plain),
    ("exclusive", "exclusive", Switch),
    ("exitWhen", "exit-when", Plain),
    ("flags", "flag", Repeated),
    ("heartbeatSenderThreads", "heartbeat-sender-threads", Plain),
    ("jsonBody", "json-body", Switch),
    ("messageProperties", "message-properties", Pairs),
    ("messageSizes", "variable-size", Repeated),
    ("minMsgSize", "size", Plain),
    ("msgCount", "pmessages", Plain),
    ("msgCount", "cmessages", Plain),
    ("multiAckEvery", "multi-ack-every", Plain),
    ("nack", "nack", Switch),
    ("polling", "polling", Switch),
    ("pollingInterval", "polling-interval", Plain),
    ("predeclared", "predeclared", Switch),
    ("producerChannelCount", "producer-channel-count", Plain),
    ("producerCount", "producers", Plain),
    ("producerMsgCount", "pmessages", Plain),
    (
        "producerRandomStartDelayInSeconds",
        "producer-random-start-delay",
        Plain,
    ),
    ("producerRateLimit", "rate", Decimal),
    (
        "producerSchedulerThreadCount",
        "producer-scheduler-threads",
        Plain,
    ),
    ("producerTxSize", "ptxsize", Plain),
    ("publishingInterval", "publishing-interval", Decimal),
    ("publishingRates", "variable-rate", Repeated),
    ("queueArguments", "queue-args", Pairs),
    ("queueNames", "queue", Joined),
    ("queuePattern", "queue-pattern", Plain),
    ("queueSequenceFrom", "queue-pattern-from", Plain),
    ("queueSequenceTo", "queue-pattern-to", Plain),
    ("randomRoutingKey", "random-routing-key", Switch),
    ("requeue", "requeue", Plain),
    ("routingKey", "routing-key", Plain),
    ("routingKeyCacheSize", "routing-key-cache-size", Plain),
    ("serversStartUpTimeout", "servers-startup-timeout", Plain),
    ("serversUpLimit", "servers-up-limit", Plain),
    ("shutdownTimeout", "shutdown-timeout", Plain),
    ("skipBindingQueues", "skip-binding-queues", Switch),
    ("timeLimit", "time", Plain),
    ("useMillis", "use-millis", Switch),
];

/// PerfTest's name of a property for one of a specification's: `min-msg-size` is `minMsgSize`.
pub fn camel_case(name: &str) -> String {
    let mut parts = name.split('-');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// The same for a load's own properties, some of which have a short name.
pub fn property(name: &str) -> String {
    match name {
        "body" => "bodyFiles".to_owned(),
        "rate" => "producerRateLimit".to_owned(),
        "consumer-rate" => "consumerRateLimit".to_owned(),
        name => camel_case(name),
    }
}

/// The flags that mean the same as these properties.
///
/// # Errors
/// A line that names the property which does not exist or has no value of its kind.
pub fn flags(properties: &Map<String, Value>) -> Result<Vec<String>, String> {
    let mut flags = Vec::new();
    for (name, value) in properties {
        let mut known = PROPERTIES
            .iter()
            .filter(|(property, ..)| property == name)
            .peekable();
        if known.peek().is_none() {
            return Err(format!("Could not find property {name}{}", meant(name)));
        }
        for (_, flag, form) in known {
            let values = values(value, *form)
                .ok_or_else(|| format!("{name} is {value}, which is not a value of its kind"))?;
            for value in values {
                flags.push(format!("--{flag}"));
                flags.extend(value);
            }
        }
    }
    Ok(flags)
}

/// What stands behind the flag, as often as it is given; `None`: it can't be given so.
fn values(value: &Value, form: Form) -> Option<Vec<Option<String>>> {
    let joined = |value: &Value| match value {
        Value::Array(all) => all
            .iter()
            .map(text)
            .collect::<Option<Vec<_>>>()
            .map(|all| all.join(",")),
        value => text(value),
    };
    match form {
        Plain => Some(vec![Some(text(
            &value
                .as_f64()
                .map_or_else(|| value.clone(), |it| it.trunc().into()),
        )?)]),
        Decimal => Some(vec![Some(text(value)?)]),
        Switch => match text(value)?.as_str() {
            "true" => Some(vec![None]),
            _ => Some(Vec::new()),
        },
        Joined => Some(vec![Some(joined(value)?)]),
        Repeated => Some(
            joined(value)?
                .split(',')
                .filter(|it| !it.is_empty())
                .map(|it| Some(it.to_owned()))
                .collect(),
        ),
        Pairs => {
            let Value::Object(pairs) = value else {
                return Some(vec![Some(text(value)?)]);
            };
            let pairs = pairs
                .iter()
                .map(|(key, value)| Some(format!("{key}={}", text(value)?)));
            Some(vec![Some(pairs.collect::<Option<Vec<_>>>()?.join(","))])
        }
    }
}

/// A value as a flag takes it. Numbers of a specification are decimal in PerfTest's eyes; whole ones have no point here.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            Some(if number.fract() == 0.0 {
                format!("{number:.0}")
            } else {
                number.to_string()
            })
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn meant(name: &str) -> String {
    PROPERTIES
        .iter()
        .map(|(property, ..)| (strsim::damerau_levenshtein(name, property), property))
        .min()
        .filter(|(distance, _)| *distance <= name.len() / 2)
        .map_or_else(String::new, |(_, property)| format!("; did you mean {property}?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn flags_of(value: Value) -> Result<String, String> {
        flags(value.as_object().unwrap()).map(|flags| flags.join(" "))
    }

    #[test]
    fn properties_become_flags() {
        let table = [
            (
                json!({ "minMsgSize": 100.5, "producerRateLimit": 0.5 }),
                "--size 100 --rate 0.5",
            ),
            (json!({ "autoAck": true, "exclusive": false }), "--autoack"),
            (json!({ "msgCount": 7 }), "--pmessages 7 --cmessages 7"),
            (json!({ "queueNames": ["a", "b"] }), "--queue a,b"),
            (
                json!({ "flags": "persistent,mandatory" }),
                "--flag persistent --flag mandatory",
            ),
            (
                json!({ "queueArguments": { "x-max-length": 5 } }),
                "--queue-args x-max-length=5",
            ),
            (
                json!({ "queueArguments": "x-max-length=5,a=b" }),
                "--queue-args x-max-length=5,a=b",
            ),
            (json!({ "autoDelete": false }), "--auto-delete false"),
        ];
        for (properties, wanted) in table {
            assert_eq!(
                flags_of(properties.clone()).as_deref(),
                Ok(wanted),
                "{properties}"
            );
        }
    }

    #[test]
    fn what_is_no_property_or_no_value_is_refused() {
        let refused = flags_of(json!({ "timeLimitx": 1 })).unwrap_err();
        assert_eq!(
            refused,
            "Could not find property timeLimitx; did you mean timeLimit?"
        );
        assert!(flags_of(json!({ "timeLimit": [1] })).is_err());
        assert!(flags_of(json!({ "queueNames": [{}] })).is_err());
    }

    #[test]
    fn names_are_those_of_perftest() {
        assert_eq!(property("min-msg-size"), "minMsgSize");
        assert_eq!(property("rate"), "producerRateLimit");
        assert_eq!(camel_case("a--b-"), "aB");
    }

    #[test]
    fn every_flag_exists() {
        for (property, flag, form) in PROPERTIES {
            let value = match (form, *flag) {
                (Switch, _) | (_, "auto-delete" | "requeue") => json!(true),
                (Pairs, _) => json!("a=1"),
                (_, "variable-size" | "variable-rate" | "variable-latency") => json!("10:1"),
                (_, "exit-when") => json!("idle"),
                (_, "flag") => json!("persistent"),
                (_, "body" | "message-properties") => continue,
                _ => json!(20),
            };
            let flags = flags(json!({ *property: value }).as_object().unwrap()).unwrap();
            if let Err(failure) = crate::cli::plan(&flags, &|_| None) {
                assert!(
                    !failure.to_string().contains("Unrecognized"),
                    "{property}: {failure}"
                );
            }
        }
    }
}
