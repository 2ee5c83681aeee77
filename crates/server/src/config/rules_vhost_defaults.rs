//! What new virtual hosts get: `default_limits.vhosts.*`, `default_policies.operator.*`, `default_users.*`. Each has an
//! id in its key, and what is said below the same id belongs together.

use super::rules::{Checked, number};
use super::units::{byte_size, duration_ms};
use super::{Config, Setting};
use broker::{ApplyTo, DefaultLimits, DefaultPolicy, DefaultUser, Pattern, Permissions};
use std::collections::BTreeMap;

/// By their ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VhostDefaults {
    pub limits: BTreeMap<String, DefaultLimits>,
    pub policies: BTreeMap<String, DefaultPolicy>,
    pub users: BTreeMap<String, DefaultUser>,
}

impl VhostDefaults {
    /// For the broker, in the order of the ids.
    pub fn all(&self) -> broker::VhostDefaults {
        broker::VhostDefaults {
            limits: self.limits.values().cloned().collect(),
            policies: self.policies.values().cloned().collect(),
            users: self.users.values().cloned().collect(),
        }
    }
}

/// Matches all names.
const ANY: &str = ".*";

/// `GROUP.*.ID.NAME`: the segment of the id.
fn id(setting: &Setting, at: usize) -> String {
    setting.key.segments().get(at).cloned().unwrap_or_default()
}

fn limits<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut DefaultLimits {
    let new = || DefaultLimits {
        pattern: ANY.to_owned(),
        limits: Vec::new(),
    };
    config
        .vhost_defaults
        .limits
        .entry(id(setting, 2))
        .or_insert_with(new)
}

fn policy<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut DefaultPolicy {
    let name = id(setting, 2);
    let new = || DefaultPolicy {
        vhost_pattern: ANY.to_owned(),
        name: name.clone(),
        queue_pattern: ANY.to_owned(),
        apply_to: "queues".to_owned(),
        definition: Vec::new(),
    };
    config
        .vhost_defaults
        .policies
        .entry(name.clone())
        .or_insert_with(new)
}

fn user<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut DefaultUser {
    let name = id(setting, 1);
    let new = || DefaultUser {
        vhost_pattern: ANY.to_owned(),
        name: name.clone(),
        password: None,
        tags: Vec::new(),
        permissions: Permissions {
            configure: ANY.to_owned(),
            write: ANY.to_owned(),
            read: ANY.to_owned(),
        },
    };
    config
        .vhost_defaults
        .users
        .entry(name.clone())
        .or_insert_with(new)
}

pub fn pattern(setting: &Setting) -> Checked<String> {
    match Pattern::new(&setting.value) {
        Ok(_) => Ok(setting.value.clone()),
        Err(_) => Err("a regular expression"),
    }
}

pub fn limits_pattern(config: &mut Config, setting: &Setting) -> Checked {
    limits(config, setting).pattern = pattern(setting)?;
    Ok(())
}

pub fn limit(config: &mut Config, setting: &Setting) -> Checked {
    let most = number(setting, 1, i64::MAX as u64).ok_or("a number from 1")?;
    let name = setting.key.name().replace('_', "-");
    limits(config, setting).limits.push((name, most));
    Ok(())
}

pub fn policy_vhosts(config: &mut Config, setting: &Setting) -> Checked {
    policy(config, setting).vhost_pattern = pattern(setting)?;
    Ok(())
}

pub fn policy_queues(config: &mut Config, setting: &Setting) -> Checked {
    policy(config, setting).queue_pattern = pattern(setting)?;
    Ok(())
}

pub fn policy_applies(config: &mut Config, setting: &Setting) -> Checked {
    match ApplyTo::from_name(&setting.value) {
        None | Some(ApplyTo::Exchanges) => return Err("queues, classic_queues, quorum_queues, streams, all"),
        Some(_) => {}
    }
    policy(config, setting).apply_to.clone_from(&setting.value);
    Ok(())
}

fn define(config: &mut Config, setting: &Setting, value: Option<u64>, allowed: &'static str) -> Checked {
    let value = value
        .and_then(|value| i64::try_from(value).ok())
        .filter(|value| *value > 0);
    let value = value.ok_or(allowed)?;
    let name = setting.key.name().replace('_', "-");
    policy(config, setting).definition.push((name, value));
    Ok(())
}

/// `expires` and `message_ttl`.
pub fn policy_duration(config: &mut Config, setting: &Setting) -> Checked {
    let ms = duration_ms(&setting.value);
    define(
        config,
        setting,
        ms,
        "milliseconds, or a duration such as 30s, 15m, 12h, 7d",
    )
}

/// `max_length_bytes`.
pub fn policy_bytes(config: &mut Config, setting: &Setting) -> Checked {
    let bytes = byte_size(&setting.value);
    define(config, setting, bytes, "bytes from 1, or with KB, MB, GB")
}

/// `max_length` and `delivery_limit`.
pub fn policy_number(config: &mut Config, setting: &Setting) -> Checked {
    let count = number(setting, 1, i64::MAX as u64);
    define(config, setting, count, "a number from 1")
}

pub fn user_vhosts(config: &mut Config, setting: &Setting) -> Checked {
    user(config, setting).vhost_pattern = pattern(setting)?;
    Ok(())
}

pub fn user_password(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("a password that is not empty");
    }
    user(config, setting).password = Some(setting.value.clone());
    Ok(())
}

pub fn user_tags(config: &mut Config, setting: &Setting) -> Checked {
    let tags = setting
        .value
        .split(',')
        .map(str::trim)
        .filter(|tag| !tag.is_empty());
    user(config, setting).tags = tags.map(str::to_owned).collect();
    Ok(())
}

pub fn user_configure(config: &mut Config, setting: &Setting) -> Checked {
    user(config, setting).permissions.configure = pattern(setting)?;
    Ok(())
}

pub fn user_write(config: &mut Config, setting: &Setting) -> Checked {
    user(config, setting).permissions.write = pattern(setting)?;
    Ok(())
}

pub fn user_read(config: &mut Config, setting: &Setting) -> Checked {
    user(config, setting).permissions.read = pattern(setting)?;
    Ok(())
}
