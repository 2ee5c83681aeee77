//! The keys of what is spoken by HTTP: the API and the web UI, the metrics page.

use super::keys::Rule::{self, NoEffect, Only, Part, Sets};
use super::keys::{CURVES, DIFFIE, GUARD, RENEGOTIATION, TLS};
use super::{
    rules_management as management, rules_prometheus as prometheus, rules_sign_on as sign_on,
    rules_tls as tls,
};

const CLIENT_SECRET: &str = "the web UI logs in as a public client, with PKCE: register it as one; a secret that every browser is given is none";
const RESPONSE_TYPE: &str = "code is the only flow that is safe in a browser";

const RETENTION: &str = "samples are kept for ten minutes, those of the whole node for a day";

/// Keys by pattern, as in [`super::keys::KEYS`].
pub const PAGES: &[(&str, Rule)] = &[
    ("management.listener", Sets(management::listener)),
    ("management.tcp.port", Sets(management::port)),
    ("management.tcp.ip", Sets(management::ip)),
    ("management.listener.port", Sets(management::port)),
    ("management.listener.ip", Sets(management::ip)),
    ("management.listener.ssl", Sets(tls::management_listener)),
    ("management.ssl.port", Sets(tls::management_port)),
    ("management.ssl.ip", Sets(tls::management_ip)),
    ("management.ssl.certfile", Sets(tls::certificate)),
    ("management.ssl.keyfile", Sets(tls::key)),
    ("management.ssl.cacertfile", Sets(tls::authorities)),
    ("management.ssl.verify", Sets(tls::verify)),
    (
        "management.ssl.fail_if_no_peer_cert",
        Sets(tls::fail_if_no_peer_cert),
    ),
    ("management.ssl.depth", Sets(tls::depth)),
    ("management.ssl.versions.*", Sets(tls::version)),
    ("management.ssl.ciphers.*", Sets(tls::cipher)),
    ("management.ssl.honor_cipher_order", Sets(tls::honor_cipher_order)),
    ("management.ssl.honor_ecc_order", NoEffect(CURVES)),
    ("management.ssl.reuse_sessions", Sets(tls::reuse_sessions)),
    ("management.ssl.client_renegotiation", NoEffect(RENEGOTIATION)),
    ("management.ssl.secure_renegotiate", NoEffect(RENEGOTIATION)),
    ("management.ssl.dhfile", NoEffect(DIFFIE)),
    ("management.ssl.password", Sets(tls::password)),
    ("management.ssl.crl_check", Sets(tls::crl_check)),
    ("management.ssl.crl_sources.*", Sets(tls::crl_source)),
    ("management.ssl.crl_sources.*.path", Sets(tls::crl_path)),
    ("management.ssl.crl_sources.*.*", Only(&[], TLS)),
    ("management.listener.ssl_opts.certfile", Sets(tls::certificate)),
    ("management.listener.ssl_opts.keyfile", Sets(tls::key)),
    ("management.listener.ssl_opts.cacertfile", Sets(tls::authorities)),
    ("management.listener.ssl_opts.verify", Sets(tls::verify)),
    (
        "management.listener.ssl_opts.fail_if_no_peer_cert",
        Sets(tls::fail_if_no_peer_cert),
    ),
    ("management.listener.ssl_opts.depth", Sets(tls::depth)),
    ("management.listener.ssl_opts.versions.*", Sets(tls::version)),
    ("management.listener.ssl_opts.ciphers.*", Sets(tls::cipher)),
    (
        "management.listener.ssl_opts.honor_cipher_order",
        Sets(tls::honor_cipher_order),
    ),
    ("management.listener.ssl_opts.honor_ecc_order", NoEffect(CURVES)),
    (
        "management.listener.ssl_opts.reuse_sessions",
        Sets(tls::reuse_sessions),
    ),
    (
        "management.listener.ssl_opts.client_renegotiation",
        NoEffect(RENEGOTIATION),
    ),
    (
        "management.listener.ssl_opts.secure_renegotiate",
        NoEffect(RENEGOTIATION),
    ),
    ("management.listener.ssl_opts.dhfile", NoEffect(DIFFIE)),
    ("management.listener.ssl_opts.password", Sets(tls::password)),
    ("management.listener.ssl_opts.crl_check", Sets(tls::crl_check)),
    (
        "management.listener.ssl_opts.crl_sources.*",
        Sets(tls::crl_source),
    ),
    (
        "management.listener.ssl_opts.crl_sources.*.path",
        Sets(tls::crl_path),
    ),
    ("management.listener.ssl_opts.**", Only(&[], TLS)),
    ("management.http.max_body_size", Sets(management::body_limit)),
    ("management.cors.allow_origins", Sets(management::no_origins)),
    ("management.cors.allow_origins.*", Sets(management::allow_origin)),
    ("management.web_socket", Sets(management::web_socket)),
    ("management.cors.max_age", Sets(management::origins_max_age)),
    (
        "management.disable_basic_auth",
        Sets(management::disable_basic_auth),
    ),
    ("management.disable_stats", Sets(management::disable_stats)),
    ("management.enable_queue_totals", Sets(management::queue_totals)),
    (
        "management.restrictions.operator_policy_changes.disabled",
        Only(&["false"], GUARD),
    ),
    ("management.hsts.policy", Sets(management::header)),
    ("management.csp.policy", Sets(management::header)),
    (
        "management.headers.content_type_options",
        Sets(management::header),
    ),
    ("management.headers.xss_protection", Sets(management::header)),
    ("management.headers.frame_options", Sets(management::header)),
    ("management.headers.referrer_policy", Sets(management::header)),
    ("management.path_prefix", Sets(management::path_prefix)),
    // Single sign-on
    ("management.oauth_enabled", Sets(sign_on::enabled)),
    (
        "management.oauth_disable_basic_auth",
        Sets(sign_on::disable_basic_auth),
    ),
    ("management.oauth_resource_servers.*.id", Sets(sign_on::id)),
    ("management.oauth_resource_servers.*.label", Sets(sign_on::label)),
    (
        "management.oauth_resource_servers.*.disabled",
        Sets(sign_on::disabled),
    ),
    ("management.oauth_provider_url", Sets(sign_on::provider_url)),
    ("management.oauth_metadata_url", Sets(sign_on::metadata_url)),
    ("management.oauth_client_id", Sets(sign_on::client_id)),
    ("management.oauth_scopes", Sets(sign_on::scopes)),
    ("management.oauth_initiated_logon_type", Sets(sign_on::logon_type)),
    (
        "management.oauth_authorization_endpoint_params.*",
        Sets(sign_on::authorization_param),
    ),
    (
        "management.oauth_token_endpoint_params.*",
        Sets(sign_on::token_param),
    ),
    ("management.oauth_client_secret", Only(&[], CLIENT_SECRET)),
    ("management.oauth_response_type", Only(&["code"], RESPONSE_TYPE)),
    (
        "management.oauth_resource_servers.*.oauth_provider_url",
        Sets(sign_on::provider_url),
    ),
    (
        "management.oauth_resource_servers.*.oauth_metadata_url",
        Sets(sign_on::metadata_url),
    ),
    (
        "management.oauth_resource_servers.*.oauth_client_id",
        Sets(sign_on::client_id),
    ),
    (
        "management.oauth_resource_servers.*.oauth_scopes",
        Sets(sign_on::scopes),
    ),
    (
        "management.oauth_resource_servers.*.oauth_initiated_logon_type",
        Sets(sign_on::logon_type),
    ),
    (
        "management.oauth_resource_servers.*.oauth_authorization_endpoint_params.*",
        Sets(sign_on::authorization_param),
    ),
    (
        "management.oauth_resource_servers.*.oauth_token_endpoint_params.*",
        Sets(sign_on::token_param),
    ),
    (
        "management.oauth_resource_servers.*.oauth_client_secret",
        Only(&[], CLIENT_SECRET),
    ),
    (
        "management.oauth_resource_servers.*.oauth_response_type",
        Only(&["code"], RESPONSE_TYPE),
    ),
    ("management.sample_retention_policies.**", NoEffect(RETENTION)),
    ("management.**", Part("this setting of the HTTP API")),
    (
        "management_agent.disable_metrics_collector",
        Sets(management::disable_metrics_collector),
    ),
    ("management_agent.**", Part("this setting of the HTTP API")),
    ("http_dispatch.**", Only(&[], GUARD)),
    (
        "collect_statistics",
        NoEffect("statistics cost nothing until they are requested"),
    ),
    (
        "collect_statistics_interval",
        NoEffect("statistics cost nothing until they are requested"),
    ),
    ("prometheus.listener", Sets(prometheus::listener)),
    ("prometheus.tcp.port", Sets(prometheus::port)),
    ("prometheus.tcp.ip", Sets(prometheus::ip)),
    (
        "prometheus.return_per_object_metrics",
        Sets(prometheus::per_object),
    ),
    ("prometheus.path", Sets(prometheus::path)),
    ("prometheus.object_limit", Sets(prometheus::object_limit)),
    ("prometheus.ssl.port", Sets(tls::prometheus_port)),
    ("prometheus.ssl.ip", Sets(tls::prometheus_ip)),
    ("prometheus.ssl.certfile", Sets(tls::certificate)),
    ("prometheus.ssl.keyfile", Sets(tls::key)),
    ("prometheus.ssl.cacertfile", Sets(tls::authorities)),
    ("prometheus.ssl.verify", Sets(tls::verify)),
    (
        "prometheus.ssl.fail_if_no_peer_cert",
        Sets(tls::fail_if_no_peer_cert),
    ),
    ("prometheus.ssl.depth", Sets(tls::depth)),
    ("prometheus.ssl.versions.*", Sets(tls::version)),
    ("prometheus.ssl.ciphers.*", Sets(tls::cipher)),
    ("prometheus.ssl.honor_cipher_order", Sets(tls::honor_cipher_order)),
    ("prometheus.ssl.honor_ecc_order", NoEffect(CURVES)),
    ("prometheus.ssl.reuse_sessions", Sets(tls::reuse_sessions)),
    ("prometheus.ssl.client_renegotiation", NoEffect(RENEGOTIATION)),
    ("prometheus.ssl.secure_renegotiate", NoEffect(RENEGOTIATION)),
    ("prometheus.ssl.dhfile", NoEffect(DIFFIE)),
    ("prometheus.ssl.password", Sets(tls::password)),
    ("prometheus.ssl.crl_check", Sets(tls::crl_check)),
    ("prometheus.ssl.crl_sources.*", Sets(tls::crl_source)),
    ("prometheus.ssl.crl_sources.*.path", Sets(tls::crl_path)),
    ("prometheus.ssl.crl_sources.*.*", Only(&[], TLS)),
    ("prometheus.authentication.enabled", Only(&["false"], GUARD)),
    ("prometheus.**", Part("this setting of the metrics page")),
];
