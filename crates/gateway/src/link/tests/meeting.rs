//! Nodes that dial each other.

use super::log::{keep, lines};
use super::wire::Wire;
use super::*;

#[test]
fn three_nodes_are_linked_by_one_link_per_lane_and_frames_come_whole_and_in_order() {
    let nodes = [1, 2, 3].map(|id| Node::start(id, options(&format!("trio@{id}"))));
    let [one, two, three] = &nodes;
    introduce(&[one, two, three]);
    for (node, other) in [
        (one, two),
        (two, one),
        (two, three),
        (three, one),
        (one, three),
        (three, two),
    ] {
        node.linked(other);
    }
    let large = vec![7; 3 << 20];
    for number in 0..500_u32 {
        for lane in Lane::ALL {
            assert_eq!(one.send(two, lane, &number.to_be_bytes()), Sent::Queued);
        }
    }
    assert_eq!(two.send(one, Lane::Work, &large), Sent::Queued);
    assert_eq!(three.send(one, Lane::Consensus, b""), Sent::Queued);
    one.book.until("the large frame", |told| {
        told.contains(&Told::Frame(2, Lane::Work, large.clone().into()))
    });
    one.book.until("the empty frame", |told| {
        told.contains(&Told::Frame(3, Lane::Consensus, Bytes::new()))
    });
    for lane in Lane::ALL {
        wait("all frames have come", || two.book.frames(1, lane).len() == 500);
        let expected: Vec<_> = (0..500_u32)
            .map(|number| Bytes::copy_from_slice(&number.to_be_bytes()))
            .collect();
        assert_eq!(two.book.frames(1, lane), expected);
    }
    wait("heartbeats are measured", || {
        one.lane(two, Lane::Bulk).link.unwrap().round_trip_us.is_some()
    });
    let (here, there) = (one.lane(two, Lane::Bulk), two.lane(one, Lane::Bulk));
    assert_eq!((here.counts.frames_out, here.counts.bytes_out), (500, 2000));
    assert_eq!((there.counts.frames_in, there.counts.bytes_in), (500, 2000));
    let (here, there) = (here.link.unwrap(), there.link.unwrap());
    assert_ne!(here.by_peer, there.by_peer, "both ends have the same link");
    assert_eq!((here.version, here.is_secured, here.backlog_bytes), (1, false, 0));
    assert!(here.clock_ahead_ms.abs() < 60_000);
}

#[test]
fn two_nodes_that_dial_each_other_at_once_have_one_link_per_lane_at_both_ends() {
    for round in 0..20 {
        let nodes = [1, 2].map(|id| Node::start(id, options(&format!("both{round}@{id}"))));
        let [one, two] = &nodes;
        introduce(&[one, two]);
        one.linked(two);
        two.linked(one);
        // Until what had crossed is sorted out, a frame may be lost with the link that goes.
        for (from, to) in [(one, two), (two, one)] {
            for lane in Lane::ALL {
                wait("a frame comes", || {
                    from.send(to, lane, b"hello");
                    !to.book.frames(from.id, lane).is_empty()
                });
            }
        }
        for lane in Lane::ALL {
            wait("both ends have the same link", || {
                let link = |node: &Node, other| node.lane(other, lane).link.map(|link| link.by_peer);
                matches!((link(one, two), link(two, one)), (Some(here), Some(there)) if here != there)
            });
        }
        for node in [one, two] {
            // Each up but the first one follows a down, and there is one more.
            for lane in Lane::ALL {
                let ups = node
                    .book
                    .count(|told| matches!(told, Told::Up(_, of, _) if *of == lane));
                let downs = node
                    .book
                    .count(|told| matches!(told, Told::Down(_, of, _) if *of == lane));
                assert_eq!(ups, downs + 1, "{:?}", node.book.told.lock().unwrap());
            }
        }
    }
}

