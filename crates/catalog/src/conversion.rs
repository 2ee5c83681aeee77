//! A queue becomes one of another kind, in its place, by its name and with all that it has: what it is declared with from then
//! on, and what is otherwise. See decision note 64.

use crate::arguments::{self, QUEUE_TYPE};
use crate::{Queue, QueueKind, Refusal, Vhost, View};
use model::table::{Table, Value};
use model::{DeliveryLimit, Overflow, QueueSettings, Sorting};
use std::sync::Arc;

/// What would become of a queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// What it would be declared with.
    pub arguments: Table,
    /// Arguments that have an effect now and that queues of the other kind don't take.
    pub lost: Vec<String>,
    /// What else would be otherwise, a sentence each.
    pub differences: Vec<String>,
}

impl Queue {
    /// The same queue, as one of this kind. It is on the nodes that it was on.
    ///
    /// # Errors
    /// Queues of its kind are not converted, or it cannot be of the other one.
    pub(crate) fn converted(&self, kind: QueueKind) -> Result<Self, Refusal> {
        let (name, vhost) = (&self.name, &self.vhost);
        let refused = |why: String| {
            let text = format!("queue '{name}' in vhost '{vhost}' cannot be converted: {why}");
            Err(Refusal::NotConvertible { text })
        };
        let converts = |kind: QueueKind| matches!(kind, QueueKind::Classic | QueueKind::Quorum);
        if !converts(self.kind) || !converts(kind) {
            return refused("only classic queues and quorum queues are converted into each other".into());
        }
        let (durable, exclusive, auto_delete) = (self.is_durable(), self.is_exclusive(), self.auto_delete);
        if !kind.is_compatible(durable, exclusive, auto_delete) {
            let what = match (exclusive, auto_delete) {
                (true, _) => "exclusive",
                (_, true) => "deleted with its last consumer",
                _ => "not durable",
            };
            return refused(format!("it is {what}, and no {} queue is", kind.name()));
        }
        let arguments = self.arguments_as(kind);
        if let Err(refusal) = arguments::check_queue(kind, &arguments, name, vhost) {
            return refused(refusal.to_string());
        }
        Ok(Self {
            kind,
            other_arguments: Some(self.arguments.clone()),
            arguments: Arc::new(arguments),
            ..self.clone()
        })
    }

    /// Checks that a queue which is declared as one that was converted can have been what it is said to have been.
    ///
    /// # Errors
    /// It is of that kind now, or could not be of it.
    pub(crate) fn check_other_form(&self) -> Result<(), Refusal> {
        let Some(before) = &self.other_arguments else {
            return Ok(());
        };
        let kind = arguments::kind_of(before);
        if kind == self.kind {
            let (name, vhost, kind) = (&self.name, &self.vhost, kind.name());
            let text = format!(
                "queue '{name}' in vhost '{vhost}' cannot have been a {kind} queue before, for it is one"
            );
            return Err(Refusal::NotConvertible { text });
        }
        self.converted(kind).map(drop)
    }

    /// Those that it had when it was of this kind last, or those of now that such a queue takes.
    fn arguments_as(&self, kind: QueueKind) -> Table {
        let before = self.other_arguments.as_ref();
        if let Some(before) = before.filter(|before| arguments::kind_of(before) == kind) {
            return (**before).clone();
        }
        let mut table = Table::new();
        for (name, value) in self.arguments.iter() {
            match std::str::from_utf8(name) {
                Ok(QUEUE_TYPE) => table.push(QUEUE_TYPE, kind.name()),
                Ok(known) if !arguments::takes(kind, known) => {}
                _ => table.push(name, value.clone()),
            }
        }
        if !table.contains(QUEUE_TYPE) {
            table.push(QUEUE_TYPE, kind.name());
        }
        table
    }
}

