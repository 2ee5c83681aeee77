//! What changes cost when there are very many bindings.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "it measures")]

use catalog::{
    Catalog, DeclareQueue, Destination, Envelope, Incarnation, NodeConnection, NodeId, Request, View,
    WantedBinding,
};
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{ConnectionId, Machine, Outcome, QueueId, Timestamp};
use smallvec::SmallVec;
use std::time::Duration;

/// The time that this thread has had a processor: the machine may be busy with other things.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

const CLIENT: NodeConnection = NodeConnection {
    incarnation: Incarnation {
        node: NodeId::FIRST,
        number: 1,
    },
    connection: ConnectionId(1),
};

fn ask(catalog: &mut Catalog<()>, request: Request) {
    let mut outcome = Outcome::default();
    catalog.handle(Timestamp(0), request.asked_by(()), &mut outcome);
    assert!(!outcome.records.is_empty());
}

fn bind(exchange: &str, queue: &str, key: String) -> Request {
    Request::Bind {
        vhost: "/".into(),
        binding: WantedBinding {
            source: exchange.into(),
            destination: Destination::Queue(queue.into()),
            routing_key: key.into_bytes(),
            arguments: Table::new(),
            by: CLIENT,
        },
    }
}

fn declare(queue: &str) -> Request {
    Request::DeclareQueue {
        vhost: "/".into(),
        declare: DeclareQueue {
            name: queue.into(),
            durable: true,
            ..DeclareQueue::default()
        },
        by: CLIENT,
        unique: [0; 16],
    }
}

/// A catalog with queues `q0`, `q1`, … and `bindings` bindings of `exchange` spread over them.
fn with_bindings(exchange: &str, queues: usize, bindings: usize) -> Catalog<()> {
    let mut catalog = Catalog::new();
    ask(&mut catalog, Request::CreateVhost { name: "/".into() });
    (0..queues).for_each(|at| ask(&mut catalog, declare(&format!("q{at}"))));
    for at in 0..bindings {
        ask(
            &mut catalog,
            bind(exchange, &format!("q{}", at % queues), format!("key.{at}.end")),
        );
    }
    catalog
}

/// Binding ten times as many must not cost each of them ten times as much: the work per binding is logarithmic.
/// The view is published before each change, as the host does it, so nothing can be changed in place.
fn time_per_bind(catalog: &mut Catalog<()>, exchange: &str, count: u32) -> Duration {
    let mut views = catalog.view();
    let start = worked();
    for at in 0..count {
        ask(catalog, bind(exchange, "q0", format!("new.{at}")));
        views = catalog.view();
    }
    let spent = (worked() - start) / count;
    assert!(views.generation() > 0);
    spent
}

#[test]
fn deleting_a_queue_costs_its_bindings_and_not_all_of_them() {
    let mut catalog = with_bindings("amq.direct", 10, 20_000);
    let id = catalog.view().queue("/", "q3").unwrap().id;
    let view = catalog.view();
    let start = worked();
    ask(&mut catalog, Request::DeleteQueue { id });
    let spent = worked() - start;
    assert_eq!(catalog.view().bindings("/").count(), 18_000);
    assert_eq!(view.bindings("/").count(), 20_000);
    // Quadratic work would be 2,000 x 20,000 comparisons; this bound is generous even without optimisation.
    assert!(spent < Duration::from_secs(2), "{spent:?}");
}

