//! From settings to a [`Config`]: the later setting of a key counts, and mistakes are reported together, not one a
//! start.

use super::encrypted::{self, Decoder};
use super::error::ConfigError;
use super::keys::{self, Rule};
use super::rules_guards::Validator;
use super::{Config, Setting, Watermark};
use gateway::amqp::Mechanism;
use identity::{Backend, Link};
use listener::ciphers;
use std::collections::HashSet;

/// So many mistakes are reported at once; whoever has more gave the wrong file.
const ERRORS_MOST: usize = 20;

/// A configuration, and what its operator should know about it.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// One line each, in the order of the settings.
    pub warnings: Vec<String>,
    /// What was set, each key once.
    pub settings: Vec<Setting>,
}

/// Checks settings and applies them to the defaults.
///
/// # Errors
/// Unknown keys, bad values and refused settings, in the order of the settings, twenty at most.
pub fn load(settings: Vec<Setting>) -> Result<Loaded, Vec<ConfigError>> {
    let settings = last_of_each_key(settings);
    let mut config = Config::default();
    let mut warnings = Vec::new();
    let mut errors = Vec::new();
    drop_replaced_defaults(&mut config, &settings);
    let mut without_effect = WithoutEffect::default();
    let decoder = Decoder::of(&settings);
    for setting in &settings {
        let applied = decoder.plain(setting).and_then(|plain| {
            let is_secret = encrypted::is_guarded(setting);
            apply(&mut config, &plain).map_err(|error| if is_secret { error.without_value() } else { error })
        });
        match applied {
            Ok(None) => {}
            Ok(Some(why)) => without_effect.add(setting.key.to_string(), why),
            Err(error) if errors.len() < ERRORS_MOST => errors.push(error),
            Err(_) => break,
        }
    }
    let mistakes = std::mem::take(&mut config.identity.backends.ldap.mistakes);
    errors.extend(
        mistakes
            .into_iter()
            .map(|(origin, what)| ConfigError::Query { origin, what }),
    );
    if let Err(missing) = config.credentials.validator() {
        let named = |it: &&Setting| it.key.to_string() == "credential_validator.validation_backend";
        errors.extend(settings.iter().find(named).map(|it| ConfigError::Query {
            origin: it.origin.clone(),
            what: format!("{} needs {missing}", it.value),
        }));
    }
    warnings.extend(without_effect.lines());
    warnings.extend(contradictions(&config, &settings));
    if errors.is_empty() {
        Ok(Loaded {
            config,
            warnings,
            settings,
        })
    } else {
        Err(errors)
    }
}

fn last_of_each_key(settings: Vec<Setting>) -> Vec<Setting> {
    let mut seen = HashSet::new();
    let mut kept: Vec<Setting> = settings
        .into_iter()
        .rev()
        .filter(|s| seen.insert(s.key.clone()))
        .collect();
    kept.reverse();
    // Some settings win over others whatever the order, as in RabbitMQ; so they go last.
    kept.sort_by_key(goes_last);
    kept
}

/// `none` empties a list whatever else is said about it; an absolute amount wins over a relative one.
fn goes_last(setting: &Setting) -> bool {
    matches!(
        setting.key.to_string().as_str(),
        "listeners.tcp"
            | "listeners.ssl"
            | "management.cors.allow_origins"
            | "ssl_cert_login_from"
            | "loopback_users"
            | "vm_memory_high_watermark.absolute"
            | "disk_free_limit.absolute"
    )
}

/// Lists that a configuration replaces as a whole, as in RabbitMQ: naming one listener drops the default one.
fn drop_replaced_defaults(config: &mut Config, settings: &[Setting]) {
    let names = |prefix: &[&str]| {
        settings.iter().any(|s| {
            let segments = s.key.segments();
            segments.len() == prefix.len() + 1 && segments.iter().zip(prefix).all(|(a, b)| a == b)
        })
    };
    if names(&["listeners", "tcp"]) {
        config.listeners.clear();
    }
    if names(&["default_user_tags"]) {
        config.defaults.tags.clear();
    }
}

/// The keys that have no effect, by the reason why: an operator reads one line a reason.
#[derive(Default)]
struct WithoutEffect(Vec<(String, Vec<String>)>);

impl WithoutEffect {
    fn add(&mut self, key: String, why: String) {
        match self.0.iter_mut().find(|(known, _)| *known == why) {
            Some((_, keys)) => keys.push(key),
            None => self.0.push((why, vec![key])),
        }
    }

    fn lines(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(why, keys)| match keys.as_slice() {
            [key] => format!("key {key} has no effect: {why}"),
            keys => format!("keys {} have no effect: {why}", keys.join(", ")),
        })
    }
}

