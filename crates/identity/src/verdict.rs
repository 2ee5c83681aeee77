//! What a backend says about a login or a permission.

use std::fmt;

/// The login is accepted. This is what the cache keeps, so it contains no secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Their tags.
    pub tags: Vec<String>,
    /// Their name in the directory, if a directory accepted the login.
    pub known_as: Option<String>,
}

impl From<Vec<String>> for Admitted {
    fn from(tags: Vec<String>) -> Self {
        let known_as = None;
        Self { tags, known_as }
    }
}

/// Why not; the text names the server that was asked, and never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It knows better: the credentials are not good.
    Refused(String),
    /// It gave no answer, or none that means something.
    Unanswered(String),
}

impl Denied {
    /// Why there was no answer, in a chain of so many links where another one may decide, whose word says nothing of it.
    pub fn unheard(&self, links: usize) -> Option<&str> {
        match self {
            Self::Unanswered(why) if links > 1 => Some(why),
            _ => None,
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Unanswered(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_of_where_another_link_may_decide() {
        let silent = Denied::Unanswered("no route".into());
        assert_eq!(silent.unheard(2), Some("no route"));
        assert_eq!(silent.unheard(1), None, "the refusal says it");
        assert_eq!(Denied::Refused("no".into()).unheard(2), None);
    }
}
