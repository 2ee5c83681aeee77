//! A long text is written part by part, and a piece of it at a time.

use serde_json::Value;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// A piece of a long text has about so many bytes.
pub const PIECE: usize = 256 * 1024;

/// How much of a long text is written at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// All of it.
    Whole,
    /// A piece that begins with so many parts left out.
    From(usize),
}

impl Cut {
    /// True for what begins with the text, not for a later piece.
    pub fn is_first(self) -> bool {
        matches!(self, Self::Whole | Self::From(0))
    }
}

/// Those parts of a text that were asked for. Whoever writes the text gives all parts in turn, until there is enough.
#[derive(Debug)]
pub struct Piece {
    first: usize,
    limit: usize,
    given: usize,
    body: Vec<u8>,
}

impl Piece {
    /// Nothing is written yet.
    pub fn of(cut: Cut) -> Self {
        let (first, limit) = match cut {
            Cut::Whole => (0, usize::MAX),
            Cut::From(first) => (first, PIECE),
        };
        Self {
            first,
            limit,
            given: 0,
            body: Vec::new(),
        }
    }

    /// Gives the next part; its text is made only if it belongs to this piece. Breaks if there is enough without it.
    pub fn part(&mut self, text: impl FnOnce() -> String) -> ControlFlow<()> {
        if self.body.len() >= self.limit {
            return ControlFlow::Break(());
        }
        if self.given >= self.first {
            self.body.extend_from_slice(text().as_bytes());
        }
        self.given += 1;
        ControlFlow::Continue(())
    }

    /// Gives a list in JSON's form, each row a part.
    pub fn rows<T>(&mut self, items: impl Iterator<Item = T>, row: impl Fn(&T) -> Value) -> ControlFlow<()> {
        self.part(|| "[".to_owned())?;
        let mut comma = "";
        for item in items {
            self.part(|| format!("{comma}{}", row(&item)))?;
            comma = ",";
        }
        self.part(|| "]".to_owned())
    }

    /// The same for rows that are made so many at a time, of which some may be gone by then. `begun` says whether an earlier
    /// piece had a row.
    pub fn batches<T>(
        &mut self,
        mut items: impl Iterator<Item = T>,
        size: usize,
        begun: &AtomicBool,
        rows: impl Fn(Vec<T>) -> Vec<Option<Value>>,
    ) -> ControlFlow<()> {
        if self.first == 0 {
            begun.store(false, Ordering::Relaxed);
        }
        self.part(|| "[".to_owned())?;
        // Those that earlier pieces had are not made again.
        while self.given < self.first && items.next().is_some() {
            self.given += 1;
        }
        loop {
            let batch: Vec<T> = items.by_ref().take(size).collect();
            if batch.is_empty() {
                return self.part(|| "]".to_owned());
            }
            if self.body.len() >= self.limit {
                return ControlFlow::Break(());
            }
            for row in rows(batch) {
                let text = || match row {
                    None => String::new(),
                    Some(row) if begun.swap(true, Ordering::Relaxed) => format!(",{row}"),
                    Some(row) => row.to_string(),
                };
                self.part(text)?;
            }
        }
    }

    /// The text, and with which part it goes on, if there was enough.
    pub fn end(self, given: ControlFlow<()>) -> (Vec<u8>, Option<usize>) {
        (self.body, given.is_break().then_some(self.given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_long_text_are_the_whole_one() {
        let items: Vec<String> = (0..40)
            .map(|at| format!("{at}{}", "x".repeat(PIECE / 10)))
            .collect();
        let ask = |items: &[String], cut| {
            let mut piece = Piece::of(cut);
            let given = piece.rows(items.iter(), |item| Value::from(item.as_str()));
            piece.end(given)
        };
        let (whole, rest) = ask(&items, Cut::Whole);
        assert_eq!(rest, None);
        assert_eq!(whole, Value::from(items.clone()).to_string().into_bytes());
        let (mut text, mut next, mut pieces) = (Vec::new(), Some(0), 0);
        while let Some(first) = next {
            let (piece, rest) = ask(&items, Cut::From(first));
            assert!(piece.len() < 2 * PIECE);
            text.extend_from_slice(&piece);
            (next, pieces) = (rest, pieces + 1);
        }
        assert!(pieces >= 4, "{pieces}");
        assert_eq!(text, whole);
        assert_eq!(ask(&[], Cut::From(0)).0, b"[]");
    }

    #[test]
    fn rows_that_are_made_some_at_a_time_are_the_same_and_those_that_are_gone_leave_no_gap() {
        let row = |at: &usize| {
            (!at.is_multiple_of(5)).then(|| Value::from(format!("{at}{}", "x".repeat(PIECE / 10))))
        };
        let (begun, asked) = (AtomicBool::new(true), std::cell::Cell::new(0));
        let (mut text, mut next, mut pieces) = (Vec::new(), Some(0), 0);
        while let Some(first) = next {
            let mut piece = Piece::of(Cut::From(first));
            let given = piece.batches(0..40, 7, &begun, |batch| {
                asked.set(asked.get() + batch.len());
                batch.iter().map(row).collect()
            });
            let (made, rest) = piece.end(given);
            text.extend_from_slice(&made);
            (next, pieces) = (rest, pieces + 1);
        }
        let whole: Vec<Value> = (0..40).filter_map(|at| row(&at)).collect();
        assert_eq!(text, Value::from(whole).to_string().into_bytes());
        assert!(pieces >= 3, "{pieces}");
        assert!(asked.get() <= 40 + 7 * pieces, "{}", asked.get());
    }

    #[test]
    fn parts_of_other_pieces_are_not_made() {
        let mut piece = Piece::of(Cut::From(1));
        let other = || unreachable!("this part belongs to another piece");
        assert!(piece.part(other).is_continue());
        assert!(piece.part(|| "x".repeat(PIECE)).is_continue());
        let given = piece.part(other);
        assert_eq!(piece.end(given).1, Some(2));
    }
}
