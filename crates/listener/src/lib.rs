//! The threshold: how anybody comes in, whatever is spoken inside.
//!
//! This room binds addresses, accepts connections, and takes a newcomer through the PROXY protocol and TLS, until there is a socket that can be read and
//! written and it is known who is at the other end. It knows no protocol that comes after, no user and no broker; it spawns nothing
//! and decides about nobody but whom it cannot understand.
//!
//! Reading order: [`Door`] (where to listen), [`Listener`] (accepting), [`Arrival`] and [`Guest`] (from a connection to a socket),
//! `proxy` (for whom a load balancer connects), [`Socket`], [`Stream`], `secured` and [`Web`] (reading and writing it), [`Tls`] with [`TlsOptions`] (certificates, and their renewal while the node
//! runs), [`descriptors`] (what clients must leave), `passphrase` (keys that one guards), `revocation` (certificates that count no more), [`expiry`] (how long they last), [`interfaces`] (where the machine has addresses), `ciphers`, [`certificate`] (who a client's certificate says it is).

mod arrival;
pub mod certificate;
pub mod ciphers;
pub mod descriptors;
mod door;
pub mod expiry;
pub mod interfaces;
mod listener;
mod local_socket;
mod passphrase;
mod proxy;
mod revocation;
mod secured;
mod socket;
mod start_error;
mod stream;
mod tls;
mod tls_options;
mod web;

pub use arrival::{Arrival, Guest, Security};
pub use certificate::{Certificate, LoginFrom, SanType};
pub use door::{Door, Opened, Place};
pub use listener::{Listener, SocketOptions};
pub use passphrase::Passphrase;
pub use proxy::{Network, Proxies};
pub use revocation::{Revocation, RevocationCheck};
pub use socket::Socket;
pub use start_error::StartError;
pub use stream::{Parked, Stream};
pub use tls::Tls;
pub use tls_options::{TlsOptions, Version};
pub use web::{Web, accept_key};
