//! One event as one line. A peer can put anything into a name or a property, so control characters never reach
//! the log as they are: a line stays one line.

use super::area;
use super::clock::WallTime;
use crate::logs::LogFormat;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes events in one of the two forms.
pub struct LineFormat {
    format: LogFormat,
}

impl LineFormat {
    pub fn new(format: LogFormat) -> Self {
        Self { format }
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let meta = event.metadata();
        let from = area::crate_of(meta);
        let head = Head {
            time: WallTime::now(),
            level: level_name(*meta.level()),
            area: fields.area.as_deref().unwrap_or(from),
        };
        match self.format {
            LogFormat::Text => write_text(&mut out, &head, &fields),
            LogFormat::Json => write_json(&mut out, &head, &fields),
        }
    }
}

/// An event's area, if it names one, and what it says on one line, with its fields.
pub fn area_and_text(event: &Event<'_>) -> (Option<String>, String) {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_body(&mut text, &fields);
    (fields.area, text)
}

/// An event as a line of JSON, without the end of the line.
pub fn json(event: &Event<'_>) -> String {
    let mut fields = Fields::default();
    event.record(&mut fields);
    let meta = event.metadata();
    let head = Head {
        time: WallTime::now(),
        level: level_name(*meta.level()),
        area: fields.area.as_deref().unwrap_or(area::crate_of(meta)),
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_json(&mut text, &head, &fields);
    text.truncate(text.trim_end().len());
    text
}

struct Head<'a> {
    time: WallTime,
    level: &'static str,
    area: &'a str,
}

/// RabbitMQ's word for a level.
pub fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// The message of an event, and its other fields in order.
#[derive(Default)]
struct Fields {
    message: String,
    /// The field `area`, by which a crate can say more exactly which part of it speaks.
    area: Option<String>,
    others: Vec<(&'static str, Value)>,
}

enum Value {
    /// A number or a truth value: bare in JSON.
    Bare(String),
    Text(String),
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::Bare(text) | Value::Text(text)) => self.message = text,
            ("area", Value::Text(text)) => self.area = Some(text),
            (name, value) => self.others.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::Bare(value.to_string()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::Bare(value.to_string()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::Bare(value.to_string()));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::Text(value.to_owned()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::Text(format!("{value:?}")));
    }
}

fn write_text(out: &mut impl Write, head: &Head<'_>, fields: &Fields) -> fmt::Result {
    write!(out, "{} [{}] {}: ", head.time, head.level, head.area)?;
    write_body(out, fields)?;
    out.write_char('\n')
}

fn write_body(out: &mut impl Write, fields: &Fields) -> fmt::Result {
    write_escaped(out, &fields.message, false)?;
    for (name, value) in &fields.others {
        write!(out, " {name}=")?;
        match value {
            Value::Bare(text) => out.write_str(text)?,
            Value::Text(text) if is_one_word(text) => out.write_str(text)?,
            Value::Text(text) => {
                out.write_char('"')?;
                write_escaped(out, text, true)?;
                out.write_char('"')?;
            }
        }
    }
    Ok(())
}

fn is_one_word(text: &str) -> bool {
    !text.is_empty()
        && !text
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || "\"\\=".contains(c))
}

fn write_json(out: &mut impl Write, head: &Head<'_>, fields: &Fields) -> fmt::Result {
    write!(
        out,
        "{{\"time\":\"{}\",\"level\":\"{}\",\"area\":\"{}\",\"msg\":\"",
        head.time, head.level, head.area
    )?;
    write_escaped(out, &fields.message, true)?;
    out.write_char('"')?;
    for (name, value) in &fields.others {
        write!(out, ",\"{name}\":")?;
        match value {
            Value::Bare(text) => out.write_str(text)?,
            Value::Text(text) => {
                out.write_char('"')?;
                write_escaped(out, text, true)?;
                out.write_char('"')?;
            }
        }
    }
    out.write_str("}\n")
}

/// Writes text with control characters (and, if `quoted`, quotes and backslashes) escaped as in JSON.
fn write_escaped(out: &mut impl Write, text: &str, quoted: bool) -> fmt::Result {
    for c in text.chars() {
        match c {
            '"' | '\\' if quoted => write!(out, "\\{c}")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            // The line and paragraph separators end a line for some readers of JSON and some terminals.
            c if c.is_control() || c == '\u{2028}' || c == '\u{2029}' => {
                write!(out, "\\u{:04x}", u32::from(c))?
            }
            c => out.write_char(c)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::sync::{Arc, Mutex};
    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Sink {
        type Writer = Sink;

        fn make_writer(&'a self) -> Sink {
            self.clone()
        }
    }

    /// What is written for the events of `log`, without the time.
    fn written(format: LogFormat, log: impl FnOnce()) -> String {
        let sink = Sink::default();
        let layer = tracing_subscriber::fmt::layer()
            .event_format(LineFormat::new(format))
            .with_writer(sink.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), log);
        let bytes = sink.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_text_line() {
        let line = written(LogFormat::Text, || {
            tracing::info!(target: "gateway::amqp", peer = "127.0.0.1:5000", channels = 3, "connection \"x\" accepted");
        });
        let (time, rest) = line.split_at("2026-11-21 02:00:00.123".len());
        assert!(time.starts_with("20") && time.contains('.'), "{time}");
        assert_eq!(
            rest,
            " [info] gateway: connection \"x\" accepted peer=127.0.0.1:5000 channels=3\n"
        );
    }

    #[test]
    fn a_json_line() {
        let line = written(LogFormat::Json, || {
            tracing::warn!(target: "broker", area = "alarms", vhost = "/", full = true, "a \"b\"\n\u{1}");
        });
        let rest = &line[line.find(",\"level\"").unwrap()..];
        assert_eq!(
            rest,
            ",\"level\":\"warning\",\"area\":\"alarms\",\"msg\":\"a \\\"b\\\"\\n\\u0001\",\"vhost\":\"/\",\"full\":true}\n"
        );
    }

    #[test]
    fn names_from_outside_cannot_forge_a_line() {
        let line = written(LogFormat::Text, || {
            let user = "x\n2026-11-21 02:00:00.123 [error] broker: lost";
            tracing::info!(target: "broker", user, "login of {user}");
        });
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(line.contains("user=\"x\\n2026"), "{line}");
    }
}
