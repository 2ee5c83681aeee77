//! From the command line to a running node, and back down.

mod banner;
mod check;
mod cluster;
mod configuration;
mod definitions;
mod endpoints;
mod pid_file;
mod repair;
mod service;
mod shared_definitions;
mod standby;
mod stop;

use crate::cli::ServerArgs;
use crate::config::{self, Config, Environment, Loaded, Setting};
use crate::{logs, memory};
use broker::Broker;
use configuration::configuration;
use endpoints::Endpoints;
use gateway::{Gateway, amqp, stream};
use identity::oauth2::OAuth2;
use identity::{Backend, Cache, Chain, Directory, HttpService, Link, Servers};
use listener::{Endpoint, StartError};
use management::{
    HTTP, Management, Members, Metrics, MetricsOptions, PROMETHEUS, StopApplication, WebClients, admin_socket,
};
use pid_file::PidFile;
use service::Service;
use standby::Next;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use stop::Ended;

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
    } = match configuration(args, Environment::of_process()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for error in errors {
                eprintln!("leveret: {error}");
            }
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    let log = match logs::start(&config.log, &config.data_dir, &config.node_name.host) {
        Ok(log) => log,
        Err(error) => {
            eprintln!("leveret: {error}");
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    for warning in warnings {
        tracing::warn!(area = "config", "{warning}");
    }
    if args.repair {
        return repair::repair(&config, args.accept_loss);
    }
    let ended = run(&config, &settings, &log);
    let code = match ended {
        Ok(Next::End) => ExitCode::SUCCESS,
        Ok(Next::Again) => {
            log.finish();
            standby::begin_anew()
        }
        Err(error) => {
            tracing::error!(area = "boot", "{error}");
            if !config.log.console {
                eprintln!("leveret: {error}");
            }
            ExitCode::FAILURE
        }
    };
    log.finish();
    code
}

/// Serves; if an operator stops the broker only, the process stays until it is to run again.
fn run(config: &Config, settings: &[Setting], log: &logs::Log) -> Result<Next, Box<dyn Error>> {
    match listener::descriptors::raise() {
        Ok((before, now)) if before < now => {
            tracing::info!(
                area = "boot",
                "the limit of file descriptors was raised from {before} to {now}"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(
            area = "boot",
            "the limit of file descriptors cannot be raised: {error}"
        ),
    }
    // Before anything that takes time, so that a signal during recovery is not lost.
    let stop = stop::Signals::listen()?;
    let service = Service::find();
    match serve(config, settings, log, &stop, &service)? {
        Ended::Stopped => {
            let _pulse = service.pulse(|| true)?;
            standby::hold(config, &stop, || log.reopen())
        }
        _ => Ok(Next::End),
    }
}

/// Opens the broker, then its listeners; waits for what ends that; closes the listeners, then the broker.
fn serve(
    config: &Config,
    settings: &[Setting],
    log: &logs::Log,
    stop: &stop::Signals,
    service: &Service,
) -> Result<Ended, Box<dyn Error>> {
    let endpoints = Endpoints::read(config)?;
    let authority = authority(config)?;
    let cluster = cluster::open(config, &endpoints, stop.goes_on())?;
    let broker = match &cluster {
        None => Broker::open(broker_options(config))?,
        Some(cluster) => {
            let opened = Broker::open_clustered(broker_options(config), cluster.clustered());
            opened.inspect_err(|_| cluster.stop())?
        }
    };
    // Behind the lock of the data directory: a node that can't have that must not take another one's file.
    let pid_file = config.pid_file.as_deref();
    let _pid_file = pid_file
        .map(|path| PidFile::write(path, config.keeps_pid_file))
        .transpose()?;
    if let Some(authority) = authority {
        broker.trust(Arc::new(authority));
    }
    if cluster.is_none() && !config.definitions.is_empty() {
        definitions::load(&broker, &config.definitions)?;
        // A file that names users is not joined by the default one.
        broker.create_defaults()?;
    }
    broker.make_cluster_id()?;
    broker.make_cluster_tags(&config.cluster.tags)?;
    let awaits_definitions = cluster.is_some() && !config.definitions.is_empty();
    if !awaits_definitions {
        broker.declare_event_exchange()?;
        log.publish(&broker)?;
    }
    broker.begin_cluster()?;
    let mut importing = None;
    if let Some(cluster) = &cluster {
        cluster.serve_queues(&broker);
        importing = shared_definitions::import(config, &broker, cluster)?;
    }
    if awaits_definitions {
        // The virtual hosts of these exchanges may be among them.
        log.publish(&broker)?;
    }
    let gateway = open_gateway(config, &broker, &endpoints)?;
    if let Some(cluster) = &cluster {
        cluster.links().work_with(gateway.acceptor());
    }
    let own = config.node_name.to_string();
    let members = cluster.as_ref().map(|cluster| cluster::members(cluster, &own));
    let metrics = open_metrics(config, &broker, endpoints.of(&[PROMETHEUS]), members.clone())?;
    let mut open = gateway.endpoints().to_vec();
    open.extend_from_slice(metrics.as_ref().map(Metrics::endpoints).unwrap_or_default());
    let mut options = management_options(config, log, endpoints.of(&[HTTP]), open.clone());
    options.members = members;
    options.settings = config::in_force(config, settings).into();
    options.web_clients = web_clients(config, &gateway);
    let caller = stop.caller();
    options.stop_application = Some(StopApplication(Arc::new(move || caller.call(Ended::Stopped))));
    let management = open_management(config, &broker, options)?;
    if let (Some(cluster), Some(management)) = (&cluster, &management) {
        cluster.answer_with(Arc::new(management.answerer()))?;
    }
    open.extend_from_slice(management.as_ref().map(Management::endpoints).unwrap_or_default());
    banner::show(config, &open);
    service.ready();
    let watched = Arc::clone(&broker);
    let pulse = service.pulse(move || !watched.status().log_failed)?;
    let ended = stop.wait(|| {
        log.reopen();
        endpoints.tls.iter().for_each(|tls| tls.reload());
    });
    drop(pulse);
    match ended {
        Ended::Signal(signal) => {
            service.stopping();
            tracing::info!(area = "boot", "{signal}: stopping");
        }
        _ => tracing::info!(area = "boot", "stop_app: stopping the broker"),
    }
    if let Some(cluster) = &cluster {
        cluster.links().work_apart();
    }
    drop(metrics);
    drop(management);
    gateway.stop();
    if let Some(cluster) = cluster {
        cluster.stop();
    }
    if let Some(importing) = importing {
        importing.end();
    }
    broker.close();
    tracing::info!(area = "boot", "stopped");
    Ok(ended)
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
        queue_defaults: config.queue_defaults,
        reconciliation: config.reconciliation,
        cluster_name: config.cluster_name.clone(),
        node_name: config.node_name.to_string(),
        interceptors: config.interceptors.clone(),
        event_vhost: config.event_vhost.clone(),
        password_hashing: config.password_hashing,
        node_limits: config.node_limits.clone(),
        // What is missing has ended the start before.
        credentials: config.credentials.validator().unwrap_or_default(),
        vhost_defaults: config.vhost_defaults.all(),
        takes_queues: config.cluster.takes_queues,
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
        servers.oauth2 = Some(OAuth2::open(&config.identity.oauth2)?);
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

/// Opens the listeners of clients that publish and consume. A node that was told nothing about streams serves without their
/// protocol if another node of this machine has its port.
fn open_gateway(config: &Config, broker: &Arc<Broker>, endpoints: &Endpoints) -> Result<Gateway, StartError> {
    let mut options = gateway_options(config, endpoints);
    loop {
        let error = match Gateway::start(Arc::clone(broker), options.clone()) {
            Ok(gateway) => return Ok(gateway),
            Err(error) => error,
        };
        let before = options.endpoints.len();
        let failed = match &error {
            StartError::Listen { address, .. } if !config.stream.required => *address,
            _ => return Err(error),
        };
        let is_it = |it: &Endpoint| it.protocol == stream::PROTOCOL && it.address.network() == Some(failed);
        options.endpoints.retain(|it| !is_it(it));
        if options.endpoints.len() == before {
            return Err(error);
        }
        tracing::warn!(area = "boot", "serving without the stream protocol: {error}");
    }
}

fn gateway_options(config: &Config, endpoints: &Endpoints) -> gateway::Options {
    gateway::Options {
        sockets: config.tcp.clone(),
        amqp: amqp_options(config),
        stream: stream_options(config),
        ..gateway::Options::new(endpoints.of(&gateway::PROTOCOLS))
    }
}

fn amqp_options(config: &Config) -> amqp::Options {
    let mut options = amqp::Options {
        certificate_login: config.certificate_login,
        heartbeat: config.heartbeat_s,
        anonymous: config.anonymous_user.as_ref().map(|user| amqp::AnonymousLogin {
            user: user.clone(),
            password: config.anonymous_password.0.clone(),
        }),
        ..amqp::Options::default()
    };
    if !config.auth_mechanisms.is_empty() {
        options.mechanisms = config.auth_mechanisms.values().copied().collect();
    }
    options
}

fn stream_options(config: &Config) -> stream::Options {
    let (amqp, said) = (amqp_options(config), &config.stream);
    let own = &config.node_name.host;
    let at = |(host, _): &(Option<String>, Option<u16>), secured| stream::Advertised {
        host: host.as_ref().unwrap_or(own).clone(),
        port: said.advertised_port(secured),
    };
    let (advertised, advertised_tls) = (at(&said.advertised, false), at(&said.advertised_tls, true));
    stream::Options {
        frame_max: said.frame_max,
        heartbeat_s: said.heartbeat_s,
        initial_credits: said.initial_credits,
        credits_required_for_unblocking: said.credits_required,
        mechanisms: amqp.mechanisms,
        anonymous: amqp.anonymous,
        certificate_login: amqp.certificate_login,
        product: amqp.product,
        version: amqp.version,
        advertised,
        advertised_tls,
        ..stream::Options::new("", 0, 0)
    }
}

/// What serves the clients of the HTTP API's WebSocket, if there is one.
fn web_clients(config: &Config, gateway: &Gateway) -> Option<WebClients> {
    let acceptor = gateway.acceptor();
    config.management.web_socket.then(|| WebClients {
        protocol: amqp::PROTOCOL,
        accept: Arc::new(move |client| acceptor.accept(client)),
    })
}

/// Opens the page for Prometheus. A node that was told nothing about it serves without it if another node of this machine has
/// its port.
fn open_metrics(
    config: &Config,
    broker: &Arc<Broker>,
    endpoints: Vec<Endpoint>,
    members: Option<Members>,
) -> Result<Option<Metrics>, StartError> {
    let settings = &config.prometheus;
    if !settings.listener.enabled {
        return Ok(None);
    }
    let options = MetricsOptions {
        endpoints,
        path: settings.path.clone(),
        per_object: settings.per_object,
        object_limit: settings.object_limit,
        node: config.node_name.to_string(),
        rabbitmq_version: compatible_version(),
        members,
    };
    match Metrics::start(Arc::clone(broker), options) {
        Ok(metrics) => Ok(Some(metrics)),
        Err(error) if settings.listener.required || settings.listener.tls_port.is_some() => Err(error),
        Err(error) => {
            tracing::warn!(area = "boot", "serving without metrics for Prometheus: {error}");
            Ok(None)
        }
    }
}

/// Opens the HTTP API. A node that was told nothing about it serves without its port if another node of this machine
/// has that. The admin socket is there in any case, unless the data directory has no room for it.
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
            StartError::Listen { .. } if !config.management.listener.required => {
                tracing::warn!(area = "boot", "serving without the HTTP API: {error}");
                options.endpoints.clear();
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
        if options.endpoints.is_empty() && options.admin_socket.is_none() {
            return Ok(None);
        }
    }
}

fn management_options(
    config: &Config,
    log: &logs::Log,
    endpoints: Vec<Endpoint>,
    listeners: Vec<Arc<Endpoint>>,
) -> management::Options {
    let settings = &config.management;
    management::Options {
        body_limit: settings.body_limit,
        origins: settings.origins.clone(),
        headers: settings
            .headers
            .iter()
            .map(|(name, value)| (*name, value.clone()))
            .collect(),
        path_prefix: settings.path_prefix.clone(),
        node: config.node_name.to_string(),
        plugins: config.plugins.as_ref().map(|listed| listed.names.clone()),
        target_cluster_size: config.cluster.formation.target_size(),
        spreads_after_return: config.rebalances_after_return,
        node_tags: config.cluster.node_tags.clone(),
        rabbitmq_version: compatible_version(),
        listeners,
        config_files: config.files.clone(),
        data_dir: std::path::absolute(&config.data_dir).unwrap_or_else(|_| config.data_dir.clone()),
        log_files: config.log.files(&config.data_dir),
        disable_basic_auth: settings.disable_basic_auth,
        sign_on: settings.sign_on.sign_on(&config.identity.oauth2),
        disable_stats: settings.disable_stats,
        enable_queue_totals: settings.enable_queue_totals,
        total_memory: total_memory(config),
        set_log_level: logs::set_level,
        log_tail: log.tail(),
        admin_socket: Some(admin_socket::path(&config.data_dir)),
        mechanisms: amqp_options(config)
            .mechanisms
            .iter()
            .map(|it| it.name())
            .collect(),
        ..management::Options::new(endpoints)
    }
}

/// The version of RabbitMQ whose behaviour clients and tools may expect.
pub fn compatible_version() -> String {
    amqp::Options::default().version
}
