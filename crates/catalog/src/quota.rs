//! Limits on users and virtual hosts: how much of something they may have or do.

use crate::{Name, Refusal};

/// Whose limits they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    /// A virtual host's: `max-connections`, `max-queues`, and the rates.
    Vhost(Name),
    /// A user's: `max-connections`, `max-channels`, and the rates.
    User(Name),
}

/// Limits. A negative one is none, as in RabbitMQ; 0 lets nothing in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// `max-connections`: open connections.
    pub connections: Option<i64>,
    /// `max-channels`: open channels of all connections together.
    pub channels: Option<i64>,
    /// `max-queues`.
    pub queues: Option<i64>,
    /// `max-message-rate`: messages a second that queues take. Ours.
    pub message_rate: Option<i64>,
    /// `max-byte-rate`: bytes of their bodies a second. Ours.
    pub byte_rate: Option<i64>,
}

const VHOST: &[&str] = &[
    "max-connections",
    "max-queues",
    "max-message-rate",
    "max-byte-rate",
];
const USER: &[&str] = &[
    "max-connections",
    "max-channels",
    "max-message-rate",
    "max-byte-rate",
];

impl QuotaOf {
    /// The names of all limits that it can have.
    pub fn known(&self) -> &'static [&'static str] {
        match self {
            Self::Vhost(_) => VHOST,
            Self::User(_) => USER,
        }
    }

    /// Checks that such a limit is known and its value possible.
    ///
    /// # Errors
    /// [`Refusal::InvalidLimit`] in RabbitMQ's words.
    pub fn check(&self, limit: &str, value: i64) -> Result<(), Refusal> {
        let component = match self {
            Self::Vhost(_) => "limits",
            Self::User(_) => "user-limits",
        };
        if !self.known().contains(&limit) {
            let text = format!("Unrecognised terms [{{<<{limit:?}>>,{value}}}] in {component}");
            return Err(self.invalid(&text));
        }
        if value == 0 && limit.ends_with("-rate") {
            let text = format!("{limit} should be 1 or more, or negative for none, actually was 0");
            return Err(self.invalid(&text));
        }
        Ok(())
    }

    /// The refusal of a limit that makes no sense. RabbitMQ checks those of virtual hosts as parameters, and says so.
    pub fn invalid(&self, text: &str) -> Refusal {
        let text = match self {
            Self::Vhost(_) => format!("Validation failed\n\n{text}\n"),
            Self::User(_) => text.to_owned(),
        };
        Refusal::InvalidLimit { text }
    }
}

impl Quota {
    fn place(&mut self, limit: &str) -> Option<&mut Option<i64>> {
        Some(match limit {
            "max-connections" => &mut self.connections,
            "max-channels" => &mut self.channels,
            "max-queues" => &mut self.queues,
            "max-message-rate" => &mut self.message_rate,
            "max-byte-rate" => &mut self.byte_rate,
            _ => return None,
        })
    }

    /// Sets one limit, or takes it away. Unknown ones are passed over.
    pub fn set(&mut self, limit: &str, value: Option<i64>) {
        if let Some(place) = self.place(limit) {
            *place = value;
        }
    }

    /// What is set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> {
        [
            ("max-byte-rate", self.byte_rate),
            ("max-channels", self.channels),
            ("max-connections", self.connections),
            ("max-message-rate", self.message_rate),
            ("max-queues", self.queues),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// True if nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The limit if one more than `count` would be beyond it.
    pub fn is_reached(limit: Option<i64>, count: u64) -> Option<i64> {
        let most = u64::try_from(limit?).ok()?;
        limit.filter(|_| count >= most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_limit_is_none_and_nothing_fits_into_none_at_all() {
        assert_eq!(Quota::is_reached(None, 5), None);
        assert_eq!(Quota::is_reached(Some(-1), 5), None);
        assert_eq!(Quota::is_reached(Some(6), 5), None);
        assert_eq!(Quota::is_reached(Some(5), 5), Some(5));
        assert_eq!(Quota::is_reached(Some(0), 0), Some(0));
    }
}
