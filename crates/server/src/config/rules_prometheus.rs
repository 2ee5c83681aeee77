//! `prometheus.*`: the page of metrics.

use super::rules::{Checked, boolean, number, only_none};
use super::{Config, Setting};

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.prometheus.enabled = false;
    Ok(())
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.port =
        number(setting, 0, 65_535).ok_or("a port, from 0 (any that is free) to 65535")?;
    config.prometheus.required = true;
    Ok(())
}

pub fn ip(config: &mut Config, setting: &Setting) -> Checked {
    let ip = setting.value.parse();
    config.prometheus.ip = Some(ip.map_err(|_| "an IP address, such as 127.0.0.1")?);
    config.prometheus.required = true;
    Ok(())
}

pub fn per_object(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.per_object = boolean(setting)?;
    Ok(())
}

pub fn object_limit(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.object_limit = number(setting, 0, 1_000_000).ok_or("a number from 0 to 1000000")?;
    Ok(())
}
