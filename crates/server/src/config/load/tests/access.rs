//! TLS, proxies, and who decides about logins.

use super::*;

#[test]
fn each_listener_looks_at_lists_of_its_own() {
    let said = config(
        "ssl_options.crl_check = peer\nmanagement.ssl.crl_check = true\nmanagement.ssl.crl_sources.1 = dir\n\
         management.ssl.crl_sources.1.path = /m\nprometheus.ssl.crl_check = best_effort\nprometheus.ssl.crl_sources.a.path = /p\n",
    );
    let found = [
        &said.tls,
        &said.management.listener.tls,
        &said.prometheus.listener.tls,
    ]
    .map(|it| it.revocation.check);
    use listener::RevocationCheck::{BestEffort, Chain, Peer};
    assert_eq!(found, [Peer, Chain, BestEffort]);
    assert_eq!(
        said.management.listener.tls.revocation.directories,
        [Path::new("/m")]
    );
    assert_eq!(
        said.prometheus.listener.tls.revocation.directories,
        [Path::new("/p")]
    );
    let older = config(
        "management.listener.ssl_opts.crl_check = peer\nmanagement.listener.ssl_opts.crl_sources.1.path = /m\n",
    );
    assert_eq!(older.management.listener.tls.revocation.check, Peer);
    assert_eq!(
        older.management.listener.tls.revocation.directories,
        [Path::new("/m")]
    );
}

#[test]
fn tls_is_spoken_as_it_was_told() {
    let said = config(
        "listeners.ssl.default = 127.0.0.1:5671\nssl_options.certfile = c.pem\nssl_options.keyfile = k.pem\n\
         ssl_options.cacertfile = ca.pem\nssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n\
         ssl_options.depth = 2\nssl_options.versions.1 = tlsv1.3\nssl_options.ciphers.1 = TLS_AES_128_GCM_SHA256\n\
         ssl_options.honor_cipher_order = true\nssl_options.reuse_sessions = false\nssl_handshake_timeout = 700\n\
         ssl_cert_login_from = subject_alternative_name\nssl_cert_login_san_type = email\nssl_cert_login_san_index = 3\n",
    );
    let tls = &said.tls;
    assert_eq!(tls.certificate.as_deref(), Some(Path::new("c.pem")));
    assert_eq!(tls.key.as_deref(), Some(Path::new("k.pem")));
    assert_eq!(tls.authorities.as_deref(), Some(Path::new("ca.pem")));
    assert!(tls.verify_peer && tls.fail_if_no_peer_cert && tls.honor_cipher_order && !tls.reuse_sessions);
    assert_eq!(
        (tls.depth, &tls.versions[..]),
        (2, &[listener::Version::Tls13][..])
    );
    assert_eq!(tls.ciphers, ["TLS_AES_128_GCM_SHA256"]);
    assert_eq!(tls.handshake_timeout.as_millis(), 700);
    let login = listener::LoginFrom::AlternativeName(listener::SanType::Email, 3);
    assert_eq!(said.certificate_login, login);
    assert_eq!(said.tls_listeners.len(), 1);
    assert_eq!(said.listeners.len(), 1, "the plain one stays");
    let left_out = warnings("ssl_options.ciphers.1 = DHE-RSA-AES256-SHA");
    assert!(
        left_out[0].contains("DHE-RSA-AES256-SHA is not spoken here"),
        "{left_out:?}"
    );
}

#[test]
fn load_balancers_are_trusted_by_name() {
    let said = config("proxy_protocol = true\nproxy_protocol_trusted_sources.1 = 10.0.0.0/8");
    assert!(said.proxy_protocol && !said.proxies.trust("8.8.8.8".parse().unwrap()));
    assert!(
        !said.stream.proxy_protocol,
        "as in RabbitMQ, streams have a key of their own"
    );
    assert_eq!(warnings("proxy_protocol_trusted_sources.1 = ::1").len(), 1);
    let said = "stream.proxy_protocol = true\nproxy_protocol_trusted_sources.1 = ::1";
    assert!(config(said).stream.proxy_protocol && !config(said).proxy_protocol);
    assert!(warnings(said).is_empty());
    assert!(error("proxy_protocol_trusted_sources.1 = 10.0.0.0/64").contains("10.0.0.0/8"));
}