/// Applies one setting; answers with the reason where it has no effect.
fn apply(config: &mut Config, setting: &Setting) -> Result<Option<String>, ConfigError> {
    let key = setting.key.to_string();
    let origin = || setting.origin.clone();
    match keys::rule(&setting.key) {
        None => {
            let nearest = keys::nearest(&setting.key);
            Err(ConfigError::UnknownKey {
                origin: origin(),
                key,
                nearest,
            })
        }
        Some(Rule::Among(values, _, why) | Rule::Only(values, why))
            if !values.contains(&setting.value.as_str()) =>
        {
            Err(ConfigError::Refused {
                origin: origin(),
                key,
                why,
            })
        }
        Some(Rule::Only(..)) => Ok(None),
        Some(Rule::Sets(set) | Rule::Among(_, set, _)) => {
            set(config, setting).map(|()| None).map_err(|allowed| {
                let secret = [
                    "default_pass",
                    "anonymous_login_pass",
                    "config_entry_decoder.passphrase",
                ]
                .contains(&key.as_str());
                let value = (!secret).then(|| setting.value.clone());
                ConfigError::BadValue {
                    origin: origin(),
                    key,
                    value,
                    allowed,
                }
            })
        }
        Some(Rule::Part(part)) => Ok(Some(format!("this version doesn't have {part}"))),
        Some(Rule::NoEffect(why)) => Ok(Some((*why).to_owned())),
    }
}

/// Settings that are each right, but not together.
fn contradictions(config: &Config, settings: &[Setting]) -> Vec<String> {
    let given = |name: &str| settings.iter().any(|s| s.key.to_string() == name);
    let mut warnings = Vec::new();
    for group in ["vm_memory_high_watermark", "disk_free_limit"] {
        if given(&format!("{group}.absolute")) && given(&format!("{group}.relative")) {
            warnings.push(format!(
                "both {group}.absolute and {group}.relative are set; the absolute one counts"
            ));
        }
    }
    warnings.extend(contradictions_of_tls(config));
    warnings.extend(config.cluster.warnings());
    warnings.extend(config.management.sign_on.warnings(&config.identity.oauth2));
    let links = config.identity.links().unwrap_or_default();
    let asks = |link: &Link| config.identity.asks(link.authorizes, Backend::Ldap);
    if links.iter().any(asks) && config.identity.backends.ldap.permits_everything() {
        warnings.push(
            "all LDAP users have all permissions in all virtual hosts unless auth_ldap.queries.vhost_access or \
             auth_ldap.queries.resource_access is set"
                .to_owned(),
        );
    }
    let credentials = &config.credentials;
    for (key, is_said, backend) in [
        ("min_length", credentials.min_length.is_some(), Validator::Length),
        ("regexp", credentials.regexp.is_some(), Validator::Expression),
    ] {
        if is_said && credentials.backend != backend {
            warnings.push(format!(
                "credential_validator.{key} has no effect without credential_validator.validation_backend = {}",
                backend.name()
            ));
        }
    }
    let through_proxies = config.proxy_protocol || config.stream.proxy_protocol;
    if !through_proxies && !config.proxies.trusted.is_empty() {
        warnings.push(
            "proxy_protocol_trusted_sources has no effect without proxy_protocol = true or \
             stream.proxy_protocol = true"
                .to_owned(),
        );
    }
    let none = config.listeners.is_empty() && config.tls_listeners.is_empty();
    if none && config.local_listeners.is_empty() {
        warnings.push("no listener is configured: no client can connect".to_owned());
    }
    let most = config.limits.unfinished_most();
    if given("max_unfinished_size") && config.limits.unfinished_bytes < most {
        warnings.push(format!(
            "max_unfinished_size is less than {} times max_message_size, which is what counts: {most} bytes",
            model::Limits::UNFINISHED_LARGEST
        ));
    }
    if config.memory_watermark == Watermark::Absolute(0)
        || config.memory_watermark == Watermark::Relative(0.0)
    {
        warnings.push("vm_memory_high_watermark is 0: every publisher will be blocked".to_owned());
    }
    warnings
}

fn contradictions_of_tls(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    for tls in [&config.tls, &config.management.listener.tls, &config.cluster.tls] {
        for cipher in tls.ciphers.iter().filter(|name| !ciphers::is_spoken(name)) {
            warnings.push(format!(
                "{}.ciphers: {cipher} is not spoken here; the suite is left out",
                tls.section
            ));
        }
    }
    let external = config
        .auth_mechanisms
        .values()
        .any(|it| *it == Mechanism::External);
    if external && config.tls_listeners.is_empty() {
        warnings.push(
            "auth_mechanisms contains EXTERNAL, which needs client certificates, but no listeners.ssl is set"
                .into(),
        );
    }
    if external && !config.tls_listeners.is_empty() && !config.tls.verify_peer {
        warnings.push(
            "auth_mechanisms names EXTERNAL, but clients show no certificate unless ssl_options.verify = verify_peer".into(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests;
