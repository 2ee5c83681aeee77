//! Other programs, run with what they print in view.

use std::process::Command;

/// Runs a command with our own output streams.
///
/// # Errors
/// It can't be started, or it fails.
pub fn run_command(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = command
        .get_args()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let name = format!("{} {}", command.get_program().to_string_lossy(), words.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(e) => Err(format!("{name}: {e}")),
    }
}
