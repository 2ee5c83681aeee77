//! `prometheus.*`: the page of metrics.

use super::rules::{Checked, boolean, number};
use super::{Config, Setting};

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.listener.close(setting)
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.listener.set_port(setting)
}

pub fn ip(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.listener.set_ip(setting)
}

/// An absolute path; that it may end with `/` makes no difference.
pub fn path(config: &mut Config, setting: &Setting) -> Checked {
    let path = setting.value.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-_.~".contains(c);
    if !path.starts_with('/') || !path.chars().all(plain) {
        return Err("a path such as /metrics, of letters, digits and -_.~");
    }
    config.prometheus.path = path.to_owned();
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
