//! Channel interceptors, which plugins of RabbitMQ bring along. This broker's own (`message_interceptors`) have no order to be set.

use crate::ask::Ask;
use crate::command::{Command, Section::Configuration, Section::Monitoring};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::{Output, Rows};
use crate::tool::Tool;

pub const COMMANDS: &[Command] = &[
    Command::new(
        Monitoring,
        "list_channel_interceptors",
        (0, 0),
        "[--no-table-headers]",
        list,
    )
    .about("Lists channel interceptors of plugins; there are none")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Configuration,
        "set_channel_interceptor_priorities",
        (1, 64),
        "<interceptor> <priority> [<interceptor> <priority> ...]",
        set_priorities,
    )
    .about("Sets the order of channel interceptors; there are none"),
];

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing channel interceptors ...");
    super::this_node(ask)?;
    Ok(Output::Rows(Rows::default()))
}

fn set_priorities(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (mut shown, mut names) = (Vec::new(), Vec::new());
    for pair in ask.line.words.chunks(2) {
        let [name, priority] = pair else {
            let text = "Bad argument: Interceptors and priorities must be provided as <interceptor> <priority> pairs";
            return Err(Failure::argument(BAD_VALUE, text));
        };
        if priority.parse::<i64>().is_err() {
            let text = format!("Bad argument: Priority \"{priority}\" is not a valid integer");
            return Err(Failure::argument(BAD_VALUE, text));
        }
        shown.push(format!("{name}={priority}"));
        names.push(format!("<<\"{name}\">>"));
    }
    ask.say(format!(
        "Setting channel interceptor priorities to [{}] ...",
        shown.join(", ")
    ));
    super::this_node(ask)?;
    Err(Failure::error(
        UNAVAILABLE,
        format!(
            "cannot set channel interceptor priorities: the following are not registered as channel interceptors: [{}]",
            names.join(",")
        ),
    ))
}
