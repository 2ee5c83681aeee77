//! `/api/leveret/nodes/NODE/stop-impact`: what would be unavailable if a node stopped, or is because it does not run. All of it
//! is counted, since there may be 100,000 queues.

use crate::access::Right;
use crate::call::Call;
use crate::listing::object;
use crate::options::Member;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::Lifetime;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/nodes/:node/stop-impact",
    verbs: &[("GET", Right::Monitor, impact)],
}];

/// So many virtual hosts are told apart, those with the most first.
const VHOSTS: usize = 100;

/// Whether a majority of the members runs without the one of this name.
pub fn decide_without(members: &[Member], name: &str) -> bool {
    running_without(members, name) * 2 > members.len()
}

fn running_without(members: &[Member], name: &str) -> usize {
    let others = members.iter().filter(|member| member.name != name);
    others.filter(|member| member.is_running).count()
}

/// What a virtual host has on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Back with the node, and not there until then.
    durable: u64,
    /// Gone with it.
    transient: u64,
    /// Those of one connection.
    exclusive: u64,
    /// What exchanges keep: publishing to these exchanges is refused until the node is back.
    exchanges: u64,
}

impl Counts {
    fn all(&self) -> u64 {
        self.durable + self.transient + self.exclusive + self.exchanges
    }

    fn add(&mut self, other: &Self) {
        self.durable += other.durable;
        self.transient += other.transient;
        self.exclusive += other.exclusive;
        self.exchanges += other.exchanges;
    }

    /// Counts a queue, of clients or what an exchange keeps.
    fn count(&mut self, is_of_clients: bool, lifetime: Lifetime) {
        let counted = match lifetime {
            _ if !is_of_clients => &mut self.exchanges,
            Lifetime::Durable => &mut self.durable,
            Lifetime::Incarnation(_) => &mut self.transient,
            Lifetime::Connection(_) => &mut self.exclusive,
        };
        *counted += 1;
    }

    fn shown(&self) -> Value {
        json!({
            "durable_queues": self.durable,
            "transient_queues": self.transient,
            "exclusive_queues": self.exclusive,
            "exchanges": self.exchanges,
        })
    }
}

fn impact(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (name, members) = (call.part("node"), call.members());
    let member = members.iter().find(|member| member.name == name);
    let member = member.ok_or(Refusal::NotFound)?;
    let own = *name == *call.api.options.node;
    let mut nodes = call.view.nodes();
    // A node alone is on record by the name that it had at its start.
    let home = nodes.find(|(_, known)| !known.is_forgotten() && (*known.name == *name || members.len() == 1));
    let home = home.map(|(node, _)| *node);
    let mut vhosts = Vec::new();
    for vhost in call.view.vhosts() {
        let mut counts = Counts::default();
        let alone = vhost.all_queues().filter(|queue| !queue.is_shared());
        for queue in alone.filter(|queue| Some(queue.home) == home) {
            counts.count(queue.kind.is_of_clients(), queue.lifetime);
        }
        if counts.all() > 0 {
            vhosts.push((&vhost.name, counts));
        }
    }
    let mut sum = Counts::default();
    vhosts.iter().for_each(|(_, counts)| sum.add(counts));
    vhosts.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.all()));
    let of_vhosts = vhosts.iter().take(VHOSTS).map(|(name, counts)| {
        let mut shown = counts.shown();
        shown["name"] = name.to_string().into();
        shown
    });
    let mut shown = sum.shown();
    shown["virtual_hosts"] = of_vhosts.collect();
    shown["node"] = name.into();
    shown["running"] = member.is_running.into();
    shown["connections"] = connections(call, member, own);
    shown["definitions_can_be_changed"] = decide_without(&members, name).into();
    shown["members"] = members.len().into();
    shown["running_without_it"] = running_without(&members, name).into();
    Ok(object(&call.query, shown))
}

/// How many clients would have to connect elsewhere; null if the node does not say.
fn connections(call: &Call<'_>, member: &Member, own: bool) -> Value {
    if own {
        return call.api.broker.node_connections().0.into();
    }
    if !member.is_running {
        return 0.into();
    }
    let question = Question::get("/api/overview");
    let told = others::ask_one(call, &member.name, question).and_then(|answer| answer.found());
    told.map_or(Value::Null, |told| told["object_totals"]["connections"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::{Incarnation, NodeConnection, NodeId};

    #[test]
    fn a_majority_is_counted_without_the_node_whether_it_runs_or_not() {
        let members = |running: &[bool]| -> Vec<Member> {
            let numbered = (1..).zip(running);
            let member = |(number, is_running): (i32, &bool)| Member {
                name: format!("n{number}"),
                is_running: *is_running,
                links: None,
            };
            numbered.map(member).collect()
        };
        let decide = |running: &[bool], name: &str| decide_without(&members(running), name);
        assert!(decide(&[true, true, true], "n1"));
        assert!(!decide(&[true, true, false], "n1"));
        assert!(decide(&[true, true, false], "n3"));
        assert!(!decide(&[true, true], "n1"));
        assert!(!decide(&[true], "n1"));
        assert!(decide(&[true, true, true, true, false], "n1"));
    }

    #[test]
    fn queues_are_counted_by_what_becomes_of_them() {
        let run = Incarnation {
            node: NodeId(2),
            number: 1,
        };
        let mut counts = Counts::default();
        counts.count(true, Lifetime::Durable);
        counts.count(true, Lifetime::Incarnation(run));
        counts.count(true, Lifetime::Connection(NodeConnection::of_node(run)));
        counts.count(false, Lifetime::Durable);
        counts.count(false, Lifetime::Incarnation(run));
        let mut sum = counts;
        sum.add(&counts);
        assert_eq!(sum.all(), 10);
        let expected =
            json!({"durable_queues": 2, "transient_queues": 2, "exclusive_queues": 2, "exchanges": 4});
        assert_eq!(sum.shown(), expected);
    }
}
