//! Gives a new virtual host what the configuration says that new ones get.

use crate::administration::administrator::Administrator;
use crate::options::vhost_defaults::DefaultUser;
use catalog::{Pattern, PolicyKind, PutPolicy, QuotaOf, Refusal};
use model::table::{Table, Value};

impl Administrator<'_> {
    /// Gives a new virtual host what it is to have.
    ///
    /// # Errors
    /// Something of it makes no sense, or the log failed.
    pub(crate) fn apply_defaults(&self, vhost: &str) -> Result<(), Refusal> {
        let defaults = &self.broker().options().vhost_defaults;
        for it in &defaults.limits {
            if Pattern::new(&it.pattern)?.matches(vhost) {
                let limits = it.limits.iter().map(|(name, limit)| (name.clone(), Some(*limit)));
                self.set_limits(QuotaOf::Vhost(vhost.into()), limits.collect())?;
            }
        }
        for it in &defaults.policies {
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
                self.put_policy(vhost, PolicyKind::Operator, &it.name, policy)?;
            }
        }
        for it in &defaults.users {
            if Pattern::new(&it.vhost_pattern)?.matches(vhost) {
                self.default_user(it, vhost)?;
            }
        }
        Ok(())
    }

    /// RabbitMQ: a user that is there stays as it is, and gets the permissions.
    fn default_user(&self, user: &DefaultUser, vhost: &str) -> Result<(), Refusal> {
        let broker = self.broker();
        if broker.view().user(&user.name).is_none() {
            let password = user.password.as_ref();
            let password = password.map(|text| broker.hash_password(text.as_bytes()));
            self.put_user(&user.name, password.transpose()?, user.tags.clone())?;
        }
        self.set_permissions(&user.name, vhost, user.permissions.clone())
    }
}

#[cfg(test)]
mod tests {
    use crate::clients::access::Permissions;
    use crate::options::vhost_defaults::{DefaultLimits, DefaultPolicy, DefaultUser, VhostDefaults};
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
