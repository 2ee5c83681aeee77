//! The settings of the HTTP API, `management.*`, but for its certificates.

use super::rules::{Checked, MESSAGE_BYTES_MOST, boolean, bytes_between, number, only_none};
use super::{Config, Setting};

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.close(setting)
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.set_port(setting)
}

pub fn ip(config: &mut Config, setting: &Setting) -> Checked {
    config.management.listener.set_ip(setting)
}

pub fn body_limit(config: &mut Config, setting: &Setting) -> Checked {
    let bytes = bytes_between(setting, 1_024, MESSAGE_BYTES_MOST);
    config.management.body_limit = bytes.ok_or("bytes, from 1024 to 536870912, or with KB, MB")? as usize;
    Ok(())
}

/// What stands before every path. A slash at its end does not count, one at its beginning may be missing, as in RabbitMQ.
pub fn path_prefix(config: &mut Config, setting: &Setting) -> Checked {
    let prefix = setting.value.trim_matches('/');
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._~/".contains(letter);
    if !prefix.chars().all(fits) || prefix.split('/').any(|part| part == "." || part == "..") {
        return Err("a path of letters, digits and -._~, such as /mq");
    }
    config.management.path_prefix = match prefix {
        "" => String::new(),
        prefix => format!("/{prefix}"),
    };
    Ok(())
}

pub fn disable_basic_auth(config: &mut Config, setting: &Setting) -> Checked {
    config.management.disable_basic_auth = boolean(setting)?;
    Ok(())
}

/// The keys of headers, and the headers.
pub const HEADERS: [(&str, &str); 6] = [
    ("management.csp.policy", "content-security-policy"),
    ("management.hsts.policy", "strict-transport-security"),
    (
        "management.headers.content_type_options",
        "x-content-type-options",
    ),
    ("management.headers.xss_protection", "x-xss-protection"),
    ("management.headers.frame_options", "x-frame-options"),
    ("management.headers.referrer_policy", "referrer-policy"),
];

pub fn header(config: &mut Config, setting: &Setting) -> Checked {
    let key = setting.key.to_string();
    let printable = setting.value.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    match HEADERS.iter().find(|(known, _)| *known == key) {
        Some((_, name)) if printable && !setting.value.is_empty() => {
            config.management.headers.insert(name, setting.value.clone());
            Ok(())
        }
        _ => Err("the value of a header, in printable ASCII"),
    }
}

pub fn disable_stats(config: &mut Config, setting: &Setting) -> Checked {
    config.management.disable_stats = boolean(setting)?;
    Ok(())
}

/// RabbitMQ's answers are the same with this key as with `management.disable_stats`.
pub fn disable_metrics_collector(config: &mut Config, setting: &Setting) -> Checked {
    if boolean(setting)? {
        config.management.disable_stats = true;
    }
    Ok(())
}

pub fn queue_totals(config: &mut Config, setting: &Setting) -> Checked {
    config.management.enable_queue_totals = boolean(setting)?;
    Ok(())
}

pub fn web_socket(config: &mut Config, setting: &Setting) -> Checked {
    config.management.web_socket = boolean(setting)?;
    Ok(())
}

/// Pages of this site may use the API; `*` lets all.
pub fn allow_origin(config: &mut Config, setting: &Setting) -> Checked {
    let site = setting.value.as_str();
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| site.strip_prefix(scheme));
    // Browsers name a site without a path, and what they name is compared as it is.
    if site != "*" && host.is_none_or(|host| host.is_empty() || host.contains(['/', ' ', ','])) {
        return Err("a site as browsers name it, such as https://admin.example.com, or *");
    }
    config.management.origins.allowed.push(site.to_owned());
    Ok(())
}

pub fn no_origins(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.management.origins.allowed.clear();
    Ok(())
}

pub fn origins_max_age(config: &mut Config, setting: &Setting) -> Checked {
    let seconds = number(setting, 0, u32::MAX.into());
    config.management.origins.max_age_s = seconds.ok_or("seconds, from 0 to 4294967295")?;
    Ok(())
}
