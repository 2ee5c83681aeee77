//! Which messages of a queue a request is about: those that pass a filter, or those at named positions, from a place on.

use crate::arguments::text;
use crate::browsing::{Scan, position};
use crate::filter::Filter;
use crate::json;
use crate::refusal::Refusal;
use broker::{Browser, Seen};
use model::{Limits, Seq};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// How many positions one request names at the most.
pub const POSITIONS: usize = 1000;
/// Between positions that are as near as this, messages are passed over one by one; further on is looked up.
const NEAR: u64 = 256;

/// A selection.
#[derive(Debug)]
pub struct Selection {
    filter: Filter,
    positions: Option<Vec<Seq>>,
    /// Where it begins; `None` for the head, or the first position.
    pub from: Option<Seq>,
    edition: Option<String>,
    end: Option<End>,
}

/// What comes later is not meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// This message and what follows.
    Position(Seq),
    /// What came after this time, in milliseconds since the Unix epoch.
    Time(u64),
}

impl End {
    fn of(text: &str) -> Result<Self, Refusal> {
        match text.strip_prefix('t') {
            Some(ms) => position(ms).map(Self::Time),
            None => position(text).map(Self::Position),
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Position(seq) => write!(f, "{seq}"),
            Self::Time(ms) => write!(f, "t{ms}"),
        }
    }
}

impl Selection {
    /// Reads `filter`, `positions` with `edition`, and `from`.
    ///
    /// # Errors
    /// Something of it makes no sense.
    pub fn of(body: &Map<String, Value>, now_ms: u64) -> Result<Self, Refusal> {
        let edition = text(body, "edition")?.map(str::to_owned);
        let positions = body.get("positions").map(positions).transpose()?;
        if positions.is_some() && edition.is_none() {
            return Err(Refusal::bad_request(
                "positions mean something together with an edition",
            ));
        }
        Ok(Self {
            filter: filter(body, now_ms)?,
            positions,
            from: text(body, "from")?.map(position).transpose()?,
            edition,
            end: text(body, "end")?.map(End::of).transpose()?,
        })
    }

    /// Only messages that nobody holds, unless a state is asked for.
    pub fn only_ready(&mut self) {
        self.filter.only_ready();
    }

    /// What comes later than now, perhaps from what is done with the selection, is not meant, or than the end that was
    /// given. Returns that end, to be given with the next request.
    pub fn end(&mut self, browser: &Browser, now_ms: u64) -> String {
        // A message of this very millisecond may be one that is still to come.
        let earlier = End::Time(now_ms.saturating_sub(1));
        let now = || browser.end().map_or(earlier, End::Position);
        let end = *self.end.get_or_insert_with(now);
        if let End::Time(ms) = end {
            self.filter.until(ms);
        }
        end.to_string()
    }

    /// Everything that is there and ready, in its order.
    pub fn is_head(&self) -> bool {
        self.from.is_none() && self.positions.is_none()
    }

    /// # Errors
    /// The positions are of another life of the queue: 412.
    pub fn check(&self, browser: &Browser) -> Result<(), Refusal> {
        let edition = browser.edition();
        match &self.edition {
            Some(meant) if *meant != edition => Err(Refusal::Precondition(format!(
                "the queue's edition is {edition}, not {meant}: the queue was redeclared, or the broker restarted"
            ))),
            _ => Ok(()),
        }
    }

