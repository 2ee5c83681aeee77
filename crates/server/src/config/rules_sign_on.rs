//! Single sign-on in the web UI: `management.oauth_*`.

use super::rules::{Checked, boolean};
use super::rules_identity::given;
use super::rules_oauth2::address;
use super::{Config, Setting};
use identity::oauth2::Settings;
use management::{SignOn, SignOnClient, SignOnServer};
use std::collections::BTreeMap;

/// What is said about it; what comes of it depends on `auth_oauth2.*`, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignOnOptions {
    /// `oauth_enabled`.
    pub enabled: bool,
    /// `oauth_disable_basic_auth`; `None` is yes.
    pub disable_basic_auth: Option<bool>,
    /// What stands directly below `management`.
    pub root: SignOnSection,
    /// `oauth_resource_servers.NAME.*`.
    pub resource_servers: BTreeMap<String, SignOnSection>,
}

/// What can be said for all resource servers and for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignOnSection {
    pub id: Option<String>,
    pub label: Option<String>,
    pub disabled: bool,
    pub provider_url: Option<String>,
    pub metadata_url: Option<String>,
    pub client: SignOnClient,
}

impl SignOnOptions {
    /// What the pages are told: the resource servers of `auth_oauth2` that have a provider's address and, if people log
    /// in from here, a client id.
    pub fn sign_on(&self, oauth2: &Settings) -> SignOn {
        let declared = oauth2.resource_servers().unwrap_or_default();
        let declared = declared.iter().filter(|_| self.enabled);
        let servers = declared.filter_map(|server| {
            let section = self.section(&server.id).cloned().unwrap_or_default();
            let provider = oauth2.provider(server.provider.as_deref());
            let root = &self.root;
            let own_url = section.provider_url.or_else(|| root.provider_url.clone());
            let own_metadata = section.metadata_url.or_else(|| root.metadata_url.clone());
            let signs_on = SignOnServer {
                label: section.label,
                provider_url: own_url.or_else(|| provider.issuer.clone())?,
                metadata_url: own_metadata.or_else(|| provider.discovery_endpoint()),
                authorization_endpoint: provider.authorization_endpoint.clone(),
                token_endpoint: provider.token_endpoint.clone(),
                end_session_endpoint: provider.end_session_endpoint.clone(),
                client: section.client,
            };
            let (own, all) = (&signs_on.client, &root.client);
            let elsewhere = own.idp_initiated.or(all.idp_initiated).unwrap_or(false);
            let known = own.client_id.is_some() || all.client_id.is_some();
            (!section.disabled && (elsewhere || known)).then(|| (server.id.clone(), signs_on))
        });
        SignOn {
            resource_servers: servers.collect(),
            disable_basic_auth: self.disable_basic_auth.unwrap_or(true),
            defaults: self.root.client.clone(),
        }
    }

    fn section(&self, id: &str) -> Option<&SignOnSection> {
        let mut sections = self.resource_servers.iter();
        let found = sections.find(|(name, section)| section.id.as_ref().unwrap_or(name) == id);
        found.map(|(_, section)| section)
    }

    /// What an operator should hear about settings that lead to nothing.
    pub fn warnings(&self, oauth2: &Settings) -> Vec<String> {
        let declared = oauth2.resource_servers().unwrap_or_default();
        let unknown = self.resource_servers.iter().filter(|(name, section)| {
            let id = section.id.as_ref().unwrap_or(name);
            !declared.iter().any(|server| server.id == *id)
        });
        let mut warnings: Vec<String> = unknown
            .map(|(name, _)| {
                format!(
                    "management.oauth_resource_servers.{name} has no effect: there is no such resource server in auth_oauth2"
                )
            })
            .collect();
        if self.enabled && self.sign_on(oauth2).resource_servers.is_empty() {
            warnings.push(
                "management.oauth_enabled has no effect: no resource server in auth_oauth2 has an issuer \
                 (or management.oauth_provider_url) and management.oauth_client_id"
                    .into(),
            );
        }
        warnings
    }
}

fn section<'a>(config: &'a mut Config, setting: &Setting) -> &'a mut SignOnSection {
    let options = &mut config.management.sign_on;
    match setting.key.segments() {
        [_, section, name, _, ..] if section == "oauth_resource_servers" => {
            options.resource_servers.entry(name.clone()).or_default()
        }
        _ => &mut options.root,
    }
}

pub fn enabled(config: &mut Config, setting: &Setting) -> Checked {
    config.management.sign_on.enabled = boolean(setting)?;
    Ok(())
}

pub fn disable_basic_auth(config: &mut Config, setting: &Setting) -> Checked {
    config.management.sign_on.disable_basic_auth = Some(boolean(setting)?);
    Ok(())
}

pub fn id(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).id = Some(given(setting)?);
    Ok(())
}

pub fn label(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).label = Some(given(setting)?);
    Ok(())
}

pub fn disabled(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).disabled = boolean(setting)?;
    Ok(())
}

pub fn provider_url(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).provider_url = address(setting)?;
    Ok(())
}

pub fn metadata_url(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).metadata_url = address(setting)?;
    Ok(())
}

pub fn client_id(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).client.client_id = Some(given(setting)?);
    Ok(())
}

pub fn scopes(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).client.scopes = Some(given(setting)?);
    Ok(())
}

pub fn logon_type(config: &mut Config, setting: &Setting) -> Checked {
    section(config, setting).client.idp_initiated = Some(match setting.value.as_str() {
        "sp_initiated" => false,
        "idp_initiated" => true,
        _ => return Err("sp_initiated, idp_initiated"),
    });
    Ok(())
}

pub fn authorization_param(config: &mut Config, setting: &Setting) -> Checked {
    let (name, value) = (setting.key.name().to_owned(), setting.value.clone());
    let params = &mut section(config, setting).client.authorization_params;
    params.insert(name, value);
    Ok(())
}

pub fn token_param(config: &mut Config, setting: &Setting) -> Checked {
    let (name, value) = (setting.key.name().to_owned(), setting.value.clone());
    let params = &mut section(config, setting).client.token_params;
    params.insert(name, value);
    Ok(())
}
