//! `rabbitmq-queues rebalance`: leaders of quorum queues and streams are spread evenly over the nodes, some at a time, on a
//! thread that ends with it.
//!
//! Of all nodes that run it is the one with the lowest number that does it, whichever was asked: so there is one at a time,
//! unless nodes cannot reach each other. What may go wrong between two steps stands in decision note 58.

use crate::access::Right;
use crate::call::{Api, Call};
use crate::options::Members;
use crate::others::{self, Answer, Question};
use crate::quorum::{pattern, unavailable};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::{Asked, Broker, Leaderships, NodeId, Progress, QueueKind, THE_NODE, Told, User, rebalance};
use model::QueueId;
use regex::Regex;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/rebalance/queues",
        verbs: &[("POST", Right::Administrator, start_all)],
    },
    Route {
        path: REBALANCE,
        verbs: &[
            ("GET", Right::Administrator, show),
            ("POST", Right::Administrator, start),
        ],
    },
    Route {
        path: LEADERS,
        verbs: &[("POST", Right::Administrator, leaders)],
    },
];

const REBALANCE: &str = "/leveret/rebalance";
const LEADERS: &str = "/leveret/leaders";

/// The time between two looks at what has become of leaders that were to move.
const MOMENT: Duration = Duration::from_millis(50);

const SECOND: Duration = Duration::from_secs(1);

/// For so many seconds all nodes have to stay as they are before leaders are spread because one came back.
const QUIET_S: u32 = 15;

const QUORUM: &[QueueKind] = &[QueueKind::Quorum];

/// RabbitMQ's name for what it says if one is under way.
const IN_PROGRESS: &str = "rebalance_in_progress";

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be spread.
struct Wanted {
    kinds: &'static [QueueKind],
    vhosts: Regex,
    queues: Regex,
}

impl Wanted {
    /// What a body asks for; `None` if there is nothing of its kind that moves.
    ///
    /// # Errors
    /// There is no such kind, or a pattern is none.
    fn of(body: &Map<String, Value>) -> Result<Option<Self>, Refusal> {
        let kinds: &[QueueKind] = match body.get("type").map(Value::as_str) {
            None | Some(Some("all")) => &[QueueKind::Quorum, QueueKind::Stream],
            Some(Some("quorum")) => QUORUM,
            Some(Some("stream")) => &[QueueKind::Stream],
            Some(Some("classic")) => &[],
            _ => {
                return Err(Refusal::bad_request(
                    "type must be one of: all, classic, quorum, stream",
                ));
            }
        };
        let wanted = Self {
            kinds,
            vhosts: pattern(body, "vhost_pattern")?,
            queues: pattern(body, "queue_pattern")?,
        };
        Ok(Some(wanted).filter(|wanted| !wanted.kinds.is_empty()))
    }
}

/// As RabbitMQ does it: whoever asks is not told what comes of it.
fn start_all(call: &Call<'_>) -> Result<Reply, Refusal> {
    tracing::info!(
        area = "management",
        "user '{}' has initiated a queue rebalance",
        call.user.name
    );
    begin(call, Map::new())?;
    Ok(Reply::empty(204))
}

fn start(call: &Call<'_>) -> Result<Reply, Refusal> {
    begin(call, call.json()?)
}

fn begin(call: &Call<'_>, body: Map<String, Value>) -> Result<Reply, Refusal> {
    let wanted = Wanted::of(&body)?;
    let question = Question {
        verb: "POST",
        body: Value::Object(body),
        ..Question::get(format!("/api{REBALANCE}"))
    };
    if let Some(answer) = elsewhere(call, question)? {
        return Ok(answer.into());
    }
    let is_done = match wanted {
        Some(wanted) => run(call.api, &call.user, wanted)?,
        None => true,
    };
    Ok(match is_done {
        true => Reply::with_status(202, &shown(call)),
        false => unavailable(IN_PROGRESS),
    })
}

/// How far it is, or what came of the last one.
fn show(call: &Call<'_>) -> Result<Reply, Refusal> {
    match elsewhere(call, Question::get(format!("/api{REBALANCE}")))? {
        Some(answer) => Ok(answer.into()),
        None => Ok(Reply::json(&shown(call))),
    }
}

fn shown(call: &Call<'_>) -> Value {
    let progress = *lock(&call.api.rebalancing);
    json!({
        "running": progress.is_running,
        "wanted": progress.wanted,
        "moved": progress.moved,
        "failed": progress.failed,
    })
}

/// What the node answers that does this for all, if that is another one. One of an earlier version leaves it to this one.
fn elsewhere(call: &Call<'_>, question: Question) -> Result<Option<Answer>, Refusal> {
    let first = call.api.broker.may_lead().first().copied();
    let Some(first) = first.filter(|_| !call.for_node) else {
        return Ok(None);
    };
    let answer = others::said_by(call, call.view.node_name(first), question)?;
    Ok(answer.filter(|answer| !matches!(answer.status, 400 | 404)))
}

