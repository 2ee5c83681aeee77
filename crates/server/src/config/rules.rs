//! One function a setting: checks the value's text and puts it into the [`Config`].
//!
//! An error is the list of what is allowed, as a person would say it.

use super::units::{byte_size, information_units, share, whole};
use super::{Config, Listener, Setting, Watermark};
use crate::logs::{ConsoleStream, Level, LogFormat, Moment};
use broker::PasswordHashing;
use gateway::amqp::Mechanism;

/// `Err` says what the value may be.
pub type Checked<T = ()> = Result<T, &'static str>;

/// The smallest `frame_max` that clients may be offered (`FRAME_MIN_SIZE` of RabbitMQ 4.1 and later).
const FRAME_MAX_LEAST: u64 = 8_192;
/// RabbitMQ's hard cap of `max_message_size`; larger frames than that carry nothing.
pub const MESSAGE_BYTES_MOST: u64 = 536_870_912;

pub fn data_dir(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("the path of a directory");
    }
    config.data_dir = (&setting.value).into();
    Ok(())
}

pub fn pid_file(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("the path of a file");
    }
    config.pid_file = Some((&setting.value).into());
    Ok(())
}

pub fn keeps_pid_file(config: &mut Config, setting: &Setting) -> Checked {
    config.keeps_pid_file = boolean(setting)?;
    Ok(())
}

pub fn listener(config: &mut Config, setting: &Setting) -> Checked {
    let listener = Listener::parse(&setting.value).ok_or(
        "a port, or an IP address and a port, such as 127.0.0.1:5672 (for sockets in the file system there is listeners.unix.NAME)",
    )?;
    config.listeners.insert(setting.key.name().to_owned(), listener);
    Ok(())
}

pub fn no_listeners(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.listeners.clear();
    Ok(())
}

pub fn local_listener(config: &mut Config, setting: &Setting) -> Checked {
    // The system's limit, less the byte that ends the name.
    if setting.value.is_empty() || setting.value.len() > 107 {
        return Err("the path of a socket, of 107 bytes at most");
    }
    let name = setting.key.name().to_owned();
    config.local_listeners.insert(name, (&setting.value).into());
    Ok(())
}

pub fn local_mode(config: &mut Config, setting: &Setting) -> Checked {
    let mode = u32::from_str_radix(&setting.value, 8).ok();
    let mode = mode.filter(|mode| *mode <= 0o777);
    config.local_mode = mode.ok_or("a mode as chmod has it, from 0 to 777")?;
    Ok(())
}

pub fn loopback_user(config: &mut Config, setting: &Setting) -> Checked {
    let user = setting.key.name();
    let restricted = boolean(setting)?;
    config.loopback_users.retain(|u| u != user);
    if restricted {
        config.loopback_users.push(user.to_owned());
    }
    Ok(())
}

pub fn no_loopback_users(config: &mut Config, setting: &Setting) -> Checked {
    only_none(setting)?;
    config.loopback_users.clear();
    Ok(())
}

pub fn backlog(config: &mut Config, setting: &Setting) -> Checked {
    config.tcp.backlog = number(setting, 1, 65_535).ok_or("a number from 1 to 65535")?;
    Ok(())
}

pub fn nodelay(config: &mut Config, setting: &Setting) -> Checked {
    config.tcp.nodelay = boolean(setting)?;
    Ok(())
}

pub fn sndbuf(config: &mut Config, setting: &Setting) -> Checked {
    config.tcp.send_buffer = Some(socket_buffer(setting)?);
    Ok(())
}

pub fn recbuf(config: &mut Config, setting: &Setting) -> Checked {
    config.tcp.receive_buffer = Some(socket_buffer(setting)?);
    Ok(())
}

fn socket_buffer(setting: &Setting) -> Checked<u32> {
    bytes_between(setting, 4_096, 1 << 30).ok_or("a size from 4096 to 1GB")
}

pub fn proxy_protocol(config: &mut Config, setting: &Setting) -> Checked {
    config.proxy_protocol = boolean(setting)?;
    Ok(())
}

pub fn proxy_trusted(config: &mut Config, setting: &Setting) -> Checked {
    let network = listener::Network::parse(&setting.value);
    config
        .proxies
        .trusted
        .push(network.ok_or("an IP address, or a network such as 10.0.0.0/8")?);
    Ok(())
}

