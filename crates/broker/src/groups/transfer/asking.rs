//! One question at a time, of one node after the other.

use super::frame::Asked;
use cluster::NodeId;

/// Ticks without an answer before the same question is asked again.
const AGAIN: u32 = 10;
/// Ticks without an answer before another node is asked.
const ELSEWHERE: u32 = 50;
/// Ticks after an answer that is none, before the next node is asked.
const PAUSE: u32 = 3;

/// Who is asked, and the question that is under way.
#[derive(Debug)]
pub struct Asking {
    /// Of this start of the node.
    incarnation: u64,
    /// The last question's number. No two questions of a start have the same.
    number: u64,
    nodes: Vec<NodeId>,
    at: usize,
    open: bool,
    /// Ticks since the node that is asked was of use.
    silent: u32,
    /// Ticks until the next question.
    pause: u32,
    /// How many nodes in a row were of no use.
    useless: usize,
}

/// What is to be done after a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Nothing.
    Nothing,
    /// A question may be asked.
    Ask,
    /// The question that is under way is to be asked again: it is the same one, since its answer may still come.
    Again(NodeId),
    /// Whoever was asked is not waited for any more; the next node is asked.
    Silent,
}

impl Asking {
    pub fn new(incarnation: u64) -> Self {
        Self {
            incarnation,
            number: 0,
            nodes: Vec::new(),
            at: 0,
            open: false,
            silent: 0,
            pause: 0,
            useless: 0,
        }
    }

    /// These are asked from now on, the first one first. A question that is under way is not waited for any more.
    pub fn begin(&mut self, nodes: Vec<NodeId>) {
        *self = Self {
            number: self.number,
            nodes,
            ..Self::new(self.incarnation)
        };
    }

    /// Whether a question may be asked now.
    pub fn is_free(&self) -> bool {
        !self.open && self.pause == 0 && !self.nodes.is_empty()
    }

    /// Who is asked, and the number of the question.
    pub fn ask(&mut self) -> Option<(NodeId, u64)> {
        let node = *self.nodes.get(self.at)?;
        self.number += 1;
        self.open = true;
        Some((node, self.number))
    }

    /// Whether this is the answer to the question that is under way. Then none is.
    pub fn is_answered(&mut self, from: NodeId, asked: Asked) -> bool {
        let mine = asked.incarnation == self.incarnation && asked.number == self.number;
        let answered = self.open && mine && self.nodes.get(self.at) == Some(&from);
        if answered {
            self.open = false;
        }
        answered
    }

    /// The answer was of use.
    pub fn useful(&mut self) {
        (self.silent, self.useless) = (0, 0);
    }

    /// The answer was of no use: the next node is asked, a little later.
    pub fn useless(&mut self) {
        self.pause = PAUSE;
        self.elsewhere();
    }

    /// The next node is asked from now on.
    pub fn elsewhere(&mut self) {
        self.at = (self.at + 1) % self.nodes.len().max(1);
        (self.silent, self.open) = (0, false);
        self.useless += 1;
    }

    /// Whether all were asked and none was of use.
    pub fn is_in_vain(&self) -> bool {
        self.useless >= self.nodes.len()
    }

    /// How many there are to be asked.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn tick(&mut self) -> Waited {
        if self.pause > 0 {
            self.pause -= 1;
            return match self.pause {
                0 => Waited::Ask,
                _ => Waited::Nothing,
            };
        }
        if !self.open {
            return Waited::Nothing;
        }
        self.silent += 1;
        if self.silent >= ELSEWHERE {
            self.elsewhere();
            return Waited::Silent;
        }
        match self.nodes.get(self.at) {
            Some(node) if self.silent.is_multiple_of(AGAIN) => Waited::Again(*node),
            _ => Waited::Nothing,
        }
    }
}
