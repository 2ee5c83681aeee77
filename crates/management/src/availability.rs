//! Why a quorum queue is unavailable, who would have to come back, and what is lost if it goes on with one node's copy alone; and
//! that this is done. One judgement: what it says is what the force refuses by.

use crate::access::Right;
use crate::call::Call;
use crate::others::{self, Question};
use crate::queues::find;
use crate::quorum::{CLASSIC, named, unavailable};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use crate::text::encode;
use broker::{QueueKind, QueueView};
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/availability/queues/:vhost/:name",
        verbs: &[("GET", Right::Vhost, explain)],
    },
    Route {
        path: "/queues/quorum/:vhost/:name/replicas/force-shrink",
        verbs: &[("POST", Right::Administrator, force)],
    },
];

/// A node's copy, as it tells of it itself.
#[derive(Clone, Debug, PartialEq)]
struct MemberCopy {
    node: String,
    leads: bool,
    /// Of whom it hears that it leads.
    leader: Option<String>,
    votes: bool,
    /// The last entry of its log.
    last_term: u64,
    last_index: u64,
    /// Up to here it knows that the majority has it.
    committed: u64,
    /// Who votes, as far as it knows.
    voters: Vec<String>,
}

impl MemberCopy {
    fn told(&self) -> Value {
        json!({
            "node": self.node,
            "leads": self.leads,
            "leader": self.leader,
            "votes": self.votes,
            "last_term": self.last_term,
            "last_index": self.last_index,
            "committed": self.committed,
            "voters": self.voters,
        })
    }

    fn of(told: &Value) -> Option<Self> {
        let voters = told["voters"].as_array()?.iter();
        Some(Self {
            node: told["node"].as_str()?.to_owned(),
            leads: told["leads"].as_bool()?,
            leader: told["leader"].as_str().map(str::to_owned),
            votes: told["votes"].as_bool()?,
            last_term: told["last_term"].as_u64()?,
            last_index: told["last_index"].as_u64()?,
            committed: told["committed"].as_u64()?,
            voters: voters
                .map(|it| it.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
        })
    }

    /// Whoever has more by this has everything that the other one has of what was confirmed.
    fn has(&self) -> (u64, u64) {
        (self.last_term, self.last_index)
    }
}

/// What stands in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Available,
    /// A majority can be reached, and elects a leader.
    Elects,
    NoMajority,
}

/// How a queue stands by what its nodes tell.
#[derive(Debug)]
struct Standing {
    copies: Vec<MemberCopy>,
    voters: Vec<String>,
    /// Nodes that answer and have no copy that takes part.
    without_copy: Vec<String>,
}

impl Standing {
    fn of(copies: Vec<MemberCopy>, members: Vec<String>, answering: &[String]) -> Self {
        let voting = copies.iter().filter(|copy| copy.votes);
        let voters = voting
            .max_by_key(|copy| copy.has())
            .map_or_else(|| members, |copy| copy.voters.clone());
        let has_copy = |node: &&String| !copies.iter().any(|copy| copy.node == **node);
        let without_copy = answering.iter().filter(has_copy).cloned().collect();
        Self {
            copies,
            voters,
            without_copy,
        }
    }

    /// Who leads, by itself or by what its followers hear: its own node may be too busy to answer.
    fn leader(&self) -> Option<&str> {
        let leads = self.copies.iter().find(|copy| copy.leads);
        let heard = || self.copies.iter().find_map(|copy| copy.leader.as_deref());
        leads.map(|copy| copy.node.as_str()).or_else(heard)
    }

