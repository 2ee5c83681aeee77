//! What is refused and why connections are closed, in the stream protocol's codes. The one place where the two meet.

use super::streams::Refused;
use broker::{CloseReason, LoginRefusal};
use protocol::stream::ResponseCode;

/// The code for what streams refuse.
pub fn code(refused: Refused) -> ResponseCode {
    match refused {
        Refused::NoStream => ResponseCode::StreamDoesNotExist,
        Refused::NotAvailable => ResponseCode::StreamNotAvailable,
        Refused::Exists => ResponseCode::StreamAlreadyExists,
        Refused::Access => ResponseCode::AccessRefused,
        Refused::Precondition => ResponseCode::PreconditionFailed,
        Refused::NoOffset => ResponseCode::NoOffset,
        Refused::Internal => ResponseCode::InternalError,
    }
}

/// The code for a login that is refused.
pub fn of_login(refusal: &LoginRefusal) -> ResponseCode {
    match refusal {
        LoginRefusal::NotLocal { .. } => ResponseCode::AuthenticationFailureLoopback,
        LoginRefusal::Credentials | LoginRefusal::Authority(_) => ResponseCode::AuthenticationFailure,
    }
}

/// The code with which a client that did nothing wrong is told that its connection is closed. RabbitMQ hangs up without a word.
pub fn of_close(reason: &CloseReason) -> ResponseCode {
    match reason {
        CloseReason::Shutdown | CloseReason::Maintenance | CloseReason::Operator(_) => ResponseCode::Ok,
        CloseReason::VhostDeleted(_) => ResponseCode::VirtualHostAccessFailure,
        CloseReason::UserDeleted(_) | CloseReason::CredentialsExpired => ResponseCode::AuthenticationFailure,
    }
}
