//! From the command line to a running node, and back down.

use crate::cli::ServerArgs;
use crate::config::error::Origin;
use crate::config::{self, Config, ConfigError, Listener, Loaded, sources};
use crate::logs;
use std::process::ExitCode;

/// Runs the broker until it is told to stop. What is wrong goes to standard error, before logging starts.
pub fn server(args: &ServerArgs) -> ExitCode {
    let loaded = match configuration(args, |name| std::env::var(name).ok()) {
        Ok(loaded) => loaded,
        Err(errors) => {
            for error in errors {
                eprintln!("leveret: {error}");
            }
            return ExitCode::from(EXIT_CONFIG);
        }
    };
    if let Err(error) = logs::start(&loaded.config.log, &loaded.config.data_dir) {
        eprintln!("leveret: {error}");
        return ExitCode::from(EXIT_CONFIG);
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    ExitCode::SUCCESS
}

/// The exit code for a configuration that can't be used: `EX_CONFIG` of BSD's sysexits.
const EXIT_CONFIG: u8 = 78;

/// Puts together what file, environment and command line say; the later one counts.
///
/// # Errors
/// Everything that is wrong, each with its place.
pub fn configuration(
    args: &ServerArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Loaded, Vec<ConfigError>> {
    let one = |error| vec![error];
    let mut settings = Vec::new();
    if let Some(path) = args
        .config
        .clone()
        .or_else(|| sources::file_of_environment(&variable))
    {
        settings.extend(sources::file(&path).map_err(one)?);
    }
    settings.extend(sources::environment(&variable));
    for text in &args.set {
        settings.push(sources::command_line(text).map_err(one)?);
    }
    let mut loaded = config::load(settings)?;
    override_from_options(&mut loaded.config, args).map_err(one)?;
    Ok(loaded)
}

/// Applies the options that have a name of their own on the command line.
fn override_from_options(config: &mut Config, args: &ServerArgs) -> Result<(), ConfigError> {
    if let Some(dir) = &args.data_dir {
        config.data_dir.clone_from(dir);
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
    }
    Ok(())
}
