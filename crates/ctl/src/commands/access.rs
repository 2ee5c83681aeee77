//! What users may do in virtual hosts.

use super::pick;
use crate::ask::{Ask, encode, no_vhost};
use crate::command::{Command, Section::Access};
use crate::failure::{Failure, NO_USER, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};

pub const COMMANDS: &[Command] = &[
    Command::new(
        Access,
        "set_permissions",
        (4, 4),
        "[--vhost <vhost>] <username> <conf> <write> <read>",
        set,
    )
    .about("Sets a user's permissions in a virtual host")
    .more(
        "Each of the three is a regular expression for names of queues and exchanges: configure (declare and \
             delete), write (publish to), read (consume from). An empty expression permits nothing.\n\n    \
             set_permissions -p shop jane '^orders' '.*' '.*'",
    ),
    Command::new(
        Access,
        "set_permissions_globally",
        (4, 4),
        "<username> <conf> <write> <read>",
        set_globally,
    )
    .about("Sets a user's permissions in all existing virtual hosts"),
    Command::new(
        Access,
        "clear_permissions",
        (1, 1),
        "[--vhost <vhost>] <username>",
        clear,
    )
    .about("Clears a user's permissions in a virtual host"),
    Command::new(
        Access,
        "list_permissions",
        (0, 0),
        "[--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        list,
    )
    .about("Lists the permissions of all users in a virtual host")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Access,
        "list_user_permissions",
        (1, 1),
        "[--no-table-headers] <username>",
        list_of_user,
    )
    .about("Lists a user's permissions in all virtual hosts")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
];

/// The columns of a permission.
const GRANTS: [(&str, &str); 3] = [("configure", "configure"), ("write", "write"), ("read", "read")];

fn body(ask: &Ask<'_>) -> Value {
    json!({"configure": ask.word(1), "write": ask.word(2), "read": ask.word(3)})
}

/// The failure of a change to what a user may do where there is no such user or virtual host.
pub fn check_both(ask: &Ask<'_>, user: &str) -> Result<(), Failure> {
    let vhost = ask.vhost();
    if ask
        .vhost_exists()
        .is_err_and(|failure| failure == no_vhost(vhost))
    {
        return Err(Failure::error(
            UNAVAILABLE,
            format!("Virtual host {vhost} does not exist"),
        ));
    }
    match ask.find(&format!("/users/{}", encode(user)))? {
        Some(_) => Ok(()),
        None => Err(Failure::error(NO_USER, format!("User {user} does not exist"))),
    }
}

/// The failure of a question about a user who is not there.
pub fn check_user(ask: &Ask<'_>, user: &str) -> Result<(), Failure> {
    match ask.find(&format!("/users/{}", encode(user)))? {
        Some(_) => Ok(()),
        None => Err(Failure::error(
            UNAVAILABLE,
            format!("{{:no_such_user, {user:?}}}"),
        )),
    }
}

fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, vhost) = (ask.word(0), ask.vhost());
    ask.say(format!(
        "Setting permissions for user \"{user}\" in vhost \"{vhost}\" ..."
    ));
    check_both(ask, user)?;
    ask.put(
        &format!("/permissions/{}/{}", encode(vhost), encode(user)),
        &body(ask),
    )?;
    Ok(Output::Done)
}

fn set_globally(ask: &Ask<'_>) -> Result<Output, Failure> {
    let user = ask.word(0);
    ask.say(format!(
        "Setting permissions for user \"{user}\" in all virtual hosts ..."
    ));
    check_both(ask, user)?;
    let vhosts = ask.get("/vhosts?columns=name")?;
    for vhost in vhosts.as_array().into_iter().flatten() {
        let vhost = super::text(vhost, "name");
        ask.put(
            &format!("/permissions/{}/{}", encode(vhost), encode(user)),
            &body(ask),
        )?;
    }
    Ok(Output::Done)
}

fn clear(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, vhost) = (ask.word(0), ask.vhost());
    ask.say(format!(
        "Clearing permissions for user \"{user}\" in vhost \"{vhost}\" ..."
    ));
    ask.delete(&format!("/permissions/{}/{}", encode(vhost), encode(user)))?;
    Ok(Output::Done)
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let vhost = ask.vhost();
    ask.say(format!("Listing permissions for vhost \"{vhost}\" ..."));
    let found = ask.find(&format!("/vhosts/{}/permissions", encode(vhost)))?;
    let found = found.ok_or_else(|| no_vhost(vhost))?;
    let columns = [&[("user", "user")], &GRANTS[..]].concat();
    Ok(Output::Rows(pick(&columns, &found)))
}

fn list_of_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    let user = ask.word(0);
    ask.say(format!("Listing permissions for user \"{user}\" ..."));
    check_user(ask, user)?;
    let found = ask.get(&format!("/users/{}/permissions", encode(user)))?;
    let columns = [&[("vhost", "vhost")], &GRANTS[..]].concat();
    Ok(Output::Rows(pick(&columns, &found)))
}
