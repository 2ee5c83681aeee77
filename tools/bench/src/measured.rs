//! What the load generator says about a run (`--json`). A field that is missing is as good as zero: an older or newer
//! generator may leave some out.

use crate::results::Latency;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The format of the file that is understood here.
const FORMAT: u32 = 1;

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Measured {
    pub format: u32,
    pub started_unix_us: u64,
    pub finished_unix_us: u64,
    pub exit_code: i32,
    /// Why the run ended before its time.
    pub cut_short: Option<String>,
    /// What the broker says that it is, where the generator tells.
    pub server: Option<Server>,
    #[serde(deserialize_with = "null_is_default")]
    pub intervals: Vec<Interval>,
    #[serde(deserialize_with = "null_is_default")]
    pub total: Total,
    pub verify: Option<Verify>,
    pub churn: Option<Churn>,
    #[serde(deserialize_with = "null_is_default")]
    pub phases: Vec<MeasuredPhase>,
}

/// What the broker says of itself at login.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Server {
    pub product: String,
    pub version: String,
}

/// One line of the run. Counts are those of the interval alone, latencies microseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Interval {
    pub from_unix_us: u64,
    pub to_unix_us: u64,
    /// Since the start of the run, at the interval's end.
    pub elapsed_s: f64,
    pub published: u64,
    pub consumed: u64,
    pub confirmed: u64,
    pub latency: Option<Latency>,
    /// From when a message was sent.
    pub latency_sent: Option<Latency>,
    pub confirm_latency: Option<Latency>,
}

/// The whole run. Latencies are microseconds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Total {
    pub seconds: f64,
    pub published: u64,
    pub consumed: u64,
    pub confirmed: u64,
    /// From when a message was due, unless the run counts from when it was sent.
    pub latency: Option<Latency>,
    /// From when it was sent: what a generator that waits for the broker would see.
    pub latency_sent: Option<Latency>,
    pub confirm_latency: Option<Latency>,
}

/// What came, beside what was sent: numbers of messages.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Verify {
    pub ok: bool,
    pub lost: u64,
    pub duplicates: u64,
    pub corrupt: u64,
    pub out_of_order: u64,
}

/// Objects that came and went.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Churn {
    /// The kind of churn, as the command line names it.
    pub what: String,
    pub operations: BTreeMap<String, crate::results::Operation>,
    pub errors: u64,
}

/// One phase of several. Rates are messages a second.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MeasuredPhase {
    pub name: String,
    pub seconds: f64,
    pub publish_rate: f64,
    pub consume_rate: f64,
    pub depth_at_end: u64,
}

fn null_is_default<'de, D, T>(input: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(input)?.unwrap_or_default())
}

impl Measured {
    /// Reads the file.
    ///
    /// # Errors
    /// A line that says what is wrong with it.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text =
            fs::read_to_string(path).map_err(|e| format!("the load generator wrote no results ({e})"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let measured: Self = serde_json::from_str(text)
            .map_err(|e| format!("the load generator's results can't be read: {e}"))?;
        if measured.format != FORMAT {
            return Err(format!(
                "the load generator's results have format {}, and only {FORMAT} is understood",
                measured.format
            ));
        }
        Ok(measured)
    }

    /// What stands against believing the figures.
    pub fn objection(&self) -> Option<String> {
        if let Some(reason) = &self.cut_short {
            return Some(reason.clone());
        }
        let verify = self.verify.as_ref().filter(|v| !v.ok)?;
        Some(format!(
            "messages were not as they were sent: {} lost, {} twice, {} corrupt, {} out of order",
            verify.lost, verify.duplicates, verify.corrupt, verify.out_of_order
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const L: &str = r#"{"count":10,"min":1.5,"mean":2,"p50":2,"p75":3,"p90":4,"p95":5,"p99":6,"p99_9":7,"p99_99":8,"max":9}"#;

    #[test]
    fn a_file_as_the_load_generator_writes_it_is_understood() {
        let text = format!(
            r#"{{"format":1,"version":"0.1.0","id":"t","arguments":["-x","1"],"started_unix_us":1,"finished_unix_us":2,
            "exit_code":0,"stop_reasons":["Reached time limit"],"cut_short":null,"latency_from":"intended","clock":"monotonic",
            "intervals":[{{"from_unix_us":1,"to_unix_us":1000001,"elapsed_s":1.0,"published":10,"returned":0,"confirmed":3,
            "nacked":0,"consumed":9,"latency":{L},"confirm_latency":null}}],
            "total":{{"seconds":1.0,"published":10,"returned":0,"confirmed":3,"nacked":0,"consumed":9,"publish_rate":10.0,
            "consume_rate":9.0,"latency":{L},"latency_sent":null,"confirm_latency":null}},
            "verify":null,"churn":{{"what":"bind","operations":{{"bind":{{"count":5,"rate":2.5,"latency":{L}}}}},"errors":0}},
            "phases":null}}"#
        );
        let measured = Measured::parse(&text).unwrap();
        assert_eq!(measured.intervals[0].latency.unwrap().p99_9, 7.0);
        assert_eq!(measured.churn.as_ref().unwrap().operations["bind"].count, 5);
        assert!(measured.phases.is_empty());
        assert_eq!(measured.objection(), None);
    }

    #[test]
    fn a_run_that_was_cut_short_or_lost_messages_is_not_believed() {
        let cut = Measured::parse(r#"{"format":1,"cut_short":"the broker closed the connection"}"#).unwrap();
        assert_eq!(
            cut.objection().as_deref(),
            Some("the broker closed the connection")
        );
        let lost = Measured::parse(r#"{"format":1,"verify":{"ok":false,"lost":3}}"#).unwrap();
        assert!(lost.objection().unwrap().contains("3 lost"));
    }

    #[test]
    fn another_format_and_half_a_file_are_refused() {
        assert!(
            Measured::parse(r#"{"format":2}"#)
                .unwrap_err()
                .contains("format 2")
        );
        assert!(
            Measured::parse(r#"{"format":1,"#)
                .unwrap_err()
                .contains("can't be read")
        );
        let missing = Measured::read(Path::new("/nowhere/at/all.json"));
        assert!(missing.unwrap_err().contains("wrote no results"));
    }
}
