//! The first start of a node that is to be one of several: it begins a cluster, or is let into one.
//!
//! All nodes of a configuration may do this at once. Each asks every other one to be let in, and answers the same question.
//! Only the one whose name is the first in sorted order begins a cluster, or the one that the configuration says, and only when
//! all others have said in one round that they are in none. Who says so gives up what it had asked before: an answer to that
//! could let it into an older cluster. Who the others are may have to be looked up, in every round: see [`Discovery`].

use super::admission::{Answer, Question, Welcome};
use super::discovery::{Discovery, Found};
use super::{ConfiguredNode, DEFAULT_PORT, host_of};
use crate::link::{Lane, LinkOptions, Links, Receiver, Reply};
use broker::groups::NodeId;
use broker::groups::membership::{ClusterFile, ClusterStore, Stage};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a round waits for answers. No answer takes longer.
const ROUND: Duration = Duration::from_secs(15);

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a node says that it waits.
const SAYS_EVERY: Duration = Duration::from_secs(10);

/// So many nodes that have asked are remembered. There are never so many that a look-up does not show.
const ASKED_MOST: usize = 64;

/// And for so long: who still waits to be let in asks in each round of its own.
const ASKED_FOR: Duration = Duration::from_secs(60);

/// What a node forms a cluster with.
pub struct Forming<'a> {
    /// The links that it would have, of no cluster.
    pub options: LinkOptions,
    pub store: &'a ClusterStore,
    /// Where other nodes dial it.
    pub port: u16,
    /// Who is to be in the cluster.
    pub discovery: &'a Discovery,
    /// It has queues or definitions of its own, so it can only begin a cluster.
    pub has_data: bool,
    /// False as soon as it is to give up.
    pub goes_on: &'a dyn Fn() -> bool,
}

/// What a round has come to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It begins a cluster.
    Begins,
    /// It is let in.
    Joins(Welcome),
    /// An operator has to do something.
    Ends(String),
    /// For another round; for which nodes, and what they wait for.
    Waits(String),
}

/// What others are answered meanwhile.
#[derive(Default)]
struct Doorway {
    state: Mutex<Said>,
    decided: Condvar,
}

#[derive(Default)]
struct Said {
    /// How often it said that it is in no cluster.
    alone: u64,
    /// It was let in, but had said so meanwhile. Until it knows more it says nothing: two nodes that ask each other
    /// whenever they ask to be let in would keep each other out for ever.
    is_expecting: bool,
    /// It has begun a cluster, or is let in: it does not say so any more.
    is_decided: bool,
    /// Who has asked to be let in, and when it did so last.
    asked: BTreeMap<String, Instant>,
}

impl Said {
    /// Who has not asked for long has another name by now, or is gone.
    fn forget_the_gone(&mut self, now: Instant) {
        self.asked
            .retain(|_, asked| now.saturating_duration_since(*asked) < ASKED_FOR);
    }
}

/// One time of asking all others.
struct Round<'a> {
    forming: &'a Forming<'a>,
    found: Found,
}

impl Receiver for Doorway {
    fn up(&self, _: NodeId, _: Lane, _: u64) {}

    fn frame(&self, _: NodeId, _: Lane, _: Bytes) {}

    fn down(&self, _: NodeId, _: Lane, _: bool) {}

    fn room(&self, _: NodeId, _: Lane) {}

    fn asked(&self, name: &str, _: Bytes, reply: Reply) {
        let mut said = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        said.forget_the_gone(Instant::now());
        if said.asked.len() < ASKED_MOST || said.asked.contains_key(name) {
            said.asked.insert(name.to_owned(), Instant::now());
        }
        let answer = match said.is_decided || said.is_expecting {
            true => Answer::NotNow,
            false => {
                said.alone += 1;
                Answer::Alone
            }
        };
        drop(said);
        reply.give(answer.encode());
    }
}