/// Begins on a thread of its own. False if one is under way.
fn run(api: &Api, user: &User, wanted: Wanted) -> Result<bool, Refusal> {
    let mut progress = lock(&api.rebalancing);
    if progress.is_running {
        return Ok(false);
    }
    *progress = Progress::default();
    let Some(members) = api.options.members.clone() else {
        return Ok(true);
    };
    let work = Work {
        broker: Arc::downgrade(&api.broker),
        members,
        user: user.clone(),
        wanted,
        progress: api.rebalancing.clone(),
    };
    let thread = std::thread::Builder::new().name("rebalance".into());
    let started = thread.spawn(move || work.run());
    started.map_err(|error| Refusal::Internal(error.to_string()))?;
    progress.is_running = true;
    Ok(true)
}

/// Spreads leaders whenever nodes have come back, on a thread that ends with the API.
///
/// # Errors
/// The thread cannot be started.
pub fn watch(api: &Arc<Api>) -> std::io::Result<()> {
    let api = Arc::downgrade(api);
    let thread = std::thread::Builder::new().name("returns".into());
    let mut returns = Returns::default();
    let watching = thread.spawn(move || {
        loop {
            std::thread::park_timeout(SECOND);
            let Some(api) = api.upgrade() else { return };
            let up = api.broker.may_lead();
            let is_first = up.first() == Some(&api.broker.own_node());
            if returns.is_due(up) && is_first {
                spread_again(&api);
            }
        }
    });
    watching.map(drop)
}

fn spread_again(api: &Api) {
    let all = Wanted::of(&Map::new()).ok().flatten();
    // What asks for it is an option of quorum queues: publishers of streams have to connect elsewhere.
    let all = all.map(|all| Wanted { kinds: QUORUM, ..all });
    let begun = all.map(|all| run(api, &User::named(THE_NODE), all));
    match begun {
        Some(Err(refusal)) => tracing::warn!(
            area = "management",
            "leaders are not spread after a node came back: {refusal:?}"
        ),
        _ => tracing::info!(area = "management", "a node came back: leaders are spread"),
    }
}

/// Which nodes were up, and how long ago one came.
#[derive(Debug, Default)]
struct Returns {
    up: BTreeSet<NodeId>,
    /// So many seconds to wait.
    wait: Option<u32>,
}

impl Returns {
    /// A second has passed. Whether a node has come back since, and nothing has changed for a while.
    fn is_due(&mut self, up: BTreeSet<NodeId>) -> bool {
        let has_come = !up.is_subset(&self.up);
        if has_come || self.wait.is_some() && up != self.up {
            self.wait = Some(QUIET_S);
        }
        self.up = up;
        self.wait = self.wait.map(|wait| wait.saturating_sub(1));
        self.wait.take_if(|wait| *wait == 0).is_some()
    }
}

/// What the thread does.
struct Work {
    broker: Weak<Broker>,
    members: Members,
    user: User,
    wanted: Wanted,
    progress: Arc<Mutex<Progress>>,
}

impl Work {
    fn run(self) {
        let progress = rebalance(&self);
        tracing::info!(
            area = "management",
            "leaders are rebalanced: {} moved, {} could not be",
            progress.moved,
            progress.failed
        );
        *lock(&self.progress) = progress;
    }
}

impl Leaderships for Work {
    fn nodes(&self) -> BTreeSet<NodeId> {
        let broker = self.broker.upgrade();
        broker.map(|broker| broker.may_lead()).unwrap_or_default()
    }

    fn queues(&self) -> Vec<(QueueId, Vec<NodeId>)> {
        let Some(broker) = self.broker.upgrade() else {
            return Vec::new();
        };
        let view = broker.view();
        let vhosts = view.vhosts().filter(|it| self.wanted.vhosts.is_match(&it.name));
        let queues = vhosts.flat_map(|vhost| vhost.queues());
        let wanted = queues.filter(|queue| {
            self.wanted.kinds.contains(&queue.kind)
                && queue.is_shared()
                && self.wanted.queues.is_match(&queue.name)
        });
        let with_members = wanted.map(|queue| (queue.id, queue.members().map(|it| it.node).collect()));
        with_members.collect()
    }

    fn ask(&self, asked: Vec<(NodeId, Asked)>) -> Vec<Option<Told>> {
        let Some(broker) = self.broker.upgrade() else {
            return asked.iter().map(|_| None).collect();
        };
        let (view, own) = (broker.view(), broker.own_node());
        let away = asked.iter().filter(|(node, _)| *node != own);
        let away = away.map(|(node, asked)| (view.node_name(*node).to_owned(), question(asked)));
        let mut answers = others::ask_as(&self.members, &self.user, away.collect()).into_iter();
        let tell = |(node, asked): (NodeId, Asked)| match node == own {
            true => Some(broker.lead_elsewhere(&asked)),
            false => told(&answers.next()??.found()?),
        };
        asked.into_iter().map(tell).collect()
    }

    fn pause(&self) -> bool {
        std::thread::park_timeout(MOMENT);
        self.broker.strong_count() > 0
    }

    fn tell(&self, progress: Progress) {
        *lock(&self.progress) = Progress {
            is_running: true,
            ..progress
        };
    }
}

