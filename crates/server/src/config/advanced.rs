//! RabbitMQ's `advanced.config`: a list of applications with their settings as Erlang terms, `[{rabbit, [{heartbeat, 10}]}].`
//!
//! Each setting becomes the one of `rabbitmq.conf` that means the same, so there is one place that knows what settings
//! do. What has no such counterpart is refused by name: a node must not pass over what it was told.

mod known;
mod trees;

use super::error::{ConfigError, Origin};
use super::sources::{Setting, read};
use super::syntax::Key;
use super::terms::{self, Mistake, Shape, Term};
use known::{Becomes, KNOWN};
use std::path::Path;

/// What the file says.
#[derive(Debug, Default)]
pub struct Advanced {
    /// As settings of `rabbitmq.conf`.
    pub settings: Vec<Setting>,
    /// Keys whose settings by `rabbitmq.conf` don't count any more, with everything below them: a value here replaces the whole.
    pub replaced: Vec<String>,
    /// About what has no effect.
    pub warnings: Vec<String>,
}

impl Advanced {
    /// Puts what another one says behind this.
    pub fn join(&mut self, other: Self) {
        let Self {
            settings,
            replaced,
            warnings,
        } = other;
        // A value replaces the whole of what was said before it here, too.
        let newer = Self {
            settings,
            replaced: replaced.clone(),
            warnings: Vec::new(),
        };
        newer.put_behind(&mut self.settings);
        self.replaced.extend(replaced);
        self.warnings.extend(warnings);
    }

    /// Puts these settings behind those of `rabbitmq.conf`.
    pub fn put_behind(self, settings: &mut Vec<Setting>) {
        settings.retain(|setting| {
            let key = setting.key.to_string();
            let below = |replaced: &String| {
                key.strip_prefix(replaced.as_str())
                    .is_some_and(|rest| rest.starts_with('.'))
            };
            !self
                .replaced
                .iter()
                .any(|replaced| key == *replaced || below(replaced))
        });
        settings.extend(self.settings);
    }
}

/// Reads the file.
///
/// # Errors
/// It can't be read, is no such list, or says something that isn't known here.
pub fn file(path: &Path) -> Result<Advanced, ConfigError> {
    text_of_file(&read(path)?, path)
}

/// Reads the text of the file; `path` is only named in origins.
///
/// # Errors
/// As [`file`].
pub fn text_of_file(text: &str, path: &Path) -> Result<Advanced, ConfigError> {
    let mut reader = Reader {
        text,
        path,
        found: Advanced::default(),
    };
    let read = terms::parse(text).and_then(|term| reader.applications(&term));
    match read {
        Ok(()) => Ok(reader.found),
        Err(mistake) => Err(ConfigError::Query {
            origin: Origin::File(path.to_owned(), mistake.place.line),
            what: format!("column {}: {}", mistake.place.column, mistake.what),
        }),
    }
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    found: Advanced,
}

