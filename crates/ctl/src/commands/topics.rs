//! Which routing keys users may use with topic exchanges.

use super::access::{check_both, check_user};
use super::pick;
use crate::ask::{Ask, encode, no_vhost};
use crate::command::{Command, Section::Access};
use crate::failure::Failure;
use crate::output::Output;
use crate::tool::Tool;
use serde_json::json;

pub const COMMANDS: &[Command] = &[
    Command::new(
        Access,
        "set_topic_permissions",
        (4, 4),
        "[--vhost <vhost>] <username> <exchange> <write> <read>",
        set,
    )
    .about("Sets a user's topic permissions: routing keys for publishing and binding on a topic exchange"),
    Command::new(
        Access,
        "clear_topic_permissions",
        (1, 2),
        "[--vhost <vhost>] <username> [<exchange>]",
        clear,
    )
    .about("Clears a user's topic permissions for one exchange or for the whole virtual host"),
    Command::new(
        Access,
        "list_topic_permissions",
        (0, 0),
        "[--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        list,
    )
    .about("Lists topic permissions in a virtual host")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Access,
        "list_user_topic_permissions",
        (1, 1),
        "[--no-table-headers] <username>",
        list_of_user,
    )
    .about("Lists a user's topic permissions")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
];

/// The columns of a topic permission.
const GRANTS: [(&str, &str); 3] = [("exchange", "exchange"), ("write", "write"), ("read", "read")];

fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, exchange, vhost) = (ask.word(0), ask.word(1), ask.vhost());
    ask.say(format!(
        "Setting topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ..."
    ));
    check_both(ask, user)?;
    ask.put(
        &format!("/topic-permissions/{}/{}", encode(vhost), encode(user)),
        &json!({"exchange": exchange, "write": ask.word(2), "read": ask.word(3)}),
    )?;
    Ok(Output::Done)
}

fn clear(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, exchange, vhost) = (ask.word(0), ask.word(1), ask.vhost());
    let path = format!("/topic-permissions/{}/{}", encode(vhost), encode(user));
    if ask.line.words.len() == 1 {
        ask.say(format!(
            "Clearing topic permissions for user \"{user}\" in vhost \"{vhost}\" ..."
        ));
        ask.delete(&path)?;
    } else {
        ask.say(format!(
            "Clearing topic permissions on \"{exchange}\" for user \"{user}\" in vhost \"{vhost}\" ..."
        ));
        ask.delete(&format!("{path}/{}", encode(exchange)))?;
    }
    Ok(Output::Done)
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let vhost = ask.vhost();
    ask.say(format!("Listing topic permissions for vhost \"{vhost}\" ..."));
    let found = ask.find(&format!("/vhosts/{}/topic-permissions", encode(vhost)))?;
    let found = found.ok_or_else(|| no_vhost(vhost))?;
    let columns = [&[("user", "user")], &GRANTS[..]].concat();
    Ok(Output::Rows(pick(&columns, &found)))
}

fn list_of_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    let user = ask.word(0);
    ask.say(format!("Listing topic permissions for user \"{user}\" ..."));
    check_user(ask, user)?;
    let found = ask.get(&format!("/users/{}/topic-permissions", encode(user)))?;
    let columns = [&[("vhost", "vhost")], &GRANTS[..]].concat();
    Ok(Output::Rows(pick(&columns, &found)))
}
