//! Deliveries that stay unacknowledged for too long go back, and their consumers end (`x-consumer-timeout`).

use super::open::Open;
use crate::amqp::channel::{Late, State};
use crate::connection::Millis;
use crate::connection::Name;
use crate::output::Output;
use protocol::amqp::{Exception, MethodId, ReplyCode};

impl Open {
    /// Takes back what is late by now. As in RabbitMQ 4.3 a client that understands it is told that its consumer is
    /// cancelled, and goes on; of any other the channel is closed.
    pub(super) fn take_back_late(&mut self, out: &mut Output, name: &Name) {
        if self.shared.now < self.late_at {
            return;
        }
        self.late_at = Millis::MAX;
        for at in self.channels.numbers() {
            let Some(channel) = self.channels.get_mut(at) else {
                continue;
            };
            if channel.state != State::Open {
                continue;
            }
            for late in channel.late(self.shared.now) {
                self.end_late(at, &late, out, name);
            }
            if let Some(channel) = self.channels.get(at) {
                self.late_at = self.late_at.min(channel.next_deadline());
            }
        }
    }

    fn end_late(&mut self, number: u16, late: &Late, out: &mut Output, name: &Name) {
        let Some(channel) = self.channels.get(number) else {
            return;
        };
        let timeout_ms = late.timeout_ms;
        let consumer = late
            .consumer
            .and_then(|id| channel.tag_of(id).map(|tag| (id, tag)));
        let label = match &consumer {
            Some((_, tag)) => format!("consumer '{tag}'"),
            None => "the client".to_owned(),
        };
        tracing::warn!(
            area = "channel",
            "connection {name} (vhost: '{}', user: '{}'), channel {number}: {label} has left deliveries unacknowledged for more than \
             {timeout_ms} ms; they go back to their queue",
            self.shared.session.vhost(),
            self.shared.session.user().name,
        );
        if let Some((id, tag)) = consumer {
            if !self.capabilities.consumer_cancel_notify {
                let text = format!(
                    "delivery acknowledgement on channel {number} timed out. Timeout value used: {timeout_ms} ms. \
                     This timeout value can be configured, see consumers doc guide to learn more"
                );
                let exception = Exception::new(ReplyCode::PreconditionFailed, text, MethodId::NONE);
                drop(self.fail(number, exception, out, name));
                return;
            }
            self.cancel_subscription(number, &tag, out);
            let channel = self.channels.get_mut(number);
            if let Some(channel) = channel {
                channel.consumer_cancelled(id, true, out.bytes());
            }
        }
        if let Some(channel) = self.channels.get_mut(number) {
            channel.take_back(late);
        }
    }
}