impl View {
    /// What would become of a queue that is converted to another kind. Of one that is of that kind, nothing.
    ///
    /// # Errors
    /// Queues of its kind are not converted, or it cannot be of the other one.
    pub fn conversion(&self, queue: &Queue, kind: QueueKind) -> Result<Conversion, Refusal> {
        if queue.kind == kind {
            return Ok(Conversion {
                arguments: (*queue.arguments).clone(),
                ..Conversion::default()
            });
        }
        let then = queue.converted(kind)?;
        let lost = queue.arguments.iter().filter_map(|(name, _)| {
            let name = std::str::from_utf8(name).ok()?;
            let is_lost = !then.arguments.contains(name) && arguments::has_effect(name);
            is_lost.then(|| name.to_owned())
        });
        let lost = lost.collect();
        let vhost = self.vhost(&queue.vhost);
        let differences = vhost.map(|vhost| differences(vhost, queue, &then));
        Ok(Conversion {
            lost,
            differences: differences.unwrap_or_default(),
            arguments: (*then.arguments).clone(),
        })
    }
}

fn differences(vhost: &Vhost, queue: &Queue, then: &Queue) -> Vec<String> {
    let mut told = Vec::new();
    for (name, value) in queue.arguments.iter() {
        let name = String::from_utf8_lossy(name);
        if name != QUEUE_TYPE && !then.arguments.contains(&*name) {
            told.push(format!("its argument {name} ({}) goes", shown(value)));
        }
    }
    for (name, value) in then.arguments.iter() {
        let name = String::from_utf8_lossy(name);
        if name != QUEUE_TYPE && !queue.arguments.contains(&*name) {
            told.push(format!("it has the argument {name} ({}) again", shown(value)));
        }
    }
    let policies = vhost.policies();
    let (before, after) = (policies.of_queue(queue), policies.of_queue(then));
    let both = [(before.user, after.user), (before.operator, after.operator)];
    for (before, after) in both {
        let (before, after) = (before.map(|it| &it.name), after.map(|it| &it.name));
        if before != after {
            let named = |name: Option<&crate::Name>| name.map_or("none".into(), |name| format!("'{name}'"));
            let (before, after) = (named(before), named(after));
            told.push(format!("the policy that applies to it is {after}, not {before}"));
        }
    }
    told.push(match then.kind.is_replicated() {
        true => {
            "it is on as many nodes as a new quorum queue, or on those that have it now if these are more"
                .into()
        }
        false => "one node has it, unless a policy mirrors it (ha-mode)".into(),
    });
    of_settings(&vhost.settings(queue), &vhost.settings(then), &mut told);
    told.extend(vhost.fallbacks(then));
    if !then.kind.has_exclusive_consumers() {
        told.push("new consumers are not exclusive, also if they ask for it".into());
    }
    told
}

fn shown(value: &Value) -> String {
    match (value.as_str(), value.as_integer(), value.as_bool()) {
        (Some(text), ..) => text.to_owned(),
        (_, Some(number), _) => number.to_string(),
        (_, _, Some(flag)) => flag.to_string(),
        _ => value.type_name().to_owned(),
    }
}

