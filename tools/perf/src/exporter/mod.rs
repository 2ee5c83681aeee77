//! Metrics that others collect: a page for Prometheus and posts to Datadog, named as PerfTest names them.
//!
//! A [`Board`] keeps what the last interval was like and lists it as [`Meter`]s; `prometheus` and `datadog` carry them out,
//! each on a thread of its own. No failure of theirs ends a run.

pub mod arguments;
mod board;
mod datadog;
mod expected;
mod meter;
mod process;
pub(crate) mod prometheus;

pub use board::Board;
pub use meter::{Kind, Meter, Summary};

use crate::failure::Failure;
use crate::measure::Sample;
use crate::plan::Plan;
use datadog::Poster;
use prometheus::Page;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The board where the run writes and the carriers read.
type Shared = Arc<Mutex<Board>>;

/// The carriers that a run asked for.
pub struct Exporter {
    board: Shared,
    page: Option<Page>,
    poster: Option<Poster>,
}

impl Exporter {
    /// Starts what the plan asks for; `None` if that is nothing. Fails if the page's port is not free.
    pub fn start(plan: &Plan) -> Result<Option<Self>, Failure> {
        let exporting = &plan.exporter;
        if exporting.prometheus.is_none() && exporting.datadog.is_none() {
            return Ok(None);
        }
        let board: Shared = Arc::new(Mutex::new(Board::new(plan)));
        let page = match &exporting.prometheus {
            Some((port, path)) => Some(Page::of(*port, path, board.clone())?),
            None => None,
        };
        let poster = match &exporting.datadog {
            Some(datadog) => Some(Poster::start(datadog.clone(), board.clone())?),
            None => None,
        };
        Ok(Some(Self { board, page, poster }))
    }

    /// Shows an interval from now on.
    pub fn update(&self, sample: &Sample) {
        self.board
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .update(sample);
    }

    /// Where the page is served.
    pub fn address(&self) -> Option<SocketAddr> {
        self.page.as_ref().map(Page::address)
    }

