//! A path of the API: its verbs, who may use them, and what answers.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::text::decode;

/// What answers a request. It may take its time: it has a thread for itself.
pub type Handler = fn(&Call<'_>) -> Result<Reply, Refusal>;

/// A path and what may be done with it.
#[derive(Debug)]
pub struct Route {
    /// The path below `/api`, with names after colons for its variable parts.
    pub path: &'static str,
    /// Verbs, who may use them, and what answers. `GET` stands for `HEAD` too.
    pub verbs: &'static [(&'static str, Right, Handler)],
}

/// Routes by object.
pub type Table = &'static [&'static [Route]];

impl Route {
    /// The verbs in the form of the header `allow`.
    pub fn allow(&self) -> String {
        let mut verbs = vec!["HEAD"];
        verbs.extend(self.verbs.iter().map(|(verb, ..)| *verb));
        verbs.push("OPTIONS");
        verbs.join(", ")
    }

    /// What answers this verb.
    pub fn handler(&self, verb: &str) -> Option<(Right, Handler)> {
        let verb = if verb == "HEAD" { "GET" } else { verb };
        let mut verbs = self.verbs.iter();
        verbs
            .find(|(known, ..)| *known == verb)
            .map(|(_, right, handler)| (*right, *handler))
    }

    /// The variable parts of a path that is of this form. A part may be empty: that is the default exchange's name.
    pub fn parts(&self, path: &str) -> Option<Vec<(&'static str, String)>> {
        let mut parts = Vec::new();
        let mut given = path.split('/');
        for expected in self.path.split('/') {
            let given = given.next()?;
            match expected.strip_prefix(':') {
                Some(name) => parts.push((name, decode(given, false)?)),
                None if expected == given => {}
                _ => return None,
            }
        }
        given.next().is_none().then_some(parts)
    }
}
