//! The settings of a directory: `auth_ldap.*`.

use super::rules::{Checked, boolean, number};
use super::rules_backends::duration;
use super::rules_identity::given;
use super::{Config, Origin, Setting, queries};
use identity::{AsWhom, DirectorySettings, Lookup, Occasion, Secured};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is said about a directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LdapOptions {
    pub(super) servers: BTreeMap<u16, String>,
    /// Everything that takes effect by itself.
    pub(super) settings: DirectorySettings,
    /// The texts that `settings` has in a form for use, by key.
    pub(super) texts: BTreeMap<&'static str, String>,
    pub(super) use_ssl: bool,
    pub(super) use_starttls: bool,
    pub(super) attribute: Option<String>,
    pub(super) base: Option<String>,
    pub(super) lookup_bind: Bind,
    pub(super) other_bind: Bind,
    /// Queries that are none, in words that are longer than a rule's.
    pub(super) mistakes: Vec<(Origin, String)>,
}

/// As whom to ask, in parts: `as_user`, `anon`, or a name and a password.
#[derive(Clone, Default, PartialEq)]
pub struct Bind {
    pub(super) word: Option<AsWhom>,
    pub(super) name: Option<String>,
    password: Option<String>,
}

impl std::fmt::Debug for Bind {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.name.as_deref().unwrap_or("as_user or anon"))
    }
}

impl Bind {
    /// As in RabbitMQ, a word wins over a name, and the user is asked as if nothing is said.
    fn as_whom(&self, key: &str) -> Result<AsWhom, String> {
        match (&self.word, &self.name, &self.password) {
            (Some(word), _, _) => Ok(word.clone()),
            (None, None, None) => Ok(AsWhom::User),
            (None, Some(name), Some(password)) => Ok(AsWhom::Named {
                name: name.clone(),
                password: password.clone(),
            }),
            _ => Err(format!("auth_ldap.{key}: set both .user_dn and .password")),
        }
    }
}

impl LdapOptions {
    /// The directory, of all its settings.
    ///
    /// # Errors
    /// Two of them don't go together.
    pub fn directory(&self) -> Result<DirectorySettings, String> {
        let secured = match (self.use_ssl, self.use_starttls) {
            (false, false) => Secured::No,
            (true, false) => Secured::FromTheStart,
            (false, true) => Secured::OnceAgreed,
            (true, true) => {
                return Err("auth_ldap.use_ssl and auth_ldap.use_starttls: one of both must be false".into());
            }
        };
        let lookup = match (&self.attribute, &self.base) {
            (None, None) if self.lookup_bind == Bind::default() => None,
            (None, Some(_)) if self.settings.queries.look_for_groups() => None,
            (Some(attribute), Some(base)) => Some(Lookup {
                attribute: attribute.clone(),
                base: base.clone(),
                as_whom: self.lookup_bind.as_whom("dn_lookup_bind")?,
            }),
            _ => {
                return Err(
                    "auth_ldap.dn_lookup_attribute and auth_ldap.dn_lookup_base must be set together".into(),
                );
            }
        };
        let settings = self.settings.clone();
        Ok(DirectorySettings {
            servers: self.servers.values().cloned().collect(),
            secured,
            asks_as: self.other_bind.as_whom("other_bind")?,
            // RabbitMQ looks for groups where it looks for names.
            group_base: settings.group_base.or_else(|| self.base.clone()),
            lookup,
            ..settings
        })
    }

    /// Which servers are believed.
    pub(super) fn trust(&mut self) -> &mut identity::Trust {
        &mut self.settings.trust
    }

    /// True if everybody who logs in may do everything, because nothing else is said.
    pub fn permits_everything(&self) -> bool {
        let queries = &self.settings.queries;
        let default = identity::Queries::default();
        (&queries.vhost, &queries.resource) == (&default.vhost, &default.resource)
    }
}

fn options(config: &mut Config) -> &mut LdapOptions {
    &mut config.identity.backends.ldap
}

pub fn server(config: &mut Config, setting: &Setting) -> Checked {
    let place = setting.key.name().parse();
    let place = place.map_err(|_| "a number in the key: auth_ldap.servers.1")?;
    let name = given(setting)?;
    options(config).servers.insert(place, name);
    Ok(())
}

pub fn port(config: &mut Config, setting: &Setting) -> Checked {
    options(config).settings.port = number(setting, 1, 65_535).ok_or("a port, from 1 to 65535")?;
    Ok(())
}

