//! Values of configurations that a passphrase guards: `encode`, `decode`, and the same for `rabbitmq.conf`. No node is asked.

use crate::ask::Ask;
use crate::command::{Command, Run, Section};
use crate::encoded::{CIPHERS, HASHES, Scheme, Secret};
use crate::failure::{BAD_VALUE, Failure, USAGE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::json;

/// A command that takes a value, a passphrase and the choice of algorithms.
const fn guarded(name: &'static str, about: &'static str, run: Run) -> Command {
    Command::new(Section::Configuration, name, (0, 64), "<value> <passphrase>", run)
        .about(about)
        .options(&["cipher=", "hash=", "iterations=#"])
}

/// A command that lists algorithms.
const fn list(name: &'static str, about: &'static str, run: Run) -> Command {
    Command::new(Section::Configuration, name, (0, 64), "", run)
        .about(about)
        .of(&[Tool::Ctl, Tool::Diagnostics])
}

pub const COMMANDS: &[Command] = &[
    guarded("encode", "Encrypts a value of advanced.config", encode),
    guarded("decode", "Decrypts a value of advanced.config", decode),
    guarded("encrypt_conf_value", "Encrypts a value of rabbitmq.conf", encrypt),
    guarded("decrypt_conf_value", "Decrypts a value of rabbitmq.conf", decrypt),
    list("list_ciphers", "Lists the ciphers that encode can use", ciphers),
    list(
        "list_hashes",
        "Lists the hash functions that encode can use",
        hashes,
    ),
];

/// RabbitMQ's words.
const WRONG: &str = "Failed to decrypt the value. Things to check: is the passphrase correct? Are the cipher and hash algorithms the same as those used for encryption?";

fn encode(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (value, passphrase) = words(ask)?;
    ask.say("Encrypting value to be used in advanced.config...");
    let encoded = encoded(ask, &term(value), passphrase)?;
    let text = format!("{{encrypted,<<\"{encoded}\">>}}");
    Ok(Output::Told(text, json!(encoded)))
}

fn encrypt(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (value, passphrase) = words(ask)?;
    ask.say("Encrypting value to be used in rabbitmq.conf...");
    let encoded = encoded(ask, &Secret::Binary(value.as_bytes().to_vec()), passphrase)?;
    let text = format!("encrypted:{encoded}");
    Ok(Output::Told(text.clone(), json!(text)))
}

fn decode(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (value, passphrase) = words(ask)?;
    ask.say("Decrypting an advanced.config (Erlang term) value...");
    let value = value.trim().trim_end_matches('.');
    let inner = value.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let inner = inner.and_then(|it| {
        it.trim()
            .strip_prefix("encrypted")?
            .trim_start()
            .strip_prefix(',')
    });
    let text = inner.unwrap_or(value).trim();
    let text = text
        .trim_start_matches("<<")
        .trim_end_matches(">>")
        .trim_matches('"');
    let secret = scheme(ask)?.decode(text, passphrase.as_bytes());
    let secret = secret.ok_or_else(|| Failure::error(BAD_VALUE, WRONG))?;
    let text = String::from_utf8_lossy(secret.bytes()).into_owned();
    let shown = match secret {
        Secret::List(_) => format!("{text:?}"),
        Secret::Binary(_) => format!("<<{text:?}>>"),
        Secret::Atom(_) => text.clone(),
    };
    Ok(Output::Told(shown, json!(text)))
}

fn decrypt(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (value, passphrase) = words(ask)?;
    ask.say("Decrypting a rabbitmq.conf string value...");
    let text = value.strip_prefix("encrypted:").unwrap_or(value);
    let secret = scheme(ask)?.decode(text, passphrase.as_bytes());
    let secret = secret.ok_or_else(|| Failure::error(BAD_VALUE, WRONG))?;
    let text = String::from_utf8_lossy(secret.bytes()).into_owned();
    Ok(Output::Told(text.clone(), json!(text)))
}

fn ciphers(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing supported ciphers ...");
    Ok(Output::Told(format!("[{}]", CIPHERS.join(",")), json!(CIPHERS)))
}

fn hashes(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing supported hash algorithms ...");
    Ok(Output::Told(format!("[{}]", HASHES.join(",")), json!(HASHES)))
}

fn words<'a>(ask: &Ask<'a>) -> Result<(&'a str, &'a str), Failure> {
    match (ask.word(0), ask.word(1)) {
        ("", _) | (_, "") => Err(Failure::plain(
            USAGE,
            "Error: a value and a passphrase are needed",
        )),
        words => Ok(words),
    }
}

fn scheme(ask: &Ask<'_>) -> Result<Scheme, Failure> {
    let default = Scheme::default();
    let named = |option: &str, known: &[&str], otherwise: String| match ask.line.value(option) {
        None => Ok(otherwise),
        Some(name) if known.contains(&name) => Ok(name.to_owned()),
        Some(name) => Err(Failure::argument(
            BAD_VALUE,
            format!(
                "Bad argument: the {option} {name} is not known; {} are",
                known.join(", ")
            ),
        )),
    };
    let iterations = match ask.line.value("iterations") {
        None => default.iterations,
        Some(text) => text.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
            Failure::argument(
                BAD_VALUE,
                "Bad argument: the number of iterations is a positive number",
            )
        })?,
    };
    Ok(Scheme {
        cipher: named("cipher", &CIPHERS, default.cipher)?,
        hash: named("hash", &HASHES, default.hash)?,
        iterations,
    })
}

fn encoded(ask: &Ask<'_>, secret: &Secret, passphrase: &str) -> Result<String, Failure> {
    let encoded = scheme(ask)?.encode(secret, passphrase.as_bytes());
    encoded.ok_or_else(|| Failure::argument(BAD_VALUE, "Bad argument: the value is too long"))
}

/// A value as Erlang has it: `"text"`, `<<"text">>`, or an atom.
fn term(value: &str) -> Secret {
    let quoted = |text: &str| Some(text.strip_prefix('"')?.strip_suffix('"')?.as_bytes().to_vec());
    let binary = value.strip_prefix("<<").and_then(|it| it.strip_suffix(">>"));
    if let Some(text) = binary.and_then(quoted) {
        return Secret::Binary(text);
    }
    match quoted(value) {
        Some(text) => Secret::List(text),
        None => Secret::Atom(value.as_bytes().to_vec()),
    }
}
