//! Policies: optional arguments for queues and exchanges by their names, given and taken at any time.
//!
//! Of all policies that match an object the one with the highest priority applies, and of the operators' policies one too
//! (RabbitMQ). Nothing is written into queues and exchanges: what applies follows from the virtual host's policies and the name,
//! so that a change costs the catalog the same whatever it matches.

pub mod definition;
pub(crate) mod mirrors;

use crate::{Exchange, Name, Pattern, Queue, QueueKind};
use model::table::Table;
use std::cmp::Reverse;
use std::sync::Arc;

/// Whose policy it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyKind {
    /// A policymaker's.
    User,
    /// An operator's: bounds what users' policies and arguments ask for.
    Operator,
}

/// What a policy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyTo {
    /// Queues and exchanges.
    All,
    /// Queues of all types.
    Queues,
    /// Queues of the kinds that go by one word: [`QueueKind::apply_to`].
    Kind(QueueKind),
    /// Exchanges.
    Exchanges,
}

impl ApplyTo {
    /// RabbitMQ's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Queues => "queues",
            Self::Kind(kind) => kind.apply_to().unwrap_or_default(),
            Self::Exchanges => "exchanges",
        }
    }

    /// What RabbitMQ's word means.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "all" => Some(Self::All),
            "queues" => Some(Self::Queues),
            "exchanges" => Some(Self::Exchanges),
            word => QueueKind::from_apply_to(word).map(Self::Kind),
        }
    }

    fn includes(self, object: Object) -> bool {
        match (self, object) {
            (Self::All, _) | (Self::Queues, Object::Queue(_)) | (Self::Exchanges, Object::Exchange) => true,
            (Self::Kind(one), Object::Queue(kind)) => kind.apply_to() == one.apply_to(),
            (Self::Exchanges, Object::Queue(_)) | (Self::Queues | Self::Kind(_), Object::Exchange) => false,
        }
    }
}

/// What a policy may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Object {
    Queue(QueueKind),
    Exchange,
}

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The virtual host.
    pub vhost: Name,
    /// Whose it is.
    pub kind: PolicyKind,
    /// Its name, unique among those of its kind in the virtual host.
    pub name: Name,
    /// Which names it matches, unanchored; the empty one matches all.
    pub pattern: Pattern,
    /// What it is for.
    pub apply_to: ApplyTo,
    /// The highest counts; of equals the first by name.
    pub priority: i64,
    /// Checked keys and values, by key.
    pub definition: Arc<Table>,
}

/// All policies of a virtual host.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// By falling priority, then by name.
    users: Vec<Arc<Policy>>,
    /// The same of operators.
    operators: Vec<Arc<Policy>>,
    /// A policy names an alternate exchange.
    alternates: bool,
}

/// The policies that apply to one object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Applied<'a> {
    /// The user's.
    pub user: Option<&'a Arc<Policy>>,
    /// The operator's.
    pub operator: Option<&'a Arc<Policy>>,
}

impl Applied<'_> {
    /// What both say together; `None` if there is none.
    pub fn definition(&self) -> Option<Table> {
        definition::merge(
            self.user.map(|policy| &*policy.definition),
            self.operator.map(|policy| &*policy.definition),
        )
    }
}

/// The same policies, not just equal ones.
impl PartialEq for Applied<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same = |a: Option<&Arc<Policy>>, b: Option<&Arc<Policy>>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        };
        same(self.user, other.user) && same(self.operator, other.operator)
    }
}

impl Policies {
    /// A policy.
    pub fn get(&self, kind: PolicyKind, name: &str) -> Option<&Arc<Policy>> {
        self.ranked(kind).iter().find(|policy| *policy.name == *name)
    }

    /// All of one kind, by name.
    pub fn all(&self, kind: PolicyKind) -> Vec<&Arc<Policy>> {
        let mut all: Vec<_> = self.ranked(kind).iter().collect();
        all.sort_unstable_by_key(|policy| &policy.name);
        all
    }

    /// Those whose patterns are not tried on further names, as nobody was told before: see [`crate::Pattern::was_just_given_up`].
    pub fn just_given_up(&self) -> impl Iterator<Item = &Arc<Policy>> {
        let all = self.users.iter().chain(&self.operators);
        all.filter(|policy| policy.pattern.was_just_given_up())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.users.is_empty() && self.operators.is_empty()
    }

    /// What applies to a queue; nothing does to what an exchange keeps for itself.
    pub fn of_queue(&self, queue: &Queue) -> Applied<'_> {
        self.of_new(queue.kind, &queue.name)
    }

    /// The same of one that may be made.
    pub fn of_new(&self, kind: QueueKind, name: &str) -> Applied<'_> {
        match self.is_empty() || !kind.is_of_clients() {
            true => Applied::default(),
            false => self.of(Object::Queue(kind), name),
        }
    }

    /// What applies to an exchange.
    pub fn of_exchange(&self, exchange: &Exchange) -> Applied<'_> {
        self.of(Object::Exchange, &exchange.name)
    }

    /// Where an exchange's policy sends what goes nowhere. An argument wins over it; see [`Exchange::alternate`].
    pub(crate) fn alternate(&self, exchange: &Exchange) -> Option<Name> {
        if !self.alternates {
            return None;
        }
        let policy = highest(&self.users, Object::Exchange, &exchange.name)?;
        let named = policy.definition.get("alternate-exchange")?.as_str()?;
        Some(named.into())
    }

    fn of(&self, object: Object, name: &str) -> Applied<'_> {
        Applied {
            user: highest(&self.users, object, name),
            operator: highest(&self.operators, object, name),
        }
    }

    fn ranked(&self, kind: PolicyKind) -> &Vec<Arc<Policy>> {
        match kind {
            PolicyKind::User => &self.users,
            PolicyKind::Operator => &self.operators,
        }
    }

    pub(crate) fn put(&mut self, policy: Arc<Policy>) {
        self.change(policy.kind, |ranked| {
            ranked.retain(|known| known.name != policy.name);
            ranked.push(policy);
            ranked.sort_by_cached_key(|policy| (Reverse(policy.priority), policy.name.clone()));
        });
    }

    pub(crate) fn delete(&mut self, kind: PolicyKind, name: &str) {
        self.change(kind, |ranked| ranked.retain(|known| *known.name != *name));
    }

    fn change(&mut self, kind: PolicyKind, change: impl FnOnce(&mut Vec<Arc<Policy>>)) {
        change(match kind {
            PolicyKind::User => &mut self.users,
            PolicyKind::Operator => &mut self.operators,
        });
        let mut users = self.users.iter();
        self.alternates = users.any(|policy| policy.definition.contains("alternate-exchange"));
    }
}

fn highest<'a>(ranked: &'a [Arc<Policy>], object: Object, name: &str) -> Option<&'a Arc<Policy>> {
    let mut ranked = ranked.iter();
    ranked.find(|policy| policy.apply_to.includes(object) && policy.pattern.matches(name))
}
