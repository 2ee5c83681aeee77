//! Stories: conversations with a real broker, written down as text, without a socket.
//!
//! A file in `tests/stories` holds one or more stories. A story begins with a line `# name`; then a line a frame:
//!
//! ```text
//! > 1 queue.declare queue=q durable        the client sends this on channel 1
//! < 1 queue.declare-ok queue=q messages=0 consumers=0
//! > 0 disk alarm                            the disk is full, from before the beginning
//! > 0 memory alarm on                       memory is short from now on; `disk alarm off` and their like end it
//! > 0 answers wait                          for the log: not told where another node decides, whose answers are durable when they come
//! > 0 wait 500                              so many milliseconds pass for all connections
//! B> 0 open                                 another connection, B, comes in (A is there from the beginning)
//! ```
//!
//! Every frame that the broker sends must be written down, in order, per connection. Lines that follow each other with `>` on
//! one connection arrive in one read.

mod chaos;
mod elsewhere;
mod goodbye;
mod language;
mod late;
mod parts;
mod unfinished;

pub(super) use language::{encode_line, opening};

use super::*;
use crate::amqp::options::Options;
use broker::{Broker, LateCatalog, Options as BrokerOptions};
use elsewhere::OtherNode;
use language::describe;
use protocol::amqp::method::{BasicQos, ChannelOpen};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::{Condvar, Mutex};
use std::task::Wake;
use std::time::{Duration, Instant};

/// Woken by the broker.
#[derive(Default)]
pub(super) struct WakeCount {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for WakeCount {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl WakeCount {
    /// Waits until it has rung since the last time, but not longer than `timeout`.
    pub(super) fn wait(&self, timeout: Duration) {
        let rung = self.rung.lock().unwrap();
        let (mut rung, _) = self
            .changed
            .wait_timeout_while(rung, timeout, |rung| !*rung)
            .unwrap();
        *rung = false;
    }
}

/// One client.
struct Client {
    core: AmqpConnection,
    out: Output,
    unread: Vec<u8>,
    seen: VecDeque<String>,
    capable: bool,
}

struct World {
    front_end: Arc<Amqp>,
    now: Millis,
    clients: BTreeMap<char, Client>,
    woken: Arc<WakeCount>,
    /// The node that decides what exists, if it is another one.
    late: Option<Arc<LateCatalog>>,
    /// Where the queues are, if they are not on this node.
    elsewhere: Option<Arc<OtherNode>>,
    _data: tempfile::TempDir,
}

impl World {
    /// The same, but another node decides what exists.
    fn late(mut self) -> Self {
        self.late = Some(LateCatalog::of(&self.front_end.broker));
        self
    }

    fn new(alarm: bool) -> Self {
        Self::with(|options| {
            if alarm {
                options.disk_free_limit = u64::MAX;
            }
        })
    }

    fn with(set: impl FnOnce(&mut BrokerOptions)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut options = BrokerOptions::new(data.path());
        set(&mut options);
        let broker = Broker::open(options).unwrap();
        let front_end = Arc::new(Amqp::new(broker, Options::default(), Arc::default()));
        Self {
            front_end,
            now: 0,
            clients: BTreeMap::new(),
            woken: Arc::default(),
            late: None,
            elsewhere: None,
            _data: data,
        }
    }

    fn connect(&mut self, letter: char, capable: bool) {
        let address = "127.0.0.1:1".parse().unwrap();
        let core = AmqpConnection::new(
            self.front_end.clone(),
            Name {
                peer: address,
                local: address,
            },
            None,
            0,
        );
        let client = Client {
            core,
            out: Output::default(),
            unread: Vec::new(),
            seen: VecDeque::new(),
            capable,
        };
        self.clients.insert(letter, client);
    }

    /// Comes in the usual way.
    fn open(&mut self, letter: char, capable: bool) {
        self.connect(letter, capable);
        self.send(letter, &opening(capable));
        for expected in ["0 connection.start", "0 connection.tune", "0 connection.open-ok"] {
            let got = self.next(letter);
            assert!(got.starts_with(expected), "{got}");
        }
    }

    fn send(&mut self, letter: char, bytes: &[u8]) {
        let client = self.clients.get_mut(&letter).unwrap();
        client.unread.extend_from_slice(bytes);
        self.turn();
    }

