//! Authentication and authorization by others than the node itself: tokens of OAuth 2, a service asked over HTTP, a directory
//! (LDAP), and answers of these that are cached.
//!
//! This crate decides about logins and grants rights; it never touches a queue, an exchange or a client's socket, and what takes
//! time (another server's answer) happens on threads of its own. It knows JSON and asks over HTTP. If a backend does not answer,
//! nobody is let in. No secret and no token is ever logged or shown.
//!
//! Reading order, from the top: [`Chain`] (which backend is asked, in which order), [`oauth2`] (tokens), `http` and `ldap` (the
//! other backends), `cache`, `asked_rights` (permissions that are asked for one by one), `workers` (the threads that wait),
//! `question` and `verdict` (what is asked and answered), `web` and `tls` (asking another server). Each imports only what stands
//! behind it in this list.

mod asked_rights;
mod backend;
mod cache;
mod chain;
mod http;
mod ldap;
pub mod oauth2;
mod question;
mod tls;
mod verdict;
mod web;
mod workers;

pub use backend::{Backend, Link};
pub use cache::{Cache, CacheSettings};
pub use chain::{Chain, Servers};
pub use http::{HttpService, HttpSettings};
pub use ldap::{
    AsWhom, Case, Directory, DirectorySettings, Lookup, Occasion, Queries, Query, Secured, Template, Text,
    Variable,
};
pub use tls::{Trust, Versions};
pub use web::fetch;
