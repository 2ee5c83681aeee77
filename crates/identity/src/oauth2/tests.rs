//! Tokens that are good, and the many ways in which they are not.

use super::*;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use broker::access::{ObjectKind, Verb};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpListener;
use tempfile::TempDir;

struct Issuer {
    key: EcdsaKeyPair,
    dir: TempDir,
}

impl Issuer {
    fn new() -> Self {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let dir = tempfile::tempdir().unwrap();
        // SubjectPublicKeyInfo of a point on P-256.
        let mut der = vec![
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01,
        ];
        der.extend([
            0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0,
        ]);
        der.extend_from_slice(key.public_key().as_ref());
        let text = STANDARD.encode(der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
        std::fs::write(dir.path().join("key.pem"), pem).unwrap();
        Self { key, dir }
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.root.id = Some("rabbit".into());
        settings.root_provider = self.provider();
        settings
    }

    fn provider(&self) -> ProviderSettings {
        ProviderSettings {
            signing_keys: [("one".to_owned(), self.dir.path().join("key.pem"))].into(),
            ..ProviderSettings::default()
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> Vec<u8> {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into_bytes()
    }

    fn key_set(&self) -> Value {
        let point = self.key.public_key().as_ref();
        let part = |from: usize| URL_SAFE_NO_PAD.encode(&point[from..from + 32]);
        json!({"keys": [
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "EC", "crv": "P-256", "use": "sig", "kid": "two", "x": part(1), "y": part(33)},
        ]})
    }
}

fn header() -> Value {
    json!({"alg": "ES256", "kid": "one"})
}

fn claims() -> Value {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 1000;
    json!({"sub": "jane", "aud": ["rabbit", "other"], "exp": until, "scope": "rabbit.read:*/q rabbit.tag:management other.write:*/*"})
}

fn with(mut claims: Value, name: &str, value: Value) -> Value {
    claims[name] = value;
    claims
}

#[test]
fn a_good_token_names_its_user_tags_and_rights() {
    let issuer = Issuer::new();
    let oauth2 = OAuth2::open(&issuer.settings()).unwrap();
    let user = oauth2.user(&issuer.sign(&header(), &claims()), false).unwrap();
    assert_eq!(
        (&*user.name, &user.tags[..]),
        ("jane", &["management".to_owned()][..])
    );
    let rights = user.rights.unwrap();
    assert!(rights.may("/", Verb::Read, ObjectKind::Queue, "q"));
    assert!(
        !rights.may("/", Verb::Write, ObjectKind::Queue, "q"),
        "that scope is for another server"
    );
    assert!(rights.until().unwrap() > SystemTime::now());
}

#[test]
fn wrong_tokens_are_refused_and_not_repeated() {
    let issuer = Issuer::new();
    let oauth2 = OAuth2::open(&issuer.settings()).unwrap();
    let good = issuer.sign(&header(), &claims());
    let other = issuer.sign(&header(), &with(claims(), "sub", json!("root")));
    let end = |token: &[u8]| token.iter().rposition(|byte| *byte == b'.').unwrap();
    let forged = [&other[..end(&other)], &good[end(&good)..]].concat();
    let signed = |header: &Value, claims: &Value| issuer.sign(header, claims);
    let aud = Refused::Audience("\"rabbit\"".into());
    for (token, refused) in [
        (
            b"guest".to_vec(),
            Refused::Malformed("it is not a signed JSON Web Token"),
        ),
        (
            Vec::new(),
            Refused::Malformed("it is not a signed JSON Web Token"),
        ),
        (vec![b'.'; 100_000], Refused::Malformed("it is too long")),
        (forged, Refused::Signature),
        (Issuer::new().sign(&header(), &claims()), Refused::Signature),
        (
            signed(&json!({"alg": "none"}), &claims()),
            Refused::Malformed("it is signed in a way that is not accepted"),
        ),
        (
            signed(&json!({"alg": "HS256", "kid": "one"}), &claims()),
            Refused::Malformed("it is signed in a way that is not accepted"),
        ),
        (
            signed(&json!({"alg": "RS256", "kid": "one"}), &claims()),
            Refused::Signature,
        ),
        (
            signed(&json!({"alg": "ES256", "kid": "else"}), &claims()),
            Refused::UnknownKey("else".into()),
        ),
        (
            signed(&header(), &with(claims(), "exp", json!(1))),
            Refused::Expired,
        ),
        (
            signed(&header(), &with(claims(), "exp", json!("soon"))),
            Refused::Malformed("it does not say until when it is good"),
        ),
        (
            signed(&header(), &with(claims(), "nbf", json!(99_999_999_999_u64))),
            Refused::Malformed("it is not good yet"),
        ),
        (
            signed(&header(), &with(claims(), "aud", json!("other"))),
            aud.clone(),
        ),
        (signed(&header(), &with(claims(), "aud", Value::Null)), aud),
    ] {
        let found = oauth2.user(&token, false).unwrap_err();
        assert_eq!(found, refused);
        assert!(!found.to_string().contains("eyJ"), "{found}");
    }
}

#[test]
fn scopes_come_in_many_forms() {
    let issuer = Issuer::new();
    let mut settings = issuer.settings();
    settings.root_provider.default_key = Some("one".into());
    let root = &mut settings.root;
    root.scope_prefix = Some(String::new());
    root.additional_scopes = Some(vec!["roles".into(), "realm.access".into()]);
    let boss = ["tag:administrator", "write:*/*"].map(str::to_owned).into();
    root.aliases.named.insert("boss".into(), boss);
    root.username_claims = vec!["preferred_username".into()];
    root.verify_audience = Some(false);
    let oauth2 = OAuth2::open(&settings).unwrap();
    let mut claims = claims();
    claims["scope"] = json!(["read:*/a"]);
    claims["roles"] = json!("boss");
    claims["realm"] = json!({"access": ["configure:*/c"]});
    claims["preferred_username"] = json!("Jane Doe");
    let user = oauth2
        .user(&issuer.sign(&json!({"alg": "ES256"}), &claims), false)
        .unwrap();
    assert_eq!(
        (&*user.name, &user.tags[..]),
        ("Jane Doe", &["administrator".to_owned()][..])
    );
    let rights = user.rights.unwrap();
    for (verb, name) in [(Verb::Read, "a"), (Verb::Write, "b"), (Verb::Configure, "c")] {
        assert!(rights.may("/", verb, ObjectKind::Queue, name), "{verb:?}");
    }
}

/// A server that answers one request after the other with what it has, and counts them.
fn server(answers: Vec<String>) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let own = address.clone();
    let serving = std::thread::spawn(move || {
        for answer in answers {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let _ = socket.read(&mut request).unwrap();
            let body = answer.replace("SERVER", &own);
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            socket.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    (address, serving)
}

#[test]
fn a_server_is_asked_for_its_keys_when_a_token_names_one_and_not_for_each_that_is_made_up() {
    let issuer = Issuer::new();
    let discovery = json!({"jwks_uri": "SERVER/keys"}).to_string();
    let (address, serving) = server(vec![discovery, issuer.key_set().to_string()]);
    let mut settings = issuer.settings();
    settings.root_provider.issuer = Some(address.clone());
    let oauth2 = OAuth2::open(&settings).unwrap();
    let two = json!({"alg": "ES256", "kid": "two"});
    let token = issuer.sign(&two, &with(claims(), "iss", json!(address)));
    assert_eq!(
        oauth2.user(&token, false).unwrap_err(),
        Refused::UnknownKey("two".into())
    );
    assert_eq!(&*oauth2.user(&token, true).unwrap().name, "jane");
    assert_eq!(&*oauth2.user(&token, false).unwrap().name, "jane");
    serving.join().unwrap();
    let made_up = issuer.sign(&json!({"alg": "ES256", "kid": "three"}), &claims());
    assert_eq!(
        oauth2.user(&made_up, true).unwrap_err(),
        Refused::UnknownKey("three".into())
    );
    let other = issuer.sign(&two, &with(claims(), "iss", json!("http://other")));
    assert_eq!(
        oauth2.user(&other, false).unwrap_err(),
        Refused::Malformed("it is another issuer's")
    );
}

#[test]
fn nobody_comes_in_while_the_server_cannot_be_asked() {
    let issuer = Issuer::new();
    let mut settings = issuer.settings();
    settings.root_provider.signing_keys.clear();
    settings.root_provider.key_set = Some("http://127.0.0.1:1/keys".into());
    let oauth2 = OAuth2::open(&settings).unwrap();
    let refused = oauth2.user(&issuer.sign(&header(), &claims()), true).unwrap_err();
    assert!(matches!(refused, Refused::Server(_)), "{refused:?}");
}

#[test]
fn settings_without_which_nothing_works_are_named() {
    let issuer = Issuer::new();
    let without = |change: fn(&mut Settings)| {
        let mut settings = issuer.settings();
        change(&mut settings);
        OAuth2::open(&settings).unwrap_err()
    };
    assert!(without(|it| it.root.id = None).contains("resource_server_id"));
    assert!(without(|it| it.root_provider.signing_keys.clear()).contains("jwks_uri"));
    let missing = without(|it| {
        let keys = &mut it.root_provider.signing_keys;
        *keys.get_mut("one").unwrap() = "no.pem".into();
    });
    assert!(missing.contains("signing_keys.one no.pem"), "{missing}");
}

#[test]
fn each_resource_server_takes_the_tokens_of_its_own_provider() {
    let (first, second) = (Issuer::new(), Issuer::new());
    let mut settings = first.settings();
    let test = ResourceServerSettings {
        provider: Some("second".into()),
        ..ResourceServerSettings::default()
    };
    settings.resource_servers.insert("test".into(), test);
    settings.providers.insert("second".into(), second.provider());
    let oauth2 = OAuth2::open(&settings).unwrap();
    let user = |issuer: &Issuer, aud: &str| {
        let claims = with(claims(), "scope", json!("rabbit.read:*/r test.read:*/t"));
        oauth2.user(&issuer.sign(&header(), &with(claims, "aud", json!(aud))), false)
    };
    let reads = |user: User, name: &str| {
        let rights = user.rights.unwrap();
        rights.may("/", Verb::Read, ObjectKind::Queue, name)
    };
    assert!(reads(user(&first, "rabbit").unwrap(), "r"));
    assert!(reads(user(&second, "test").unwrap(), "t"));
    assert!(
        !reads(user(&second, "test").unwrap(), "r"),
        "a scope of the other one"
    );
    assert_eq!(user(&second, "rabbit").unwrap_err(), Refused::Signature);
    assert_eq!(user(&first, "test").unwrap_err(), Refused::Signature);
    let both = user(&first, "rabbit test").unwrap_err();
    assert!(
        both.to_string().contains("more than one resource server"),
        "{both}"
    );
    let none = user(&first, "zork").unwrap_err();
    assert_eq!(
        none.to_string(),
        "the token is refused: it is not for \"rabbit\" or \"test\" (claim aud)"
    );
}

#[test]
fn a_token_without_an_audience_is_for_the_one_that_does_not_look_at_it() {
    let issuer = Issuer::new();
    let mut settings = issuer.settings();
    let open = ResourceServerSettings {
        verify_audience: Some(false),
        ..ResourceServerSettings::default()
    };
    settings.resource_servers.insert("open".into(), open.clone());
    let token = issuer.sign(&header(), &with(claims(), "aud", Value::Null));
    let named = |settings: &Settings| OAuth2::open(settings).unwrap().user(&token, false);
    assert_eq!(&*named(&settings).unwrap().name, "jane");
    settings.resource_servers.insert("too".into(), open);
    let refused = named(&settings).unwrap_err().to_string();
    assert!(
        refused.contains("does not say which resource server"),
        "{refused}"
    );
}

#[test]
fn a_token_without_an_end_counts_where_none_is_required() {
    let issuer = Issuer::new();
    let mut settings = issuer.settings();
    let mut endless = claims();
    endless.as_object_mut().unwrap().remove("exp");
    let token = issuer.sign(&header(), &endless);
    let user = |settings: &Settings, token: &[u8]| OAuth2::open(settings).unwrap().user(token, false);
    let refused = Refused::Malformed("it does not say until when it is good");
    assert_eq!(user(&settings, &token).unwrap_err(), refused);
    settings.root.require_expiry = Some(false);
    assert_eq!(user(&settings, &token).unwrap().rights.unwrap().until(), None);
    let wrong = issuer.sign(&header(), &with(claims(), "exp", json!("soon")));
    assert_eq!(user(&settings, &wrong).unwrap_err(), refused);
    let late = issuer.sign(&header(), &with(claims(), "exp", json!(1)));
    assert_eq!(user(&settings, &late).unwrap_err(), Refused::Expired);
}

#[test]
fn a_header_with_something_that_must_be_understood_is_refused() {
    let issuer = Issuer::new();
    let mut header = header();
    header["crit"] = json!(["exp"]);
    let oauth2 = OAuth2::open(&issuer.settings()).unwrap();
    let refused = oauth2.user(&issuer.sign(&header, &claims()), false).unwrap_err();
    assert_eq!(
        refused,
        Refused::Malformed("it is signed in a way that is not accepted")
    );
}
