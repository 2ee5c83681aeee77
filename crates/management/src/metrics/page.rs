//! Prometheus' text format: families of samples, each with its help and its type.

use std::fmt::Write;

/// What Prometheus makes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It rises, from the start of the node on.
    Counter,
    /// It rises and falls.
    Gauge,
    /// It says something by its labels.
    Untyped,
    /// A sum and a number of values.
    Summary,
    /// How many values stayed below each of some bounds.
    Histogram,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Untyped => "untyped",
            Self::Summary => "summary",
            Self::Histogram => "histogram",
        }
    }
}

/// A page for Prometheus.
#[derive(Debug, Default)]
pub struct Page {
    text: String,
    name: String,
}

impl Page {
    /// Samples that follow belong to this family.
    pub fn family(&mut self, name: &str, kind: Type, help: &str) {
        name.clone_into(&mut self.name);
        let _ = writeln!(self.text, "# TYPE {name} {}\n# HELP {name} {help}", kind.name());
    }

    /// A sample with these labels, as [`labels`] writes them.
    pub fn labelled(&mut self, labels: &str, value: impl Into<Number>) {
        self.part("", labels, value);
    }

    /// A sample of a histogram or summary, whose parts have endings of their own.
    pub fn part(&mut self, ending: &str, labels: &str, value: impl Into<Number>) {
        let _ = match labels {
            "" => write!(self.text, "{}{ending} ", self.name),
            labels => write!(self.text, "{}{ending}{{{labels}}} ", self.name),
        };
        let _ = match value.into() {
            Number::Whole(number) => writeln!(self.text, "{number}"),
            Number::Real(number) => writeln!(self.text, "{number}"),
        };
    }

    /// The text.
    pub fn into_bytes(self) -> Vec<u8> {
        self.text.into_bytes()
    }
}

/// A sample's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count.
    Whole(u64),
    /// A measure.
    Real(f64),
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Whole(number)
    }
}

impl From<usize> for Number {
    fn from(number: usize) -> Self {
        Self::Whole(number as u64)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

/// Writes labels: what stands between the braces.
pub fn labels(pairs: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(name);
        text.push_str("=\"");
        for letter in value.chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str("\\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_cannot_break_out_of_their_label() {
        let mut page = Page::default();
        page.family("x", Type::Gauge, "What x is");
        page.labelled("", 5_u64);
        page.labelled(&labels(&[("queue", "a\"} 1\nb\\"), ("vhost", "/")]), 0.5);
        assert_eq!(
            String::from_utf8(page.into_bytes()).unwrap(),
            "# TYPE x gauge\n# HELP x What x is\nx 5\nx{queue=\"a\\\"} 1\\nb\\\\\",vhost=\"/\"} 0.5\n"
        );
    }
}
