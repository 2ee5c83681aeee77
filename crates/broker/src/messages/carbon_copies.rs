//! Sender-selected distribution: the headers `CC` and `BCC`, which name further routing keys (an extension of RabbitMQ's).

use catalog::Refusal;
use model::Limits;
use model::properties::{Properties, PropertiesBuf};
use model::table::raw::{Entries, Items, RawValue};

/// The keys that a message names beside its own.
#[derive(Debug)]
pub struct Copies {
    /// In the order of the headers, perhaps repeated. What is no string among them means nothing, as in RabbitMQ.
    pub keys: Vec<Vec<u8>>,
    /// The properties without `BCC`, if that was there: who else got a blind copy stays unknown.
    pub properties: Option<PropertiesBuf>,
}

impl Copies {
    /// What a message's headers say; `None` if it names nothing, as most do.
    ///
    /// # Errors
    /// A header that is no array (RabbitMQ: 406).
    pub fn named_in(properties: Properties<'_>, limits: &Limits) -> Result<Option<Self>, Refusal> {
        let Some(headers) = properties.headers() else {
            return Ok(None);
        };
        let mut keys = Vec::new();
        let mut named = false;
        for name in ["CC", "BCC"] {
            match Entries::new(&headers).find(name.as_bytes()) {
                None => continue,
                Some(RawValue::Array(items)) => {
                    keys.extend(Items::new(items).filter_map(string).map(<[u8]>::to_vec));
                }
                Some(_) => return Err(unacceptable(properties, name, limits)),
            }
            named = true;
        }
        if !named {
            return Ok(None);
        }
        let properties = as_shown(properties, limits);
        Ok(Some(Self { keys, properties }))
    }
}

/// The properties as they are shown to whoever gets the message, or gets it back: without `BCC`.
pub fn as_shown(properties: Properties<'_>, limits: &Limits) -> Option<PropertiesBuf> {
    properties.without_header(b"BCC", limits)
}

fn string<E>(item: Result<RawValue<'_>, E>) -> Option<&[u8]> {
    match item {
        Ok(RawValue::LongStr(key)) => Some(key),
        _ => None,
    }
}

fn unacceptable(properties: Properties<'_>, name: &str, limits: &Limits) -> Refusal {
    let headers = properties.headers_table(limits).unwrap_or_default();
    let kind = headers.get(name).map_or("void", |value| value.type_name());
    Refusal::InvalidMessage {
        text: format!("invalid message: {{unacceptable_type_in_header,\"{name}\",{kind}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::properties::PropertiesBuilder;
    use model::table::{Table, Value};

    fn message(headers: Table) -> PropertiesBuf {
        PropertiesBuf::amqp091(PropertiesBuilder::new().headers(&headers).encode())
    }

    fn array(keys: &[&str]) -> Value {
        Value::Array(keys.iter().map(|key| Value::from(*key)).collect())
    }

    #[test]
    fn both_headers_name_keys_and_the_blind_one_is_removed() {
        let limits = Limits::default();
        let sent = message(
            Table::new()
                .with("a", 1)
                .with("BCC", array(&["x"]))
                .with("CC", array(&["y", "z"])),
        );
        let copies = Copies::named_in(sent.as_properties(), &limits).unwrap().unwrap();
        assert_eq!(copies.keys.as_slice(), [&b"y"[..], b"z", b"x"]);
        let kept = message(Table::new().with("a", 1).with("CC", array(&["y", "z"])));
        assert_eq!(copies.properties, Some(kept));
        assert_eq!(as_shown(sent.as_properties(), &limits), copies.properties);
    }

    #[test]
    fn strings_count_and_nothing_else_does() {
        let limits = Limits::default();
        let mixed = Value::Array(vec![Value::from(5), Value::from("k"), Value::from(true)]);
        let sent = message(Table::new().with("CC", mixed));
        let copies = Copies::named_in(sent.as_properties(), &limits).unwrap().unwrap();
        assert_eq!(copies.keys.as_slice(), [b"k"]);
        assert_eq!(copies.properties, None);
        let plain = message(Table::new().with("cc", array(&["k"])));
        assert!(
            Copies::named_in(plain.as_properties(), &limits)
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn a_header_that_is_no_array_is_refused_in_rabbitmqs_words() {
        let sent = message(Table::new().with("BCC", 1).with("CC", "k"));
        let refusal = Copies::named_in(sent.as_properties(), &Limits::default()).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "invalid message: {unacceptable_type_in_header,\"CC\",longstr}"
        );
    }
}
