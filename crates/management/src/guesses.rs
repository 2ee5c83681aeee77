//! How often passwords may be guessed: whoever was wrong a few times waits before the next look, and nobody else does.
//!
//! Wrong logins are counted by address and user, and by address alone, so that it helps nobody to try one password on
//! many names. What was right a short while ago passes at once, whatever others at that address try.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So many wrong logins cost nothing; after that there is one look each so often. First for one user at one address,
/// then for an address.
const OF_A_USER: Pace = Pace {
    free: 10,
    every: Duration::from_millis(500),
};
const OF_AN_ADDRESS: Pace = Pace {
    free: 100,
    every: Duration::from_millis(20),
};
/// Nobody stands longer in line than this; further ones are refused without a look.
const LONGEST: Duration = Duration::from_secs(10);
/// What was right passes at once for so long.
const RIGHT_FOR: Duration = Duration::from_secs(60);
/// So many users, addresses and right logins are remembered; an address has its bound also if there is no room for its users.
const REMEMBERED: usize = 10_000;

/// How many of a kind are free, and how often there is a look after that.
#[derive(Clone, Copy, Debug)]
struct Pace {
    free: u32,
    every: Duration,
}

impl Pace {
    /// How long to wait at a time when all that is owed is paid at `paid`.
    fn wait(self, paid: Instant, now: Instant) -> Duration {
        let owed = paid.saturating_duration_since(now);
        owed.saturating_sub(self.every * self.free)
    }
}

/// A login as it is told apart from others: nothing that is kept says which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Login {
    address: IpAddr,
    user: u64,
    whole: u64,
}

/// Who is to wait, and who was right lately.
#[derive(Debug, Default)]
pub struct Guesses {
    keys: RandomState,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    /// When all that is owed will be paid.
    users: HashMap<(IpAddr, u64), Instant>,
    addresses: HashMap<IpAddr, Instant>,
    right: HashMap<Login, Instant>,
}

/// How a login goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is looked at after this time; often there is none. True if it has been counted already.
    After(Duration, bool),
    /// Too many stand in line.
    Never,
}

impl Guesses {
    /// A login of this user, by this header or form, from this address.
    pub fn login(&self, address: IpAddr, user: &str, credentials: &str) -> Login {
        Login {
            address: network(address),
            user: self.keys.hash_one(user),
            whole: self.keys.hash_one(credentials),
        }
    }

    /// When it is its turn.
    pub fn turn(&self, login: Login, now: Instant) -> Turn {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.right.get(&login).is_some_and(|until| *until > now) {
            return Turn::After(Duration::ZERO, false);
        }
        let paid = |at: Option<&Instant>| at.copied().unwrap_or(now);
        let of_user = paid(counts.users.get(&(login.address, login.user)));
        let of_address = paid(counts.addresses.get(&login.address));
        let wait = OF_A_USER
            .wait(of_user, now)
            .max(OF_AN_ADDRESS.wait(of_address, now));
        match wait {
            Duration::ZERO => Turn::After(wait, false),
            wait if wait > LONGEST => Turn::Never,
            wait => {
                counts.owe(login, now);
                Turn::After(wait, true)
            }
        }
    }

    /// It was right. That pays nothing of what others owe who guess beside.
    pub fn right(&self, login: Login, now: Instant) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        remember(&mut counts.right, login, now + RIGHT_FOR, now);
    }

    /// It was wrong; `counted` if its turn has said so.
    pub fn wrong(&self, login: Login, counted: bool, now: Instant) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.right.remove(&login);
        if !counted {
            counts.owe(login, now);
        }
    }
}

impl Counts {
    fn owe(&mut self, login: Login, now: Instant) {
        let user = (login.address, login.user);
        let later = |at: Option<&Instant>, pace: Pace| at.copied().unwrap_or(now).max(now) + pace.every;
        let paid = later(self.users.get(&user), OF_A_USER);
        remember(&mut self.users, user, paid, now);
        let paid = later(self.addresses.get(&login.address), OF_AN_ADDRESS);
        remember(&mut self.addresses, login.address, paid, now);
    }
}

/// Remembers until when something counts, if there is room once what is over is forgotten.
fn remember<K: Hash + Eq>(map: &mut HashMap<K, Instant>, key: K, until: Instant, now: Instant) {
    if map.len() >= REMEMBERED && !map.contains_key(&key) {
        map.retain(|_, until| *until > now);
        if map.len() >= REMEMBERED {
            return;
        }
    }
    map.insert(key, until);
}

/// Whoever has an IPv6 address has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Turn = Turn::After(Duration::ZERO, false);

    fn guess(guesses: &Guesses, login: Login, now: Instant) -> Turn {
        let turn = guesses.turn(login, now);
        if let Turn::After(wait, counted) = turn {
            guesses.wrong(login, counted, now + wait);
        }
        turn
    }

    #[test]
    fn who_is_wrong_too_often_waits_and_nobody_else_does() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let address = IpAddr::from([10, 0, 0, 1]);
        let jane = guesses.login(address, "jane", "wrong");
        for _ in 0..OF_A_USER.free {
            assert_eq!(guess(&guesses, jane, now), NOW);
        }
        assert_eq!(guess(&guesses, jane, now), NOW);
        assert_eq!(guess(&guesses, jane, now), Turn::After(OF_A_USER.every, true));
        assert_eq!(guess(&guesses, jane, now), Turn::After(OF_A_USER.every * 2, true));
        let others = [
            guesses.login(address, "joe", "wrong"),
            guesses.login(IpAddr::from([10, 0, 0, 2]), "jane", "wrong"),
        ];
        for other in others {
            assert_eq!(guesses.turn(other, now), NOW);
        }
        // The line has an end, and time pays.
        let mut turns = (0..100).map(|_| guess(&guesses, jane, now));
        assert!(turns.any(|turn| turn == Turn::Never));
        assert_eq!(guesses.turn(jane, now + Duration::from_secs(60)), NOW);
    }

    #[test]
    fn what_was_right_passes_whatever_others_try() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        let address = IpAddr::from([10, 0, 0, 1]);
        let right = guesses.login(address, "jane", "right");
        guesses.right(right, now);
        for at in 0..200 {
            guess(
                &guesses,
                guesses.login(address, "jane", &format!("wrong {at}")),
                now,
            );
        }
        assert_eq!(guesses.turn(right, now), NOW);
        assert_ne!(guesses.turn(guesses.login(address, "jane", "x"), now), NOW);
        // A password that is right no more is a guess like others.
        guesses.wrong(right, false, now);
        assert_ne!(guesses.turn(right, now), NOW);
    }

    #[test]
    fn one_address_is_bound_whatever_users_it_names_and_however_many_it_has() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for at in 0..3 * REMEMBERED as u64 {
            let address = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, at as u16]);
            guess(&guesses, guesses.login(address, &at.to_string(), "x"), now);
        }
        let another = IpAddr::from([0x2001, 0xdb8, 0, 0, 9, 9, 9, 9]);
        assert_ne!(guesses.turn(guesses.login(another, "new", "x"), now), NOW);
        let counts = guesses.counts.lock().unwrap();
        assert!(counts.users.len() <= REMEMBERED && counts.addresses.len() == 1);
    }
}
