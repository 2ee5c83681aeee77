//! The part of the configuration in force that is about logins: backends, tokens, single sign-on.

use super::super::IdentityOptions;
use super::super::rules_backends::BackendOptions;
use super::super::rules_ldap::LdapOptions;
use super::super::rules_sign_on::{SignOnOptions, SignOnSection};
use super::{MASK, NONE, Sheet, debug, debug_lower, without_password};
use identity::Trust;
use identity::oauth2::{ProviderSettings, ResourceServerSettings, Settings};
use std::time::Duration;

pub(super) fn identity(sheet: &mut Sheet, identity: &IdentityOptions) {
    for (number, (authn, authz)) in &identity.chain {
        let name = |it: &Option<identity::Backend>| it.map_or(NONE.to_owned(), debug_lower);
        match authn == authz {
            true => sheet.put(format!("auth_backends.{number}"), name(authn)),
            false => {
                sheet.put(format!("auth_backends.{number}.authn"), name(authn));
                sheet.put(format!("auth_backends.{number}.authz"), name(authz));
            }
        }
    }
    oauth2(sheet, &identity.oauth2);
    backends(sheet, &identity.backends);
}

pub(super) fn sign_on(sheet: &mut Sheet, options: &SignOnOptions) {
    let basic = options.disable_basic_auth.unwrap_or(true);
    sheet.put("management.oauth_enabled", options.enabled);
    sheet.put("management.oauth_disable_basic_auth", basic);
    sign_on_section(sheet, "management", &options.root);
    for (name, section) in &options.resource_servers {
        let place = format!("management.oauth_resource_servers.{name}");
        sheet.maybe(format!("{place}.id"), section.id.as_ref());
        sheet.maybe(format!("{place}.label"), section.label.as_ref());
        sheet.put(format!("{place}.disabled"), section.disabled);
        sign_on_section(sheet, &place, section);
    }
}

fn sign_on_section(sheet: &mut Sheet, place: &str, section: &SignOnSection) {
    let key = |name: &str| format!("{place}.oauth_{name}");
    for (name, address) in [
        ("provider_url", &section.provider_url),
        ("metadata_url", &section.metadata_url),
    ] {
        sheet.maybe(key(name), address.as_deref().map(without_password));
    }
    let client = &section.client;
    sheet.maybe(key("client_id"), client.client_id.as_ref());
    sheet.maybe(key("scopes"), client.scopes.as_ref());
    let from = |idp| if idp { "idp_initiated" } else { "sp_initiated" };
    sheet.maybe(key("initiated_logon_type"), client.idp_initiated.map(from));
    for (kind, params) in [
        ("authorization_endpoint_params", &client.authorization_params),
        ("token_endpoint_params", &client.token_params),
    ] {
        for (name, value) in params {
            sheet.put(key(&format!("{kind}.{name}")), value);
        }
    }
}

fn oauth2(sheet: &mut Sheet, oauth2: &Settings) {
    resource_server(
        sheet,
        "auth_oauth2",
        ["resource_server_id", "default_oauth_provider"],
        &oauth2.root,
    );
    for (name, server) in &oauth2.resource_servers {
        let section = format!("auth_oauth2.resource_servers.{name}");
        resource_server(sheet, &section, ["id", "oauth_provider_id"], server);
    }
    provider(sheet, "auth_oauth2", &oauth2.root_provider);
    for (name, it) in &oauth2.providers {
        provider(sheet, &format!("auth_oauth2.oauth_providers.{name}"), it);
    }
}

fn resource_server(
    sheet: &mut Sheet,
    section: &str,
    [id, provider]: [&str; 2],
    server: &ResourceServerSettings,
) {
    let key = |name: &str| format!("{section}.{name}");
    sheet.maybe(key(id), server.id.as_ref());
    sheet.maybe(key(provider), server.provider.as_ref());
    sheet.maybe(key("scope_prefix"), server.scope_prefix.as_ref());
    let paths = server.additional_scopes.iter().flatten();
    sheet.list(key("additional_scopes_key"), paths, NONE);
    for (alias, scopes) in &server.aliases.named {
        sheet.put(key(&format!("scope_aliases.{alias}")), scopes.join(" "));
    }
    for (number, (alias, scopes)) in &server.aliases.numbered {
        sheet.maybe(key(&format!("scope_aliases.{number}.alias")), alias.as_ref());
        sheet.put(key(&format!("scope_aliases.{number}.scope")), scopes.join(" "));
    }
    sheet.put(key("verify_aud"), server.verify_audience.unwrap_or(true));
    sheet.put(key("require_exp"), server.require_expiry.unwrap_or(true));
    sheet.maybe(key("resource_server_type"), server.kind.as_ref());
    sheet.list(key("preferred_username_claims"), &server.username_claims, NONE);
}

