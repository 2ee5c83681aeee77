//! Leases on the catalog: a node that has one may believe its copy.
//!
//! The holder counts a lease from when it sent the question, its leader from when it answered, so no clock is compared with
//! another one. Clocks may run apart by a tenth ([`DRIFT_MS`] of [`LEASE_MS`]).

use cluster::NodeId;
use model::Mutant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How long a lease lasts, in milliseconds of the holder's clock.
pub const LEASE_MS: u64 = 300;

/// So much longer the leader waits for it, in milliseconds of its own.
pub const DRIFT_MS: u64 = 30;

/// So many questions may be without an answer; those before count no more.
const QUESTIONS: usize = 8;

/// What a node has of leases.
#[derive(Default)]
pub struct Holder {
    /// The questions that have no answer, with when they were sent.
    asked: VecDeque<(u64, u64)>,
    rounds: u64,
    /// Until when they last, and from which version on they count.
    leases: Vec<(u64, u64)>,
}

impl Holder {
    /// Asks for a lease: the number of the question.
    pub fn ask(&mut self, now_ms: u64) -> u64 {
        self.rounds += 1;
        self.asked.push_back((self.rounds, now_ms));
        if self.asked.len() > QUESTIONS {
            self.asked.pop_front();
        }
        self.rounds
    }

    /// The answer to this question: it counts once the version `least` is applied.
    pub fn granted(&mut self, round: u64, least: u64, now_ms: u64) {
        let Some(at) = self.asked.iter().position(|(asked, _)| *asked == round) else {
            return;
        };
        let sent = self.asked.drain(..=at).next_back().map_or(0, |(_, sent)| sent);
        let sent = match Mutant::LeaseFromAnswer.is_on() {
            true => now_ms,
            false => sent,
        };
        self.leases.retain(|(until, _)| *until > now_ms);
        self.leases.push((sent + LEASE_MS, least));
    }

    /// Until when the copy may be believed that has this version, in milliseconds.
    pub fn fresh_until(&self, version: u64) -> u64 {
        let counting = self.leases.iter().filter(|(_, least)| *least <= version);
        counting.map(|(until, _)| *until).max().unwrap_or(0)
    }
}

/// What a leader knows of a node.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    start: u64,
    /// Until when it may have a lease.
    until: u64,
    /// What it has applied.
    applied: u64,
    /// A version that it has not applied, and since when that is waited for.
    lacks: Option<(u64, u64)>,
}

impl Held {
    /// Whether it lags for longer than a lease lasts: then it is given none, for every change would wait for it. It is again as
    /// soon as it has what there was when it asked the time before. Who has no lease has to keep up first.
    fn lags(&mut self, version: u64, now_ms: u64) -> bool {
        if self.applied >= version {
            self.lacks = None;
            return false;
        }
        let has_none = self.until <= now_ms;
        let (since, lags) = match self.lacks {
            Some((lacked, since)) if self.applied < lacked => {
                if !has_none && now_ms < since + LEASE_MS {
                    return false;
                }
                (since, true)
            }
            Some(_) => (now_ms, false),
            None => (now_ms, has_none),
        };
        self.lacks = Some((version, since));
        lags
    }
}

/// The leases that a leader has given or has to wait for.
pub struct Grants {
    term: u64,
    /// Whatever has been answered by those who led before is not above this.
    least: u64,
    everywhere: u64,
    nodes: BTreeMap<NodeId, Held>,
    /// Nodes that wait until a version is everywhere.
    waiting: BTreeMap<u64, BTreeSet<NodeId>>,
}

impl Grants {
    /// A leader begins in this term, with this version, which has everything that was committed before. Each of these nodes
    /// may have a lease from somebody else.
    pub fn new(term: u64, version: u64, peers: impl Iterator<Item = NodeId>, now_ms: u64) -> Self {
        let held = Held {
            until: now_ms + LEASE_MS + DRIFT_MS,
            ..Held::default()
        };
        let waits = !Mutant::CatalogWaitsForNobody.is_on();
        Self {
            term,
            least: version,
            everywhere: 0,
            nodes: peers.filter(|_| waits).map(|node| (node, held)).collect(),
            waiting: BTreeMap::new(),
        }
    }

    /// In which term it leads.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// A start of a node has applied this version.
    pub fn heard(&mut self, node: NodeId, start: u64, applied: u64) {
        let held = self.nodes.entry(node).or_default();
        if start > held.start {
            // What an earlier start was given has ended with it.
            held.start = start;
            (held.applied, held.lacks) = (0, None);
        }
        if start == held.start {
            held.applied = held.applied.max(applied);
        }
    }

    /// Gives a node a lease: from which version on it counts. `None` to an earlier start, and to one that lags behind `version`,
    /// which is committed.
    pub fn grant(&mut self, node: NodeId, start: u64, version: u64, now_ms: u64) -> Option<u64> {
        let held = self.nodes.get_mut(&node).filter(|held| held.start == start)?;
        if held.lags(version, now_ms) {
            return None;
        }
        held.until = held.until.max(now_ms + LEASE_MS + DRIFT_MS);
        Some(self.least.max(self.everywhere))
    }

    /// This node waits for the answer to a change.
    pub fn wait(&mut self, node: NodeId, version: u64) {
        self.waiting.entry(version).or_default().insert(node);
    }

