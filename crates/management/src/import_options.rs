//! What an import does about what this version does not have.

use crate::query::Query;
use crate::refusal::Refusal;

/// What is done about what this version does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// It is left out with what needs it; otherwise nothing is imported.
    pub skip_unsupported: bool,
    /// Quorum queues become durable classic queues.
    pub quorum_as_classic: bool,
}

impl ImportOptions {
    /// What a query says: `on_unsupported=refuse` or `skip`, `quorum_as=refuse` or `classic`.
    ///
    /// # Errors
    /// It says something else.
    pub fn of(query: &Query) -> Result<Self, Refusal> {
        let is = |name: &str, word: &str| match query.get(name) {
            None | Some("refuse") => Ok(false),
            Some(given) if given == word => Ok(true),
            Some(given) => Err(Refusal::bad_request(format!(
                "{name} can be refuse or {word}, not {given}"
            ))),
        };
        Ok(Self {
            skip_unsupported: is("on_unsupported", "skip")?,
            quorum_as_classic: is("quorum_as", "classic")?,
        })
    }
}