pub fn timeout(config: &mut Config, setting: &Setting) -> Checked {
    options(config).settings.timeout = duration(setting)?;
    Ok(())
}

pub fn idle(config: &mut Config, setting: &Setting) -> Checked {
    options(config).settings.idle = match setting.value.as_str() {
        "infinity" => Duration::MAX,
        _ => Duration::from_millis(
            number(setting, 0, 86_400_000).ok_or("milliseconds, from 0 to 86400000, or infinity")?,
        ),
    };
    Ok(())
}

pub fn pool_size(config: &mut Config, setting: &Setting) -> Checked {
    options(config).settings.most_idle = number(setting, 0, 1_024).ok_or("a number from 0 to 1024")?;
    Ok(())
}

pub fn use_ssl(config: &mut Config, setting: &Setting) -> Checked {
    options(config).use_ssl = boolean(setting)?;
    Ok(())
}

pub fn use_starttls(config: &mut Config, setting: &Setting) -> Checked {
    options(config).use_starttls = boolean(setting)?;
    Ok(())
}

const PATTERN: &str = "a text with ${username}, or ${ad_user} and ${ad_domain}, in it, such as cn=${username},dc=example,dc=com";

pub fn pattern(config: &mut Config, setting: &Setting) -> Checked {
    let options = options(config);
    options.settings.pattern = DirectorySettings::pattern(&setting.value).map_err(|_| PATTERN)?;
    options.texts.insert("user_dn_pattern", setting.value.clone());
    Ok(())
}

pub fn bind_pattern(config: &mut Config, setting: &Setting) -> Checked {
    let options = options(config);
    options.settings.bind_pattern = match setting.value.as_str() {
        "none" => None,
        text => Some(DirectorySettings::pattern(text).map_err(|_| PATTERN)?),
    };
    options.texts.insert("user_bind_pattern", setting.value.clone());
    Ok(())
}

/// A text, or `none`.
fn perhaps(setting: &Setting) -> Checked<Option<String>> {
    let text = given(setting)?;
    Ok(Some(text).filter(|text| text != "none"))
}

pub fn lookup_attribute(config: &mut Config, setting: &Setting) -> Checked {
    options(config).attribute = perhaps(setting)?;
    Ok(())
}

pub fn lookup_base(config: &mut Config, setting: &Setting) -> Checked {
    options(config).base = perhaps(setting)?;
    Ok(())
}

pub fn group_base(config: &mut Config, setting: &Setting) -> Checked {
    options(config).settings.group_base = perhaps(setting)?;
    Ok(())
}

/// `dn_lookup_bind` and `other_bind`, and their parts.
pub fn bind(config: &mut Config, setting: &Setting) -> Checked {
    let segments = setting.key.segments();
    let options = options(config);
    let bind = match segments.get(1).map(String::as_str) {
        Some("other_bind") => &mut options.other_bind,
        _ => &mut options.lookup_bind,
    };
    match (segments.get(2).map(String::as_str), setting.value.as_str()) {
        (Some("user_dn"), _) => bind.name = Some(given(setting)?),
        (Some(_), _) => bind.password = Some(given(setting)?),
        (None, "as_user") => bind.word = Some(AsWhom::User),
        (None, "anon") => bind.word = Some(AsWhom::Nobody),
        (None, _) => return Err("as_user, anon (or set .user_dn and .password)"),
    }
    Ok(())
}

