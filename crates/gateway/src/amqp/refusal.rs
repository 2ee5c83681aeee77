//! What the broker refuses and why it closes connections, in AMQP's reply codes. The one place where the two meet.

use broker::{CloseReason, OpenRefusal, Refusal, RefusalKind};
use protocol::amqp::{Exception, MethodId, ReplyCode};

/// The exception for a refusal of `method`.
pub fn exception(refusal: &Refusal, method: MethodId) -> Exception {
    Exception::new(code(refusal.kind()), refusal.to_string(), method)
}

/// The exception for a virtual host that is not opened, which costs the connection.
pub fn of_vhost(refusal: &OpenRefusal, method: MethodId) -> Exception {
    Exception::new(ReplyCode::NotAllowed, refusal.to_string(), method)
}

/// The exception with which a connection is closed for this reason.
pub fn of_close(reason: &CloseReason) -> Exception {
    let code = match reason {
        CloseReason::Shutdown
        | CloseReason::Maintenance
        | CloseReason::VhostDeleted(_)
        | CloseReason::UserDeleted(_)
        | CloseReason::CredentialsExpired
        | CloseReason::Operator(_) => ReplyCode::ConnectionForced,
    };
    Exception::new(code, reason.to_string(), MethodId::NONE)
}

fn code(kind: RefusalKind) -> ReplyCode {
    match kind {
        RefusalKind::NotFound => ReplyCode::NotFound,
        RefusalKind::AccessRefused => ReplyCode::AccessRefused,
        RefusalKind::ResourceLocked => ReplyCode::ResourceLocked,
        RefusalKind::PreconditionFailed => ReplyCode::PreconditionFailed,
        RefusalKind::NotAllowed => ReplyCode::NotAllowed,
        RefusalKind::NotImplemented => ReplyCode::NotImplemented,
        RefusalKind::CommandInvalid => ReplyCode::CommandInvalid,
        RefusalKind::Internal => ReplyCode::InternalError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_did_nothing_wrong_is_told_why_its_connection_is_forced_to_close() {
        for (reason, text) in [
            (
                CloseReason::Shutdown,
                "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
            ),
            (
                CloseReason::VhostDeleted("shop".into()),
                "CONNECTION_FORCED - vhost 'shop' is deleted",
            ),
            (
                CloseReason::Operator("Closed via management plugin".into()),
                "CONNECTION_FORCED - Closed via management plugin",
            ),
        ] {
            let exception = of_close(&reason);
            assert_eq!(exception.code.number(), 320);
            assert_eq!(exception.reply_text(), text);
        }
    }
}
