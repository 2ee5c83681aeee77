//! What a new virtual host gets besides its name: limits, operator policies, and users with permissions in it, each for the names that a
//! pattern matches (RabbitMQ's `default_limits`, `default_policies` and `default_users`).

use crate::administer::{Administrator, Permissions};
use catalog::{Pattern, PolicyKind, PutPolicy, QuotaOf, Refusal};
use model::table::{Table, Value};

/// What new virtual hosts get.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VhostDefaults {
    pub limits: Vec<DefaultLimits>,
    pub policies: Vec<DefaultPolicy>,
    pub users: Vec<DefaultUser>,
}

/// Limits of virtual hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultLimits {
    /// Which ones: a regular expression.
    pub pattern: String,
    /// By RabbitMQ's names, such as `max-queues`.
    pub limits: Vec<(String, i64)>,
}

/// An operator policy in virtual hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct DefaultPolicy {
    /// Which virtual hosts: a regular expression.
    pub vhost_pattern: String,
    pub name: String,
    /// Which queues: a regular expression.
    pub queue_pattern: String,
    pub apply_to: String,
    /// Keys as in policies, such as `max-length`.
    pub definition: Vec<(String, i64)>,
}

/// A user who may enter virtual hosts.
#[derive(Clone, PartialEq)]
pub struct DefaultUser {
    /// Which virtual hosts: a regular expression.
    pub vhost_pattern: String,
    pub name: String,
    /// Without one nobody logs in by password as this user.
    pub password: Option<String>,
    pub tags: Vec<String>,
    pub permissions: Permissions,
}

impl std::fmt::Debug for DefaultUser {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.name, self.vhost_pattern)
    }
}

impl VhostDefaults {
    /// Gives a new virtual host what it is to have.
    ///
    /// # Errors
    /// Something of it makes no sense, or the log failed.
    pub fn apply(&self, by: &Administrator<'_>, vhost: &str) -> Result<(), Refusal> {
        for it in &self.limits {
            if Pattern::new(&it.pattern)?.matches(vhost) {
                let limits = it.limits.iter().map(|(name, limit)| (name.clone(), Some(*limit)));
                by.set_limits(QuotaOf::Vhost(vhost.into()), limits.collect())?;
            }
        }
        for it in &self.policies {
            if Pattern::new(&it.vhost_pattern)?.matches(vhost) {
                let members = it.definition.iter();
                let definition = members.fold(Table::new(), |table, (key, value)| {
                    table.with(key.as_str(), Value::from(*value))
                });
                let policy = PutPolicy {
                    pattern: it.queue_pattern.clone(),
                    apply_to: it.apply_to.clone(),
                    priority: 0,
                    definition,
                };
                by.put_policy(vhost, PolicyKind::Operator, &it.name, policy)?;
            }
        }
        for it in &self.users {
            if Pattern::new(&it.vhost_pattern)?.matches(vhost) {
                self.user(by, it, vhost)?;
            }
        }
        Ok(())
    }

    /// RabbitMQ: a user that is there stays as it is, and gets the permissions.
    fn user(&self, by: &Administrator<'_>, user: &DefaultUser, vhost: &str) -> Result<(), Refusal> {
        let broker = by.broker();
        if broker.view().user(&user.name).is_none() {
            let password = user.password.as_ref();
            let password = password.map(|text| broker.hash_password(text.as_bytes()));
            by.put_user(&user.name, password.transpose()?, user.tags.clone())?;
        }
        by.set_permissions(&user.name, vhost, user.permissions.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Broker, Options, THE_NODE};

    fn defaults() -> VhostDefaults {
        VhostDefaults {
            limits: vec![DefaultLimits {
                pattern: "^qa".into(),
                limits: vec![("max-queues".into(), 3)],
            }],
            policies: vec![DefaultPolicy {
                vhost_pattern: "^qa".into(),
                name: "cap".into(),
                queue_pattern: "^q".into(),
                apply_to: "queues".into(),
                definition: vec![("max-length".into(), 5)],
            }],
            users: vec![DefaultUser {
                vhost_pattern: "^qa|^/$".into(),
                name: "tester".into(),
                password: Some("secret".into()),
                tags: vec!["monitoring".into()],
                permissions: Permissions::all(),
            }],
        }
    }

    #[test]
    fn a_new_virtual_host_gets_what_its_name_asks_for() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options {
            vhost_defaults: defaults(),
            ..Options::new(dir.path())
        })
        .unwrap();
        let by = broker.administrator(THE_NODE);
        by.create_vhost("qa-1").unwrap();
        by.create_vhost("prod").unwrap();
        let view = broker.view();
        assert_eq!(view.vhost("qa-1").unwrap().quota().queues, Some(3));
        assert_eq!(view.vhost("prod").unwrap().quota().queues, None);
        assert!(
            view.user("tester").is_some(),
            "the default one is a virtual host, too"
        );
        // What is changed later stays so.
        by.clear_permissions("tester", "qa-1").unwrap();
        by.create_vhost("qa-1").unwrap();
        assert!(broker.view().permission("tester", "qa-1").is_none());
        broker.close();
    }

    #[test]
    fn the_password_is_not_printed() {
        assert!(!format!("{:?}", defaults()).contains("secret"));
    }
}
