//! From the command line to a running node, and back down.

mod banner;
mod check;
mod definitions;
mod service;
mod stop;

use crate::cli::ServerArgs;
use crate::config::error::Origin;
use crate::config::syntax::Key;
use crate::config::{self, Config, ConfigError, Listener, Loaded, Setting, advanced, sources};
use crate::{logs, memory};
use broker::Broker;
use gateway::Gateway;
use identity::oauth2::OAuth2;
use identity::{Backend, Cache, Chain, Directory, HttpService, Link, Servers};
use listener::{Door, Opened, StartError, Tls, TlsOptions};
use management::{Management, Metrics, MetricsOptions, WebClients, admin_socket};
use service::Service;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The exit code for a configuration that can't be used: `EX_CONFIG` of BSD's sysexits.
const EXIT_CONFIG: u8 = 78;

/// Runs the broker until it is told to stop. Mistakes in the configuration go to standard error, before there is a log.
pub fn server(args: &ServerArgs) -> ExitCode {
    if args.check_config {
        return check::check(args);
    }
    let Loaded {
        config,
        warnings,
        settings,
    } = match configuration(args, |name| std::env::var(name).ok()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for error in errors {
                eprintln!("leveret: {error}");
            }
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    let log = match logs::start(&config.log, &config.data_dir) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("leveret: {error}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    for warning in warnings {
        tracing::warn!(area = "config", "{warning}");
    }
    match run(&config, &settings, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(area = "boot", "{error}");
            if !config.log.console {
                eprintln!("leveret: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Opens the broker, then its doors; waits for a signal; closes the doors, then the broker.
fn run(config: &Config, settings: &[Setting], log: &logs::Log) -> Result<(), Box<dyn Error>> {
    // Before anything that takes time, so that a signal during recovery is not lost.
    let stop = stop::Signals::listen()?;
    let doors = doors(config)?;
    let authority = authority(config)?;
    let broker = Broker::open(broker_options(config))?;
    if let Some(authority) = authority {
        broker.trust(Arc::new(authority));
    }
    if !config.definitions.is_empty() {
        definitions::load(&broker, &config.definitions)?;
        // A file that names users is not joined by the default one.
        broker.create_defaults()?;
    }
    broker.make_cluster_id()?;
    broker.declare_event_exchange()?;
    log.publish(&broker)?;
    let gateway = Gateway::start(Arc::clone(&broker), gateway_options(config, doors.amqp))?;
    let metrics = open_metrics(config, &broker, doors.metrics)?;
    let scraped = metrics.as_ref().map(Metrics::doors).unwrap_or_default();
    let mut options = management_options(config, log, doors.http, [gateway.doors(), scraped]);
    if !config.auth_mechanisms.is_empty() {
        options.mechanisms = config.auth_mechanisms.values().map(|it| it.name()).collect();
    }
    options.settings = config::in_force(config, settings).into();
    let web_clients = config.management.web_socket.then(|| {
        let side_door = gateway.side_door();
        WebClients(Arc::new(move |guest| side_door.admit(guest)))
    });
    options.web_clients = web_clients;
    let management = open_management(config, &broker, options)?;
    banner::show(
        config,
        gateway.doors(),
        management.as_ref().map(Management::doors).unwrap_or_default(),
        scraped,
    );
    let service = Service::find();
    service.ready();
    let watched = Arc::clone(&broker);
    let pulse = service.pulse(move || !watched.status().log_failed)?;
    let signal = stop.wait(|| {
        log.reopen();
        doors.tls.iter().for_each(|tls| tls.reload());
    });
    drop(pulse);
    service.stopping();
    tracing::info!(area = "boot", "{signal}: stopping");
    drop(metrics);
    drop(management);
    gateway.stop();
    broker.close();
    tracing::info!(area = "boot", "stopped");
    Ok(())
}

/// The memory that limits are parts of, in bytes.
fn total_memory(config: &Config) -> u64 {
    config.total_memory.or_else(memory::available).unwrap_or(u64::MAX)
}

fn broker_options(config: &Config) -> broker::Options {
    let total = total_memory(config);
    let defaults = &config.defaults;
    broker::Options {
        create_defaults: config.definitions.is_empty(),
        limits: config.limits.clone(),
        default_user: defaults.user.clone(),
        default_password: defaults.password.clone(),
        default_vhost: defaults.vhost.clone(),
        default_tags: defaults.tags.clone(),
        default_permissions: [
            defaults.configure.clone(),
            defaults.write.clone(),
            defaults.read.clone(),
        ],
        loopback_users: config.loopback_users.clone(),
        memory_high_watermark: config.memory_watermark.bytes(total),
        disk_free_limit: config.disk_free_limit.bytes(total),
        consumer_timeout_ms: config.consumer_timeout_ms,
        cluster_name: config.cluster_name.clone(),
        node_name: format!("leveret@{}", host_name()),
        interceptors: config.interceptors.clone(),
        event_vhost: config.event_vhost.clone(),
        password_hashing: config.password_hashing,
        ..broker::Options::new(&config.data_dir)
    }
}

/// Who decides about logins, if not the catalog alone.
fn authority(config: &Config) -> Result<Option<Chain>, Box<dyn Error>> {
    let links = config.identity.links()?;
    if links.is_empty() {
        return Ok(None);
    }
    let backends = &config.identity.backends;
    let of = |link: &Link| [link.authenticates, link.authorizes];
    let named: Vec<Backend> = links.iter().flat_map(of).collect();
    let names = |backend| named.iter().any(|it| config.identity.asks(*it, backend));
    let mut servers = Servers::default();
    if names(Backend::OAuth2) {
        servers.oauth2 = Some(OAuth2::open(config.identity.oauth2.clone())?);
    }
    if names(Backend::Http) {
        let service = HttpService::open(backends.http.clone())?;
        if links
            .iter()
            .any(|link| config.identity.asks(link.authorizes, Backend::Http))
        {
            service.check_authorizes()?;
        }
        servers.http = Some(service);
    }
    if names(Backend::Ldap) {
        servers.ldap = Some(Directory::open(backends.ldap.directory()?)?);
    }
    if names(Backend::Cache) {
        servers.cache = Some(Cache::open(backends.cache)?);
    }
    Ok(Some(Chain::start(links, servers)?))
}

/// The doors of a node, and what secures them.
struct Doors {
    amqp: Vec<Door>,
    http: Vec<Door>,
    metrics: Vec<Door>,
    tls: Vec<Arc<Tls>>,
}

/// Finds out where to listen, and reads the certificates that are needed there.
fn doors(config: &Config) -> Result<Doors, StartError> {
    let any = every_address();
    let plain = config.listeners.values();
    let mut amqp: Vec<Door> = plain.map(|it| Door::plain(it.bind_address(any))).collect();
    let local = config.local_listeners.values();
    amqp.extend(local.map(|path| Door::local(path.clone(), config.local_mode)));
    let mut all = Vec::new();
    let mut load = |options: &TlsOptions| {
        let tls = Tls::load(options.clone()).map_err(StartError::Tls)?;
        all.push(Arc::clone(&tls));
        Ok::<_, StartError>(tls)
    };
    if !config.tls_listeners.is_empty() {
        let tls = load(&config.tls)?;
        let secured = config.tls_listeners.values();
        amqp.extend(secured.map(|it| Door::secured(it.bind_address(any), Arc::clone(&tls))));
    }
    if config.proxy_protocol {
        let proxies = Arc::new(config.proxies.clone());
        for door in &mut amqp {
            door.proxies = Some(Arc::clone(&proxies));
        }
    }
    let http = config.management.door.addresses(any);
    let http = named(http, &config.management.door.tls, &config.tls, &mut load)?;
    let metrics = config.prometheus.door.addresses(any);
    let metrics = named(metrics, &config.prometheus.door.tls, &config.tls, &mut load)?;
    Ok(Doors {
        amqp,
        http,
        metrics,
        tls: all,
    })
}

fn gateway_options(config: &Config, doors: Vec<Door>) -> gateway::Options {
    gateway::Options {
        sockets: config.tcp.clone(),
        certificate_login: config.certificate_login,
        heartbeat: config.heartbeat_s,
        anonymous: config
            .anonymous_user
            .as_ref()
            .map(|user| gateway::AnonymousLogin {
                user: user.clone(),
                password: config.anonymous_password.0.clone(),
            }),
        ..match config.auth_mechanisms.is_empty() {
            true => gateway::Options::new(doors),
            false => gateway::Options {
                mechanisms: config.auth_mechanisms.values().copied().collect(),
                ..gateway::Options::new(doors)
            },
        }
    }
}

/// This machine's name without its domain, as RabbitMQ's nodes are named by default.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim().split('.').next() {
        None | Some("") => "localhost".into(),
        Some(short) => short.into(),
    }
}

/// The doors of these addresses. As in RabbitMQ, the node's certificate does for those that have none of their own.
fn named(
    addresses: Vec<(SocketAddr, bool)>,
    own: &TlsOptions,
    node: &TlsOptions,
    load: &mut impl FnMut(&TlsOptions) -> Result<Arc<Tls>, StartError>,
) -> Result<Vec<Door>, StartError> {
    let door = |(address, secured)| {
        Ok(match secured {
            true => Door::secured(address, load(&own.or_of(node).map_err(StartError::Tls)?)?),
            false => Door::plain(address),
        })
    };
    addresses.into_iter().map(door).collect()
}

/// Opens the page for Prometheus. A node that was told nothing about it serves without it if another node of this machine has
/// its port.
fn open_metrics(
    config: &Config,
    broker: &Arc<Broker>,
    doors: Vec<Door>,
) -> Result<Option<Metrics>, StartError> {
    let settings = &config.prometheus;
    if !settings.door.enabled {
        return Ok(None);
    }
    let options = MetricsOptions {
        doors,
        path: settings.path.clone(),
        per_object: settings.per_object,
        object_limit: settings.object_limit,
        node: format!("leveret@{}", host_name()),
        rabbitmq_version: gateway::Options::new(Vec::new()).version,
    };
    match Metrics::start(Arc::clone(broker), options) {
        Ok(metrics) => Ok(Some(metrics)),
        Err(error) if settings.door.required || settings.door.tls_port.is_some() => Err(error),
        Err(error) => {
            tracing::warn!(area = "boot", "serving without metrics for Prometheus: {error}");
            Ok(None)
        }
    }
}

/// Opens the HTTP API. A node that was told nothing about it serves without its port if another node of this machine has that. The
/// admin socket is there in any case, unless the data directory has no room for it.
fn open_management(
    config: &Config,
    broker: &Arc<Broker>,
    mut options: management::Options,
) -> Result<Option<Management>, Box<dyn Error>> {
    loop {
        let error = match Management::start(Arc::clone(broker), options.clone()) {
            Ok(management) => return Ok(Some(management)),
            Err(error) => error,
        };
        match &error {
            StartError::Listen { .. } if !config.management.door.required => {
                tracing::warn!(area = "boot", "serving without the HTTP API: {error}");
                options.doors.clear();
            }
            StartError::Local { .. } => {
                tracing::warn!(area = "boot", "serving without local administration: {error}");
                options.admin_socket = None;
            }
            StartError::Listen { .. } => {
                let advice = "set management.tcp.port, or management.listener = none";
                return Err(format!("the HTTP API {error}; {advice}").into());
            }
            _ => return Err(error.into()),
        }
        if options.doors.is_empty() && options.admin_socket.is_none() {
            return Ok(None);
        }
    }
}

fn management_options(
    config: &Config,
    log: &logs::Log,
    doors: Vec<Door>,
    others: [&[Opened]; 2],
) -> management::Options {
    let settings = &config.management;
    let names = [["amqp", "amqp/ssl"], ["http/prometheus", "https/prometheus"]];
    let others = names.into_iter().zip(others);
    let named = |(names, doors): ([&'static str; 2], &[Opened])| {
        let doors = doors.iter();
        doors
            .map(|door| management::Listener::new(names, door))
            .collect::<Vec<_>>()
    };
    management::Options {
        body_limit: settings.body_limit,
        origins: settings.origins.clone(),
        path_prefix: settings.path_prefix.clone(),
        node: format!("leveret@{}", host_name()),
        rabbitmq_version: compatible_version(),
        listeners: others.flat_map(named).collect(),
        config_files: config.files.clone(),
        data_dir: std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone()),
        log_files: config.log.files(&config.data_dir),
        disable_stats: settings.disable_stats,
        enable_queue_totals: settings.enable_queue_totals,
        total_memory: total_memory(config),
        set_log_level: logs::set_level,
        log_tail: log.tail(),
        admin_socket: Some(admin_socket::path(&config.data_dir)),
        ..management::Options::new(doors)
    }
}

/// The version of RabbitMQ whose behaviour clients and tools may expect.
pub fn compatible_version() -> String {
    gateway::Options::new(Vec::new()).version
}

/// What "every address" is on this machine: `::`, which takes IPv4 clients too, or `0.0.0.0` where there is no IPv6.
fn every_address() -> IpAddr {
    let any: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    match TcpListener::bind(SocketAddr::new(any, 0)) {
        Ok(_) => any,
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Puts together what file, environment and command line say; the later one counts.
///
/// # Errors
/// What is wrong, each with its place.
pub fn configuration(
    args: &ServerArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Loaded, Vec<ConfigError>> {
    let one = |error| vec![error];
    let mut settings = Vec::new();
    let mut files = Vec::new();
    let mut warnings = Vec::new();
    let (usual, usual_more) = match args.as_rabbitmq {
        true => sources::files_of_rabbitmq(Path::new(sources::RABBITMQ_ETC)),
        false => (None, None),
    };
    let main = args
        .config
        .clone()
        .or_else(|| sources::file_of_environment(&variable))
        .or(usual);
    let more = sources::more_files_of_environment(&variable).or(usual_more);
    let named: Vec<_> = main.into_iter().chain(more).collect();
    let advanced = sources::advanced_file(args.advanced_config.as_deref(), &named, &variable);
    for path in named {
        for path in sources::files(&path).map_err(one)? {
            settings.extend(sources::file(&path).map_err(one)?);
            files.push(path);
        }
    }
    if let Some(path) = advanced {
        let mut advanced = advanced::file(&path).map_err(one)?;
        warnings.append(&mut advanced.warnings);
        advanced.put_behind(&mut settings);
        files.push(path);
    }
    settings.extend(sources::environment(&variable));
    for text in &args.set {
        settings.push(sources::command_line(text).map_err(one)?);
    }
    let mut loaded = config::load(settings)?;
    loaded.config.files = files;
    loaded.warnings.extend(warnings);
    override_from_options(&mut loaded, args).map_err(one)?;
    Ok(loaded)
}

/// Applies the options that have a name of their own on the command line.
fn override_from_options(loaded: &mut Loaded, args: &ServerArgs) -> Result<(), ConfigError> {
    let Loaded { config, settings, .. } = loaded;
    let mut note = |key: &str, value: String, option: &str| {
        let origin = Origin::CommandLine(option.to_owned());
        settings.extend(Key::parse(key).map(|key| Setting { key, value, origin }));
    };
    if let Some(dir) = &args.data_dir {
        config.data_dir.clone_from(dir);
        note("data_dir", dir.display().to_string(), "--data-dir");
    }
    if args.listen.is_empty() {
        return Ok(());
    }
    config.listeners.clear();
    for (i, text) in args.listen.iter().enumerate() {
        let listener = Listener::parse(text).ok_or_else(|| ConfigError::BadValue {
            origin: Origin::CommandLine("--listen".to_owned()),
            key: "the address".to_owned(),
            value: Some(text.clone()),
            allowed: "a port, or an IP address and a port, such as 127.0.0.1:5672",
        })?;
        config.listeners.insert((i + 1).to_string(), listener);
        note(&format!("listeners.tcp.{}", i + 1), text.clone(), "--listen");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(args: &ServerArgs, variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| (*value).to_owned())
        };
        match configuration(args, variable) {
            Ok(loaded) => Ok(loaded.config),
            Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn the_later_place_counts() {
        let args = ServerArgs {
            set: vec!["default_user=cli".to_owned()],
            ..ServerArgs::default()
        };
        let variables = [
            ("RABBITMQ_DEFAULT_USER", "env"),
            ("RABBITMQ_DEFAULT_VHOST", "env"),
        ];
        let config = loaded(&args, &variables).unwrap();
        assert_eq!(
            (config.defaults.user.as_str(), config.defaults.vhost.as_str()),
            ("cli", "env")
        );
        assert_eq!(config.defaults.password, "guest");
    }

    #[test]
    fn options_of_the_command_line_replace() {
        let args = ServerArgs {
            data_dir: Some("/d".into()),
            listen: vec!["127.0.0.1:0".to_owned(), "7000".to_owned()],
            set: vec!["listeners.tcp.default=1".to_owned()],
            ..ServerArgs::default()
        };
        let config = loaded(&args, &[("LEVERET_DATA_DIR", "/e")]).unwrap();
        assert_eq!(config.data_dir.to_str(), Some("/d"));
        let listeners: Vec<_> = config.listeners.values().copied().collect();
        assert_eq!(
            listeners,
            [
                Listener::Address("127.0.0.1:0".parse().unwrap()),
                Listener::AnyAddress(7000)
            ]
        );
    }

    #[test]
    fn mistakes_name_their_place() {
        let args = ServerArgs {
            listen: vec!["here".to_owned()],
            ..ServerArgs::default()
        };
        assert!(
            loaded(&args, &[]).unwrap_err()[0]
                .starts_with("command line, --listen: the address can't be \"here\"")
        );
        let args = ServerArgs {
            set: vec!["hearbeat=1".to_owned()],
            ..ServerArgs::default()
        };
        let errors = loaded(&args, &[]).unwrap_err();
        assert_eq!(
            errors,
            ["command line, -s hearbeat: unknown key hearbeat; did you mean heartbeat?"]
        );
        let errors = loaded(&ServerArgs::default(), &[("RABBITMQ_NODE_PORT", "x")]).unwrap_err();
        assert!(
            errors[0].starts_with("environment variable RABBITMQ_NODE_PORT: listeners.tcp.default"),
            "{errors:?}"
        );
    }
}
