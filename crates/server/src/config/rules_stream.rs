//! The rules of the stream protocol's keys, `stream.*`.

use super::rules::{Checked, boolean, bytes_between, number, only_none};
use super::{Config, Listener, Setting};
use std::collections::BTreeMap;

/// The port that streams are at, if nothing is said.
const PORT: u16 = 5552;

/// The least frame that a client may be offered, in bytes: a login has to fit.
const FRAME_LEAST: u64 = 8_192;
/// The largest, in bytes.
const FRAME_MOST: u64 = 512 << 20;

/// Where and how the stream protocol is spoken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSettings {
    /// `stream.listeners.tcp.NAME`; empty with `stream.listeners.tcp = none`.
    pub listeners: BTreeMap<String, Listener>,
    /// `stream.listeners.ssl.NAME`.
    pub tls_listeners: BTreeMap<String, Listener>,
    /// Something was said of where to listen: then the node doesn't start without. The default port may be another node's.
    pub required: bool,
    /// `stream.proxy_protocol`: clients come through load balancers that say so.
    pub proxy_protocol: bool,
    /// `stream.frame_max`, in bytes.
    pub frame_max: u32,
    /// `stream.heartbeat`, in seconds.
    pub heartbeat_s: u32,
    /// `stream.initial_credits`.
    pub initial_credits: u32,
    /// `stream.credits_required_for_unblocking`.
    pub credits_required: u32,
    /// `stream.advertised_host` and `stream.advertised_port`.
    pub advertised: (Option<String>, Option<u16>),
    /// `stream.advertised_tls_host` and `stream.advertised_tls_port`.
    pub advertised_tls: (Option<String>, Option<u16>),
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            listeners: BTreeMap::from([("default".to_owned(), Listener::AnyAddress(PORT))]),
            tls_listeners: BTreeMap::new(),
            required: false,
            proxy_protocol: false,
            frame_max: 1_048_576,
            heartbeat_s: 60,
            initial_credits: 50_000,
            credits_required: 12_500,
            advertised: (None, None),
            advertised_tls: (None, None),
        }
    }
}

impl StreamSettings {
    /// The port where clients find it: the one that is said, or the first one that is listened at.
    pub fn advertised_port(&self, secured: bool) -> u16 {
        let (said, listeners) = match secured {
            true => (self.advertised_tls.1, &self.tls_listeners),
            false => (self.advertised.1, &self.listeners),
        };
        let first = listeners.values().next().map(|listener| match listener {
            Listener::AnyAddress(port) => *port,
            Listener::Address(address) => address.port(),
        });
        said.or(first).unwrap_or(PORT)
    }
}

fn parsed(setting: &Setting) -> Result<Listener, &'static str> {
    Listener::parse(&setting.value).ok_or("a port, or an IP address and a port, such as 127.0.0.1:5552")
}

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    let (name, listener) = (setting.key.name().to_owned(), parsed(setting)?);
    let stream = &mut config.stream;
    if !std::mem::replace(&mut stream.required, true) {
        stream.listeners.clear();
    }
    stream.listeners.insert(name, listener);
    Ok(())
}

pub fn no_listeners(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.stream.listeners.clear();
    config.stream.required = true;
    Ok(())
}

pub fn tls_listener(config: &mut Config, setting: &Setting) -> Checked {
    let name = setting.key.name().to_owned();
    config.stream.tls_listeners.insert(name, parsed(setting)?);
    Ok(())
}

pub fn no_tls_listeners(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.stream.tls_listeners.clear();
    Ok(())
}

pub fn proxy_protocol(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.proxy_protocol = boolean(setting)?;
    Ok(())
}

pub fn frame_max(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.frame_max = match setting.value.as_str() {
        "0" => 0,
        _ => bytes_between(setting, FRAME_LEAST, FRAME_MOST)
            .ok_or("0 (no limit), or bytes, from 8192 to 536870912, or with KB, MB")?,
    };
    Ok(())
}

pub fn heartbeat(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.heartbeat_s = number(setting, 0, 65_535).ok_or("seconds, from 0 (none) to 65535")?;
    Ok(())
}

pub fn initial_credits(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.initial_credits = number(setting, 1, 100_000_000).ok_or("a number from 1 to 100000000")?;
    Ok(())
}

pub fn credits_required(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.credits_required = number(setting, 0, 100_000_000).ok_or("a number from 0 to 100000000")?;
    Ok(())
}

fn host(setting: &Setting) -> Result<Option<String>, &'static str> {
    match setting.value.len() {
        1..=255 => Ok(Some(setting.value.clone())),
        _ => Err("a host name or an address"),
    }
}

fn port(setting: &Setting) -> Result<Option<u16>, &'static str> {
    let port = number(setting, 1, 65_535).and_then(|port: u32| u16::try_from(port).ok());
    port.map(Some).ok_or("a port from 1 to 65535")
}

pub fn advertised_host(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.advertised.0 = host(setting)?;
    Ok(())
}

pub fn advertised_port(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.advertised.1 = port(setting)?;
    Ok(())
}

pub fn advertised_tls_host(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.advertised_tls.0 = host(setting)?;
    Ok(())
}

pub fn advertised_tls_port(config: &mut Config, setting: &Setting) -> Checked {
    config.stream.advertised_tls.1 = port(setting)?;
    Ok(())
}
