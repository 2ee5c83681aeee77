//! Users, their permissions and topic permissions.

use super::{Catalog, Turn};
use crate::{Answer, Name, Pattern, Permission, Record, Refusal, TopicPermission};
use std::sync::Arc;

impl<R> Catalog<R> {
    pub(super) fn delete_user(&mut self, name: Name, turn: &mut Turn<R>) -> Result<Answer, Refusal> {
        if self.view.user(&name).is_none() {
            return Ok(Answer::Done);
        }
        self.fact(Record::UserDeleted { name }, turn)
    }

    /// `patterns` are what may be configured, written and read.
    pub(super) fn set_permissions(
        &mut self,
        user: Name,
        vhost: Name,
        patterns: [&str; 3],
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        self.vhost(&vhost)?;
        if self.view.user(&user).is_none() {
            return Err(Refusal::NoUser {
                user: user.to_string(),
            });
        }
        let [configure, write, read] = patterns.map(Pattern::new);
        let permission = Permission {
            user,
            vhost,
            configure: configure?,
            write: write?,
            read: read?,
        };
        self.fact(Record::PermissionsSet(Arc::new(permission)), turn)
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

    pub(super) fn set_topic_permission(
        &mut self,
        wanted: TopicPermission,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let vhost = self.vhost(&wanted.vhost)?;
        if vhost.exchange(&wanted.exchange).is_none() {
            return Err(Refusal::NoExchange {
                exchange: wanted.exchange.to_string(),
                vhost: wanted.vhost.to_string(),
            });
        }
        if self.view.user(&wanted.user).is_none() {
            return Err(Refusal::NoUser {
                user: wanted.user.to_string(),
            });
        }
        self.fact(Record::TopicPermissionSet(Arc::new(wanted)), turn)
    }

    pub(super) fn clear_topic_permissions(
        &mut self,
        user: Name,
        vhost: Name,
        exchange: Option<Name>,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        let meant = |it: &TopicPermission| exchange.as_ref().is_none_or(|name| *name == it.exchange);
        if !self.view.topic_permissions_of(&user, &vhost).any(meant) {
            return Ok(Answer::Done);
        }
        self.fact(
            Record::TopicPermissionsCleared {
                user,
                vhost,
                exchange,
            },
            turn,
        )
    }
}
