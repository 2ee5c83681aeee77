//! What an import of definitions would do, or why it does nothing: counts by class, and a remark on each object that is
//! not simply made.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// So many remarks are listed; further ones are counted.
const REMARKS: usize = 1_000;
/// So many lines a text about them has.
const LINES: usize = 50;

/// What becomes of an object that is not simply made or there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Because of this nothing is imported.
    Refused,
    /// It is left out.
    Skipped,
    /// It is made as something else.
    Converted,
    /// It exists with other settings and stays as it is.
    Kept,
    /// It is made, and somebody should know this about it.
    Noted,
}

impl Outcome {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Converted => "converted",
            Self::Kept => "kept",
            Self::Noted => "noted",
        }
    }
}

/// Why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// This version does not have it.
    Unsupported,
    /// What it needs is missing, refused or left out.
    Missing,
    /// It makes no sense.
    Invalid,
    /// It exists with other settings.
    Different,
    /// A password hash that is quickly guessed.
    Weak,
    /// It has no effect here.
    Idle,
    /// Whoever imports it wants it so.
    Wanted,
}

impl Cause {
    fn name(self) -> &'static str {
        match self {
            Self::Unsupported => "unsupported",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Different => "different",
            Self::Weak => "weak",
            Self::Idle => "idle",
            Self::Wanted => "wanted",
        }
    }
}

/// What is to be said about one object, apart from which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What becomes of it.
    pub outcome: Outcome,
    /// Why.
    pub cause: Cause,
    /// The member of the document that it is about; empty if it is about all of the object.
    pub field: String,
    /// Why, in words.
    pub reason: String,
    /// What can be done instead; empty if nobody knows.
    pub instead: String,
}

impl Remark {
    /// A remark without a field, and without a word about what could be done instead.
    pub fn new(outcome: Outcome, cause: Cause, reason: impl Into<String>) -> Self {
        Self {
            outcome,
            cause,
            field: String::new(),
            reason: reason.into(),
            instead: String::new(),
        }
    }

    /// The same about one field.
    pub fn at(self, field: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            ..self
        }
    }

    /// The same with what can be done instead.
    pub fn instead(self, words: impl Into<String>) -> Self {
        Self {
            instead: words.into(),
            ..self
        }
    }
}

/// What becomes of the objects of one class, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Made or changed.
    pub new: usize,
    /// There already.
    pub known: usize,
    /// Made as something else.
    pub converted: usize,
    /// Left out.
    pub skipped: usize,
    /// Refused.
    pub refused: usize,
}

/// Which object a remark is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedObject {
    /// The list that it stands in.
    pub class: &'static str,
    /// Where in that list.
    pub index: usize,
    /// Its virtual host, if it is in one.
    pub vhost: Option<String>,
    /// Its name, or that of its user or source.
    pub name: String,
    /// Where a binding leads to.
    pub destination: Option<String>,
}

/// The report.
#[derive(Clone, Debug, Default)]
pub struct Report {
    counts: BTreeMap<&'static str, Counts>,
    remarks: Vec<(ImportedObject, Remark)>,
    omitted: usize,
    refused: usize,
}

impl Report {
    /// True if the document is applied as it is.
    pub fn is_importable(&self) -> bool {
        self.refused == 0
    }

    /// What became of the objects of a class; none yet if it was not counted before.
    pub fn counts(&mut self, class: &'static str) -> &mut Counts {
        self.counts.entry(class).or_default()
    }

    /// Says something about an object.
    pub fn say(&mut self, place: &ImportedObject, remark: Remark) {
        self.refused += usize::from(remark.outcome == Outcome::Refused);
        match self.remarks.len() < REMARKS {
            true => self.remarks.push((place.clone(), remark)),
            false => self.omitted += 1,
        }
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        let counts = self.counts.iter().map(|(class, counts)| {
            let Counts {
                new,
                known,
                converted,
                skipped,
                refused,
            } = *counts;
            let total = new + known + converted + skipped + refused;
            let row = json!({"total": total, "new": new, "known": known, "converted": converted, "skipped": skipped, "refused": refused});
            ((*class).to_owned(), row)
        });
        json!({
            "importable": self.is_importable(),
            "counts": counts.collect::<Map<_, _>>(),
            "remarks": self.remarks.iter().map(|(place, remark)| row(place, remark)).collect::<Vec<_>>(),
            "omitted": self.omitted,
        })
    }

