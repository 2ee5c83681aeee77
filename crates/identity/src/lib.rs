//! Who somebody is, according to others than the catalog: tokens of an OAuth 2 server.
//!
//! This room decides about logins and hands out rights; it never touches a queue, an exchange or a socket of a client, and what
//! takes time (another server's answer) happens on threads of its own. It knows JSON and asks over HTTP. If whoever must be asked
//! does not answer, nobody comes in. No secret and no token is ever logged or shown.
//!
//! Reading order: [`Chain`] (whom to ask in which order), [`oauth2`] (tokens: `token` reads and verifies, `keys` knows with what,
//! [`scopes`](oauth2::scopes) are the rights), `web` (asking another server), `workers` (who waits for answers).

mod chain;
pub mod oauth2;
mod web;
mod workers;

pub use chain::{Backend, Chain, Link};
pub use web::Trust;
