//! Policies: what administrators and policymakers say about many queues and exchanges at once.

use crate::administration::administrator::Administrator;
use catalog::{Name, PolicyKind, PutPolicy, Refusal, Request};

impl Administrator<'_> {
    /// Puts a policy, in place of any of its kind and name. When this returns it is durable, and all queues that are there
    /// have been told.
    ///
    /// # Errors
    /// There is no such virtual host, the pattern is no regular expression, the definition makes no sense, or the log failed.
    pub fn put_policy(
        &self,
        vhost: &str,
        kind: PolicyKind,
        name: &str,
        policy: PutPolicy,
    ) -> Result<(), Refusal> {
        let (at, name): (Name, Name) = (vhost.into(), name.into());
        self.change(Request::PutPolicy {
            vhost: at,
            kind,
            name,
            policy,
        })
    }

    /// Deletes a policy; done if there is none.
    ///
    /// # Errors
    /// There is no such virtual host, or the log failed.
    pub fn delete_policy(&self, vhost: &str, kind: PolicyKind, name: &str) -> Result<(), Refusal> {
        let (at, name): (Name, Name) = (vhost.into(), name.into());
        self.change(Request::DeletePolicy {
            vhost: at,
            kind,
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Broker;
    use crate::topology::policies::ruled_anew;
    use crate::{ChannelId, DeclareQueue, Options, Outbox};
    use model::table::Table;
    use std::sync::Arc;

    const CHANNEL: ChannelId = ChannelId(1);

    fn policy(key: &str, value: i64) -> PutPolicy {
        PutPolicy {
            pattern: "^q".into(),
            apply_to: "queues".into(),
            priority: 0,
            definition: Table::new().with(key, value),
        }
    }

    #[test]
    fn a_policy_whose_pattern_is_too_slow_for_later_names_is_told_of_once() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let slow = PutPolicy {
            pattern: r"^(a*)*\1b$".into(),
            ..policy("max-length", 5)
        };
        let administrator = broker.administrator("guest");
        administrator
            .put_policy("/", PolicyKind::User, "p", slow)
            .unwrap();
        let topology = broker.topology();
        assert_eq!(topology.warn_of_slow_policies("/"), 0);
        let view = broker.view();
        let policies = view.vhost("/").unwrap().policies();
        let pattern = &policies.get(PolicyKind::User, "p").unwrap().pattern;
        for at in 0..1_000 {
            assert!(!pattern.matches(&format!("{}{at}", "a".repeat(100))));
        }
        assert!(pattern.excesses() <= 50);
        assert_eq!(topology.warn_of_slow_policies("/"), 1);
        assert_eq!(topology.warn_of_slow_policies("/"), 0);
        broker.close();
    }

    #[test]
    fn only_queues_whose_policies_are_others_are_set_again() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let local = "127.0.0.1".parse().unwrap();
        let user = broker.authenticate("guest", b"guest", local).unwrap();
        let session = broker.connect(user, "/", Arc::new(Outbox::new())).unwrap();
        for name in ["q1", "q2", "other"] {
            let name = name.to_owned();
            let declare = DeclareQueue {
                name,
                ..DeclareQueue::default()
            };
            session.declare_queue(CHANNEL, declare).unwrap();
        }
        let put = |name: &str, policy| {
            let before = broker.view().vhost("/").unwrap().policies().clone();
            let by = broker.administrator("guest");
            by.put_policy("/", PolicyKind::User, name, policy).unwrap();
            ruled_anew(broker.view().vhost("/").unwrap(), &before).count()
        };
        assert_eq!(put("p", policy("max-length", 5)), 2);
        assert_eq!(put("p", policy("max-length", 5)), 0);
        // The first by name counts.
        assert_eq!(put("z", policy("max-length", 4)), 0);
        assert_eq!(put("a", policy("expires", 60_000)), 2);
        broker
            .administrator("guest")
            .delete_policy("/", PolicyKind::User, "a")
            .unwrap();
        let view = broker.view();
        let limit = |name: &str| view.settings(view.queue("/", name).unwrap()).max_length;
        assert_eq!([limit("q1"), limit("other")], [Some(5), None]);
        session.close();
        broker.close();
    }
}
