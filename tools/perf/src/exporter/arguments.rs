//! The command line as others may see it: in metrics, where `--metrics-command-line-arguments` asks for it, and in files.

/// Options that tell nothing about the load, in their short and long form, and whether a value follows. PerfTest leaves
/// out where the broker is and everything about metrics.
const HIDDEN: [(&str, &str, bool); 24] = [
    ("h", "uri", true),
    ("H", "uris", true),
    ("", "declare-uri", true),
    ("mt", "metrics-tags", true),
    ("mpx", "metrics-prefix", true),
    ("mcla", "metrics-command-line-arguments", false),
    ("mc", "metrics-client", false),
    ("mcl", "metrics-class-loader", false),
    ("mjm", "metrics-jvm-memory", false),
    ("mjgc", "metrics-jvm-gc", false),
    ("mjp", "metrics-processor", false),
    ("mjt", "metrics-jvm-thread", false),
    ("mjx", "metrics-jmx", false),
    ("mpr", "metrics-prometheus", false),
    ("mpe", "metrics-prometheus-endpoint", true),
    ("mpp", "metrics-prometheus-port", true),
    ("mda", "metrics-datadog", false),
    ("mdk", "metrics-datadog-api-key", true),
    ("mdak", "metrics-datadog-application-key", true),
    ("mds", "metrics-datadog-step-size", true),
    ("mdh", "metrics-datadog-host-tag", true),
    ("mdd", "metrics-datadog-descriptions", false),
    ("mdu", "metrics-datadog-uri", true),
    ("o2sec", "oauth2-client-secret", true),
];

/// Options whose value is a secret.
const SECRET: [(&str, &str); 3] = [
    ("mdk", "metrics-datadog-api-key"),
    ("mdak", "metrics-datadog-application-key"),
    ("o2sec", "oauth2-client-secret"),
];

/// The arguments with `***` for keys. Passwords in URIs are gone already.
pub fn without_secrets(arguments: &[String]) -> Vec<String> {
    let mut secret_follows = false;
    let each = arguments.iter().map(|argument| {
        if std::mem::take(&mut secret_follows) {
            return "***".to_owned();
        }
        match option(argument) {
            Some((name, joined)) if SECRET.iter().any(|(short, long)| *short == name || *long == name) => {
                secret_follows = !joined;
                argument
                    .split_once('=')
                    .map_or(argument.clone(), |(name, _)| format!("{name}=***"))
            }
            _ => argument.clone(),
        }
    });
    each.collect()
}

/// The arguments in one line, without the hidden ones.
pub fn shown(arguments: &[String]) -> String {
    let mut shown = Vec::new();
    let mut skip = false;
    for argument in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        match hidden(argument) {
            Some(value_follows) => skip = value_follows,
            None => shown.push(argument.as_str()),
        }
    }
    shown.join(" ")
}

/// Whether to hide it, and if so, whether the next argument goes with it.
fn hidden(argument: &str) -> Option<bool> {
    let (name, joined) = option(argument)?;
    let (_, _, value) = HIDDEN
        .iter()
        .find(|(short, long, _)| *short == name || *long == name)?;
    Some(*value && !joined)
}

/// The option's name, and whether its value is joined to it by an equals sign.
fn option(argument: &str) -> Option<(&str, bool)> {
    let name = argument
        .strip_prefix("--")
        .or_else(|| argument.strip_prefix('-'))?;
    Some(
        name.split_once('=')
            .map_or((name, false), |(name, _)| (name, true)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_shown() {
        let line = "-mdk k1 --metrics-datadog-application-key=k2 --rate 5 --oauth2-client-secret k=3 -x 1";
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(
            without_secrets(&arguments).join(" "),
            "-mdk *** --metrics-datadog-application-key=*** --rate 5 --oauth2-client-secret *** -x 1"
        );
        assert_eq!(shown(&arguments), "--rate 5 -x 1");
    }

    #[test]
    fn where_the_broker_is_and_what_is_measured_is_left_out() {
        let line = "--uri amqp://h --rate 50 -h=amqp://i --time 9 --metrics-prometheus --metrics-prometheus-port 18099 \
                    -mt env=a,region=b -mjp -mjm -mjt -mc -mcla -em foo=1.5 --confirm 20 --metrics-tags=a=b";
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(shown(&arguments), "--rate 50 --time 9 -em foo=1.5 --confirm 20");
    }
}
