//! `rabbitmqadmin`: the command line of RabbitMQ's management plugin, in the grammar of its first version, which containers and
//! scripts call (`rabbitmqadmin declare queue name=q durable=true`). It speaks HTTP to a port, as there, and never to
//! the admin socket.
//!
//! Reading order: `options` (the command line and the file `~/.rabbitmqadmin.conf`), `grammar` (what can be declared, deleted and
//! listed, and where the API has it), `acts` (the verbs), `shown` (the forms of lists).

mod acts;
mod grammar;
mod options;
mod shown;

use options::Options;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

const HELP: &str = "\
Usage
=====
  rabbitmqadmin [options] subcommand

Options
=======
  -c, --config=FILE      options from a file (~/.rabbitmqadmin.conf)
  -N, --node=NAME        the section of that file (default)
  -H, --host=HOST        the node's host (localhost)
  -P, --port=PORT        the port of its HTTP API (15672)
      --path-prefix=PATH what stands before /api
  -V, --vhost=VHOST      the virtual host (all for list, / for others)
  -u, --username=NAME    who asks (guest)
  -p, --password=WORD    with which password (guest)
  -U, --base-uri=URI     an address instead of host, port and path prefix
  -s, --ssl              asks with TLS
      --ssl-ca-cert-file=FILE  trusts these certificates instead of the system's
  -t, --request-timeout=SECONDS  gives up after so long (120)
  -q, --quiet            does not say what was done
  -f, --format=FORM      of lists: table, tsv, long, kvp, bash, raw_json or pretty_json
  -S, --sort=COLUMN      sorts lists; -R, --sort-reverse backwards
  -d, --depth=N          shows so many levels of nested objects (1)
      --version          the version of RabbitMQ that this stands in for

";

/// Runs a command line. Answers go to standard output, mistakes to standard error; the exit code is 0 or 1, as there.
pub fn main(version: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let given: Result<Vec<String>, OsString> = args.into_iter().map(OsString::into_string).collect();
    let outcome = match given {
        Ok(given) => run(version, &given),
        Err(word) => Err(format!("{} is no UTF-8", word.display())),
    };
    match outcome {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
            _ => ExitCode::SUCCESS,
        },
        Err(mistake) => {
            let _ = writeln!(io::stderr(), "*** {mistake}");
            ExitCode::FAILURE
        }
    }
}

/// The text for standard output.
fn run(version: &str, given: &[String]) -> Result<String, String> {
    let home = std::env::var("HOME").ok();
    let options = Options::read(given, home.as_deref())?;
    if options.has("version") {
        return Ok(format!("rabbitmqadmin {version}\n"));
    }
    if options.has("help") || options.words.first().is_some_and(|word| word == "help") {
        return Ok(help());
    }
    acts::act(&options)
}

fn help() -> String {
    let mut text = HELP.to_owned();
    text.push_str("Subcommands\n===========\n");
    for line in grammar::usage() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}