    /// A turn of everybody. Another node that decides has its turns in between, until all has been asked and answered.
    fn turn(&mut self) {
        let mut went_on = self.turn_clients();
        let Some(late) = self.late.clone() else { return };
        while went_on || late.waiting() > 0 {
            if late.decide_next(&self.front_end.broker) {
                self.turn_clients();
            }
            went_on = self.turn_clients();
        }
    }

    /// One turn of all clients; true if one of them was listened to.
    fn turn_clients(&mut self) -> bool {
        let mut went_on = false;
        let waker = Waker::from(self.woken.clone());
        let now = self.now;
        if let Some(other) = &self.elsewhere {
            other.follow(&self.front_end.broker);
            other.turn();
        }
        for client in self.clients.values_mut() {
            let Client {
                core,
                out,
                unread,
                seen,
                ..
            } = client;
            if core.wants_input(out) && !unread.is_empty() {
                let taken = core.input(unread, now, out);
                unread.drain(..taken);
                went_on |= taken > 0;
            }
            if core.next_tick().is_some_and(|at| now >= at) {
                core.tick(now, out);
            }
            core.turn(&waker, now, out);
            while !out.is_empty() {
                seen.extend(describe(out.unwritten()));
                out.wrote(out.len());
                core.fill(out);
            }
            if core.is_finished() && !unread.is_empty() {
                unread.clear();
            }
        }
        went_on
    }

    /// What a line such as `0 memory alarm on` says.
    fn switch_alarm(&mut self, text: &str) -> Option<()> {
        let broker = &self.front_end.broker;
        match text {
            "0 memory alarm on" => broker.set_memory_high_watermark(1),
            "0 memory alarm off" => broker.set_memory_high_watermark(u64::MAX),
            "0 disk alarm on" => broker.set_disk_free_limit(u64::MAX),
            "0 disk alarm off" => broker.set_disk_free_limit(0),
            _ => return None,
        }
        self.turn();
        Some(())
    }

    /// The next frame to this client, waited for.
    fn next(&mut self, letter: char) -> String {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            self.turn();
            if let Some(line) = self.clients.get_mut(&letter).unwrap().seen.pop_front() {
                return line;
            }
            if !self.elsewhere.as_ref().is_some_and(|other| other.is_asked()) {
                self.woken.wait(Duration::from_millis(100));
            }
            if Instant::now() > until {
                return "nothing".into();
            }
        }
    }
}

/// Runs one story: here, where another node decides what exists, or where another node has the queues, or both. `Err`
/// is the first line that is not as written.
fn run(lines: &[(usize, &str)], late: bool, place: Place) -> Result<(), String> {
    let mut world = World::new(lines.iter().any(|(_, line)| *line == "> 0 disk alarm"));
    if late {
        world = world.late();
    }
    world.elsewhere = match place {
        Place::Here => None,
        Place::Elsewhere => Some(Arc::default()),
        Place::OverLinks => Some(OtherNode::over_links(world.woken.clone())),
    };
    let plain = lines.iter().any(|(_, line)| *line == "> 0 connect");
    if !plain {
        world.open('A', true);
    }
    let mut batch: Option<(char, Vec<u8>)> = None;
    for (number, line) in lines {
        let (letter, line) = match line.split_once(['>', '<']) {
            Some(("", _)) => ('A', *line),
            Some((letter, _)) if letter.len() == 1 => (letter.chars().next().unwrap(), &line[1..]),
            _ => return Err(format!("line {number}: a line begins with > or <")),
        };
        if batch
            .as_ref()
            .is_some_and(|(known, _)| *known != letter || line.starts_with('<'))
        {
            let (letter, bytes) = batch.take().unwrap();
            world.send(letter, &bytes);
        }
        let text = line[1..].trim();
        match (&line[..1], text) {
            (">", "0 open") => world.open(letter, true),
            (">", "0 open without capabilities") => world.open(letter, false),
            (">", "0 disk alarm" | "0 answers wait") => {}
            (">", "0 connect") => world.connect(letter, true),
            (">", "0 hang up") => {
                let client = world.clients.get_mut(&letter).unwrap();
                client.core.hung_up("as the story says", 0, &mut client.out);
            }
            (">", text) if text.contains(" alarm ") => {
                if let Some((letter, bytes)) = batch.take() {
                    world.send(letter, &bytes);
                }
                world.switch_alarm(text).ok_or(format!("line {number}: {text}"))?;
            }
            (">", text) if text.starts_with("0 wait ") => {
                if let Some((letter, bytes)) = batch.take() {
                    world.send(letter, &bytes);
                }
                let ms: Millis = text[7..].parse().map_err(|_| format!("line {number}: {text}"))?;
                world.now += ms;
                world.turn();
            }
            (">", _) => {
                let capable = world.clients[&letter].capable;
                let bytes = encode_line(text, capable).ok_or(format!("line {number}: {text}"))?;
                batch.get_or_insert((letter, Vec::new())).1.extend(bytes);
            }
            (_, "end") => {
                world.turn();
                if !world.clients[&letter].core.is_answered() {
                    return Err(format!("line {number}: it goes on"));
                }
            }
            _ => {
                let got = world.next(letter);
                if got != text {
                    return Err(format!("line {number}\n  expected: {text}\n  got:      {got}"));
                }
            }
        }
    }
    if let Some((letter, bytes)) = batch {
        world.send(letter, &bytes);
    }
    world.turn();
    for (letter, client) in &world.clients {
        if !client.seen.is_empty() {
            return Err(format!("unexpected at the end, to {letter}: {:?}", client.seen));
        }
    }
    Ok(())
}

#[test]
fn all_stories_are_true() {
    tell_all(false, Place::Here);
}

#[test]
fn all_stories_are_true_where_another_node_decides_what_exists() {
    tell_all(true, Place::Here);
}

#[test]
fn all_stories_are_true_of_queues_on_another_node() {
    tell_all(false, Place::Elsewhere);
}

#[test]
fn all_stories_are_true_where_other_nodes_have_the_queues_and_decide_what_exists() {
    tell_all(true, Place::Elsewhere);
}

/// Which of two consumers is served next depends on when the queue hears that one waits.
const ONLY_HERE: &str =
    "A global prefetch holds for the channel, and what is beyond it stays ready, unmarked";

/// To a queue elsewhere a message goes by the exchange's own queue, which takes all.
const ONLY_RETURNED_HERE: &str = "What a deduplication exchange keeps back is returned, if it is mandatory";

/// Where nothing waits for this node's log, a delivery from elsewhere may come before the end of its channel.
const ONLY_HELD: &str =
    "What a channel says after a durable declaration waits behind it, other channels do not";

/// Where the queues of a story are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Here,
    /// On another node, which is handed what is asked.
    Elsewhere,
    /// The same, with all that nodes say to each other.
    OverLinks,
}

