//! The lines of the default and the compact format.

use super::figures::{Figures, SIX, rate, seconds, six};
use super::parts::Parts;
use crate::measure::Latency;
use crate::plan::Format;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Writes lines as PerfTest does.
#[derive(Debug)]
pub struct Console {
    format: Format,
    id: String,
    parts: Parts,
    zone: TimeZone,
}

impl Console {
    /// `zone` is the one that the compact format's clock shows.
    pub fn new(format: Format, id: &str, parts: Parts, zone: TimeZone) -> Self {
        Self {
            format,
            id: id.into(),
            parts,
            zone,
        }
    }

    /// The line above the first interval, once a run.
    pub fn header(&self) -> Option<String> {
        if self.format == Format::Default {
            return None;
        }
        let mut line = format!("{:<19}", "time");
        for (name, shown) in [
            ("sent", self.parts.published),
            ("returned", self.parts.returned),
            ("confirmed", self.parts.confirmed()),
            ("nacked", self.parts.confirmed()),
            ("received", self.parts.received),
        ] {
            if shown {
                line += &format!("{name:>13}");
            }
        }
        for (name, shown) in [
            ("consumer latency", self.parts.received),
            ("confirm latency", self.parts.confirmed()),
        ] {
            if shown {
                line += &format!("{name:>27}");
            }
        }
        Some(line)
    }

    /// The line of one interval, which ended at `unix_us` microseconds after 1970.
    pub fn interval(&self, figures: &Figures, unix_us: u64) -> String {
        match self.format {
            Format::Default => self.default_line(figures),
            Format::Compact => self.compact_line(figures, unix_us),
        }
    }

