//! What the package is made of is there, and the service may read what the package gives it.

use std::path::Path;
use std::process::Command;

const MANIFEST: &str = include_str!("../Cargo.toml");
const POSTINST: &str = include_str!("../../../packaging/debian/postinst");
const POSTRM: &str = include_str!("../../../packaging/debian/postrm");
const CONF: &str = include_str!("../../../packaging/leveret.conf");
const MANUAL: &str = include_str!("../../../packaging/man/leveret.8");
const TOOLS: &str = include_str!("../../../packaging/tools");
const RECIPE: &str = include_str!("../../../packaging/Containerfile");
const MAKEFILE: &str = include_str!("../../../Makefile");
const COMPOSE: &str = include_str!("../../../packaging/compose-cluster.yaml");
const KUBERNETES: &str = include_str!("../../../packaging/kubernetes/leveret.yaml");
const UNIT: &str = include_str!("../../../packaging/systemd/leveret.service");

#[test]
fn every_file_that_the_package_names_is_there() {
    let (_, package) = MANIFEST.split_once("[package.metadata.deb]").unwrap();
    let named: Vec<&str> = package
        .split('"')
        .filter(|text| text.starts_with("../../") && !text.starts_with("../../target/"))
        .collect();
    assert!(named.len() >= 4, "{named:?}");
    for path in named {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path.trim_end_matches("*.md"));
        assert!(path.exists(), "{}", path.display());
    }
}

/// What stands behind `NAME :=` in the Makefile.
fn variable(name: &str) -> &'static str {
    let start = format!("{name} := ");
    let found = MAKEFILE.lines().find_map(|line| line.strip_prefix(&*start));
    found.unwrap_or_default()
}

#[test]
fn what_make_lays_out_is_what_the_package_takes() {
    let package = variable("PACKAGE");
    let taken = [
        "usr/lib/leveret/bin/*",
        "usr/share/man/man8/*",
        "usr/share/man/man1/*",
        "usr/share/bash-completion/completions/leveret",
        "usr/share/zsh/site-functions/_leveret",
        "usr/share/fish/vendor_completions.d/leveret.fish",
    ];
    let taken = taken.map(|path| format!("\"../../{package}/{path}\""));
    for path in taken {
        assert!(MANIFEST.contains(&path), "{path}");
    }
    assert!(MAKEFILE.contains("ln -s ../../../bin/leveret $(PACKAGE)/usr/lib/leveret/bin/$$tool"));
    assert!(MANIFEST.contains("preserve-symlinks = true"));
}

#[test]
fn every_name_that_is_linked_to_the_program_means_something_to_it() {
    assert!(MAKEFILE.contains("TOOLS := $(shell cat packaging/tools)\n"));
    assert!(RECIPE.contains("RUN /tmp/packaging/image/layout /tmp/leveret / "));
    let servers = [
        "rabbitmq-server",
        "rabbitmqadmin",
        "perf-test",
        "stream-perf-test",
    ];
    let mut tools = 0;
    for name in TOOLS.lines() {
        let is_tool = ctl::Tool::called(name).is_some();
        assert!(
            is_tool || servers.contains(&name),
            "{name} is no name of the program"
        );
        assert!(MANUAL.contains(&name.replace('-', "\\-")), "{name}");
        tools += u32::from(is_tool);
    }
    assert_eq!(tools, 6);
}

#[test]
fn the_pages_that_the_package_speaks_of_are_in_it() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut spoken_of = 0;
    for text in [UNIT, CONF, MANUAL] {
        for rest in text.split("/usr/share/doc/leveret/").skip(1) {
            let end = rest.find(|it: char| it.is_whitespace()).unwrap_or(rest.len());
            let page = rest[..end].trim();
            assert!(docs.join(page).is_file(), "{page}");
            spoken_of += 1;
        }
    }
    assert!(spoken_of >= 3);
}

#[test]
fn the_manual_knows_every_option_of_the_server() {
    let help = Command::new(env!("CARGO_BIN_EXE_leveret"))
        .args(["server", "--help"])
        .output();
    let help = String::from_utf8(help.unwrap().stdout).unwrap();
    let options = help.split_whitespace().filter(|word| word.starts_with("--"));
    let mut known = 0;
    for option in options.filter(|option| *option != "--help") {
        assert!(MANUAL.contains(&option.replace('-', "\\-")), "{option}");
        known += 1;
    }
    assert!(known >= 5, "{help}");
}

