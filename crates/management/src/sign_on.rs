//! Single sign-on in the web UI: `/api/auth` says by which OAuth 2 providers people log in, and `/login` takes the
//! tokens of those who come from a provider's own pages. The pages do the rest; no token and no session is kept here.

use crate::query::Query;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Where providers send those who log in on their own pages, below the prefix of all paths.
pub const LOGIN: &str = "/login";

/// How people log in by OAuth 2 (`management.oauth_*`), in RabbitMQ's terms. Without resource servers they don't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignOn {
    /// Those that people may log in to, by their ids.
    pub resource_servers: BTreeMap<String, SignOnServer>,
    /// There is no form for a name and a password.
    pub disable_basic_auth: bool,
    /// What counts for all that say nothing else.
    pub defaults: SignOnClient,
}

/// What the pages tell a provider about themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignOnClient {
    /// Their name there.
    pub client_id: Option<String>,
    /// The scopes that they ask for.
    pub scopes: Option<String>,
    /// People log in on the provider's own pages, which send them here.
    pub idp_initiated: Option<bool>,
    /// Further parameters of the request to log in.
    pub authorization_params: BTreeMap<String, String>,
    /// Further parameters of the request for a token.
    pub token_params: BTreeMap<String, String>,
}

/// A resource server to which people log in, and its provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignOnServer {
    /// What it is called on the button.
    pub label: Option<String>,
    /// The address of the provider.
    pub provider_url: String,
    /// Where the provider describes itself, if not in the well-known place below that.
    pub metadata_url: Option<String>,
    /// Where people log in, if the provider's description is not to say so.
    pub authorization_endpoint: Option<String>,
    /// Where the pages get tokens, likewise.
    pub token_endpoint: Option<String>,
    /// Where people log out, likewise.
    pub end_session_endpoint: Option<String>,
    /// What it says itself.
    pub client: SignOnClient,
}

impl SignOn {
    /// The sites that the pages must be allowed to ask: all with TLS, since a provider's description names further
    /// ones, and those without it that are configured.
    pub fn origins(&self) -> String {
        let mut origins = vec!["https:".to_owned()];
        for server in self.resource_servers.values() {
            let addresses = [&server.metadata_url, &server.token_endpoint];
            let addresses = addresses.into_iter().flatten().chain([&server.provider_url]);
            origins.extend(addresses.filter_map(|address| origin(address)));
        }
        origins.sort();
        origins.dedup();
        origins.join(" ")
    }

    /// What `/api/auth` answers.
    pub fn json(&self) -> Value {
        if self.resource_servers.is_empty() {
            return json!({"oauth_enabled": false});
        }
        let servers = self.resource_servers.iter();
        let servers: Map<String, Value> = servers
            .map(|(id, server)| (id.clone(), server.json(id)))
            .collect();
        let mut fields = Map::new();
        fields.insert("oauth_enabled".into(), true.into());
        fields.insert("oauth_resource_servers".into(), servers.into());
        fields.insert("oauth_disable_basic_auth".into(), self.disable_basic_auth.into());
        self.defaults.write(&mut fields);
        fields.into()
    }
}

impl SignOnServer {
    fn json(&self, id: &str) -> Value {
        let mut fields = Map::new();
        fields.insert("id".into(), id.into());
        fields.insert("oauth_provider_url".into(), self.provider_url.as_str().into());
        for (name, value) in [
            ("label", &self.label),
            ("oauth_metadata_url", &self.metadata_url),
            ("authorization_endpoint", &self.authorization_endpoint),
            ("token_endpoint", &self.token_endpoint),
            ("end_session_endpoint", &self.end_session_endpoint),
        ] {
            if let Some(value) = value {
                fields.insert(name.into(), value.as_str().into());
            }
        }
        self.client.write(&mut fields);
        fields.into()
    }
}

impl SignOnClient {
    fn write(&self, fields: &mut Map<String, Value>) {
        for (name, value) in [
            ("oauth_client_id", &self.client_id),
            ("oauth_scopes", &self.scopes),
        ] {
            if let Some(value) = value {
                fields.insert(name.into(), value.as_str().into());
            }
        }
        if let Some(idp) = self.idp_initiated {
            let word = if idp { "idp_initiated" } else { "sp_initiated" };
            fields.insert("oauth_initiated_logon_type".into(), word.into());
        }
        for (name, params) in [
            ("oauth_authorization_endpoint_params", &self.authorization_params),
            ("oauth_token_endpoint_params", &self.token_params),
        ] {
            if !params.is_empty() {
                fields.insert(name.into(), json!(params));
            }
        }
    }
}

/// The site of an address without TLS.
fn origin(address: &str) -> Option<String> {
    let rest = address.strip_prefix("http://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let fits = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]".contains(letter);
    (!host.is_empty() && host.chars().all(fits)).then(|| format!("http://{host}"))
}

/// Where a browser goes that brings a token in the form of a provider: to the pages, which find the token behind the number sign,
/// where no server and no log sees it. `None` if the form has no token.
pub fn forward(form: &[u8]) -> Option<String> {
    let form = Query::parse(std::str::from_utf8(form).ok()?);
    let token = form.get("access_token")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    (!token.is_empty() && token.bytes().all(fits)).then(|| format!("./#access_token={token}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_resource_servers_nobody_logs_in_by_oauth() {
        assert_eq!(SignOn::default().json(), json!({"oauth_enabled": false}));
    }

    #[test]
    fn what_the_pages_must_know_is_said_in_the_terms_of_rabbitmq() {
        let server = SignOnServer {
            label: Some("Production".into()),
            provider_url: "http://127.0.0.1:8080/uaa".into(),
            metadata_url: Some("https://idp/.well-known".into()),
            client: SignOnClient {
                idp_initiated: Some(true),
                ..SignOnClient::default()
            },
            ..SignOnServer::default()
        };
        let sign_on = SignOn {
            resource_servers: [("prod".to_owned(), server)].into(),
            disable_basic_auth: true,
            defaults: SignOnClient {
                client_id: Some("pages".into()),
                token_params: [("resource".to_owned(), "mq".to_owned())].into(),
                ..SignOnClient::default()
            },
        };
        assert_eq!(
            sign_on.json(),
            json!({
                "oauth_enabled": true,
                "oauth_disable_basic_auth": true,
                "oauth_client_id": "pages",
                "oauth_token_endpoint_params": {"resource": "mq"},
                "oauth_resource_servers": {"prod": {
                    "id": "prod",
                    "label": "Production",
                    "oauth_provider_url": "http://127.0.0.1:8080/uaa",
                    "oauth_metadata_url": "https://idp/.well-known",
                    "oauth_initiated_logon_type": "idp_initiated",
                }},
            })
        );
        assert_eq!(sign_on.origins(), "http://127.0.0.1:8080 https:");
    }

    #[test]
    fn origins_that_are_none_reach_no_header() {
        for address in ["https://h", "http://", "http://a;b/c", "ftp://x", "http://a b"] {
            assert_eq!(origin(address), None, "{address}");
        }
        assert_eq!(origin("http://me:secret@h:1/x").as_deref(), Some("http://h:1"));
    }

    #[test]
    fn a_provider_s_form_leads_to_the_pages_with_its_token() {
        assert_eq!(
            forward(b"access_token=a.b-c_").as_deref(),
            Some("./#access_token=a.b-c_")
        );
        for form in [
            &b""[..],
            b"access_token=",
            b"access_token=%0d%0aset-cookie",
            b"\xff",
            b"token=x",
        ] {
            assert_eq!(forward(form), None);
        }
    }
}
