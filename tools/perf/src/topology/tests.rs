//! What is declared for which command line: what PerfTest 2.22 sends for it, by its source (`MulticastParams`).

use super::*;
use crate::client::scripted::{Offer, connecting, plan, start};
use protocol::amqp::Method;

/// A refusal of a fake broker.
type Refuse = fn(&Method<'_>) -> Option<(u16, String)>;

const NOTHING: Refuse = |_| None;

/// Lets `work` work with a broker of a version; gives what was asked of the broker after the first `channel`.
fn asked<T>(
    version: &'static str,
    refuse: Refuse,
    work: impl FnOnce(&mut Client) -> Result<T, Failure>,
) -> (Result<T, Failure>, Vec<String>) {
    let (uri, broker) = start(move |mut peer| {
        let offer = Offer {
            version,
            ..Default::default()
        };
        peer.log_in(&offer);
        peer.serve(refuse)
    });
    let mut client = Client::open(&uri, &connecting(), "n", "i", None).unwrap();
    client.open_channel(1).unwrap();
    let done = work(&mut client);
    client.close();
    let mut lines = broker.join().unwrap();
    assert_eq!(lines.remove(0), "channel");
    (done, lines)
}

/// What a command line declares, with the random key shown as KEY.
fn declared(version: &'static str, line: &str) -> (Topology, Vec<String>) {
    let plan = plan(line);
    let (topology, mut lines) = asked(version, NOTHING, |client| Topology::declare(&plan, client, 1));
    let topology = topology.unwrap();
    if !topology.key_given {
        lines
            .iter_mut()
            .for_each(|line| *line = line.replace(&topology.key, "KEY"));
    }
    (topology, lines)
}

#[test]
fn each_consumer_without_a_queue_gets_one_of_its_own_and_all_share_a_key() {
    let (topology, lines) = declared("4.2.0", "-x 2 -y 2");
    assert_eq!(lines, ["exchange direct direct durable"]);
    assert!(topology.declares_own(0) && topology.declares_own(1));
    assert_eq!(topology.consumer(0), Vec::<String>::new());
    let (done, lines) = asked("4.2.0", NOTHING, |client| {
        topology.declare_for_consumer(0, client, 1)?;
        topology.declare_for_consumer(1, client, 1)
    });
    done.unwrap();
    let key = topology.producer(0).routing_key.unwrap();
    assert_eq!(topology.producer(1).routing_key.as_ref(), Some(&key));
    assert_eq!(
        lines,
        [
            "queue '' auto-delete".to_owned(),
            format!("bind amq.gen-1 to direct by {key}"),
            "queue '' auto-delete".to_owned(),
            format!("bind amq.gen-2 to direct by {key}"),
        ]
    );
    assert_eq!(
        (topology.consumer(0), topology.consumer(1)),
        (vec!["amq.gen-1".into()], vec!["amq.gen-2".into()])
    );
    assert_eq!(topology.queues(), ["amq.gen-1", "amq.gen-2"]);
}

#[test]
fn without_consumers_and_names_there_is_no_queue() {
    let (topology, lines) = declared("4.2.0", "-y 0");
    assert_eq!(lines, ["exchange direct direct durable"]);
    assert!(topology.queues().is_empty());
}

#[test]
fn listed_queues_are_bound_with_one_key_and_all_consumed() {
    let (topology, lines) = declared("4.2.0", "-u a,b -t topic -e x -f persistent -ad false");
    assert_eq!(
        lines,
        [
            "exchange x topic durable",
            "queue 'a' durable",
            "bind a to x by KEY",
            "queue 'b' durable",
            "bind b to x by KEY",
        ]
    );
    assert_eq!(topology.consumer(7), ["a", "b"]);
    assert!(!topology.declares_own(0));
}

#[test]
fn queues_of_a_pattern_are_shared_out_with_their_names_for_keys() {
    let (topology, lines) = declared("4.2.0", "-qp q-%d -qpf 1 -qpt 2 -x 3 -y 3");
    assert_eq!(
        lines,
        [
            "exchange direct direct durable",
            "queue 'q-1' auto-delete",
            "bind q-1 to direct by q-1",
            "queue 'q-2' auto-delete",
            "bind q-2 to direct by q-2",
        ]
    );
    assert_eq!(
        (topology.consumer(0), topology.consumer(1)),
        (vec!["q-1".into()], vec!["q-2".into()])
    );
    assert_eq!(topology.consumer(2), ["q-1"]);
    let keys: Vec<_> = (0..3)
        .map(|index| topology.producer(index).routing_key.unwrap())
        .collect();
    assert_eq!(keys, ["q-1", "q-2", "q-1"]);
}

#[test]
fn a_routing_key_of_the_plan_holds_for_all() {
    let (topology, lines) = declared("4.2.0", "-qp q-%d -qpf 1 -qpt 2 -k here");
    assert_eq!(lines[2], "bind q-1 to direct by here");
    assert_eq!(lines[4], "bind q-2 to direct by here");
    assert_eq!(topology.producer(1).routing_key.as_deref(), Some("here"));
    let (topology, _) = declared("4.2.0", "-u q -K");
    assert_eq!(topology.producer(0).routing_key, None);
}

#[test]
fn nothing_is_bound_to_the_default_exchange_or_if_that_was_not_wanted() {
    let (topology, lines) = declared("4.2.0", "-e amq.default -u q -k q");
    assert_eq!(lines, ["queue 'q' auto-delete"]);
    assert_eq!(topology.producer(0).exchange, "");
    let (_, lines) = declared("4.2.0", "-u q -sb");
    assert_eq!(lines, ["exchange direct direct durable", "queue 'q' auto-delete"]);
    let (_, lines) = declared("4.2.0", "-e amq.topic -t topic -u q -k q");
    assert_eq!(lines, ["queue 'q' auto-delete", "bind q to amq.topic by q"]);
}

#[test]
fn queues_are_durable_on_brokers_that_refuse_transient_ones() {
    for (version, wanted) in [
        ("3.10.7", "queue 'q' auto-delete"),
        ("4.2.9", "queue 'q' auto-delete"),
        ("4.3.0", "queue 'q' durable auto-delete"),
        ("4.10.1+beta", "queue 'q' durable auto-delete"),
        ("5.0.0", "queue 'q' durable auto-delete"),
        ("what", "queue 'q' durable auto-delete"),
    ] {
        assert_eq!(declared(version, "-u q").1[1], wanted, "{version}");
    }
}

#[test]
fn exclusive_queues_are_declared_by_their_consumers_and_stay_transient() {
    let (topology, lines) = declared("4.3.0", "-E -k k");
    assert_eq!(lines, ["exchange direct direct durable"]);
    assert!(topology.declares_own(0));
    let declare = |client: &mut Client| topology.declare_for_consumer(0, client, 1);
    let (_, lines) = asked("4.3.0", NOTHING, declare);
    assert_eq!(
        lines,
        ["queue '' exclusive auto-delete", "bind amq.gen-1 to direct by k"]
    );
    // It went with its connection, so nobody looks for it.
    assert_eq!(asked("4.3.0", NOTHING, declare).1, lines);
    assert_eq!(
        asked("4.3.0", NOTHING, |client| topology.delete_queues(client)).1,
        Vec::<String>::new()
    );
}

#[test]
fn an_exclusive_queue_has_consumers_on_one_connection_only() {
    let mut plan = plan("-u q -k k");
    plan.queues.exclusive = true;
    let (topology, lines) = asked("4.3.0", NOTHING, |client| Topology::declare(&plan, client, 1));
    assert_eq!(lines, ["exchange direct direct durable"]);
    let topology = topology.unwrap();
    assert!(topology.declares_own(0));
    let (_, lines) = asked("4.3.0", NOTHING, |client| {
        topology.declare_for_consumer(0, client, 1)
    });
    assert_eq!(
        lines,
        ["queue 'q' exclusive auto-delete", "bind q to direct by k"]
    );
    plan.consuming.consumers = 2;
    let (done, _) = asked("4.3.0", NOTHING, |client| Topology::declare(&plan, client, 1));
    assert!(matches!(done, Err(Failure::Usage(text)) if text.contains("--consumers 1")));
}

#[test]
fn what_is_declared_before_is_looked_at_and_what_is_missing_declared() {
    let plan = plan("-p -u here,gone -e x -k k");
    let refuse: Refuse = |method| match method {
        Method::QueueDeclare(it) if it.passive && it.queue == "gone" => {
            Some((404, "NOT_FOUND - no queue 'gone' in vhost '/'".into()))
        }
        _ => None,
    };
    let (topology, lines) = asked("4.2.0", refuse, |client| Topology::declare(&plan, client, 1));
    assert_eq!(
        lines,
        [
            "exchange x direct passive durable",
            "queue 'here' passive",
            "bind here to x by k",
            "queue 'gone' passive",
            "channel",
            "queue 'gone' auto-delete",
            "bind gone to x by k",
        ]
    );
    // After a connection was lost, what was there before stays the business of whoever declared it.
    let (done, lines) = asked("4.2.0", NOTHING, |client| topology.unwrap().redeclare(client, 1));
    done.unwrap();
    assert_eq!(
        lines[lines.len() - 2..],
        ["queue 'gone' auto-delete", "bind gone to x by k"]
    );
    assert!(!lines.iter().any(|line| line.contains("here")));
}

#[test]
fn after_a_loss_all_is_declared_again_once_for_many() {
    let (topology, first) = declared("4.2.0", "-u q -k k");
    let (done, again) = asked("4.2.0", NOTHING, |client| {
        topology.redeclare(client, 1)?;
        topology.redeclare(client, 1)
    });
    done.unwrap();
    assert_eq!(first, again);
}

#[test]
fn a_queue_with_the_brokers_name_is_kept_if_it_outlived_the_connection() {
    let (topology, _) = declared("4.2.0", "-ad false -k k");
    let declare = |client: &mut Client| topology.declare_for_consumer(0, client, 1);
    asked("4.2.0", NOTHING, declare).0.unwrap();
    let (_, lines) = asked("4.2.0", NOTHING, declare);
    assert_eq!(lines, ["queue 'amq.gen-1' passive"]);
    let gone: Refuse = |method| match method {
        Method::QueueDeclare(it) if it.passive => Some((404, "NOT_FOUND - no queue".into())),
        _ => None,
    };
    let (_, lines) = asked("4.2.0", gone, declare);
    assert_eq!(
        lines,
        [
            "queue 'amq.gen-1' passive",
            "channel",
            "queue ''",
            "bind amq.gen-1 to direct by k"
        ]
    );
}

#[test]
fn at_the_end_queues_and_exchange_are_deleted_but_not_the_brokers_own() {
    let (topology, _) = declared("4.2.0", "-u a,b -e x");
    let gone: Refuse = |method| match method {
        Method::QueueDelete(it) if it.queue == "a" => Some((404, "NOT_FOUND - no queue 'a'".into())),
        _ => None,
    };
    let (done, lines) = asked("4.2.0", gone, |client| topology.delete(client));
    done.unwrap();
    assert_eq!(
        lines,
        ["delete queue a", "channel", "delete queue b", "delete exchange x"]
    );
    let (topology, _) = declared("4.2.0", "-u a -e amq.direct");
    let (_, lines) = asked("4.2.0", NOTHING, |client| topology.delete(client));
    assert_eq!(lines, ["delete queue a"]);
}

#[test]
fn a_queue_with_other_arguments_is_refused_with_what_to_do() {
    let plan = plan("-u q");
    let refuse: Refuse = |method| match method {
        Method::QueueDeclare(_) => Some((
            406,
            "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q'".into(),
        )),
        _ => None,
    };
    let (done, _) = asked("4.2.0", refuse, |client| Topology::declare(&plan, client, 1));
    let text = done.unwrap_err().to_string();
    assert!(
        text.contains("inequivalent arg 'durable'") && text.contains("--predeclared"),
        "{text}"
    );
}

#[test]
fn a_made_up_key_is_a_random_uuid() {
    let (one, other) = (uuid(), uuid());
    assert_ne!(one, other);
    let lengths: Vec<usize> = one.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12]);
    assert!(
        one.as_bytes()[14] == b'4' && b"89ab".contains(&one.as_bytes()[19]),
        "{one}"
    );
}