#[test]
fn the_configuration_that_is_shipped_is_good() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/leveret.conf");
    let checked = Command::new(env!("CARGO_BIN_EXE_leveret"))
        .args(["server", "--check-config", "--config"])
        .arg(path)
        .output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{checked:?}");
    assert_eq!(checked.stdout, b"the configuration is good\n");
}

#[test]
fn the_configurations_of_the_examples_of_clusters_are_good() {
    let scratch = tempfile::TempDir::new().unwrap();
    for (example, key, names) in [
        (
            COMPOSE,
            "    content: |\n",
            &["rabbit@n1", "rabbit@n2", "rabbit@n3"][..],
        ),
        (KUBERNETES, "  20-cluster.conf: |\n", &["leveret-0", "leveret-2"]),
    ] {
        let (_, block) = example.split_once(key).unwrap();
        let indent = block.len() - block.trim_start().len();
        let lines = block
            .lines()
            .take_while(|line| line.starts_with(&" ".repeat(indent)));
        let text: Vec<&str> = lines.map(str::trim).collect();
        assert!(text.len() >= 3, "{text:?}");
        let path = scratch.path().join("cluster.conf");
        std::fs::write(&path, text.join("\n")).unwrap();
        for name in names {
            let variable = match name.contains('@') {
                true => "RABBITMQ_NODENAME",
                false => "MY_POD_NAME",
            };
            let checked = Command::new(env!("CARGO_BIN_EXE_leveret"))
                .args(["server", "--check-config", "--config"])
                .arg(&path)
                .env_clear()
                .env("RABBITMQ_ERLANG_COOKIE", "s3cret")
                .env("K8S_SERVICE_NAME", "leveret-nodes")
                .env(variable, name)
                .output()
                .unwrap();
            let said = String::from_utf8(checked.stdout).unwrap();
            assert_eq!(said, "the configuration is good\n", "{name}");
        }
    }
}

#[test]
fn the_example_for_kubernetes_says_twice_how_many_nodes_there_are_and_starts_all_at_once() {
    let count = |key: &str| {
        let (_, rest) = KUBERNETES.split_once(key).unwrap();
        rest.lines().next().unwrap().trim().parse::<u32>().unwrap()
    };
    assert_eq!(count("target_cluster_size_hint ="), count("\n  replicas:"));
    for line in [
        "podManagementPolicy: Parallel",
        "publishNotReadyAddresses: true",
        "serviceName: leveret-nodes",
        "value: leveret-nodes",
    ] {
        assert!(KUBERNETES.contains(line), "{line}");
    }
}

#[test]
fn the_data_of_the_service_is_where_the_package_puts_it_and_takes_it_away() {
    assert!(UNIT.contains("Environment=LEVERET_DATA_DIR=/var/lib/leveret\n"));
    assert!(UNIT.contains("StateDirectory=leveret\n") && UNIT.contains("LogsDirectory=leveret\n"));
    assert!(POSTINST.contains("-m 0750 /var/lib/leveret\n"));
    assert!(POSTRM.contains("rm -rf /var/lib/leveret /var/log/leveret\n"));
}

#[test]
fn the_package_can_be_installed_where_there_is_no_systemd() {
    // cargo-deb calls a program of systemd for each file of other kinds that lies beside the unit; adduser makes the user there.
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd");
    let names = std::fs::read_dir(units).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["leveret.service"]);
    assert!(MANIFEST.contains(r#"depends = "$auto, adduser""#));
}

#[test]
fn the_service_may_read_its_configuration() {
    assert!(MANIFEST.contains(r#""etc/leveret/leveret.conf", "640""#));
    assert!(UNIT.contains("User=leveret\n") && UNIT.contains("--config /etc/leveret\n"));
    assert!(
        POSTINST.contains("adduser --system --group") && POSTINST.contains("chgrp -R leveret /etc/leveret\n")
    );
}

#[test]
fn a_wrong_configuration_is_not_started_again_and_again() {
    // What fails before the server itself has an exit code of its own, which systemd does not look at here.
    assert!(!UNIT.contains("ExecStartPre="));
    assert!(UNIT.contains("RestartPreventExitStatus=78\n"));
    assert!(UNIT.contains("EnvironmentFile=-/etc/default/leveret\n"));
}
