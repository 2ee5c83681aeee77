//! Who stands in line, by priority.

use std::collections::VecDeque;

/// One line for each priority that a consumer asked for, the highest first. Lines are kept while they are empty: a queue's
/// consumers have few priorities, and mostly one.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    priority: i64,
    slots: VecDeque<u32>,
}

/// So many empty lines are kept before they are looked for.
const KEPT: usize = 8;

impl Lines {
    /// The first slot of the highest line that is not empty, and which line that is.
    pub(crate) fn front(&self) -> Option<(usize, u32)> {
        let fronts = self.lines.iter().enumerate();
        fronts
            .filter_map(|(at, line)| Some((at, *line.slots.front()?)))
            .next()
    }

    /// How many stand in a line.
    pub(crate) fn length(&self, line: usize) -> usize {
        self.lines.get(line).map_or(0, |line| line.slots.len())
    }

    /// Puts a slot at the end of its priority's line.
    pub(crate) fn join(&mut self, priority: i64, slot: u32) {
        let at = self.lines.partition_point(|line| line.priority > priority);
        if self.lines.get(at).is_none_or(|line| line.priority != priority) {
            let slots = VecDeque::new();
            self.lines.insert(at, Line { priority, slots });
        }
        self.lines[at].slots.push_back(slot);
    }

    /// The first of a line leaves it.
    pub(crate) fn leave(&mut self, line: usize) {
        if let Some(line) = self.lines.get_mut(line) {
            line.slots.pop_front();
        }
    }

    /// The first of a line goes to its end.
    pub(crate) fn rotate(&mut self, line: usize) {
        if let Some(line) = self.lines.get_mut(line) {
            line.slots.rotate_left(1);
        }
    }

    /// Keeps those slots only that `stays` says. Costs time in the number of all that stand in line; returns how many those were.
    pub(crate) fn retain(&mut self, mut stays: impl FnMut(u32) -> bool) -> usize {
        let mut looked = 0;
        for line in &mut self.lines {
            looked += line.slots.len();
            line.slots.retain(|slot| stays(*slot));
        }
        if self.lines.len() > KEPT {
            self.lines.retain(|line| !line.slots.is_empty());
        }
        looked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_line_that_is_not_empty_is_first() {
        let mut lines = Lines::default();
        lines.join(0, 1);
        lines.join(5, 2);
        lines.join(-3, 3);
        lines.join(5, 4);
        assert_eq!(lines.front(), Some((0, 2)));
        lines.rotate(0);
        assert_eq!((lines.front(), lines.length(0)), (Some((0, 4)), 2));
        lines.leave(0);
        lines.retain(|slot| slot != 2);
        assert_eq!(lines.front(), Some((1, 1)));
        lines.retain(|slot| slot != 1);
        assert_eq!(lines.front(), Some((2, 3)));
        lines.leave(2);
        assert_eq!(lines.front(), None);
    }

    #[test]
    fn priorities_that_nobody_has_any_more_are_forgotten() {
        let mut lines = Lines::default();
        for priority in 0..1000 {
            lines.join(priority, 7);
            lines.retain(|_| false);
        }
        assert!(lines.lines.len() <= KEPT + 1);
    }
}
