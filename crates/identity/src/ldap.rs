//! A directory that knows passwords, tags and permissions (LDAP), asked by logging in to it as the user: RabbitMQ's
//! `rabbitmq_auth_backend_ldap`. Reading order: `settings`, `query` (what is asked), `facts` and `template` (about
//! what), `evaluate` (the answer), `search` and `connection` (asking).

mod connection;
mod evaluate;
mod facts;
mod idle;
mod query;
mod search;
mod settings;
mod template;

use crate::question::{AccessQuestion, Action, DirectoryUser, Person};
use crate::verdict::{Admitted, Denied};
use broker::access::Attempt;
use connection::Connection;
use evaluate::{Evaluation, Truth};
use facts::Facts;
pub use facts::{Occasion, Variable};
use idle::Idle;
pub use query::{Case, Queries, Query, Text};
use rasn_ldap::ResultCode;
use rustls::ClientConfig;
use search::{About, Scope, Search, SearchResult, Searcher};
pub use settings::{AsWhom, DirectorySettings, Lookup, Secured};
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;
use std::time::Instant;
pub use template::Template;

/// The directory.
pub struct Directory {
    settings: DirectorySettings,
    tls: Option<Arc<ClientConfig>>,
    idle: Idle,
}

/// An answer, or why there is none although the directory answers.
type Answer<T> = std::result::Result<T, Denied>;

impl Directory {
    /// Reads the authorities by which the directory is known. It is asked when somebody logs in.
    ///
    /// # Errors
    /// A sentence that names the setting or the file.
    pub fn open(settings: DirectorySettings) -> std::result::Result<Self, String> {
        if settings.servers.is_empty() {
            return Err("auth_ldap.servers.1 must be set: it is the directory that is asked".into());
        }
        if settings.queries.look_for_groups() && settings.groups().is_empty() {
            return Err(
                "auth_ldap.group_lookup_base must be set: in_group_nested in auth_ldap.queries searches for groups \
                 there"
                    .into(),
            );
        }
        let tls = match settings.secured {
            Secured::No => None,
            _ => Some(Arc::new(settings.trust.client()?)),
        };
        let idle = Idle::new(settings.most_idle, settings.idle);
        Ok(Self { settings, tls, idle })
    }

    /// True if questions about permissions are asked as the user, with their password.
    pub fn asks_as_user(&self) -> bool {
        self.settings.asks_as == AsWhom::User && self.settings.queries.permissions_ask()
    }

    /// Lets a user in whom the directory lets in. Takes its time.
    ///
    /// # Errors
    /// It doesn't, or no server of it answers; the password is in no text.
    pub fn login(&self, attempt: &Attempt) -> Answer<Admitted> {
        match attempt.password.as_deref() {
            // A certificate has proven the name; nobody can be asked as them.
            None if self.settings.asks_as == AsWhom::User => {
                return refused(
                    "a directory is asked with a password only, unless auth_ldap.other_bind says as whom",
                );
            }
            // A bind without a password succeeds as nobody.
            Some([]) => return refused("the password is empty"),
            _ => {}
        }
        if attempt.user.is_empty() {
            return refused("the name is empty");
        }
        self.each(|connection| self.admit(connection, attempt))
    }

    /// Whether somebody may do something. Takes its time if the query for it asks something of the directory.
    ///
    /// # Errors
    /// They may not, or no server of it answers.
    pub fn permits(&self, person: &Person, question: &AccessQuestion) -> Answer<()> {
        let queries = &self.settings.queries;
        let (query, key) = match question.action {
            Action::Enter => (&queries.vhost, "vhost_access"),
            Action::Object { .. } => (&queries.resource, "resource_access"),
            Action::Key { .. } => (&queries.topic, "topic_access"),
        };
        let Some(directory_user) = &person.directory_user else {
            return refused("the directory does not know them");
        };
        let facts = Facts::of_user(&person.name)
            .known_as(&directory_user.name)
            .about(question)?;
        let truth = match query.asks() {
            false => self
                .evaluation(&facts, &mut Empty)
                .answer(query)
                .map_err(unasked)?,
            true => self.each(|connection| {
                if let Some(denied) = self.ask_as(connection, directory_user)? {
                    return Ok(Err(denied));
                }
                Ok(Ok(self.evaluation(&facts, connection).answer(query)?))
            })?,
        };
        match truth {
            Truth::Yes => Ok(()),
            Truth::No | Truth::Unknown(None) => refused("the directory does not permit it"),
            Truth::Unknown(Some(why)) => Err(Denied::Unanswered(format!(
                "the directory did not answer, so access is refused: {why} (auth_ldap.queries.{key})"
            ))),
        }
    }

