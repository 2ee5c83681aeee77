//! Runs the stories in `tests/stories`: what is asked of a queue stands at the margin, what comes of it is indented. Those of its
//! message store (memory, disk, checkpoints) stand in `tests/stories/store`.
//!
//! ```text
//! queue [durable] [replicated] [auto-delete] [single-active] [max-length N] [max-length-bytes N]
//! [reject-publish|reject-publish-dlx]
//!     [quorum] [delayed all|failed|returned MS MS (at the least, at the most)] [ttl MS] [expires MS] [delivery-limit N] [retry
//! MS (doubling up to eight times that)] [dead-letters] [max-priority N] [deduplicates]     (first, once; on one line) publish
//! [persistent] COUNT [of BYTES bytes] [expiration MS] [keys A,B,...] [from NODE NUMBER] [confirm NAME]            (one block, as
//! one read from a socket brings it; NODE sends it and has numbered it) ended NODE     await NODES (none, or A,B,...)     holds
//! NODE WHO NUMBERS [returned N] [more]     down NODE     knows NODE     recall NODE FROM consume NAME [of NODE] [no-ack]
//! [exclusive] [prefetch N] [priority N] [window N]     cancel NAME     get [no-ack] ack WHO NUMBERS    reject WHO NUMBERS   
//! return WHO NUMBERS [unseen]    requeue WHO NUMBERS   (WHO is a consumer, or get) flow NAME BYTES    limit NAME PREFETCH   
//! pause NAME    resume NAME    purge    delete [if-unused] [if-empty]    limits ...    status    losses clock MS (and the host's
//! tick)     arrive (the oldest dead letters have reached their queues)     use memory BYTES    disk    checkpoint [N (of what
//! the log has before its entry N)]    compact SEGMENT disk fails [PIECES] (the next read finds nothing, or the next write fails)
//!     disk damages POSITIONS (of the next block that is read) disk errs (the next read fails for a reason that may pass) take
//! NUMBERS (an operator)      put back NUMBERS      remove NUMBERS look [FROM] [skip N] [count N]     tail N
//! restart [MS] (at that time; the host tells the queue its settings after it has replayed the journal)
//! crash MS (as restart, after a life that did not end in good order)
//! ```
//!
//! `UPDATE_STORIES=1 cargo test -p leveret-queue` writes what comes of it into the files, for review.

#![allow(clippy::disallowed_methods, reason = "stories are files")]

use crate::world::{Event, World, compact, expiring_block, keyed_block, shrink};
use model::{
    ConsumerId, DelayedRetry, Incarnation, Machine, Mutant, Ranges, RetryDelay, Returned, Timestamp,
};
use queue::fifo::{
    Answer, ConsumerSettings, DeadLetterTo, Delivery, DeliveryLimit, Disposal, DropReason, Glimpse, Held,
    Loss, NodeConsumer, Origin, Overflow, QueueSettings, Record, Request, Sorting, Standing,
};
use queue::store::{self, Bytes, LogPlace, Read, Source};
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// A story under way.
struct Story {
    world: World,
    settings: QueueSettings,
    names: Vec<String>,
}

