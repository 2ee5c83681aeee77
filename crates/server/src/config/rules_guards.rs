//! Limits of the node as a whole, and what passwords must be like: `connection_max`, `channel_max_per_node` and their
//! like, `credential_validator.*`.

use super::rules::{Checked, number};
use super::rules_vhost_defaults::pattern;
use super::{Config, Setting};
use broker::CredentialValidator;

/// `credential_validator.*`, as it was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    pub backend: Validator,
    pub min_length: Option<usize>,
    pub regexp: Option<String>,
}

/// `credential_validator.validation_backend`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validator {
    #[default]
    Everything,
    Length,
    Expression,
}

impl Validator {
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "rabbit_credential_validator_accept_everything",
            Self::Length => "rabbit_credential_validator_min_password_length",
            Self::Expression => "rabbit_credential_validator_password_regexp",
        }
    }
}

impl Credentials {
    /// What the broker asks of passwords.
    ///
    /// # Errors
    /// The key that is missing.
    pub fn validator(&self) -> Result<CredentialValidator, &'static str> {
        match self.backend {
            Validator::Everything => Ok(CredentialValidator::AcceptEverything),
            Validator::Length => self
                .min_length
                .map(CredentialValidator::MinimumLength)
                .ok_or("credential_validator.min_length"),
            Validator::Expression => {
                let regexp = self.regexp.clone().map(CredentialValidator::Expression);
                regexp.ok_or("credential_validator.regexp")
            }
        }
    }
}

fn limit(setting: &Setting, least: u64) -> Checked<Option<u64>> {
    match setting.value.as_str() {
        "infinity" => Ok(None),
        _ => number(setting, least, u32::MAX.into())
            .map(Some)
            .ok_or("a number, or infinity"),
    }
}

pub fn connection_max(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.connections = limit(setting, 0)?;
    Ok(())
}

pub fn channel_max_per_node(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.channels = limit(setting, 1)?;
    Ok(())
}

pub fn consumer_max_per_channel(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.consumers = limit(setting, 1)?;
    Ok(())
}

pub fn vhost_max(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.vhosts = limit(setting, 0)?;
    Ok(())
}

pub fn cluster_queue_limit(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.queues = limit(setting, 0)?;
    Ok(())
}

pub fn cluster_exchange_limit(config: &mut Config, setting: &Setting) -> Checked {
    config.node_limits.exchanges = limit(setting, 0)?;
    Ok(())
}

pub fn validator(config: &mut Config, setting: &Setting) -> Checked {
    let known = [Validator::Everything, Validator::Length, Validator::Expression];
    let found = known.into_iter().find(|it| it.name() == setting.value);
    config.credentials.backend = found.ok_or(
        "rabbit_credential_validator_accept_everything, rabbit_credential_validator_min_password_length, \
         rabbit_credential_validator_password_regexp",
    )?;
    Ok(())
}

pub fn min_length(config: &mut Config, setting: &Setting) -> Checked {
    config.credentials.min_length = Some(number(setting, 0, 1_024).ok_or("a number from 0 to 1024")?);
    Ok(())
}

pub fn regexp(config: &mut Config, setting: &Setting) -> Checked {
    config.credentials.regexp = Some(pattern(setting)?);
    Ok(())
}
