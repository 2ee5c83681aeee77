//! What users are told when the broker says no: its own words, and what to do.

use protocol::amqp::MethodId;

/// Who logs in, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who<'a> {
    /// A user of this name with a password.
    User(&'a str),
    /// The bearer of an OAuth 2 token.
    Token,
    /// The subject of a certificate.
    Certificate,
}

/// A channel or an open connection was closed with `code` and `text` because of method `cause`.
pub fn on_channel(code: u16, text: &str, cause: MethodId) -> String {
    let name = cause.name().unwrap_or_default();
    let advice = match (code, name) {
        (406, "queue.declare") if text.contains("inequivalent") => {
            "the queue exists with other properties: use --predeclared to take it as it is, or delete it"
        }
        (406 | 503, "exchange.declare") => {
            "the exchange exists with other properties or its type is unknown: use --predeclared or another --exchange, or delete it"
        }
        (404, _) => "it does not exist: declare it, or run without --predeclared",
        (405, _) => "another connection has it for itself: use another name, or run without --exclusive",
        (403, "basic.consume") => {
            "the queue may have a consumer of its own already, or the user may not read from it"
        }
        (403, _) => "the user may not do this: see `rabbitmqctl set_permissions`",
        (541, "queue.declare") if text.contains("transient") => {
            "ask for durable queues with --flag persistent"
        }
        (540, _) => "the broker or this type of queue can't do that",
        (320, _) => "the broker closes connections: it may be shutting down",
        _ => "",
    };
    let at = if name.is_empty() {
        String::new()
    } else {
        format!(" ({name})")
    };
    if advice.is_empty() {
        format!("{text}{at}")
    } else {
        format!("{text}{at}; {advice}")
    }
}

/// The broker closed the connection after it was told who logs in.
pub fn at_login(place: &str, who: Who<'_>, code: u16, text: &str) -> String {
    let said = format!("{code} {text}");
    match (code, who) {
        (403, Who::User(user)) => {
            let guest = if user == "guest" {
                "; the user guest may log in from the broker's own machine only, unless the broker is told otherwise"
            } else {
                ""
            };
            format!(
                "the broker at {place} refused the user '{user}' ({said}): check name and password in --uri amqp://NAME:PASSWORD@HOST{guest}"
            )
        }
        (403, Who::Token) => format!(
            "the broker at {place} refused the OAuth 2 token ({said}): check that the broker trusts the token server, and the token's audience and scopes"
        ),
        (403, Who::Certificate) => format!(
            "the broker at {place} refused the certificate ({said}): check that its name is a user and that EXTERNAL is allowed; certfile= and keyfile= in the address say which one is shown"
        ),
        _ => format!("the broker at {place} refused the connection: {said}"),
    }
}

/// The broker closed the connection when the virtual host was opened.
pub fn at_vhost(place: &str, who: Who<'_>, vhost: &str, code: u16, text: &str) -> String {
    let said = format!("{code} {text}");
    let user = match who {
        Who::User(user) => user,
        Who::Token => "the token's user",
        Who::Certificate => "the certificate's user",
    };
    if code == 530 && text.contains("not found") {
        let advice = if vhost.is_empty() {
            "leave out the '/' at the end of the address for the default one, or name one behind it"
                .to_owned()
        } else {
            format!(
                "create it with `rabbitmqctl add_vhost '{vhost}'`, or name another one in --uri amqp://HOST/NAME"
            )
        };
        return format!("the broker at {place} has no virtual host '{vhost}' ({said}): {advice}");
    }
    if matches!(code, 403 | 530) && text.contains("refused") {
        return format!(
            "the broker at {place} does not let {user} into the virtual host '{vhost}' ({said}): allow it with `rabbitmqctl set_permissions -p '{vhost}' '{user}' '.*' '.*' '.*'`"
        );
    }
    if text.contains("frame_max") {
        return format!(
            "the broker at {place} refused the connection: {said}; use another --framemax, or 0 for the broker's"
        );
    }
    format!("the broker at {place} refused the connection: {said}")
}

/// The server's first bytes are no frame.
pub fn strange_greeting(place: &str, bytes: &[u8]) -> Option<String> {
    match bytes {
        [b'A', b'M', b'Q', b'P', ..] => Some(format!(
            "the server at {place} does not speak AMQP 0-9-1: it answered with the header of another version of AMQP"
        )),
        [0x15, 0x03, ..] => Some(format!(
            "the server at {place} expects TLS there: use amqps:// in --uri, or the broker's plain port (5672)"
        )),
        [b'H', b'T', b'T', b'P', ..] => Some(format!(
            "the server at {place} speaks HTTP there: use the broker's AMQP port (5672; 5671 for TLS)"
        )),
        [first, ..] if *first != 1 => Some(format!(
            "the server at {place} is not an AMQP broker: check host and port in --uri"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::amqp::Arguments;
    use protocol::amqp::method::{ExchangeDeclare, QueueBind, QueueDeclare};

    #[test]
    fn refusals_keep_the_brokers_words_and_say_what_to_do() {
        let table = [
            (
                406,
                "inequivalent arg 'durable'",
                QueueDeclare::ID,
                "--predeclared",
            ),
            (404, "no queue 'q'", QueueBind::ID, "declare it"),
            (
                405,
                "cannot obtain exclusive access",
                QueueDeclare::ID,
                "--exclusive",
            ),
            (
                403,
                "access to queue refused",
                QueueDeclare::ID,
                "set_permissions",
            ),
            (
                541,
                "`transient_nonexcl_queues` is deprecated",
                QueueDeclare::ID,
                "--flag persistent",
            ),
            (
                503,
                "unknown exchange type 'x'",
                ExchangeDeclare::ID,
                "--exchange",
            ),
        ];
        for (code, said, cause, advice) in table {
            let text = on_channel(code, said, cause);
            assert!(text.contains(said) && text.contains(advice), "{text}");
        }
        let text = on_channel(406, "invalid arg 'x-expires'", QueueDeclare::ID);
        assert_eq!(text, "invalid arg 'x-expires' (queue.declare)");
        assert_eq!(on_channel(501, "odd", MethodId::NONE), "odd");
    }
}
