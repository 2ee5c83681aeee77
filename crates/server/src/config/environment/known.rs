//! Every environment variable that is known, and what becomes of it.

/// What becomes of a variable.
pub enum Means {
    /// It sets this key.
    Sets(&'static str),
    /// The file that it names has the value of this key.
    Contents(&'static str),
    /// The address of listeners that name none.
    Address,
    /// Where the log goes.
    LogTarget,
    /// How much is logged.
    LogLevels,
    /// An amount of memory, or a share of it.
    Watermark,
    /// It sets this key to true or false.
    Flag(&'static str),
    /// Options of Erlang's machine, which may hold settings.
    Arguments,
    /// It says where files are, or is read by a tool.
    Elsewhere,
    /// Nothing, for this reason: a warning.
    Nothing(&'static str),
    /// The node must not start, for this reason.
    Refused(&'static str),
}

use Means::{
    Address, Arguments, Contents, Elsewhere, Flag, LogLevels, LogTarget, Nothing, Refused, Sets, Watermark,
};

const ERLANG: &str = "Leveret has no Erlang runtime to tune";
const DIST_PORT: &str = "cluster.listeners.tcp.default says where other nodes connect";
const BUILT_IN: &str = "plugins are built in";
const FLAGS: &str = "all feature flags are enabled";
const DESCRIPTORS: &str = "the limit of open files is the service manager's to set";
const OURS: &str = "name and banner are Leveret's";
const FILES: &str = "the configuration is read directly, and no files are generated from it";
const QUEUES: &str = "all queues keep their messages in the data directory";
const ONE_LOG: &str = "there is one log";
const TLS: &str = "certificates are set in the configuration: listeners.ssl.default, ssl_options.certfile, ssl_options.keyfile and their like";
const PAGE_TLS: &str = "certificates are set in the configuration: management.ssl.port, management.ssl.certfile, management.ssl.keyfile and their like";
const IMAGE: &str = "scripts of other images read such names: set RABBITMQ_DEFAULT_USER, RABBITMQ_DEFAULT_PASS, RABBITMQ_DEFAULT_VHOST, RABBITMQ_NODENAME, \
     RABBITMQ_NODE_PORT or keys of rabbitmq.conf";

/// Of two that set the same, the later one counts.
pub const KNOWN: &[(&str, Means)] = &[
    ("RABBITMQ_DATA_DIR", Sets("data_dir")),
    ("RABBITMQ_MNESIA_BASE", Sets("data_dir")),
    ("RABBITMQ_MNESIA_DIR", Sets("data_dir")),
    ("LEVERET_DATA_DIR", Sets("data_dir")),
    ("RABBITMQ_USE_LONGNAME", Flag("use_longname")),
    ("RABBITMQ_NODENAME", Sets("nodename")),
    ("RABBITMQ_ERLANG_COOKIE", Sets("cluster.secret")),
    ("RABBITMQ_NODE_PORT", Sets("listeners.tcp.default")),
    ("RABBITMQ_NODE_IP_ADDRESS", Address),
    ("RABBITMQ_DEFAULT_USER_FILE", Contents("default_user")),
    ("RABBITMQ_DEFAULT_PASS_FILE", Contents("default_pass")),
    ("RABBITMQ_DEFAULT_USER", Sets("default_user")),
    ("RABBITMQ_DEFAULT_PASS", Sets("default_pass")),
    ("RABBITMQ_DEFAULT_VHOST", Sets("default_vhost")),
    ("RABBITMQ_VM_MEMORY_HIGH_WATERMARK", Watermark),
    ("RABBITMQ_LOG_BASE", Sets("log.dir")),
    ("RABBITMQ_LOGS", LogTarget),
    ("RABBITMQ_LOG", LogLevels),
    ("RABBITMQ_PID_FILE", Sets("pid_file")),
    ("RABBITMQ_KEEP_PID_FILE_ON_EXIT", Flag("keep_pid_file_on_exit")),
    ("RABBITMQ_SERVER_ERL_ARGS", Arguments),
    ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", Arguments),
    ("RABBITMQ_SERVER_START_ARGS", Arguments),
    // What RabbitMQ's discovery of pods reads
    (
        "K8S_HOSTNAME_SUFFIX",
        Sets("cluster_formation.k8s.hostname_suffix"),
    ),
    ("K8S_SERVICE_NAME", Sets("cluster_formation.k8s.service_name")),
    ("K8S_ORDINAL_START", Sets("cluster_formation.k8s.ordinal_start")),
    ("K8S_SEED_NODE", Sets("cluster_formation.k8s.seed_node")),
    ("MY_POD_NAME", Elsewhere),
    // Where files are
    ("LEVERET_CONFIG_FILE", Elsewhere),
    ("LEVERET_CONFIG_FILES", Elsewhere),
    ("LEVERET_ADVANCED_CONFIG_FILE", Elsewhere),
    ("RABBITMQ_CONFIG_FILE", Elsewhere),
    ("RABBITMQ_CONFIG_FILES", Elsewhere),
    ("RABBITMQ_ADVANCED_CONFIG_FILE", Elsewhere),
    ("RABBITMQ_CONF_ENV_FILE", Elsewhere),
    ("RABBITMQ_ENABLED_PLUGINS_FILE", Elsewhere),
    ("RABBITMQ_ENABLED_PLUGINS", Elsewhere),
    // For tools
    ("LEVERET_URL", Elsewhere),
    ("LEVERET_USERNAME", Elsewhere),
    ("LEVERET_PASSWORD", Elsewhere),
    ("RABBITMQ_CLI_ALIASES_FILE", Elsewhere),
    ("RABBITMQ_PERF_TEST_ENV_PREFIX", Elsewhere),
    ("RABBITMQ_PERF_TEST_LOGGERS", Elsewhere),
    // What RabbitMQ's image says about itself
    ("RABBITMQ_VERSION", Elsewhere),
    ("RABBITMQ_HOME", Elsewhere),
    ("RABBITMQ_PGP_KEY_ID", Elsewhere),
    ("RABBITMQ_BASE", Elsewhere),
    // Without a counterpart
    ("RABBITMQ_DIST_PORT", Nothing(DIST_PORT)),
    ("RABBITMQ_FEATURE_FLAGS", Nothing(FLAGS)),
    ("RABBITMQ_FEATURE_FLAGS_FILE", Nothing(FLAGS)),
    ("RABBITMQ_LOG_FF_REGISTRY", Nothing(FLAGS)),
    ("RABBITMQ_PLUGINS_DIR", Nothing(BUILT_IN)),
    ("RABBITMQ_PLUGINS_EXPAND_DIR", Nothing(BUILT_IN)),
    ("RABBITMQ_QUORUM_DIR", Nothing(QUEUES)),
    ("RABBITMQ_STREAM_DIR", Nothing(QUEUES)),
    ("RABBITMQ_SCHEMA_DIR", Nothing(FILES)),
    ("RABBITMQ_GENERATED_CONFIG_DIR", Nothing(FILES)),
    ("RABBITMQ_UPGRADE_LOG", Nothing(ONE_LOG)),
    ("RABBITMQ_SASL_LOGS", Nothing(ONE_LOG)),
    ("RABBITMQ_PRODUCT_NAME", Nothing(OURS)),
    ("RABBITMQ_PRODUCT_VERSION", Nothing(OURS)),
    ("RABBITMQ_MOTD_FILE", Nothing(OURS)),
    ("RABBITMQ_MAX_OPEN_FILES", Nothing(DESCRIPTORS)),
    ("RABBITMQ_IO_THREAD_POOL_SIZE", Nothing(ERLANG)),
    ("RABBITMQ_MAX_NUMBER_OF_PROCESSES", Nothing(ERLANG)),
    ("RABBITMQ_MAX_NUMBER_OF_ATOMS", Nothing(ERLANG)),
    ("RABBITMQ_DISTRIBUTION_BUFFER_SIZE", Nothing(ERLANG)),
    ("RABBITMQ_DEFAULT_ALLOC_ARGS", Nothing(ERLANG)),
    ("RABBITMQ_SCHEDULER_BIND_TYPE", Nothing(ERLANG)),
    ("RABBITMQ_CTL_ERL_ARGS", Nothing(ERLANG)),
    ("RABBITMQ_CTL_DIST_PORT_MIN", Nothing(ERLANG)),
    ("RABBITMQ_CTL_DIST_PORT_MAX", Nothing(ERLANG)),
    ("RABBITMQ_ALLOW_INPUT", Nothing(ERLANG)),
    ("RABBITMQ_HIPE_COMPILE", Nothing(ERLANG)),
    ("RABBITMQ_DBG", Nothing(ERLANG)),
    ("RABBITMQ_BOOT_MODULE", Nothing(ERLANG)),
    (
        "RABBITMQ_ERL_COOKIE",
        Nothing("RABBITMQ_ERLANG_COOKIE is the secret of the cluster"),
    ),
    ("RABBITMQ_SERVICENAME", Nothing(ERLANG)),
    ("RABBITMQ_CONSOLE_LOG", Nothing(ERLANG)),
    // Old images of RabbitMQ took these, newer ones refuse them.
    ("RABBITMQ_SSL_CACERTFILE", Refused(TLS)),
    ("RABBITMQ_SSL_CERTFILE", Refused(TLS)),
    ("RABBITMQ_SSL_KEYFILE", Refused(TLS)),
    ("RABBITMQ_SSL_DEPTH", Refused(TLS)),
    ("RABBITMQ_SSL_VERIFY", Refused(TLS)),
    ("RABBITMQ_SSL_FAIL_IF_NO_PEER_CERT", Refused(TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_CACERTFILE", Refused(PAGE_TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_CERTFILE", Refused(PAGE_TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_KEYFILE", Refused(PAGE_TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_DEPTH", Refused(PAGE_TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_VERIFY", Refused(PAGE_TLS)),
    ("RABBITMQ_MANAGEMENT_SSL_FAIL_IF_NO_PEER_CERT", Refused(PAGE_TLS)),
    // Bitnami's image
    ("RABBITMQ_USERNAME", Nothing(IMAGE)),
    ("RABBITMQ_PASSWORD", Nothing(IMAGE)),
    ("RABBITMQ_VHOST", Nothing(IMAGE)),
    ("RABBITMQ_VHOSTS", Nothing(IMAGE)),
    ("RABBITMQ_SECURE_PASSWORD", Nothing(IMAGE)),
    ("RABBITMQ_NODE_NAME", Nothing(IMAGE)),
    ("RABBITMQ_NODE_TYPE", Nothing(IMAGE)),
    ("RABBITMQ_NODE_PORT_NUMBER", Nothing(IMAGE)),
    ("RABBITMQ_MANAGEMENT_PORT_NUMBER", Nothing(IMAGE)),
    ("RABBITMQ_MANAGEMENT_BIND_IP", Nothing(IMAGE)),
    ("RABBITMQ_MANAGEMENT_ALLOW_WEB_ACCESS", Nothing(IMAGE)),
    ("RABBITMQ_CLUSTER_NODE_NAME", Nothing(IMAGE)),
    ("RABBITMQ_CLUSTER_REBALANCE", Nothing(IMAGE)),
    ("RABBITMQ_LOAD_DEFINITIONS", Nothing(IMAGE)),
    ("RABBITMQ_DEFINITIONS_FILE", Nothing(IMAGE)),
    ("RABBITMQ_DISK_FREE_RELATIVE_LIMIT", Nothing(IMAGE)),
    ("RABBITMQ_DISK_FREE_ABSOLUTE_LIMIT", Nothing(IMAGE)),
    ("RABBITMQ_PLUGINS", Nothing(IMAGE)),
    ("RABBITMQ_COMMUNITY_PLUGINS", Nothing(IMAGE)),
    ("RABBITMQ_FORCE_BOOT", Nothing(IMAGE)),
    ("RABBITMQ_ULIMIT_NOFILES", Nothing(IMAGE)),
    ("RABBITMQ_SVC_NAME", Nothing(IMAGE)),
];

pub fn is_known(name: &str) -> bool {
    KNOWN.iter().any(|(known, _)| *known == name)
}

/// True for the variables by which container platforms tell every process where a service called `rabbitmq` is.
pub fn is_of_an_orchestrator(name: &str, value: &str) -> bool {
    let is_address = value.starts_with("tcp://") || value.starts_with("udp://");
    let of_a_port = |protocol: &str| name.contains("_PORT_") && name.contains(protocol);
    name.contains("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && is_address)
        || of_a_port("_TCP")
        || of_a_port("_UDP")
}

/// The known name that is spelt most like this one, if any is.
pub fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > 100 {
        return None;
    }
    let with_distance = KNOWN
        .iter()
        .map(|(known, _)| (strsim::damerau_levenshtein(name, known), *known));
    let (distance, nearest) = with_distance.min_by_key(|(distance, _)| *distance)?;
    // What both have at their beginning excuses nothing.
    let most = (name.len().saturating_sub("RABBITMQ_".len()) / 3).clamp(1, 3);
    (distance <= most).then_some(nearest)
}

/// As RabbitMQ's scripts and its node understand a variable that is to be true.
pub fn is_yes(value: &str) -> bool {
    ["1", "yes", "true"].contains(&value.to_ascii_lowercase().as_str())
}

/// `0.4`, `40%` and `1GiB`: the key of a share or of an amount, and its value.
pub fn watermark(value: &str) -> (&'static str, String) {
    const SHARE: &str = "vm_memory_high_watermark.relative";
    if let Some(percent) = value.strip_suffix('%')
        && let Ok(percent) = percent.trim().parse::<f64>()
    {
        return (SHARE, (percent / 100.0).to_string());
    }
    match value.contains('.') || value == "0" || value == "1" {
        true => (SHARE, value.to_owned()),
        false => ("vm_memory_high_watermark.absolute", value.to_owned()),
    }
}
