//! Limits, global parameters, topic permissions, and what is said about virtual hosts. As `administer`, every call
//! returns when the change is durable.

use crate::administration::administrator::Administrator;
use crate::broker::Broker;
use crate::clients::access::THE_NODE;
use catalog::{Metadata, Name, QuotaOf, Refusal, Request};
use model::table::{Table, Value};
use std::collections::BTreeMap;

/// The global parameter that tells clusters apart, whatever they are called.
pub const CLUSTER_ID: &str = "internal_cluster_id";

/// The global parameter with what operators say about a cluster: names and values.
pub const CLUSTER_TAGS: &str = "cluster_tags";

impl Broker {
    /// What tells this cluster from all others, as RabbitMQ's `internal_cluster_id`; empty before [`Self::make_cluster_id`].
    pub fn cluster_id(&self) -> String {
        let view = self.view();
        let set = view.global(CLUSTER_ID).and_then(|value| value.as_str());
        set.unwrap_or_default().to_owned()
    }

    /// Gives the cluster an id if it has none: random, durable, and the same as long as the data directory stays.
    ///
    /// # Errors
    /// The system has no randomness, or the log failed.
    pub fn make_cluster_id(&self) -> Result<(), Refusal> {
        if !self.cluster_id().is_empty() {
            return Ok(());
        }
        let digits = self
            .node()
            .random_bytes()?
            .map(|byte| format!("{byte:02x}"))
            .concat();
        let id = Value::LongStr(format!("leveret-cluster-id-{digits}").into());
        self.administrator(THE_NODE).set_global(CLUSTER_ID, Some(id))
    }
}

impl Broker {
    /// Sets the cluster's tags to those of the configuration, if it has some; else to none if they are not set, as
    /// RabbitMQ does at every start. They may be changed and deleted.
    ///
    /// # Errors
    /// The log failed.
    pub fn make_cluster_tags(&self, configured: &BTreeMap<String, String>) -> Result<(), Refusal> {
        let tags = match configured.is_empty() {
            true if self.view().global(CLUSTER_TAGS).is_some() => return Ok(()),
            true => Value::Array(Vec::new()),
            false => {
                let text = |value: &String| Value::LongStr(value.clone().into());
                let tags = configured.iter();
                Value::Table(tags.fold(Table::new(), |table, (name, value)| {
                    table.with(name.as_str(), text(value))
                }))
            }
        };
        let administrator = self.administrator(THE_NODE);
        administrator.set_global(CLUSTER_TAGS, Some(tags))
    }
}

impl Administrator<'_> {
    /// Sets a limit of a user or a virtual host, or takes it away. It holds for what is opened or published from now on.
    ///
    /// # Errors
    /// There is no such user, virtual host or limit, or the log failed.
    pub fn set_limit(&self, of: QuotaOf, limit: &str, value: Option<i64>) -> Result<(), Refusal> {
        self.set_limits(of, vec![(limit.to_owned(), value)])
    }

    /// Gives a user or a virtual host these limits and no others.
    ///
    /// # Errors
    /// There is no such user, virtual host or limit, or the log failed; then nothing has changed.
    pub fn replace_limits(&self, of: QuotaOf, limits: Vec<(String, i64)>) -> Result<(), Refusal> {
        let gone = of.known().iter();
        let gone = gone.filter(|name| !limits.iter().any(|(given, _)| given == *name));
        let mut all: Vec<(String, Option<i64>)> = gone.map(|name| ((*name).to_owned(), None)).collect();
        all.extend(limits.into_iter().map(|(name, value)| (name, Some(value))));
        self.set_limits(of, all)
    }

    /// Sets limits, or takes them away: all of them or, if one makes no sense, none.
    ///
    /// # Errors
    /// There is no such user, virtual host or limit, or the log failed.
    pub fn set_limits(&self, of: QuotaOf, limits: Vec<(String, Option<i64>)>) -> Result<(), Refusal> {
        let whose = of.clone();
        self.change(Request::SetLimits { of, limits })?;
        if self.is_real() {
            self.follow_limits(&whose);
        }
        Ok(())
    }

    /// Holds those who are there already to the limits of a user or a virtual host.
    pub(crate) fn follow_limits(&self, of: &QuotaOf) {
        match of {
            QuotaOf::User(name) => self
                .broker()
                .usages(true)
                .follow(name, || self.broker().view().user_quota(name)),
            QuotaOf::Vhost(name) => self.broker().usages(false).follow(name, || {
                let view = self.broker().view();
                view.vhost(name).map(|vhost| *vhost.quota()).unwrap_or_default()
            }),
        }
    }

    /// Sets a global parameter, or takes it away.
    ///
    /// # Errors
    /// The name is impossible, or the log failed.
    pub fn set_global(&self, name: &str, value: Option<Value>) -> Result<(), Refusal> {
        let name: Name = name.into();
        self.change(Request::SetGlobal { name, value })
    }

    /// Says what a virtual host is for, and whether it may be deleted.
    ///
    /// # Errors
    /// There is none of this name, or the log failed.
    pub fn describe_vhost(&self, vhost: &str, metadata: Metadata) -> Result<(), Refusal> {
        let vhost: Name = vhost.into();
        self.change(Request::DescribeVhost { vhost, metadata })
    }

    /// Lets a user publish and bind only routing keys that match, on one topic exchange.
    ///
    /// # Errors
    /// There is no such user, virtual host or exchange, an expression is none, or the log failed.
    pub fn set_topic_permission(
        &self,
        user: &str,
        vhost: &str,
        exchange: &str,
        write: &str,
        read: &str,
    ) -> Result<(), Refusal> {
        let (user, vhost, exchange): (Name, Name, Name) = (user.into(), vhost.into(), exchange.into());
        let (write, read) = (write.to_owned(), read.to_owned());
        self.change(Request::SetTopicPermission {
            user,
            vhost,
            exchange,
            write,
            read,
        })
    }

    /// Takes topic permissions away, on one exchange or on all of a virtual host; done if there are none.
    ///
    /// # Errors
    /// The log failed.
    pub fn clear_topic_permissions(
        &self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<(), Refusal> {
        let (user, vhost): (Name, Name) = (user.into(), vhost.into());
        let exchange = exchange.map(Name::from);
        self.change(Request::ClearTopicPermissions {
            user,
            vhost,
            exchange,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn a_cluster_keeps_its_id_over_restarts_and_no_other_has_it() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = |dir: &tempfile::TempDir| {
            let broker = Broker::open(Options::new(dir.path())).unwrap();
            broker.make_cluster_id().unwrap();
            let id = broker.cluster_id();
            broker.close();
            id
        };
        let first = id(&dir);
        assert_eq!(first.len(), "leveret-cluster-id-".len() + 32);
        assert_eq!(id(&dir), first);
        assert_ne!(id(&other), first);
    }
}