/// `queries.*`: a query that cannot be read is a mistake of its own, with its place in the text.
pub fn query(config: &mut Config, setting: &Setting) -> Checked {
    let options = options(config);
    let (text, all) = (&setting.value, &mut options.settings.queries);
    let put = |place: &mut identity::Query, asked| queries::query(text, asked).map(|query| *place = query);
    let (key, read) = match setting.key.name() {
        "vhost_access" => ("vhost_access", put(&mut all.vhost, Occasion::ForVhost)),
        "resource_access" => ("resource_access", put(&mut all.resource, Occasion::ForResource)),
        "topic_access" => ("topic_access", put(&mut all.topic, Occasion::ForTopic)),
        _ => ("tags", queries::tags(text).map(|tags| all.tags = tags)),
    };
    if let Err(mistake) = read {
        let (place, what) = (mistake.place, mistake.what);
        let said = format!("auth_ldap.queries.{key} is not a query: {place} of its text: {what}");
        options.mistakes.push((setting.origin.clone(), said));
    }
    options.texts.insert(key, text.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{ConfigError, load, sources};
    use super::*;
    use std::path::Path;

    fn loaded(text: &str) -> Result<DirectorySettings, String> {
        let settings = sources::text_of_file(text, Path::new("l.conf")).unwrap();
        let loaded = load(settings).map_err(|errors| {
            let errors = errors.iter().map(ConfigError::to_string);
            errors.collect::<Vec<_>>().join("; ")
        })?;
        loaded.config.identity.backends.ldap.directory()
    }

    #[test]
    fn the_directory_is_asked_as_it_was_told() {
        let directory = loaded(
            "auth_ldap.servers.2 = b\nauth_ldap.servers.1 = a\nauth_ldap.use_starttls = true\nauth_ldap.timeout = 500\n\
             auth_ldap.dn_lookup_attribute = uid\nauth_ldap.dn_lookup_base = dc=x\nauth_ldap.dn_lookup_bind.user_dn = cn=r\n\
             auth_ldap.dn_lookup_bind.password = s3cret\nauth_ldap.other_bind = anon\nauth_ldap.group_lookup_base = ou=g\n\
             auth_ldap.user_bind_pattern = ${ad_user}@${ad_domain}.example\n",
        )
        .unwrap();
        assert!(!format!("{directory:?}").contains("s3cret"));
        assert_eq!(directory.servers, ["a", "b"]);
        assert_eq!(directory.secured, Secured::OnceAgreed);
        let by = AsWhom::Named {
            name: "cn=r".into(),
            password: "s3cret".into(),
        };
        assert_eq!(directory.lookup.as_ref().unwrap().as_whom, by);
        assert_eq!(
            (&directory.asks_as, directory.groups()),
            (&AsWhom::Nobody, "ou=g")
        );
        assert!(directory.bind_pattern.is_some());
    }

    #[test]
    fn somebody_is_asked_as_the_user_unless_it_is_said_otherwise() {
        let lookup = "auth_ldap.dn_lookup_attribute = uid\nauth_ldap.dn_lookup_base = dc=x\n";
        let as_whom = |text: &str| {
            loaded(&format!("{lookup}{text}"))
                .unwrap()
                .lookup
                .unwrap()
                .as_whom
        };
        assert_eq!(as_whom(""), AsWhom::User);
        assert_eq!(as_whom("auth_ldap.dn_lookup_bind = anon"), AsWhom::Nobody);
        assert_eq!(
            as_whom("auth_ldap.dn_lookup_bind = as_user\nauth_ldap.dn_lookup_bind.user_dn = cn=r"),
            AsWhom::User
        );
        assert_eq!(loaded("").unwrap().asks_as, AsWhom::User);
        assert_eq!(loaded(lookup).unwrap().groups(), "dc=x");
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (wrong, words) in [
            (
                "auth_ldap.use_ssl = true\nauth_ldap.use_starttls = true",
                "must be false",
            ),
            ("auth_ldap.dn_lookup_attribute = uid", "must be set together"),
            (
                "auth_ldap.other_bind.user_dn = cn=r",
                "both .user_dn and .password",
            ),
            ("auth_ldap.other_bind = nobody", "as_user, anon"),
            ("auth_ldap.user_dn_pattern = cn=x", "${username}"),
            ("auth_ldap.user_dn_pattern = cn=${vhost}", "${username}"),
        ] {
            let error = loaded(wrong).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn queries_are_read_at_the_start() {
        let directory = loaded(
            "auth_ldap.queries.vhost_access = {in_group, \"ou=${vhost}-users,dc=x\"}\n\
             auth_ldap.queries.tags = '''[{administrator, {constant, false}},\n {management, {constant, true}}]'''\n",
        )
        .unwrap();
        assert!(directory.queries.vhost.asks() && !directory.queries.resource.asks());
        assert_eq!(directory.queries.tags.len(), 2);
        assert_eq!(
            loaded("heartbeat = 5\nauth_ldap.queries.topic_access = {in_grp, \"x\"}").unwrap_err(),
            "l.conf:2: auth_ldap.queries.topic_access is not a query: line 1, column 1 of its text: 'in_grp' is not a query; constant, exists, \
             in_group, in_group_nested, for, not, and, or, equals and match are"
        );
        assert!(
            loaded("auth_ldap.queries.more = {constant, true}")
                .unwrap_err()
                .contains("is refused")
        );
    }
}
