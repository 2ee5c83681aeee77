//! The catalog as a machine of which several nodes have a copy: one decides, all apply what it has decided.
//!
//! A request and everything that follows from it is one record ([`Decided`]): a node that stops deciding leaves no request half
//! done. The record says who asked and what the answer is, be it a refusal, so each node learns the answers to its requests by
//! applying records, and whoever decides next knows which requests have been decided. Nothing that is asked again is done twice.

mod codec;
mod contents;

pub use contents::Contents;

use crate::{Answer, Catalog, Effect, Record, Refusal, Request, View};
use model::{Machine, Outcome, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// So many requests of a node may be without an answer; more than that are not taken, and asked again.
pub const MOST_OPEN: u64 = 1024;

/// A start of a node, as it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sender {
    /// Which node: its number among those that share the catalog's journal.
    pub node: u64,
    /// Which of its starts; a later one has a higher number.
    pub start: u64,
}

/// A request as it is recognised when it comes again.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    /// Who asks.
    pub sender: Sender,
    /// Which of its requests, from 1, without gaps.
    pub number: u64,
    /// The sender has the answers to all that are numbered below.
    pub below: u64,
    /// What it asks.
    pub request: Request,
}

/// What the catalog says to a request.
pub type Said = Result<Answer, Refusal>;

/// What became of a request. The record of the journal that several nodes agree on.
#[derive(Clone, Debug, PartialEq)]
pub struct Decided {
    /// Who asked.
    pub sender: Sender,
    /// Which of its requests it was.
    pub number: u64,
    /// Nobody asks for answers below this one any more.
    pub below: u64,
    /// The answer.
    pub said: Said,
    /// What is so since.
    pub records: Vec<Record>,
}

/// A request was decided: what follows from it for a node.
#[derive(Clone, Debug)]
pub struct Happened {
    /// How many requests have been decided, this one included: the same number on every node.
    pub version: u64,
    /// Who asked.
    pub sender: Sender,
    /// Which of its requests it was.
    pub number: u64,
    /// The answer.
    pub said: Said,
    /// What is so since.
    pub records: Vec<Record>,
    /// What is to be started, stopped and set; no answers.
    pub orders: Vec<Effect<()>>,
    /// What exists now.
    pub view: View,
}

/// What is known of a node that asks.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    start: u64,
    /// All its requests up to this one are decided.
    decided: u64,
    /// The answers that it may not have, by number, ascending.
    kept: VecDeque<(u64, Said)>,
}

/// The catalog, and which requests have been decided.
#[derive(Default)]
pub struct Shared {
    catalog: Catalog<()>,
    version: u64,
    senders: BTreeMap<u64, Known>,
    turn: Outcome<Record, Effect<()>>,
}

impl Shared {
    /// A catalog that one node has decided so far. `next_queue` is the id of the next queue ([`Catalog::next_queue`]).
    pub fn begin(view: View, next_queue: model::QueueId) -> Self {
        let contents = Contents::begin(view, next_queue);
        Self::of(&contents)
    }

    /// The catalog that has these contents.
    pub fn of(contents: &Contents) -> Self {
        Self {
            catalog: contents.catalog(),
            version: contents.version,
            senders: contents.senders.clone(),
            turn: Outcome::default(),
        }
    }

    /// What it has, so that another one can go on from there.
    pub fn contents(&self) -> Contents {
        Contents {
            version: self.version,
            next_queue: self.catalog.next_queue(),
            view: self.view(),
            senders: self.senders.clone(),
        }
    }

    /// How many requests have been decided.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What exists now.
    pub fn view(&self) -> View {
        self.catalog.view()
    }

    /// All requests of this start of a node up to which one are decided.
    pub fn decided(&self, sender: Sender) -> u64 {
        known_as(&self.senders, sender).map_or(0, |known| known.decided)
    }

