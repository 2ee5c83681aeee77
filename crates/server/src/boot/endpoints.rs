//! Where the node listens, for which protocol, and with which certificates.

use crate::config::{Config, HttpListener, Listener};
use gateway::cluster::DEFAULT_PORT;
use gateway::{amqp, link, stream};
use listener::{Endpoint, Protocol, StartError, Tls, TlsOptions};
use management::{HTTP, PROMETHEUS};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;

/// All that the configuration asks for.
#[derive(Default)]
pub struct Endpoints {
    all: Vec<Endpoint>,
    /// What is read again when an operator says so.
    pub tls: Vec<Arc<Tls>>,
    /// What links between nodes are secured with, if they are.
    pub cluster_tls: Option<Arc<Tls>>,
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
        endpoints.add_stream(config, any)?;
        endpoints.add_http(HTTP, &config.management.listener, config, any)?;
        endpoints.add_http(PROMETHEUS, &config.prometheus.listener, config, any)?;
        endpoints.add_cluster(config, any)?;
        Ok(endpoints)
    }

    /// Where other nodes dial this one, if it is to be one of several: where it is told to, or at the port that others are told.
    fn add_cluster(&mut self, config: &Config, any: IpAddr) -> Result<(), StartError> {
        if !config.cluster.is_wanted(&config.node_name) {
            return Ok(());
        }
        let own = config.node_name.to_string();
        let named = config.cluster.formation.listed().find(|node| node.name == own);
        let port = named.and_then(|node| node.port).unwrap_or(DEFAULT_PORT);
        let mut addresses: Vec<SocketAddr> = config
            .cluster
            .listeners
            .values()
            .map(|it| it.bind_address(any))
            .collect();
        if addresses.is_empty() {
            addresses.push(SocketAddr::new(any, port));
        }
        if config.cluster.tls.certificate.is_some() {
            self.cluster_tls = Some(self.load(&config.cluster.tls)?);
        }
        let endpoint = |address| match &self.cluster_tls {
            Some(tls) => Endpoint::secured(link::PROTOCOL, address, Arc::clone(tls)),
            None => Endpoint::plain(link::PROTOCOL, address),
        };
        let all: Vec<Endpoint> = addresses.into_iter().map(endpoint).collect();
        self.all.extend(all);
        Ok(())
    }

    /// Those for these protocols.
    pub fn of(&self, protocols: &[Protocol]) -> Vec<Endpoint> {
        let all = self.all.iter();
        all.filter(|it| protocols.contains(&it.protocol))
            .cloned()
            .collect()
    }

    fn add_amqp(&mut self, config: &Config, any: IpAddr) -> Result<(), StartError> {
        let listeners = (&config.listeners, &config.tls_listeners);
        let mut all = self.of_clients(amqp::PROTOCOL, listeners, config, any)?;
        let local = config.local_listeners.values();
        let local = local.map(|path| Endpoint::local(amqp::PROTOCOL, path.clone(), config.local_mode));
        let behind_plain = config.listeners.len();
        all.splice(behind_plain..behind_plain, local);
        self.add_clients(config, config.proxy_protocol, all);
        Ok(())
    }

    /// The node's certificate does for streams, too.
    fn add_stream(&mut self, config: &Config, any: IpAddr) -> Result<(), StartError> {
        let listeners = (&config.stream.listeners, &config.stream.tls_listeners);
        let all = self.of_clients(stream::PROTOCOL, listeners, config, any)?;
        self.add_clients(config, config.stream.proxy_protocol, all);
        Ok(())
    }

    /// Listeners for clients, who all come through the load balancers of the configuration or not.
    fn add_clients(&mut self, config: &Config, through_proxies: bool, mut all: Vec<Endpoint>) {
        if through_proxies {
            let proxies = Arc::new(config.proxies.clone());
            for endpoint in &mut all {
                endpoint.proxies = Some(Arc::clone(&proxies));
            }
        }
        self.all.extend(all);
    }

    /// Listeners without TLS, and those with the node's certificate.
    fn of_clients(
        &mut self,
        protocol: Protocol,
        (plain, secured): (&BTreeMap<String, Listener>, &BTreeMap<String, Listener>),
        config: &Config,
        any: IpAddr,
    ) -> Result<Vec<Endpoint>, StartError> {
        let plain = plain.values();
        let mut all: Vec<Endpoint> = plain
            .map(|it| Endpoint::plain(protocol, it.bind_address(any)))
            .collect();
        if !secured.is_empty() {
            let tls = self.load(&config.tls)?;
            let secured = secured.values();
            all.extend(secured.map(|it| Endpoint::secured(protocol, it.bind_address(any), Arc::clone(&tls))));
        }
        Ok(all)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_says_whether_its_clients_come_through_load_balancers() {
        for (of_amqp, of_streams) in [(true, false), (false, true)] {
            let mut config = Config {
                proxy_protocol: of_amqp,
                ..Config::default()
            };
            config.stream.proxy_protocol = of_streams;
            let endpoints = Endpoints::read(&config).unwrap();
            for (protocol, through) in [(amqp::PROTOCOL, of_amqp), (stream::PROTOCOL, of_streams)] {
                let all = endpoints.of(&[protocol]);
                assert_eq!(all.len(), 1);
                assert!(all.iter().all(|endpoint| endpoint.proxies.is_some() == through));
            }
        }
    }
}
