//! What an import does about what this version does not have.

use crate::query::Query;
use crate::refusal::Refusal;

/// The member of a queue that says what it was declared with before it was converted: clients may still declare it so.
pub const CONVERTED_FROM: &str = "converted_from";

/// What is done about what this version does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// It is left out with what needs it; otherwise nothing is imported.
    pub skip_unsupported: bool,
    /// Quorum queues become durable classic queues.
    pub quorum_as_classic: bool,
    /// Classic queues that a policy mirrors become quorum queues, where they can be without losing anything.
    pub mirrored_as_quorum: bool,
    /// So do all classic queues.
    pub classic_as_quorum: bool,
}

impl ImportOptions {
    /// What a query says: `on_unsupported=refuse` or `skip`, `quorum_as=refuse` or `classic`, `mirrored_as=mirrored` or `quorum`,
    /// `classic_as=classic` or `quorum`.
    ///
    /// # Errors
    /// It says something else, or that quorum queues are to be classic ones and the reverse.
    pub fn of(query: &Query) -> Result<Self, Refusal> {
        let is = |name: &str, usual: &str, word: &str| match query.get(name) {
            None => Ok(false),
            Some(given) if given == usual => Ok(false),
            Some(given) if given == word => Ok(true),
            Some(given) => Err(Refusal::bad_request(format!(
                "{name} can be {usual} or {word}, not {given}"
            ))),
        };
        let options = Self {
            skip_unsupported: is("on_unsupported", "refuse", "skip")?,
            quorum_as_classic: is("quorum_as", "refuse", "classic")?,
            mirrored_as_quorum: is("mirrored_as", "mirrored", "quorum")?,
            classic_as_quorum: is("classic_as", "classic", "quorum")?,
        };
        if options.quorum_as_classic && options.classic_as_quorum {
            let text = "quorum_as=classic and classic_as=quorum contradict each other";
            return Err(Refusal::bad_request(text));
        }
        Ok(options)
    }
}
