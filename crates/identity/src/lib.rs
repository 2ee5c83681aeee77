//! Who somebody is, according to others than the catalog: tokens of an OAuth 2 server, a service asked over HTTP, a directory (LDAP).
//!
//! This room decides about logins and hands out rights; it never touches a queue, an exchange or a socket of a client, and what
//! takes time (another server's answer) happens on threads of its own. It knows JSON and asks over HTTP. If whoever must be asked
//! does not answer, nobody comes in. No secret and no token is ever logged or shown.
//!
//! Reading order: [`Chain`] (whom to ask in which order), [`oauth2`] (tokens: `token` reads and verifies, `keys` knows with what,
//! [`scopes`](oauth2::scopes) are the rights), `http` and `ldap` (who is asked about passwords and permissions), `asked_rights` (who asks about permissions), `cache` (answers for a while), `web` (asking another server), `workers` (who waits for answers).

mod admitted;
mod asked_rights;
mod cache;
mod chain;
mod denied;
mod depth;
mod http;
mod ldap;
pub mod oauth2;
mod web;
mod workers;

pub use cache::{Cache, CacheSettings};
pub use chain::{Backend, Chain, Link, Servers};
pub use http::{HttpService, HttpSettings};
pub use ldap::{
    AsWhom, Asked, Case, Directory, DirectorySettings, Lookup, Queries, Query, Secured, Template, Text,
    Variable,
};
pub use web::{Trust, Versions, fetch};
