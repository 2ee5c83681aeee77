//! What must be so of a stream once everything has healed, also if all nodes have ended at the same time.

use super::super::{Brokers, Client, NODES, Place};
use super::named::{GOES_AFTER, Stand};
use std::time::Duration;

/// Once everything has healed, all copies have all within this.
const HEALS_WITHIN: Duration = Duration::from_secs(90);

impl Brokers {
    /// All processes end at the same time, as where one supply of power feeds them all.
    pub(super) fn all_end(&mut self) -> Result<(), String> {
        let there = (0..self.places.len()).filter(|at| self.places[*at].process.is_some());
        let there: Vec<_> = there.collect();
        (0..self.places.len()).try_for_each(|at| self.hear(at))?;
        let power = self.random.below(4) > 0;
        self.counts[4] += 1;
        there.into_iter().for_each(|at| self.end_as(at, power));
        Ok(())
    }

    /// Everything has healed: what was promised is there, and still is if all have ended and two of them have started again: a
    /// majority has it, whatever they have lost with their power. Then the third one is one of them again.
    pub(in crate::brokers) fn finish_stream(&mut self) -> Result<(), String> {
        self.settle_stream(None)?;
        let taken_over = self.places.iter().filter_map(|place| place.standing());
        self.counts[6] += taken_over
            .map(|standing| u64::from(standing.snapshots))
            .sum::<u64>();
        if self.random.chance() {
            return Ok(());
        }
        self.all_end()?;
        let away = self.random.below(NODES.into()) as usize;
        self.places[away].starts_at = Duration::MAX;
        self.within("two nodes don't start once more", |run| {
            run.clients().count() == 2
        })?;
        self.settle_stream(Some(away))?;
        self.places[away].starts_at = self.clock;
        self.within("a node does not start once more", Self::all_run)?;
        self.settle_stream(None)
    }

    /// All publishers come to an end with what they have sent, and all copies are what they are to be.
    fn settle_stream(&mut self, without: Option<usize>) -> Result<(), String> {
        let until = self.clock + HEALS_WITHIN;
        let mut lacks = None;
        loop {
            let named = &self.streaming().named;
            let away = named.iter().position(|it| !it.is_answered());
            if let Some(which) = away {
                let at = self.random.below(NODES.into()) as usize;
                let now = self.clock;
                let named = &self.streaming().named[which];
                let (since, is_away) = (named.since, matches!(named.stand, Stand::Away));
                let open = match &named.stand {
                    Stand::Publishes { next, .. } => (named.sent + 1).saturating_sub(*next),
                    _ => 0,
                };
                if is_away {
                    self.come(at, which);
                } else if now > since + GOES_AFTER {
                    self.away(which);
                } else if open > 0 {
                    self.send_named(which, open, 0);
                }
                self.streaming().named.rotate_left(1);
            } else if self.clients().all(|it| it.open.is_empty()) && self.is_same_everywhere(without) {
                // What is confirmed is on its way to the files still, perhaps.
                match self.judge_copies(without)? {
                    Ok(()) => return Ok(()),
                    Err(what) => lacks = Some(what),
                }
            }
            if self.clock > until {
                let describe = |place: &Place| {
                    let stream = place.client().and_then(Client::stream_to_read);
                    let open = place.client().map(|it| it.open.clone());
                    let numbers = stream.map(|it| it.numbers());
                    format!(
                        "{:?}: {numbers:?}, open {open:?}, {:?}, {:?}",
                        place.id,
                        place.client().map(|it| it.broker.alarm()),
                        place.standing()
                    )
                };
                let all: Vec<_> = self.places.iter().map(describe).collect();
                return Err(format!(
                    "copies don't become the same: {lacks:?}, {all:#?}, {away:?}"
                ));
            }
            self.round()?;
        }
    }

    /// Looks at all copies; what is not as it is to be may be so a moment later.
    fn judge_copies(&mut self, without: Option<usize>) -> Result<Result<(), String>, String> {
        let mut copies = Vec::new();
        for at in (0..self.places.len()).filter(|at| Some(*at) != without) {
            self.read_on(at)?;
            match self.look(at)? {
                Some(copy) => copies.push(copy),
                None => return Ok(Err("a copy can't be read".to_owned())),
            }
        }
        let judged = self.streaming().book.judge(&copies);
        if judged.is_ok() {
            self.counts[7] += copies.iter().map(|it| it.messages.len() as u64).sum::<u64>();
        }
        Ok(judged)
    }

    fn is_same_everywhere(&self, without: Option<usize>) -> bool {
        let numbers = |client: &Client| Some(client.stream_to_read()?.numbers().committed);
        let all: Vec<_> = self.clients().map(numbers).collect();
        let wanted = NODES as usize - usize::from(without.is_some());
        all.len() == wanted && all[0].is_some() && all.iter().all(|it| *it == all[0])
    }
}