    /// What is everywhere, if this leader has applied that version.
    pub fn reaches(&self, version: u64, now_ms: u64) -> u64 {
        if Mutant::CatalogAnswersEarly.is_on() {
            return version;
        }
        let lasting = self.nodes.values().filter(|held| held.until > now_ms);
        let lowest = lasting.map(|held| held.applied).min();
        lowest
            .map_or(version, |lowest| lowest.min(version))
            .max(self.everywhere)
    }

    /// When a lease runs out, at the latest, that somebody's answer waits for: more may be everywhere then. In milliseconds.
    pub fn runs_out(&self, version: u64, now_ms: u64) -> Option<u64> {
        let waits = !self.waiting.is_empty();
        let lasting = self.nodes.values().filter(|held| held.until > now_ms);
        let behind = lasting.filter(|held| waits && held.applied < version);
        behind.map(|held| held.until).min()
    }

    /// This is everywhere: who waited for it.
    pub fn advance(&mut self, everywhere: u64) -> BTreeSet<NodeId> {
        self.everywhere = self.everywhere.max(everywhere);
        let later = self.waiting.split_off(&(self.everywhere + 1));
        let reached = std::mem::replace(&mut self.waiting, later);
        reached.into_values().flatten().collect()
    }

    /// What is everywhere.
    pub fn everywhere(&self) -> u64 {
        self.everywhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId(1);
    const B: NodeId = NodeId(2);

    #[test]
    fn a_lease_counts_from_the_question_and_once_what_was_answered_is_applied() {
        let mut holder = Holder::default();
        let (lost, round) = (holder.ask(0), holder.ask(100));
        holder.granted(round, 7, 350);
        assert_eq!((holder.fresh_until(6), holder.fresh_until(7)), (0, 400));
        holder.granted(lost, 0, 360);
        assert_eq!(holder.fresh_until(6), 0, "a later answer has come");
        holder.granted(round, 0, 360);
        assert_eq!(holder.fresh_until(6), 0, "it has been answered");
        let next = holder.ask(400);
        holder.granted(next, 9, 410);
        assert_eq!((holder.fresh_until(8), holder.fresh_until(9)), (0, 700));
    }

    #[test]
    fn a_change_is_everywhere_once_all_who_may_have_a_lease_have_applied_it_or_it_has_run_out() {
        let mut grants = Grants::new(1, 5, [A, B].into_iter(), 0);
        assert_eq!(grants.reaches(6, 329), 0, "leases of whoever led before");
        grants.heard(A, 1, 6);
        assert_eq!(grants.reaches(6, 329), 0);
        grants.heard(B, 1, 5);
        assert_eq!(grants.reaches(6, 329), 5);
        assert_eq!(grants.runs_out(6, 0), None, "nobody waits");
        grants.wait(A, 6);
        assert_eq!(grants.runs_out(6, 0), Some(330));
        assert!(grants.advance(5).is_empty());
        assert_eq!(grants.grant(B, 1, 6, 300), Some(5));
        assert_eq!(grants.runs_out(6, 300), Some(630));
        assert_eq!((grants.reaches(6, 629), grants.reaches(6, 630)), (5, 6));
        assert_eq!(grants.runs_out(6, 630), None, "it has run out");
        assert_eq!(grants.advance(6), BTreeSet::from([A]));
        grants.heard(B, 1, 6);
        assert_eq!(grants.grant(B, 1, 6, 800), Some(6));
        assert_eq!(grants.reaches(7, 900), 6, "it is waited for");
    }

    #[test]
    fn a_grant_asks_for_all_that_was_committed_before_its_leader_began() {
        let mut grants = Grants::new(1, 5, [A].into_iter(), 0);
        grants.heard(A, 1, 0);
        assert_eq!(grants.grant(A, 1, 5, 1), Some(5));
        grants.heard(A, 2, 0);
        assert_eq!(grants.grant(A, 1, 5, 2), None, "an earlier start");
    }

    #[test]
    fn a_node_that_lags_for_longer_than_a_lease_gets_none_until_it_keeps_up_and_changes_wait_for_it_no_more()
    {
        let mut grants = Grants::new(1, 5, [A, B].into_iter(), 0);
        for (node, applied) in [(A, 6), (B, 5)] {
            grants.heard(node, 1, applied);
        }
        let mut given = Vec::new();
        for now in (100..1_000).step_by(100) {
            grants.grant(A, 1, 6, now);
            given.extend(grants.grant(B, 1, 6, now).map(|_| now));
        }
        assert_eq!(given, [100, 200, 300], "its disk hangs, and it asks all the same");
        assert_eq!((grants.reaches(6, 629), grants.reaches(6, 630)), (5, 6));
        grants.heard(A, 1, 7);
        grants.heard(B, 1, 6);
        assert!(
            grants.grant(B, 1, 7, 1_000).is_some(),
            "that was committed since it asked"
        );
        assert_eq!(grants.reaches(7, 1_001), 6);
    }

    #[test]
    fn a_node_that_joins_has_a_lease_once_it_has_the_contents() {
        let mut grants = Grants::new(1, 5, [A].into_iter(), 0);
        grants.heard(A, 1, 5);
        grants.heard(B, 1, 0);
        assert_eq!(grants.grant(B, 1, 5, 100), None);
        assert_eq!(grants.reaches(5, 100), 5, "nobody waits for it");
        grants.heard(B, 1, 5);
        assert_eq!(grants.grant(B, 1, 5, 200), Some(5));
    }
}
