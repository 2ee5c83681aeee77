use super::*;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let owned = variables
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    Environment::of(owned)
}

/// The settings that these variables make beside those of a file, and the warnings.
fn said(conf: &str, variables: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let mut settings = super::super::sources::text_of_file(conf, Path::new("l.conf")).unwrap();
    let mut said = environment(variables).said().unwrap();
    let mut warnings = std::mem::take(&mut said.warnings);
    warnings.append(&mut said.arguments.warnings);
    said.put_behind(&mut settings);
    let shown = settings.iter().map(|it| format!("{} = {}", it.key, it.value));
    (shown.collect(), warnings)
}

fn settings(variables: &[(&str, &str)]) -> Vec<String> {
    let (settings, warnings) = said("", variables);
    assert_eq!(warnings, [] as [&str; 0], "{variables:?}");
    settings
}

fn warnings(variables: &[(&str, &str)]) -> Vec<String> {
    let (settings, warnings) = said("", variables);
    assert_eq!(settings, [] as [&str; 0], "{variables:?}");
    warnings
}

#[test]
fn variables_of_rabbitmq_take_effect() {
    for (name, value, setting) in [
        ("RABBITMQ_NODENAME", "hare@x", &["nodename = hare@x"][..]),
        (
            "RABBITMQ_ERLANG_COOKIE",
            "s3cret",
            &["cluster.secret = s3cret"][..],
        ),
        ("RABBITMQ_USE_LONGNAME", "yes", &["use_longname = true"]),
        ("RABBITMQ_USE_LONGNAME", "false", &["use_longname = false"]),
        ("RABBITMQ_DEFAULT_USER", "jane", &["default_user = jane"]),
        ("RABBITMQ_DEFAULT_USER", "", &[]),
        ("RABBITMQ_MNESIA_DIR", "/d", &["data_dir = /d"]),
        ("RABBITMQ_PID_FILE", "/p", &["pid_file = /p"]),
        ("RABBITMQ_NODE_PORT", "5999", &["listeners.tcp.default = 5999"]),
        (
            "RABBITMQ_NODE_IP_ADDRESS",
            "::1",
            &["listeners.tcp.default = ::1:5672"],
        ),
        ("RABBITMQ_NODE_IP_ADDRESS", "auto", &[]),
        ("RABBITMQ_LOG_BASE", "/l", &["log.dir = /l"]),
        ("RABBITMQ_LOGS", "/l/x.log", &["log.file = /l/x.log"]),
        (
            "RABBITMQ_LOGS",
            "-",
            &[
                "log.console = true",
                "log.console.stdio = stdout",
                "log.file = false",
            ],
        ),
        (
            "RABBITMQ_LOG",
            "connection=error",
            &["log.connection.level = error"],
        ),
        (
            "RABBITMQ_VM_MEMORY_HIGH_WATERMARK",
            "0.5",
            &["vm_memory_high_watermark.relative = 0.5"],
        ),
        (
            "RABBITMQ_VM_MEMORY_HIGH_WATERMARK",
            "40%",
            &["vm_memory_high_watermark.relative = 0.4"],
        ),
        (
            "RABBITMQ_VM_MEMORY_HIGH_WATERMARK",
            "1GiB",
            &["vm_memory_high_watermark.absolute = 1GiB"],
        ),
        ("RABBITMQ_CONFIG_FILE", "/etc/x", &[]),
        ("RABBITMQ_SERVICE_PORT_AMQP", "5672", &[]),
        ("RABBITMQ_PORT_5672_TCP_ADDR", "10.0.0.1", &[]),
        ("RABBITMQ_PORT", "tcp://10.0.0.1:5672", &[]),
    ] {
        assert_eq!(settings(&[(name, value)]), setting, "{name}");
    }
    let (settings, warnings) = said("", &[("LEVERET_DATA_DIR", "/l"), ("RABBITMQ_MNESIA_BASE", "/m")]);
    assert_eq!(settings.last().unwrap(), "data_dir = /l");
    assert_eq!(
        warnings,
        ["environment variable RABBITMQ_MNESIA_BASE has no effect: LEVERET_DATA_DIR counts"]
    );
}

#[test]
fn an_address_of_the_environment_holds_for_every_listener_without_one() {
    let variables = [("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")];
    let conf = "listeners.tcp.1 = 5673\nlisteners.tcp.2 = 10.0.0.1:5674";
    let (settings, _) = said(conf, &variables);
    assert_eq!(
        settings,
        [
            "listeners.tcp.1 = 127.0.0.1:5673",
            "listeners.tcp.2 = 10.0.0.1:5674"
        ]
    );
    let (settings, _) = said("listeners.tcp = none", &variables);
    assert_eq!(settings, ["listeners.tcp = none"]);
    let port = [
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"),
        ("RABBITMQ_NODE_PORT", "5999"),
    ];
    assert_eq!(said("", &port).0, ["listeners.tcp.default = 127.0.0.1:5999"]);
}