fn provider(sheet: &mut Sheet, section: &str, provider: &ProviderSettings) {
    let key = |name: &str| format!("{section}.{name}");
    for (id, path) in &provider.signing_keys {
        sheet.put(key(&format!("signing_keys.{id}")), path.display());
    }
    sheet.maybe(key("default_key"), provider.default_key.as_ref());
    for (name, address) in [
        ("jwks_uri", &provider.key_set),
        ("issuer", &provider.issuer),
        ("authorization_endpoint", &provider.authorization_endpoint),
        ("token_endpoint", &provider.token_endpoint),
        ("end_session_endpoint", &provider.end_session_endpoint),
    ] {
        sheet.maybe(key(name), address.as_deref().map(without_password));
    }
    sheet.maybe(key("discovery_endpoint_path"), provider.discovery_path.as_ref());
    for (name, value) in &provider.discovery_params {
        sheet.put(key(&format!("discovery_endpoint_params.{name}")), value);
    }
    sheet.list(key("algorithms"), provider.algorithms.iter().map(debug), "all");
    sheet.path(key("https.cacertfile"), &provider.trust.authorities);
    sheet.maybe(key("https.depth"), provider.trust.depth);
}

fn backends(sheet: &mut Sheet, backends: &BackendOptions) {
    let http = &backends.http;
    let key = |name: &str| format!("auth_http.{name}");
    sheet.put(key("http_method"), if http.posts { "post" } else { "get" });
    for (name, path) in [
        ("user_path", &http.user_path),
        ("vhost_path", &http.vhost_path),
        ("resource_path", &http.resource_path),
        ("topic_path", &http.topic_path),
    ] {
        let path = Some(path.as_str()).filter(|path| !path.is_empty());
        sheet.maybe(key(name), path.map(without_password));
    }
    sheet.put(key("request_timeout"), http.request_timeout.as_millis());
    sheet.put(key("connection_timeout"), http.connection_timeout.as_millis());
    trust(sheet, "auth_http.ssl_options", &http.trust);
    directory(sheet, &backends.ldap);
    let cache = &backends.cache;
    let key = |name: &str| format!("auth_cache.{name}");
    sheet.maybe(key("cached_backend"), cache.of.map(debug_lower));
    sheet.put(key("cache_ttl"), cache.ttl.as_millis());
    sheet.put(key("cache_refusals"), cache.refusals);
}

fn directory(sheet: &mut Sheet, ldap: &LdapOptions) {
    let key = |name: &str| format!("auth_ldap.{name}");
    let settings = &ldap.settings;
    sheet.list(key("servers"), ldap.servers.values(), NONE);
    sheet.put(key("port"), settings.port);
    sheet.put(key("timeout"), settings.timeout.as_millis());
    let idle = match settings.idle {
        Duration::MAX => "infinity".to_owned(),
        idle => idle.as_millis().to_string(),
    };
    sheet.put(key("idle_timeout"), idle);
    sheet.put(key("connection_pool_size"), settings.most_idle);
    sheet.put(key("use_ssl"), ldap.use_ssl);
    sheet.put(key("use_starttls"), ldap.use_starttls);
    for (name, otherwise) in [
        ("user_dn_pattern", "${username}"),
        ("user_bind_pattern", NONE),
        ("queries.vhost_access", "{constant, true}"),
        ("queries.resource_access", "{constant, true}"),
        ("queries.topic_access", "{constant, true}"),
        ("queries.tags", "[]"),
    ] {
        let said = ldap.texts.get(name.trim_start_matches("queries."));
        sheet.put(key(name), said.map_or(otherwise, String::as_str));
    }
    sheet.maybe(key("dn_lookup_attribute"), ldap.attribute.as_ref());
    sheet.maybe(key("dn_lookup_base"), ldap.base.as_ref());
    sheet.maybe(key("group_lookup_base"), settings.group_base.as_ref());
    for (name, bind) in [
        ("dn_lookup_bind", &ldap.lookup_bind),
        ("other_bind", &ldap.other_bind),
    ] {
        let word = match (&bind.word, &bind.name) {
            (Some(word), _) => debug(word),
            (None, Some(_)) => ".user_dn".to_owned(),
            (None, None) => "as_user".to_owned(),
        };
        sheet.put(key(name), word);
        sheet.maybe(key(&format!("{name}.user_dn")), bind.name.as_ref());
        sheet.put(key(&format!("{name}.password")), MASK);
    }
    trust(sheet, "auth_ldap.ssl_options", &settings.trust);
}

/// TLS where the node is the client.
pub(super) fn trust(sheet: &mut Sheet, section: &str, trust: &Trust) {
    let key = |name: &str| format!("{section}.{name}");
    sheet.path(key("cacertfile"), &trust.authorities);
    sheet.path(key("certfile"), &trust.certificate);
    sheet.path(key("keyfile"), &trust.key);
    sheet.maybe(key("depth"), trust.depth);
    sheet.maybe(key("sni"), trust.server_name.as_ref());
    let versions = [
        (trust.versions.tls12, "tlsv1.2"),
        (trust.versions.tls13, "tlsv1.3"),
    ];
    let versions = versions.into_iter().filter(|(spoken, _)| *spoken);
    sheet.list(key("versions"), versions.map(|(_, name)| name), "all");
}
