//! `RABBITMQ_LOGS` and `RABBITMQ_LOG`: where the log goes, and how much of it.

/// `-`, `-stderr`, `exchange:`, `syslog:`, or the path of a file.
pub fn target(value: &str, mut set: impl FnMut(&str, &str)) {
    match value {
        "-" | "-stderr" => {
            set("log.console", "true");
            set(
                "log.console.stdio",
                if value == "-" { "stdout" } else { "stderr" },
            );
            set("log.file", "false");
        }
        _ if value.starts_with("exchange:") => set("log.exchange", "true"),
        _ if value.starts_with("syslog:") => set("log.syslog", "true"),
        path => set("log.file", path),
    }
}

const CATEGORIES: [&str; 5] = ["default", "connection", "channel", "queue", "user"];
const LEVELS: [&str; 9] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
    "none",
];

/// Words such as `debug`, `connection=error` and `+json`, separated by commas. Returns those that mean nothing here.
pub fn levels(value: &str, mut set: impl FnMut(&str, &str)) -> Vec<&str> {
    let mut wrong = Vec::new();
    for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            None if LEVELS.contains(&word) => set_everywhere("level", word, &mut set),
            None if word == "+json" => set_everywhere("formatter", "json", &mut set),
            None if word == "-json" => set_everywhere("formatter", "plaintext", &mut set),
            // Lines have no colours, so these ask for what there is.
            None if word == "-color" => {}
            // RabbitMQ: a category alone is logged from `info` on.
            None if CATEGORIES.contains(&word) => set(&format!("log.{word}.level"), "info"),
            Some((category, level)) if CATEGORIES.contains(&category) && LEVELS.contains(&level) => {
                set(&format!("log.{category}.level"), level);
            }
            _ => wrong.push(word),
        }
    }
    wrong
}

fn set_everywhere(what: &str, value: &str, set: &mut impl FnMut(&str, &str)) {
    for output in ["console", "file", "exchange", "syslog"] {
        set(&format!("log.{output}.{what}"), value);
    }
}
