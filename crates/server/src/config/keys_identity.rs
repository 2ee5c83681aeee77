//! The keys of authentication backends; those of tokens are in `keys_oauth2`.

use super::keys::Rule::{self, Among, NoEffect, Only, Sets};
use super::{
    rules_backends as backends, rules_identity as identity, rules_ldap as ldap, rules_trust as trust,
};

const AUTH: &str = "internal, oauth2, http, ldap and cache are the authentication backends of this version, and they would let in other users than the one named";
const BACKENDS: &[&str] = &[
    "internal",
    "rabbit_auth_backend_internal",
    "oauth2",
    "oauth",
    "uaa",
    "rabbit_auth_backend_oauth2",
    "http",
    "rabbit_auth_backend_http",
    "ldap",
    "rabbit_auth_backend_ldap",
    "cache",
    "rabbit_auth_backend_cache",
];
const OPTION: &str =
    "this option is not part of this version, and logins must not be less guarded than they were told to be";
pub(super) const ALWAYS_SHOWN: &str = "a server without a certificate is never trusted";
pub(super) const VERIFIED: &str = "the server that is asked must be authenticated";
const OUR_LOG: &str = "what was asked and answered is never logged; why a login was refused is";
const CACHES: &[&str] = &[
    "http",
    "rabbit_auth_backend_http",
    "ldap",
    "rabbit_auth_backend_ldap",
];
const CACHED: &str = "only answers of http and ldap can be cached; other backends need no cache";

/// Keys by pattern, as in [`super::keys::KEYS`].
pub const IDENTITY: &[(&str, Rule)] = &[
    ("auth_backends.*", Among(BACKENDS, identity::backend, AUTH)),
    ("auth_backends.*.*", Among(BACKENDS, identity::half_backend, AUTH)),
    // A service asked over HTTP
    ("auth_http.http_method", Sets(backends::method)),
    ("auth_http.user_path", Sets(backends::user_path)),
    ("auth_http.vhost_path", Sets(backends::vhost_path)),
    ("auth_http.resource_path", Sets(backends::resource_path)),
    ("auth_http.topic_path", Sets(backends::topic_path)),
    ("auth_http.request_timeout", Sets(backends::request_timeout)),
    ("auth_http.connection_timeout", Sets(backends::connection_timeout)),
    ("auth_http.ssl_options.cacertfile", Sets(trust::authorities)),
    ("auth_http.ssl_options.certfile", Sets(trust::certificate)),
    ("auth_http.ssl_options.keyfile", Sets(trust::key)),
    ("auth_http.ssl_options.versions.*", Sets(trust::version)),
    ("auth_http.ssl_options.depth", Sets(trust::depth)),
    ("auth_http.ssl_options.sni", Sets(trust::server_name)),
    (
        "auth_http.ssl_options.fail_if_no_peer_cert",
        NoEffect(ALWAYS_SHOWN),
    ),
    ("auth_http.ssl_options.verify", Only(&["verify_peer"], VERIFIED)),
    (
        "auth_http.ssl_options.hostname_verification",
        Only(&["wildcard"], VERIFIED),
    ),
    ("auth_http.**", Only(&[], OPTION)),
    // A directory
    ("auth_ldap.servers.*", Sets(ldap::server)),
    ("auth_ldap.port", Sets(ldap::port)),
    ("auth_ldap.timeout", Sets(ldap::timeout)),
    ("auth_ldap.use_ssl", Sets(ldap::use_ssl)),
    ("auth_ldap.use_starttls", Sets(ldap::use_starttls)),
    ("auth_ldap.user_dn_pattern", Sets(ldap::pattern)),
    ("auth_ldap.user_bind_pattern", Sets(ldap::bind_pattern)),
    ("auth_ldap.dn_lookup_attribute", Sets(ldap::lookup_attribute)),
    ("auth_ldap.dn_lookup_base", Sets(ldap::lookup_base)),
    ("auth_ldap.dn_lookup_bind", Sets(ldap::bind)),
    ("auth_ldap.dn_lookup_bind.user_dn", Sets(ldap::bind)),
    ("auth_ldap.dn_lookup_bind.password", Sets(ldap::bind)),
    ("auth_ldap.other_bind", Sets(ldap::bind)),
    ("auth_ldap.other_bind.user_dn", Sets(ldap::bind)),
    ("auth_ldap.other_bind.password", Sets(ldap::bind)),
    ("auth_ldap.group_lookup_base", Sets(ldap::group_base)),
    ("auth_ldap.queries.vhost_access", Sets(ldap::query)),
    ("auth_ldap.queries.resource_access", Sets(ldap::query)),
    ("auth_ldap.queries.topic_access", Sets(ldap::query)),
    ("auth_ldap.queries.tags", Sets(ldap::query)),
    ("auth_ldap.ssl_options.cacertfile", Sets(trust::authorities)),
    ("auth_ldap.ssl_options.certfile", Sets(trust::certificate)),
    ("auth_ldap.ssl_options.keyfile", Sets(trust::key)),
    ("auth_ldap.ssl_options.versions.*", Sets(trust::version)),
    ("auth_ldap.ssl_options.depth", Sets(trust::depth)),
    ("auth_ldap.ssl_options.sni", Sets(trust::server_name)),
    (
        "auth_ldap.ssl_options.fail_if_no_peer_cert",
        NoEffect(ALWAYS_SHOWN),
    ),
    ("auth_ldap.ssl_options.verify", Only(&["verify_peer"], VERIFIED)),
    (
        "auth_ldap.ssl_options.hostname_verification",
        Only(&["wildcard"], VERIFIED),
    ),
    ("auth_ldap.log", NoEffect(OUR_LOG)),
    ("auth_ldap.idle_timeout", Sets(ldap::idle)),
    ("auth_ldap.connection_pool_size", Sets(ldap::pool_size)),
    ("auth_ldap.**", Only(&[], OPTION)),
    // Answers that are kept
    (
        "auth_cache.cached_backend",
        Among(CACHES, backends::cached, CACHED),
    ),
    ("auth_cache.cache_ttl", Sets(backends::cache_ttl)),
    ("auth_cache.cache_refusals", Sets(backends::cache_refusals)),
    ("auth_cache.**", Only(&[], OPTION)),
];
