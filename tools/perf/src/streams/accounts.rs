//! `--verify`: every message of every publisher accounted for, for each reader of its stream.
//!
//! A publisher here is a producer on one stream: on the streams of a super stream a producer is several, each of which numbers
//! its messages, so that order can be told on each.

use crate::verify::{Ledger, Verdict};

/// The ledgers of all readers.
#[derive(Debug)]
pub struct Accounts {
    /// For each publisher, which readers get what it sends.
    readers: Vec<Vec<usize>>,
    /// For each publisher, how many messages it sent.
    published: Vec<u64>,
    ledgers: Vec<Ledger>,
}

impl Accounts {
    /// For so many readers; `readers` says for each publisher which of them read its stream.
    pub fn new(readers: Vec<Vec<usize>>, count: usize) -> Self {
        let publishers = readers.len();
        Self {
            published: vec![0; publishers],
            // Everything is confirmed, and each reader reads its stream alone and in order.
            ledgers: (0..count).map(|_| Ledger::new(publishers, true, true)).collect(),
            readers,
        }
    }

    fn of(&mut self, publisher: u32) -> impl Iterator<Item = &mut Ledger> {
        let readers = self
            .readers
            .get(publisher as usize)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let ledgers = self.ledgers.iter_mut().enumerate();
        ledgers
            .filter(|(number, _)| readers.contains(number))
            .map(|(_, ledger)| ledger)
    }

    /// A publisher has sent so many messages from its first one on.
    pub fn published(&mut self, publisher: u32, count: u64) {
        if let Some(known) = self.published.get_mut(publisher as usize) {
            *known = count;
        }
        if count > 0 {
            self.of(publisher)
                .for_each(|ledger| ledger.published(publisher, count - 1));
        }
    }

    /// The broker has confirmed a message.
    pub fn confirmed(&mut self, publisher: u32, sequence: u64) {
        self.of(publisher)
            .for_each(|ledger| ledger.confirmed(publisher, sequence));
    }

    /// The broker did not take a message.
    pub fn refused(&mut self, publisher: u32, sequence: u64) {
        self.of(publisher)
            .for_each(|ledger| ledger.nacked(publisher, sequence));
    }

    /// A publisher's connection broke.
    pub fn lost_connection(&mut self, publisher: u32) {
        self.of(publisher)
            .for_each(|ledger| ledger.lost_connection(publisher));
    }

    /// A reader goes on from an offset that was stored: what it had taken since may come again.
    pub fn may_repeat(&mut self, reader: usize) {
        if let Some(ledger) = self.ledgers.get_mut(reader) {
            ledger.lost_consumer();
        }
    }

    /// A reader got a message.
    #[inline]
    pub fn consumed(&mut self, reader: usize, body: &[u8]) {
        if let Some(ledger) = self.ledgers.get_mut(reader) {
            ledger.consumed(body, false);
        }
    }

    /// What all of them show now; `complete` if nothing more can come.
    pub fn report(&self, complete: bool) -> Verdict {
        let mut all = Verdict {
            complete,
            ok: true,
            published: self.published.iter().sum(),
            ..Verdict::default()
        };
        for ledger in &self.ledgers {
            let one = ledger.report(complete);
            all.consumed += one.consumed;
            all.lost += one.lost;
            all.duplicates += one.duplicates;
            all.redelivered += one.redelivered;
            all.out_of_order += one.out_of_order;
            all.corrupt += one.corrupt;
            all.foreign += one.foreign;
            all.unconfirmed_missing += one.unconfirmed_missing;
            all.ok &= one.ok;
            let room = 5_usize.saturating_sub(all.examples.len());
            all.examples.extend(one.examples.into_iter().take(room));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::seal;

    fn body(publisher: u32, sequence: u64) -> Vec<u8> {
        let mut body = vec![0; seal::LENGTH];
        let filler = seal::filler_crc(&body);
        seal::write(&mut body, publisher, sequence, filler);
        body
    }

    /// Two publishers on a stream with two readers, a third one on a stream with one.
    fn accounts() -> Accounts {
        let mut accounts = Accounts::new(vec![vec![0, 1], vec![0, 1], vec![2]], 3);
        for publisher in 0..3 {
            accounts.published(publisher, 2);
            (0..2).for_each(|it| accounts.confirmed(publisher, it));
        }
        accounts
    }

    fn take(accounts: &mut Accounts, reader: usize, messages: &[(u32, u64)]) {
        for (publisher, sequence) in messages {
            accounts.consumed(reader, &body(*publisher, *sequence));
        }
    }

    #[test]
    fn each_reader_gets_everything_of_its_stream_once_and_in_order() {
        let mut accounts = accounts();
        take(&mut accounts, 0, &[(0, 0), (1, 0), (1, 1), (0, 1)]);
        take(&mut accounts, 1, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
        take(&mut accounts, 2, &[(2, 0), (2, 1)]);
        let verdict = accounts.report(true);
        assert!(verdict.ok, "{verdict:?}");
        assert_eq!((verdict.published, verdict.consumed), (6, 10));
    }

    #[test]
    fn what_one_reader_lacks_or_gets_twice_or_late_is_a_fault() {
        let mut lacking = accounts();
        take(&mut lacking, 0, &[(0, 0), (1, 0), (1, 1), (0, 1)]);
        take(&mut lacking, 1, &[(0, 0), (0, 1), (1, 0)]);
        take(&mut lacking, 2, &[(2, 0), (2, 1)]);
        let verdict = lacking.report(true);
        assert_eq!(
            (verdict.ok, verdict.lost, &verdict.examples[..]),
            (false, 1, &[(1, 1)][..])
        );
        lacking.consumed(1, &body(1, 1));
        assert!(lacking.report(true).ok);
        lacking.consumed(2, &body(2, 1));
        assert_eq!(
            (lacking.report(true).ok, lacking.report(true).duplicates),
            (false, 1)
        );
        let mut late = accounts();
        take(&mut late, 2, &[(2, 1), (2, 0)]);
        assert_eq!(late.report(true).out_of_order, 1);
    }

    #[test]
    fn what_was_refused_or_on_its_way_in_a_broken_connection_is_not_lost() {
        let mut accounts = Accounts::new(vec![vec![0]], 1);
        accounts.published(0, 3);
        accounts.confirmed(0, 0);
        accounts.refused(0, 1);
        accounts.lost_connection(0);
        accounts.consumed(0, &body(0, 0));
        let verdict = accounts.report(true);
        assert_eq!(
            (verdict.ok, verdict.lost, verdict.unconfirmed_missing),
            (true, 0, 1)
        );
    }
}
