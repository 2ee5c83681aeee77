//! Headers that the broker made longer than the client's frames: a header frame cannot be cut in two.

use model::properties::BasicProperties;
use model::table::Value;
use model::{DEAD_LETTERED, Limits, Message};

/// The properties of a dead letter without the oldest entries of `x-death`, as many of them as must go for the rest to
/// be at most `most` bytes. `None` if that does not help: what a publisher wrote itself is never cut.
///
/// A message that died in a thousand queues has a history longer than the frames of many clients. RabbitMQ sends them a
/// frame that they did not agree to.
#[cold]
pub fn fitted(message: &Message<'_>, properties: &[u8], most: usize) -> Option<Vec<u8>> {
    if message.flags & DEAD_LETTERED == 0 {
        return None;
    }
    let properties = BasicProperties::new(properties);
    let mut headers = properties.headers_table(&Limits::STORED).ok()?;
    let mut deaths = headers.get("x-death")?.as_array()?.to_vec();
    let mut length = properties.bytes().len();
    while length > most {
        let mut oldest = Vec::new();
        deaths.pop()?.encode(&mut oldest);
        length = length.saturating_sub(oldest.len());
    }
    headers.insert("x-death", Value::Array(deaths));
    properties.with_headers(&headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::RouteBuf;
    use model::properties::{Properties, PropertiesBuilder};
    use model::table::Table;

    fn properties(deaths: usize) -> Vec<u8> {
        let death = |at| {
            Value::Table(
                Table::new()
                    .with("queue", format!("q{at}").as_str())
                    .with("count", 1),
            )
        };
        let headers = Table::new()
            .with("a", 1)
            .with("x-death", Value::Array((0..deaths).map(death).collect()))
            .with("z", 2);
        PropertiesBuilder::new()
            .headers(&headers)
            .delivery_mode(2)
            .encode()
    }

    fn fit(properties: &[u8], flags: u8, most: usize) -> Option<Vec<u8>> {
        let route = RouteBuf::new(b"x", b"k");
        let message = Message {
            route: route.as_route(),
            properties: Properties::amqp091(properties),
            body: b"",
            flags,
        };
        fitted(&message, properties, most)
    }

    #[test]
    fn the_oldest_deaths_go_and_no_more_of_them_than_must() {
        let whole = properties(100);
        for most in [properties(0).len(), whole.len() / 2, whole.len() - 1, whole.len()] {
            let fitted = fit(&whole, DEAD_LETTERED, most).unwrap();
            let headers = BasicProperties::new(&fitted)
                .headers_table(&Limits::STORED)
                .unwrap();
            let left = headers.get("x-death").and_then(Value::as_array).unwrap().len();
            assert_eq!(fitted, properties(left), "the rest is as it was");
            assert!(fitted.len() <= most);
            assert!(left == 100 || properties(left + 1).len() > most);
        }
    }

    #[test]
    fn what_a_publisher_wrote_is_not_cut() {
        assert_eq!(fit(&properties(100), 0, 500), None);
        assert_eq!(
            fit(&properties(100), DEAD_LETTERED, properties(0).len() - 1),
            None
        );
        let none = PropertiesBuilder::new()
            .headers(&Table::new().with("a", 1))
            .encode();
        assert_eq!(fit(&none, DEAD_LETTERED, 3), None);
    }
}
