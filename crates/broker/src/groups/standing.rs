//! How a group's member stands: whether it leads, and what it has proposed that its group does not take yet.

use super::member::{Member, News};
use bytes::Bytes;
use cluster::{Committed, GroupId, Groups, MemberId, Refused};
use std::collections::VecDeque;
use std::sync::Weak;

/// A group's member on this node, as the groups see it.
pub struct Standing {
    pub member: Weak<dyn Member>,
    /// The one that it was opened with.
    keeper: Weak<dyn Member>,
    /// The term in which it leads, if it does.
    leads: Option<u64>,
    /// It was told so: its first entry of this term is committed, so everything before is known.
    told: bool,
    /// What was decided in this term and has to wait until more is committed.
    waiting: VecDeque<Bytes>,
    /// The question for a proof that is under way.
    question: Option<u64>,
}

impl Standing {
    pub fn new(member: Weak<dyn Member>) -> Self {
        Self {
            keeper: member.clone(),
            member,
            leads: None,
            told: false,
            waiting: VecDeque::new(),
            question: None,
        }
    }

    /// The group is open here no more.
    pub fn close(&self) {
        if let Some(keeper) = self.keeper.upgrade() {
            keeper.closed();
        }
    }

    /// Its host proposes these. What it decided in another term than this is dropped with the machine that decided it.
    pub fn propose(&mut self, group: GroupId, term: u64, records: Vec<Bytes>, groups: &mut Groups) {
        if self.leads == Some(term) {
            self.waiting.extend(records);
            self.go_on(group, groups);
        }
    }

    /// Proposes what waits, as far as the group takes it. Whether it took anything.
    pub fn go_on(&mut self, group: GroupId, groups: &mut Groups) -> bool {
        let before = self.waiting.len();
        while let Some(record) = self.waiting.front() {
            match groups.propose(group, record.clone()) {
                Ok(_) => drop(self.waiting.pop_front()),
                Err(Refused::Busy) => break,
                // It does not lead any more, and is about to be told.
                Err(_) => {
                    self.waiting.clear();
                    return false;
                }
            }
        }
        self.waiting.len() < before
    }

    /// Its host wants to know whether it still leads.
    pub fn prove(&mut self, group: GroupId, term: u64, groups: &mut Groups) {
        if self.leads == Some(term) {
            // If it is refused, the member does not lead any more, and is about to be told.
            self.question = groups.prove(group).ok();
        }
    }

    /// The answer is yes.
    pub fn proven(&mut self, question: u64) -> Vec<News> {
        match self.leads {
            Some(term) if self.question == Some(question) => {
                self.question = None;
                vec![News::Proven { term }]
            }
            _ => Vec::new(),
        }
    }

    /// There was none: it is asked again until there is one, or another one leads. Whether it was asked.
    pub fn unproven(&mut self, group: GroupId, question: u64, groups: &mut Groups) -> bool {
        if self.question == Some(question) {
            self.question = groups.prove(group).ok();
        }
        self.question.is_some_and(|asked| asked != question)
    }

    /// Who leads has changed. `me` is the member of this node.
    pub fn led(&mut self, term: u64, leader: Option<MemberId>, me: Option<MemberId>) -> Vec<News> {
        let leads = (leader.is_some() && leader == me).then_some(term);
        if leads == self.leads && leads.is_some() {
            return Vec::new();
        }
        let mut news = Vec::new();
        if self.told {
            news.push(News::Deposed);
        }
        self.leads = leads;
        self.told = false;
        self.waiting.clear();
        self.question = None;
        news.push(News::Leader(leader));
        news
    }

    /// This is committed. With the first entry of the term in which it leads, it knows all that was committed before.
    pub fn committed(&mut self, entries: impl Iterator<Item = Committed>) -> Vec<News> {
        let mut news = Vec::new();
        for entry in entries {
            let term = entry.at.term;
            news.push(News::Committed(entry));
            if self.leads == Some(term) && !self.told {
                self.told = true;
                news.push(News::Leads { term });
            }
        }
        news
    }
}
