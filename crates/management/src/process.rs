//! `/api/leveret/process`: what the node's process was started with, and what it can.

use crate::access::Right;
use crate::call::Call;
use crate::others;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use listener::ciphers;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/process",
    verbs: &[("GET", Right::Administrator, show)],
}];

/// What stands for a value that may be a secret.
const MASKED: &str = "[masked]";

/// Variables with one of these words in their names may hold secrets.
const SECRETS: [&str; 7] = [
    "PASS",
    "SECRET",
    "COOKIE",
    "TOKEN",
    "KEY",
    "CREDENTIAL",
    "ERL_ARGS",
];

fn show(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let arguments = std::env::args_os().map(|word| without_value(word.to_string_lossy().into_owned()));
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.to_string_lossy().into_owned());
        variable(&name, value).map(|value| (name, Value::String(value)))
    });
    let suites = ciphers::suites().map(|(name, parts)| {
        json!({
            "name": name,
            "key_exchange": parts.key_exchange,
            "cipher": parts.cipher,
            "mac": parts.hash,
            "prf": if name.ends_with("SHA384") { "sha384" } else { "sha256" },
        })
    });
    Ok(Reply::json(&json!({
        "arguments": arguments.collect::<Vec<_>>(),
        "environment": Value::Object(variables.collect()),
        "cipher_suites": suites.collect::<Value>(),
    })))
}

/// What is shown of a variable, if it is one of the broker's.
fn variable(name: &str, value: String) -> Option<String> {
    let ours = name.starts_with("RABBITMQ_") || name.starts_with("LEVERET_");
    let hidden = SECRETS.iter().any(|word| name.contains(word));
    ours.then(|| if hidden { MASKED.to_owned() } else { value })
}

/// Values of settings on the command line may be secrets: `/api/leveret/config` tells those that are none.
fn without_value(word: String) -> String {
    match word.split_once('=') {
        Some((name, _)) if name == "--set" || !name.starts_with("--") => format!("{name}={MASKED}"),
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_on_the_command_line_keep_their_values_for_themselves() {
        let words = [
            "leveret",
            "server",
            "--set",
            "default_pass=x=y",
            "--set=a=b",
            "-sc=d",
            "--config=f",
        ];
        let shown = words.map(|word| without_value(word.to_owned()));
        let expected = [
            "leveret",
            "server",
            "--set",
            "default_pass=[masked]",
            "--set=[masked]",
            "-sc=[masked]",
            "--config=f",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_the_brokers_variables_are_shown_and_no_secrets() {
        let shown = |name| variable(name, "v".into());
        assert_eq!(shown("HOME"), None);
        assert_eq!(shown("RABBITMQ_NODENAME").as_deref(), Some("v"));
        assert_eq!(shown("RABBITMQ_DEFAULT_PASS").as_deref(), Some(MASKED));
    }
}