impl Reader<'_> {
    fn applications(&mut self, term: &Term) -> Result<(), Mistake> {
        let expected = "expected [{APPLICATION, [{KEY, VALUE}, …]}, …].";
        for term in term.list().ok_or_else(|| term.mistake(expected))? {
            let (application, settings) = pair(term, expected)?;
            for term in settings.list().ok_or_else(|| settings.mistake(expected))? {
                let (key, value) = pair(term, expected)?;
                let known = KNOWN.iter().find(|(of, names, _)| {
                    *of == application && names.split(' ').any(|name| name == key || name == "*")
                });
                let Some((_, _, becomes)) = known else {
                    return Err(term.mistake(format!(
                        "the key {key} of the application {application} is not part of this version in advanced.config; \
                         see whether rabbitmq.conf has a setting for it"
                    )));
                };
                self.setting(becomes, application, key, value)
                    .map_err(|mistake| Mistake {
                        what: format!("{application}, {key}: {}", mistake.what),
                        ..mistake
                    })?;
            }
        }
        Ok(())
    }

    fn setting(
        &mut self,
        becomes: &Becomes,
        application: &str,
        key: &str,
        value: &Term,
    ) -> Result<(), Mistake> {
        match becomes {
            Becomes::Same(prefix) => self.one(&format!("{prefix}{key}"), value),
            Becomes::Value(name) => self.one(name, value),
            Becomes::List(name) => self.list(name, value),
            Becomes::Section(name) => self.section(name, value),
            Becomes::Flags(name) => self.flags(name, value),
            Becomes::Query(name) => {
                self.found.replaced.push((*name).to_owned());
                let text = self.text[value.from..value.to].to_owned();
                self.put(name, text, value)
            }
            Becomes::Bind(name) => self.bind(name, value),
            Becomes::Chain => self.chain(value),
            Becomes::Permissions => self.permissions(value),
            Becomes::Amount(name) => self.amount(name, value),
            Becomes::Listeners(name) => self.listeners(name, value),
            Becomes::Sockets(name) => self.sockets(name, value),
            Becomes::Log => self.log(value),
            Becomes::LogLevels => self.log_levels(value),
            Becomes::Nodes => self.nodes(value),
            Becomes::Decoder => self.decoder(value),
            Becomes::Nothing(why) => {
                let line = value.place.line;
                self.found.warnings.push(format!(
                    "{}:{line}: {application}, {key}: the setting has no effect: {why}",
                    self.path.display()
                ));
                Ok(())
            }
        }
    }

    fn put(&mut self, key: &str, value: String, term: &Term) -> Result<(), Mistake> {
        let key = Key::parse(key)
            .ok_or_else(|| term.mistake(format!("'{key}' can't be a key of rabbitmq.conf")))?;
        let origin = Origin::File(self.path.to_owned(), term.place.line);
        self.found.settings.push(Setting { key, value, origin });
        Ok(())
    }

    fn one(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        self.put(key, simple(value)?, value)
    }

    /// `[a, b]` is `key.1 = a` and `key.2 = b`.
    fn list(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        let list = value.list().ok_or_else(|| value.mistake("expected a list"))?;
        for (at, term) in list.iter().enumerate() {
            self.put(&format!("{key}.{}", at + 1), simple(term)?, term)?;
        }
        Ok(())
    }

    /// `[{a, 1}]` is `key.a = 1`.
    fn section(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        let list = value.list().ok_or_else(|| value.mistake("expected a list"))?;
        for term in list {
            let (name, value) = pair(term, "expected {KEY, VALUE}")?;
            let key = format!("{key}.{name}");
            match value.list() {
                Some([first, ..]) if first.tuple().is_some() => self.section(&key, value)?,
                Some(_) => self.list(&key, value)?,
                None => self.put(&key, simple(value)?, value)?,
            }
        }
        Ok(())
    }

    /// `[a]` is `key.a = true`.
    fn flags(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        let list = value.list().ok_or_else(|| value.mistake("expected a list"))?;
        if list.is_empty() && key == "loopback_users" {
            return self.put(key, "none".into(), value);
        }
        for term in list {
            let name = simple(term)?.replace('.', "\\.");
            self.put(&format!("{key}.{name}"), "true".into(), term)?;
        }
        Ok(())
    }

    /// `as_user`, `anon` or `{NAME, PASSWORD}`.
    fn bind(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        match value.tuple() {
            None => self.one(key, value),
            Some([name, password]) => {
                self.found.replaced.push(key.to_owned());
                self.put(&format!("{key}.user_dn"), simple(name)?, name)?;
                self.put(&format!("{key}.password"), simple(password)?, password)
            }
            Some(_) => Err(value.mistake("expected as_user, anon or {NAME, PASSWORD}")),
        }
    }

    /// `[a, {b, c}]` is `auth_backends.1 = a`, `auth_backends.2.authn = b`, `auth_backends.2.authz = c`.
    fn chain(&mut self, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push("auth_backends".into());
        let list = value.list().ok_or_else(|| value.mistake("expected a list"))?;
        for (at, term) in list.iter().enumerate() {
            let key = format!("auth_backends.{}", at + 1);
            match term.tuple() {
                None => self.put(&key, simple(term)?, term)?,
                Some([authn, authz]) => {
                    self.put(&format!("{key}.authn"), simple(authn)?, authn)?;
                    self.put(&format!("{key}.authz"), simple(authz)?, authz)?;
                }
                Some(_) => return Err(term.mistake("expected one backend or {AUTHN, AUTHZ}")),
            }
        }
        Ok(())
    }

    fn permissions(&mut self, value: &Term) -> Result<(), Mistake> {
        let Some([configure, write, read]) = value.list() else {
            return Err(value.mistake("expected [CONFIGURE, WRITE, READ]"));
        };
        for (name, term) in [("configure", configure), ("write", write), ("read", read)] {
            self.one(&format!("default_permissions.{name}"), term)?;
        }
        Ok(())
    }

    /// `0.4`, `{absolute, "1GB"}` or `{mem_relative, 1.0}`; a whole number of bytes where that is a limit.
    fn amount(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        let (kind, amount) = match (value.tuple(), &value.shape) {
            (Some([kind, amount]), _) if kind.atom() == Some("absolute") => ("absolute", amount),
            (Some([kind, amount]), _) if matches!(kind.atom(), Some("mem_relative" | "relative")) => {
                ("relative", amount)
            }
            (None, Shape::Fraction(_)) => ("relative", value),
            (None, Shape::Number(0)) if key == "vm_memory_high_watermark" => ("relative", value),
            (None, Shape::Number(_) | Shape::Text(_)) if key == "disk_free_limit" => ("absolute", value),
            _ => {
                return Err(
                    value.mistake("expected a fraction, {absolute, AMOUNT} or {mem_relative, FRACTION}")
                );
            }
        };
        self.put(&format!("{key}.{kind}"), simple(amount)?, amount)
    }

    /// `[5672, {"::1", 5673}]` is `key.1 = 5672` and `key.2 = ::1:5673`.
    fn listeners(&mut self, key: &str, value: &Term) -> Result<(), Mistake> {
        self.found.replaced.push(key.to_owned());
        let list = value.list().ok_or_else(|| value.mistake("expected a list"))?;
        if list.is_empty() {
            return self.put(key, "none".into(), value);
        }
        for (at, term) in list.iter().enumerate() {
            let said = match term.tuple() {
                Some([address, port]) => format!("{}:{}", simple(address)?, simple(port)?),
                _ => simple(term)?,
            };
            self.put(&format!("{key}.{}", at + 1), said, term)?;
        }
        Ok(())
    }
}

