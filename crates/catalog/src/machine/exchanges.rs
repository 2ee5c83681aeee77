//! Declaring and deleting exchanges.

use super::{Catalog, Turn, check_length};
use crate::exchange::{is_of_node, is_reserved};
use crate::node::{Incarnation, Lifetime};
use crate::request::strip;
use crate::{
    Answer, DeclareExchange, DeclaredExchange, Destination, ExchangeKind, Name, ObjectKind, Record, Refusal,
    arguments,
};
use std::sync::Arc;

impl<R> Catalog<R> {
    /// Checks in RabbitMQ's order: what exists, reserved prefix, arguments. The rest is in [`crate::Request::check`].
    pub(super) fn declare_exchange(
        &mut self,
        vhost: &Name,
        wanted: DeclareExchange,
        by: Incarnation,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let name = strip(&wanted.name);
        let existing = self.vhost(vhost)?.exchange(&name);
        let Some(kind) = ExchangeKind::from_name(&wanted.kind) else {
            return Err(Refusal::UnknownExchangeType { kind: wanted.kind });
        };
        let DeclareExchange {
            durable,
            auto_delete,
            internal,
            arguments,
            homes,
            ..
        } = wanted;
        if let Some(exchange) = existing {
            arguments::check_same_exchange(exchange, kind, durable, auto_delete, internal, &arguments)?;
            return Ok(Answer::Done);
        }
        if is_reserved(&name) && !(internal && is_of_node(&name)) {
            return Err(Refusal::ReservedName {
                kind: ObjectKind::Exchange,
                name,
            });
        }
        check_length(&name)?;
        arguments::check_exchange(&arguments, &name, vhost)?;
        kind.check_arguments(&arguments)
            .map_err(|text| Refusal::InvalidExchange { text })?;
        let keeps = kind.keeps().map(|kept| (kept, self.home(&homes, by.node)));
        if let Some((_, home)) = keeps {
            self.check_home(home)?;
        }
        let declared = DeclaredExchange {
            vhost: vhost.clone(),
            name: name.into(),
            kind,
            lifetime: Lifetime::of(durable, by),
            auto_delete,
            internal,
            arguments: Arc::new(arguments),
        };
        self.record(Record::ExchangeDeclared(declared.clone()), turn);
        if let Some((kept, home)) = keeps {
            self.create_own(&declared, kept, home, turn);
        }
        Ok(Answer::Done)
    }

    pub(super) fn delete_exchange(
        &mut self,
        vhost: &Name,
        name: &str,
        if_unused: bool,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let name = strip(name);
        let Some(exchange) = self.vhost(vhost)?.exchange(&name) else {
            return Ok(Answer::Done);
        };
        if if_unused && exchange.binding_count() > 0 {
            return Err(Refusal::ExchangeInUse {
                exchange: name,
                vhost: vhost.to_string(),
            });
        }
        let candidates = self.remove_exchange(vhost, &name, turn);
        self.delete_unused(vhost, candidates, turn);
        Ok(Answer::Done)
    }

    /// Removes an exchange. Returns the auto-delete exchanges that lost a binding by that.
    pub(super) fn remove_exchange(&mut self, vhost: &Name, name: &str, turn: &mut Turn<R>) -> Vec<Name> {
        let Some(exchange) = self.view.exchange(vhost, name) else {
            return Vec::new();
        };
        let (name, durable, own) = (exchange.name.clone(), exchange.is_durable(), exchange.own);
        let candidates = self.auto_delete_sources(vhost, &Destination::Exchange(name.clone()));
        self.record(
            Record::ExchangeDeleted {
                vhost: vhost.clone(),
                name,
                durable,
            },
            turn,
        );
        if let Some(own) = own {
            self.remove_queue(own.id(), turn);
        }
        candidates
    }
}