#[test]
#[ignore = "measures; run with --release"]
fn a_million_bindings() {
    for exchange in ["amq.direct", "amq.topic", "amq.fanout", "amq.headers"] {
        let start = worked();
        let mut catalog = with_bindings(exchange, 100, 1_000_000);
        let build = (worked() - start) / 1_000_000;
        let each = time_per_bind(&mut catalog, exchange, 10_000);
        let view = catalog.view();
        let found = view.exchange("/", exchange).unwrap();
        let mut out: SmallVec<[QueueId; 8]> = SmallVec::new();
        let rounds: usize = if exchange == "amq.headers" { 5 } else { 100_000 };
        let start = worked();
        for at in 0..rounds {
            out.clear();
            let key = format!("key.{}.end", at * 7919 % 1_000_000);
            view.route(
                found,
                &mut Envelope::new(key.as_bytes(), Properties::amqp091(&[0, 0])),
                &mut out,
            );
        }
        let route = (worked() - start) / rounds as u32;
        let id = view.queue("/", "q3").unwrap().id;
        let start = worked();
        ask(&mut catalog, Request::DeleteQueue { id });
        let delete = worked() - start;
        println!(
            "{exchange}: built at {build:?} each; bind with a view out {each:?}; route {route:?}; delete of 10,000 {delete:?}"
        );
        assert!(each < Duration::from_micros(60), "{each:?}");
    }
}

/// What a route costs among so many bindings, in nanoseconds: the median of a hundred rounds.
fn time_per_route(view: &View, exchange: &str, messages: &[(String, Vec<u8>)]) -> u128 {
    let exchange = view.exchange("/", exchange).unwrap();
    let mut rounds: Vec<u128> = (0..101)
        .map(|_| {
            let start = worked();
            for (key, properties) in messages {
                let mut out: SmallVec<[QueueId; 8]> = SmallVec::new();
                view.route(
                    exchange,
                    &mut Envelope::new(key.as_bytes(), Properties::amqp091(properties)),
                    &mut out,
                );
            }
            (worked() - start).as_nanos() / messages.len() as u128
        })
        .collect();
    rounds.sort_unstable();
    rounds[50]
}

#[test]
#[ignore = "measures; run with --release"]
fn routes_among_a_hundred_thousand_bindings() {
    let mut catalog = with_bindings("amq.direct", 100, 100_000);
    for at in 0..100_000 {
        let queue = format!("q{}", at % 100);
        let mut request = bind("amq.headers", &queue, String::new());
        if let Request::Bind { binding, .. } = &mut request {
            binding.arguments = Table::new().with("type", "report").with("user", at);
        }
        ask(&mut catalog, request);
        ask(&mut catalog, bind("amq.topic", &queue, format!("key.{at}.*")));
        ask(&mut catalog, bind("amq.fanout", &queue, format!("{at}")));
    }
    let view = catalog.view();
    let none = vec![0, 0];
    let numbers = || (0..4096).map(|at| at * 7919 % 100_000);
    let keys: Vec<_> = numbers()
        .map(|at| (format!("key.{at}.end"), none.clone()))
        .collect();
    let headers: Vec<_> = numbers()
        .map(|at| {
            let headers = Table::new().with("type", "report").with("user", at);
            (String::new(), PropertiesBuilder::new().headers(&headers).encode())
        })
        .collect();
    println!("direct {} ns", time_per_route(&view, "amq.direct", &keys));
    println!("topic {} ns", time_per_route(&view, "amq.topic", &keys));
    println!("headers {} ns", time_per_route(&view, "amq.headers", &headers));
    println!(
        "fanout to 100 queues {} ns",
        time_per_route(&view, "amq.fanout", &keys)
    );
}

#[test]
#[ignore = "measures; run with --release"]
fn routes_among_a_hundred_thousand_hostile_patterns() {
    for (name, pattern) in [
        ("two hashes around a word", "#.a.#"),
        ("stars between hashes", "#.a.*.*.*.a.#"),
        ("a hash at the end", "a.a.*.a.#"),
    ] {
        let mut catalog = with_bindings("amq.direct", 100, 0);
        for at in 0..100_000 {
            ask(
                &mut catalog,
                bind("amq.topic", &format!("q{}", at % 100), format!("{pattern}.w{at}")),
            );
        }
        let hostile: Vec<_> = (0..64)
            .map(|at| (format!("{}.w{at}", ["a"; 124].join(".")), vec![0, 0]))
            .collect();
        println!(
            "topic, {name}: {} ns",
            time_per_route(&catalog.view(), "amq.topic", &hostile)
        );
    }
}
