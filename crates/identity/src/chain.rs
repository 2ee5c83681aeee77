//! Which backends are asked, in which order: RabbitMQ's `auth_backends`.

use crate::asked_rights::AskedRights;
use crate::backend::{Backend, Link};
use crate::cache::Cache;
use crate::http::HttpService;
use crate::ldap::Directory;
use crate::oauth2::{OAuth2, Refused};
use crate::question::{AccessQuestion, Authorizer, DirectoryUser, Person};
use crate::verdict::{Admitted, Denied};
use crate::workers::Workers;
use broker::access::{Answer, Attempt, Authority, Users};
use broker::{LoginRefusal, User};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A login that has waited for so long is refused: no client waits longer.
const STALE: Duration = Duration::from_secs(10);

/// The chain of backends. The first link that accepts a login decides; if none does, the login is refused.
pub struct Chain {
    backends: Arc<Backends>,
    workers: Arc<Workers>,
}

/// The servers that the links name.
#[derive(Default)]
pub struct Servers {
    /// Reads tokens.
    pub oauth2: Option<OAuth2>,
    /// Knows passwords and permissions.
    pub http: Option<HttpService>,
    /// Knows passwords and permissions.
    pub ldap: Option<Directory>,
    /// Keeps what one of these two said.
    pub cache: Option<Cache>,
}

struct Backends {
    links: Vec<Link>,
    servers: Arc<Servers>,
    workers: Arc<Workers>,
}

/// Permissions as one of the backends knows them.
struct BackendPermissions {
    servers: Arc<Servers>,
    backend: Backend,
}

/// What came of asking the backends.
enum LoginOutcome {
    Decided(Result<User, LoginRefusal>),
    /// Another server must be asked first.
    MustWait,
}

impl Chain {
    /// A chain of these links.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(links: Vec<Link>, servers: Servers) -> std::io::Result<Self> {
        let (servers, workers) = (Arc::new(servers), Arc::new(Workers::start()?));
        let backends = Backends {
            links,
            servers,
            workers: workers.clone(),
        };
        Ok(Self {
            backends: Arc::new(backends),
            workers,
        })
    }
}

impl Authority for Chain {
    fn clear_cache(&self) -> bool {
        let cache = self.backends.servers.cache.as_ref();
        cache.map(Cache::clear).is_some()
    }

    fn login(&self, users: &Arc<dyn Users>, attempt: Attempt, answer: Answer) {
        if let LoginOutcome::Decided(found) = self.backends.ask(users, &attempt, false) {
            return answer(found);
        }
        let (backends, users) = (self.backends.clone(), users.clone());
        let since = Instant::now();
        let work = move || {
            if since.elapsed() > STALE {
                return answer(Err(LoginRefusal::Authority(
                    "others' logins took too long; whoever is asked about passwords is slow".into(),
                )));
            }
            let found = backends.ask(&users, &attempt, true);
            answer(match found {
                LoginOutcome::Decided(found) => found,
                LoginOutcome::MustWait => Err(LoginRefusal::Authority("no backend could be asked".into())),
            });
        };
        if self.workers.give(Box::new(work)).is_err() {
            // The answer went with the work: whoever waits for it gives up in time.
            tracing::error!(
                area = "connection",
                "too many logins wait for other servers; one was dropped"
            );
        }
    }
}

impl Backends {
    fn ask(&self, users: &Arc<dyn Users>, attempt: &Attempt, may_wait: bool) -> LoginOutcome {
        let mut last = LoginRefusal::Credentials;
        for link in &self.links {
            let found = match link.authenticates {
                Backend::Internal if !may_wait && users.is_slow(attempt) => return LoginOutcome::MustWait,
                Backend::Internal => match users.known(attempt) {
                    Ok(user) => match self.authorized(users, link, user, None, attempt, may_wait) {
                        None => return LoginOutcome::MustWait,
                        Some(found) => found,
                    },
                    Err(refusal) => Err(refusal),
                },
                backend @ (Backend::Http | Backend::Ldap | Backend::Cache) => {
                    match self.password(backend, attempt, may_wait) {
                        None => return LoginOutcome::MustWait,
                        Some(Err(denied)) => Err(LoginRefusal::Authority(denied.to_string())),
                        Some(Ok(Admitted { tags, known_as })) => {
                            let user = User::named(attempt.user.as_str());
                            let user = User { tags, ..user };
                            match self.authorized(users, link, user, known_as, attempt, may_wait) {
                                None => return LoginOutcome::MustWait,
                                Some(found) => found,
                            }
                        }
                    }
                }
                Backend::OAuth2 => match self.token(attempt, may_wait) {
                    Err(Refused::UnknownKey(_)) if !may_wait => return LoginOutcome::MustWait,
                    Err(refused) => Err(LoginRefusal::Authority(refused.to_string())),
                    Ok(user) if link.authorizes == Backend::Internal => {
                        // The name and the tags are the token's, the permissions the catalog's.
                        catalogued(users, user, attempt)
                    }
                    Ok(user) => Ok(user),
                },
            };
            match found {
                Ok(user) => return LoginOutcome::Decided(Ok(user)),
                Err(refusal) => last = refusal,
            }
        }
        LoginOutcome::Decided(Err(last))
    }

