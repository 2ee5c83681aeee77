//! What administrators change: virtual hosts, users, permissions. Who may ask for that, the HTTP API decides by tags;
//! events tell who did.
//!
//! Every call returns when the change is durable, so it may take as long as a sync does.

use crate::administration::draft::Draft;
use crate::broker::Broker;
use crate::clients::access::Permissions;
use catalog::{
    DeclareExchange, DeclareQueue, Destination, Name, NodeConnection, PasswordHash, PasswordHashing, Refusal,
    Request, View, WantedBinding,
};
use model::table::Table;
use std::sync::{Arc, Mutex, PoisonError};

/// Somebody who changes what exists.
#[derive(Clone)]
pub struct Administrator<'a> {
    broker: &'a Broker,
    name: Arc<str>,
    /// Nothing is synced until the asker says so.
    in_bulk: bool,
    /// Everything is only tried, on this.
    draft: Option<&'a Mutex<Draft>>,
}

impl Broker {
    /// Somebody of this name, who may change everything: that they may was decided before.
    pub fn administrator(&self, name: &str) -> Administrator<'_> {
        Administrator {
            broker: self,
            name: name.into(),
            in_bulk: false,
            draft: None,
        }
    }

    /// A password's hash with a salt of its own.
    ///
    /// # Errors
    /// It is not what passwords must be like, or the system has no randomness.
    pub fn hash_password(&self, password: &[u8]) -> Result<PasswordHash, Refusal> {
        self.options().credentials.check(password)?;
        self.hash_password_by(self.options().password_hashing, password)
    }

    /// Hashes a password, with a salt of its own, by this algorithm.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn hash_password_by(
        &self,
        algorithm: PasswordHashing,
        password: &[u8],
    ) -> Result<PasswordHash, Refusal> {
        let internal = |reason: String| Refusal::Internal { reason };
        let random = self.node().random_bytes()?;
        let [a, b, c, d, ..] = random;
        match algorithm {
            PasswordHashing::Sha256 => Ok(PasswordHash::new([a, b, c, d], password)),
            PasswordHashing::Sha512 => Ok(PasswordHash::sha512([a, b, c, d], password)),
            PasswordHashing::Argon2id => PasswordHash::slow(random, password)
                .ok_or_else(|| internal("not enough memory to hash a password".into())),
            PasswordHashing::Md5 => Err(internal("new passwords are not hashed with MD5".into())),
        }
    }

    /// Waits until everything that was changed before is durable.
    ///
    /// # Errors
    /// The log failed.
    pub fn make_durable(&self) -> Result<(), Refusal> {
        self.node().log.sync().map_err(|error| Refusal::Internal {
            reason: error.to_string(),
        })
    }
}

impl<'a> Administrator<'a> {
    /// The same, for many changes: they are durable only once [`Broker::make_durable`] has returned, which costs one
    /// sync for all.
    pub fn in_bulk(&self) -> Self {
        Self {
            broker: self.broker,
            name: self.name.clone(),
            in_bulk: true,
            draft: self.draft,
        }
    }

