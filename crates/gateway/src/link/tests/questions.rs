//! What a node asks that has no link.

use super::*;
use std::sync::mpsc::channel;

/// Answers each question with its asker's name and the question itself, but one that is to have no answer; one it forgets.
#[derive(Default)]
struct Answering {
    forgotten: Mutex<Vec<Reply>>,
}

impl Receiver for Answering {
    fn up(&self, _: NodeId, _: Lane, _: u64) {}

    fn frame(&self, _: NodeId, _: Lane, _: Bytes) {}

    fn down(&self, _: NodeId, _: Lane, _: bool) {}

    fn room(&self, _: NodeId, _: Lane) {}

    fn asked(&self, name: &str, question: Bytes, reply: Reply) {
        match &question[..] {
            b"nothing" => drop(reply),
            b"forgotten" => self.forgotten.lock().unwrap().push(reply),
            question => {
                let answer = [name.as_bytes(), b": ", question].concat();
                // Not on the thread that brought it.
                std::thread::spawn(move || reply.give(answer.into()));
            }
        }
    }
}

/// A node that is in no cluster and has no peers, and what it asks of another one.
struct Asker(Node);

impl Asker {
    fn new(options: LinkOptions) -> Self {
        Self(Node::start(
            9,
            LinkOptions {
                cluster: None,
                ..options
            },
        ))
    }

    fn ask(&self, of: &Links, name: &str, question: Bytes) -> Result<Bytes, String> {
        let at = of.endpoints()[0].address.network().unwrap();
        let (heard, hears) = channel();
        let host = at.ip().to_string();
        self.0
            .links
            .ask(name, (&host, at.port()), question, move |answer| {
                let _ = heard.send(answer);
            });
        hears.recv_timeout(LIMIT).unwrap()
    }
}

fn answering() -> (Arc<Links>, Arc<Answering>) {
    let (options, receiver) = (options("a@h"), Arc::new(Answering::default()));
    let told: Arc<dyn Receiver> = receiver.clone();
    let links = Arc::new(Links::new(&options));
    links.start(&options, Arc::downgrade(&told)).unwrap();
    (links, receiver)
}

#[test]
fn a_node_that_is_no_peer_asks_and_is_answered() {
    let (links, receiver) = answering();
    let asker = Asker::new(options("b@h"));
    let long = Bytes::from(vec![b'x'; QUESTION_LIMIT - 5]);
    for question in [Bytes::from_static(b"?"), Bytes::new(), long] {
        let answer = asker.ask(&links, "a@h", question.clone()).unwrap();
        assert_eq!(answer, [b"b@h: ", &question[..]].concat());
    }
    assert!(links.status().is_empty() && asker.0.links.status().is_empty());
    links.stop();
    drop(receiver);
}

#[test]
fn a_question_that_is_not_to_be_answered_has_its_reason() {
    let (links, receiver) = answering();
    let asker = Asker::new(options("b@h"));
    let why = |asker: &Asker, name, question: &[u8]| {
        let question = Bytes::copy_from_slice(question);
        asker.ask(&links, name, question).unwrap_err()
    };
    assert!(why(&asker, "a@h", b"nothing").contains("the node is no member of this cluster"));
    assert!(why(&asker, "c@h", b"?").contains("another node answers at this address"));
    assert!(why(&asker, "a@h", &vec![0; QUESTION_LIMIT + 1]).contains("longer than it may be"));
    let other = LinkOptions {
        secret: Secret::new(b"another secret").unwrap(),
        ..options("b@h")
    };
    assert!(why(&Asker::new(other), "a@h", b"?").contains("do not have the same secret"));
    let namesake = Asker::new(options("a@h"));
    assert!(why(&namesake, "a@h", b"?").contains("both nodes have the same name"));
    links.stop();
    drop(receiver);
}

#[test]
fn a_question_ends_with_the_node_that_was_asked() {
    let (links, receiver) = answering();
    let asker = Asker::new(options("b@h"));
    let stopped = (links.clone(), receiver.clone());
    let stops = std::thread::spawn(move || {
        wait("the question is there", || {
            !stopped.1.forgotten.lock().unwrap().is_empty()
        });
        stopped.0.stop();
    });
    let why = asker
        .ask(&links, "a@h", Bytes::from_static(b"forgotten"))
        .unwrap_err();
    assert!(why.contains("the node stops"), "{why}");
    stops.join().unwrap();
    drop(receiver);
}

#[test]
fn nobody_is_answered_where_nobody_answers() {
    let node = Node::start(1, options("a@h"));
    let asker = Asker::new(options("b@h"));
    let why = asker
        .ask(&node.links, "a@h", Bytes::from_static(b"?"))
        .unwrap_err();
    assert!(why.contains("the node is no member of this cluster"), "{why}");
}
