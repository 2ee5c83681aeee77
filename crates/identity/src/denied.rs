//! Why another server let somebody not in.

use std::fmt;

/// Why; the text names whom was asked, and never a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It knows better: the credentials are not good.
    Refused(String),
    /// It gave no answer, or none that means something.
    Unanswered(String),
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::Unanswered(why) => f.write_str(why),
        }
    }
}
