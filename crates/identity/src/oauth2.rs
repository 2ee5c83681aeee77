//! OAuth 2: a token in the place of the password says who somebody is and what they may do.
//!
//! Reading order: `settings` (resource servers and providers), `token` (what a token is), `keys` (with what it is
//! signed), `claims` and `rich_requests` (which scopes it has), [`scopes`] (what they allow).

mod claims;
mod keys;
mod rich_requests;
pub mod scopes;
mod settings;
mod token;

use broker::User;
use jsonwebtoken::Header;
use keys::Keys;
use scopes::Scopes;
use serde_json::Value;
use settings::ResourceServer;
pub use settings::{ProviderSettings, ResourceServerSettings, ScopeAliases, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use token::Claims;
pub use token::{Algorithm, Refused, is_accepted};

/// RabbitMQ's limit on what one token may hold.
const SCOPES_MOST: usize = 2_048;

/// No token is good for longer, in seconds since 1970.
const FURTHEST_S: f64 = 1e11;

/// Reads tokens.
#[derive(Debug)]
pub struct OAuth2 {
    servers: Vec<Server>,
}

/// A resource server and the provider whose tokens it takes.
#[derive(Debug)]
struct Server {
    settings: ResourceServer,
    issuer: Option<String>,
    keys: Arc<Keys>,
}

impl OAuth2 {
    /// Reads the keys that lie in files. Those of a provider are asked for when the first token names one.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: &Settings) -> Result<Self, String> {
        let mut keys: BTreeMap<Option<String>, Arc<Keys>> = BTreeMap::new();
        let mut servers = Vec::new();
        for server in settings.resource_servers()? {
            let provider = settings.provider(server.provider.as_deref());
            let keys = match keys.get(&server.provider) {
                Some(keys) => Arc::clone(keys),
                None => {
                    let place = match &server.provider {
                        Some(name) => format!("auth_oauth2.oauth_providers.{name}"),
                        None => "auth_oauth2".to_owned(),
                    };
                    let opened = Arc::new(Keys::open(provider, &place)?);
                    keys.insert(server.provider.clone(), Arc::clone(&opened));
                    opened
                }
            };
            servers.push(Server {
                settings: server,
                issuer: provider.issuer.clone(),
                keys,
            });
        }
        Ok(Self { servers })
    }

    /// The user that a token names, with its tags and rights. Without `may_wait`, keys that are not there are not asked for.
    ///
    /// # Errors
    /// The token is not good; nothing of it but names is repeated.
    pub fn user(&self, token: &[u8], may_wait: bool) -> Result<User, Refused> {
        let (header, claims) = token::read(token)?;
        let server = self.server(claims.get("aud"))?;
        server.verify(token, &header, may_wait)?;
        server.user(&claims, SystemTime::now())
    }

    /// The resource server that a token is for: the one that its audience names, or the only one that does not look at it.
    fn server(&self, audience: Option<&Value>) -> Result<&Server, Refused> {
        let mut named = self
            .servers
            .iter()
            .filter(|server| claims::contains(audience, &server.settings.id));
        let mut others = self.servers.iter().filter(|it| !it.settings.verify_audience);
        match (named.next(), named.next()) {
            (Some(server), None) => Ok(server),
            (Some(_), Some(_)) => Err(Refused::Malformed(
                "its audience (claim aud) names more than one resource server of this node",
            )),
            (None, _) => match (others.next(), others.next()) {
                (Some(server), None) => Ok(server),
                (Some(_), Some(_)) => Err(Refused::Malformed(
                    "its audience (claim aud) does not say which resource server of this node is meant",
                )),
                (None, _) => Err(Refused::Audience(self.names())),
            },
        }
    }

    fn names(&self) -> String {
        let names = self.servers.iter().map(|it| format!("{:?}", it.settings.id));
        names.collect::<Vec<_>>().join(" or ")
    }
}

impl Server {
    fn verify(&self, token: &[u8], header: &Header, may_wait: bool) -> Result<(), Refused> {
        match self.keys.verify(token, header) {
            Err(Refused::UnknownKey(id)) if may_wait => {
                self.keys.ask(&id)?;
                self.keys.verify(token, header)
            }
            verified => verified,
        }
    }

    /// The user whom a token names that is signed well.
    fn user(&self, claims: &Claims, now: SystemTime) -> Result<User, Refused> {
        let settings = &self.settings;
        let until = match claims.get("exp") {
            None if !settings.require_expiry => None,
            exp => {
                let seconds = exp.and_then(Value::as_f64);
                let seconds = seconds.ok_or(Refused::Malformed("it does not say until when it is good"))?;
                Some(moment(seconds))
            }
        };
        if until.is_some_and(|until| until <= now) {
            return Err(Refused::Expired);
        }
        let begins = claims.get("nbf").and_then(Value::as_f64);
        if begins.is_some_and(|begins| moment(begins) > now) {
            return Err(Refused::Malformed("it is not good yet"));
        }
        if let Some(issuer) = &self.issuer
            && claims.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(Refused::Malformed("it is another issuer's"));
        }
        let mut names = settings.username_claims.iter();
        let name = names
            .find_map(|claim| claims.get(claim)?.as_str())
            .unwrap_or("unknown");
        let scopes = claims::scopes(claims, settings);
        if scopes.len() > SCOPES_MOST {
            return Err(Refused::Malformed("it has too many scopes"));
        }
        let scopes = Scopes::parse(&scopes, claims, until);
        Ok(User {
            tags: scopes.tags().to_vec(),
            rights: Some(Arc::new(scopes)),
            ..User::named(name)
        })
    }
}

/// So many seconds after the beginning of 1970; what is further away than clocks show counts as far away.
fn moment(seconds: f64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds.clamp(0.0, FURTHEST_S) as u64)
}

#[cfg(test)]
mod tests;
