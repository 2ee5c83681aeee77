//! What a client says about itself in `connection.start-ok`.

use model::table::{Table, Value};

/// A client's properties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// All of them, as sent.
    pub properties: Table,
    /// Those of them that a server acts on.
    pub capabilities: Capabilities,
}

/// What a client understands beyond the specification; everything is off unless it is said to be on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Takes a `basic.cancel` from the server.
    pub consumer_cancel_notify: bool,
    /// Takes `connection.blocked` and `connection.unblocked`.
    pub connection_blocked: bool,
    /// Takes a `connection.close` after a wrong login.
    pub authentication_failure_close: bool,
    /// Takes a `basic.nack` from the server.
    pub basic_nack: bool,
    /// Knows publisher confirms.
    pub publisher_confirms: bool,
}

impl Client {
    /// Looks for the capabilities; what is not a bool in a table named `capabilities` is off.
    pub fn new(properties: Table) -> Self {
        let table = properties.get("capabilities").and_then(Value::as_table);
        let on = |name: &str| {
            table
                .and_then(|table| table.get(name)?.as_bool())
                .unwrap_or(false)
        };
        let capabilities = Capabilities {
            consumer_cancel_notify: on("consumer_cancel_notify"),
            connection_blocked: on("connection.blocked"),
            authentication_failure_close: on("authentication_failure_close"),
            basic_nack: on("basic.nack"),
            publisher_confirms: on("publisher_confirms"),
        };
        Self {
            properties,
            capabilities,
        }
    }

    /// The name that the application gave the connection, for logs and lists.
    pub fn connection_name(&self) -> Option<&str> {
        self.properties.get("connection_name")?.as_str()
    }
}
