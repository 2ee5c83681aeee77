//! The catalog against naive models, on random histories.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use catalog::{
    Binding, Catalog, DeclareExchange, DeclareQueue, Destination, Effect, Envelope, Exchange, ExchangeKind,
    Incarnation, Name, NodeConnection, NodeId, PasswordHash, Record, Request, View, WantedBinding,
};
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{ConnectionId, Journaled, Machine, Outcome, QueueId, Timestamp};
use proptest::prelude::*;
use smallvec::SmallVec;
use std::collections::BTreeSet;

const KEYS: [&str; 10] = ["", "a", "b", "a.b", "*", "#", "a.*", "#.b", "a.#.b", "#.#"];
const EXCHANGES: [&str; 6] = ["d1", "d2", "f1", "f2", "t1", "h1"];
const QUEUES: [&str; 4] = ["q1", "q2", "q3", "q4"];

#[derive(Clone, Debug)]
enum Step {
    DeclareExchange {
        name: usize,
        durable: bool,
        auto_delete: bool,
    },
    DeleteExchange {
        name: usize,
    },
    DeclareQueue {
        name: usize,
        durable: bool,
        exclusive: bool,
        connection: u64,
    },
    DeleteQueue {
        name: usize,
    },
    Bind {
        from: usize,
        to: usize,
        key: usize,
        arguments: usize,
    },
    Unbind {
        from: usize,
        to: usize,
        key: usize,
        arguments: usize,
    },
    CloseConnection {
        connection: u64,
        at_most: usize,
    },
    PutUser {
        name: bool,
        password: bool,
    },
    SetPermissions {
        name: bool,
    },
    DeleteUser {
        name: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (exchange, queue) = (0..EXCHANGES.len(), 0..QUEUES.len());
    let binding = || {
        (
            0..EXCHANGES.len() + 1,
            0..EXCHANGES.len() + QUEUES.len(),
            0..KEYS.len(),
            0..3usize,
        )
    };
    prop_oneof![
        3 => (exchange.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(name, durable, auto_delete)| Step::DeclareExchange { name, durable, auto_delete }),
        1 => exchange.prop_map(|name| Step::DeleteExchange { name }),
        3 => (queue.clone(), any::<bool>(), prop::bool::weighted(0.3), 1..3u64)
            .prop_map(|(name, durable, exclusive, connection)| Step::DeclareQueue { name, durable, exclusive, connection }),
        1 => queue.prop_map(|name| Step::DeleteQueue { name }),
        12 => binding().prop_map(|(from, to, key, arguments)| Step::Bind { from, to, key, arguments }),
        4 => binding().prop_map(|(from, to, key, arguments)| Step::Unbind { from, to, key, arguments }),
        1 => (1..3u64, 1..5usize).prop_map(|(connection, at_most)| Step::CloseConnection { connection, at_most }),
        1 => any::<(bool, bool)>().prop_map(|(name, password)| Step::PutUser { name, password }),
        1 => any::<bool>().prop_map(|name| Step::SetPermissions { name }),
        1 => any::<bool>().prop_map(|name| Step::DeleteUser { name }),
    ]
}

fn arguments(which: usize) -> Table {
    match which {
        0 => Table::new(),
        1 => Table::new().with("k", 1).with("x-match", "any"),
        _ => Table::new().with("k", 1).with("l", "2"),
    }
}

fn user(name: bool) -> Name {
    if name { "ann" } else { "bob" }.into()
}

/// The run of the node in which everything is asked.
const RUN: Incarnation = Incarnation {
    node: NodeId::FIRST,
    number: 1,
};

fn client(number: u64) -> NodeConnection {
    NodeConnection {
        incarnation: RUN,
        connection: ConnectionId(number),
    }
}

fn declare_exchange(name: &str, durable: bool, auto_delete: bool) -> Request {
    let kind = match &name[..1] {
        "d" => "direct",
        "f" => "fanout",
        "t" => "topic",
        _ => "headers",
    };
    Request::DeclareExchange {
        vhost: "/".into(),
        declare: DeclareExchange {
            name: name.into(),
            kind: kind.into(),
            durable,
            auto_delete,
            ..DeclareExchange::default()
        },
        by: RUN,
    }
}

fn declare_queue(name: &str, durable: bool, exclusive: bool, connection: u64) -> Request {
    Request::DeclareQueue {
        vhost: "/".into(),
        declare: DeclareQueue {
            name: name.into(),
            durable,
            exclusive,
            arguments: Table::new().with("x-max-length", 5),
            ..DeclareQueue::default()
        },
        by: client(connection),
        unique: [0; 16],
    }
}

fn bind(from: usize, to: usize, key: usize, which: usize) -> Request {
    let destination = match QUEUES.get(to) {
        Some(queue) => Destination::Queue((*queue).into()),
        None => Destination::Exchange(EXCHANGES[to - QUEUES.len()].into()),
    };
    Request::Bind {
        vhost: "/".into(),
        binding: WantedBinding {
            source: EXCHANGES.get(from).copied().unwrap_or("amq.topic").to_string(),
            destination,
            routing_key: KEYS[key].into(),
            arguments: arguments(which),
            by: client(1),
        },
    }
}

fn unbind(bind: Request) -> Request {
    match bind {
        Request::Bind { vhost, binding } => Request::Unbind { vhost, binding },
        other => other,
    }
}

fn request(step: &Step, view: &View) -> Option<Request> {
    let vhost = Name::from("/");
    Some(match *step {
        Step::DeclareExchange {
            name,
            durable,
            auto_delete,
        } => declare_exchange(EXCHANGES[name], durable, auto_delete),
        Step::DeleteExchange { name } => Request::DeleteExchange {
            vhost,
            name: EXCHANGES[name].into(),
            if_unused: false,
        },
        Step::DeclareQueue {
            name,
            durable,
            exclusive,
            connection,
        } => declare_queue(QUEUES[name], durable, exclusive, connection),
        Step::DeleteQueue { name } => Request::DeleteQueue {
            id: view.queue("/", QUEUES[name])?.id,
        },
        Step::Bind {
            from,
            to,
            key,
            arguments,
        } => bind(from, to, key, arguments),
        Step::Unbind {
            from,
            to,
            key,
            arguments,
        } => unbind(bind(from, to, key, arguments)),
        Step::CloseConnection { connection, at_most } => Request::CloseConnection {
            connection: client(connection),
            at_most,
        },
        Step::PutUser { name, password } => {
            let password = password.then(|| PasswordHash::new([9; 4], b"secret"));
            Request::PutUser {
                name: user(name),
                password,
                tags: vec!["management".into()],
            }
        }
        Step::SetPermissions { name } => Request::SetPermissions {
            user: user(name),
            vhost,
            configure: "^a".into(),
            write: String::new(),
            read: ".*".into(),
        },
        Step::DeleteUser { name } => Request::DeleteUser { name: user(name) },
    })
}

/// Turns the machine once; returns its records as they come back from the journal.
fn turn(catalog: &mut Catalog<()>, request: Request) -> Vec<Record> {
    let mut outcome = Outcome::default();
    catalog.handle(Timestamp(0), request.asked_by(()), &mut outcome);
    let waits = outcome.records.iter().any(Record::is_durable);
    let is_reply = |effect: &&Effect<()>| matches!(effect, Effect::Reply(..));
    let (now, later) = (
        outcome.effects.iter().filter(is_reply).count(),
        outcome.promises.iter().filter(is_reply).count(),
    );
    assert_eq!(
        (now, later),
        if waits { (0, 1) } else { (1, 0) },
        "one answer, in the right place"
    );
    outcome
        .records
        .iter()
        .map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            let read = Record::decode(&bytes).expect("what was encoded");
            assert_eq!(read, *record);
            for cut in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..cut]), None, "a record that was cut");
            }
            read
        })
        .collect()
}