pub fn handshake_timeout(config: &mut Config, setting: &Setting) -> Checked {
    // RabbitMQ also takes `infinity`; nobody may hold a socket here forever without logging in.
    config.limits.handshake_ms =
        whole(&setting.value, 100, 3_600_000).ok_or("milliseconds, from 100 to 3600000")?;
    Ok(())
}

pub fn heartbeat(config: &mut Config, setting: &Setting) -> Checked {
    config.heartbeat_s = number(setting, 0, 65_535).ok_or("seconds, from 0 (none) to 65535")?;
    Ok(())
}

pub fn frame_max(config: &mut Config, setting: &Setting) -> Checked {
    config.limits.frame_max = bytes_between(setting, FRAME_MAX_LEAST, MESSAGE_BYTES_MOST)
        .ok_or("bytes, from 8192 to 536870912, or with KB, MB (an unlimited frame size is not supported)")?;
    Ok(())
}

pub fn initial_frame_max(config: &mut Config, setting: &Setting) -> Checked {
    config.limits.initial_frame_max =
        bytes_between(setting, 4_096, 131_072).ok_or("bytes, from 4096 to 131072, or with KB")?;
    Ok(())
}

pub fn channel_max(config: &mut Config, setting: &Setting) -> Checked {
    let most: u16 = number(setting, 0, 65_535).ok_or("a number from 0 (no limit) to 65535")?;
    // AMQP's channel numbers have 16 bits, so "no limit" is 65,535.
    config.limits.channel_max = if most == 0 { u16::MAX } else { most };
    Ok(())
}

pub fn max_message_size(config: &mut Config, setting: &Setting) -> Checked {
    config.limits.message_bytes =
        whole(&setting.value, 1, MESSAGE_BYTES_MOST).ok_or("bytes, from 1 to 536870912")?;
    Ok(())
}

pub fn max_unfinished_size(config: &mut Config, setting: &Setting) -> Checked {
    config.limits.unfinished_bytes = amount(setting)?;
    Ok(())
}

pub fn default_user(config: &mut Config, setting: &Setting) -> Checked {
    config.defaults.user = short_name(setting)?;
    Ok(())
}

pub fn default_pass(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("a password that is not empty");
    }
    config.defaults.password.clone_from(&setting.value);
    Ok(())
}

pub fn default_vhost(config: &mut Config, setting: &Setting) -> Checked {
    config.defaults.vhost = short_name(setting)?;
    Ok(())
}

pub fn default_user_tag(config: &mut Config, setting: &Setting) -> Checked {
    let tag = setting.key.name();
    let given = boolean(setting)?;
    config.defaults.tags.retain(|t| t != tag);
    if given {
        config.defaults.tags.push(tag.to_owned());
    }
    Ok(())
}

pub fn default_configure(config: &mut Config, setting: &Setting) -> Checked {
    config.defaults.configure.clone_from(&setting.value);
    Ok(())
}

pub fn default_write(config: &mut Config, setting: &Setting) -> Checked {
    config.defaults.write.clone_from(&setting.value);
    Ok(())
}

pub fn default_read(config: &mut Config, setting: &Setting) -> Checked {
    config.defaults.read.clone_from(&setting.value);
    Ok(())
}

/// Mechanisms are numbered; the numbers give their order, as in RabbitMQ.
pub fn auth_mechanism(config: &mut Config, setting: &Setting) -> Checked {
    let number = setting
        .key
        .name()
        .parse()
        .map_err(|_| "a number as the last part of the key")?;
    let mechanism = Mechanism::from_name(&setting.value).ok_or("PLAIN, AMQPLAIN, EXTERNAL, ANONYMOUS")?;
    config.auth_mechanisms.insert(number, mechanism);
    Ok(())
}

pub fn anonymous_user(config: &mut Config, setting: &Setting) -> Checked {
    config.anonymous_user = match setting.value.as_str() {
        "none" => None,
        _ => Some(short_name(setting)?),
    };
    Ok(())
}

pub fn anonymous_pass(config: &mut Config, setting: &Setting) -> Checked {
    config.anonymous_password.0.clone_from(&setting.value);
    Ok(())
}