    /// Why nothing is imported, a line for each reason. What only follows from another refusal is counted.
    pub fn refusals(&self) -> String {
        let refused = self
            .remarks
            .iter()
            .filter(|(_, remark)| remark.outcome == Outcome::Refused);
        let mut lines: Vec<String> = refused
            .take(LINES)
            .map(|(place, remark)| line(place, remark))
            .collect();
        if self.refused > lines.len() {
            lines.push(format!("and {} more", self.refused - lines.len()));
        }
        if self.refused > 1 {
            let head = format!(
                "nothing is imported, because {} objects are refused:",
                self.refused
            );
            lines.insert(0, head);
        }
        lines.join("\n")
    }

    /// What was skipped, converted or kept, or should be known, a line for each.
    pub fn notes(&self) -> Vec<String> {
        let told = self
            .remarks
            .iter()
            .filter(|(_, remark)| remark.outcome != Outcome::Refused);
        told.map(|(place, remark)| format!("{}: {}", remark.outcome.name(), line(place, remark)))
            .collect()
    }
}

fn row(place: &ImportedObject, remark: &Remark) -> Value {
    let mut row = json!({
        "outcome": remark.outcome.name(),
        "cause": remark.cause.name(),
        "class": place.class,
        "index": place.index,
        "name": place.name,
        "reason": remark.reason,
    });
    let more = [
        ("vhost", place.vhost.as_deref()),
        ("destination", place.destination.as_deref()),
        (
            "field",
            Some(remark.field.as_str()).filter(|text| !text.is_empty()),
        ),
        (
            "instead",
            Some(remark.instead.as_str()).filter(|text| !text.is_empty()),
        ),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            row[name] = value.into();
        }
    }
    row
}

fn line(place: &ImportedObject, remark: &Remark) -> String {
    let ImportedObject { class, name, .. } = place;
    let vhost = place
        .vhost
        .as_ref()
        .map(|vhost| format!(" in virtual host '{vhost}'"));
    let field = Some(&remark.field).filter(|field| !field.is_empty());
    let field = field.map(|field| format!("{field}: "));
    let instead = Some(&remark.instead).filter(|words| !words.is_empty());
    let instead = instead.map(|words| format!(" ({words})"));
    format!(
        "{class}: '{name}'{}: {}{}{}",
        vhost.unwrap_or_default(),
        field.unwrap_or_default(),
        remark.reason,
        instead.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: usize) -> ImportedObject {
        ImportedObject {
            class: "queues",
            index,
            vhost: Some("/".into()),
            name: format!("q{index}"),
            destination: None,
        }
    }

    fn refused() -> Remark {
        Remark::new(Outcome::Refused, Cause::Unsupported, "no such type")
            .at("type")
            .instead("take another")
    }

    #[test]
    fn every_refusal_has_a_line_that_names_object_field_and_way_out() {
        let mut report = Report::default();
        assert!(report.is_importable());
        report.say(&place(3), refused());
        assert_eq!(
            report.refusals(),
            "queues: 'q3' in virtual host '/': type: no such type (take another)"
        );
        report.say(&place(4), Remark::new(Outcome::Noted, Cause::Idle, "so what"));
        report.say(&place(5), refused());
        let text = report.refusals();
        assert!(text.starts_with("nothing is imported, because 2 objects are refused:\nqueues: 'q3'"));
        assert_eq!(text.lines().count(), 3);
        assert_eq!(
            report.notes(),
            ["noted: queues: 'q4' in virtual host '/': so what"]
        );
        let json = report.to_json();
        assert_eq!(
            (&json["importable"], &json["remarks"][0]["field"]),
            (&json!(false), &json!("type"))
        );
        assert_eq!(json["remarks"][1].get("field"), None);
    }

    #[test]
    fn a_report_has_a_bound_and_counts_what_is_beyond_it() {
        let mut report = Report::default();
        for at in 0..REMARKS + 7 {
            report.say(&place(at), refused());
        }
        assert_eq!(report.to_json()["omitted"], 7);
        assert_eq!(
            report.refusals().lines().last().unwrap(),
            format!("and {} more", REMARKS + 7 - LINES)
        );
    }
}
