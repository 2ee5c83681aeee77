//! Virtual hosts, limits, and what holds for the whole.

use super::{Catalog, Turn, check_length};
use crate::{Answer, Metadata, Name, Quota, QuotaOf, Record, Refusal};
use model::table::Value;

impl<R> Catalog<R> {
    pub(super) fn create_vhost(&mut self, name: Name, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if self.view.vhost(&name).is_some() {
            return Ok(Answer::Done);
        }
        check_length(&name)?;
        self.fact(Record::VhostCreated { name }, turn)
    }

    pub(super) fn delete_vhost(&mut self, name: Name, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        let Some(vhost) = self.view.vhost(&name).cloned() else {
            return Ok(Answer::Done);
        };
        if vhost.metadata().protected {
            return Err(Refusal::ProtectedVhost {
                vhost: name.to_string(),
            });
        }
        self.fact(Record::VhostDeleted { name }, turn)
    }

    pub(super) fn describe_vhost(
        &mut self,
        vhost: Name,
        metadata: Metadata,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        if *self.vhost(&vhost)?.metadata() == metadata {
            return Ok(Answer::Done);
        }
        self.fact(Record::VhostDescribed { vhost, metadata }, turn)
    }

    pub(super) fn set_limits(
        &mut self,
        of: QuotaOf,
        limits: &[(String, Option<i64>)],
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let before: Quota = match &of {
            QuotaOf::Vhost(name) => *self.vhost(name)?.quota(),
            QuotaOf::User(name) if self.view.user(name).is_some() => self.view.user_quota(name),
            QuotaOf::User(name) => {
                return Err(Refusal::NoUser {
                    user: name.to_string(),
                });
            }
        };
        let mut quota = before;
        for (limit, value) in limits {
            value.map_or(Ok(()), |value| of.check(limit, value))?;
            quota.set(limit, *value);
        }
        match quota == before {
            true => Ok(Answer::Done),
            false => self.fact(Record::QuotaSet { of, quota }, turn),
        }
    }

    pub(super) fn set_global(
        &mut self,
        name: Name,
        value: Option<Value>,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        check_length(&name)?;
        match self.view.global(&name) == value.as_ref() {
            true => Ok(Answer::Done),
            false => self.fact(Record::GlobalSet { name, value }, turn),
        }
    }
}
