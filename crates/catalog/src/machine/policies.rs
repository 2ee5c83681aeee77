//! Policies.

use super::{Catalog, Turn, check_length};
use crate::policy::definition;
use crate::{Answer, ApplyTo, Name, Pattern, Policy, PolicyKind, PutPolicy, Record, Refusal};
use std::sync::Arc;

impl<R> Catalog<R> {
    pub(super) fn put_policy(
        &mut self,
        vhost: Name,
        kind: PolicyKind,
        name: Name,
        wanted: PutPolicy,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        self.vhost(&vhost)?;
        check_length(&name)?;
        let invalid = |text: String| Refusal::InvalidPolicy { text };
        let pattern = Pattern::of_policy(&wanted.pattern).map_err(|refusal| match refusal {
            Refusal::InvalidPattern { reason, .. } => invalid(format!(
                "pattern should be regular expression but is invalid: {reason}"
            )),
            other => other,
        })?;
        let definition = definition::check(wanted.definition, kind)?;
        let apply_to = ApplyTo::from_name(&wanted.apply_to).ok_or_else(|| {
            invalid(format!(
                "apply-to '{}' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', \
                 'streams', 'exchanges', or 'all'",
                wanted.apply_to
            ))
        })?;
        let policy = Policy {
            vhost,
            kind,
            name,
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
        self.check_pattern(&policy)?;
        self.fact(Record::PolicyPut(Arc::new(policy)), turn)
    }

    /// A policy is refused whose pattern takes too many steps with a name that there is: it would be tried on all of them.
    fn check_pattern(&self, policy: &Policy) -> Result<(), Refusal> {
        let vhost = self.vhost(&policy.vhost)?;
        let queues = vhost.queues().map(|queue| &*queue.name);
        let exchanges = vhost.exchanges().map(|exchange| &*exchange.name);
        for name in queues.chain(exchanges) {
            policy.pattern.matches(name);
            if policy.pattern.excesses() > 0 {
                return Err(Refusal::InvalidPolicy {
                    text: format!("pattern takes too many steps to be matched with the name '{name}'"),
                });
            }
        }
        Ok(())
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
