//! Virtual hosts, users and permissions.

use super::{Catalog, Turn, check_length};
use crate::{Answer, Effect, Name, Pattern, Record, Refusal};

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
        let gone = vhost.queues().map(|queue| Effect::QueueDeleted {
            id: queue.id,
            vhost: name.clone(),
            name: queue.name.clone(),
        });
        turn.effects.extend(gone);
        self.fact(Record::VhostDeleted { name }, turn)
    }

    pub(super) fn delete_user(&mut self, name: Name, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if self.view.user(&name).is_none() {
            return Ok(Answer::Done);
        }
        self.fact(Record::UserDeleted { name }, turn)
    }

    /// `record` is the `PermissionsSet` that is asked for.
    pub(super) fn set_permissions(&mut self, record: Record, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if let Record::PermissionsSet {
            user,
            vhost,
            configure,
            write,
            read,
        } = &record
        {
            self.vhost(vhost)?;
            if self.view.user(user).is_none() {
                return Err(Refusal::NoUser {
                    user: user.to_string(),
                });
            }
            for pattern in [configure, write, read] {
                Pattern::new(pattern)?;
            }
        }
        self.fact(record, turn)
    }

    pub(super) fn clear_permissions(
        &mut self,
        user: Name,
        vhost: Name,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        if self.view.permission(&user, &vhost).is_none() {
            return Ok(Answer::Done);
        }
        self.fact(Record::PermissionsCleared { user, vhost }, turn)
    }
}