pub fn intercept_timestamp(config: &mut Config, setting: &Setting) -> Checked {
    config.interceptors.timestamp = Some(boolean(setting)?);
    Ok(())
}

pub fn intercept_routing_node(config: &mut Config, setting: &Setting) -> Checked {
    config.interceptors.routing_node = Some(boolean(setting)?);
    Ok(())
}

pub fn event_vhost(config: &mut Config, setting: &Setting) -> Checked {
    config.event_vhost = match setting.value.as_str() {
        "none" => None,
        _ => Some(short_name(setting)?),
    };
    Ok(())
}

pub fn consumer_timeout(config: &mut Config, setting: &Setting) -> Checked {
    let ms = whole(&setting.value, 0, model::LONGEST_MS);
    config.consumer_timeout_ms = ms.ok_or("milliseconds, from 0 (no end) to 315360000000")?;
    Ok(())
}

pub fn default_queue_type(config: &mut Config, setting: &Setting) -> Checked {
    let named = setting.value.as_str();
    let kind = broker::QueueKind::from_any_name(named);
    // A queue must not be less than it was declared as.
    let kind = kind.filter(|_| !named.is_empty());
    config.queue_defaults.kind = kind.ok_or("classic, quorum or stream")?;
    Ok(())
}

pub fn relaxed_checks(config: &mut Config, setting: &Setting) -> Checked {
    config.queue_defaults.relaxed = boolean(setting)?;
    Ok(())
}

pub fn cluster_name(config: &mut Config, setting: &Setting) -> Checked {
    config.cluster_name = short_name(setting)?;
    Ok(())
}

pub fn memory_relative(config: &mut Config, setting: &Setting) -> Checked {
    let share = share(&setting.value, 0.0, 1.0).ok_or("a share of the memory, from 0.0 to 1.0")?;
    config.memory_watermark = Watermark::Relative(share);
    Ok(())
}

pub fn memory_absolute(config: &mut Config, setting: &Setting) -> Checked {
    config.memory_watermark = Watermark::Absolute(amount(setting)?);
    Ok(())
}

pub fn total_memory(config: &mut Config, setting: &Setting) -> Checked {
    config.total_memory = Some(amount(setting)?);
    Ok(())
}

pub fn disk_relative(config: &mut Config, setting: &Setting) -> Checked {
    let share = share(&setting.value, 0.0, 1_000.0).ok_or("a multiple of the memory, from 0.0 to 1000.0")?;
    config.disk_free_limit = Watermark::Relative(share);
    Ok(())
}

pub fn disk_absolute(config: &mut Config, setting: &Setting) -> Checked {
    config.disk_free_limit = Watermark::Absolute(amount(setting)?);
    Ok(())
}

fn amount(setting: &Setting) -> Checked<u64> {
    information_units(setting.value.trim_end())
        .ok_or("bytes, or a number with a unit: 500MB, 500MiB, 10GB, 2TiB")
}

pub fn log_console(config: &mut Config, setting: &Setting) -> Checked {
    config.log.console = boolean(setting)?;
    Ok(())
}

/// Under systemd the journal takes what the process writes to its own output; so the key does what `log.console` does,
/// and a node that logs nowhere else is not silent.
pub fn log_journald(config: &mut Config, setting: &Setting) -> Checked {
    if boolean(setting)? {
        config.log.console = true;
    }
    Ok(())
}

pub fn log_console_stdio(config: &mut Config, setting: &Setting) -> Checked {
    config.log.console_stream = match setting.value.as_str() {
        "stdout" => ConsoleStream::Stdout,
        "stderr" => ConsoleStream::Stderr,
        _ => return Err("stdout, stderr"),
    };
    Ok(())
}

pub fn log_console_level(config: &mut Config, setting: &Setting) -> Checked {
    config.log.console_level = level(setting)?;
    Ok(())
}

pub fn log_console_formatter(config: &mut Config, setting: &Setting) -> Checked {
    config.log.console_format = formatter(setting)?;
    Ok(())
}

pub fn log_exchange(config: &mut Config, setting: &Setting) -> Checked {
    config.log.exchange = boolean(setting)?;
    Ok(())
}

pub fn log_exchange_level(config: &mut Config, setting: &Setting) -> Checked {
    config.log.exchange_level = level(setting)?;
    Ok(())
}

