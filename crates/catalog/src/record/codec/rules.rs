//! The bytes of limits, global parameters, descriptions and topic permissions. What may grow by names is a table.

use super::{Reader, Writer};
use crate::{Metadata, Quota, QuotaOf, Record, TopicPermission};
use model::table::{Table, Value};
use std::sync::Arc;

const VALUE: &str = "value";

pub fn quota(out: &mut Writer<'_>, of: &QuotaOf, quota: &Quota) {
    let (user, name) = match of {
        QuotaOf::Vhost(name) => (false, name),
        QuotaOf::User(name) => (true, name),
    };
    out.byte(user.into());
    out.text(name);
    let mut table = Table::new();
    quota.iter().for_each(|(limit, value)| table.push(limit, value));
    out.table(&table);
}

pub fn read_quota(reader: &mut Reader<'_>) -> Option<Record> {
    let of = match (reader.flag()?, reader.name()?) {
        (true, name) => QuotaOf::User(name),
        (false, name) => QuotaOf::Vhost(name),
    };
    let mut quota = Quota::default();
    for (limit, value) in reader.table()?.iter() {
        quota.set(&String::from_utf8_lossy(limit), value.as_integer());
    }
    Some(Record::QuotaSet { of, quota })
}

pub fn global(value: Option<&Value>) -> Table {
    value.map_or_else(Table::new, |value| Table::new().with(VALUE, value.clone()))
}

pub fn read_global(table: &Table) -> Option<Value> {
    table.get(VALUE).cloned()
}

pub fn metadata(metadata: &Metadata) -> Table {
    let tags = metadata
        .tags
        .iter()
        .map(|tag| Value::from(tag.as_str()))
        .collect();
    Table::new()
        .with("description", metadata.description.as_str())
        .with("tags", Value::Array(tags))
        .with("protected", metadata.protected)
}

pub fn read_metadata(table: &Table) -> Metadata {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tags = table.get("tags").and_then(Value::as_array).unwrap_or_default();
    Metadata {
        description: table.get("description").and_then(text).unwrap_or_default(),
        tags: tags.iter().filter_map(text).collect(),
        protected: table
            .get("protected")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
    }
}

pub fn read_topic_permission(reader: &mut Reader<'_>) -> Option<Record> {
    let (user, vhost, exchange) = (reader.name()?, reader.name()?, reader.name()?);
    let (write, read) = (reader.text()?.to_owned(), reader.text()?.to_owned());
    // It was checked when it was set; should a later version not understand it, it is one that permits nothing.
    let made = TopicPermission::new(user.clone(), vhost.clone(), exchange.clone(), write, read);
    let made = made.or_else(|_| TopicPermission::new(user, vhost, exchange, String::new(), String::new()));
    Some(Record::TopicPermissionSet(Arc::new(made.ok()?)))
}
