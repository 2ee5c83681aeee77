//! The listeners for HTTP, of the API and of the page for Prometheus: `management.*` and `prometheus.*` say the same of them.

use super::Setting;
use super::rules::{Checked, number, only_none};
use listener::TlsOptions;
use std::net::{IpAddr, SocketAddr};

/// Where HTTP is spoken, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpListener {
    /// It is opened (`*.listener = none`: it isn't).
    pub enabled: bool,
    /// `*.tcp.port`.
    pub port: u16,
    /// `management.listener.ssl`: this port speaks TLS.
    pub port_is_secured: bool,
    /// `*.tcp.ip`; `None` is every address.
    pub ip: Option<IpAddr>,
    /// `*.ssl.port`: a port with TLS. Without `*.tcp.port` it is the only one then.
    pub tls_port: Option<u16>,
    /// `*.ssl.ip`; `None` is every address.
    pub tls_ip: Option<IpAddr>,
    /// Port or address were set: then the node doesn't start without them. The default port may be another node's.
    pub required: bool,
    /// `*.ssl.*`.
    pub tls: TlsOptions,
}

impl HttpListener {
    /// A port without TLS at every address; `section` is where its certificates are set.
    pub fn new(port: u16, section: &'static str) -> Self {
        Self {
            enabled: true,
            port,
            port_is_secured: false,
            ip: None,
            tls_port: None,
            tls_ip: None,
            required: false,
            tls: TlsOptions::new(section),
        }
    }

    /// The addresses to bind, and whether TLS is spoken there. `any` is what "every address" is on this machine.
    pub fn addresses(&self, any: IpAddr) -> Vec<(SocketAddr, bool)> {
        let port = (
            SocketAddr::new(self.ip.unwrap_or(any), self.port),
            self.port_is_secured,
        );
        let tls = self
            .tls_port
            .map(|port| (SocketAddr::new(self.tls_ip.unwrap_or(any), port), true));
        let wanted = self.required || tls.is_none();
        let both = wanted.then_some(port).into_iter().chain(tls);
        both.filter(|_| self.enabled).collect()
    }

    /// `*.listener = none`.
    pub(super) fn close(&mut self, setting: &Setting) -> Checked {
        only_none(setting)?;
        self.enabled = false;
        Ok(())
    }

    /// `*.tcp.port`.
    pub(super) fn set_port(&mut self, setting: &Setting) -> Checked {
        self.port = port(setting)?;
        self.required = true;
        Ok(())
    }

    /// `*.tcp.ip`.
    pub(super) fn set_ip(&mut self, setting: &Setting) -> Checked {
        self.ip = Some(ip(setting)?);
        self.required = true;
        Ok(())
    }

    /// `*.ssl.port`.
    pub(super) fn set_tls_port(&mut self, setting: &Setting) -> Checked {
        self.tls_port = Some(port(setting)?);
        Ok(())
    }

    /// `*.ssl.ip`.
    pub(super) fn set_tls_ip(&mut self, setting: &Setting) -> Checked {
        self.tls_ip = Some(ip(setting)?);
        Ok(())
    }
}

fn port(setting: &Setting) -> Result<u16, &'static str> {
    number(setting, 0, 65_535).ok_or("a port, from 0 (any that is free) to 65535")
}

fn ip(setting: &Setting) -> Result<IpAddr, &'static str> {
    let ip = setting.value.parse();
    ip.map_err(|_| "an IP address, such as 127.0.0.1")
}
