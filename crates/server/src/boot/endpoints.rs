//! Where the node listens, for which protocol, and with which certificates.

use crate::config::{Config, HttpListener};
use gateway::amqp;
use listener::{Endpoint, Protocol, StartError, Tls, TlsOptions};
use management::{HTTP, PROMETHEUS};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// All that the configuration asks for.
#[derive(Default)]
pub struct Endpoints {
    all: Vec<Endpoint>,
    /// What is read again when an operator says so.
    pub tls: Vec<Arc<Tls>>,
}

impl Endpoints {
    /// Finds out where to listen, and reads the certificates that are needed there.
    ///
    /// # Errors
    /// [`StartError::Tls`].
    pub fn read(config: &Config) -> Result<Self, StartError> {
        let mut endpoints = Self::default();
        let any = every_address();
        endpoints.add_amqp(config, any)?;
        endpoints.add_http(HTTP, &config.management.listener, config, any)?;
        endpoints.add_http(PROMETHEUS, &config.prometheus.listener, config, any)?;
        Ok(endpoints)
    }

    /// Those for these protocols.
    pub fn of(&self, protocols: &[Protocol]) -> Vec<Endpoint> {
        let all = self.all.iter();
        all.filter(|it| protocols.contains(&it.protocol))
            .cloned()
            .collect()
    }

    fn add_amqp(&mut self, config: &Config, any: IpAddr) -> Result<(), StartError> {
        let plain = config.listeners.values();
        let plain = plain.map(|it| Endpoint::plain(amqp::PROTOCOL, it.bind_address(any)));
        let local = config.local_listeners.values();
        let local = local.map(|path| Endpoint::local(amqp::PROTOCOL, path.clone(), config.local_mode));
        let mut all: Vec<Endpoint> = plain.chain(local).collect();
        if !config.tls_listeners.is_empty() {
            let tls = self.load(&config.tls)?;
            let secured = config.tls_listeners.values();
            all.extend(
                secured.map(|it| Endpoint::secured(amqp::PROTOCOL, it.bind_address(any), Arc::clone(&tls))),
            );
        }
        if config.proxy_protocol {
            let proxies = Arc::new(config.proxies.clone());
            for endpoint in &mut all {
                endpoint.proxies = Some(Arc::clone(&proxies));
            }
        }
        self.all.extend(all);
        Ok(())
    }

    /// As in RabbitMQ, the node's certificate does for a listener that has none of its own.
    fn add_http(
        &mut self,
        protocol: Protocol,
        settings: &HttpListener,
        config: &Config,
        any: IpAddr,
    ) -> Result<(), StartError> {
        for (address, secured) in settings.addresses(any) {
            let endpoint = match secured {
                true => {
                    let options = settings.tls.or_of(&config.tls).map_err(StartError::Tls)?;
                    Endpoint::secured(protocol, address, self.load(&options)?)
                }
                false => Endpoint::plain(protocol, address),
            };
            self.all.push(endpoint);
        }
        Ok(())
    }

    fn load(&mut self, options: &TlsOptions) -> Result<Arc<Tls>, StartError> {
        let tls = Tls::load(options.clone()).map_err(StartError::Tls)?;
        self.tls.push(Arc::clone(&tls));
        Ok(tls)
    }
}

/// What "every address" is on this machine: `::`, which takes IPv4 clients too, or `0.0.0.0` where there is no IPv6.
fn every_address() -> IpAddr {
    let any: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    match TcpListener::bind(SocketAddr::new(any, 0)) {
        Ok(_) => any,
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}