/// A tuple of a name and something.
fn pair<'a>(term: &'a Term, expected: &str) -> Result<(&'a str, &'a Term), Mistake> {
    match term.tuple() {
        Some([name, value]) => match name.atom() {
            Some(name) => Ok((name, value)),
            None => Err(name.mistake("expected the name of an application or a key")),
        },
        _ => Err(term.mistake(expected)),
    }
}

/// A value that `rabbitmq.conf` can have, too.
fn simple(term: &Term) -> Result<String, Mistake> {
    match &term.shape {
        Shape::Atom(text) | Shape::Text(text) => Ok(text.clone()),
        Shape::Number(number) => Ok(number.to_string()),
        Shape::Fraction(number) => Ok(number.to_string()),
        Shape::Tuple(terms) if matches!(terms.as_slice(), [tag, _] if tag.atom() == Some("encrypted")) => {
            match terms.last() {
                Some(value) => Ok(format!("encrypted:{}", simple(value)?)),
                None => Ok(String::new()),
            }
        }
        Shape::Tuple(_) | Shape::List(_) => {
            Err(term.mistake("expected one value: an atom, a text or a number"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let advanced = text_of_file(text, Path::new("a.config")).map_err(|error| error.to_string())?;
        let shown = |it: Setting| format!("{} = {}", it.key, it.value);
        Ok(advanced.settings.into_iter().map(shown).collect())
    }

    #[test]
    fn each_setting_becomes_the_one_that_means_the_same() {
        for (text, settings) in [
            (
                "{rabbit, [{heartbeat, 10}, {default_user, <<\"jane\">>}]}",
                &["heartbeat = 10", "default_user = jane"][..],
            ),
            (
                "{rabbit, [{tcp_listeners, [5672, {\"127.0.0.1\", 5673}]}, {ssl_listeners, []}]}",
                &[
                    "listeners.tcp.1 = 5672",
                    "listeners.tcp.2 = 127.0.0.1:5673",
                    "listeners.ssl = none",
                ],
            ),
            (
                "{rabbitmq_stream, [{tcp_listeners, [5553]}, {proxy_protocol, true}, {advertised_host, <<\"a\">>}]}",
                &[
                    "stream.listeners.tcp.1 = 5553",
                    "stream.proxy_protocol = true",
                    "stream.advertised_host = a",
                ],
            ),
            (
                "{rabbit, [{vm_memory_high_watermark, 0.6}]}",
                &["vm_memory_high_watermark.relative = 0.6"],
            ),
            (
                "{rabbit, [{vm_memory_high_watermark, {absolute, \"1GB\"}}, {disk_free_limit, 50000000}]}",
                &[
                    "vm_memory_high_watermark.absolute = 1GB",
                    "disk_free_limit.absolute = 50000000",
                ],
            ),
            ("{rabbit, [{loopback_users, []}]}", &["loopback_users = none"]),
            (
                "{rabbit, [{default_user_tags, [administrator]}]}",
                &["default_user_tags.administrator = true"],
            ),
            (
                "{rabbit, [{auth_backends, [{rabbit_auth_backend_ldap, rabbit_auth_backend_internal}, rabbit_auth_backend_internal]}]}",
                &[
                    "auth_backends.1.authn = rabbit_auth_backend_ldap",
                    "auth_backends.1.authz = rabbit_auth_backend_internal",
                    "auth_backends.2 = rabbit_auth_backend_internal",
                ],
            ),
            (
                "{rabbit, [{ssl_options, [{certfile, \"c.pem\"}, {versions, ['tlsv1.2']}]}]}",
                &["ssl_options.certfile = c.pem", "ssl_options.versions.1 = tlsv1.2"],
            ),
            (
                "{rabbitmq_auth_backend_ldap, [{servers, [\"a\", \"b\"]}, {other_bind, {\"cn=r\", \"pw\"}}, {dn_lookup_bind, anon}]}",
                &[
                    "auth_ldap.servers.1 = a",
                    "auth_ldap.servers.2 = b",
                    "auth_ldap.other_bind.user_dn = cn=r",
                    "auth_ldap.other_bind.password = pw",
                    "auth_ldap.dn_lookup_bind = anon",
                ],
            ),
            (
                "{rabbitmq_auth_backend_ldap, [{vhost_access_query, {in_group, \"cn=${vhost}\"}}, {tag_queries, [{a, {constant, true}}]}]}",
                &[
                    "auth_ldap.queries.vhost_access = {in_group, \"cn=${vhost}\"}",
                    "auth_ldap.queries.tags = [{a, {constant, true}}]",
                ],
            ),
        ] {
            assert_eq!(read(&format!("[{text}].")).unwrap(), settings, "{text}");
        }
        assert_eq!(read("[].").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_known_is_refused_by_application_and_key() {
        for (text, said) in [
            (
                "[{rabbit, [{heartbeat, 1},\n {some_key, 1}]}].",
                "a.config:2: column 2: the key some_key of the application rabbit is not part of this version",
            ),
            (
                "[{zork, [{a, 1}]}].",
                "a.config:1: column 10: the key a of the application zork",
            ),
            (
                "[{rabbit, [{heartbeat, {a}}]}].",
                "a.config:1: column 24: rabbit, heartbeat: expected one value",
            ),
            (
                "[{rabbit, heartbeat}].",
                "a.config:1: column 11: expected [{APPLICATION",
            ),
            ("{rabbit, []}.", "a.config:1: column 1: expected [{APPLICATION"),
            ("[{rabbit, [}].", "a.config:1: column 12: expected an atom"),
            (
                "[{rabbit, [{loopback_users, [\"a b\"]}]}].",
                "a.config:1: column 30: rabbit, loopback_users: 'loopback_users.a b'",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_value_replaces_the_whole_of_what_rabbitmq_conf_says() {
        let conf = "auth_ldap.servers.1 = a\nauth_ldap.servers.2 = b\nauth_ldap.port = 1\nauth_ldap.other_bind.user_dn = x\nheartbeat = 5";
        let mut settings = super::super::sources::text_of_file(conf, Path::new("l.conf")).unwrap();
        let text = "[{rabbitmq_auth_backend_ldap, [{servers, [\"c\"]}, {other_bind, as_user}]}].";
        text_of_file(text, Path::new("a.config"))
            .unwrap()
            .put_behind(&mut settings);
        let kept: Vec<String> = settings
            .iter()
            .map(|it| format!("{}={}", it.key, it.value))
            .collect();
        assert_eq!(
            kept,
            [
                "auth_ldap.port=1",
                "heartbeat=5",
                "auth_ldap.servers.1=c",
                "auth_ldap.other_bind=as_user"
            ]
        );
    }

    #[test]
    fn what_has_no_effect_here_is_said() {
        let text = "[{rabbit, [{credit_flow_default_credit, {0, 0}}]}].";
        let advanced = text_of_file(text, Path::new("a.config")).unwrap();
        assert!(advanced.settings.is_empty());
        assert!(
            advanced.warnings[0]
                .starts_with("a.config:1: rabbit, credit_flow_default_credit: the setting has no effect")
        );
    }

    #[test]
    fn each_key_that_is_known_is_one_of_rabbitmq_conf() {
        for (application, names, becomes) in KNOWN {
            for name in names.split(' ') {
                let key = match becomes {
                    Becomes::Same(prefix) => format!("{prefix}{name}"),
                    Becomes::Value(key) | Becomes::Query(key) => (*key).to_owned(),
                    Becomes::List(key) => format!("{key}.1"),
                    _ => continue,
                };
                let known = super::super::keys::rule(&Key::parse(&key).unwrap());
                assert!(known.is_some(), "{application}: {key}");
            }
        }
    }
}
