//! How tokens are read (`auth_oauth2.*`): resource servers, which tokens are for, and providers, which sign them.

use super::token::Algorithm;
use crate::tls::Trust;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where a provider describes itself, below its issuer (OpenID Connect Discovery 1.0, 4).
const WELL_KNOWN: &str = ".well-known/openid-configuration";
/// RabbitMQ's defaults of `preferred_username_claims`.
const USERNAME_CLAIMS: [&str; 2] = ["sub", "client_id"];

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The keys directly below `auth_oauth2`: the resource server with their `resource_server_id`, and the defaults of
    /// the others.
    pub root: ResourceServerSettings,
    /// `resource_servers.NAME.*`.
    pub resource_servers: BTreeMap<String, ResourceServerSettings>,
    /// The provider whose keys stand directly below `auth_oauth2`.
    pub root_provider: ProviderSettings,
    /// `oauth_providers.NAME.*`.
    pub providers: BTreeMap<String, ProviderSettings>,
}

/// A resource server: a name under which tokens are for this node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceServerSettings {
    /// `resource_server_id`, `.id`: its name in the claim `aud`; `None` is the NAME in the key.
    pub id: Option<String>,
    /// `scope_prefix`: what its scopes begin with; `None` is its name and a dot.
    pub scope_prefix: Option<String>,
    /// `additional_scopes_key`: further claims with scopes; dots go into objects.
    pub additional_scopes: Option<Vec<String>>,
    /// `scope_aliases`: scopes that stand for others.
    pub aliases: ScopeAliases,
    /// `preferred_username_claims`: the first of these that a token has is the user's name; empty is those of the root.
    pub username_claims: Vec<String>,
    /// `verify_aud`: tokens must name it.
    pub verify_audience: Option<bool>,
    /// `require_exp`: tokens must say when they expire.
    pub require_expiry: Option<bool>,
    /// `resource_server_type`: its type in rich authorization requests (RFC 9396).
    pub kind: Option<String>,
    /// `default_oauth_provider`, `.oauth_provider_id`: whose tokens it takes; `None` is the root provider.
    pub provider: Option<String>,
}

/// `scope_aliases.ALIAS = SCOPES`, and `scope_aliases.NUMBER.alias` with `.scope` for aliases that no key can contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeAliases {
    /// By the alias.
    pub named: BTreeMap<String, Vec<String>>,
    /// By the number.
    pub numbered: BTreeMap<String, (Option<String>, Vec<String>)>,
}

/// A provider: an authorization server that signs tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProviderSettings {
    /// `algorithms`: the signatures that are accepted; empty is all.
    pub algorithms: Vec<Algorithm>,
    /// `signing_keys`: public keys in PEM by their ids.
    pub signing_keys: BTreeMap<String, PathBuf>,
    /// `default_key`: the id of the key of tokens that name none.
    pub default_key: Option<String>,
    /// `jwks_uri`: where it publishes its keys.
    pub key_set: Option<String>,
    /// `issuer`: its name, which tokens must have, and where it describes itself.
    pub issuer: Option<String>,
    /// `discovery_endpoint_path`: where below `issuer` it does that.
    pub discovery_path: Option<String>,
    /// `discovery_endpoint_params`: what is appended to that address.
    pub discovery_params: BTreeMap<String, String>,
    /// `authorization_endpoint`: where browsers log in; otherwise it says so itself.
    pub authorization_endpoint: Option<String>,
    /// `token_endpoint`: where browsers get tokens; otherwise it says so itself.
    pub token_endpoint: Option<String>,
    /// `end_session_endpoint`: where browsers log out; otherwise it says so itself.
    pub end_session_endpoint: Option<String>,
    /// `https.*`: how it is known.
    pub trust: Trust,
}

/// What counts for one resource server once its own settings and those of the root are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceServer {
    pub id: String,
    pub scope_prefix: String,
    pub additional_scopes: Vec<String>,
    pub aliases: BTreeMap<String, Vec<String>>,
    pub username_claims: Vec<String>,
    pub verify_audience: bool,
    pub require_expiry: bool,
    pub kind: Option<String>,
    pub provider: Option<String>,
}

impl Settings {
    /// The resource servers of this node.
    ///
    /// # Errors
    /// There is none, or one lacks something; the sentence names the key.
    pub fn resource_servers(&self) -> Result<Vec<ResourceServer>, String> {
        let mut servers = Vec::new();
        if let Some(id) = &self.root.id {
            servers.push(self.resource_server(id, &self.root, "")?);
        }
        for (name, settings) in &self.resource_servers {
            let id = settings.id.as_ref().unwrap_or(name);
            if servers.iter().any(|known: &ResourceServer| known.id == *id) {
                return Err(format!(
                    "auth_oauth2.resource_servers.{name}: two resource servers have the id '{id}'"
                ));
            }
            servers.push(self.resource_server(id, settings, &format!("resource_servers.{name}."))?);
        }
        match servers.is_empty() {
            true => Err(
                "auth_oauth2.resource_server_id must be set: tokens name it as their audience \
                 (or set auth_oauth2.resource_servers.NAME.id)"
                    .into(),
            ),
            false => Ok(servers),
        }
    }