#[test]
fn settings_among_the_options_of_erlang_take_effect() {
    let arguments = "+S 4:4 -rabbit heartbeat 20 disk_free_limit 2147483648 -setcookie s3cret -rabbitmq_management load_definitions \"/d.json\"";
    let (settings, warnings) = said(
        "heartbeat = 10",
        &[("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", arguments)],
    );
    assert_eq!(
        settings,
        [
            "heartbeat = 20",
            "disk_free_limit.absolute = 2147483648",
            "load_definitions = /d.json"
        ]
    );
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: +S, -setcookie: no effect"),
        "{warnings:?}"
    );
    let wrong = environment(&[("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-rabbit heartbeat {10")]);
    let errors = wrong.said().unwrap_err();
    assert!(
        errors[0].to_string().contains("-rabbit heartbeat: "),
        "{errors:?}"
    );
}

#[test]
fn what_has_no_effect_is_said_in_one_line_a_reason() {
    let said = warnings(&[
        ("RABBITMQ_IO_THREAD_POOL_SIZE", "64"),
        ("RABBITMQ_CTL_ERL_ARGS", "-x"),
        ("RABBITMQ_PASSWORD", "s3cret"),
    ]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(!said.join("").contains("s3cret"));
    assert!(said.iter().any(|line| line.starts_with(
        "environment variables RABBITMQ_IO_THREAD_POOL_SIZE, RABBITMQ_CTL_ERL_ARGS have no effect: Leveret has no Erlang runtime"
    )));
    assert!(warnings(&[("RABBITMQ_LOG", "noise")])[0].contains("'noise' is neither a level"));
}

#[test]
fn unknown_variables_are_named_with_the_nearest_one() {
    assert_eq!(
        warnings(&[("RABBITMQ_NODE_IP_ADRESS", "127.0.0.1")]),
        [
            "environment variable RABBITMQ_NODE_IP_ADRESS: no such variable is known, and it has no effect; did you mean RABBITMQ_NODE_IP_ADDRESS?"
        ]
    );
    assert_eq!(
        warnings(&[("RABBITMQ_OF_OUR_HOUSE", "x")]),
        ["environment variable RABBITMQ_OF_OUR_HOUSE: no such variable is known, and it has no effect"]
    );
    assert_eq!(warnings(&[("LEVERET_DATADIR", "/x")]).len(), 1);
    assert_eq!(warnings(&[("LEVERET_OF_OUR_HOUSE", "x")]), [] as [&str; 0]);
}

#[test]
fn a_variable_that_would_leave_the_node_less_guarded_is_refused() {
    let errors = environment(&[("RABBITMQ_SSL_CERTFILE", "/c.pem")])
        .said()
        .unwrap_err();
    assert!(
        errors[0].to_string().contains("ssl_options.certfile"),
        "{errors:?}"
    );
}

#[test]
fn passwords_may_come_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("password");
    std::fs::write(&path, "s3cret\n").unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(
        settings(&[("RABBITMQ_DEFAULT_PASS_FILE", path)]),
        ["default_pass = s3cret"]
    );
}

#[test]
fn a_file_stands_in_for_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rabbitmq-env.conf");
    let text =
        "NODENAME=hare@file\nRABBITMQ_NODE_PORT=5999\nNODE_IP_ADDRESS=127.0.0.1\nHELPER=x\nulimit -n 4\n";
    std::fs::write(&path, text).unwrap();
    let mut both = environment(&[("RABBITMQ_NODENAME", "hare@variable")]);
    both.join_file(&path).unwrap();
    let said = both.said().unwrap();
    assert_eq!(said.warnings.len(), 2, "{:?}", said.warnings);
    assert!(said.warnings[0].contains("rabbitmq-env.conf:4: HELPER is not a variable"));
    let mut found = Vec::new();
    said.put_behind(&mut found);
    let shown: Vec<String> = found
        .iter()
        .map(|it| format!("{} = {}", it.key, it.value))
        .collect();
    assert_eq!(
        shown,
        [
            "nodename = hare@variable",
            "listeners.tcp.default = 127.0.0.1:5999"
        ]
    );
    std::fs::write(&path, "\nNODE_IP_ADDRESS=$(hostname -i)\n").unwrap();
    let errors = environment(&[]).join_file(&path).unwrap_err();
    assert!(
        errors[0]
            .to_string()
            .contains("rabbitmq-env.conf:2: the value of NODE_IP_ADDRESS needs a shell"),
        "{errors:?}"
    );
}