#[test]
fn whoever_decides_about_logins_is_asked_in_order() {
    let links = |text: &str| config(text).identity.links();
    assert_eq!(links(""), Ok(Vec::new()));
    assert_eq!(
        links("auth_backends.1 = internal"),
        Ok(Vec::new()),
        "the catalog alone"
    );
    let (oauth2, internal) = (identity::Backend::OAuth2, identity::Backend::Internal);
    let link = |authenticates, authorizes| identity::Link {
        authenticates,
        authorizes,
    };
    assert_eq!(
        links(
            "auth_backends.2 = internal\nauth_backends.1.authn = rabbit_auth_backend_oauth2\nauth_backends.1.authz = internal"
        ),
        Ok(vec![link(oauth2, internal), link(internal, internal)])
    );
    let (http, ldap, cache) = (
        identity::Backend::Http,
        identity::Backend::Ldap,
        identity::Backend::Cache,
    );
    for (name, backend) in [("http", http), ("ldap", ldap), ("cache", cache)] {
        let text = format!("auth_backends.1.authn = {name}\nauth_backends.1.authz = internal");
        assert_eq!(links(&text), Ok(vec![link(backend, internal)]));
    }
    for (text, backend) in [("http", http), ("cache\nauth_cache.cached_backend = http", cache)] {
        assert_eq!(
            links(&format!("auth_backends.1 = {text}")),
            Ok(vec![link(backend, backend)])
        );
    }
    for text in ["ldap", "cache\nauth_cache.cached_backend = ldap"] {
        let text = format!("auth_backends.1 = {text}");
        assert!(warnings(&text)[0].contains("have all permissions"), "{text}");
        config(&format!(
            "{text}\nauth_ldap.queries.vhost_access = {{constant, false}}"
        ));
    }
    assert_eq!(
        links("auth_backends.1.authn = internal\nauth_backends.1.authz = http"),
        Ok(vec![link(internal, http)])
    );
    assert!(links("auth_backends.1.authn = oauth2\nauth_backends.1.authz = http").is_err());
    assert!(links("auth_backends.1.authn = oauth2").is_err());
    assert!(links("auth_backends.1.authn = internal\nauth_backends.1.authz = oauth2").is_err());
    let said = config(
        "auth_oauth2.resource_server_id = r\nauth_oauth2.scope_prefix = r:\nauth_oauth2.additional_scopes_key = a b.c\n\
         auth_oauth2.scope_aliases.boss = r:tag:administrator r:read:*/*\nauth_oauth2.verify_aud = false\n\
         auth_oauth2.preferred_username_claims.1 = email\nauth_oauth2.preferred_username_claims.2 = upn\n\
         auth_oauth2.signing_keys.k = k.pem\nauth_oauth2.default_key = k\nauth_oauth2.jwks_uri = https://h/k\n\
         auth_oauth2.issuer = https://h\nauth_oauth2.algorithms.1 = RS256\nauth_oauth2.https.cacertfile = ca.pem",
    );
    let oauth2 = said.identity.oauth2;
    let server = oauth2.resource_servers().unwrap().remove(0);
    assert_eq!((server.id.as_str(), server.scope_prefix.as_str()), ("r", "r:"));
    assert_eq!(server.additional_scopes, ["a", "b.c"]);
    assert_eq!(server.aliases["boss"].len(), 2);
    assert_eq!(server.username_claims, ["email", "upn", "sub", "client_id"]);
    assert!(!server.verify_audience && oauth2.root_provider.algorithms.len() == 1);
    assert!(error("auth_oauth2.jwks_uri = file:///k").contains("https://"));
    assert!(error("auth_oauth2.algorithms.1 = HS256").contains("sign with it"));
    assert!(error("auth_oauth2.resource_servers.1.zork = x").contains("is refused"));
    assert!(error("auth_oauth2.https.verify = verify_none").contains("authenticated"));
}

#[test]
fn resource_servers_and_providers_have_sections_of_their_own() {
    let said = config(
        "auth_oauth2.resource_server_id = prod\nauth_oauth2.default_oauth_provider = okta\n\
         auth_oauth2.require_exp = false\nauth_oauth2.resource_server_type = broker\n\
         auth_oauth2.resource_servers.dev.verify_aud = false\nauth_oauth2.resource_servers.dev.oauth_provider_id = own\n\
         auth_oauth2.resource_servers.x.id = test\nauth_oauth2.resource_servers.x.scope_prefix = t:\n\
         auth_oauth2.resource_servers.x.preferred_username_claims.1 = email\n\
         auth_oauth2.resource_servers.x.scope_aliases.1.alias = api://admin\n\
         auth_oauth2.resource_servers.x.scope_aliases.1.scope = t:tag:administrator t:read:*/*\n\
         auth_oauth2.oauth_providers.okta.issuer = https://okta\nauth_oauth2.oauth_providers.okta.https.depth = 2\n\
         auth_oauth2.oauth_providers.okta.discovery_endpoint_params.appid = 1\n\
         auth_oauth2.oauth_providers.own.signing_keys.k = k.pem\nauth_oauth2.oauth_providers.own.default_key = k\n\
         auth_oauth2.oauth_providers.own.algorithms.1 = ES256\nauth_oauth2.end_session_endpoint = https://out",
    );
    let oauth2 = said.identity.oauth2;
    let servers = oauth2.resource_servers().unwrap();
    let [prod, dev, test] = &servers[..] else {
        panic!("{servers:?}");
    };
    assert_eq!([&*prod.id, &*dev.id, &*test.id], ["prod", "dev", "test"]);
    assert_eq!(
        [&prod.provider, &dev.provider].map(Option::as_deref),
        [Some("okta"), Some("own")]
    );
    assert!(prod.verify_audience && !dev.verify_audience && !dev.require_expiry);
    assert_eq!((&*test.scope_prefix, &*test.username_claims[0]), ("t:", "email"));
    assert_eq!(test.aliases["api://admin"].len(), 2);
    let okta = oauth2.provider(prod.provider.as_deref());
    assert_eq!(okta.trust.depth, Some(2));
    assert_eq!(
        okta.discovery_endpoint().as_deref(),
        Some("https://okta/.well-known/openid-configuration?appid=1")
    );
    let own = oauth2.provider(dev.provider.as_deref());
    assert_eq!((own.default_key.as_deref(), own.algorithms.len()), (Some("k"), 1));
    assert_eq!(
        oauth2.root_provider.end_session_endpoint.as_deref(),
        Some("https://out")
    );
}

