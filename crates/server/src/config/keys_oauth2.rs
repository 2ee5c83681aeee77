//! The keys of tokens (`auth_oauth2.*`). Those of a provider and of a resource server stand twice: directly below, and
//! in sections.

use super::keys::Rule::{self, NoEffect, Only, Sets};
use super::keys_identity::{ALWAYS_SHOWN, VERIFIED};
use super::{rules_oauth2 as oauth2, rules_trust as trust};

const OAUTH: &str = "this option of OAuth 2 is not part of this version, and tokens must not mean more or less than they were told to";
const REVOKED: &str = "revocation lists are not asked for here; certificates of an authorization server are trusted until they expire";

/// Keys by pattern, as in [`super::keys::KEYS`].
pub const OAUTH2: &[(&str, Rule)] = &[
    // Resource servers
    ("auth_oauth2.resource_server_id", Sets(oauth2::id)),
    (
        "auth_oauth2.default_oauth_provider",
        Sets(oauth2::provider_of_server),
    ),
    (
        "auth_oauth2.additional_scopes_key",
        Sets(oauth2::additional_scopes),
    ),
    ("auth_oauth2.scope_prefix", Sets(oauth2::scope_prefix)),
    ("auth_oauth2.resource_server_type", Sets(oauth2::kind)),
    ("auth_oauth2.scope_aliases.*", Sets(oauth2::scope_alias)),
    ("auth_oauth2.scope_aliases.*.*", Sets(oauth2::numbered_alias)),
    ("auth_oauth2.verify_aud", Sets(oauth2::verify_aud)),
    ("auth_oauth2.require_exp", Sets(oauth2::require_exp)),
    (
        "auth_oauth2.preferred_username_claims.*",
        Sets(oauth2::username_claim),
    ),
    ("auth_oauth2.resource_servers.*.id", Sets(oauth2::id)),
    (
        "auth_oauth2.resource_servers.*.oauth_provider_id",
        Sets(oauth2::provider_of_server),
    ),
    (
        "auth_oauth2.resource_servers.*.additional_scopes_key",
        Sets(oauth2::additional_scopes),
    ),
    (
        "auth_oauth2.resource_servers.*.scope_prefix",
        Sets(oauth2::scope_prefix),
    ),
    (
        "auth_oauth2.resource_servers.*.resource_server_type",
        Sets(oauth2::kind),
    ),
    (
        "auth_oauth2.resource_servers.*.scope_aliases.*",
        Sets(oauth2::scope_alias),
    ),
    (
        "auth_oauth2.resource_servers.*.scope_aliases.*.*",
        Sets(oauth2::numbered_alias),
    ),
    (
        "auth_oauth2.resource_servers.*.verify_aud",
        Sets(oauth2::verify_aud),
    ),
    (
        "auth_oauth2.resource_servers.*.require_exp",
        Sets(oauth2::require_exp),
    ),
    (
        "auth_oauth2.resource_servers.*.preferred_username_claims.*",
        Sets(oauth2::username_claim),
    ),
    // Providers
    ("auth_oauth2.jwks_url", Sets(oauth2::key_set)),
    ("auth_oauth2.default_key", Sets(oauth2::default_key)),
    ("auth_oauth2.signing_keys.*", Sets(oauth2::signing_key)),
    ("auth_oauth2.algorithms.*", Sets(oauth2::algorithm)),
    ("auth_oauth2.issuer", Sets(oauth2::issuer)),
    ("auth_oauth2.jwks_uri", Sets(oauth2::key_set)),
    (
        "auth_oauth2.authorization_endpoint",
        Sets(oauth2::authorization_endpoint),
    ),
    ("auth_oauth2.token_endpoint", Sets(oauth2::token_endpoint)),
    (
        "auth_oauth2.end_session_endpoint",
        Sets(oauth2::end_session_endpoint),
    ),
    (
        "auth_oauth2.discovery_endpoint_path",
        Sets(oauth2::discovery_path),
    ),
    (
        "auth_oauth2.discovery_endpoint_params.*",
        Sets(oauth2::discovery_param),
    ),
    ("auth_oauth2.https.cacertfile", Sets(trust::authorities)),
    ("auth_oauth2.https.depth", Sets(trust::depth)),
    ("auth_oauth2.https.verify", Only(&["verify_peer"], VERIFIED)),
    (
        "auth_oauth2.https.peer_verification",
        Only(&["verify_peer"], VERIFIED),
    ),
    (
        "auth_oauth2.https.hostname_verification",
        Only(&["wildcard"], VERIFIED),
    ),
    ("auth_oauth2.https.crl_check", Only(&["false"], REVOKED)),
    ("auth_oauth2.https.fail_if_no_peer_cert", NoEffect(ALWAYS_SHOWN)),
    (
        "auth_oauth2.oauth_providers.*.default_key",
        Sets(oauth2::default_key),
    ),
    (
        "auth_oauth2.oauth_providers.*.signing_keys.*",
        Sets(oauth2::signing_key),
    ),
    (
        "auth_oauth2.oauth_providers.*.algorithms.*",
        Sets(oauth2::algorithm),
    ),
    ("auth_oauth2.oauth_providers.*.issuer", Sets(oauth2::issuer)),
    ("auth_oauth2.oauth_providers.*.jwks_uri", Sets(oauth2::key_set)),
    (
        "auth_oauth2.oauth_providers.*.authorization_endpoint",
        Sets(oauth2::authorization_endpoint),
    ),
    (
        "auth_oauth2.oauth_providers.*.token_endpoint",
        Sets(oauth2::token_endpoint),
    ),
    (
        "auth_oauth2.oauth_providers.*.end_session_endpoint",
        Sets(oauth2::end_session_endpoint),
    ),
    (
        "auth_oauth2.oauth_providers.*.discovery_endpoint_path",
        Sets(oauth2::discovery_path),
    ),
    (
        "auth_oauth2.oauth_providers.*.discovery_endpoint_params.*",
        Sets(oauth2::discovery_param),
    ),
    (
        "auth_oauth2.oauth_providers.*.https.cacertfile",
        Sets(trust::authorities),
    ),
    ("auth_oauth2.oauth_providers.*.https.depth", Sets(trust::depth)),
    (
        "auth_oauth2.oauth_providers.*.https.verify",
        Only(&["verify_peer"], VERIFIED),
    ),
    (
        "auth_oauth2.oauth_providers.*.https.peer_verification",
        Only(&["verify_peer"], VERIFIED),
    ),
    (
        "auth_oauth2.oauth_providers.*.https.hostname_verification",
        Only(&["wildcard"], VERIFIED),
    ),
    (
        "auth_oauth2.oauth_providers.*.https.crl_check",
        Only(&["false"], REVOKED),
    ),
    (
        "auth_oauth2.oauth_providers.*.https.fail_if_no_peer_cert",
        NoEffect(ALWAYS_SHOWN),
    ),
    ("auth_oauth2.**", Only(&[], OAUTH)),
];
