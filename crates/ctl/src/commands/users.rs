//! Users of the internal database.

use super::access::check_user;
use super::{pick, text};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Users};
use crate::failure::{BAD_VALUE, Failure, SOFTWARE, UNAVAILABLE};
use crate::output::Output;
use crate::prompt;
use crate::tool::Tool;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// What passwords can be hashed with.
const ALGORITHMS: [&str; 3] = ["sha256", "sha512", "argon2id"];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Users,
        "add_user",
        (1, 2),
        "<username> [<password>] [<password_hash> --pre-hashed-password]",
        add,
    )
    .about("Creates a user, without permissions in any virtual host")
    .more(
        "Without a password on the command line, it is read from standard input, which keeps it out of the \
         shell's history.",
    )
    .options(&["pre-hashed-password"]),
    Command::new(
        Users,
        "authenticate_user",
        (1, 2),
        "<username> [<password>]",
        authenticate,
    )
    .about("Checks a user's password; fails if it is wrong"),
    Command::new(
        Users,
        "change_password",
        (1, 2),
        "<username> [<password>]",
        change_password,
    )
    .about("Changes a user's password"),
    Command::new(Users, "clear_password", (1, 1), "<username>", clear_password)
        .about("Clears a user's password; the user can no longer log in with a password"),
    Command::new(Users, "delete_user", (1, 1), "<username>", delete)
        .about("Deletes a user and its permissions and closes its connections"),
    Command::new(
        Users,
        "list_users",
        (0, 0),
        "[--no-table-headers] [--timeout <timeout>]",
        list,
    )
    .about("Lists users and their tags")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Users,
        "set_user_tags",
        (1, 64),
        "<username> <tag> [...]",
        set_tags,
    )
    .about(
        "Replaces a user's tags: administrator, monitoring, policymaker, management, impersonator or others",
    )
    .more("Without tags, all of the user's tags are removed."),
    Command::new(
        Users,
        "hash_password",
        (0, 1),
        "[<cleartext_password>] [--hashing-algorithm <sha256 | sha512 | argon2id>]",
        hash,
    )
    .about("Hashes a password, with a new salt, for use in definitions")
    .options(&["hashing-algorithm="]),
];

/// Where a user is.
fn path(user: &str) -> String {
    format!("/users/{}", encode(user))
}

/// The user, as the API shows it.
fn known(ask: &Ask<'_>) -> Result<Value, Failure> {
    let user = ask.word(0);
    ask.find(&path(user))?.ok_or_else(|| Failure::no_user(user))
}

/// The password of the command line, or of standard input.
fn password(ask: &Ask<'_>, at: usize) -> Result<String, Failure> {
    match ask.line.words.get(at) {
        Some(word) => Ok(word.clone()),
        None => prompt::password()
            .ok_or_else(|| Failure::error(BAD_VALUE, "Password is not provided via argument or stdin")),
    }
}

fn add(ask: &Ask<'_>) -> Result<Output, Failure> {
    let user = ask.word(0);
    if user.is_empty() {
        return Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: user cannot be an empty string",
        ));
    }
    let hashed = ask.line.has("pre-hashed-password");
    if hashed && STANDARD.decode(ask.word(1)).is_err() {
        let text = "Bad argument: Could not Base64 decode provided password hash value";
        return Err(Failure::argument(BAD_VALUE, text));
    }
    ask.say(format!("Adding user \"{user}\" ..."));
    let password = password(ask, 1)?;
    let body = match hashed {
        true => json!({"password_hash": password, "tags": ""}),
        false => json!({"password": password, "tags": ""}),
    };
    if ask.find(&path(user))?.is_some() {
        return Err(Failure::error(
            SOFTWARE,
            format!("User \"{user}\" already exists"),
        ));
    }
    ask.put(&path(user), &body)?;
    Ok(Output::text(
        "Done. Don't forget to grant the user permissions to some virtual hosts! See 'rabbitmqctl help set_permissions' to learn more.",
    ))
}

fn authenticate(ask: &Ask<'_>) -> Result<Output, Failure> {
    let user = ask.word(0);
    ask.say(format!("Authenticating user \"{user}\" ..."));
    let password = password(ask, 1)?;
    let answer = ask.call_as("GET", "/whoami", None, Some((user, &password)), None)?;
    let json: Value = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    // The API spells a wrong password with a z, and a user who has no tag for it with an s.
    if answer.status == 401 && text(&json, "error") != "not_authorised" {
        let text =
            format!("Error: failed to authenticate user \"{user}\"\nuser '{user}' - invalid credentials");
        return Err(Failure::error(BAD_VALUE, text));
    }
    Ok(Output::text("Success"))
}

fn change_password(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Changing password for user \"{}\" ...", ask.word(0)));
    let password = password(ask, 1)?;
    let user = known(ask)?;
    ask.put(
        &path(ask.word(0)),
        &json!({"password": password, "tags": user["tags"]}),
    )?;
    Ok(Output::Done)
}

fn clear_password(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Clearing password for user \"{}\" ...", ask.word(0)));
    check_user(ask, ask.word(0))?;
    let user = known(ask)?;
    ask.put(
        &path(ask.word(0)),
        &json!({"password_hash": "", "tags": user["tags"]}),
    )?;
    Ok(Output::Done)
}

fn delete(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Deleting user \"{}\" ...", ask.word(0)));
    // One that is not there is no failure to RabbitMQ either.
    ask.delete(&path(ask.word(0)))?;
    Ok(Output::Done)
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing users ...");
    let users = ask.get("/users?columns=name,tags")?;
    Ok(Output::Rows(pick(&[("user", "name"), ("tags", "tags")], &users)))
}

fn set_tags(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, tags) = (ask.word(0), &ask.line.words[1..]);
    ask.say(format!(
        "Setting tags for user \"{user}\" to [{}] ...",
        tags.join(", ")
    ));
    let mut body = known(ask)?;
    // The hash stays as it is. The API takes tags as text from every version.
    if let Some(members) = body.as_object_mut() {
        members.retain(|name, _| ["password_hash", "hashing_algorithm"].contains(&name.as_str()));
        members.insert("tags".into(), tags.join(",").into());
    }
    ask.put(&path(user), &body)?;
    Ok(Output::Done)
}

fn hash(ask: &Ask<'_>) -> Result<Output, Failure> {
    let query = match ask.line.value("hashing-algorithm") {
        None => String::new(),
        Some(name) if ALGORITHMS.contains(&name) => format!("?algorithm={name}"),
        Some(name) => {
            let text = format!("Bad argument: unsupported hashing algorithm: {name}");
            return Err(Failure::argument(BAD_VALUE, text));
        }
    };
    // The password itself does not belong on the screen, though RabbitMQ shows it.
    ask.say("Will hash provided password");
    let password = password(ask, 0).map_err(|_| Failure::error(UNAVAILABLE, "not_enough_args"))?;
    if password.is_empty() {
        return Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: password cannot be an empty string",
        ));
    }
    let hashed = ask.get(&format!("/auth/hash_password/{}{query}", encode(&password)))?;
    match hashed.get("ok").and_then(Value::as_str) {
        Some(hash) => Ok(Output::text(hash)),
        None => Err(Failure::error(UNAVAILABLE, "the node gives no hash")),
    }
}
