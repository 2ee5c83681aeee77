//! Listeners: how clients connect, whatever protocol they speak.
//!
//! This crate binds addresses, accepts connections, and takes a connection through the PROXY protocol and TLS, until
//! there is a socket that can be read and written and both ends are known. A listener names the protocol that is spoken
//! behind it, but nothing here speaks one; there is no user, no broker and no thread here.
//!
//! Reading order: [`Endpoint`] (where to listen, for which [`Protocol`]), [`Listener`] (accepting), [`Arrival`] and
//! [`ClientConnection`] (from an accepted connection to a socket), `proxy` (for whom a load balancer connects),
//! [`Socket`], [`Stream`], `secured` and [`Web`] (reading and writing it), [`Tls`] with [`TlsOptions`] (certificates,
//! and their renewal while the node runs), `dial` (TLS with a node that was connected to), [`descriptors`] (how many file
//! descriptors clients may take), `passphrase` (encrypted keys), `revocation` (certificates that were withdrawn), [`expiry`]
//! (until when they hold), [`interfaces`] (the machine's addresses), `ciphers`, [`certificate`] (the names in a client's
//! certificate).

mod arrival;
pub mod certificate;
pub mod ciphers;
pub mod descriptors;
mod dial;
mod endpoint;
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

pub use arrival::{Arrival, ClientConnection};
pub use certificate::{Certificate, LoginFrom, SanType};
pub use endpoint::{Address, Endpoint, Protocol};
pub use listener::{Listener, SocketOptions};
pub use passphrase::Passphrase;
pub use proxy::{Network, Proxies};
pub use revocation::{Revocation, RevocationCheck};
pub use secured::Security;
pub use socket::Socket;
pub use socket::web::{Web, accept_key};
pub use start_error::StartError;
pub use stream::{Parked, Stream};
pub use tls::Tls;
pub use tls_options::{TlsOptions, Version};
