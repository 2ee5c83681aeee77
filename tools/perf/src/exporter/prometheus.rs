//! The page that Prometheus collects.

use super::Shared;
use super::meter::{Kind, Meter, Summary};
use crate::failure::Failure;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use std::fmt::Write;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// Micrometer's type for the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes the page each time that it is asked for.
pub type Text = Arc<dyn Fn() -> String + Send + Sync>;

/// A server on a thread of its own.
pub struct Page {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Page {
    /// Serves what a board shows.
    pub fn of(port: u16, path: &str, board: Shared) -> Result<Self, Failure> {
        let page = move || {
            let board = board.lock().unwrap_or_else(PoisonError::into_inner);
            text(&board.meters(), board.tags())
        };
        Self::start(port, path, "--metrics-prometheus-port", Arc::new(page))
    }

    /// Serves a text under `path` at a port of all addresses; port 0 takes a free one. `flag` is what the port comes from.
    pub fn start(port: u16, path: &str, flag: &'static str, page: Text) -> Result<Self, Failure> {
        let refused = |error: io::Error| {
            Failure::File(format!(
                "cannot serve metrics on port {port}: {error}. Choose another port with {flag}"
            ))
        };
        let listener = listen(port).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(refused)?;
        let (stop, stopped) = oneshot::channel();
        let path = format!("/{}", path.trim_start_matches('/'));
        let serve = move || {
            runtime.block_on(async move {
                if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                    tokio::spawn(axum::serve(listener, router(&path, page)).into_future());
                    let _ = stopped.await;
                }
            });
        };
        let thread = thread::Builder::new()
            .name("metrics".into())
            .spawn(serve)
            .map_err(refused)?;
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes the port and every connection.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// IPv4 and IPv6, or IPv4 alone where there is no IPv6.
fn listen(port: u16) -> io::Result<TcpListener> {
    TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
        _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
    })
}

fn router(path: &str, page: Text) -> Router {
    let page = move || async move { ([(CONTENT_TYPE, TEXT)], page()) };
    // A path is matched as it is: braces would be axum's parameters.
    let page = get(page);
    if path.contains(['{', '}']) {
        Router::new().fallback_service(page)
    } else {
        Router::new().route(path, page)
    }
}

/// The text format, as the Prometheus client of PerfTest writes it: sorted by name, then by labels.
pub fn text(meters: &[Meter], tags: &[(String, String)]) -> String {
    let mut meters: Vec<(String, &Meter)> = meters.iter().map(|meter| (name(meter), meter)).collect();
    meters.sort_by(|(one, _), (other, _)| {
        one.trim_end_matches("_total")
            .cmp(other.trim_end_matches("_total"))
    });
    let mut text = String::new();
    let mut last = "";
    for (name, meter) in &meters {
        let labels = labels(meter, tags);
        let kind = match meter.kind {
            Kind::Gauge(_) => "gauge",
            Kind::Counter(_) => "counter",
            Kind::Summary(_) => "summary",
        };
        if last != name {
            head(&mut text, name, meter.help, kind);
            last = name;
        }
        match &meter.kind {
            Kind::Gauge(value) | Kind::Counter(value) => line(&mut text, name, &labels, &number(*value)),
            Kind::Summary(summary) => write_summary(&mut text, name, meter.help, &labels, summary),
        }
    }
    text
}

fn write_summary(text: &mut String, name: &str, help: &str, labels: &str, summary: &Summary) {
    for (quantile, value) in Summary::QUANTILES.iter().zip(summary.points) {
        let comma = if labels.is_empty() { "" } else { "," };
        line(
            text,
            name,
            &format!("{labels}{comma}quantile=\"{quantile}\""),
            &number(value),
        );
    }
    line(text, &format!("{name}_count"), labels, &summary.count.to_string());
    line(text, &format!("{name}_sum"), labels, &number(summary.sum));
    let max = format!("{name}_max");
    head(text, &max, help, "gauge");
    line(text, &max, labels, &number(summary.max));
}

/// A metric without help has a space for it.
fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let help = if help.is_empty() { " " } else { help };
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(text: &mut String, name: &str, labels: &str, value: &str) {
    let _ = match labels {
        "" => writeln!(text, "{name} {value}"),
        labels => writeln!(text, "{name}{{{labels}}} {value}"),
    };
}

