//! What routing a message takes is counted, so that whoever publishes can be made to yield.

#![allow(clippy::unwrap_used)]

use catalog::{
    Catalog, DeclareQueue, Destination, Envelope, Incarnation, NodeConnection, Request, WantedBinding,
};
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{Machine, Outcome, Timestamp};
use smallvec::SmallVec;

fn ask(catalog: &mut Catalog<()>, request: Request) {
    catalog.handle(Timestamp(0), request.asked_by(()), &mut Outcome::default());
}

#[test]
fn each_binding_that_leads_to_a_queue_is_a_step() {
    let mut catalog = Catalog::new();
    ask(&mut catalog, Request::CreateVhost { name: "/".into() });
    for at in 0..100 {
        let name = format!("q{at}");
        let declare = DeclareQueue {
            name: name.clone(),
            ..DeclareQueue::default()
        };
        ask(
            &mut catalog,
            Request::DeclareQueue {
                vhost: "/".into(),
                declare,
                by: NodeConnection::of_node(Incarnation::default()),
                unique: [0; 16],
            },
        );
        let binding = WantedBinding {
            source: "amq.headers".into(),
            destination: Destination::Queue(name.as_str().into()),
            routing_key: Vec::new(),
            arguments: Table::new().with("x-match", "any").with("a", 1).with("b", 1),
            by: NodeConnection::of_node(Incarnation::default()),
        };
        ask(
            &mut catalog,
            Request::Bind {
                vhost: "/".into(),
                binding,
            },
        );
    }
    let view = catalog.view();
    let exchange = view.exchange("/", "amq.headers").unwrap();
    let steps = |headers: Table| {
        let properties = PropertiesBuilder::new().headers(&headers).encode();
        let mut envelope = Envelope::new(b"", Properties::amqp091(&properties));
        view.route(exchange, &mut envelope, &mut SmallVec::new());
        envelope.steps()
    };
    let (none, one, both) = (
        steps(Table::new()),
        steps(Table::new().with("a", 1)),
        steps(Table::new().with("a", 1).with("b", 1)),
    );
    assert!(none < 5 && (100..110).contains(&one) && (200..210).contains(&both));
}
