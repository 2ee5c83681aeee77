//! Links for clients' work on the threads of clients.

use super::*;
use crate::balance::Rules;
use crate::connections::Connections;
use crate::gateway::runtimes;
use crate::threads::Threads;
use tokio::sync::watch;

/// Threads that serve nobody.
fn threads() -> Threads {
    let (_, open) = watch::channel(true);
    let runtimes = runtimes(Some(2)).unwrap();
    let (connections, rules) = (Arc::<Connections>::default(), Rules::default());
    Threads::start(
        "clients",
        runtimes,
        Vec::new(),
        open,
        Vec::new(),
        connections,
        rules,
    )
    .unwrap()
}

/// Two nodes with links that only the first one dials: none is replaced, and nothing is lost with it.
fn linked() -> (Node, Node) {
    let (one, other) = (
        Node::start(1, options("one@h")),
        Node::start(2, options("other@h")),
    );
    let nowhere = "127.0.0.1:1".parse().unwrap();
    other.links.set_peers(vec![one.peer_at(nowhere)]);
    one.links.set_peers(vec![other.peer()]);
    one.linked(&other);
    other.linked(&one);
    (one, other)
}

/// By which thread a frame came that was sent now.
fn served_by(one: &Node, other: &Node, lane: Lane, word: &[u8]) -> String {
    let seen = other.book.frames(one.id, lane).len();
    assert_eq!(one.send(other, lane, word), Sent::Queued);
    wait("a frame arrives", || other.book.frames(one.id, lane).len() > seen);
    let thread = other.book.thread.lock().unwrap().clone();
    thread.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned()
}

#[test]
fn what_clients_want_goes_by_their_threads_while_there_are_some_and_nothing_is_lost_on_the_way() {
    let (one, other) = linked();
    assert_eq!(served_by(&one, &other, Lane::Work, b"first"), "links-");
    let clients = threads();
    other.links.work_with(clients.acceptor());
    wait("the link goes over", || {
        served_by(&one, &other, Lane::Work, b"on the way") == "clients-"
    });
    assert_eq!(served_by(&one, &other, Lane::Consensus, b"a vote"), "links-");
    other.links.work_apart();
    wait("the link comes back", || {
        served_by(&one, &other, Lane::Work, b"on the way") == "links-"
    });
    clients.stop();
    assert_eq!(served_by(&one, &other, Lane::Work, b"last"), "links-");
    let lost = |told: &Told| matches!(told, Told::Down(..));
    assert_eq!(one.book.count(lost) + other.book.count(lost), 0);
}

#[test]
fn a_link_of_threads_that_have_stopped_is_made_again_and_stays_apart() {
    let (one, other) = linked();
    let clients = threads();
    other.links.work_with(clients.acceptor());
    wait("the link goes over", || {
        served_by(&one, &other, Lane::Work, b"on the way") == "clients-"
    });
    clients.stop();
    other.book.until("the link is lost", |told| {
        told.contains(&Told::Down(1, Lane::Work, false))
    });
    one.book.until("it is noticed there, too", |told| {
        told.contains(&Told::Down(2, Lane::Work, false))
    });
    one.linked(&other);
    other.linked(&one);
    assert_eq!(served_by(&one, &other, Lane::Work, b"again"), "links-");
}