pub fn log_exchange_formatter(config: &mut Config, setting: &Setting) -> Checked {
    config.log.exchange_format = formatter(setting)?;
    Ok(())
}

pub fn log_file(config: &mut Config, setting: &Setting) -> Checked {
    config.log.file = match setting.value.as_str() {
        "false" => None,
        "" => return Err("the name of a file, or false"),
        name => Some(name.into()),
    };
    Ok(())
}

pub fn log_file_level(config: &mut Config, setting: &Setting) -> Checked {
    config.log.file_level = level(setting)?;
    Ok(())
}

pub fn log_file_formatter(config: &mut Config, setting: &Setting) -> Checked {
    config.log.file_format = formatter(setting)?;
    Ok(())
}

pub fn rotation_date(config: &mut Config, setting: &Setting) -> Checked {
    config.log.rotation.date = match setting.value.as_str() {
        "" => None,
        text => Some(Moment::parse(text).ok_or(
            "$D and an hour (each day), $W, a day from 0 (Sunday), D and an hour (each week), $M, a date, D and an hour (each month)",
        )?),
    };
    Ok(())
}

pub fn rotation_size(config: &mut Config, setting: &Setting) -> Checked {
    let bytes = byte_size(&setting.value).ok_or("bytes, or a number with KB, MB or GB; 0 means no limit")?;
    config.log.rotation.size = (bytes > 0).then_some(bytes);
    Ok(())
}

pub fn rotation_count(config: &mut Config, setting: &Setting) -> Checked {
    config.log.rotation.count = number(setting, 0, 1_000).ok_or("a number from 0 to 1000")?;
    Ok(())
}

pub fn log_dir(config: &mut Config, setting: &Setting) -> Checked {
    if setting.value.is_empty() {
        return Err("the path of a directory");
    }
    config.log.dir = Some((&setting.value).into());
    Ok(())
}

pub fn log_category_level(config: &mut Config, setting: &Setting) -> Checked {
    let level = level(setting)?;
    // `log.CATEGORY.level`
    let category = setting.key.segments().get(1).ok_or("a level")?;
    config.log.categories.insert(category.clone(), level);
    Ok(())
}

pub fn level(setting: &Setting) -> Checked<Level> {
    Ok(match setting.value.as_str() {
        "debug" => Level::Debug,
        "info" => Level::Info,
        "notice" | "warning" => Level::Warning,
        "error" | "critical" | "alert" | "emergency" => Level::Error,
        "none" => Level::None,
        _ => return Err("debug, info, notice, warning, error, critical, alert, emergency, none"),
    })
}

pub fn formatter(setting: &Setting) -> Checked<LogFormat> {
    match setting.value.as_str() {
        "plaintext" | "text" => Ok(LogFormat::Text),
        "json" => Ok(LogFormat::Json),
        _ => Err("plaintext, json"),
    }
}

pub fn boolean(setting: &Setting) -> Checked<bool> {
    setting.value.parse().map_err(|_| "true, false")
}

pub fn only_none(setting: &Setting) -> Checked {
    if setting.value == "none" {
        Ok(())
    } else {
        Err("none")
    }
}

/// Names of users, vhosts and clusters travel in AMQP's short strings.
fn short_name(setting: &Setting) -> Checked<String> {
    if setting.value.is_empty() || setting.value.len() > 255 {
        return Err("a name of 1 to 255 bytes");
    }
    Ok(setting.value.clone())
}

pub fn number<T: TryFrom<u64>>(setting: &Setting, least: u64, most: u64) -> Option<T> {
    T::try_from(whole(&setting.value, least, most)?).ok()
}

pub fn bytes_between(setting: &Setting, least: u64, most: u64) -> Option<u32> {
    let bytes = byte_size(&setting.value).filter(|b| (least..=most).contains(b))?;
    u32::try_from(bytes).ok()
}

pub fn password_hashing(config: &mut Config, setting: &Setting) -> Checked {
    let known = PasswordHashing::from_name(&setting.value).filter(|known| !known.is_weak());
    config.password_hashing = known.ok_or(
        "rabbit_password_hashing_sha256, rabbit_password_hashing_sha512 or leveret_password_hashing_argon2id",
    )?;
    Ok(())
}
