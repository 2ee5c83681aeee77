//! What a deduplication exchange remembers: its arguments, as RabbitMQ's plugin has them.

use model::X_CACHE_TTL;
use model::table::{Table, Value};

/// The arguments, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// `x-cache-size`: at most so many keys, at least one.
    pub size: u64,
    /// `x-cache-ttl`: how long a key is known, in milliseconds; for as long as there is room if nobody says.
    pub lifetime_ms: Option<u64>,
    /// `x-cache-persistence`: a durable exchange knows them after a restart.
    pub on_disk: bool,
}

impl Cache {
    /// What the arguments mean. Numbers may be text, as there.
    ///
    /// # Errors
    /// What is wrong with them: the plugin's text.
    pub fn new(arguments: &Table) -> Result<Self, String> {
        let number = |name: &str| arguments.get(name).map(at_least_one);
        let wrong = |name: &str| format!("argument, '{name}' must be an integer greater than 0");
        let size = number("x-cache-size").flatten();
        let lifetime_ms = match number(X_CACHE_TTL) {
            Some(None) => return Err(format!("Invalid {}", wrong(X_CACHE_TTL))),
            given => given.flatten(),
        };
        let on_disk = match arguments.get("x-cache-persistence").map(Value::as_str) {
            None | Some(Some("memory")) => false,
            Some(Some("disk")) => true,
            _ => {
                return Err(
                    "Invalid argument, 'x-cache-persistence' must be either 'disk' or 'memory'".into(),
                );
            }
        };
        Ok(Self {
            size: size.ok_or_else(|| format!("Missing or invalid {}", wrong("x-cache-size")))?,
            lifetime_ms,
            on_disk,
        })
    }
}

fn at_least_one(value: &Value) -> Option<u64> {
    let number = match value.as_integer() {
        Some(number) => u64::try_from(number).ok()?,
        None => value.as_str()?.parse().ok()?,
    };
    (number > 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_needed_and_numbers_may_be_text() {
        let cache = Cache::new(&Table::new().with("x-cache-size", "10").with("x-cache-ttl", 5));
        let wanted = Cache {
            size: 10,
            lifetime_ms: Some(5),
            on_disk: false,
        };
        assert_eq!(cache, Ok(wanted));
        let disk = Table::new()
            .with("x-cache-size", 1)
            .with("x-cache-persistence", "disk");
        assert!(Cache::new(&disk).unwrap().on_disk);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |name: &str, value: Value| {
            let arguments = Table::new().with("x-cache-size", 1);
            let mut arguments = arguments;
            arguments.insert(name, value);
            Cache::new(&arguments).unwrap_err()
        };
        let missing = Cache::new(&Table::new()).unwrap_err();
        assert_eq!(
            missing,
            "Missing or invalid argument, 'x-cache-size' must be an integer greater than 0"
        );
        assert_eq!(wrong("x-cache-size", Value::from(0)), missing);
        assert_eq!(wrong("x-cache-size", Value::from("ten")), missing);
        assert!(wrong("x-cache-ttl", Value::from(-1)).starts_with("Invalid argument, 'x-cache-ttl'"));
        assert!(wrong("x-cache-persistence", Value::from("tape")).contains("'disk' or 'memory'"));
        assert!(wrong("x-cache-persistence", Value::from(true)).contains("'disk' or 'memory'"));
    }
}