/// The tags and the metric's own labels, sorted; a metric's own wins over a tag of the same name.
fn labels(meter: &Meter, tags: &[(String, String)]) -> String {
    let mut all: Vec<(String, &str)> = Vec::new();
    for (key, value) in meter.labels.iter().chain(tags) {
        let key = word(key);
        if !all.iter().any(|(taken, _)| *taken == key) {
            all.push((key, value));
        }
    }
    all.sort();
    let each = all
        .iter()
        .map(|(key, value)| format!("{key}=\"{}\"", escaped(value)));
    each.collect::<Vec<_>>().join(",")
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The metric's name in Prometheus.
fn name(meter: &Meter) -> String {
    word(&meter.name) + meter.suffix
}

/// What is neither letter, digit nor underscore becomes an underscore, and a digit does not stand first, as micrometer
/// has it.
fn word(text: &str) -> String {
    let mut word: String = text
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        })
        .collect();
    if word.starts_with(|first: char| first.is_ascii_digit()) {
        word.insert_str(0, "m_");
    }
    word
}

/// A number as Java writes it, which is what PerfTest's page shows: `50.0`, `4.25984E-4`, `1.572864E7`.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:E}");
    match text.split_once('E') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        let written = [
            0.0,
            50.0,
            0.002080768,
            4.25984e-4,
            15_728_640.0,
            1e7,
            1.61e9,
            0.001,
            60.5,
            -1.0,
            f64::NAN,
        ];
        assert_eq!(
            written.map(number),
            [
                "0.0",
                "50.0",
                "0.002080768",
                "4.25984E-4",
                "1.572864E7",
                "1.0E7",
                "1.61E9",
                "0.001",
                "60.5",
                "-1.0",
                "NaN"
            ]
        );
    }

    #[test]
    fn a_summary_is_laid_out_as_on_perftests_page() {
        let summary = Summary {
            points: [4.25984e-4, 5.7344e-4, 0.001, 0.002],
            max: 0.003,
            count: 319,
            sum: 0.5,
            time: true,
        };
        let tags = [
            ("region".to_owned(), "b".to_owned()),
            ("env".to_owned(), "a".to_owned()),
        ];
        let meter = Meter::summary("perftest_confirm.latency", "confirm latency", summary);
        assert_eq!(
            text(&[meter], &tags),
            "# HELP perftest_confirm_latency_seconds confirm latency
# TYPE perftest_confirm_latency_seconds summary
perftest_confirm_latency_seconds{env=\"a\",region=\"b\",quantile=\"0.5\"} 4.25984E-4
perftest_confirm_latency_seconds{env=\"a\",region=\"b\",quantile=\"0.75\"} 5.7344E-4
perftest_confirm_latency_seconds{env=\"a\",region=\"b\",quantile=\"0.95\"} 0.001
perftest_confirm_latency_seconds{env=\"a\",region=\"b\",quantile=\"0.99\"} 0.002
perftest_confirm_latency_seconds_count{env=\"a\",region=\"b\"} 319
perftest_confirm_latency_seconds_sum{env=\"a\",region=\"b\"} 0.5
# HELP perftest_confirm_latency_seconds_max confirm latency
# TYPE perftest_confirm_latency_seconds_max gauge
perftest_confirm_latency_seconds_max{env=\"a\",region=\"b\"} 0.003
"
        );
    }

    #[test]
    fn metrics_are_sorted_as_on_perftests_page_and_rates_have_an_empty_help() {
        let meters = [
            Meter::gauge("perftest_published", 50.0),
            Meter::counter("client.acknowledged_published", 3.0),
            Meter::counter("client.acknowledged", 2.0),
        ];
        assert_eq!(
            text(&meters, &[]),
            "# HELP client_acknowledged_total  
# TYPE client_acknowledged_total counter
client_acknowledged_total 2.0
# HELP client_acknowledged_published_total  
# TYPE client_acknowledged_published_total counter
client_acknowledged_published_total 3.0
# HELP perftest_published  
# TYPE perftest_published gauge
perftest_published 50.0
"
        );
    }

    #[test]
    fn what_prometheus_cannot_read_is_made_readable() {
        let meter = Meter::gauge("9 lives.x-y", 1.0).with_label("a b", "say \"hi\"\\\n");
        let tags = [("a-b".to_owned(), "the metric's own label wins".to_owned())];
        let page = text(&[meter], &tags);
        assert_eq!(
            page.lines().last().unwrap(),
            r#"m_9_lives_x_y{a_b="say \"hi\"\\\n"} 1.0"#
        );
    }

    proptest! {
        #[test]
        fn any_number_reads_back_as_itself(value: f64) {
            let written = number(value).replace("+Inf", "inf");
            let read: f64 = written.parse().unwrap();
            prop_assert!(read == value || (read.is_nan() && value.is_nan()));
        }
    }
}
