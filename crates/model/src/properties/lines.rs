//! A second format of properties, for tests: a line of text for each, `name value`, and `header name value`.

use super::PropertiesBuilder;
use crate::table::Table;

type Setter = fn(PropertiesBuilder, &[u8]) -> PropertiesBuilder;

/// The value behind a name; empty if nothing stands there.
pub fn value<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    lines(bytes).find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?;
        match rest {
            [] => Some(rest),
            [b' ', value @ ..] => Some(value),
            _ => None,
        }
    })
}

/// The number behind a name.
pub fn number<T: std::str::FromStr>(bytes: &[u8], name: &str) -> Option<T> {
    std::str::from_utf8(value(bytes, name)?).ok()?.parse().ok()
}

/// The same as flags and list. A header that is a number becomes one.
pub fn to_amqp091(bytes: &[u8]) -> Vec<u8> {
    let mut headers = Table::new();
    for line in lines(bytes) {
        let line = String::from_utf8_lossy(line);
        if let ["header", name, value] = *line.splitn(3, ' ').collect::<Vec<_>>() {
            match value.parse::<i64>() {
                Ok(number) => headers.push(name, number),
                Err(_) => headers.push(name, value),
            }
        }
    }
    let mut builder = PropertiesBuilder::new();
    if !headers.is_empty() {
        builder = builder.headers(&headers);
    }
    if value(bytes, "durable").is_some() {
        builder = builder.delivery_mode(2);
    }
    if let Some(priority) = number(bytes, "priority") {
        builder = builder.priority(priority);
    }
    if let Some(seconds) = number(bytes, "created") {
        builder = builder.timestamp(seconds);
    }
    let setters: [(&str, Setter); 4] = [
        ("ttl", |builder, text| builder.expiration(text)),
        ("user", |builder, text| builder.user_id(text)),
        ("id", |builder, text| builder.message_id(text)),
        ("correlation", |builder, text| builder.correlation_id(text)),
    ];
    for (name, set) in setters {
        if let Some(text) = value(bytes, name) {
            builder = set(builder, text);
        }
    }
    builder.encode()
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n')
}
