//! What files, environment and command line say together; the later one counts.

use crate::cli::ServerArgs;
use crate::config::error::Origin;
use crate::config::syntax::Key;
use crate::config::{self, ConfigError, Environment, Listener, Loaded, Plugins, Setting, advanced, sources};
use std::path::{Path, PathBuf};

/// Puts together what is said.
///
/// # Errors
/// What is wrong, each with its place.
pub fn configuration(args: &ServerArgs, environment: Environment) -> Result<Loaded, Vec<ConfigError>> {
    let one = |error| vec![error];
    let mut environment = environment;
    let mut warnings = Vec::new();
    // The file of the environment may name the others.
    let usual = match args.as_rabbitmq {
        true => sources::files_of_rabbitmq(Path::new(sources::RABBITMQ_ETC)),
        false => (None, None),
    };
    let named = sources::configurations(args.config.as_deref(), &environment, usual.clone());
    match sources::environment_file(&with_etc(&named, args), &environment) {
        Some(path) if path.is_file() => environment.join_file(&path)?,
        Some(path) => warnings.push(sources::missing("RABBITMQ_CONF_ENV_FILE", &path)),
        None => {}
    }
    let named = sources::configurations(args.config.as_deref(), &environment, usual);
    let places = with_etc(&named, args);
    let advanced = sources::advanced_file(args.advanced_config.as_deref(), &places, &environment);
    let beside = sources::beside(&places, "enabled_plugins");
    let (plugins, warning) = Plugins::find(&environment, beside).map_err(one)?;
    warnings.extend(warning);
    let mut settings = Vec::new();
    let mut files = Vec::new();
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
    let mut said = environment.said()?;
    warnings.append(&mut said.warnings);
    warnings.append(&mut said.arguments.warnings);
    said.put_behind(&mut settings);
    for text in &args.set {
        settings.push(sources::command_line(text).map_err(one)?);
    }
    let mut loaded = config::load(settings)?;
    loaded.config.files = files;
    override_from_options(&mut loaded, args).map_err(one)?;
    loaded.config.node_name.find_host();
    loaded.config.name_by_pod(environment.get("MY_POD_NAME"));
    name_the_log(&mut loaded, &environment);
    loaded.warnings.extend(warnings);
    let config = &loaded.config;
    if let Some((key, what)) = config.cluster.contradiction(&config.node_name) {
        let is_it = |setting: &&Setting| setting.key.to_string() == key;
        let origin = loaded.settings.iter().find(is_it).map(|it| it.origin.clone());
        let origin = origin.unwrap_or(Origin::CommandLine(key.to_owned()));
        return Err(one(ConfigError::Query { origin, what }));
    }
    if let Some(listed) = plugins {
        let more = listed.apply(&mut loaded.config);
        loaded.warnings.extend(more);
    }
    Ok(loaded)
}

/// Where else files may stand that come with the configuration: in RabbitMQ's folder, for a node that stands in for RabbitMQ.
fn with_etc(named: &[PathBuf], args: &ServerArgs) -> Vec<PathBuf> {
    let etc = args.as_rabbitmq.then(|| PathBuf::from(sources::RABBITMQ_ETC));
    named.iter().cloned().chain(etc).collect()
}

/// RabbitMQ logs to a file that is called like the node unless it is told otherwise. Here that file is there if the
/// environment names its directory, or if the console is turned off: no node is without a log because nobody named a
/// file.
fn name_the_log(loaded: &mut Loaded, environment: &Environment) {
    let Loaded { config, settings, .. } = loaded;
    let is_said = settings.iter().any(|it| it.key.to_string() == "log.file");
    let has_directory = environment.get("RABBITMQ_LOG_BASE").is_some();
    let has_other = config.log.console || config.log.syslog.enabled;
    if is_said || (has_other && !has_directory) {
        return;
    }
    let value = format!("{}.log", config.node_name);
    config.log.file = Some(value.clone().into());
    let cause = |it: &&Setting| ["log.dir", "log.console"].contains(&it.key.to_string().as_str());
    let Some(origin) = settings.iter().find(cause).map(|it| it.origin.clone()) else {
        return;
    };
    settings.extend(Key::parse("log.file").map(|key| Setting { key, value, origin }));
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
    use crate::config::Config;

    fn all(args: &ServerArgs, variables: &[(&str, &str)]) -> Result<Loaded, Vec<String>> {
        let variables = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        let loaded = configuration(args, Environment::of(variables));
        loaded.map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn loaded(args: &ServerArgs, variables: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        all(args, variables).map(|loaded| loaded.config)
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
    fn no_node_is_without_a_log_because_nobody_named_a_file() {
        let file = |set: &[&str]| {
            let args = ServerArgs {
                set: set.iter().map(|it| (*it).to_owned()).collect(),
                ..ServerArgs::default()
            };
            let file = loaded(&args, &[("RABBITMQ_NODENAME", "hare@burrow")])
                .unwrap()
                .log
                .file;
            file.map(|path| path.display().to_string())
        };
        assert_eq!(file(&[]), None);
        assert_eq!(file(&["log.console=false"]).as_deref(), Some("hare@burrow.log"));
        assert_eq!(file(&["log.console=false", "log.file=false"]), None);
        assert_eq!(file(&["log.console=false", "log.syslog=true"]), None);
    }

    #[test]
    fn a_node_that_should_find_others_in_a_way_that_is_not_built_does_not_start_alone() {
        let args = |size: &str| ServerArgs {
            set: vec![
                "cluster_formation.peer_discovery_backend=etcd".to_owned(),
                format!("cluster_formation.target_cluster_size_hint={size}"),
            ],
            ..ServerArgs::default()
        };
        let errors = loaded(&args("3"), &[]).unwrap_err();
        assert!(
            errors[0]
                .contains("cluster_formation.peer_discovery_backend = etcd: this version can't ask there"),
            "{errors:?}"
        );
        loaded(&args("1"), &[]).unwrap();
    }

    #[test]
    fn a_pod_learns_by_its_environment_how_it_is_called() {
        let set = |size: &str| ServerArgs {
            set: vec![
                "cluster_formation.peer_discovery_backend=k8s".to_owned(),
                format!("cluster_formation.target_cluster_size_hint={size}"),
            ],
            ..ServerArgs::default()
        };
        let pod = [
            ("MY_POD_NAME", "mq-1"),
            ("K8S_SERVICE_NAME", "nodes"),
            ("K8S_HOSTNAME_SUFFIX", ".nodes.ns"),
            ("K8S_OF_SOMEBODY_ELSE", "x"),
        ];
        let all = all(&set("2"), &pod).unwrap();
        assert_eq!(all.config.node_name.to_string(), "rabbit@mq-1.nodes.ns");
        assert_eq!(all.warnings, [] as [&str; 0]);
        let errors = loaded(&set("1"), &pod).unwrap_err();
        assert!(
            errors[0].contains("another one with a lower number"),
            "{errors:?}"
        );
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