#[test]
fn a_node_that_was_killed_is_linked_again_when_it_is_started_and_what_was_sent_before_does_not_come() {
    let (one, two) = (
        Node::start(1, options("kill@1")),
        Node::start(2, options("kill@2")),
    );
    introduce(&[&one, &two]);
    one.linked(&two);
    two.linked(&one);
    let (at, id) = (two.address(), two.id);
    drop(two);
    one.book.until("all lanes are down", |told| {
        Lane::ALL
            .iter()
            .all(|lane| told.contains(&Told::Down(id, *lane, false)))
    });
    assert_eq!(
        one.links
            .send(NodeId(id), Lane::Work, vec![b"lost".as_slice().into()]),
        Sent::NoLink
    );
    let mut again = options("kill@2");
    again.incarnation = 2;
    again.endpoints = vec![Endpoint::plain(PROTOCOL, at)];
    let two = Node::start(id, again);
    introduce(&[&one, &two]);
    one.linked(&two);
    one.book.until("the later start is told", |told| {
        Lane::ALL
            .iter()
            .all(|lane| told.contains(&Told::Up(id, *lane, 2)))
    });
    wait("a frame comes", || {
        one.send(&two, Lane::Work, b"new");
        !two.book.frames(1, Lane::Work).is_empty()
    });
    assert!(
        two.book
            .frames(1, Lane::Work)
            .iter()
            .all(|frame| frame == b"new".as_slice())
    );
    assert!(one.lane(&two, Lane::Work).counts.frames_dropped > 0);
}

#[test]
fn a_link_that_carries_nothing_any_more_is_found_at_both_ends_and_made_again() {
    let short = |name| LinkOptions {
        silence: SILENCE,
        ..options(name)
    };
    let (one, two) = (Node::start(1, short("half@1")), Node::start(2, short("half@2")));
    let wire = Wire::to(two.address());
    one.links.set_peers(vec![two.peer_at(wire.address())]);
    // The other node can't dial: there is nobody.
    two.links
        .set_peers(vec![one.peer_at("127.0.0.1:1".parse().unwrap())]);
    one.linked(&two);
    two.linked(&one);
    let before = Instant::now();
    wire.cut();
    for (node, other) in [(&one, &two), (&two, &one)] {
        node.book.until("both ends notice", |told| {
            told.contains(&Told::Down(other.id, Lane::Consensus, false))
        });
        let (_, why) = node.lane(other, Lane::Consensus).last_lost.unwrap();
        assert!(!why.is_empty());
    }
    println!("a cut was noticed within {:?}", before.elapsed());
    wire.mend();
    one.linked(&two);
    two.linked(&one);
    wait("a frame comes", || {
        two.send(&one, Lane::Bulk, b"again");
        !one.book.frames(2, Lane::Bulk).is_empty()
    });
}

#[test]
fn what_is_sent_to_a_peer_that_reads_nothing_is_bounded_and_there_is_room_again_later() {
    let mut bounded = options("full@1");
    bounded.limits.work.backlog = 100_000;
    let (one, two) = (Node::start(1, bounded), Node::start(2, options("full@2")));
    let wire = Wire::to(two.address());
    one.links.set_peers(vec![two.peer_at(wire.address())]);
    two.links
        .set_peers(vec![one.peer_at("127.0.0.1:1".parse().unwrap())]);
    one.linked(&two);
    wire.stall();
    let mut queued = 0;
    let spare = || {
        one.links
            .send_spare(NodeId(2), Lane::Work, vec![vec![1; 10_000].into()])
    };
    wait("what may be lost has its part", || {
        let sent = spare();
        queued += usize::from(sent == Sent::Queued);
        sent == Sent::Full
    });
    let backlog = one.lane(&two, Lane::Work).link.unwrap().backlog_bytes;
    assert!(backlog <= 25_000, "{backlog}: others have room");
    let frame = vec![1; 60_000];
    wait("it is full", || match one.send(&two, Lane::Work, &frame) {
        Sent::Queued => {
            queued += 1;
            false
        }
        sent => {
            assert_eq!(sent, Sent::Full);
            true
        }
    });
    let link = one.lane(&two, Lane::Work).link.unwrap();
    assert!(
        link.backlog_bytes <= 100_000 && link.backlog_frames >= 1,
        "{link:?}"
    );
    assert_eq!(one.lane(&two, Lane::Work).counts.frames_dropped, 2);
    assert_eq!(one.send(&two, Lane::Bulk, b"others have room"), Sent::Queued);
    let longest = one
        .links
        .send(NodeId(2), Lane::Bulk, vec![vec![0; 4 << 20].into()]);
    assert_eq!(longest, Sent::TooLong, "it would cost the link at the other end");
    wire.mend();
    one.book
        .until("there is room", |told| told.contains(&Told::Room(2, Lane::Work)));
    wait("all has come that was taken", || {
        two.book.frames(1, Lane::Work).len() == queued
    });
}

