//! `leveret server --repair`: what the data directory has lost, and how the node can go on without it.

use super::broker_options;
use crate::config::Config;
use std::process::ExitCode;

/// Prints what is lost; with `accept_loss`, makes the data directory whole without it. The exit code is 1 if something
/// is lost that nobody accepted.
pub fn repair(config: &Config, accept_loss: bool) -> ExitCode {
    let mut whole = false;
    let repaired = broker::repair(broker_options(config), |losses| {
        println!("{losses}");
        whole = losses.is_nothing();
        accept_loss
    });
    match repaired {
        Ok(Some(aside)) => {
            println!("repaired: what was there before is kept in {}", aside.display());
            println!("Start the node as usual.");
            ExitCode::SUCCESS
        }
        Ok(None) if whole => {
            println!("nothing is lost; start the node as usual");
            ExitCode::SUCCESS
        }
        Ok(None) => {
            println!(
                "Nothing was changed. If no copy of the data directory has what is lost, go on without it:"
            );
            println!("  leveret server --repair --accept-loss (and the options of this command)");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("leveret: {error}");
            ExitCode::FAILURE
        }
    }
}
