//! Credentials that end: tokens, and the new ones that clients show in time (`connection.update-secret`).

use super::open::Open;
use crate::amqp::refusal;
use crate::connection::Millis;
use crate::output::Output;
use broker::{CloseReason, LoginRefusal, User};
use protocol::amqp::method::{Arguments, ConnectionUpdateSecret, ConnectionUpdateSecretOk};
use protocol::amqp::{Exception, ReplyCode, encode};
use std::time::Duration;

impl Open {
    /// The client shows new credentials. RabbitMQ takes a new password of its own users without a look; so does this.
    pub(super) fn update_secret(&mut self, update: &ConnectionUpdateSecret<'_>, out: &mut Output) {
        let peer = self.shown.peer.ip();
        if !self.shared.session.show_again(update.new_secret.0, peer) {
            encode::method(out.bytes(), 0, &ConnectionUpdateSecretOk {});
        }
    }

    /// The authority has looked at the new credentials.
    pub(super) fn shown_again(&mut self, found: Result<User, LoginRefusal>, out: &mut Output) {
        let session = self.shared.session.clone();
        let name = &session.user().name;
        let refused = match found {
            Ok(user) if user.name == *name => {
                session.renew(user.rights);
                self.watch_credentials(session.remaining());
                for channel in self.channels.iter_mut() {
                    channel.forget_rights();
                }
                encode::method(out.bytes(), 0, &ConnectionUpdateSecretOk {});
                tracing::info!(area = "connection", "user '{name}' sent new credentials");
                return;
            }
            Ok(user) => format!("they are those of '{}'", user.name),
            Err(refusal) => refusal.to_string(),
        };
        tracing::error!(
            area = "connection",
            "new credentials of user '{name}' are refused: {refused}"
        );
        let text = "New secret was refused by one of the backends";
        self.close_request = Some(Exception::new(
            ReplyCode::NotAllowed,
            text,
            ConnectionUpdateSecret::ID,
        ));
    }

    /// Notes when the credentials end.
    pub(super) fn watch_credentials(&mut self, remaining: Option<Duration>) {
        self.ends_at = remaining.map_or(Millis::MAX, |left| self.shared.now + left.as_millis() as Millis);
    }

    /// Ends the connection if its credentials have ended.
    pub(super) fn end_with_credentials(&mut self) {
        if self.shared.now >= self.ends_at && self.close_request.is_none() {
            self.ends_at = Millis::MAX;
            self.close_request = Some(refusal::of_close(&CloseReason::CredentialsExpired));
        }
    }
}
