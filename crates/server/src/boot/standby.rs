//! A process whose broker is stopped (`stop_app`): it answers on its admin socket until the broker is to run again,
//! which begins with a new image of the process, so that nothing of the old broker is left; or until the process is to
//! end.

use super::cluster;
use super::pid_file::PidFile;
use super::stop::{Ended, Signals};
use crate::config::Config;
use management::{Order, Standby, admin_socket};
use std::error::Error;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;

/// What comes after a run of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The process ends.
    End,
    /// The broker runs again.
    Again,
}

/// Waits until the broker is to run again, or the process to end.
///
/// # Errors
/// Nobody could be answered, as the admin socket can't be made; or the file with the number of the process can't be written.
pub fn hold(config: &Config, signals: &Signals, again: impl Fn()) -> Result<Next, Box<dyn Error>> {
    // The process is there all the while, as scripts see by this file.
    let pid_file = config.pid_file.as_deref();
    let pid_file = pid_file
        .map(|path| PidFile::write(path, config.keeps_pid_file))
        .transpose()?;
    let caller = signals.caller();
    let of_this = config.clone();
    let goes_on = Arc::new(signals.goes_on());
    let carry = move |order| match order {
        Order::Start => {
            caller.call(Ended::Started);
            Ok(())
        }
        Order::Reset { force } => {
            if !force {
                let goes_on = goes_on.clone();
                cluster::leave(&of_this, move || goes_on())?;
            }
            tracing::warn!(area = "boot", "reset: everything durable is deleted");
            broker::erase(&of_this.data_dir).map_err(|error| error.to_string())
        }
        Order::Join(whom) => cluster::join(&of_this, &whom),
    };
    let socket = admin_socket::path(&config.data_dir);
    let _standby = Standby::start(&socket, &config.node_name.to_string(), Arc::new(carry))?;
    tracing::info!(
        area = "boot",
        "the broker is stopped; rabbitmqctl start_app starts it again"
    );
    loop {
        match signals.wait(&again) {
            Ended::Signal(signal) => {
                tracing::info!(area = "boot", "{signal}: stopping");
                return Ok(Next::End);
            }
            Ended::Started => {
                if let Some(file) = pid_file {
                    file.leave();
                }
                return Ok(Next::Again);
            }
            Ended::Stopped => {}
        }
    }
}

/// Begins anew with the same command line, in the same process. Comes back only if that fails.
pub fn begin_anew() -> ExitCode {
    let mut line = std::env::args_os();
    let name = line.next().unwrap_or_default();
    let program = std::env::current_exe().unwrap_or_else(|_| (&name).into());
    let error = Command::new(program).arg0(name).args(line).exec();
    tracing::error!(area = "boot", "the broker can't be started again: {error}");
    ExitCode::FAILURE
}