fn new() -> (Catalog<()>, Vec<Record>) {
    let mut catalog = Catalog::new();
    let journal = turn(&mut catalog, Request::CreateVhost { name: "/".into() });
    (catalog, journal)
}

fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Catalog<()> {
    let mut catalog = Catalog::new();
    for (at, record) in records.into_iter().enumerate() {
        catalog.apply(at as u64 + 1, record.clone(), &mut Outcome::default());
    }
    catalog.recovered(true);
    catalog
}

/// What the host is to start, stop and set, in order.
fn orders(outcome: &Outcome<Record, Effect<()>>) -> Vec<String> {
    let all = outcome.effects.iter().chain(&outcome.promises);
    all.filter_map(|effect| match effect {
        Effect::Reply(..) => None,
        order => Some(format!("{order:?}")),
    })
    .collect()
}

/// Everything, in order.
fn facts(catalog: &Catalog<()>) -> Vec<Record> {
    catalog.view().facts().collect()
}

/// A snapshot that is written a few records at a time.
struct Snapshot {
    facts: std::vec::IntoIter<Record>,
    finished: bool,
}

impl Snapshot {
    fn start(catalog: &mut Catalog<()>) -> (Self, Vec<Record>) {
        let snapshot = Self {
            facts: facts(catalog).into_iter(),
            finished: false,
        };
        (snapshot, turn(catalog, Request::StartSnapshot))
    }