    fn evaluation<'a>(&'a self, facts: &'a Facts, searcher: &'a mut dyn Searcher) -> Evaluation<'a> {
        let groups = self.settings.groups();
        Evaluation {
            facts,
            searcher,
            groups,
        }
    }

    /// Asks the first server that answers.
    fn each<T>(&self, ask: impl Fn(&mut Connection) -> Result<Answer<T>>) -> Answer<T> {
        let mut last = String::new();
        for (number, server) in self.settings.servers.iter().enumerate() {
            match self.ask(number, server, &ask) {
                Ok(answer) => return answer,
                Err(error) => last = format!("{server}:{} cannot be reached: {error}", self.settings.port),
            }
        }
        Err(Denied::Unanswered(format!(
            "{last}; logins and access are refused until it answers (auth_ldap.servers)"
        )))
    }

    /// Asks on a connection that was kept, or on a new one. One that was kept may have ended meanwhile.
    fn ask<T>(&self, number: usize, server: &str, ask: &impl Fn(&mut Connection) -> Result<T>) -> Result<T> {
        if let Some(mut connection) = self.idle.take(number, Instant::now()) {
            connection.within(self.settings.timeout);
            match ask(&mut connection) {
                Ok(answer) => {
                    self.idle.keep(number, connection, Instant::now());
                    return Ok(answer);
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => return Err(error),
                Err(_) => {}
            }
        }
        let mut connection = self.connect(server)?;
        let answer = ask(&mut connection)?;
        self.idle.keep(number, connection, Instant::now());
        Ok(answer)
    }

    fn connect(&self, server: &str) -> Result<Connection> {
        let settings = &self.settings;
        let mut connection = Connection::open(server, settings.port, settings.timeout)?;
        if let Some(tls) = &self.tls {
            if settings.secured == Secured::OnceAgreed {
                connection.start_tls()?;
            }
            connection = connection.secure(settings.trust.name_of(server), tls)?;
        }
        Ok(connection)
    }

    fn admit(&self, connection: &mut Connection, attempt: &Attempt) -> Result<Answer<Admitted>> {
        let facts = Facts::of_user(&attempt.user);
        let password = attempt.password.as_deref();
        let name = match self.name(connection, &facts, password)? {
            Ok(name) => name,
            Err(denied) => return Ok(Err(denied)),
        };
        let directory_user = DirectoryUser {
            name,
            password: password.map(<[u8]>::to_vec),
        };
        let tags = self.tags(connection, &attempt.user, facts, &directory_user)?;
        let known_as = Some(directory_user.name);
        Ok(Ok(Admitted { tags, known_as }))
    }

    /// The user's name in the directory, once they have logged in to it with their password, if they have one.
    fn name(
        &self,
        connection: &mut Connection,
        facts: &Facts,
        password: Option<&[u8]>,
    ) -> Result<Answer<String>> {
        let settings = &self.settings;
        let before = settings
            .lookup
            .as_ref()
            .filter(|lookup| lookup.as_whom != AsWhom::User);
        if let (Some(lookup), Some(password)) = (before, password) {
            log_in(connection, &lookup.as_whom, "dn_lookup_bind")?;
            let found = self.found(connection, lookup, facts)?;
            let Ok(name) = found else { return Ok(found) };
            return Ok(try_password(connection, &name, password)?.map(|()| name));
        }
        if let Some(password) = password {
            let pattern = settings.bind_pattern.as_ref().unwrap_or(&settings.pattern);
            let Some(name) = pattern.name_of_user(facts) else {
                return Ok(refused("the name is not of the form DOMAIN\\USER"));
            };
            if let Err(denied) = try_password(connection, &name, password)? {
                return Ok(Err(denied));
            }
        } else {
            log_in(connection, &settings.asks_as, "other_bind")?;
        }
        if let Some(lookup) = &settings.lookup {
            return self.found(connection, lookup, facts);
        }
        let Some(name) = settings.pattern.name_of_user(facts) else {
            return Ok(refused("the name is not of the form DOMAIN\\USER"));
        };
        // Where no password has proven it, it must at least be there.
        if password.is_none() && connection.search(&Search::of_object(&name))?.objects.is_empty() {
            return Ok(refused("the directory does not have them"));
        }
        Ok(Ok(name))
    }

    /// The name of the one object that is the user; a refusal if there is none, or more than one.
    fn found(&self, connection: &mut Connection, lookup: &Lookup, facts: &Facts) -> Result<Answer<String>> {
        let Some(wanted) = self.settings.pattern.fill(facts, template::Filled::Text) else {
            return Ok(refused("the name is not of the form DOMAIN\\USER"));
        };
        let attribute = &lookup.attribute;
        let mut found = connection.search(&Search {
            base: &lookup.base,
            scope: Scope::Below,
            about: About::Equals(attribute, &wanted),
            attribute: None,
            // Two would be one too many.
            most: 2,
        })?;
        let name = found.objects.pop().map(|object| object.name);
        match (found.end, name) {
            (ResultCode::Success, Some(name)) if found.objects.is_empty() && !name.is_empty() => Ok(Ok(name)),
            (ResultCode::Success | ResultCode::NoSuchObject | ResultCode::SizeLimitExceeded, _) => {
                Ok(refused(
                    "the directory has not exactly one object with this name (auth_ldap.dn_lookup_attribute)",
                ))
            }
            (other, _) => Err(Error::other(format!(
                "it does not search for '{attribute}' ({other:?})"
            ))),
        }
    }

    fn tags(
        &self,
        connection: &mut Connection,
        user: &str,
        facts: Facts,
        directory_user: &DirectoryUser,
    ) -> Result<Vec<String>> {
        let queries = &self.settings.queries.tags;
        let facts = facts.known_as(&directory_user.name);
        // Whoever has just logged in needs not do it again.
        let again = self.settings.asks_as != AsWhom::User && directory_user.password.is_some();
        if again && queries.iter().any(|(_, query)| query.asks()) {
            log_in(connection, &self.settings.asks_as, "other_bind")?;
        }
        let mut tags = Vec::new();
        for (tag, query) in queries {
            match self.evaluation(&facts, connection).answer(query)? {
                Truth::Yes => tags.push(tag.clone()),
                Truth::No | Truth::Unknown(None) => {}
                Truth::Unknown(Some(why)) => tracing::warn!(
                    area = "connection",
                    "user '{user}' has not the tag '{tag}', because the directory does not say: {why} (auth_ldap.queries.tags)"
                ),
            }
        }
        Ok(tags)
    }

    /// Logs in as whoever asks about this user's permissions; why not, if the user is no longer let in.
    fn ask_as(&self, connection: &mut Connection, directory_user: &DirectoryUser) -> Result<Option<Denied>> {
        if self.settings.asks_as != AsWhom::User {
            return log_in(connection, &self.settings.asks_as, "other_bind").map(|()| None);
        }
        let password = directory_user.password.as_deref().unwrap_or_default();
        if password.is_empty() {
            return Ok(Some(Denied::Refused(
                "the directory is asked as the user, whose password is not known".into(),
            )));
        }
        Ok(try_password(connection, &directory_user.name, password)?.err())
    }
}