    fn resource_server(
        &self,
        id: &str,
        own: &ResourceServerSettings,
        place: &str,
    ) -> Result<ResourceServer, String> {
        let root = &self.root;
        let prefix = own.scope_prefix.as_ref().or(root.scope_prefix.as_ref());
        let paths = own.additional_scopes.as_ref().or(root.additional_scopes.as_ref());
        let claims = [&own.username_claims, &root.username_claims];
        let claims = claims.into_iter().find(|claims| !claims.is_empty());
        let claims = claims.into_iter().flatten().map(String::as_str);
        let aliases = match own.aliases.is_empty() {
            true => root.aliases.all("")?,
            false => own.aliases.all(place)?,
        };
        let provider = own.provider.as_ref().or(root.provider.as_ref());
        if let Some(name) = provider
            && !self.providers.contains_key(name)
        {
            let key = match own.provider.is_some() && !place.is_empty() {
                true => format!("{place}oauth_provider_id"),
                false => "default_oauth_provider".to_owned(),
            };
            return Err(format!(
                "auth_oauth2.{key} names '{name}', but there is no auth_oauth2.oauth_providers.{name}"
            ));
        }
        Ok(ResourceServer {
            id: id.to_owned(),
            scope_prefix: prefix.map_or_else(|| format!("{id}."), String::clone),
            additional_scopes: paths.cloned().unwrap_or_default(),
            aliases,
            username_claims: claims.chain(USERNAME_CLAIMS).map(str::to_owned).collect(),
            verify_audience: own.verify_audience.or(root.verify_audience).unwrap_or(true),
            require_expiry: own.require_expiry.or(root.require_expiry).unwrap_or(true),
            kind: own.kind.as_ref().or(root.kind.as_ref()).cloned(),
            provider: provider.cloned(),
        })
    }

    /// The provider of this name; `None` is the root one.
    pub fn provider(&self, name: Option<&str>) -> &ProviderSettings {
        let named = name.and_then(|name| self.providers.get(name));
        named.unwrap_or(&self.root_provider)
    }
}

impl ScopeAliases {
    fn is_empty(&self) -> bool {
        self.named.is_empty() && self.numbered.is_empty()
    }

    /// All of them by the alias.
    fn all(&self, place: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
        let mut all = self.named.clone();
        for (number, (alias, scopes)) in &self.numbered {
            match alias {
                Some(alias) if !scopes.is_empty() => all.insert(alias.clone(), scopes.clone()),
                _ => {
                    return Err(format!(
                        "auth_oauth2.{place}scope_aliases.{number}: set both .alias and .scope"
                    ));
                }
            };
        }
        Ok(all)
    }
}

impl ProviderSettings {
    /// Where it describes itself, if it can be asked.
    pub fn discovery_endpoint(&self) -> Option<String> {
        let issuer = self.issuer.as_ref()?.trim_end_matches('/');
        let path = self.discovery_path.as_deref().unwrap_or(WELL_KNOWN);
        let mut address = format!("{issuer}/{}", path.trim_start_matches('/'));
        for (number, (name, value)) in self.discovery_params.iter().enumerate() {
            let sign = if number == 0 { '?' } else { '&' };
            address.push(sign);
            address.push_str(&format!("{}={}", encoded(name), encoded(value)));
        }
        Some(address)
    }
}

/// A text as a part of an address (RFC 3986, 2.1).
pub(super) fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let byte = |byte: &u8| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.as_bytes().iter().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_resource_server_does_not_say_the_root_says() {
        let own = ResourceServerSettings {
            verify_audience: Some(false),
            provider: Some("second".into()),
            ..ResourceServerSettings::default()
        };
        let settings = Settings {
            root: ResourceServerSettings {
                id: Some("one".into()),
                kind: Some("rabbit".into()),
                require_expiry: Some(false),
                username_claims: vec!["email".into()],
                ..ResourceServerSettings::default()
            },
            resource_servers: [("two".to_owned(), own)].into(),
            providers: [("second".to_owned(), ProviderSettings::default())].into(),
            ..Settings::default()
        };
        let servers = settings.resource_servers().unwrap();
        let [one, two] = &servers[..] else {
            panic!("{servers:?}");
        };
        assert!(one.verify_audience && !two.verify_audience && !two.require_expiry);
        assert_eq!((&*one.scope_prefix, &*two.scope_prefix), ("one.", "two."));
        assert_eq!(two.kind.as_deref(), Some("rabbit"));
        assert_eq!(two.username_claims, ["email", "sub", "client_id"]);
        assert_eq!((&one.provider, two.provider.as_deref()), (&None, Some("second")));
    }

    #[test]
    fn settings_that_do_not_fit_together_are_named() {
        let mut settings = Settings::default();
        let error = |settings: &Settings| settings.resource_servers().unwrap_err();
        assert!(error(&settings).contains("resource_server_id"));
        settings.root.id = Some("one".into());
        settings.root.provider = Some("zork".into());
        assert!(error(&settings).contains("no auth_oauth2.oauth_providers.zork"));
        settings.root.provider = None;
        let half = (Some("boss".to_owned()), Vec::new());
        settings.root.aliases.numbered.insert("1".into(), half);
        assert!(error(&settings).contains("scope_aliases.1: set both"));
        settings.root.aliases = ScopeAliases::default();
        let twin = settings.root.clone();
        settings.resource_servers.insert("x".into(), twin);
        assert!(error(&settings).contains("two resource servers have the id 'one'"));
    }

    #[test]
    fn the_address_of_discovery_has_its_path_and_parameters() {
        let mut provider = ProviderSettings {
            issuer: Some("https://idp/realm/".into()),
            ..ProviderSettings::default()
        };
        let endpoint = |provider: &ProviderSettings| provider.discovery_endpoint().unwrap();
        assert_eq!(
            endpoint(&provider),
            "https://idp/realm/.well-known/openid-configuration"
        );
        provider.discovery_path = Some("/.well-known/other".into());
        let params = [("appid", "a b"), ("p", "1&2")];
        provider.discovery_params = params.map(|(name, value)| (name.into(), value.into())).into();
        assert_eq!(
            endpoint(&provider),
            "https://idp/realm/.well-known/other?appid=a%20b&p=1%262"
        );
    }
}
