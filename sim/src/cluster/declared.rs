//! What clients declare queues with, and what policies say of them meanwhile. What is refused, and what all that means together,
//! says the catalog, as it does for clients.

use super::theme::Theme;
use crate::terms::TENANT;
use catalog::{
    Answer, Asked, Catalog, DeclareQueue, Effect, Incarnation, NodeConnection, PolicyKind, PutPolicy, Request,
};
use model::table::Table;
use model::{Machine, Outcome, QueueSettings, Timestamp};
use std::collections::BTreeSet;
use storage::faulty::Random;

const VHOST: &str = "/";
const QUEUE: &str = "q";

/// What policies may say of quorum queues that matters to the machine.
const RULES: [&str; 9] = [
    "max-length",
    "max-length-bytes",
    "overflow",
    "message-ttl",
    "expires",
    "delivery-limit",
    "delayed-retry",
    "dead-letter",
    "consumer-timeout",
];

/// A declaration, and the policies that the queue will be under.
#[derive(Debug, Clone)]
pub struct Declared {
    pub arguments: Table,
    /// What is in force one after the other; `None` while no policy is.
    pub policies: Vec<Option<Table>>,
}

impl Declared {
    /// A quorum queue of which nothing else is said.
    pub fn plain() -> Self {
        let arguments = Table::new().with("x-queue-type", "quorum");
        let policies = vec![None];
        Self { arguments, policies }
    }

    /// The queue for dead letters: at times it is full, until somebody sees to that.
    pub fn of_the_dead(random: &mut Random) -> Self {
        let mut declared = Self::plain();
        if random.below(3) == 0 {
            let full = Table::new()
                .with("max-length", 1 + random.below(4) as i64)
                .with("overflow", "reject-publish");
            declared.policies = vec![Some(full), None];
        }
        declared
    }

    /// Decides about a quorum queue.
    pub fn quorum(members: usize, theme: Theme, random: &mut Random) -> Self {
        let mut declared = Self::plain();
        let said = &mut declared.arguments;
        let (is_small, is_aimed) = (theme == Theme::Limits, theme == Theme::Aimed);
        if random.chance() {
            said.insert("x-quorum-initial-group-size", members as i64);
            said.insert("x-quorum-target-group-size", 3_i64);
            said.insert("x-queue-leader-locator", "balanced");
            let keeps = [300_i64, 2_000, 5_000, 20_000][random.below(4) as usize];
            said.insert("x-consumer-disconnected-timeout", keeps);
            said.insert("x-max-in-memory-length", 10_i64);
        }
        match random.below(6) {
            0 => said.insert("x-delivery-limit", -1_i64),
            1 | 2 => said.insert("x-delivery-limit", random.below(4) as i64),
            _ => {}
        }
        if is_small || random.below(4) == 0 {
            said.insert("x-max-length", 1 + random.below(30) as i64);
        }
        if random.below(6) == 0 {
            said.insert("x-max-length-bytes", 2_000 + random.below(20_000) as i64);
        }
        if random.below(4) == 0 {
            said.insert("x-message-ttl", 200 + random.below(4_000) as i64);
        }
        if random.below(4) == 0 {
            said.insert("x-expires", 300 + random.below(3_000) as i64);
        }
        if random.below(4) == 0 || is_aimed && random.chance() {
            said.insert("x-single-active-consumer", true);
        }
        if random.below(4) == 0 {
            said.insert("x-consumer-timeout", 500 + random.below(3_000) as i64);
        }
        dies(said, random);
        if random.below(3) == 0 || is_aimed {
            waits(said, "x-", random);
        }
        if random.below(8) == 0 {
            said.insert("x-retry-delay", growing(random));
        }
        if random.below(3) == 0 || is_small {
            declared.rule(random);
        }
        declared
    }

    /// Decides about a queue as classic queues are: what no client can have on several nodes yet, and mirrored queues will be.
    pub fn classic(theme: Theme, random: &mut Random) -> Self {
        let mut said = Table::new();
        let (is_small, is_aimed) = (theme == Theme::Limits, theme == Theme::Aimed);
        match random.below(3) {
            0 => said.insert("x-max-priority", 1 + random.below(4) as i64),
            1 => said.insert("x-fair-key", TENANT),
            _ => {}
        }
        if random.below(3) == 0 {
            said.insert("x-message-deduplication", true);
        }
        if random.below(4) == 0 || is_small {
            said.insert("x-max-length", 1 + random.below(30) as i64);
            let overflow = ["drop-head", "reject-publish", "reject-publish-dlx"];
            said.insert("x-overflow", overflow[random.below(3) as usize]);
        }
        if random.below(4) == 0 {
            said.insert("x-message-ttl", 200 + random.below(4_000) as i64);
        }
        if random.below(3) == 0 {
            said.insert("x-delivery-limit", random.below(4) as i64);
        }
        if random.below(4) == 0 || is_aimed {
            said.insert("x-retry-delay", growing(random));
        }
        if random.below(4) == 0 {
            said.insert("x-expires", 300 + random.below(3_000) as i64);
        }
        if random.below(5) == 0 {
            said.insert("x-single-active-consumer", true);
        }
        if random.chance() {
            said.insert("x-dead-letter-exchange", "");
            said.insert("x-dead-letter-routing-key", "dead");
        }
        let policies = vec![None];
        Self {
            arguments: said,
            policies,
        }
    }