    fn needed(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Those that vote, by whether their copies can be reached.
    fn voters(&self, are_reached: bool) -> Vec<&str> {
        let reached = |node: &&String| self.copies.iter().any(|copy| copy.votes && copy.node == **node);
        let voters = self.voters.iter().filter(|node| reached(node) == are_reached);
        voters.map(String::as_str).collect()
    }

    fn state(&self) -> State {
        match self.leader() {
            Some(_) => State::Available,
            None if self.voters(true).len() >= self.needed() => State::Elects,
            None => State::NoMajority,
        }
    }

    /// The copy that has most, of those that vote.
    fn best(&self) -> Option<&MemberCopy> {
        let voting = self.copies.iter().filter(|copy| copy.votes);
        voting.max_by_key(|copy| (copy.has(), copy.committed))
    }

    /// What is lost if this copy goes on alone, in a sentence.
    fn loses(&self, copy: &MemberCopy) -> String {
        let ends = format!("behind entry {} of term {}", copy.last_index, copy.last_term);
        let more = self.copies.iter().find(|it| it.votes && it.has() > copy.has());
        let missing = self.voters(false);
        match more {
            Some(more) => format!(
                "Lost is what {} has {ends}, up to entry {} of term {}, and whatever others confirmed beyond that.",
                more.node, more.last_index, more.last_term
            ),
            None if missing.len() < self.needed() => format!(
                "Nothing is lost that was confirmed: {} not reached, and that is no majority.",
                are(&missing)
            ),
            None => format!(
                "Lost is whatever was confirmed {ends}: {} not reached, and may have been a majority without {}. How much that is \
                 nobody can tell who is reached.",
                are(&missing),
                copy.node
            ),
        }
    }

    /// What is kept that nobody knows to be confirmed.
    fn keeps(copy: &MemberCopy) -> Option<String> {
        let first = copy.committed + 1;
        (copy.last_index >= first).then(|| {
            format!(
                "Entries {first} to {} of {} may have been confirmed, and are kept: a message whose publisher was told nothing may be \
                 there, too.",
                copy.last_index, copy.node
            )
        })
    }

    /// Why the node's copy is not to go on alone; `None` if it may.
    fn refuses(&self, node: &str, is_forced: bool) -> Option<String> {
        let Some(copy) = self.copies.iter().find(|copy| copy.node == node) else {
            return Some(match self.without_copy.iter().any(|it| it == node) {
                true => format!("{node} has no copy of the queue, or a damaged one"),
                false => format!("{node} cannot be reached"),
            });
        };
        // Whoever else is to have it may have everything, and is not asked.
        if !copy.votes && copy.has() == (0, 0) {
            return Some(format!("the copy of {node} has nothing of the queue yet"));
        }
        let more = self.copies.iter().find(|it| it.votes && it.has() > copy.has());
        match (self.state(), more) {
            _ if is_forced => None,
            (State::Available, _) => Some(format!(
                "the queue has a leader, {}, and loses nothing as it is: use delete_member or shrink",
                self.leader().unwrap_or_default()
            )),
            (State::Elects, _) => {
                Some("a majority of the queue's members can be reached, and elects a leader".into())
            }
            (State::NoMajority, Some(more)) => Some(format!(
                "{} has more than {node}: its log goes up to entry {} of term {}, that of {node} up to entry {} of term {}. Have {} go on",
                more.node, more.last_index, more.last_term, copy.last_index, copy.last_term, more.node
            )),
            (State::NoMajority, None) if !copy.votes => Some(format!(
                "the copy of {node} does not vote yet: it may lack anything"
            )),
            (State::NoMajority, None) => None,
        }
    }

    /// All of that for whoever asks, a sentence each.
    fn says(&self, queue: &QueueView) -> Vec<String> {
        let (reached, missing) = (self.voters(true), self.voters(false));
        let counted = format!(
            "of {} members that vote {} must be reached, and {} reached{}",
            self.voters.len(),
            self.needed(),
            are_counted(reached.len()),
            named_in(": ", &reached)
        );
        let mut says = Vec::new();
        match self.state() {
            State::Available => says.push(format!(
                "It is available: {} leads; {counted}.",
                self.leader().unwrap_or_default()
            )),
            State::Elects => says.push(format!("It has no leader, and elects one: {counted}.")),
            State::NoMajority => says.push(format!("It is unavailable: {counted}.")),
        }
        if !missing.is_empty() {
            let told = missing
                .iter()
                .map(|node| match self.without_copy.iter().any(|it| it == node) {
                    true => format!("{node} (runs, and has no copy that takes part)"),
                    false => format!("{node} (its node does not answer)"),
                });
            says.push(format!("Not reached: {}.", told.collect::<Vec<_>>().join(", ")));
        }
        if self.state() != State::NoMajority {
            return says;
        }
        let lacking = self.needed() - reached.len();
        says.push(format!(
            "It goes on by itself, and loses nothing, when {lacking} of these {} back with what {} had: {}.",
            if lacking == 1 { "comes" } else { "come" },
            if lacking == 1 { "it" } else { "they" },
            missing.join(", ")
        ));
        let Some(best) = self.best() else {
            says.push("No copy is reached: there is nothing that it could go on with.".into());
            return says;
        };
        says.push(format!(
            "If they are lost for good, it can go on with the copy of {}, the one of those reached that has most (entries up to {} of \
             term {}, up to {} known to be confirmed): rabbitmq-queues force_shrink_member_to_current_member --vhost '{}' '{}' --node {}",
            best.node, best.last_index, best.last_term, best.committed, queue.vhost, queue.name, best.node
        ));
        says.push(self.loses(best));
        says.extend(Self::keeps(best));
        says
    }
}

fn are(nodes: &[&str]) -> String {
    let verb = if nodes.len() == 1 { "is" } else { "are" };
    match nodes {
        [] => "nobody is".into(),
        _ => format!("{} {verb}", nodes.join(", ")),
    }
}

fn are_counted(count: usize) -> String {
    match count {
        1 => "1 is".into(),
        count => format!("{count} are"),
    }
}

fn named_in(before: &str, nodes: &[&str]) -> String {
    match nodes {
        [] => String::new(),
        _ => format!("{before}{}", nodes.join(", ")),
    }
}

/// This node's copy.
fn own(call: &Call<'_>, queue: &QueueView) -> Option<MemberCopy> {
    let standing = call.api.broker.shared_standing(queue)?;
    let own = standing.own?;
    let voters = standing.voters.iter();
    Some(MemberCopy {
        node: call.api.options.node.clone(),
        leads: own.leads,
        leader: standing.leader.map(|node| call.view.node_name(node).to_owned()),
        votes: own.votes,
        last_term: own.last_term,
        last_index: own.last,
        committed: own.committed,
        voters: voters
            .map(|(node, _)| call.view.node_name(*node).to_owned())
            .collect(),
    })
}

fn standing(call: &Call<'_>, queue: &QueueView) -> Standing {
    let path = format!(
        "/api/leveret/availability/queues/{}/{}",
        encode(queue.vhost.as_bytes()),
        encode(queue.name.as_bytes())
    );
    let told = others::ask_all(call, &Question::get(path));
    let mut answering = vec![call.api.options.node.clone()];
    let mut copies: Vec<MemberCopy> = own(call, queue).into_iter().collect();
    for (node, told) in told {
        answering.push(node);
        copies.extend(MemberCopy::of(&told));
    }
    let members = queue.members().map(|it| call.view.node_name(it.node).to_owned());
    Standing::of(copies, members.collect(), &answering)
}

/// Whether it needs a majority of several: a quorum queue, or a classic one that is mirrored.
fn has_members(queue: &QueueView) -> bool {
    queue.kind == QueueKind::Quorum || queue.is_mirrorable() && queue.is_shared()
}

fn explain(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    if !has_members(queue) {
        return Ok(unavailable(CLASSIC));
    }
    if call.for_node {
        return Ok(Reply::json(
            &own(call, queue).as_ref().map_or(Value::Null, MemberCopy::told),
        ));
    }
    if !queue.is_shared() {
        return Ok(alone(call, queue));
    }
    let standing = standing(call, queue);
    let state = match standing.state() {
        State::Available => "available",
        State::Elects => "no_leader",
        State::NoMajority => "no_majority",
    };
    let recovery = standing.best().filter(|_| standing.state() == State::NoMajority);
    let recovery = recovery.map(|best| {
        json!({
            "node": best.node,
            "last_index": best.last_index,
            "last_term": best.last_term,
            "committed": best.committed,
            "loses": standing.loses(best),
            "keeps": Standing::keeps(best),
        })
    });
    Ok(Reply::json(&json!({
        "state": state,
        "leader": standing.leader(),
        "voters": standing.voters,
        "needed": standing.needed(),
        "reached": standing.voters(true),
        "not_reached": standing.voters(false),
        "copies": standing.copies.iter().map(MemberCopy::told).collect::<Vec<_>>(),
        "recovery": recovery,
        "says": standing.says(queue),
    })))
}

/// A queue that one node has, whose disk is the majority.
fn alone(call: &Call<'_>, queue: &QueueView) -> Reply {
    let (home, handle) = (
        call.view.node_name(queue.home),
        call.api.broker.queues().get(queue.id),
    );
    let is_there = handle.is_some_and(|handle| !handle.is_without_owner());
    let says = match is_there {
        true => format!("It is available: {home} has it alone, and can be reached."),
        false => format!(
            "It is unavailable: {home} has it alone, and does not answer. It goes on when that comes back with what it had; if its disk is \
             lost, so is what the queue had: delete it."
        ),
    };
    let nodes = |wanted: bool| {
        if is_there == wanted {
            vec![home]
        } else {
            Vec::new()
        }
    };
    Reply::json(&json!({
        "state": if is_there { "available" } else { "no_majority" },
        "leader": is_there.then_some(home),
        "voters": [home],
        "needed": 1,
        "reached": nodes(true),
        "not_reached": nodes(false),
        "copies": [],
        "recovery": null,
        "says": [says],
    }))
}

/// The queue goes on with the copy of the node that the body names, or of this one, alone. `force` in it overrules everything
/// but that there is no copy.
fn force(call: &Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    let body = call.json()?;
    let node = match body.contains_key("node") {
        true => named(call)?,
        false => call.api.broker.own_node(),
    };
    let is_forced = body.get("force").and_then(Value::as_bool).unwrap_or(false);
    if !has_members(queue) {
        return Ok(unavailable(CLASSIC));
    }
    if !queue.is_shared() {
        return Ok(unavailable(
            "one node alone has the queue: it has no other members",
        ));
    }
    let (standing, name) = (standing(call, queue), call.view.node_name(node));
    if let Some(why) = standing.refuses(name, is_forced) {
        return Ok(unavailable(&why));
    }
    let copy = standing.copies.iter().find(|copy| copy.node == name);
    let copy = copy.ok_or(Refusal::NotFound)?;
    let says: Vec<String> = std::iter::once(standing.loses(copy))
        .chain(Standing::keeps(copy))
        .collect();
    let by = call.api.broker.administrator(&call.user.name);
    by.refound_queue(queue, node)?;
    Ok(Reply::json(&json!({
        "node": name,
        "last_index": copy.last_index,
        "last_term": copy.last_term,
        "committed": copy.committed,
        "loses": standing.loses(copy),
        "says": says,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(node: &str, has: (u64, u64), committed: u64, voters: &[&str]) -> MemberCopy {
        MemberCopy {
            node: node.into(),
            leads: false,
            leader: None,
            votes: voters.contains(&node),
            last_term: has.0,
            last_index: has.1,
            committed,
            voters: voters.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    fn standing(copies: Vec<MemberCopy>) -> Standing {
        let answering: Vec<String> = copies.iter().map(|copy| copy.node.clone()).collect();
        Standing::of(copies, Vec::new(), &answering)
    }

    #[test]
    fn whoever_is_left_of_three_may_go_on_and_may_lack_what_the_others_confirmed() {
        let left = standing(vec![copy("a", (3, 120), 118, &["a", "b", "c"])]);
        assert_eq!((left.state(), left.needed()), (State::NoMajority, 2));
        assert_eq!(left.voters(false), ["b", "c"]);
        assert_eq!(left.refuses("a", false), None);
        let best = left.best().unwrap();
        assert!(left.loses(best).contains("behind entry 120 of term 3"));
        assert!(Standing::keeps(best).unwrap().contains("119 to 120"));
        assert!(left.refuses("b", true).is_some(), "nobody knows what it has");
    }

    #[test]
    fn of_two_that_are_left_of_five_the_one_with_more_goes_on() {
        let five = ["a", "b", "c", "d", "e"];
        let left = standing(vec![
            copy("a", (4, 90), 80, &five),
            copy("b", (3, 120), 80, &five),
        ]);
        assert_eq!(
            left.best().map(|it| it.node.as_str()),
            Some("a"),
            "a later leader spoke to it"
        );
        assert!(left.refuses("b", false).unwrap().contains("a has more than b"));
        assert!(left.refuses("b", true).is_none() && left.refuses("a", false).is_none());
        assert!(left.loses(&left.copies[1]).contains("what a has"));
    }

    #[test]
    fn who_has_a_majority_or_lacks_none_that_could_confirm_loses_nothing() {
        let three = ["a", "b", "c"];
        let mut led = standing(vec![copy("a", (3, 9), 9, &three), copy("b", (3, 9), 9, &three)]);
        assert_eq!(led.state(), State::Elects);
        assert!(led.refuses("a", false).is_some());
        led.copies[1].leads = true;
        assert_eq!(led.state(), State::Available);
        assert!(led.refuses("a", false).unwrap().contains("b"));
        led.copies.remove(1);
        assert_eq!(led.state(), State::NoMajority);
        led.copies[0].leader = Some("b".into());
        assert_eq!(
            led.state(),
            State::Available,
            "it hears of a leader that does not answer"
        );
        let of_two = standing(vec![copy("a", (3, 9), 9, &["a", "b"])]);
        assert!(of_two.loses(&of_two.copies[0]).starts_with("Nothing is lost"));
    }

    #[test]
    fn a_copy_that_does_not_vote_yet_goes_on_only_if_that_is_forced() {
        let mut learner = copy("d", (3, 9), 9, &["a", "b", "c"]);
        learner.votes = false;
        let left = standing(vec![learner, copy("a", (3, 9), 9, &["a", "b", "c"])]);
        assert!(left.refuses("d", false).is_some() && left.refuses("d", true).is_none());
    }
}
