//! `leveret server --check-config`: what a start with this configuration would say, without a start.

use super::endpoints::Endpoints;
use super::{EXIT_CONFIG, authority, cluster, configuration, definitions};
use crate::cli::ServerArgs;
use crate::config::{Config, Environment};
use std::process::ExitCode;

/// Prints every mistake and every warning, and exits with 78 if there is a mistake.
pub fn check(args: &ServerArgs) -> ExitCode {
    let (warnings, mistakes) = match configuration(args, Environment::of_process()) {
        Ok(loaded) => (loaded.warnings, files(&loaded.config)),
        Err(errors) => (Vec::new(), errors.iter().map(ToString::to_string).collect()),
    };
    for warning in &warnings {
        println!("warning: {warning}");
    }
    for mistake in &mistakes {
        println!("error: {mistake}");
    }
    if mistakes.is_empty() {
        println!("the configuration is good");
        ExitCode::SUCCESS
    } else {
        ExitCode::from(EXIT_CONFIG)
    }
}

/// What is wrong with the files that the configuration names.
fn files(config: &Config) -> Vec<String> {
    let mut mistakes = Vec::new();
    if let Err(error) = Endpoints::read(config) {
        mistakes.push(error.to_string());
    }
    if let Err(error) = authority(config) {
        mistakes.push(error.to_string());
    }
    if config.cluster.is_wanted(&config.node_name)
        && let Err(error) = cluster::secret(config)
    {
        mistakes.push(error.to_string());
    }
    mistakes.extend(definitions::readable(&config.definitions).err());
    mistakes
}
