//! A password from standard input, not shown while it is typed.

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use std::io::{self, IsTerminal, Write};

/// Asks for a password; nothing if the input ends.
pub fn password() -> Option<String> {
    let mut out = io::stdout();
    // Nobody may be reading; the password is read all the same.
    let _ = write!(out, "Password: ").and_then(|()| out.flush());
    let stdin = io::stdin();
    let shown = match stdin.is_terminal() {
        true => tcgetattr(&stdin).ok(),
        false => None,
    };
    if let Some(modes) = &shown {
        let mut hidden = modes.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        let _ = tcsetattr(&stdin, OptionalActions::Flush, &hidden);
    }
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    if let Some(modes) = &shown {
        let _ = tcsetattr(&stdin, OptionalActions::Flush, modes);
    }
    let _ = writeln!(out);
    match read {
        Ok(bytes) if bytes > 0 => Some(line.trim_end_matches(['\r', '\n']).to_owned()),
        _ => None,
    }
}
