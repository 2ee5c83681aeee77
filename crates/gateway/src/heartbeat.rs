//! Signs of life, both ways (AMQP 0-9-1 section 4.2.7, with the intervals of `rabbit_heartbeat`).

use crate::connection::Millis;

/// The clocks of one connection. Off if the interval is 0.
#[derive(Debug, Default)]
pub struct Heartbeat {
    interval: Millis,
    /// Something was written since the last look, other than a heartbeat.
    sent: bool,
    /// What is written next is a heartbeat of ours, or ends the handshake.
    beating: bool,
    /// Something was read since the last look.
    received: bool,
    /// How many looks in a row found nothing.
    missed: u8,
    send_at: Millis,
    check_at: Millis,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// A heartbeat frame.
    Send,
    /// The end: nothing came for two intervals.
    Dead,
}

impl Heartbeat {
    /// For the agreed interval in seconds, of a connection whose `connection.open-ok` is about to be written. That is
    /// no sign of life: the first heartbeat comes half an interval after it. Clients that hang up after one silent
    /// interval would do so by race.
    pub fn new(interval_s: u16, now: Millis) -> Self {
        let interval = Millis::from(interval_s) * 1000;
        Self {
            interval,
            beating: true,
            send_at: now + interval / 2,
            check_at: now + interval,
            ..Self::default()
        }
    }

    /// Bytes came; any count.
    pub fn received(&mut self) {
        self.received = true;
    }

    /// Bytes left.
    pub fn sent(&mut self) {
        if !std::mem::take(&mut self.beating) {
            self.sent = true;
        }
    }

    /// What is due at `now`. While `deaf`, nothing is read by our own choice, so nobody can be found dead.
    pub fn due(&mut self, now: Millis, deaf: bool) -> Due {
        if self.interval == 0 {
            return Due::Nothing;
        }
        if now >= self.check_at {
            self.check_at = now + self.interval;
            let alive = std::mem::take(&mut self.received) || deaf;
            self.missed = if alive { 0 } else { self.missed + 1 };
            if self.missed >= 2 {
                return Due::Dead;
            }
        }
        if now >= self.send_at {
            self.send_at = now + self.interval / 2;
            if !std::mem::take(&mut self.sent) {
                self.beating = true;
                return Due::Send;
            }
        }
        Due::Nothing
    }

    /// When to look again; `None` if never.
    pub fn next(&self) -> Option<Millis> {
        (self.interval > 0).then(|| self.send_at.min(self.check_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_come_at_half_the_interval_unless_something_was_sent() {
        let mut heartbeat = Heartbeat::new(10, 0);
        assert_eq!(heartbeat.next(), Some(5_000));
        assert_eq!(heartbeat.due(4_999, false), Due::Nothing);
        assert_eq!(heartbeat.due(5_000, false), Due::Send);
        heartbeat.sent();
        assert_eq!(
            heartbeat.due(10_000, false),
            Due::Send,
            "a heartbeat is no reason to leave out the next"
        );
        heartbeat.sent();
        heartbeat.sent();
        assert_eq!(heartbeat.due(15_000, false), Due::Nothing);
    }

    #[test]
    fn the_end_of_the_handshake_is_no_reason_to_leave_out_the_first_beat() {
        let mut heartbeat = Heartbeat::new(10, 0);
        heartbeat.sent();
        assert_eq!(heartbeat.due(5_000, false), Due::Send);
        let mut heartbeat = Heartbeat::new(10, 0);
        heartbeat.sent();
        heartbeat.sent();
        assert_eq!(heartbeat.due(5_000, false), Due::Nothing);
    }

    #[test]
    fn two_silent_intervals_are_the_end() {
        let mut heartbeat = Heartbeat::new(10, 0);
        heartbeat.received();
        assert_ne!(heartbeat.due(10_000, false), Due::Dead);
        assert_ne!(heartbeat.due(20_000, false), Due::Dead);
        assert_eq!(heartbeat.due(30_000, false), Due::Dead);
    }

    #[test]
    fn who_does_not_listen_finds_nobody_dead() {
        let mut heartbeat = Heartbeat::new(1, 0);
        for n in 1..10 {
            assert_ne!(heartbeat.due(n * 1000, true), Due::Dead);
        }
        assert_ne!(heartbeat.due(10_000, false), Due::Dead);
        assert_eq!(heartbeat.due(11_000, false), Due::Dead);
    }

    #[test]
    fn zero_is_off() {
        let mut heartbeat = Heartbeat::new(0, 0);
        assert_eq!(heartbeat.due(1_000_000, false), Due::Nothing);
        assert_eq!(heartbeat.next(), None);
    }
}