    fn rates(&self, figures: &Figures) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        [
            ("sent", figures.published, self.parts.published),
            ("returned", figures.returned, self.parts.returned),
            ("confirmed", figures.confirmed, self.parts.confirmed()),
            ("nacked", figures.nacked, self.parts.confirmed()),
            ("received", figures.received, self.parts.received),
        ]
        .into_iter()
        .filter_map(|(name, rate, shown)| shown.then_some((name, rate)))
    }

    fn latencies<'a>(
        &self,
        figures: &'a Figures,
    ) -> impl Iterator<Item = (&'static str, &'a Latency)> + use<'a> {
        [
            ("consumer", &figures.latency, self.parts.received),
            ("confirm", &figures.confirm_latency, self.parts.confirmed()),
        ]
        .into_iter()
        .filter_map(|(name, latency, shown)| shown.then_some((name, latency)))
    }

    fn default_line(&self, figures: &Figures) -> String {
        let mut line = format!("id: {}, time {} s", self.id, seconds(figures.elapsed));
        for (name, value) in self.rates(figures) {
            line += &format!(", {name}: {} msg/s", rate(value));
        }
        for (index, (name, latency)) in self.latencies(figures).enumerate() {
            line += &if index == 0 {
                format!(", {SIX} ")
            } else {
                ", ".into()
            };
            line += &format!("{name} latency: {}", six(latency, &self.parts));
        }
        line
    }

    fn compact_line(&self, figures: &Figures, unix_us: u64) -> String {
        let now = i64::try_from(unix_us)
            .ok()
            .and_then(|us| Timestamp::from_microsecond(us).ok());
        let mut line = now
            .unwrap_or(Timestamp::UNIX_EPOCH)
            .to_zoned(self.zone.clone())
            .strftime("%Y/%m/%d %H:%M:%S")
            .to_string();
        for (_, value) in self.rates(figures) {
            line += &format!("{:>13}", rate(value) + " msg/s");
        }
        // A column that is too narrow pushes the next one on, with one space between them.
        let mut pushed = false;
        for (_, latency) in self.latencies(figures) {
            let text = six(latency, &self.parts);
            pushed |= text.chars().count() > 26;
            line += &if pushed {
                format!(" {text}")
            } else {
                format!("{text:>27}")
            };
        }
        line
    }

    /// The lines after the end; `sent` are the latencies from the moment messages were written, if it was another one.
    /// PerfTest has no line for these.
    pub fn summary(&self, figures: &Figures, sent: Option<&Latency>) -> Vec<String> {
        let id = match self.format {
            Format::Default => format!("id: {}, ", self.id),
            Format::Compact => String::new(),
        };
        let mut lines = vec![format!("{id}sending rate avg: {} msg/s", rate(figures.published))];
        if !figures.elapsed.is_zero() {
            lines.push(format!(
                "{id}receiving rate avg: {} msg/s",
                rate(figures.received)
            ));
            for (name, latency) in self.latencies(figures) {
                lines.push(format!("{id}{name} latency {SIX} {}", six(latency, &self.parts)));
            }
            if let Some(sent) = sent.filter(|_| self.parts.received) {
                lines.push(format!(
                    "{id}consumer latency from send time {SIX} {}",
                    six(sent, &self.parts)
                ));
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;
    use std::time::Duration;

    fn parts() -> Parts {
        Parts {
            published: true,
            received: true,
            returned: false,
            confirm_asked: false,
            millis: false,
        }
    }

    fn figures() -> Figures {
        let us = |us: u64| us * 1_000 + 499;
        let latency = Latency {
            min: us(459),
            p50: us(785),
            p75: us(9_673),
            p95: us(11_112),
            p99: us(11_230),
            max: us(12_001),
            ..Latency::default()
        };
        let confirm_latency = Latency {
            min: us(1),
            p50: us(2),
            max: us(3),
            ..Latency::default()
        };
        let span = Duration::from_millis(1_001);
        let idle = Figures::of(&Recorder::new(), span, span);
        Figures {
            published: 101.0,
            confirmed: 5.0,
            received: 0.5,
            latency,
            confirm_latency,
            ..idle
        }
    }

    fn console(format: Format, parts: Parts) -> Console {
        Console::new(format, "test-052418-613", parts, TimeZone::UTC)
    }

    #[test]
    fn the_default_line_is_perftests() {
        let line = console(Format::Default, parts()).interval(&figures(), 0);
        assert_eq!(
            line,
            "id: test-052418-613, time 1.001 s, sent: 101 msg/s, received: 0.50 msg/s, \
             min/median/75th/95th/99th/max consumer latency: 459/785/9673/11112/11230/12001 µs"
        );
    }

    #[test]
    fn returns_confirms_and_milliseconds_show_when_asked_for() {
        let all = Parts {
            returned: true,
            confirm_asked: true,
            millis: true,
            ..parts()
        };
        let line = console(Format::Default, all).interval(&figures(), 0);
        assert_eq!(
            line,
            "id: test-052418-613, time 1.001 s, sent: 101 msg/s, returned: 0 msg/s, confirmed: 5.0 msg/s, \
             nacked: 0 msg/s, received: 0.50 msg/s, min/median/75th/95th/99th/max consumer latency: \
             0/1/10/11/11/12 ms, confirm latency: 0/0/0/0/0/0 ms"
        );
    }

    #[test]
    fn without_consumers_there_is_neither_a_receiving_rate_nor_a_latency() {
        let producers = Parts {
            received: false,
            ..parts()
        };
        let console = console(Format::Default, producers);
        assert_eq!(
            console.interval(&figures(), 0),
            "id: test-052418-613, time 1.001 s, sent: 101 msg/s"
        );
        assert_eq!(
            console.summary(&figures(), None),
            [
                "id: test-052418-613, sending rate avg: 101 msg/s",
                "id: test-052418-613, receiving rate avg: 0.50 msg/s"
            ]
        );
    }

    #[test]
    fn without_producers_confirms_are_not_shown_even_if_asked_for() {
        let consumers = Parts {
            published: false,
            confirm_asked: true,
            ..parts()
        };
        let span = Duration::from_secs(3);
        let idle = Figures::of(&Recorder::new(), span, span);
        assert_eq!(
            console(Format::Default, consumers).summary(&idle, None),
            [
                "id: test-052418-613, sending rate avg: 0 msg/s",
                "id: test-052418-613, receiving rate avg: 0 msg/s",
                "id: test-052418-613, consumer latency min/median/75th/95th/99th/max 0/0/0/0/0/0 µs"
            ]
        );
    }

    #[test]
    fn the_summary_tells_confirms_and_what_differs_from_the_send_time() {
        let confirming = Parts {
            confirm_asked: true,
            ..parts()
        };
        let sent = Latency {
            max: 7_000,
            ..Latency::default()
        };
        let console = console(Format::Default, confirming);
        assert_eq!(
            console.summary(&figures(), Some(&sent))[2..],
            [
                "id: test-052418-613, consumer latency min/median/75th/95th/99th/max \
                 459/785/9673/11112/11230/12001 µs",
                "id: test-052418-613, confirm latency min/median/75th/95th/99th/max 1/2/0/0/0/3 µs",
                "id: test-052418-613, consumer latency from send time min/median/75th/95th/99th/max \
                 0/0/0/0/0/7 µs"
            ]
        );
    }

    #[test]
    fn a_run_that_took_no_time_has_only_a_sending_rate() {
        let idle = Figures::of(&Recorder::new(), Duration::ZERO, Duration::ZERO);
        assert_eq!(
            console(Format::Compact, parts()).summary(&idle, None),
            ["sending rate avg: 0 msg/s"]
        );
    }

    #[test]
    fn the_compact_format_has_columns_under_one_header() {
        let all = Parts {
            returned: true,
            confirm_asked: true,
            ..parts()
        };
        let console = console(Format::Compact, all);
        let small = Latency {
            min: 451_000,
            p50: 916_000,
            max: 999_000,
            ..Latency::default()
        };
        let figures = Figures {
            latency: small,
            ..figures()
        };
        assert_eq!(
            console.header().unwrap(),
            "time                        sent     returned    confirmed       nacked     received           \
             consumer latency            confirm latency"
        );
        assert_eq!(
            console.interval(&figures, 1_744_131_259_000_000),
            "2025/04/08 16:54:19    101 msg/s      0 msg/s    5.0 msg/s      0 msg/s   0.50 msg/s       \
             451/916/0/0/0/999 µs             1/2/0/0/0/3 µs"
        );
        assert_eq!(console.summary(&figures, None)[0], "sending rate avg: 101 msg/s");
    }

    #[test]
    fn a_latency_too_wide_for_its_column_pushes_the_next_one_on() {
        let all = Parts {
            confirm_asked: true,
            ..parts()
        };
        let line = console(Format::Compact, all).interval(&figures(), 0);
        assert!(
            line.ends_with("0.50 msg/s 459/785/9673/11112/11230/12001 µs 1/2/0/0/0/3 µs"),
            "{line}"
        );
    }
}
