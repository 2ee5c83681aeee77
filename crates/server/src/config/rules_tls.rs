//! The settings of TLS: `ssl_options.*`, and the same names under `management.ssl.*`.

use super::rules::{Checked, boolean, number, only_none};
use super::units::whole;
use super::{Config, Listener, Setting};
use listener::{LoginFrom, Passphrase, RevocationCheck, SanType, TlsOptions, Version};
use std::time::Duration;

/// The options that a key belongs to.
fn options<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut TlsOptions {
    match setting.key.segments().first().map(String::as_str) {
        Some("management") => &mut config.management.listener.tls,
        Some("prometheus") => &mut config.prometheus.listener.tls,
        Some("cluster") => &mut config.cluster.tls,
        _ => &mut config.tls,
    }
}

fn path(setting: &Setting) -> Checked<Option<std::path::PathBuf>> {
    if setting.value.is_empty() {
        return Err("the path of a file in PEM");
    }
    Ok(Some((&setting.value).into()))
}

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    let listener = Listener::parse(&setting.value)
        .ok_or("a port, or an IP address and a port, such as 127.0.0.1:5671")?;
    config
        .tls_listeners
        .insert(setting.key.name().to_owned(), listener);
    Ok(())
}

pub fn no_listeners(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.tls_listeners.clear();
    Ok(())
}

pub fn certificate(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).certificate = path(setting)?;
    Ok(())
}

pub fn key(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).key = path(setting)?;
    Ok(())
}

pub fn authorities(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).authorities = path(setting)?;
    Ok(())
}

pub fn verify(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).verify_peer = match setting.value.as_str() {
        "verify_peer" => true,
        "verify_none" => false,
        _ => return Err("verify_peer, verify_none"),
    };
    Ok(())
}

pub fn fail_if_no_peer_cert(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).fail_if_no_peer_cert = boolean(setting)?;
    Ok(())
}

pub fn depth(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).depth = number::<u8>(setting, 0, 255)
        .ok_or("a number from 0 to 255")?
        .into();
    Ok(())
}

pub fn version(config: &mut Config, setting: &Setting) -> Checked {
    let version = match setting.value.as_str() {
        "tlsv1.2" => Version::Tls12,
        "tlsv1.3" => Version::Tls13,
        _ => return Err("tlsv1.2, tlsv1.3 (older versions are broken and not spoken)"),
    };
    options(config, setting).versions.push(version);
    Ok(())
}

/// Suites that are not spoken are left out with a warning: what is allowed becomes less by that, never more.
pub fn cipher(config: &mut Config, setting: &Setting) -> Checked {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if setting.value.is_empty() || !setting.value.bytes().all(plain) {
        return Err("a cipher suite by OpenSSL's name, such as ECDHE-RSA-AES256-GCM-SHA384");
    }
    options(config, setting).ciphers.push(setting.value.clone());
    Ok(())
}

pub fn honor_cipher_order(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).honor_cipher_order = boolean(setting)?;
    Ok(())
}

pub fn reuse_sessions(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).reuse_sessions = boolean(setting)?;
    Ok(())
}

pub fn password(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).passphrase = Some(Passphrase::new(setting.value.clone()));
    Ok(())
}

pub fn crl_check(config: &mut Config, setting: &Setting) -> Checked {
    options(config, setting).revocation.check = match setting.value.as_str() {
        "true" => RevocationCheck::Chain,
        "false" => RevocationCheck::No,
        "peer" => RevocationCheck::Peer,
        "best_effort" => RevocationCheck::BestEffort,
        _ => return Err("true, false, peer, best_effort"),
    };
    Ok(())
}

pub fn crl_source(_: &mut Config, setting: &Setting) -> Checked {
    match setting.value.as_str() {
        // Its path says where.
        "dir" => Ok(()),
        _ => Err("dir: lists are read from a directory, and not fetched over HTTP"),
    }
}

pub fn crl_path(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("the path of a directory");
    }
    let directories = &mut options(config, setting).revocation.directories;
    directories.push((&setting.value).into());
    Ok(())
}

pub fn handshake_timeout(config: &mut Config, setting: &Setting) -> Checked {
    let ms = whole(&setting.value, 100, 3_600_000).ok_or("milliseconds, from 100 to 3600000")?;
    config.tls.handshake_timeout = Duration::from_millis(ms);
    config.management.listener.tls.handshake_timeout = Duration::from_millis(ms);
    config.prometheus.listener.tls.handshake_timeout = Duration::from_millis(ms);
    Ok(())
}

pub fn login_from(config: &mut Config, setting: &Setting) -> Checked {
    config.certificate_login = match setting.value.as_str() {
        "distinguished_name" => LoginFrom::DistinguishedName,
        "common_name" => LoginFrom::CommonName,
        "subject_alternative_name" | "subject_alt_name" => {
            LoginFrom::AlternativeName(config.certificate_san.0, config.certificate_san.1)
        }
        _ => return Err("distinguished_name, common_name, subject_alternative_name"),
    };
    Ok(())
}

pub fn san_type(config: &mut Config, setting: &Setting) -> Checked {
    config.certificate_san.0 = match setting.value.as_str() {
        "dns" => SanType::Dns,
        "ip" => SanType::Ip,
        "email" => SanType::Email,
        "uri" => SanType::Uri,
        "other_name" => SanType::OtherName,
        _ => return Err("dns, ip, email, uri, other_name"),
    };
    Ok(())
}

pub fn san_index(config: &mut Config, setting: &Setting) -> Checked {
    config.certificate_san.1 = number(setting, 0, 65_535).ok_or("a number from 0 to 65535")?;
    Ok(())
}

pub fn management_listener(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.port_is_secured = boolean(setting)?;
    Ok(())
}

pub fn management_port(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.set_tls_port(setting)
}

pub fn management_ip(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.set_tls_ip(setting)
}

pub fn prometheus_port(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.listener.set_tls_port(setting)
}

pub fn prometheus_ip(config: &mut Config, setting: &Setting) -> Checked {
    config.prometheus.listener.set_tls_ip(setting)
}
