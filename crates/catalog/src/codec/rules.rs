//! Limits, global parameters, descriptions and topic permissions. What may grow by names is a table.

use super::{Reader, Writer};
use crate::{Metadata, QueueKind, Quota, QuotaOf, TopicPermission};
use model::table::{Table, Value};
use std::sync::Arc;

const VALUE: &str = "value";

impl Writer<'_> {
    pub fn quota_of(&mut self, of: &QuotaOf) {
        let (user, name) = match of {
            QuotaOf::Vhost(name) => (false, name),
            QuotaOf::User(name) => (true, name),
        };
        self.byte(user.into());
        self.text(name);
    }

    pub fn quota(&mut self, of: &QuotaOf, quota: &Quota) {
        self.quota_of(of);
        let mut table = Table::new();
        quota.iter().for_each(|(limit, value)| table.push(limit, value));
        self.table(&table);
    }

    pub fn global(&mut self, value: Option<&Value>) {
        self.table(&value.map_or_else(Table::new, |value| Table::new().with(VALUE, value.clone())));
    }

    pub fn metadata(&mut self, metadata: &Metadata) {
        let tags = metadata.tags.iter();
        let tags = tags.map(|tag| Value::from(tag.as_str())).collect();
        let mut table = Table::new()
            .with("description", metadata.description.as_str())
            .with("tags", Value::Array(tags))
            .with("protected", metadata.protected);
        if let Some(kind) = metadata.default_queue_type {
            table.push("default_queue_type", kind.name());
        }
        self.table(&table);
    }
}

impl Reader<'_> {
    pub fn quota_of(&mut self) -> Option<QuotaOf> {
        Some(match (self.flag()?, self.name()?) {
            (true, name) => QuotaOf::User(name),
            (false, name) => QuotaOf::Vhost(name),
        })
    }

    pub fn quota(&mut self) -> Option<(QuotaOf, Quota)> {
        let of = self.quota_of()?;
        let mut quota = Quota::default();
        for (limit, value) in self.table()?.iter() {
            quota.set(&String::from_utf8_lossy(limit), value.as_integer());
        }
        Some((of, quota))
    }

    pub fn global(&mut self) -> Option<Option<Value>> {
        Some(self.table()?.get(VALUE).cloned())
    }

    pub fn metadata(&mut self) -> Option<Metadata> {
        let table = self.table()?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let tags = table.get("tags").and_then(Value::as_array).unwrap_or_default();
        Some(Metadata {
            description: table.get("description").and_then(text).unwrap_or_default(),
            tags: tags.iter().filter_map(text).collect(),
            protected: table
                .get("protected")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            default_queue_type: table
                .get("default_queue_type")
                .and_then(Value::as_str)
                .and_then(QueueKind::from_name),
        })
    }

    pub fn topic_permission(&mut self) -> Option<Arc<TopicPermission>> {
        let (user, vhost, exchange) = (self.name()?, self.name()?, self.name()?);
        let (write, read) = (self.string()?, self.string()?);
        // It was checked when it was set; should a later version not understand it, it is one that permits nothing.
        let made = TopicPermission::new(user.clone(), vhost.clone(), exchange.clone(), write, read);
        let made =
            made.or_else(|_| TopicPermission::new(user, vhost, exchange, String::new(), String::new()));
        made.ok().map(Arc::new)
    }
}
