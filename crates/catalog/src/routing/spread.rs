//! Exchanges that give each message to one of their destinations: by chance, or by a hash of something in the message.
//!
//! The destinations stand in the order of their queues' creation (then exchanges by name), not of their bindings: a restart, a
//! snapshot or another node must send a key where it went before. A destination that is bound several times counts once.

use super::Found;
use super::envelope::Envelope;
use super::hash_on::{HashOn, hash};
use crate::binding::{Destination, NamedBinding, Target};
use imbl::OrdMap;
use model::table::Table;
use std::sync::{Arc, OnceLock};

/// How the destination is chosen.
#[derive(Clone, Debug)]
enum Choice {
    /// By chance.
    Chance,
    /// By the routing key's hash modulo the number of destinations: all keys move when one comes or goes.
    Modulus,
    /// By jump hashing: as few keys as possible move when a destination is added.
    Consistent(HashOn),
}

/// The bindings of one such exchange.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    choice: Choice,
    /// How many bindings there are to a destination with a weight; the greatest weight counts.
    weights: OrdMap<(Target, u32), u32>,
    /// Made when it is first needed after a change.
    ring: OnceLock<Arc<Ring>>,
}

/// All destinations in order, each with the sum of all weights up to its own.
pub(crate) type Ring = Vec<(u64, Target)>;

impl Spread {
    /// By a consistent hash of what the exchange's arguments name, which were checked when it was declared.
    pub(crate) fn consistent(arguments: &Table) -> Self {
        Self::new(Choice::Consistent(
            HashOn::new(arguments).unwrap_or(HashOn::RoutingKey),
        ))
    }

    /// By the routing key's hash modulo the number of destinations.
    pub(crate) fn modulus() -> Self {
        Self::new(Choice::Modulus)
    }

    /// By chance.
    pub(crate) fn by_chance() -> Self {
        Self::new(Choice::Chance)
    }

    fn new(choice: Choice) -> Self {
        Self {
            choice,
            weights: OrdMap::new(),
            ring: OnceLock::new(),
        }
    }

    pub(crate) fn add(&mut self, routing_key: &[u8], target: &Target) {
        let weight = self.weight(routing_key);
        *self.weights.entry((target.clone(), weight)).or_insert(0) += 1;
        self.ring = OnceLock::new();
    }

    pub(crate) fn remove(&mut self, routing_key: &[u8], target: &Target) {
        let weighted = (target.clone(), self.weight(routing_key));
        if let Some(count) = self.weights.get_mut(&weighted) {
            *count -= 1;
            if *count == 0 {
                self.weights.remove(&weighted);
            }
        }
        self.ring = OnceLock::new();
    }

    /// Gives the one target, if there is any.
    pub(crate) fn find(&self, envelope: &mut Envelope<'_>, found: &mut Found<'_>) {
        let ring = self.ring.get_or_init(|| Arc::new(self.ring()));
        let Some((total, _)) = ring.last() else { return };
        let at = match &self.choice {
            Choice::Chance => envelope.chance() % total,
            Choice::Modulus => hash(envelope.routing_key()) % total,
            Choice::Consistent(hash_on) => jump(hash_on.hash(envelope), *total),
        };
        let place = ring.partition_point(|(end, _)| *end <= at);
        found.add(&ring[place].1);
    }

    /// The destinations in their order, each with the bucket that its share ends before; `None` unless keys are hashed
    /// consistently.
    pub(crate) fn buckets(&self) -> Option<Arc<Ring>> {
        matches!(self.choice, Choice::Consistent(_))
            .then(|| self.ring.get_or_init(|| Arc::new(self.ring())).clone())
    }

    fn ring(&self) -> Ring {
        // In order of target, then weight: the last of a target is its greatest.
        let mut greatest: Vec<(u64, Target)> = Vec::new();
        for (target, weight) in self.weights.keys() {
            match greatest.last_mut() {
                Some((known, last)) if last == target => *known = u64::from(*weight),
                _ => greatest.push((u64::from(*weight), target.clone())),
            }
        }
        let mut total = 0;
        for (end, _) in &mut greatest {
            total += *end;
            *end = total;
        }
        greatest
    }

    fn weight(&self, routing_key: &[u8]) -> u32 {
        match self.choice {
            Choice::Consistent(_) => weight(routing_key).unwrap_or(1),
            Choice::Chance | Choice::Modulus => 1,
        }
    }
}

/// What a binding to an `x-consistent-hash` exchange weighs: its key is a number.
///
/// # Errors
/// The key is no number, or out of range. The text is the one that RabbitMQ answers.
fn weight(routing_key: &[u8]) -> Result<u32, String> {
    const HEAVIEST: i128 = 10_000;
    let shown = String::from_utf8_lossy(routing_key);
    let digits = shown.strip_prefix(['+', '-']).unwrap_or(&shown);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(format!("The binding key must be an integer: <<\"{shown}\">>"));
    }
    match shown.parse::<i128>() {
        Ok(weight @ 1..=HEAVIEST) => Ok(weight as u32),
        Ok(weight) if weight < 1 => Err("The binding key must be greater than 0".into()),
        _ if shown.starts_with('-') => Err("The binding key must be greater than 0".into()),
        _ => Err(format!("The binding key must not be greater than {HEAVIEST}")),
    }
}

/// # Errors
/// See [`weight`].
pub(crate) fn check_weight(binding: &NamedBinding) -> Result<(), String> {
    weight(&binding.routing_key).map(drop)
}

/// What may be bound to an `x-local-random` exchange: queues, without a key.
///
/// # Errors
/// RabbitMQ's text if it is something else.
pub(crate) fn check_local(binding: &NamedBinding) -> Result<(), String> {
    if !binding.routing_key.is_empty() {
        let key = String::from_utf8_lossy(&binding.routing_key);
        return Err(format!("Non empty binding '{key}' key not permitted"));
    }
    match &binding.destination {
        Destination::Exchange(_) => Err("Destination not found".into()),
        Destination::Queue(_) => Ok(()),
    }
}

/// Jump consistent hashing (Lamping and Veach, 2014): which of so many buckets. With one bucket more, only one in so
/// many keys moves, all of them to the new one.
fn jump(mut key: u64, buckets: u64) -> u64 {
    let (mut bucket, mut next) = (0, 0);
    while next < buckets {
        bucket = next;
        key = key.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let span = ((1u64 << 31) as f64) / (((key >> 33) + 1) as f64);
        next = ((bucket + 1) as f64 * span) as u64;
    }
    bucket
}

#[cfg(test)]
mod tests;
