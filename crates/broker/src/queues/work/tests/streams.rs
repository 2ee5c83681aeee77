//! A stream of one node, as clients of another one publish to it.

use super::*;
use crate::NoStream;
use model::chunk::{Batch, Entry};
use queue::Request;
use queue::stream::{Request as Ask, StreamRequest, TRACKED_MOST};

fn stream() -> DeclareQueue {
    DeclareQueue {
        arguments: Table::new().with("x-queue-type", "stream"),
        ..durable()
    }
}

impl Pair {
    /// Waits until the stream has so many messages, all of them safe.
    fn has(&self, count: u64) {
        let until = Instant::now() + LIMIT;
        loop {
            self.arrive();
            let queue = self.home.broker.queues().all().pop().unwrap();
            if queue.committed() == Some(count) {
                return;
            }
            assert!(Instant::now() < until, "it has {:?}", queue.committed());
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_a_stream_does_not_know_any_more_of_a_node_is_no_reason_to_refuse_what_that_sends_next() {
    let mut pair = Pair::with(stream());
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    let files = pair.files.copy();
    pair.away.publish(2);
    pair.told("a confirm", confirms(2));
    // It has its number by then, and its answer is missing.
    pair.away.publish(3);
    pair.cut();
    // The second one is lost, or it was never taken: its client has an answer.
    pair.home = Node::open(HOME, &files, &pair.wire);
    pair.link();
    for number in 3..6 {
        pair.told("a confirm", confirms(number));
        pair.away.publish(number + 1);
    }
    pair.told("a confirm", confirms(6));
    pair.has(5);
}

#[test]
fn a_node_is_recognised_however_many_clients_have_published_since_it_sent_something() {
    let pair = Pair::with(stream());
    pair.link();
    pair.away.publish(1);
    pair.told("a confirm", confirms(1));
    pair.away.publish(2);
    pair.has(2);
    // It was taken, and the answer is lost.
    pair.cut();
    let queue = pair.home.broker.queues().all().pop().unwrap();
    for number in 0..TRACKED_MOST {
        let mut entry = Vec::new();
        Entry::Message(b"one").write(&mut entry);
        let mut batch = Batch::default();
        batch.push(1, None, &entry).unwrap();
        let publish = Ask::Publish {
            reference: Some(number.to_string().into_bytes().into()),
            batch,
            receipt: None,
        };
        queue.submit(Request::Stream(Box::new(StreamRequest::Machine(publish))));
    }
    pair.has(2 + TRACKED_MOST as u64);
    pair.link();
    pair.told("a confirm", confirms(2));
    pair.away.publish(3);
    pair.told("a confirm", confirms(3));
    pair.has(3 + TRACKED_MOST as u64);
}

#[test]
fn an_offset_is_stored_in_a_stream_of_another_node_and_the_last_one_counts() {
    let pair = Pair::with(stream());
    let store = |offset| pair.away.session.store_stream_offset("q", b"reader", offset);
    assert_eq!(store(1), Err(NoStream::Unavailable), "there is no link");
    pair.link();
    assert_eq!((store(7), store(5)), (Ok(()), Ok(())));
    let queue = pair.home.broker.queues().all().pop().unwrap();
    let stored = || queue.tracking().and_then(|it| it.offset(b"reader"));
    let until = Instant::now() + LIMIT;
    while stored() != Some(5) {
        pair.arrive();
        assert!(Instant::now() < until, "{:?} is stored", stored());
        std::thread::yield_now();
    }
    // There may be no such stream any more, and another queue keeps none.
    let missing = pair.away.session.store_stream_offset("none", b"reader", 1);
    assert_eq!(missing, Err(NoStream::Missing));
}

#[test]
fn a_node_without_a_copy_of_a_stream_says_to_whoever_leads_it_that_nobody_reads_there() {
    let pair = Pair::new();
    pair.link();
    pair.arrive();
    let (stream, term) = (QueueId(77), 3);
    let said = |said| Envelope::Group { stream, said }.encode().concat();
    pair.away.work.receive(HOME, said(GroupWord::Leads { term }));
    let answer = pair.wire.0.lock().unwrap().pop_front();
    assert_eq!(answer, Some((HOME, said(GroupWord::Follows { term }).into())));
}