    /// A user whose password is good, with the rights that the link's other half gives; `None` if that one must be asked first.
    fn authorized(
        &self,
        users: &Arc<dyn Users>,
        link: &Link,
        mut user: User,
        mut known_as: Option<String>,
        attempt: &Attempt,
        may_wait: bool,
    ) -> Option<Result<User, LoginRefusal>> {
        if link.authorizes == Backend::Internal {
            return Some(match link.authenticates {
                Backend::Internal => Ok(user),
                _ => catalogued(users, user, attempt),
            });
        }
        if link.authorizes != link.authenticates {
            // As in RabbitMQ, it must let the user in, too. The tags of a directory count, those of a service don't.
            match self.password(link.authorizes, attempt, may_wait)? {
                Ok(admitted) => {
                    if self.is_directory(link.authorizes) {
                        add_tags(&mut user.tags, admitted.tags);
                    }
                    known_as = admitted.known_as;
                }
                Err(denied) => return Some(Err(LoginRefusal::Authority(denied.to_string()))),
            }
        }
        let person = Person {
            name: user.name.to_string(),
            tags: user.tags.clone(),
            peer: attempt.peer,
            directory_user: known_as.map(|name| self.directory_user(name, attempt)),
        };
        let permissions = BackendPermissions {
            servers: self.servers.clone(),
            backend: link.authorizes,
        };
        let rights = AskedRights::new(person, Arc::new(permissions), self.workers.clone());
        let rights = Some(Arc::new(rights) as _);
        Some(Ok(User { rights, ..user }))
    }

    /// True if this backend asks the directory.
    fn is_directory(&self, backend: Backend) -> bool {
        let cache = self.servers.cache.as_ref();
        let cache = cache.filter(|_| backend == Backend::Cache);
        cache.map_or(backend, Cache::of) == Backend::Ldap
    }

    /// Somebody's place in the directory. Their password is there only if the directory is asked as them.
    fn directory_user(&self, name: String, attempt: &Attempt) -> DirectoryUser {
        let directory = self.servers.ldap.as_ref();
        let password = match directory.is_some_and(Directory::asks_as_user) {
            true => attempt.password.clone(),
            false => None,
        };
        DirectoryUser { name, password }
    }

    /// What a server says about a password; `None` if it must be asked first.
    fn password(
        &self,
        backend: Backend,
        attempt: &Attempt,
        may_wait: bool,
    ) -> Option<Result<Admitted, Denied>> {
        let servers = &self.servers;
        let cache = servers.cache.as_ref().filter(|_| backend == Backend::Cache);
        let known = cache.and_then(|cache| cache.get(attempt, Instant::now()));
        if known.is_some() || !may_wait {
            return known;
        }
        let absent = || Denied::Unanswered("there are no settings for this backend".into());
        let verdict = match cache.map_or(backend, Cache::of) {
            Backend::Http => {
                let service = servers.http.as_ref();
                service.map(|service| service.login(attempt).map(Admitted::from))
            }
            Backend::Ldap => servers.ldap.as_ref().map(|directory| directory.login(attempt)),
            _ => None,
        };
        let verdict = verdict.unwrap_or_else(|| Err(absent()));
        if let Some(cache) = cache {
            cache.keep(attempt, &verdict, Instant::now());
        }
        let denied = verdict.as_ref().err();
        if let Some(why) = denied.and_then(|denied| denied.unheard(self.links.len())) {
            tracing::error!(area = "connection", "the login of user '{}': {why}", attempt.user);
        }
        Some(verdict)
    }

    fn token(&self, attempt: &Attempt, may_wait: bool) -> Result<User, Refused> {
        let oauth2 = self
            .servers
            .oauth2
            .as_ref()
            .ok_or(Refused::Malformed("there are no settings for tokens"))?;
        let token = attempt
            .password
            .as_deref()
            .ok_or(Refused::Malformed("there is no token"))?;
        oauth2.user(token, may_wait)
    }
}

impl Authorizer for BackendPermissions {
    fn may(&self, person: &Person, question: &AccessQuestion) -> Result<(), Denied> {
        let cache = self.servers.cache.as_ref();
        let cache = cache.filter(|_| self.backend == Backend::Cache);
        let asked = (person, question);
        if let Some(known) = cache.and_then(|cache| cache.get(&asked, Instant::now())) {
            return known.map(drop);
        }
        let servers = &self.servers;
        let verdict = match cache.map_or(self.backend, Cache::of) {
            Backend::Http => servers
                .http
                .as_ref()
                .map(|service| service.permits(person, question)),
            Backend::Ldap => servers
                .ldap
                .as_ref()
                .map(|directory| directory.permits(person, question)),
            _ => None,
        };
        let absent = || Err(Denied::Unanswered("this backend knows no permissions".into()));
        let verdict = verdict.unwrap_or_else(absent).map(|()| Admitted::default());
        if let Some(cache) = cache {
            cache.keep(&asked, &verdict, Instant::now());
        }
        verdict.map(drop)
    }
}

/// A user of another's, with the rights that the catalog gives: it must know the user.
fn catalogued(users: &Arc<dyn Users>, user: User, attempt: &Attempt) -> Result<User, LoginRefusal> {
    let named = Attempt {
        user: user.name.to_string(),
        password: None,
        peer: attempt.peer,
    };
    let mut known = users.known(&named).map_err(|refusal| match refusal {
        LoginRefusal::Credentials => LoginRefusal::Authority(format!(
            "'{}' is let in, but the catalog does not know them; make the user, without a password, for their permissions",
            named.user
        )),
        other => other,
    })?;
    // RabbitMQ joins the tags of both.
    add_tags(&mut known.tags, user.tags);
    Ok(known)
}

fn add_tags(tags: &mut Vec<String>, more: Vec<String>) {
    for tag in more {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
}
