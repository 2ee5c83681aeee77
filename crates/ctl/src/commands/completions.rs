//! Scripts by which shells complete commands, options and columns.

use super::{help, lists::columns_of, of_tool};
use crate::command::Command;
use crate::output::FORMS;
use crate::tool::{TOOLS, Tool};

/// The script for a shell.
pub fn script(shell: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash()),
        "zsh" => Some(format!(
            "#compdef leveret rabbitmqctl\nautoload -U +X bashcompinit && bashcompinit\n{}",
            bash()
        )),
        "fish" => Some(fish()),
        _ => None,
    }
}

/// The words that may follow a command: its options and its columns.
fn words(command: &Command) -> String {
    let options = help::options_of(command).map(|option| format!("--{option}"));
    let columns = columns_of(command.name).map(str::to_owned);
    options.chain(columns).collect::<Vec<_>>().join(" ")
}

fn names(tool: Tool) -> String {
    of_tool(tool)
        .map(|command| command.name)
        .collect::<Vec<_>>()
        .join(" ")
}

fn forms() -> String {
    FORMS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" ")
}

fn bash() -> String {
    let mut script = String::from(
        "_leveret_ctl() {\n  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= word= words=\n  \
         for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n    case $word in ctl|-*) ;; *) command=$word; break ;; esac\n  done\n",
    );
    script.push_str(&format!(
        "  if [ \"$before\" = --formatter ]; then words='{}'\n  else case $command in\n",
        forms()
    ));
    let mut seen: Vec<&str> = Vec::new();
    for command in of_tool(Tool::Leveret) {
        if !seen.contains(&command.name) {
            seen.push(command.name);
            script.push_str(&format!("    {}) words='{}' ;;\n", command.name, words(command)));
        }
    }
    script.push_str("    *) case $1 in\n");
    for tool in TOOLS {
        script.push_str(&format!("      *{tool}) words='{}' ;;\n", names(tool)));
    }
    script.push_str(&format!(
        "      *) words='ctl {}' ;;\n    esac ;;\n  esac; fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}}\n",
        names(Tool::Leveret)
    ));
    let tools: Vec<&str> = TOOLS.iter().map(|tool| tool.name()).collect();
    script.push_str(&format!("complete -F _leveret_ctl leveret {}", tools.join(" ")));
    script
}

fn fish() -> String {
    let mut lines = Vec::new();
    for (called, tool) in TOOLS
        .iter()
        .map(|tool| (tool.name(), *tool))
        .chain([("leveret", Tool::Leveret)])
    {
        let unchosen = format!("not __fish_seen_subcommand_from {}", names(tool));
        lines.push(format!(
            "complete -c {called} -f -l formatter -r -a '{}'",
            forms()
        ));
        for command in of_tool(tool) {
            lines.push(format!(
                "complete -c {called} -f -n '{unchosen}' -a {} -d \"{}\"",
                command.name,
                command.about.replace('"', "'")
            ));
            lines.push(format!(
                "complete -c {called} -f -n '__fish_seen_subcommand_from {}' -a '{}'",
                command.name,
                words(command)
            ));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_know_commands_and_columns() {
        for shell in ["bash", "zsh", "fish"] {
            let script = script(shell).unwrap();
            for word in [
                "list_queues",
                "--formatter",
                "messages_ready",
                "check_running",
                "rabbitmq-plugins",
            ] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
        assert_eq!(script("tcsh"), None);
    }
}