    /// The same, who only tries what they do, on a draft.
    pub(crate) fn on<'d>(&self, draft: &'d Mutex<Draft>) -> Administrator<'d>
    where
        'a: 'd,
    {
        Administrator {
            broker: self.broker,
            name: self.name.clone(),
            in_bulk: true,
            draft: Some(draft),
        }
    }

    /// What exists for them: with what they have only tried.
    pub fn view(&self) -> Arc<View> {
        match self.draft {
            None => self.broker.view(),
            Some(draft) => Arc::new(draft.lock().unwrap_or_else(PoisonError::into_inner).view()),
        }
    }

    /// True if what they do changes something at once.
    pub(crate) fn is_real(&self) -> bool {
        self.draft.is_none()
    }

    /// True if nobody else ends connections when a change is made: where several nodes decide, each of them does when it hears
    /// of it.
    fn ends_connections(&self) -> bool {
        self.is_real() && self.broker.shared_catalog().is_none()
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Where they change it.
    pub fn broker(&self) -> &'a Broker {
        self.broker
    }

    /// Creates a virtual host; done if it exists.
    ///
    /// # Errors
    /// The name is impossible, or the log failed.
    pub fn create_vhost(&self, name: &str) -> Result<(), Refusal> {
        let is_new = self.broker.view().vhost(name).is_none();
        let limits = &self.broker.options().node_limits;
        limits.permit_vhost(&self.view(), name)?;
        let vhost: Name = name.into();
        self.change(Request::CreateVhost { name: vhost })?;
        match is_new {
            true => self.apply_defaults(name),
            false => Ok(()),
        }
    }

    /// Deletes a virtual host with everything in it and closes its connections; done if there is none.
    ///
    /// # Errors
    /// The log failed.
    pub fn delete_vhost(&self, vhost: &str) -> Result<(), Refusal> {
        let name: Name = vhost.into();
        self.change(Request::DeleteVhost { name })?;
        if self.ends_connections() {
            self.broker.vhost_is_gone(vhost);
        }
        Ok(())
    }

    /// Creates a user or replaces its password and tags. Nobody logs in by password as a user without one.
    ///
    /// # Errors
    /// The name is impossible, or the log failed.
    pub fn put_user(
        &self,
        name: &str,
        password: Option<PasswordHash>,
        tags: Vec<String>,
    ) -> Result<(), Refusal> {
        let is_weak = password.as_ref().is_some_and(|hash| hash.algorithm().is_weak());
        if is_weak && self.is_real() {
            Self::warn_of_weakness(name);
        }
        let name: Name = name.into();
        self.change(Request::PutUser { name, password, tags })
    }

    /// Deletes a user and its permissions and closes its connections; done if there is none.
    ///
    /// # Errors
    /// The log failed.
    pub fn delete_user(&self, user: &str) -> Result<(), Refusal> {
        let name: Name = user.into();
        self.change(Request::DeleteUser { name })?;
        if self.ends_connections() {
            self.broker.user_is_gone(user);
        }
        Ok(())
    }

    /// Says what a user may do in a virtual host.
    ///
    /// # Errors
    /// There is no such user or virtual host, a permission is no regular expression, or the log failed.
    pub fn set_permissions(&self, user: &str, vhost: &str, permissions: Permissions) -> Result<(), Refusal> {
        let (user, vhost): (Name, Name) = (user.into(), vhost.into());
        let Permissions {
            configure,
            write,
            read,
        } = permissions;
        self.change(Request::SetPermissions {
            user,
            vhost,
            configure,
            write,
            read,
        })
    }

    /// Takes a user's permissions in a virtual host away; done if there are none.
    ///
    /// # Errors
    /// The log failed.
    pub fn clear_permissions(&self, user: &str, vhost: &str) -> Result<(), Refusal> {
        let (user, vhost): (Name, Name) = (user.into(), vhost.into());
        self.change(Request::ClearPermissions { user, vhost })
    }

    /// Declares an exchange without asking for permissions. Durable after [`Broker::make_durable`].
    ///
    /// # Errors
    /// See RabbitMQ's `exchange.declare`.
    pub fn install_exchange(&self, vhost: &str, declare: DeclareExchange) -> Result<(), Refusal> {
        let limits = &self.broker.options().node_limits;
        limits.permit_exchange(&self.view(), vhost, &declare.name)?;
        let vhost = vhost.into();
        let by = self.broker.topology().incarnation();
        let request = Request::DeclareExchange { vhost, declare, by };
        self.decide(request)
    }

    /// Declares a queue without asking for permissions. Durable after [`Broker::make_durable`].
    ///
    /// # Errors
    /// See RabbitMQ's `queue.declare`.
    pub fn install_queue(&self, vhost: &str, declare: DeclareQueue) -> Result<(), Refusal> {
        let limits = &self.broker.options().node_limits;
        limits.permit_queue(&self.view(), vhost, &declare.name)?;
        let vhost: Name = vhost.into();
        let mut declare = DeclareQueue {
            passive: false,
            exclusive: false,
            ..declare
        };
        let defaults = self.broker.options().queue_defaults;
        declare.complete(self.view().vhost(&vhost).map(|it| &**it), defaults);
        let request = Request::DeclareQueue {
            vhost,
            declare,
            by: self.as_node(),
            unique: [0; 16],
        };
        self.decide(request)
    }

    /// Binds without asking for permissions. Durable after [`Broker::make_durable`].
    ///
    /// # Errors
    /// One of both ends is missing, or the arguments make no sense.
    pub fn install_binding(
        &self,
        vhost: &str,
        source: &str,
        destination: Destination,
        routing_key: &[u8],
        arguments: Table,
    ) -> Result<(), Refusal> {
        let vhost = vhost.into();
        let binding = WantedBinding {
            source: source.into(),
            destination,
            routing_key: routing_key.into(),
            arguments,
            by: self.as_node(),
        };
        let request = Request::Bind { vhost, binding };
        self.decide(request)
    }

    pub(crate) fn warn_of_weakness(user: &str) {
        tracing::warn!(
            area = "access",
            "user '{user}' has a password hash by MD5, which is quickly guessed: set the password anew"
        );
    }

    /// What is declared for nobody's connection is the node's.
    fn as_node(&self) -> NodeConnection {
        NodeConnection::of_node(self.broker.topology().incarnation())
    }

    /// Removes a node from the cluster, with the queues that live there; nobody looks whether it runs. Done if there is none of
    /// this name.
    ///
    /// # Errors
    /// Nobody decides.
    pub fn forget_node(&self, name: &str) -> Result<(), Refusal> {
        let view = self.view();
        let mut nodes = view.nodes().filter(|(_, known)| known.joined().is_some());
        let Some((node, _)) = nodes.find(|(_, known)| *known.name == *name) else {
            return Ok(());
        };
        self.change(Request::ForgetNode { node: *node })?;
        self.broker.topology().end_transient()
    }

    fn decide(&self, request: Request) -> Result<(), Refusal> {
        match self.draft {
            None => {
                let decision = self.broker.topology().decide_by(&self.name, request);
                decision.wait().map(|_| ())
            }
            Some(draft) => {
                let mut draft = draft.lock().unwrap_or_else(PoisonError::into_inner);
                draft.try_out(request).map(|_| ())
            }
        }
    }

    pub(crate) fn change(&self, request: Request) -> Result<(), Refusal> {
        self.decide(request)?;
        match self.in_bulk {
            true => Ok(()),
            false => self.broker.make_durable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::close_reason::CloseReason;
    use crate::{Event, Options, Outbox};
    use std::sync::Arc;

    #[test]
    fn who_loses_user_or_virtual_host_is_disconnected_and_changes_survive() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Broker::open(Options::new(dir.path())).unwrap();
        let broker = open();
        let local = "127.0.0.1".parse().unwrap();
        let administrator = broker.administrator("guest");
        administrator.create_vhost("shop").unwrap();
        let hash = broker.hash_password(b"secret").unwrap();
        administrator
            .put_user("jane", Some(hash), vec!["monitoring".into()])
            .unwrap();
        administrator
            .set_permissions("jane", "shop", Permissions::all())
            .unwrap();
        let connect = || {
            let outbox = Arc::new(Outbox::new());
            let user = broker.authenticate("jane", b"secret", local).unwrap();
            (broker.connect(user, "shop", outbox.clone()).unwrap(), outbox)
        };
        let told = |outbox: &Outbox| {
            let mut events = Vec::new();
            outbox.take_now(&mut events);
            match events.pop() {
                Some(Event::Close(reason)) => reason,
                other => panic!("{other:?}"),
            }
        };
        let (_session, outbox) = connect();
        administrator.delete_vhost("shop").unwrap();
        assert_eq!(told(&outbox), CloseReason::VhostDeleted("shop".into()));
        administrator.create_vhost("shop").unwrap();
        administrator.clear_permissions("jane", "shop").unwrap();
        broker.close();
        drop(_session);
        drop(broker);
        let broker = open();
        let administrator = broker.administrator("guest");
        assert!(broker.authenticate("jane", b"secret", local).is_ok());
        assert!(broker.view().vhost("shop").is_some() && !broker.view().vhost_access("jane", "shop"));
        administrator.delete_user("jane").unwrap();
        assert!(broker.authenticate("jane", b"secret", local).is_err());
        broker.close();
    }
}