fn question(asked: &Asked) -> Question {
    let moves = asked.moves.iter().map(|(queue, to)| json!([queue.0, to.0]));
    let of = asked
        .of
        .as_ref()
        .map(|of| of.iter().map(|queue| queue.0).collect::<Vec<_>>());
    Question {
        verb: "POST",
        body: json!({"moves": moves.collect::<Vec<_>>(), "of": of}),
        ..Question::get(format!("/api{LEADERS}"))
    }
}

/// Another node, or whoever looks, asks what this one leads, and has it hand over some of that.
fn leaders(call: &Call<'_>) -> Result<Reply, Refusal> {
    let asked = asked(&call.json()?).ok_or_else(|| {
        Refusal::bad_request("moves are pairs of a queue's number and a node's; of has numbers of queues")
    })?;
    let told = call.api.broker.lead_elsewhere(&asked);
    let numbers = |queues: &mut dyn Iterator<Item = &QueueId>| queues.map(|it| it.0).collect::<Vec<_>>();
    Ok(Reply::json(&json!({
        "begun": numbers(&mut told.begun.iter()),
        "leads": numbers(&mut told.leads.iter()),
    })))
}

fn asked(body: &Map<String, Value>) -> Option<Asked> {
    let moves = match body.get("moves") {
        None | Some(Value::Null) => Vec::new(),
        Some(moves) => serde_json::from_value::<Vec<(u64, u64)>>(moves.clone()).ok()?,
    };
    let of = match body.get("of") {
        None | Some(Value::Null) => None,
        Some(of) => Some(numbers(of)?),
    };
    Some(Asked {
        moves: moves
            .into_iter()
            .map(|(queue, to)| (QueueId(queue), NodeId(to)))
            .collect(),
        of,
    })
}

fn told(answer: &Value) -> Option<Told> {
    Some(Told {
        begun: numbers(&answer["begun"])?.into_iter().collect(),
        leads: numbers(&answer["leads"])?,
    })
}

fn numbers(value: &Value) -> Option<Vec<QueueId>> {
    let numbers: Vec<u64> = serde_json::from_value(value.clone()).ok()?;
    Some(numbers.into_iter().map(QueueId).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_ask_each_other_is_read_as_it_was_written() {
        for of in [None, Some(vec![]), Some(vec![QueueId(3), QueueId(9)])] {
            let said = Asked {
                moves: vec![(QueueId(7), NodeId(2)), (QueueId(8), NodeId(3))],
                of,
            };
            let Value::Object(body) = question(&said).body else {
                panic!()
            };
            assert_eq!(asked(&body), Some(said));
        }
        assert_eq!(asked(&Map::new()), Some(Asked::default()));
        for bad in [
            json!({"moves": 5}),
            json!({"moves": [[1]]}),
            json!({"of": ["a"]}),
            json!({"of": [-1]}),
        ] {
            assert_eq!(asked(bad.as_object().unwrap()), None, "{bad}");
        }
        let answer = json!({"begun": [7], "leads": [9, 8]});
        let expected = Told {
            begun: [QueueId(7)].into(),
            leads: vec![QueueId(9), QueueId(8)],
        };
        assert_eq!(told(&answer), Some(expected));
        assert_eq!(told(&json!({"begun": [7]})), None);
    }

    #[test]
    fn leaders_are_spread_some_time_after_a_node_came_and_not_because_one_went() {
        let nodes = |nodes: &[u64]| nodes.iter().map(|node| NodeId(*node)).collect::<BTreeSet<_>>();
        let mut returns = Returns::default();
        let mut due = Vec::new();
        let up = |second| match second {
            0..50 => nodes(&[1, 2, 3]),
            50..100 => nodes(&[1, 3]),
            // It comes, goes, and comes again.
            103..106 => nodes(&[1, 3]),
            _ => nodes(&[1, 2, 3]),
        };
        for second in 0..200_u32 {
            if returns.is_due(up(second)) {
                due.push(second);
            }
        }
        assert_eq!(due, [QUIET_S - 1, 106 + QUIET_S - 1]);
    }

    #[test]
    fn what_is_no_kind_and_what_is_no_pattern_is_refused() {
        let of = |body: Value| Wanted::of(body.as_object().unwrap());
        assert!(of(json!({})).unwrap().is_some());
        assert!(
            of(json!({"type": "quorum", "queue_pattern": "^a"}))
                .unwrap()
                .is_some()
        );
        assert!(of(json!({"type": "classic"})).unwrap().is_none());
        let kinds = |kind: &str| {
            of(json!({"type": kind}))
                .unwrap()
                .map(|wanted| wanted.kinds.to_vec())
        };
        let (quorum, stream) = (QueueKind::Quorum, QueueKind::Stream);
        assert_eq!(kinds("all"), Some(vec![quorum, stream]));
        assert_eq!(
            (kinds("quorum"), kinds("stream")),
            (Some(vec![quorum]), Some(vec![stream]))
        );
        assert!(of(json!({"type": "mirrored"})).is_err());
        assert!(of(json!({"type": 5})).is_err());
        assert!(of(json!({"vhost_pattern": "("})).is_err());
    }
}