impl Doorway {
    fn alone(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).alone
    }

    /// Between two rounds: until something is decided, which nobody else does.
    fn pause(&self) {
        let said = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .decided
            .wait_timeout_while(said, PAUSE, |said| !said.is_decided);
        drop(waited);
    }

    /// It was not let in after all.
    fn expect_nothing(&self) {
        let mut said = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        said.is_expecting = false;
    }

    /// From now on nobody is told that this node is in no cluster. False if somebody was since that number.
    fn decide(&self, since: u64) -> bool {
        let mut said = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if since != said.alone {
            said.is_expecting = true;
            return false;
        }
        said.is_decided = true;
        self.decided.notify_all();
        true
    }

    /// The same for the node that begins the cluster; but not if somebody has asked whom the look-up does not show.
    ///
    /// # Errors
    /// Who that is.
    fn begin(&self, found: &Found) -> Result<(), String> {
        let mut said = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        said.forget_the_gone(Instant::now());
        let is_found = |name: &String| found.nodes.iter().any(|node| node.name == *name);
        if found.is_looked_up
            && let Some(other) = said.asked.keys().find(|name| !is_found(name))
        {
            return Err(other.clone());
        }
        said.is_decided = true;
        self.decided.notify_all();
        Ok(())
    }
}

/// Comes to a cluster: what the node knows of itself then is durable. Waits for others, for as long as that takes.
///
/// # Errors
/// The node can't be let in, or was told to give up; the text says what to do.
pub fn form(forming: &Forming<'_>, mut file: ClusterFile) -> Result<ClusterFile, String> {
    let doorway = Arc::new(Doorway::default());
    let receiver: Arc<dyn Receiver> = doorway.clone();
    let links = Links::new(&forming.options);
    let started = links.start(&forming.options, Arc::downgrade(&receiver));
    started.map_err(|error| format!("the links between nodes: {error}"))?;
    let (mut said, begun) = (None, Instant::now());
    let stopped = || "the node was told to stop before it came to a cluster".to_owned();
    loop {
        let since = doorway.alone();
        let found = forming.find().ok_or_else(stopped)?;
        let round = Round { forming, found };
        let answers = match forming.has_data && !round.begins() {
            // It must not be put on record.
            true => BTreeMap::new(),
            false => round.ask_all(&links, &file),
        };
        let outcome = match round.outcome(&answers) {
            Outcome::Begins => match doorway.begin(&round.found) {
                Ok(()) => Outcome::Begins,
                Err(other) => round.is_not_all(&other),
            },
            outcome => outcome,
        };
        match outcome {
            Outcome::Begins => {
                let found = forming.store.found(&mut file);
                found.map_err(|error| error.to_string())?;
                break;
            }
            Outcome::Joins(welcome) if doorway.decide(since) => {
                file.stage = Stage::Joins;
                file.cluster = welcome.cluster;
                file.node = welcome.node;
                file.peers = welcome.members;
                forming.store.write(&file).map_err(|error| error.to_string())?;
                break;
            }
            // It is asked again.
            Outcome::Joins(_) => {}
            Outcome::Ends(why) => return Err(why),
            Outcome::Waits(why) => {
                doorway.expect_nothing();
                if said.is_none_or(|at: Instant| at.elapsed() >= SAYS_EVERY) {
                    let seconds = begun.elapsed().as_secs();
                    tracing::info!(area = "cluster", "waiting for a cluster, for {seconds} s: {why}");
                    said = Some(Instant::now());
                }
            }
        }
        if !(forming.goes_on)() {
            return Err(stopped());
        }
        doorway.pause();
    }
    links.stop();
    Ok(file)
}