#[test]
fn people_log_in_to_the_pages_by_the_resource_servers_that_are_complete() {
    let oauth2 = "auth_oauth2.resource_server_id = prod\nauth_oauth2.issuer = https://idp\n\
                  auth_oauth2.resource_servers.dev.oauth_provider_id = okta\nauth_oauth2.resource_servers.off.verify_aud = true\n\
                  auth_oauth2.oauth_providers.okta.jwks_uri = https://okta/keys\n\
                  auth_oauth2.oauth_providers.okta.end_session_endpoint = https://okta/out\n";
    let sign_on = |text: &str| {
        let said = config(&format!("{oauth2}{text}"));
        said.management.sign_on.sign_on(&said.identity.oauth2)
    };
    let client = "management.oauth_enabled = true\nmanagement.oauth_client_id = pages\n";
    assert!(
        sign_on("management.oauth_client_id = pages")
            .resource_servers
            .is_empty(),
        "not enabled"
    );
    let found = sign_on(&format!(
        "{client}management.oauth_resource_servers.dev.label = Dev\nmanagement.oauth_resource_servers.off.disabled = true\n\
         management.oauth_resource_servers.1.id = prod\nmanagement.oauth_resource_servers.1.oauth_scopes = openid mq"
    ));
    let ids: Vec<&str> = found.resource_servers.keys().map(String::as_str).collect();
    assert_eq!(ids, ["prod"], "the provider of dev has no address");
    let prod = &found.resource_servers["prod"];
    assert_eq!(prod.provider_url, "https://idp");
    assert_eq!(
        prod.metadata_url.as_deref(),
        Some("https://idp/.well-known/openid-configuration")
    );
    assert_eq!(prod.client.scopes.as_deref(), Some("openid mq"));
    assert!(found.disable_basic_auth, "as in RabbitMQ");
    let found = sign_on(
        "management.oauth_enabled = true\nmanagement.oauth_disable_basic_auth = false\n\
         management.oauth_resource_servers.dev.oauth_provider_url = https://okta\n\
         management.oauth_resource_servers.dev.oauth_initiated_logon_type = idp_initiated",
    );
    assert_eq!(
        found.resource_servers.len(),
        1,
        "those of prod start here and have no client"
    );
    let dev = &found.resource_servers["dev"];
    assert_eq!(dev.end_session_endpoint.as_deref(), Some("https://okta/out"));
    assert!(!found.disable_basic_auth);
    let told = |text: &str| warnings(&format!("{oauth2}{text}")).join(" ");
    assert!(told("management.oauth_enabled = true").contains("oauth_client_id"));
    assert!(told("management.oauth_resource_servers.zork.label = Z").contains("no such resource server"));
    assert_eq!(told(client), "");
    assert!(error("management.oauth_client_secret = s3cret").contains("public client"));
    assert!(error("management.oauth_response_type = token").contains("only flow"));
}

#[test]
fn whoever_is_asked_about_passwords_is_asked_as_it_was_told() {
    let said = config(
        "auth_http.http_method = post\nauth_http.user_path = https://h/user\nauth_http.request_timeout = 300\n\
         auth_ldap.dn_lookup_bind.password = s3cret\nauth_ldap.other_bind.password = s3cret\nauth_cache.cached_backend = ldap\nauth_cache.cache_ttl = 700",
    );
    assert!(!format!("{said:?}").contains("s3cret"));
    let backends = said.identity.backends;
    assert!(backends.http.posts && backends.http.request_timeout.as_millis() == 300);
    assert!(backends.cache.of == Some(identity::Backend::Ldap) && backends.cache.ttl.as_millis() == 700);
    assert!(error("auth_http.user_path = h/user").contains("https://"));
    assert!(error("auth_http.request_timeout = 0").contains("milliseconds"));
}

#[test]
fn mechanisms_are_offered_in_the_order_of_their_numbers() {
    use gateway::amqp::Mechanism::{AmqPlain, Plain};
    let chosen = config("auth_mechanisms.2 = PLAIN\nauth_mechanisms.1 = AMQPLAIN");
    assert_eq!(
        chosen.auth_mechanisms.into_values().collect::<Vec<_>>(),
        [AmqPlain, Plain]
    );
    assert_eq!(config("anonymous_login_user = none").anonymous_user, None);
}