    fn go_on(&mut self, catalog: &mut Catalog<()>, count: usize) -> Vec<Record> {
        let facts: Vec<Record> = self.facts.by_ref().take(count).collect();
        if !facts.is_empty() {
            return turn(catalog, Request::ContinueSnapshot { facts });
        }
        if std::mem::replace(&mut self.finished, true) {
            return Vec::new();
        }
        turn(catalog, Request::FinishSnapshot)
    }
}

fn matches(pattern: &[&str], key: &[&str]) -> bool {
    match pattern.split_first() {
        None => key.is_empty(),
        Some((&"#", rest)) => (0..=key.len()).any(|taken| matches(rest, &key[taken..])),
        Some((word, rest)) => key
            .split_first()
            .is_some_and(|(first, key)| (*word == "*" || word == first) && matches(rest, key)),
    }
}

fn words(key: &str) -> Vec<&str> {
    if key.is_empty() {
        Vec::new()
    } else {
        key.split('.').collect()
    }
}

/// Routes by looking at every binding of the virtual host.
fn naive_route(view: &View, exchange: &Exchange, key: &str, headers: &Table) -> BTreeSet<QueueId> {
    let mut queues = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![exchange.name.clone()];
    while let Some(name) = open.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        let kind = view.exchange("/", &name).unwrap().kind;
        for binding in view.bindings("/").filter(|binding| binding.source == name) {
            let pattern = std::str::from_utf8(&binding.routing_key).unwrap();
            let any = binding.arguments.contains("x-match");
            let mut wanted = binding.arguments.iter().filter(|(name, _)| *name != b"x-match");
            let passes = match kind {
                ExchangeKind::Direct => pattern == key,
                ExchangeKind::Fanout => true,
                ExchangeKind::Topic => matches(&words(pattern), &words(key)),
                ExchangeKind::Headers if any => wanted.any(|(name, value)| headers.get(name) == Some(value)),
                ExchangeKind::ConsistentHash
                | ExchangeKind::ModulusHash
                | ExchangeKind::Random
                | ExchangeKind::LocalRandom
                | ExchangeKind::Delayed
                | ExchangeKind::Deduplication => unreachable!("no step declares one"),
                ExchangeKind::Headers => wanted.all(|(name, value)| headers.get(name) == Some(value)),
            };
            match &binding.destination {
                _ if !passes => {}
                Destination::Queue(name) => drop(queues.insert(view.queue("/", name).unwrap().id)),
                Destination::Exchange(name) => open.push(name.clone()),
            }
        }
    }
    queues
}