impl Forming<'_> {
    /// Who is to be in the cluster; `None` once the node is to give up. Name servers may take longer than that.
    fn find(&self) -> Option<Found> {
        if let Discovery::Known(found) = self.discovery {
            return Some(found.clone());
        }
        let (found, finds) = mpsc::channel();
        let discovery = self.discovery.clone();
        let looking = move || drop(found.send(discovery.find()));
        let nobody = |why: String| Found {
            lacks: Some(format!("nobody can be looked up: {why}")),
            is_looked_up: true,
            ..Found::default()
        };
        let thread = thread::Builder::new().name("discovery".to_owned());
        if let Err(error) = thread.spawn(looking) {
            return Some(nobody(error.to_string()));
        }
        while (self.goes_on)() {
            match finds.recv_timeout(PAUSE) {
                Ok(found) => return Some(found),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(nobody("the look-up ended unexpectedly".to_owned()));
                }
            }
        }
        None
    }
}

impl Round<'_> {
    /// Everybody else.
    fn others(&self) -> impl Iterator<Item = &ConfiguredNode> {
        let own = self.forming.options.name.as_str();
        self.found.nodes.iter().filter(move |node| node.name != own)
    }

    /// Whether this is the node that begins the cluster.
    fn begins(&self) -> bool {
        self.found.is_begun_by(&self.forming.options.name)
    }

    /// Asks all others, and waits until each has answered or can't.
    fn ask_all(&self, links: &Links, file: &ClusterFile) -> BTreeMap<String, Result<Answer, String>> {
        let (heard, hears) = mpsc::channel();
        let question = Question {
            port: self.forming.port,
            token: file.token,
            has_data: self.forming.has_data,
        };
        let mut open = 0;
        for node in self.others() {
            let (name, heard) = (node.name.clone(), heard.clone());
            let at = (host_of(&node.name), node.port.unwrap_or(DEFAULT_PORT));
            let told = move |answered: Result<Bytes, String>| {
                let answer = answered.and_then(|bytes| {
                    let unknown = || "its answer can't be read: it is of another version".to_owned();
                    Answer::decode(&bytes).ok_or_else(unknown)
                });
                // Nobody waits any more after a round.
                let _ = heard.send((name, answer));
            };
            links.ask(&node.name, at, question.encode(), told);
            open += 1;
        }
        drop(heard);
        let (until, mut answers) = (Instant::now() + ROUND, BTreeMap::new());
        while answers.len() < open && (self.forming.goes_on)() {
            match hears.recv_timeout(PAUSE) {
                Ok((name, answer)) => drop(answers.insert(name, answer)),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(_) => break,
            }
        }
        answers
    }

    /// What follows from the answers.
    fn outcome(&self, answers: &BTreeMap<String, Result<Answer, String>>) -> Outcome {
        // Who begins is known once all are.
        if self.forming.has_data && !self.begins() && self.found.lacks.is_none() {
            return Outcome::Ends(
                "the data directory has queues or definitions of its own, which a cluster would not know: reset this node to let it join, or \
                 take cluster_formation.* out of the configuration to run it alone"
                    .to_owned(),
            );
        }
        let mut waits: Vec<_> = self.found.lacks.iter().cloned().collect();
        let mut refused = None;
        for node in self.others() {
            let name = &node.name;
            match answers.get(name) {
                Some(Ok(Answer::Welcome(welcome))) => return Outcome::Joins(welcome.clone()),
                Some(Ok(Answer::Refused(why))) => refused = refused.or(Some(format!("{name} says: {why}"))),
                Some(Ok(Answer::Alone)) if self.begins() => {}
                Some(Ok(Answer::Alone)) => waits.push(format!("{name} is in no cluster yet")),
                Some(Ok(Answer::NotNow)) => waits.push(format!("{name} can't say yet")),
                Some(Err(why)) => waits.push(format!("{name}: {why}")),
                None => waits.push(format!("{name} does not answer")),
            }
        }
        match refused {
            Some(why) => Outcome::Ends(why),
            None if self.begins() && waits.is_empty() => Outcome::Begins,
            None if self.begins() => Outcome::Waits(format!(
                "this node begins the cluster as soon as all others have said that they are in none; start them, {} ({})",
                self.found.instead,
                waits.join("; ")
            )),
            None => Outcome::Waits(waits.join("; ")),
        }
    }

    /// Somebody has asked who is not among those that were found.
    fn is_not_all(&self, other: &str) -> Outcome {
        Outcome::Waits(format!(
            "{other} asks to be let in and is none of those that were found ({}), so there are more than that: nobody begins a cluster before \
             all are found, and cluster_formation.target_cluster_size_hint says how many they are",
            self.found.names().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Secret;

    fn store() -> (tempfile::TempDir, ClusterStore) {
        let dir = tempfile::tempdir().unwrap();
        let store = ClusterStore::of(&broker::Options::new(dir.path()));
        (dir, store)
    }

    fn nodes(names: &[&str]) -> Vec<ConfiguredNode> {
        let node = |name: &&str| ConfiguredNode {
            name: (*name).to_owned(),
            port: None,
        };
        names.iter().map(node).collect()
    }

    fn of(me: &str, names: &[&str], has_data: bool, answers: &[(&str, Result<Answer, String>)]) -> Outcome {
        let nodes = nodes(names);
        let found = Found {
            nodes,
            ..Found::default()
        };
        in_round(me, found, has_data, answers)
    }

    fn in_round(
        me: &str,
        found: Found,
        has_data: bool,
        answers: &[(&str, Result<Answer, String>)],
    ) -> Outcome {
        let (_dir, store) = store();
        let forming = Forming {
            options: LinkOptions::new(me, 1, Secret::new(b"s").unwrap()),
            store: &store,
            port: DEFAULT_PORT,
            discovery: &Discovery::Known(found.clone()),
            has_data,
            goes_on: &|| true,
        };
        let answers = answers
            .iter()
            .map(|(name, answer)| ((*name).to_owned(), answer.clone()));
        let round = Round {
            forming: &forming,
            found,
        };
        round.outcome(&answers.collect())
    }

    fn welcome() -> Answer {
        Answer::Welcome(Welcome {
            cluster: [1; 16],
            node: NodeId(4),
            members: Vec::new(),
        })
    }

    const ALL: [&str; 3] = ["n1@h", "n2@h", "n3@h"];

    #[test]
    fn only_the_first_begins_a_cluster_and_only_when_all_others_are_in_none() {
        let alone = || Ok(Answer::Alone);
        let all = [("n2@h", alone()), ("n3@h", alone())];
        assert_eq!(of("n1@h", &ALL, false, &all), Outcome::Begins);
        assert_eq!(of("n1@h", &ALL, true, &all), Outcome::Begins, "with what it has");
        for missing in [
            None,
            Some(Err("nobody answers".to_owned())),
            Some(Ok(Answer::NotNow)),
        ] {
            let heard = missing.map(|answer| ("n3@h", answer));
            let answers: Vec<_> = [("n2@h", alone())].into_iter().chain(heard).collect();
            assert!(matches!(of("n1@h", &ALL, false, &answers), Outcome::Waits(_)));
        }
        let others = [("n1@h", alone()), ("n3@h", alone())];
        assert!(matches!(of("n2@h", &ALL, false, &others), Outcome::Waits(_)));
        assert!(
            matches!(of("n0@h", &ALL, false, &[]), Outcome::Waits(_)),
            "it is not named"
        );
        assert_eq!(of("n9@h", &[], false, &[]), Outcome::Begins);
        assert_eq!(of("n9@h", &["n9@h"], false, &[]), Outcome::Begins);
    }

    #[test]
    fn a_first_node_whose_disk_was_wiped_does_not_begin_another_cluster() {
        let taken = Answer::Refused("another node of the cluster is called n1@h".to_owned());
        let answers = [("n2@h", Ok(taken)), ("n3@h", Ok(Answer::Alone))];
        assert!(matches!(of("n1@h", &ALL, false, &answers), Outcome::Ends(why) if why.contains("n2@h")));
    }

    #[test]
    fn a_node_with_data_of_its_own_may_only_begin_a_cluster() {
        let answers = [("n1@h", Ok(welcome()))];
        assert!(matches!(of("n2@h", &ALL, false, &answers), Outcome::Joins(_)));
        assert!(matches!(of("n2@h", &ALL, true, &answers), Outcome::Ends(why) if why.contains("reset")));
        assert!(matches!(of("n2@h", &ALL, true, &[]), Outcome::Ends(why) if why.contains("reset")));
        let refused = [("n2@h", Ok(Answer::Refused("it is of a cluster".to_owned())))];
        assert!(matches!(of("n1@h", &ALL, true, &refused), Outcome::Ends(why) if why.contains("n2@h says")));
    }

    #[test]
    fn who_has_said_that_it_is_alone_takes_no_earlier_answer_and_the_next_one_whoever_asks_meanwhile() {
        let doorway = Doorway::default();
        let ask = || doorway.asked("n1@h", Bytes::new(), Reply::new().0);
        let since = doorway.alone();
        ask();
        assert!(!doorway.decide(since));
        let since = doorway.alone();
        ask();
        assert!(doorway.decide(since));
        let doorway = Doorway::default();
        let ask = || doorway.asked("n1@h", Bytes::new(), Reply::new().0);
        ask();
        assert!(!doorway.decide(0));
        doorway.expect_nothing();
        ask();
        assert!(!doorway.decide(1), "it was not let in, and has said so again");
    }
    #[test]
    fn nobody_begins_while_a_look_up_shows_a_part_and_a_node_of_a_cluster_that_it_shows_lets_others_in() {
        let part = || Found {
            nodes: nodes(&ALL[..2]),
            lacks: Some("2 of 3 nodes are found".to_owned()),
            is_looked_up: true,
            ..Found::default()
        };
        let alone = [("n2@h", Ok(Answer::Alone))];
        let waits = |outcome, text: &str| matches!(outcome, Outcome::Waits(why) if why.contains(text));
        assert!(waits(in_round("n1@h", part(), false, &alone), "2 of 3 nodes"));
        let member = [("n2@h", Ok(welcome()))];
        assert!(matches!(
            in_round("n1@h", part(), false, &member),
            Outcome::Joins(_)
        ));
        // Whether it is the one that begins is not known yet.
        assert!(waits(in_round("n2@h", part(), true, &[]), "2 of 3 nodes"));
        let nobody = Found {
            lacks: Some("no such name".to_owned()),
            is_looked_up: true,
            ..Found::default()
        };
        assert!(waits(in_round("n1@h", nobody, false, &[]), "no such name"));
    }

    #[test]
    fn who_asks_and_is_not_found_keeps_a_cluster_from_being_begun_if_it_was_looked_up() {
        let doorway = Doorway::default();
        let ask = |name: &str| doorway.asked(name, Bytes::new(), Reply::new().0);
        let mut found = Found {
            nodes: nodes(&ALL),
            is_looked_up: true,
            ..Found::default()
        };
        ask("n2@h");
        ask("n4@h");
        assert_eq!(doorway.begin(&found), Err("n4@h".to_owned()));
        let later = Instant::now() + ASKED_FOR;
        doorway.state.lock().unwrap().forget_the_gone(later);
        assert_eq!(doorway.begin(&found), Ok(()), "it is gone");
        ask("n4@h");
        found.is_looked_up = false;
        assert_eq!(doorway.begin(&found), Ok(()));
    }

    #[test]
    fn the_node_that_the_configuration_says_begins() {
        let found = || Found {
            nodes: nodes(&["n-10@h", "n-9@h"]),
            founder: Some("n-9@h".to_owned()),
            ..Found::default()
        };
        let alone = |name| [(name, Ok(Answer::Alone))];
        assert_eq!(
            in_round("n-9@h", found(), false, &alone("n-10@h")),
            Outcome::Begins
        );
        let other = in_round("n-10@h", found(), false, &alone("n-9@h"));
        assert!(matches!(other, Outcome::Waits(_)));
    }
}
