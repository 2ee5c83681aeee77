//! The rows of `--output-file`.

use super::figures::{Figures, rate, seconds};
use super::parts::Parts;
use crate::measure::Latency;
use std::fmt::Write;

/// The first row. PerfTest's file has no column for the maximum, although its lines show it.
pub fn header(parts: &Parts) -> String {
    let unit = parts.unit();
    let mut row =
        "id,time (s),published (msg/s),returned (msg/s),confirmed (msg/s),nacked (msg/s),received (msg/s)"
            .to_owned();
    for kind in ["consumer", "confirm"] {
        for point in ["min", "median", "75th p.", "95th p.", "99th p."] {
            let _ = write!(row, ",{point} {kind} latency ({unit})");
        }
    }
    row
}

/// The row of an interval. What cannot be is left empty.
pub fn row(id: &str, figures: &Figures, parts: &Parts) -> String {
    let mut row = format!("{id},{}", seconds(figures.elapsed));
    for (value, shown) in [
        (figures.published, parts.published),
        (figures.returned, parts.published && parts.returned),
        (figures.confirmed, parts.confirmed()),
        (figures.nacked, parts.confirmed()),
        (figures.received, parts.received),
    ] {
        row.push(',');
        if shown {
            row += &rate(value);
        }
    }
    for (latency, shown) in [
        (&figures.latency, parts.received),
        (&figures.confirm_latency, parts.confirmed()),
    ] {
        for point in points(latency) {
            row.push(',');
            if shown {
                let _ = write!(row, "{}", parts.shown(point));
            }
        }
    }
    row
}

fn points(latency: &Latency) -> [u64; 5] {
    [latency.min, latency.p50, latency.p75, latency.p95, latency.p99]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;
    use std::time::Duration;

    const ALL: Parts = Parts {
        published: true,
        received: true,
        returned: true,
        confirm_asked: true,
        millis: false,
    };

    fn figures() -> Figures {
        let latency = Latency {
            min: 1_000,
            p50: 2_000,
            p75: 3_000,
            p95: 4_000,
            p99: 5_000,
            ..Latency::default()
        };
        let confirm_latency = Latency {
            min: 6_000,
            p99: 7_499,
            ..Latency::default()
        };
        let span = Duration::from_secs(4);
        Figures {
            published: 20.9,
            returned: 0.5,
            latency,
            confirm_latency,
            ..Figures::of(&Recorder::new(), span, span)
        }
    }

    #[test]
    fn the_first_row_is_perftests() {
        assert_eq!(
            header(&ALL),
            "id,time (s),published (msg/s),returned (msg/s),confirmed (msg/s),nacked (msg/s),received (msg/s),\
             min consumer latency (µs),median consumer latency (µs),75th p. consumer latency (µs),\
             95th p. consumer latency (µs),99th p. consumer latency (µs),min confirm latency (µs),\
             median confirm latency (µs),75th p. confirm latency (µs),95th p. confirm latency (µs),\
             99th p. confirm latency (µs)"
        );
        assert!(header(&Parts { millis: true, ..ALL }).ends_with("99th p. confirm latency (ms)"));
    }

    #[test]
    fn a_row_has_every_number_that_can_be() {
        assert_eq!(
            row("abc", &figures(), &ALL),
            "abc,4.000,20,0.50,0,0,0,1,2,3,4,5,6,0,0,0,7"
        );
    }

    #[test]
    fn what_cannot_be_stays_empty_and_the_columns_stay_in_place() {
        let parts = Parts {
            received: false,
            returned: false,
            confirm_asked: false,
            ..ALL
        };
        assert_eq!(row("t", &figures(), &parts), "t,4.000,20,,,,,,,,,,,,,,");
        let parts = Parts {
            published: false,
            ..ALL
        };
        assert_eq!(row("t", &figures(), &parts), "t,4.000,,,,,0,1,2,3,4,5,,,,,");
    }
}