#[test]
fn stories_end_as_they_are_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let folders = [folder.join("store"), folder];
    let mut files: Vec<_> = folders
        .into_iter()
        .flat_map(|it| std::fs::read_dir(it).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    assert!(files.len() >= 30, "only {} stories", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let told = std::fs::read_to_string(&file).unwrap();
        let happened = tell(&told);
        if std::env::var_os("UPDATE_STORIES").is_some() {
            std::fs::write(&file, &happened).unwrap();
        } else if told != happened {
            wrong.push(format!(
                "{}\n--- told\n{told}\n--- happened\n{happened}",
                file.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Whose node was in trouble lately is not believed to be there by the simulator of several nodes: that this one still is,
/// stories show.
#[test]
fn a_story_goes_otherwise_when_whoever_decides_next_forgets_who_is_active() {
    let story = "the_active_consumer_stays_active_whoever_decides_next";
    assert!(goes_otherwise(story, Mutant::ForgetsActive));
}

/// Hardly a seed of the simulator has a node say what it held before that came back, without having counted as down.
#[test]
fn a_story_goes_otherwise_when_claims_count_whose_messages_have_come_back() {
    let story = "an_old_claim_does_not_count_once_its_message_has_come_back";
    assert!(goes_otherwise(story, Mutant::BelievesOldClaims));
}

/// Few seeds have a consumer of a higher priority come while the active one holds something and is looked at.
#[test]
fn a_story_goes_otherwise_when_the_active_consumer_makes_room_at_once() {
    let story = "a_consumer_of_a_higher_priority_waits_until_the_active_one_holds_nothing";
    assert!(goes_otherwise(story, Mutant::YieldsAtOnce));
}

fn goes_otherwise(story: &str, mutant: Mutant) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let told = std::fs::read_to_string(folder.join(format!("{story}.txt"))).unwrap();
    Mutant::turn_on(Some(mutant));
    let happened = tell(&told);
    Mutant::turn_on(None);
    told != happened
}

/// The story with what really comes of each request.
fn tell(told: &str) -> String {
    let mut story = Story {
        world: World::new(QueueSettings::default()),
        settings: QueueSettings::default(),
        names: Vec::new(),
    };
    let mut happened = String::new();
    for line in told.lines() {
        if line.starts_with(' ') {
            continue;
        }
        happened.push_str(line);
        happened.push('\n');
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        for event in story.ask(&words) {
            writeln!(happened, "    {event}").unwrap();
        }
    }
    happened
}

impl Story {
    fn restart(&mut self, at: Option<Timestamp>, closed: bool) -> Vec<String> {
        let Some(at) = at else {
            self.world = World::restarted(self.settings.clone(), self.world.disk.clone());
            return vec![self.status()];
        };
        let unknown = QueueSettings {
            durable: true,
            replicated: self.settings.replicated,
            ..QueueSettings::default()
        };
        self.world = World::replayed(unknown, self.world.disk.clone(), closed);
        self.world.now = at;
        let settings = self.settings.clone();
        let events = self.world.handle(Request::Configure {
            settings: Box::new(settings),
        });
        let mut told = self.describe(events);
        told.push(self.status());
        told
    }

    fn ask(&mut self, words: &[&str]) -> Vec<String> {
        let requests = match words[0] {
            "queue" => {
                self.settings = settings(words);
                self.world = World::new(self.settings.clone());
                return Vec::new();
            }
            "restart" | "crash" => {
                let at = words.get(1).map(|at| Timestamp(at.parse().unwrap()));
                return self.restart(at, words[0] == "restart");
            }
            "clock" => {
                self.world.now = Timestamp(words[1].parse().unwrap());
                let events = self.world.handle(Request::Wake);
                return self.describe(events);
            }
            "arrive" => {
                let events = self.world.dead_letter_one().unwrap_or_default();
                return self.describe(events);
            }
            "status" => return vec![self.status()],
            "losses" => return vec![self.losses()],
            "look" => {
                let from = words.get(1).and_then(|from| from.parse().ok());
                return self.look(from, after(words, "skip").unwrap_or(0), after(words, "count"));
            }
            "tail" => {
                let from = self.world.fifo.back(None, words[1].parse().unwrap());
                return self.look(from, 0, None);
            }
            "disk" => return self.disk(words.get(1).copied(), words.get(2).map(|some| spans(some))),
            _ => self.request(words),
        };
        let mut events = self.world.handle(requests);
        if let [Event::Answered(_, Answer::MayRetire(_))] = events[..] {
            events.extend(self.world.handle(Request::Retire));
        }
        self.describe(events)
    }

    fn request(&mut self, words: &[&str]) -> Request<crate::world::Plain> {
        let who = words.get(1).copied().unwrap_or("");
        let reply = 0;
        match words[0] {
            "publish" => self.publish(words),
            "consume" | "cancel" | "flow" | "limit" | "pause" | "resume" => self.of_consumer(words, who),
            "ack" | "reject" | "return" | "requeue" => self.settled(words, who),
            "get" => Request::Get {
                no_ack: words.contains(&"no-ack"),
                reply,
            },
            "use" => Request::Use { reply: None },
            "take" => Request::TakeOut {
                seqs: spans(who),
                reply,
            },
            "put" => Request::PutBack {
                seqs: spans(words[2]),
            },
            "remove" => Request::Remove { seqs: spans(who) },
            "await" => Request::AwaitNodes {
                nodes: who
                    .split(',')
                    .filter_map(|node| node.parse().ok())
                    .map(Incarnation)
                    .collect(),
            },
            "holds" => Request::Holds {
                node: Incarnation(who.parse().unwrap()),
                held: match words.get(3) {
                    Some(seqs) => vec![Held {
                        consumer: self.holder(words[2]),
                        seqs: spans(seqs),
                        returns: after(words, "returned").unwrap_or(0) as u32,
                    }],
                    None => Vec::new(),
                },
                more: words.contains(&"more"),
                reply,
            },
            "recall" => Request::Recall {
                sender: Incarnation(who.parse().unwrap()),
                from: words[2].parse().unwrap(),
                reply,
            },
            "down" => Request::CountAsDown {
                node: Incarnation(who.parse().unwrap()),
            },
            "knows" => Request::Knows {
                node: Incarnation(who.parse().unwrap()),
            },
            "ended" => Request::IncarnationEnded {
                incarnation: Incarnation(who.parse().unwrap()),
            },
            "purge" => Request::Purge { reply },
            "delete" => Request::MayRetire {
                if_unused: words.contains(&"if-unused"),
                if_empty: words.contains(&"if-empty"),
                reply,
            },
            "limits" => Request::Configure {
                settings: Box::new(settings(words)),
            },
            "memory" => shrink(who.parse().unwrap()),
            "checkpoint" => Request::Store(store::Request::Checkpoint {
                before: who.parse().map_or(self.world.disk.log_end(), LogPlace),
            }),
            "compact" => compact(who.parse().unwrap()),
            other => panic!("a story asks for {other:?}"),
        }
    }

    fn of_consumer(&mut self, words: &[&str], who: &str) -> Request<crate::world::Plain> {
        let (consumer, reply) = (self.consumer(who), 0);
        match words[0] {
            "consume" => {
                let settings = ConsumerSettings {
                    paused: false,
                    no_ack: words.contains(&"no-ack"),
                    exclusive: words.contains(&"exclusive"),
                    prefetch: after(words, "prefetch").unwrap_or(0) as u32,
                    priority: after(words, "priority").unwrap_or(0) as i64,
                    window: after(words, "window").unwrap_or(1_000_000) as u32,
                };
                let of = after(words, "of").map(|node| NodeConsumer {
                    node: Incarnation(node),
                    consumer,
                });
                let outlet = ();
                match of.map(Box::new) {
                    None => Request::Consume {
                        consumer,
                        outlet,
                        settings,
                        reply,
                    },
                    Some(of) => Request::ConsumeFrom {
                        of,
                        consumer,
                        outlet,
                        settings,
                        reply,
                    },
                }
            }
            "cancel" => Request::Cancel {
                consumer,
                reply: Some(reply),
            },
            "flow" => Request::Flow {
                consumer,
                bytes: words[2].parse().unwrap(),
            },
            "limit" => Request::Limit {
                consumer,
                prefetch: words[2].parse().unwrap(),
            },
            "pause" => Request::Pause {
                consumer,
                reply: None,
            },
            _ => Request::Resume { consumer },
        }
    }

    fn settled(&mut self, words: &[&str], who: &str) -> Request<crate::world::Plain> {
        let (consumer, seqs) = (self.holder(who), spans(words[2]));
        let disposal = match words[0] {
            "ack" => Disposal::Accepted,
            "reject" => Disposal::Rejected,
            "requeue" => return Request::Requeue { consumer, seqs },
            _ => {
                let failed = !words.contains(&"unseen");
                return Request::Return {
                    consumer,
                    seqs,
                    failed,
                };
            }
        };
        Request::Settle {
            consumer,
            seqs,
            disposal,
        }
    }

    fn publish(&mut self, words: &[&str]) -> Request<crate::world::Plain> {
        let persistent = words[1] == "persistent";
        let count = words[1 + usize::from(persistent)].parse().unwrap();
        let size = after(words, "of").unwrap_or(10) as usize;
        let receipt = words.iter().position(|word| *word == "confirm").map(|at| {
            self.names.push(words[at + 1].to_string());
            (self.names.len() - 1) as u32
        });
        let from = words.iter().position(|word| *word == "from");
        let origin = from.map(|at| Origin {
            sender: Incarnation(words[at + 1].parse().unwrap()),
            first: words[at + 2].parse().unwrap(),
        });
        let known = origin.map_or(0, |origin| self.known_of(origin));
        let first = self.world.fifo.status().next_seq;
        let first = first.saturating_sub(known.min(count as u64)).max(1);
        let sizes = vec![size; count];
        let keys = words.iter().position(|word| *word == "keys");
        let block = match keys.map(|at| words[at + 1].split(',').collect::<Vec<_>>()) {
            Some(keys) => keyed_block(first, &sizes, persistent, &keys),
            None => expiring_block(first, &sizes, persistent, after(words, "expiration")),
        };
        match origin.map(Box::new) {
            None => Request::Enqueue { block, receipt },
            Some(origin) => Request::EnqueueFrom {
                origin,
                block,
                receipt,
            },
        }
    }

    /// How many messages from there on the queue has heard of.
    fn known_of(&self, origin: Origin) -> u64 {
        let senders = self.world.fifo.checkpoint(0).senders;
        let known = senders.iter().find(|mark| mark.sender == origin.sender);
        known.map_or(0, |mark| mark.below.saturating_sub(origin.first))
    }

    fn consumer(&mut self, name: &str) -> ConsumerId {
        let at = self
            .names
            .iter()
            .position(|known| known == name)
            .unwrap_or_else(|| {
                self.names.push(name.to_string());
                self.names.len() - 1
            });
        ConsumerId(at as u64)
    }

    fn holder(&mut self, name: &str) -> Option<ConsumerId> {
        (name != "get").then(|| self.consumer(name))
    }

    /// The disk answers all that was asked of it; or one answer is not what was hoped for.
    fn disk(&mut self, how: Option<&str>, some: Option<Ranges>) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let events = match how {
                None => self.world.load_one().or_else(|| self.world.store_one(|_| false)),
                Some(how) => self.answer_badly(how, some.clone()),
            };
            let Some(events) = events else { return lines };
            lines.extend(self.describe(events));
            if how.is_some() {
                return lines;
            }
        }
    }

    fn answer_badly(&mut self, how: &str, some: Option<Ranges>) -> Option<Vec<Event>> {
        let Some((first, source)) = self.world.loads.pop_front() else {
            let fails = |at: usize| some.as_ref().is_none_or(|bad| bad.contains(at as u64 + 1));
            return self.world.store_one(fails);
        };
        let read = match how {
            "fails" => Read::Damaged,
            "errs" => Read::Failed,
            "damages" => Read::Found {
                block: self.world.read(source).unwrap(),
                damaged: some.unwrap(),
            },
            other => panic!("a disk that {other}"),
        };
        Some(self.world.answer_load(first, read))
    }

    fn look(&self, from: Option<u64>, skip: u64, count: Option<u64>) -> Vec<String> {
        let glance = self.world.fifo.look(from, skip, count.unwrap_or(u64::MAX));
        let line = |span: &Glimpse| {
            let standing = match span.standing {
                Standing::Ready => "ready",
                Standing::Held => "unacked",
                Standing::Waiting => "waits for its next try",
                Standing::Leaving => "on its way to the dead letters",
            };
            let again = if span.redelivered {
                ", delivered before"
            } else {
                ""
            };
            let place = match &span.bytes {
                Some(Bytes::Memory(_)) => "",
                Some(Bytes::Source(_)) => ", on disk",
                None => ", unreadable",
            };
            format!("{}: {standing}{again}{place}", show(span.first, span.last))
        };
        let mut lines: Vec<String> = glance.spans.iter().map(line).collect();
        lines.extend(glance.next.map(|next| format!("more from {next}")));
        lines
    }

    fn losses(&self) -> String {
        let losses = self.world.fifo.losses();
        let each = Loss::ALL.into_iter().zip(losses.numbers());
        let told: Vec<String> = each
            .filter(|(_, count)| *count > 0)
            .map(|(loss, count)| format!("{loss:?} {count}"))
            .collect();
        assert_eq!(losses.sum(), losses.numbers().iter().sum::<u64>());
        format!("lost: {}", told.join(", "))
    }

    fn status(&self) -> String {
        let status = self.world.fifo.status();
        let mut line = format!(
            "ready {}, unacked {}, consumers {}",
            status.ready, status.unacked, status.consumers
        );
        if status.paged > 0 {
            write!(line, ", paged out {}", status.paged).unwrap();
        }
        line
    }

    fn describe(&self, events: Vec<Event>) -> Vec<String> {
        let name = |id: ConsumerId| self.names[id.0 as usize].as_str();
        let durably = |once: bool| if once { " once durable" } else { "" };
        let line = |event: Event| match event {
            Event::Recorded(record) => format!("journal: {}", recorded(&record, &self.names)),
            Event::Delivered(id, delivery) => format!("{} gets {}", name(id), delivered(&delivery)),
            Event::Confirmed {
                receipt,
                once_durable,
            } => {
                format!(
                    "confirm {}{}",
                    self.names[receipt as usize],
                    durably(once_durable)
                )
            }
            Event::Rejected {
                receipt,
                once_durable,
            } => format!("refuse {}{}", self.names[receipt as usize], durably(once_durable)),
            Event::Expected { sender, number } => format!("node {sender} is to go on with {number}"),
            Event::DeadLettered(reason, seqs) => {
                let seqs: Ranges = seqs.into_iter().collect();
                format!("dead letters {}: {}", list(&seqs), why(reason))
            }
            Event::Answered(_, answer) => format!("answer: {}", answered(&answer)),
            Event::Cancelled(id) => format!("{} is told that the queue is gone", name(id)),
            Event::Load(first, Source::Log(place)) => {
                format!("disk: read {first} from the log at {}", place.0)
            }
            Event::Load(first, Source::Segment(place)) => {
                format!("disk: read {first} from segment {}", place.segment)
            }
            Event::Store(pieces, durable) => {
                let spans = pieces
                    .iter()
                    .map(|(first, count)| show(*first, first + u64::from(*count) - 1));
                let durable = if durable { " and sync" } else { "" };
                format!("disk: write {}{durable}", spans.collect::<Vec<_>>().join(" and "))
            }
            Event::Released { places, once_durable } => {
                format!(
                    "disk: release {}{}",
                    counted(places.len(), "entry", "entries"),
                    durably(once_durable)
                )
            }
            Event::Remembered(store::Record::Moved { pieces }) => {
                let spans = pieces
                    .iter()
                    .map(|piece| show(piece.first, piece.first + u64::from(piece.count) - 1));
                let spans = spans.collect::<Vec<_>>().join(" and ");
                format!("log: {spans} moved to a segment")
            }
            Event::Checkpoint(checkpoint, before) => {
                let rows: usize = checkpoint.lanes.iter().map(|(_, table)| table.rows.len()).sum();
                let rows = counted(rows, "piece", "pieces");
                format!("log: checkpoint with {rows}, begins at {} now", before.0)
            }
            Event::Unreadable(seqs) => format!("disk: {} cannot be read", list(&seqs)),
            Event::Unused => "the queue is unused".to_string(),
        };
        events.into_iter().map(line).collect()
    }
}

fn delivered(delivery: &Delivery) -> String {
    let numbers: Ranges = crate::world::numbers(delivery).into_iter().collect();
    format!(
        "{}{}",
        list(&numbers),
        match (delivery.redelivered, delivery.returns, delivery.failures) {
            (false, ..) => String::new(),
            (true, 0, _) => " again".into(),
            (true, times, None) => format!(" again, returned {times}"),
            (true, times, Some(failures)) => format!(" again, returned {times}, failed {failures}"),
        }
    )
}

fn recorded(record: &Record, names: &[String]) -> String {
    match record {
        Record::Enqueued {
            first,
            block,
            from,
            sent,
            ..
        } => {
            let sent = sent.as_deref();
            format!(
                "{} enqueued{}",
                show(*first, first + block.len() as u64 - u64::from(*from) - 1),
                sent.map_or(String::new(), |sent| format!(
                    ", {} of node {}",
                    list(&sent.numbers),
                    sent.by.0
                ))
            )
        }
        Record::Declined { sent, refused } => {
            let how = if *refused { "refused" } else { "there already" };
            format!("{} of node {} {how}", list(&sent.numbers), sent.by.0)
        }
        Record::HandedOut { below } => format!("all below {below} may be handed out"),
        Record::Barred { node, barred: true } => format!("node {} counts as down", node.0),
        Record::Barred { node, .. } => format!("node {} counts as down no more", node.0),
        Record::MayHold { nodes: None } => "any node may hold messages".to_string(),
        Record::MayHold { nodes: Some(nodes) } if nodes.is_empty() => "no node holds messages".to_string(),
        Record::MayHold { nodes: Some(nodes) } => {
            let nodes: Vec<String> = nodes.iter().map(|node| node.0.to_string()).collect();
            format!("nodes {} may hold messages", nodes.join(", "))
        }
        Record::Activated { consumer } => {
            let name = &names[consumer.consumer.0 as usize];
            format!("{name} of node {} is the active one", consumer.node.0)
        }
        Record::IncarnationEnded { incarnation } => format!("node {} sends nothing more", incarnation.0),
        Record::Settled { seqs } if seqs.is_empty() => "nothing new".to_string(),
        Record::Settled { seqs } => format!("{} settled", list(seqs)),
        Record::Returned { seqs, given_back } => format!("{} {}", list(seqs), came_back(*given_back)),
        Record::GivenBack { seqs } => format!("{} were given back", list(seqs)),
        Record::Retried { until, given_back } => {
            let how = came_back(*given_back);
            let each = until
                .iter()
                .map(|it| format!("{} {how} until {} ms", show(it.first, it.last), it.at_ms));
            each.collect::<Vec<_>>().join(", ")
        }
        Record::Dropped { seqs, reason } => {
            format!("{} dropped, {}", list(seqs), why(*reason))
        }
    }
}

fn came_back(given_back: bool) -> &'static str {
    match given_back {
        true => "given back",
        false => "returned",
    }
}

fn why(reason: DropReason) -> &'static str {
    match reason {
        DropReason::MaxLength => "too many",
        DropReason::Rejected => "rejected",
        DropReason::Expired => "expired",
        DropReason::DeliveryLimit => "tried too often",
        DropReason::Purged => "purged",
        DropReason::Unreadable => "unreadable",
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Consuming => "consuming".to_string(),
        Answer::InExclusiveUse => "refused, in exclusive use".to_string(),
        Answer::Cancelled => "cancelled".to_string(),
        Answer::Paused => "paused".to_string(),
        Answer::Stands { ready, consumers } => format!("{ready} ready, {consumers} consumers"),
        Answer::Got { delivery, remaining } => format!("message {}, {remaining} left", delivered(delivery)),
        Answer::Empty => "empty".to_string(),
        Answer::Taken(seqs) if seqs.is_empty() => "nothing taken".to_string(),
        Answer::Taken(seqs) => format!("{} taken", list(seqs)),
        Answer::Recalled { below, refused } if refused.is_empty() => {
            format!("known below {below}, nothing refused")
        }
        Answer::Recalled { below, refused } => format!("known below {below}, {} refused", list(refused)),
        Answer::Discard(seqs) if seqs.is_empty() => "all of it counts".to_string(),
        Answer::Discard(seqs) => format!("{} do not count", list(seqs)),
        Answer::Number(number) => format!("{number:?}"),
        Answer::Purged(count) => format!("{count} purged"),
        Answer::MayRetire(count) => format!("deleted with {count} ready"),
        Answer::InUse => "refused, there are consumers".to_string(),
        Answer::NotEmpty => "refused, there are messages".to_string(),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn show(first: u64, last: u64) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

fn list(seqs: &Ranges) -> String {
    seqs.spans()
        .map(|(first, last)| show(first, last))
        .collect::<Vec<_>>()
        .join(",")
}

fn spans(text: &str) -> Ranges {
    let mut ranges = Ranges::new();
    for span in text.split(',').filter(|span| *span != "none") {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        ranges.push_span(first.parse().unwrap(), last.parse().unwrap());
    }
    ranges
}

fn after(words: &[&str], word: &str) -> Option<u64> {
    let at = words.iter().position(|known| *known == word)?;
    words.get(at + 1)?.parse().ok()
}

fn settings(words: &[&str]) -> QueueSettings {
    QueueSettings {
        durable: words.contains(&"durable"),
        replicated: words.contains(&"replicated"),
        auto_delete: words.contains(&"auto-delete"),
        keeps_transient: words.contains(&"quorum"),
        single_active: words.contains(&"single-active"),
        active_by_priority: words.contains(&"quorum"),
        counts_failures: words.contains(&"quorum"),
        delayed_retry: words
            .iter()
            .position(|it| *it == "delayed")
            .map(|at| DelayedRetry {
                of: match words[at + 1] {
                    "all" => Returned::All,
                    "failed" => Returned::Failed,
                    _ => Returned::GivenBack,
                },
                least_ms: words[at + 2].parse().unwrap(),
                most_ms: words[at + 3].parse().unwrap(),
            }),
        max_length: after(words, "max-length"),
        max_length_bytes: after(words, "max-length-bytes"),
        overflow: if words.contains(&"reject-publish") {
            Overflow::Reject
        } else if words.contains(&"reject-publish-dlx") {
            Overflow::RejectAndDeadLetter
        } else {
            Overflow::DropHead
        },
        delivery_limit: after(words, "delivery-limit").map(|limit| DeliveryLimit::Returns(limit as u32)),
        deduplicates: words.contains(&"deduplicates"),
        sorting: match after(words, "max-priority") {
            Some(highest) => Sorting::Priority(highest as u8),
            None if words.contains(&"levels") => Sorting::Levels,
            None => Sorting::Arrival,
        },
        retry_delay: after(words, "retry").map(|initial_ms| RetryDelay {
            initial_ms,
            factor: 2000,
            cap_ms: 8 * initial_ms,
            jitter: 0,
        }),
        message_ttl_ms: after(words, "ttl"),
        expires_ms: after(words, "expires"),
        dead_letter: words.contains(&"dead-letters").then(|| {
            Arc::new(DeadLetterTo {
                exchange: String::new(),
                routing_key: None,
                at_least_once: false,
            })
        }),
        ..QueueSettings::default()
    }
}