/// What of two settings differs, whether arguments, policies or the kind say so.
fn of_settings(now: &QueueSettings, then: &QueueSettings, told: &mut Vec<String>) {
    match (now.keeps_transient, then.keeps_transient) {
        (false, true) => told.push(
            "transient messages are kept like persistent ones; those that are in it now, if one node alone has it, are lost when that node stops"
                .into(),
        ),
        (true, false) => told.push("transient messages go when its node stops".into()),
        _ => {}
    }
    if now.delivery_limit != then.delivery_limit {
        told.push(match then.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => format!(
                "a message that was rejected, or whose consumer was lost, more than {limit} times leaves (x-delivery-limit)"
            ),
            Some(DeliveryLimit::Unlimited) | None => "messages may come back as often as they like".into(),
        });
    }
    if now.counts_failures != then.counts_failures {
        told.push(match then.counts_failures {
            true => "what is given back (basic.nack) does not count for its delivery limit".into(),
            false => "what is given back (basic.nack) counts for its delivery limit, if it has one".into(),
        });
    }
    if now.sorting != then.sorting {
        told.push(match &then.sorting {
            Sorting::Arrival => {
                "messages leave in the order in which they came, whatever their priorities".into()
            }
            Sorting::Priority(highest) => format!("messages leave by {highest} priorities; none is 0"),
            Sorting::Levels => "messages leave by 32 levels of priority; none is 4".into(),
            Sorting::FairKey(header) => format!("messages leave in turns by their header {header}"),
        });
    }
    if now.overflow != then.overflow {
        told.push(match then.overflow {
            Overflow::DropHead => "if it is full its oldest messages are dropped".into(),
            Overflow::Reject => "if it is full new messages are refused".into(),
            Overflow::RejectAndDeadLetter => {
                "if it is full new messages are refused and dead-lettered".into()
            }
        });
    }
    if then.single_active && now.active_by_priority != then.active_by_priority {
        told.push(match then.active_by_priority {
            true => "a consumer of a higher priority becomes the single active one; basic.get beside it is refused".into(),
            false => "the single active consumer stays so, whatever priority others have".into(),
        });
    }
    let strategy =
        |settings: &QueueSettings| settings.dead_letter.as_ref().is_some_and(|it| it.at_least_once);
    if strategy(now) != strategy(then) {
        told.push(match strategy(then) {
            true => "dead letters stay until the queues that they go to have them".into(),
            false => "dead letters do not wait for the queues that they go to".into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::check_same_queue;
    use crate::node::{Incarnation, Lifetime, NodeId};
    use crate::{Epoch, Policy};
    use model::QueueId;

    fn queue(kind: QueueKind, arguments: Table) -> Queue {
        Queue {
            id: QueueId(1),
            kind,
            vhost: "/".into(),
            name: "q".into(),
            lifetime: Lifetime::Durable,
            home: NodeId::FIRST,
            founders: Arc::default(),
            changed: Arc::default(),
            epoch: Epoch::default(),
            auto_delete: false,
            arguments: Arc::new(arguments),
            other_arguments: None,
        }
    }

    fn classic(arguments: Table) -> Queue {
        queue(QueueKind::Classic, arguments.with(QUEUE_TYPE, "classic"))
    }

    #[test]
    fn who_declares_a_converted_queue_as_before_or_as_it_is_means_it() {
        let declared = Table::new()
            .with("x-max-priority", 5)
            .with("x-max-length", 9)
            .with(QUEUE_TYPE, "classic");
        let before = classic(Table::new().with("x-max-priority", 5).with("x-max-length", 9));
        let quorum = before.converted(QueueKind::Quorum).unwrap();
        let as_quorum = Table::new().with("x-max-length", 9).with(QUEUE_TYPE, "quorum");
        assert_eq!(*quorum.arguments, as_quorum);
        let same = |queue: &Queue, arguments: &Table| check_same_queue(queue, true, false, arguments);
        assert_eq!(same(&quorum, &declared), Ok(()));
        assert_eq!(same(&quorum, &as_quorum), Ok(()));
        let other = Table::new().with("x-max-length", 10).with(QUEUE_TYPE, "classic");
        let text = "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received 'classic' but current is 'quorum'";
        let refused = same(&quorum, &other).unwrap_err().to_string();
        assert_eq!(refused, text, "of what is so now");
        assert!(check_same_queue(&quorum, false, false, &declared).is_err());
        let again = quorum.converted(QueueKind::Classic).unwrap();
        assert_eq!(again.arguments, before.arguments);
        assert_eq!(
            same(&again, &as_quorum),
            Ok(()),
            "clients that were changed meanwhile"
        );
        let third = again.converted(QueueKind::Quorum).unwrap();
        assert_eq!(third.arguments, quorum.arguments);
    }

    #[test]
    fn what_a_queue_is_said_to_have_been_it_could_be_again() {
        let of = |now: QueueKind, flags: (bool, bool), before: Table| {
            let (durable, auto_delete) = flags;
            let run = Incarnation {
                node: NodeId::FIRST,
                number: 1,
            };
            let queue = Queue {
                lifetime: Lifetime::of(durable, run),
                auto_delete,
                other_arguments: Some(Arc::new(before)),
                ..queue(now, Table::new().with(QUEUE_TYPE, now.name()))
            };
            queue.check_other_form().map_err(|refusal| refusal.to_string())
        };
        let (usual, quorum) = ((true, false), Table::new().with(QUEUE_TYPE, "quorum"));
        let sorted = Table::new().with("x-max-priority", 5);
        assert_eq!(of(QueueKind::Quorum, usual, sorted.clone()), Ok(()));
        assert_eq!(of(QueueKind::Classic, usual, quorum.clone()), Ok(()));
        let refused = |now, flags, before, why: &str| {
            assert_eq!(
                of(now, flags, before),
                Err(format!("queue 'q' in vhost '/' {why}"))
            );
        };
        let same = "cannot have been a classic queue before, for it is one";
        refused(QueueKind::Classic, usual, sorted, same);
        let passing = "cannot be converted: it is not durable, and no quorum queue is";
        refused(QueueKind::Classic, (false, false), quorum.clone(), passing);
        let auto = "cannot be converted: it is deleted with its last consumer, and no quorum queue is";
        refused(QueueKind::Classic, (true, true), quorum.clone(), auto);
        let stream = Table::new().with(QUEUE_TYPE, "stream");
        let only = "cannot be converted: only classic queues and quorum queues are converted into each other";
        refused(QueueKind::Classic, usual, stream, only);
        let wrong = of(QueueKind::Classic, usual, quorum.with("x-max-length", -1));
        assert!(wrong.unwrap_err().contains("x-max-length"));
    }

    #[test]
    fn what_no_quorum_queue_can_be_is_not_converted() {
        let refused = |queue: &Queue, kind| queue.converted(kind).unwrap_err().to_string();
        let text = |why: &str| format!("queue 'q' in vhost '/' cannot be converted: {why}");
        let plain = classic(Table::new());
        let auto = Queue {
            auto_delete: true,
            ..plain.clone()
        };
        assert_eq!(
            refused(&auto, QueueKind::Quorum),
            text("it is deleted with its last consumer, and no quorum queue is")
        );
        let run = Incarnation {
            node: NodeId::FIRST,
            number: 1,
        };
        let transient = Queue {
            lifetime: Lifetime::Incarnation(run),
            ..plain.clone()
        };
        assert_eq!(
            refused(&transient, QueueKind::Quorum),
            text("it is not durable, and no quorum queue is")
        );
        let only = text("only classic queues and quorum queues are converted into each other");
        assert_eq!(refused(&plain, QueueKind::Stream), only);
        let delayed = queue(QueueKind::Delayed, Table::new());
        assert_eq!(refused(&delayed, QueueKind::Quorum), only);
    }

    #[test]
    fn what_would_be_lost_or_otherwise_is_told() {
        let mut vhost = Vhost::new("/".into());
        let policy = |name: &str, apply_to: &str| {
            Arc::new(Policy {
                vhost: "/".into(),
                kind: crate::PolicyKind::User,
                name: name.into(),
                pattern: crate::Pattern::new(".*").unwrap(),
                apply_to: crate::ApplyTo::from_name(apply_to).unwrap(),
                priority: 0,
                definition: Arc::new(Table::new().with("max-length", 5)),
            })
        };
        vhost.policies_mut().put(policy("a", "classic_queues"));
        let now = classic(
            Table::new()
                .with("x-max-priority", 5)
                .with("x-queue-mode", "lazy")
                .with("x-single-active-consumer", true),
        );
        let then = now.converted(QueueKind::Quorum).unwrap();
        let told = differences(&vhost, &now, &then);
        let expected = [
            "its argument x-max-priority (5) goes",
            "its argument x-queue-mode (lazy) goes",
            "the policy that applies to it is none, not 'a'",
            "it is on as many nodes as a new quorum queue, or on those that have it now if these are more",
            "transient messages are kept like persistent ones; those that are in it now, if one node alone has it, are lost when that node stops",
            "messages leave in the order in which they came, whatever their priorities",
            "a consumer of a higher priority becomes the single active one; basic.get beside it is refused",
            "new consumers are not exclusive, also if they ask for it",
        ];
        assert_eq!(told, expected);
        let back = differences(&vhost, &then, &then.converted(QueueKind::Classic).unwrap());
        assert!(
            back.contains(&"it has the argument x-max-priority (5) again".to_owned()),
            "{back:?}"
        );
        assert!(
            back.contains(&"the policy that applies to it is 'a', not none".to_owned()),
            "{back:?}"
        );
    }
}