    /// Policies come, change and go.
    fn rule(&mut self, random: &mut Random) {
        for _ in 0..1 + random.below(3) {
            let mut policy = Table::new();
            let count = 1 + random.below(3);
            let rules: BTreeSet<u64> = (0..count).map(|_| random.below(RULES.len() as u64)).collect();
            rules
                .into_iter()
                .for_each(|rule| put(&mut policy, RULES[rule as usize], random));
            self.policies.push(Some(policy));
        }
    }

    /// What it means under each of the policies, as queues of several nodes have it.
    ///
    /// # Errors
    /// The catalog refuses something of that.
    pub fn settings(&self) -> Result<Vec<QueueSettings>, String> {
        let mut catalog = Catalog::new();
        let name = VHOST.into();
        ask(&mut catalog, Request::CreateVhost { name })?;
        let declare = DeclareQueue {
            name: QUEUE.to_owned(),
            durable: true,
            arguments: self.arguments.clone(),
            ..DeclareQueue::default()
        };
        let asked = Request::DeclareQueue {
            vhost: VHOST.into(),
            declare,
            by: NodeConnection::of_node(Incarnation::default()),
            unique: [0; 16],
        };
        let Answer::Queue(queue) = ask(&mut catalog, asked)? else {
            return Err("another answer".to_owned());
        };
        let mut settings = Vec::new();
        for policy in &self.policies {
            let (vhost, kind, name) = (VHOST.into(), PolicyKind::User, "p".into());
            let asked = match policy {
                Some(definition) => {
                    let policy = PutPolicy {
                        pattern: format!("^{QUEUE}$"),
                        apply_to: "queues".to_owned(),
                        priority: 1,
                        definition: definition.clone(),
                    };
                    Request::PutPolicy {
                        vhost,
                        kind,
                        name,
                        policy,
                    }
                }
                None => Request::DeletePolicy { vhost, kind, name },
            };
            ask(&mut catalog, asked)?;
            settings.push(catalog.view().settings(&queue).of_several());
        }
        Ok(settings)
    }
}

fn ask(catalog: &mut Catalog<()>, request: Request) -> Result<Answer, String> {
    let (reply, mut turn) = ((), Outcome::default());
    catalog.handle(Timestamp(0), Asked { reply, request }, &mut turn);
    let mut effects = turn.effects.into_iter().chain(turn.promises);
    let answer = effects.find_map(|effect| match effect {
        Effect::Reply((), answer) => Some(answer),
        _ => None,
    });
    let answer = answer.ok_or_else(|| "no answer".to_owned())?;
    answer.map_err(|refusal| refusal.to_string())
}

/// What becomes of the dead, and of what does not fit: both strategies have an overflow that they need, mostly.
fn dies(said: &mut Table, random: &mut Random) {
    let overflow = match random.below(5) {
        0 => None,
        1 => Some("drop-head"),
        2 => Some("reject-publish-dlx"),
        _ => Some("reject-publish"),
    };
    if let Some(overflow) = overflow {
        said.insert("x-overflow", overflow);
    }
    if random.below(3) == 0 {
        return;
    }
    said.insert("x-dead-letter-exchange", "");
    said.insert("x-dead-letter-routing-key", "dead");
    match random.below(3) {
        0 => {}
        1 => said.insert("x-dead-letter-strategy", "at-most-once"),
        _ => said.insert("x-dead-letter-strategy", "at-least-once"),
    }
}

/// What came back waits.
fn waits(said: &mut Table, prefix: &str, random: &mut Random) {
    let kinds = ["all", "failed", "returned", "disabled", "all", "failed"];
    let kind = kinds[random.below(kinds.len() as u64) as usize];
    said.insert(format!("{prefix}delayed-retry-type"), kind);
    let least = 1 + random.below(300) as i64;
    said.insert(format!("{prefix}delayed-retry-min"), least);
    if random.chance() {
        let most = least + random.below(600) as i64;
        said.insert(format!("{prefix}delayed-retry-max"), most);
    }
}

/// Ours: each delay is longer than the one before.
fn growing(random: &mut Random) -> Table {
    Table::new()
        .with("initial", 1 + random.below(300) as i64)
        .with("factor", 1 + random.below(3) as i64)
        .with("cap", 600_i64)
        .with("jitter", random.below(30) as i64)
}

fn put(policy: &mut Table, rule: &str, random: &mut Random) {
    match rule {
        "max-length" => policy.insert(rule, 1 + random.below(30) as i64),
        "max-length-bytes" => policy.insert(rule, 2_000 + random.below(20_000) as i64),
        "overflow" => policy.insert(rule, ["drop-head", "reject-publish"][random.below(2) as usize]),
        "message-ttl" => policy.insert(rule, 200 + random.below(4_000) as i64),
        "expires" => policy.insert(rule, 300 + random.below(3_000) as i64),
        "delivery-limit" => policy.insert(rule, random.below(6) as i64 - 1),
        "delayed-retry" => waits(policy, "", random),
        "consumer-timeout" => policy.insert(rule, 500 + random.below(3_000) as i64),
        _ => {
            policy.insert("dead-letter-exchange", "");
            policy.insert("dead-letter-routing-key", "dead");
            if random.chance() {
                policy.insert("dead-letter-strategy", "at-least-once");
            }
        }
    }
}
