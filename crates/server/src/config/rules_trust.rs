//! TLS where the node is the client: the same options below `auth_http.`, `auth_ldap.`, `auth_oauth2.`, `definitions.`
//! and `log.syslog.`.

use super::rules::{Checked, number};
use super::rules_identity::given;
use super::rules_oauth2::provider;
use super::{Config, Setting};
use identity::Trust;

fn trust<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut Trust {
    match setting.key.segments().first().map(String::as_str) {
        Some("auth_http") => &mut config.identity.backends.http.trust,
        Some("auth_ldap") => config.identity.backends.ldap.trust(),
        Some("auth_oauth2") => &mut provider(config, setting).trust,
        Some("definitions") => &mut config.definitions.trust,
        _ => &mut config.log.syslog.trust,
    }
}

pub fn authorities(config: &mut Config, setting: &Setting) -> Checked {
    trust(config, setting).authorities = Some(given(setting)?.into());
    Ok(())
}

pub fn certificate(config: &mut Config, setting: &Setting) -> Checked {
    trust(config, setting).certificate = Some(given(setting)?.into());
    Ok(())
}

pub fn key(config: &mut Config, setting: &Setting) -> Checked {
    trust(config, setting).key = Some(given(setting)?.into());
    Ok(())
}

pub fn server_name(config: &mut Config, setting: &Setting) -> Checked {
    trust(config, setting).server_name = match setting.value.as_str() {
        "none" => None,
        _ => Some(given(setting)?),
    };
    Ok(())
}

pub fn depth(config: &mut Config, setting: &Setting) -> Checked {
    trust(config, setting).depth = Some(number(setting, 0, 255).ok_or("a number from 0 to 255")?);
    Ok(())
}

pub fn version(config: &mut Config, setting: &Setting) -> Checked {
    let trust = trust(config, setting);
    match setting.value.as_str() {
        "tlsv1.2" => trust.versions.tls12 = true,
        "tlsv1.3" => trust.versions.tls13 = true,
        _ => return Err("tlsv1.2, tlsv1.3 (older versions are broken and not spoken)"),
    }
    Ok(())
}