    /// Decides a request: what goes on record, and what follows once it is committed. `None` if nothing is to be done: it has
    /// been decided, one before it is missing, it is of an earlier start than one that is known, or too many are without an
    /// answer.
    pub fn decide(&mut self, now: Timestamp, asked: Numbered) -> Option<(Decided, Happened)> {
        let Numbered {
            sender,
            number,
            below,
            request,
        } = asked;
        let known = self.senders.get(&sender.node);
        let decided = match known {
            Some(known) if known.start > sender.start => return None,
            Some(known) if known.start == sender.start => known.decided,
            _ => 0,
        };
        let is_next = number == decided + 1 || model::Mutant::CatalogForgets.is_on();
        if !is_next || below > number || number - below >= MOST_OPEN {
            return None;
        }
        self.catalog.handle(now, request.asked_by(()), &mut self.turn);
        let mut said = Err(Refusal::Internal {
            reason: "the catalog gave no answer".into(),
        });
        let mut orders = Vec::new();
        let effects = self.turn.effects.drain(..).chain(self.turn.promises.drain(..));
        for effect in effects {
            match effect {
                Effect::Reply((), given) => said = given,
                order => orders.push(order),
            }
        }
        let decided = Decided {
            sender,
            number,
            below,
            said,
            records: std::mem::take(&mut self.turn.records),
        };
        self.note(&decided);
        let happened = self.happened(decided.clone(), orders);
        Some((decided, happened))
    }

    /// Takes over what another node has decided.
    pub fn apply(&mut self, decided: Decided) -> Happened {
        for record in &decided.records {
            self.catalog.apply(0, record.clone(), &mut self.turn);
        }
        let orders = std::mem::take(&mut self.turn.effects);
        self.note(&decided);
        self.happened(decided, orders)
    }

    fn note(&mut self, decided: &Decided) {
        self.version += 1;
        let known = self.senders.entry(decided.sender.node).or_default();
        if known.start != decided.sender.start {
            *known = Known {
                start: decided.sender.start,
                ..Known::default()
            };
        }
        known.decided = decided.number;
        while known
            .kept
            .front()
            .is_some_and(|(number, _)| *number < decided.below)
        {
            known.kept.pop_front();
        }
        known.kept.push_back((decided.number, decided.said.clone()));
    }

    fn happened(&self, decided: Decided, orders: Vec<Effect<()>>) -> Happened {
        Happened {
            version: self.version,
            sender: decided.sender,
            number: decided.number,
            said: decided.said,
            records: decided.records,
            orders,
            view: self.view(),
        }
    }
}