#[test]
fn all_stories_are_true_of_queues_on_another_node_to_which_there_is_a_link() {
    tell_all(false, Place::OverLinks);
}

fn tell_all(late: bool, place: Place) {
    let elsewhere = place != Place::Here;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let (mut count, mut wrong) = (0, Vec::new());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut story: (String, Vec<(usize, &str)>) = Default::default();
        for (at, line) in text.lines().chain(["# "]).enumerate() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("# ").or((line == "#").then_some("")) {
                let waits = story.1.iter().any(|(_, line)| *line == "> 0 answers wait");
                let left_out = late && waits
                    || elsewhere && story.0.ends_with(ONLY_HERE)
                    || elsewhere && story.0.ends_with(ONLY_RETURNED_HERE)
                    || late && elsewhere && story.0.ends_with(ONLY_HELD);
                if !(story.1.is_empty() || left_out) {
                    count += 1;
                    if let Err(error) = run(&story.1, late, place) {
                        wrong.push(format!("{}, {error}", story.0));
                    }
                }
                story = (format!("{}: {name}", file.display()), Vec::new());
            } else if !line.is_empty() && !line.starts_with("//") {
                story.1.push((at + 1, line));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 20, "only {count} stories were found");
}

#[test]
fn who_asks_for_much_at_once_lets_the_others_have_their_turn() {
    let mut world = World::new(false);
    world.open('a', true);
    world.open('b', true);
    let mut many = Vec::new();
    encode::method(&mut many, 1, &ChannelOpen {});
    let mut few = many.clone();
    let qos = BasicQos {
        prefetch_size: 0,
        prefetch_count: 1,
        global: false,
    };
    for _ in 0..100 {
        encode::method(&mut many, 1, &qos);
    }
    encode::method(&mut few, 1, &qos);
    world.send('a', &many);
    let answered = world.clients[&'a'].seen.len();
    assert!((1..50).contains(&answered), "{answered} in one turn");
    world.send('b', &few);
    assert_eq!(world.clients[&'b'].seen.len(), 2);
    assert!(world.clients[&'a'].seen.len() < 100);
    for _ in 0..101 {
        assert!(world.next('a').starts_with("1 "));
    }
}
