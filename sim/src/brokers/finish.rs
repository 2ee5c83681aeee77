//! The end of a seed: everything heals, and what was promised must be there.

use super::client::QUEUE;
use super::ledger::Id;
use super::{Brokers, Kind, Mirrors, VHOST};
use broker::PolicyKind;
use std::time::Duration;

/// Once everything has healed, all goes on within this: what could not be handed over is tried again after half a minute.
const HEALS_WITHIN: Duration = Duration::from_secs(75);

impl Brokers {
    /// Everything heals: all nodes run, the queue has the members that it is to have and serves, and is emptied.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        self.tell(|| "everything heals".to_owned());
        (self.trouble.nodes_end, self.ends_left) = (false, 0);
        for at in 0..self.places.len() {
            // The power that is to fail has failed by then.
            if self.places[at].process.is_some() && self.places[at].fails {
                self.end(at)?;
            }
            self.places[at].starts_at = self.clock;
        }
        self.cut.clear();
        if self.kind == Kind::Stream {
            self.make_room();
        }
        self.within("nodes don't start", Self::all_run)?;
        let mirrors = self.some_mirrors();
        if self.kind == Kind::Mirrored {
            self.settle_policy(mirrors)?;
        }
        self.within("nobody leads, or not those have the queue that are to", |run| {
            run.is_whole(mirrors)
        })?;
        if self.kind == Kind::Stream {
            return self.finish_stream();
        }
        self.within("nobody answers", |run| {
            run.clients().all(super::Client::is_answered)
        })?;
        for at in 0..self.places.len() {
            self.give_all_back(at)?;
        }
        let held = self.within("what was given back is still held", Self::nobody_holds);
        let left = self.drain()?;
        held.map_err(|what| format!("{:?}: {what}", self.ledger.missing(&left)))?;
        let runs = |(node, start): (u32, u64)| self.places[node as usize - 1].linked_as() == Some(start);
        self.ledger.judge(&left, runs)?;
        self.within("copies are not empty", Self::copies_are_empty)?;
        let view = self.places[0].client().map(|it| it.broker.view());
        let epoch = view.and_then(|view| Some(view.queue(VHOST, QUEUE)?.epoch.number));
        self.counts[4] += u64::from(epoch.unwrap_or(0));
        Ok(())
    }

    /// The last policy is put, by all that nodes know.
    fn settle_policy(&mut self, mirrors: Mirrors) -> Result<(), String> {
        self.ask(0, mirrors.request());
        for _ in 0..50 {
            self.round()?;
        }
        // What was asked before is decided by then, or never.
        self.ask(0, mirrors.request());
        let of = |client: &super::Client| {
            let view = client.broker.view();
            let policies = view.vhost(VHOST)?.policies();
            let known = policies.get(PolicyKind::User, Mirrors::POLICY)?;
            Some(format!("{:?}", known.definition))
        };
        self.within("a policy is never put", |run| {
            let all: Vec<_> = run.clients().map(of).collect();
            all.iter()
                .all(|it| *it == all[0] && it.is_none() == (mirrors == Mirrors::None))
        })
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = &super::Client> {
        self.places.iter().filter_map(|place| place.client())
    }

    /// The queue has the members that it is to have, by what all nodes know, and somebody decides what becomes of it.
    fn is_whole(&self, mirrors: Mirrors) -> bool {
        let wanted = match self.kind {
            Kind::Grows { reconciled: true } => Some(3),
            Kind::Mirrored => Some(mirrors.members()),
            Kind::Stream => Some(3),
            Kind::Three | Kind::Grows { .. } => None,
        };
        let mut deciding = 0;
        for client in self.clients() {
            let view = client.broker.view();
            let Some(known) = view.queue(VHOST, QUEUE) else {
                return false;
            };
            let members = match known.is_shared() {
                true => known.members().count(),
                false => 0,
            };
            if wanted.is_some_and(|wanted| wanted != members) {
                return false;
            }
            let standing = client.broker.shared_standing(known);
            let copy = client.broker.queues().copy(known.id);
            let is_own = copy.as_ref().is_some_and(|copy| copy.replica().is_none());
            if is_own == known.is_shared() && copy.is_some() {
                return false;
            }
            let Some(standing) = standing else {
                deciding += usize::from(is_own);
                continue;
            };
            if copy.is_some() != known.member(client.broker.own_node()).is_some() {
                return false;
            }
            if standing.own.is_some_and(|own| own.leads) {
                let mut voters: Vec<_> = standing.voters.iter().map(|it| it.0).collect();
                let mut members: Vec<_> = known.members().map(|it| it.node).collect();
                voters.sort_unstable();
                members.sort_unstable();
                deciding += usize::from(voters == members);
            }
        }
        deciding == 1
    }

    /// Waits for something.
    pub(super) fn within(&mut self, else_: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), String> {
        let until = self.clock + HEALS_WITHIN;
        while self.clock < until {
            if is_so(self) {
                return Ok(());
            }
            self.round()?;
        }
        let describe = |place: &super::Place| {
            let asked = place
                .client()
                .map(|it| (it.open.len(), it.asked.len(), it.held.len()));
            format!(
                "{:?}: {:?}; open, asked, held: {asked:?}; {:?}",
                place.id,
                place.step(),
                place.standing()
            )
        };
        let all: Vec<_> = self.places.iter().map(describe).collect();
        Err(format!("{else_}: {all:#?}"))
    }

    /// A client ends its consumers, and gives back what it holds.
    fn give_all_back(&mut self, at: usize) -> Result<(), String> {
        while let Some(client) = self.places[at].client_mut().filter(|it| !it.consumers.is_empty()) {
            client.cancel();
        }
        self.within("nobody answers", |run| {
            run.clients().all(super::Client::is_answered)
        })?;
        let own = self.places[at].id;
        if let Some(client) = self.places[at].client_mut() {
            let held = std::mem::take(&mut client.held);
            held.iter().for_each(|held| client.settle(held, true));
            self.tell(|| {
                format!(
                    "{own:?} gives back {:?}",
                    held.iter().map(|it| it.id).collect::<Vec<_>>()
                )
            });
        }
        Ok(())
    }

    /// Whoever decides what becomes of the queue says that nobody has anything of it.
    fn nobody_holds(&self) -> bool {
        let mut leads = false;
        let nothing = self.clients().all(|client| {
            let view = client.broker.view();
            let copy = view
                .queue(VHOST, QUEUE)
                .and_then(|it| client.broker.queues().copy(it.id));
            let led = copy.filter(|copy| copy.is_led_here());
            leads |= led.is_some();
            led.is_none_or(|copy| copy.status().unacked == 0)
        });
        leads && nothing
    }

    fn copies_are_empty(&self) -> bool {
        self.clients().all(|client| {
            let view = client.broker.view();
            let copy = view
                .queue(VHOST, QUEUE)
                .and_then(|it| client.broker.queues().copy(it.id));
            copy.is_none_or(|copy| copy.status().messages() == 0)
        })
    }

    /// All that is in the queue, in order.
    fn drain(&mut self) -> Result<Vec<Id>, String> {
        let mut left = Vec::new();
        let at = self.random.below(self.places.len() as u64) as usize;
        for _ in 0..10_000 {
            for _ in 0..8 {
                self.places[at]
                    .client_mut()
                    .into_iter()
                    .for_each(super::Client::get);
            }
            self.within("a get has no answer", |run| {
                run.clients().all(super::Client::is_answered)
            })?;
            let Some(client) = self.places[at].client_mut() else {
                return Err("a node ends while the queue is emptied".to_owned());
            };
            if client.held.is_empty() {
                return Ok(left);
            }
            let held = std::mem::take(&mut client.held);
            held.iter().for_each(|held| client.settle(held, false));
            left.extend(held.iter().map(|held| held.id));
        }
        Err("the queue has no end".to_owned())
    }
}
