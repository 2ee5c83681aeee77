//! `prometheus.*`: the page of metrics.

use super::rules::{Checked, boolean, number};
use super::{Config, Setting};

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.door.close(setting)
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.door.set_port(setting)
}

pub fn ip(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.door.set_ip(setting)
}

pub fn per_object(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.per_object = boolean(setting)?;
    Ok(())
}

pub fn object_limit(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.object_limit = number(setting, 0, 1_000_000).ok_or("a number from 0 to 1000000")?;
    Ok(())
}