    /// Ends the carriers; Datadog gets what it has not got yet.
    pub fn stop(self) {
        if let Some(page) = self.page {
            page.stop();
        }
        if let Some(poster) = self.poster {
            poster.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Datadog, Schedule};
    use crate::report::trial::{plan, second};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    fn exporting() -> Plan {
        let mut plan = plan();
        plan.exporter.prometheus = Some((0, "/metrics".into()));
        plan.exporter.tags = vec![("env".into(), "a".into())];
        plan
    }

    /// The answer to a request for `path`.
    fn get(exporter: &Exporter, path: &str) -> String {
        let port = exporter.address().unwrap().port();
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        write!(
            socket,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_shows_the_last_interval_under_perftests_names() {
        let mut plan = exporting();
        plan.exporter.arguments = true;
        plan.exporter.client = true;
        plan.exporter.exposed = vec![("foo".into(), 1.5)];
        plan.producing.schedule = Schedule::Rate(50.0);
        let exporter = Exporter::start(&plan).unwrap().unwrap();
        exporter.update(&second(1, 30, &[9_000_000]));
        let mut last = second(2, 49, &[100, 200, 300]);
        last.recorder.confirm_size(4);
        exporter.update(&last);
        let answer = get(&exporter, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(
            answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
            "{answer}"
        );
        for line in [
            "client_channels{env=\"a\"} 2.0",
            "client_connections{env=\"a\"} 3.0",
            "client_consumed_total{env=\"a\"} 79.0",
            "perftest_args{command_line=\"--rate 50\",env=\"a\"} 1.0",
            "perftest_confirm_latency_seconds{env=\"a\",quantile=\"0.99\"} 0.0",
            "perftest_confirm_size_sum{env=\"a\"} 4.0",
            "perftest_confirmed{env=\"a\"} 0.0",
            "perftest_consumed{env=\"a\"} 49.0",
            "perftest_expected_published{env=\"a\"} 50.0",
            "perftest_expected_published_ratio{env=\"a\"} 0.98",
            "perftest_foo{env=\"a\"} 1.5",
            "perftest_latency_seconds_count{env=\"a\"} 4",
            "perftest_published{env=\"a\"} 49.0",
            "perftest_returned{env=\"a\"} 0.0",
        ] {
            assert!(
                answer.contains(&format!("\n{line}\n")),
                "{line} is not in {answer}"
            );
        }
        let max = answer
            .lines()
            .find_map(|line| line.strip_prefix("perftest_latency_seconds_max{env=\"a\"} "));
        let max: f64 = max.unwrap().parse().unwrap();
        assert!(
            (max / 3e-4 - 1.0).abs() < 1e-3,
            "the maximum is the last interval's, not {max}"
        );
        exporter.stop();
    }

    #[test]
    fn an_exposed_metric_wins_over_what_the_run_would_expect() {
        let mut plan = exporting();
        plan.producing.schedule = Schedule::Rate(50.0);
        plan.exporter.exposed = vec![("expected_published".into(), 7.0)];
        let exporter = Exporter::start(&plan).unwrap().unwrap();
        let answer = get(&exporter, "/metrics");
        let told: Vec<_> = answer
            .lines()
            .filter(|line| line.starts_with("perftest_expected_published{"))
            .collect();
        assert_eq!(told, ["perftest_expected_published{env=\"a\"} 7.0"]);
        exporter.stop();
    }

    #[test]
    fn other_pages_do_not_exist_and_the_port_is_free_after_the_end() {
        let exporter = Exporter::start(&exporting()).unwrap().unwrap();
        assert!(get(&exporter, "/").starts_with("HTTP/1.1 404"));
        let port = exporter.address().unwrap().port();
        let idle = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        exporter.stop();
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        drop(idle);
    }

    #[test]
    fn a_port_in_use_is_told_with_what_to_do() {
        let exporter = Exporter::start(&exporting()).unwrap().unwrap();
        let mut second = exporting();
        second.exporter.prometheus = Some((exporter.address().unwrap().port(), "metrics".into()));
        let failure = Exporter::start(&second).map(|_| ()).unwrap_err().to_string();
        assert!(failure.contains("--metrics-prometheus-port"), "{failure}");
        exporter.stop();
    }

    #[test]
    fn nothing_asked_for_is_nothing_started() {
        assert!(Exporter::start(&plan()).unwrap().is_none());
    }

    /// Takes one request after the other, answers each with `status` and hands its address and body on.
    fn datadog(status: &'static str) -> (String, mpsc::Receiver<(String, serde_json::Value)>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let uri = format!("http://{}", listener.local_addr().unwrap());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = BufReader::new(socket.unwrap());
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(socket.read_line(&mut head).unwrap() > 0);
                }
                let address = head.split(' ').nth(1).unwrap().to_owned();
                let lower = head.to_lowercase();
                let length = lower
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.lines().next());
                let mut body = vec![0; length.unwrap().parse().unwrap()];
                socket.read_exact(&mut body).unwrap();
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                socket.get_mut().write_all(answer.as_bytes()).unwrap();
                if tell
                    .send((address, serde_json::from_slice(&body).unwrap()))
                    .is_err()
                {
                    return;
                }
            }
        });
        (uri, told)
    }

    fn posting(uri: String, application_key: Option<&str>) -> Plan {
        let mut plan = plan();
        plan.exporter.tags = vec![("where".into(), "here".into())];
        plan.exporter.datadog = Some(Datadog {
            api_key: "key".into(),
            application_key: application_key.map(str::to_owned),
            step: Duration::from_secs(3_600),
            host_tag: Some("where".into()),
            descriptions: true,
            uri,
        });
        plan
    }

    #[test]
    fn datadog_gets_what_is_left_when_the_run_ends() {
        let (uri, told) = datadog("202 Accepted");
        let exporter = Exporter::start(&posting(uri, Some("app"))).unwrap().unwrap();
        assert_eq!(exporter.address(), None);
        exporter.update(&second(1, 30, &[2_000, 4_000]));
        exporter.stop();
        let (address, body) = told.recv().unwrap();
        assert_eq!(address, "/api/v1/series?api_key=key");
        let series = body["series"].as_array().unwrap();
        let find = |name: &str| series.iter().find(|one| one["metric"] == name).unwrap();
        let published = find("perftest_published");
        assert_eq!(
            (&published["points"][0][1], &published["type"]),
            (&30.0.into(), &"gauge".into())
        );
        assert_eq!(published["host"], "here");
        assert_eq!(
            published["tags"],
            serde_json::json!(["where:here", "statistic:value"])
        );
        let sum = find("perftest_latency.sum");
        assert!(
            (sum["points"][0][1].as_f64().unwrap() - 6.0).abs() < 0.01,
            "{sum}"
        );
        assert_eq!(
            (&sum["unit"], &sum["type"]),
            (&"millisecond".into(), &"count".into())
        );
        assert_eq!(find("perftest_latency.count")["points"][0][1], 2.0);
        assert_eq!(find("perftest_latency.percentile")["tags"][1], "phi:0.5");
        let (address, body) = told.recv().unwrap();
        assert!(address.starts_with("/api/v1/metrics/perftest_published?api_key=key&application_key=app"));
        assert_eq!(body, serde_json::json!({ "type": "gauge" }));
    }

    #[test]
    fn a_datadog_that_refuses_does_not_end_the_run() {
        let (uri, told) = datadog("403 Forbidden");
        let exporter = Exporter::start(&posting(uri, None)).unwrap().unwrap();
        exporter.update(&second(1, 30, &[]));
        exporter.stop();
        assert_eq!(told.recv().unwrap().0, "/api/v1/series?api_key=key");
    }
}