/// Logs in as a user.
fn try_password(connection: &mut Connection, name: &str, password: &[u8]) -> Result<Answer<()>> {
    match connection.bind(name, password)? {
        ResultCode::Success => Ok(Ok(())),
        ResultCode::InvalidCredentials | ResultCode::NoSuchObject | ResultCode::InvalidDnSyntax => {
            Ok(refused("the directory refuses the name or the password"))
        }
        other => Err(Error::other(format!("it answers a login with {other:?}"))),
    }
}

/// Logs in as somebody whom the configuration names; as the user, who is logged in, is nothing to do.
fn log_in(connection: &mut Connection, as_whom: &AsWhom, key: &str) -> Result<()> {
    let answer = match as_whom {
        AsWhom::User => return Ok(()),
        AsWhom::Nobody => connection.bind("", b"")?,
        AsWhom::Named { name, password } => connection.bind(name, password.as_bytes())?,
    };
    match answer {
        ResultCode::Success => Ok(()),
        other => Err(Error::other(format!("it refuses auth_ldap.{key} ({other:?})"))),
    }
}

fn refused<T>(why: &str) -> Answer<T> {
    Err(Denied::Refused(why.to_owned()))
}

fn unasked(error: Error) -> Denied {
    Denied::Unanswered(error.to_string())
}

