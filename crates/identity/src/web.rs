//! Asking another server over HTTP.

use crate::tls::Trust;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout,
    TcpConnector, Transport, TransportAdapter,
};
use ureq::{Agent, Error};

/// How long a server may take in all.
const TIMEOUT: Duration = Duration::from_secs(10);
/// No answer is longer, in bytes.
const LARGEST: u64 = 1024 * 1024;

/// What asks servers that are trusted like this. Redirections are not followed: what was configured is asked, and nobody else.
///
/// # Errors
/// The authorities cannot be read; the sentence names the file.
pub fn agent(trust: &Trust) -> Result<Agent, String> {
    agent_within(trust, TIMEOUT, TIMEOUT)
}

/// The same with so much time for an answer in all, and for a connection.
///
/// # Errors
/// The authorities cannot be read; the sentence names the file.
pub fn agent_within(trust: &Trust, request: Duration, connection: Duration) -> Result<Agent, String> {
    let tls = TlsConnector {
        client: Arc::new(trust.client()?),
        server_name: trust.server_name.clone(),
    };
    let config = Agent::config_builder()
        .timeout_global(Some(request))
        .timeout_connect(Some(connection))
        .http_status_as_error(false)
        .max_redirects(0)
        .build();
    let connector = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
    Ok(Agent::with_parts(
        config,
        connector.chain(tls),
        DefaultResolver::default(),
    ))
}

/// Puts TLS around connections to `https` addresses. The one that `ureq` brings along can neither limit the depth of chains nor
/// expect another name than the address has.
#[derive(Debug)]
struct TlsConnector {
    client: Arc<ClientConfig>,
    /// Whom the certificate must name; `None` is the host of the address.
    server_name: Option<String>,
}

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if details.uri.scheme_str() != Some("https") || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.server_name.as_deref().unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(|_| Error::Tls("the name of the server is none"))?;
        let mut connection = ClientConnection::new(self.client.clone(), name)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let config = details.config;
        Ok(Some(Either::B(TlsTransport {
            buffers: LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
            stream: StreamOwned::new(connection, socket),
        })))
    }
}

/// A connection with TLS around it.
struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsTransport")
    }
}

/// What went wrong, without the address: what was asked may be a secret.
pub fn said(error: &Error) -> String {
    match error {
        Error::BadUri(_) | Error::Http(_) => "the address is malformed".into(),
        other => other.to_string(),
    }
}

/// Gets a document of another server that may be as long as `most` bytes.
///
/// # Errors
/// There is none; the sentence names the address, without what may be secret in it.
pub fn fetch(trust: &Trust, address: &str, most: u64) -> Result<Vec<u8>, String> {
    let shown = address.split_once('@').map_or(address, |(_, host)| host);
    let shown = shown.split('?').next().unwrap_or_default();
    let failed = |error: Error| format!("{shown} cannot be read: {}", said(&error));
    let mut answer = agent(trust)?.get(address).call().map_err(failed)?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(format!("{shown} answers with status {status}"));
    }
    answer
        .body_mut()
        .with_config()
        .limit(most)
        .read_to_vec()
        .map_err(failed)
}

/// Gets a document.
///
/// # Errors
/// There is none; the sentence names the address.
pub fn get(agent: &Agent, address: &str) -> Result<String, String> {
    let failed = |error: Error| format!("{address} cannot be read: {error}");
    let mut answer = agent.get(address).call().map_err(failed)?;
    let status = answer.status().as_u16();
    if status != 200 {
        return Err(format!("{address} answers with status {status}"));
    }
    let body = answer.body_mut().with_config().limit(LARGEST);
    body.read_to_string().map_err(failed)
}
