//! A node that is a member lets another one in: the catalog decides.

use super::super::catalog::SharedCatalog;
use catalog::{Answer, Joined, RefusalKind, Request};
use cluster::NodeId;

/// A node that wants to be a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applicant {
    /// Its name, such as `rabbit@n1`.
    pub name: String,
    /// Where it is dialled, at the host that its name ends with.
    pub port: u16,
    /// What it is recognised by.
    pub token: [u8; 16],
}

/// Why a node is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAdmitted {
    /// An operator has to do something; the text says what.
    Refused(String),
    /// Nobody decides just now: it may ask again.
    NotNow,
}

/// Has the catalog decide. `then` is told the number of the node, once every member knows it.
pub fn admit(
    catalog: &SharedCatalog,
    applicant: Applicant,
    then: impl FnOnce(Result<NodeId, NotAdmitted>) + Send + 'static,
) {
    let Applicant { name, port, token } = applicant;
    let joined = Joined { port, token };
    let name = name.as_str().into();
    let reply = move |said| {
        then(match said {
            Ok(Answer::Joined(node)) => u32::try_from(node.0).map(NodeId).map_err(|_| NotAdmitted::NotNow),
            Ok(_) => Err(NotAdmitted::NotNow),
            Err(refusal) => Err(not_admitted(&refusal)),
        });
    };
    catalog.ask(Request::JoinNode { name, joined }, Box::new(reply));
}

fn not_admitted(refusal: &catalog::Refusal) -> NotAdmitted {
    match refusal.kind() {
        RefusalKind::Internal => NotAdmitted::NotNow,
        _ => NotAdmitted::Refused(refusal.to_string()),
    }
}