/// What queries that ask nobody look at.
struct Empty;

impl Searcher for Empty {
    fn search(&mut self, _: &Search<'_>) -> Result<SearchResult> {
        Err(Error::other("there is nobody to ask"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(user: &str, password: Option<&[u8]>) -> Attempt {
        Attempt {
            user: user.into(),
            password: password.map(<[u8]>::to_vec),
            peer: [127, 0, 0, 1].into(),
        }
    }

    fn nowhere() -> DirectorySettings {
        DirectorySettings {
            servers: vec!["directory.invalid".into()],
            ..DirectorySettings::default()
        }
    }

    #[test]
    fn nobody_is_let_in_without_a_name_and_a_password_and_nobody_is_asked_then() {
        let directory = Directory::open(nowhere()).unwrap();
        for denied in [
            attempt("jane", Some(b"")),
            attempt("jane", None),
            attempt("", Some(b"x")),
        ] {
            assert!(matches!(directory.login(&denied), Err(Denied::Refused(_))));
        }
    }

    #[test]
    fn a_permission_is_asked_for_only_if_its_query_asks_something() {
        let person = Person {
            name: "jane".into(),
            tags: vec![],
            peer: [127, 0, 0, 1].into(),
            directory_user: Some(DirectoryUser {
                name: "cn=jane".into(),
                password: Some(b"s3cret".to_vec()),
            }),
        };
        let (vhost, action) = ("/".to_owned(), Action::Enter);
        let question = AccessQuestion { vhost, action };
        assert_eq!(
            Directory::open(nowhere()).unwrap().permits(&person, &question),
            Ok(())
        );
        let mut settings = nowhere();
        settings.queries.vhost = Query::Exists(Template::parse("cn=${vhost}", Occasion::ForVhost).unwrap());
        let directory = Directory::open(settings).unwrap();
        assert!(directory.asks_as_user());
        let denied = directory.permits(&person, &question);
        assert!(matches!(&denied, Err(Denied::Unanswered(why)) if why.contains("directory.invalid")));
        assert!(!format!("{person:?}").contains("s3cret"));
        let nobody = Person {
            directory_user: None,
            ..person
        };
        assert!(matches!(
            directory.permits(&nobody, &question),
            Err(Denied::Refused(_))
        ));
    }

    #[test]
    fn settings_show_no_password() {
        let named = AsWhom::Named {
            name: "cn=reader".into(),
            password: "s3cret".into(),
        };
        let settings = DirectorySettings {
            lookup: Some(Lookup {
                attribute: "uid".into(),
                base: "dc=example".into(),
                as_whom: named.clone(),
            }),
            asks_as: named,
            ..DirectorySettings::default()
        };
        assert!(!format!("{settings:?}").contains("s3cret"));
        assert!(Directory::open(settings).is_err(), "no servers");
    }
}