/// All routes from everywhere with every key.
fn routes(view: &View) -> Vec<Vec<QueueId>> {
    let mut all = Vec::new();
    for exchange in view.exchanges("/").filter(|exchange| !exchange.is_default()) {
        for key in ["", "a", "a.b", "a.c.b", "c"] {
            for headers in [Table::new(), arguments(2)] {
                let mut out = SmallVec::new();
                let properties = PropertiesBuilder::new().headers(&headers).encode();
                view.route(
                    exchange,
                    &mut Envelope::new(key.as_bytes(), Properties::amqp091(&properties)),
                    &mut out,
                );
                let expected: Vec<QueueId> = naive_route(view, exchange, key, &headers).into_iter().collect();
                assert_eq!(out.to_vec(), expected, "from '{}' by '{key}'", exchange.name);
                all.push(expected);
            }
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn replay_is_live_and_a_snapshot_with_its_tail_is_the_whole_log(
        steps in prop::collection::vec(step(), 1..60),
        cut in 0..60usize,
        at_a_time in 1..8usize,
    ) {
        let (mut live, mut journal) = new();
        let mut snapshot: Option<(usize, Snapshot)> = None;
        for (at, step) in steps.iter().enumerate() {
            if at == cut {
                let (started, records) = Snapshot::start(&mut live);
                snapshot = Some((journal.len(), started));
                journal.extend(records);
            }
            if let Some(request) = request(step, &live.view()) {
                journal.extend(turn(&mut live, request));
            }
            if let Some((_, snapshot)) = &mut snapshot {
                journal.extend(snapshot.go_on(&mut live, at_a_time));
            }
        }
        let expected = facts(&live);
        prop_assert_eq!(facts(&replay(&journal)), expected.clone());
        if let Some((from, mut snapshot)) = snapshot {
            while !snapshot.finished {
                journal.extend(snapshot.go_on(&mut live, at_a_time));
            }
            prop_assert_eq!(facts(&replay(&journal)), expected.clone());
            prop_assert_eq!(facts(&replay(&journal[from..])), expected.clone());
        }
        prop_assert_eq!(facts(&replay(&expected)), expected);
    }

    #[test]
    fn who_only_applies_records_holds_and_orders_the_same_as_who_decided_and_can_take_over(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let (mut leader, journal) = new();
        let (mut follower, mut index) = (replay(&journal), journal.len() as u64);
        for step in &steps {
            let Some(request) = request(step, &leader.view()) else { continue };
            let (mut decided, mut applied) = (Outcome::default(), Outcome::default());
            leader.handle(Timestamp(0), request.asked_by(()), &mut decided);
            for record in &decided.records {
                index += 1;
                follower.apply(index, record.clone(), &mut applied);
            }
            prop_assert_eq!(orders(&decided), orders(&applied));
            prop_assert!(applied.records.is_empty() && applied.promises.is_empty());
            prop_assert_eq!(facts(&leader), facts(&follower));
        }
        for name in QUEUES {
            let next = || declare_queue(name, true, false, 1);
            prop_assert_eq!(turn(&mut leader, next()), turn(&mut follower, next()));
        }
        prop_assert_eq!(facts(&leader), facts(&follower));
    }

    #[test]
    fn routing_agrees_with_the_list_of_bindings_and_views_do_not_change(
        steps in prop::collection::vec(step(), 1..60),
        pause in 0..60usize,
    ) {
        let (mut live, _) = new();
        let mut before = None;
        for (at, step) in steps.iter().enumerate() {
            if at == pause {
                before = Some((live.view(), routes(&live.view())));
            }
            let Some(request) = request(step, &live.view()) else { continue };
            turn(&mut live, request);
        }
        let view = live.view();
        routes(&view);
        let vhost = view.vhost("/").unwrap();
        for exchange in vhost.exchanges() {
            let named = |binding: &&Binding| binding.source == exchange.name;
            let by_source: BTreeSet<_> = vhost.bindings_from(exchange).map(|it| format!("{it:?}")).collect();
            let among_all: BTreeSet<_> = vhost.bindings().filter(named).map(|it| format!("{it:?}")).collect();
            prop_assert_eq!(&by_source, &among_all);
            prop_assert_eq!(exchange.binding_count(), among_all.len());
        }
        if let Some((view, expected)) = before {
            prop_assert_eq!(routes(&view), expected);
        }
    }

    #[test]
    fn bytes_that_are_no_record_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), tag in 0..20u8) {
        let _ = Record::decode(&bytes);
        let _ = Record::decode(&[&[2, tag], &bytes[..]].concat());
        let _ = Record::decode(&[&[2, 16, 2, tag], &bytes[..]].concat());
    }
}

#[test]
fn a_snapshot_within_a_snapshot_is_refused_however_deep() {
    assert_eq!(Record::decode(&[2, 16].repeat(1_000_000)), None);
}

#[test]
fn ids_are_not_used_again_after_a_restart() {
    let (mut live, mut journal) = new();
    let mut last = QueueId(0);
    for _ in 0..1500 {
        let step = Step::DeclareQueue {
            name: 0,
            durable: false,
            exclusive: false,
            connection: 1,
        };
        let view = live.view();
        journal.extend(turn(&mut live, request(&step, &view).unwrap()));
        last = live.view().queue("/", QUEUES[0]).unwrap().id;
        journal.extend(turn(&mut live, Request::DeleteQueue { id: last }));
    }
    let mut again = replay(&journal);
    let step = Step::DeclareQueue {
        name: 0,
        durable: true,
        exclusive: false,
        connection: 1,
    };
    let view = again.view();
    turn(&mut again, request(&step, &view).unwrap());
    let id = again.view().queue("/", QUEUES[0]).unwrap().id;
    assert!(id > last, "{id} after {last}");
}
