//! Policies.

use super::{Catalog, Turn, check_length};
use crate::policy::definition;
use crate::{Answer, ApplyTo, Name, Pattern, Policy, PolicyKind, Record, Refusal};
use model::table::Table;
use std::sync::Arc;

/// A policy that is to be put.
pub(super) struct Wanted {
    pub(super) vhost: Name,
    pub(super) kind: PolicyKind,
    pub(super) name: Name,
    pub(super) pattern: String,
    pub(super) apply_to: String,
    pub(super) priority: i64,
    pub(super) definition: Table,
}

impl<R> Catalog<R> {
    pub(super) fn put_policy(&mut self, wanted: Wanted, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        self.vhost(&wanted.vhost)?;
        check_length(&wanted.name)?;
        let invalid = |text: String| Refusal::InvalidPolicy { text };
        let pattern = Pattern::of_policy(&wanted.pattern).map_err(|refusal| match refusal {
            Refusal::InvalidPattern { reason, .. } => invalid(format!(
                "pattern should be regular expression but is invalid: {reason}"
            )),
            other => other,
        })?;
        let definition = definition::check(wanted.definition, wanted.kind)?;
        let apply_to = ApplyTo::from_name(&wanted.apply_to).ok_or_else(|| {
            invalid(format!(
                "apply-to '{}' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', \
                 'streams', 'exchanges', or 'all'",
                wanted.apply_to
            ))
        })?;
        let policy = Policy {
            vhost: wanted.vhost,
            kind: wanted.kind,
            name: wanted.name,
            pattern,
            apply_to,
            priority: wanted.priority,
            definition: Arc::new(definition),
        };
        let policies = self.vhost(&policy.vhost)?.policies();
        if policies
            .get(policy.kind, &policy.name)
            .is_some_and(|known| **known == policy)
        {
            return Ok(Answer::Done);
        }
        self.fact(Record::PolicyPut(Arc::new(policy)), turn)
    }

    pub(super) fn delete_policy(
        &mut self,
        vhost: Name,
        kind: PolicyKind,
        name: Name,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        match self.vhost(&vhost)?.policies().get(kind, &name) {
            Some(_) => self.fact(Record::PolicyDeleted { vhost, kind, name }, turn),
            None => Ok(Answer::Done),
        }
    }
}