#[test]
fn a_peer_that_is_none_any_more_loses_its_links_and_is_refused() {
    keep();
    let (one, two) = (
        Node::start(1, options("gone@1")),
        Node::start(2, options("gone@2")),
    );
    introduce(&[&one, &two]);
    one.linked(&two);
    two.linked(&one);
    one.links.set_peers(Vec::new());
    one.book.until("its links are down", |told| {
        Lane::ALL
            .iter()
            .all(|lane| told.contains(&Told::Down(2, *lane, false)))
    });
    assert_eq!(one.send(&two, Lane::Work, b"x"), Sent::NoLink);
    two.refused(&one, "is no member of this cluster");
    wait("the other side says so, too", || {
        !lines(&["gone@2", "is no member of this cluster"]).is_empty()
    });
}

#[test]
fn nodes_that_do_not_fit_together_say_why_on_both_sides() {
    keep();
    let other_secret = |name| LinkOptions {
        secret: Secret::new(b"another secret").unwrap(),
        ..options(name)
    };
    let other_cluster = |name| LinkOptions {
        cluster: Some(ClusterId([8; 16])),
        ..options(name)
    };
    for (case, second, why) in [
        ("secret", other_secret("secret@2"), "do not have the same secret"),
        (
            "cluster",
            other_cluster("cluster@2"),
            "belong to different clusters",
        ),
    ] {
        let (one, two) = (
            Node::start(1, options(&format!("{case}@1"))),
            Node::start(2, second),
        );
        introduce(&[&one, &two]);
        one.refused(&two, why);
        two.refused(&one, why);
        assert!(one.book.told.lock().unwrap().is_empty() && two.book.told.lock().unwrap().is_empty());
        let [one, two] = [&one.name, &two.name];
        // Each logs what it dials, and what dials it.
        wait("both have logged it", || {
            [one, two].iter().all(|name| {
                let dials = lines(&["no link with node ", name, why]);
                let dialled = lines(&["no link with a node", name, why]);
                !dials.is_empty() && !dialled.is_empty()
            })
        });
    }
}

#[test]
fn a_node_that_finds_itself_or_another_one_at_a_peers_address_says_so() {
    keep();
    let (one, two) = (
        Node::start(1, options("name@1")),
        Node::start(2, options("name@2")),
    );
    let third = |node: &Node| PeerAddress {
        id: NodeId(3),
        name: "name@3".to_owned(),
        ..node.peer()
    };
    let last = |node: &Node| {
        node.links.status()[0].lanes[0]
            .last_lost
            .clone()
            .map(|(_, why)| why)
    };
    one.links.set_peers(vec![third(&two)]);
    wait("another node answers", || {
        last(&one).is_some_and(|why| why.contains("name@3 was dialled, and name@2 answers"))
    });
    two.links.set_peers(vec![third(&two)]);
    wait("it has dialled itself", || {
        last(&two).is_some_and(|why| why.contains("both nodes have the same name"))
    });
    wait("and logged it", || {
        !lines(&["name@3", "both nodes have the same name"]).is_empty()
    });
}