/// What is known of this start of a node.
fn known_as(senders: &BTreeMap<u64, Known>, sender: Sender) -> Option<&Known> {
    let known = senders.get(&sender.node);
    known.filter(|known| known.start == sender.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeclareQueue, Incarnation, NodeConnection, NodeId};
    use model::Journaled;

    fn vhost(name: &str) -> Request {
        Request::CreateVhost { name: name.into() }
    }

    fn queue(name: &str, passive: bool) -> Request {
        let declare = DeclareQueue {
            name: name.into(),
            durable: true,
            passive,
            ..DeclareQueue::default()
        };
        Request::DeclareQueue {
            vhost: "/".into(),
            declare,
            by: NodeConnection::of_node(Incarnation {
                node: NodeId(1),
                number: 1,
            }),
            unique: [7; 16],
        }
    }

    fn asked(node: u64, start: u64, number: u64, request: Request) -> Numbered {
        let sender = Sender { node, start };
        let below = number.saturating_sub(3).max(1);
        Numbered {
            sender,
            number,
            below,
            request,
        }
    }

    fn decide(shared: &mut Shared, asked: Numbered) -> Option<Decided> {
        shared.decide(Timestamp(0), asked).map(|(decided, _)| decided)
    }

    #[test]
    fn a_request_is_decided_once_however_often_and_by_whomever_it_is_taken() {
        let (mut first, mut second) = (Shared::default(), Shared::default());
        let one = asked(1, 5, 1, vhost("/"));
        let decided = decide(&mut first, one.clone()).unwrap();
        assert_eq!(decide(&mut first, one.clone()), None);
        second.apply(decided);
        assert_eq!(decide(&mut second, one), None);
        assert_eq!(
            decide(&mut second, asked(1, 5, 3, vhost("b"))),
            None,
            "one is missing"
        );
        assert!(decide(&mut second, asked(1, 5, 2, vhost("a"))).is_some());
        assert!(
            decide(&mut second, asked(1, 6, 1, vhost("b"))).is_some(),
            "a later start"
        );
        assert_eq!(
            decide(&mut second, asked(1, 5, 3, vhost("c"))),
            None,
            "an earlier one"
        );
        assert_eq!(second.version(), 3);
    }

    #[test]
    fn refusals_and_what_changes_nothing_are_on_record_and_count_as_decided() {
        let mut shared = Shared::default();
        decide(&mut shared, asked(1, 1, 1, vhost("/"))).unwrap();
        let refused = decide(&mut shared, asked(1, 1, 2, queue("q", true))).unwrap();
        assert!(refused.said.is_err() && refused.records.is_empty());
        assert!(
            decide(&mut shared, asked(1, 1, 3, queue("q", false)))
                .unwrap()
                .said
                .is_ok()
        );
        let again = decide(&mut shared, asked(1, 1, 4, queue("q", false))).unwrap();
        assert!(again.said.is_ok() && again.records.is_empty());
        assert_eq!(shared.decided(Sender { node: 1, start: 1 }), 4);
    }

    #[test]
    fn answers_are_kept_until_their_node_has_them_and_no_more_are_open_than_may_be() {
        let mut shared = Shared::default();
        let sender = Sender { node: 1, start: 1 };
        for number in 1..=10 {
            decide(&mut shared, asked(1, 1, number, vhost("/"))).unwrap();
        }
        let kept: Vec<u64> = shared
            .contents()
            .kept(sender)
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(kept, [7, 8, 9, 10]);
        for number in 11.. {
            let asked = Numbered {
                below: 7,
                ..asked(1, 1, number, vhost("/"))
            };
            if decide(&mut shared, asked).is_none() {
                assert_eq!(number, 7 + MOST_OPEN);
                return;
            }
        }
    }

    #[test]
    fn whoever_applies_has_what_whoever_decides_has_and_so_has_whoever_goes_on_from_its_contents() {
        let (mut leader, mut follower) = (Shared::default(), Shared::default());
        let requests = [vhost("/"), queue("a", false), queue("b", true), queue("b", false)];
        for (number, request) in (1..).zip(requests) {
            let (decided, here) = leader.decide(Timestamp(0), asked(2, 1, number, request)).unwrap();
            let mut bytes = Vec::new();
            decided.encode(&mut bytes);
            let there = follower.apply(Decided::decode(&bytes).unwrap());
            assert_eq!(there.orders.len(), here.orders.len());
            let mut contents = Vec::new();
            follower.contents().encode(&mut contents);
            let third = Shared::of(&Contents::decode(&contents).unwrap());
            for other in [&follower, &third] {
                assert_eq!(other.version(), leader.version());
                assert_eq!(other.view().generation(), leader.view().generation());
                assert!(other.view().facts().eq(leader.view().facts()));
                assert_eq!(other.contents().next_queue, leader.contents().next_queue);
            }
            assert_eq!(third.senders, follower.senders);
        }
    }

    #[test]
    fn records_and_contents_that_are_cut_are_not_read() {
        let mut shared = Shared::default();
        let decided = decide(&mut shared, asked(1, 1, 1, vhost("/"))).unwrap();
        let (mut record, mut contents) = (Vec::new(), Vec::new());
        decided.encode(&mut record);
        shared.contents().encode(&mut contents);
        (0..record.len()).for_each(|cut| assert_eq!(Decided::decode(&record[..cut]), None));
        (0..contents.len()).for_each(|cut| assert!(Contents::decode(&contents[..cut]).is_none()));
    }
}
