//! Writing everything durable down again.

use super::{Catalog, Turn};
use crate::exchange::is_predeclared;
use crate::{Answer, Binding, Name, Record, Refusal, Vhost};

impl<R> Catalog<R> {
    /// Emits the snapshot's records. They change nothing here, so they are not applied; replayed after what came before
    /// they change nothing either, and replayed alone they are everything.
    pub(super) fn checkpoint(&mut self, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let records = &mut turn.records;
        records.push(Record::SnapshotStarted);
        records.push(Record::QueueIdsReserved { below: self.reserved });
        for user in self.view.users() {
            records.push(Record::UserPut {
                name: user.name.as_str().into(),
                password: user.password.clone(),
                tags: user.tags.clone(),
            });
        }
        for vhost in self.view.vhosts() {
            records.push(Record::VhostCreated {
                name: vhost.name.clone(),
            });
            snapshot_objects(vhost, records);
            let durable = vhost.bindings().filter(|binding| binding.durable);
            records.extend(durable.map(|binding| bound(&vhost.name, binding)));
        }
        for permission in self.view.permissions() {
            records.push(Record::PermissionsSet {
                user: permission.user.clone(),
                vhost: permission.vhost.clone(),
                configure: permission.configure.source().into(),
                write: permission.write.source().into(),
                read: permission.read.source().into(),
            });
        }
        records.push(Record::SnapshotFinished);
        Ok(Answer::Done)
    }
}

fn snapshot_objects(vhost: &Vhost, records: &mut Vec<Record>) {
    for exchange in vhost.exchanges() {
        if exchange.durable && !is_predeclared(&exchange.name) {
            records.push(Record::ExchangeDeclared {
                vhost: vhost.name.clone(),
                name: exchange.name.clone(),
                kind: exchange.kind,
                durable: true,
                auto_delete: exchange.auto_delete,
                internal: exchange.internal,
                arguments: exchange.arguments.clone(),
            });
        }
    }
    let durable = vhost.queues().filter(|queue| queue.survives_restart());
    records.extend(durable.map(|queue| Record::QueueDeclared(queue.clone())));
}

fn bound(vhost: &Name, binding: &Binding) -> Record {
    Record::Bound {
        vhost: vhost.clone(),
        source: binding.source.clone(),
        destination: binding.destination.clone(),
        routing_key: binding.routing_key.clone(),
        arguments: binding.arguments.clone(),
        durable: true,
    }
}
