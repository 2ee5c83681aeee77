//! One metric with its value, before anybody writes it down.

/// A metric. `name` is micrometer's, with dots; who writes it down makes its own name of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Meter {
    pub name: String,
    /// What Prometheus appends to the name: the unit, and `_total` for counters.
    pub suffix: &'static str,
    /// Empty for PerfTest's rates.
    pub help: &'static str,
    pub labels: Vec<(String, String)>,
    pub kind: Kind,
}

/// The value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Gauge(f64),
    /// Since the start.
    Counter(f64),
    Summary(Summary),
}

/// A distribution: points over the last interval, count and sum since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    /// At 0.5, 0.75, 0.95 and 0.99.
    pub points: [f64; 4],
    pub max: f64,
    pub count: u64,
    pub sum: f64,
    /// Whether values are seconds.
    pub time: bool,
}

impl Summary {
    /// The quantiles of `points`.
    pub const QUANTILES: [&'static str; 4] = ["0.5", "0.75", "0.95", "0.99"];
}

impl Meter {
    /// A value that goes up and down.
    pub fn gauge(name: impl Into<String>, value: f64) -> Self {
        Self {
            name: name.into(),
            suffix: "",
            help: "",
            labels: Vec::new(),
            kind: Kind::Gauge(value),
        }
    }

    /// A value that only grows; its name gets `_total`.
    pub fn counter(name: impl Into<String>, value: f64) -> Self {
        Self {
            suffix: "_total",
            kind: Kind::Counter(value),
            ..Self::gauge(name, value)
        }
    }

    /// Quantiles of what was recorded; its name gets `_seconds` if they are times.
    pub fn summary(name: impl Into<String>, help: &'static str, summary: Summary) -> Self {
        let suffix = if summary.time { "_seconds" } else { "" };
        Self {
            suffix,
            help,
            kind: Kind::Summary(summary),
            ..Self::gauge(name, 0.0)
        }
    }

    /// The same with what stands behind its name, and with its line of help.
    pub fn with_help(self, suffix: &'static str, help: &'static str) -> Self {
        Self { suffix, help, ..self }
    }

    /// The same with one label more.
    pub fn with_label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.into(), value.into()));
        self
    }
}
