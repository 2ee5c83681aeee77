//! The text that tells bindings of the same two ends apart in addresses.

use broker::BindingView;
use model::table::Table;

/// The key of a binding: `~` for no key and no arguments, the encoded routing key, and behind another `~` a hash of the
/// arguments if there are some. The hash is not RabbitMQ's, which is made from Erlang's terms; it is to be taken from a list.
pub fn of(routing_key: &[u8], arguments: &Table) -> String {
    match (routing_key.is_empty(), arguments.is_empty()) {
        (true, true) => "~".into(),
        (_, true) => quote(routing_key),
        (_, false) => {
            let mut bytes = Vec::new();
            arguments.encode(&mut bytes);
            format!("{}~{:016x}", quote(routing_key), model::fnv(&bytes))
        }
    }
}

/// The same without an encoding: what is left of a key that stood in an address as it is.
pub fn decoded(routing_key: &[u8], arguments: &Table) -> String {
    let key = of(routing_key, arguments);
    match arguments.is_empty() {
        true if routing_key.is_empty() => key,
        true => String::from_utf8_lossy(routing_key).into_owned(),
        false => {
            let hash = key.rsplit('~').next().unwrap_or_default();
            format!("{}~{hash}", String::from_utf8_lossy(routing_key))
        }
    }
}

/// The key of a known binding.
pub fn of_binding(binding: &BindingView) -> String {
    of(&binding.routing_key, &binding.arguments)
}

/// As HTML forms encode it, and `~` too.
fn quote(key: &[u8]) -> String {
    let mut out = String::with_capacity(key.len());
    for &byte in key {
        match byte {
            b' ' => out.push('+'),
            _ if byte.is_ascii_alphanumeric() || b"-._".contains(&byte) => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_rabbitmqs_but_for_the_hash() {
        let none = Table::new();
        assert_eq!(of(b"", &none), "~");
        assert_eq!(of(b"a/b~ c.d-e_f", &none), "a%2Fb%7E+c.d-e_f");
        let some = Table::new().with("x", 1i32);
        let key = of(b"k", &some);
        assert!(key.starts_with("k~") && key != of(b"k", &Table::new().with("x", 2i32)));
        assert!(of(b"", &some).starts_with('~'));
        assert_eq!(decoded(b"", &none), "~");
        assert_eq!(decoded(b"a/b~ #", &none), "a/b~ #");
        assert_eq!(decoded(b"k", &some), key);
        assert_eq!(decoded(b"#", &some), format!("#{}", of(b"", &some)));
    }
}