    /// Shows the selected messages from a place on, until `visit` has seen enough or the scan is over; says where it goes on.
    pub fn each(
        &self,
        browser: &Browser,
        from: Option<Seq>,
        scan: &mut Scan,
        limits: &Limits,
        visit: &mut dyn FnMut(&Seen<'_>) -> ControlFlow<()>,
    ) -> Option<Seq> {
        let mut past = false;
        let mut look = |seen: &Seen<'_>| {
            past = matches!(self.end, Some(End::Position(end)) if seen.seq >= end);
            if past || !scan.take(seen) {
                return ControlFlow::Break(());
            }
            if self.filter.passes(seen, limits) && visit(seen).is_break() {
                scan.leave();
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        match &self.positions {
            None => browser.each(from, look).next.filter(|_| !past),
            Some(positions) => named(browser, positions, from, &mut look),
        }
    }
}

/// Shows the messages at these positions, as far as they are there.
fn named(
    browser: &Browser,
    positions: &[Seq],
    from: Option<Seq>,
    look: &mut dyn FnMut(&Seen<'_>) -> ControlFlow<()>,
) -> Option<Seq> {
    let mut at = from
        .and_then(|from| positions.iter().position(|it| *it == from))
        .unwrap_or(0);
    while let Some(first) = positions.get(at) {
        let (begun, mut over) = (at, false);
        browser.each(Some(*first), |seen| {
            // What stands before is gone; from here on another look-up finds what does not follow soon.
            while positions.get(at).is_some_and(|wanted| *wanted < seen.seq) {
                at += 1;
            }
            let Some(wanted) = positions.get(at) else {
                return ControlFlow::Break(());
            };
            if *wanted != seen.seq {
                return match wanted - seen.seq <= NEAR {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                };
            }
            over = look(seen).is_break();
            at += usize::from(!over);
            match over {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if over {
            break;
        }
        at += usize::from(at == begun);
    }
    positions.get(at).copied()
}

fn positions(value: &Value) -> Result<Vec<Seq>, Refusal> {
    let items = value.as_array().filter(|items| items.len() <= POSITIONS);
    let items = items.ok_or_else(|| {
        Refusal::bad_request(format!("positions is a list of at most {POSITIONS} positions"))
    })?;
    let read = |item: &Value| match item.as_str() {
        Some(text) => position(text),
        None => Err(Refusal::BadRequest(json!(["not_string", item]))),
    };
    let all = items.iter().map(read).collect::<Result<Vec<Seq>, Refusal>>()?;
    let mut known = HashSet::new();
    Ok(all.into_iter().filter(|seq| known.insert(*seq)).collect())
}

fn filter(body: &Map<String, Value>, now_ms: u64) -> Result<Filter, Refusal> {
    let given = match body.get("filter") {
        None => &Map::new(),
        Some(Value::Object(map)) => map,
        Some(other) => return Err(Refusal::BadRequest(json!(["not_object", other]))),
    };
    let pairs: Vec<(&str, String)> = given
        .iter()
        .map(|(name, value)| (name.as_str(), json::plain(value)))
        .collect();
    let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str()));
    Filter::of(pairs, now_ms, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Selection, Refusal> {
        let value: Value = serde_json::from_str(text).unwrap();
        Selection::of(value.as_object().unwrap(), 0)
    }

    #[test]
    fn an_end_is_a_position_or_a_time() {
        assert_eq!(End::of("5").unwrap(), End::Position(5));
        assert_eq!(End::of(&End::Time(7).to_string()).unwrap(), End::Time(7));
        assert!(End::of("t").is_err() && End::of("x5").is_err());
    }

    #[test]
    fn positions_are_texts_of_one_edition_each_once() {
        let selection = read(r#"{"positions": ["5", "9", "5"], "edition": "1.2"}"#).unwrap();
        assert_eq!(selection.positions, Some(vec![5, 9]));
        assert!(!selection.is_head() && read("{}").unwrap().is_head());
        for wrong in [
            r#"{"positions": ["5"]}"#,
            r#"{"positions": [5], "edition": "1.2"}"#,
            r#"{"positions": ["x"], "edition": "1.2"}"#,
            r#"{"positions": "5", "edition": "1.2"}"#,
            r#"{"from": "x"}"#,
            r#"{"filter": {"zork": "1"}}"#,
            r#"{"filter": ["body"]}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..=POSITIONS).map(|it| it.to_string()).collect();
        let many = json!({"positions": many, "edition": "1.2"});
        assert!(Selection::of(many.as_object().unwrap(), 0).is_err());
    }
}
