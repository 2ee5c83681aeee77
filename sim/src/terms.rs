//! What a queue is declared with, as the seed decides: what it may do with messages on its own.

use broker::DeclareQueue;
use model::table::Table;
use storage::faulty::Random;

/// The dead letters of each queue go to a queue of their own, so that it is known where one comes from.
pub const DEAD_LETTERS: &str = "dead-";

/// The header by which queues sort fairly.
pub const TENANT: &str = "tenant";

/// A queue's attributes and arguments.
#[derive(Debug, Clone, Default)]
pub struct Terms {
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    /// At most so many messages are ready.
    pub max_length: Option<u64>,
    /// Those that do not fit are refused; otherwise the oldest ones leave.
    pub refuses: bool,
    /// What was refused goes to the dead-letter queue, if there is one.
    pub refusals_die: bool,
    /// One consumer gets messages until it leaves.
    pub has_single_active: bool,
    pub ttl_ms: Option<u64>,
    /// So long nobody may use it before it is deleted.
    pub expires_ms: Option<u64>,
    /// 0 for a queue without priorities.
    pub max_priority: u8,
    /// It serves tenants in turn.
    pub is_fair: bool,
    /// What dies goes to its dead-letter queue.
    pub dead_letters: bool,
    /// So often a message may come back.
    pub returns: Option<u32>,
    pub retry_ms: Option<u64>,
    pub deduplicates: bool,
}

impl Terms {
    /// A durable queue without arguments.
    pub fn plain() -> Self {
        Self {
            durable: true,
            ..Self::default()
        }
    }

    /// Decides. Half of all queues are plain ones: what those promise allows no loss.
    pub fn choose(random: &mut Random) -> Self {
        let mut terms = Self {
            durable: random.below(4) > 0,
            ..Self::default()
        };
        if random.chance() {
            return terms;
        }
        let mut seldom = |one_in: u64| random.below(one_in) == 0;
        (terms.exclusive, terms.auto_delete) = (seldom(8), seldom(8));
        terms.dead_letters = seldom(2);
        terms.is_fair = seldom(5);
        terms.deduplicates = seldom(5);
        let (limit, ttl, expires) = (seldom(4), seldom(4), seldom(8));
        let (priority, returns, retry) = (seldom(4), seldom(4), seldom(5));
        terms.refuses = limit && seldom(2);
        terms.refusals_die = terms.refuses && seldom(2);
        terms.has_single_active = seldom(5);
        if priority && !terms.is_fair {
            terms.max_priority = 1 + random.below(4) as u8;
        }
        terms.max_length = limit.then(|| 1 + random.below(40));
        terms.ttl_ms = ttl.then(|| 20 + random.below(2_000));
        terms.expires_ms = expires.then(|| 50 + random.below(2_000));
        terms.returns = returns.then(|| random.below(3) as u32);
        terms.retry_ms = retry.then(|| 1 + random.below(300));
        terms
    }

    /// The declaration that says all that.
    pub fn declaration(&self, name: &str) -> DeclareQueue {
        DeclareQueue {
            name: name.to_owned(),
            durable: self.durable,
            exclusive: self.exclusive,
            auto_delete: self.auto_delete,
            arguments: self.arguments(name),
            ..DeclareQueue::default()
        }
    }

    fn arguments(&self, name: &str) -> Table {
        let mut table = Table::new();
        let numbers = [
            ("x-max-length", self.max_length),
            ("x-message-ttl", self.ttl_ms),
            ("x-expires", self.expires_ms),
            ("x-delivery-limit", self.returns.map(u64::from)),
            ("x-retry-delay", self.retry_ms),
            (
                "x-max-priority",
                Some(u64::from(self.max_priority)).filter(|it| *it > 0),
            ),
        ];
        for (argument, value) in numbers {
            if let Some(value) = value {
                table.insert(argument, value as i64);
            }
        }
        if self.refuses {
            let overflow = match self.refusals_die && self.dead_letters {
                true => "reject-publish-dlx",
                false => "reject-publish",
            };
            table.insert("x-overflow", overflow);
        }
        if self.has_single_active {
            table.insert("x-single-active-consumer", true);
        }
        if self.is_fair {
            table.insert("x-fair-key", TENANT);
        }
        if self.deduplicates {
            table.insert("x-message-deduplication", true);
        }
        if self.dead_letters {
            table.insert("x-dead-letter-exchange", "");
            table.insert("x-dead-letter-routing-key", format!("{DEAD_LETTERS}{name}"));
        }
        table
    }

    /// True if it is there after a restart: an exclusive queue ends with its connection.
    pub fn survives(&self) -> bool {
        self.durable && !self.exclusive
    }

    /// True if messages leave it in another order than they came.
    pub fn sorts(&self) -> bool {
        self.is_fair || self.max_priority > 0
    }
}

/// What a message says of itself.
#[derive(Debug, Clone, Default)]
pub struct Said {
    pub persistent: bool,
    pub priority: Option<u8>,
    pub expiration_ms: Option<u64>,
    pub tenant: Option<u8>,
    /// What duplicates of it have, too.
    pub key: Option<u8>,
    /// What exchanges of headers look at.
    pub colour: Option<&'static str>,
}

impl Said {
    /// Decides.
    pub fn choose(random: &mut Random) -> Self {
        let mut seldom = |one_in: u64| random.below(one_in) == 0;
        let persistent = !seldom(5);
        let (priority, expires, tenant, key) = (seldom(3), seldom(12), seldom(3), seldom(4));
        Self {
            persistent,
            priority: priority.then(|| random.below(6) as u8),
            expiration_ms: expires.then(|| random.below(3_000)),
            tenant: tenant.then(|| random.below(3) as u8),
            key: key.then(|| random.below(12) as u8),
            colour: None,
        }
    }

    /// The properties as AMQP has them.
    pub fn encode(&self) -> Vec<u8> {
        let mut headers = Table::new();
        if let Some(tenant) = self.tenant {
            headers.insert(TENANT, i32::from(tenant));
        }
        if let Some(key) = self.key {
            headers.insert("x-deduplication-header", i32::from(key));
        }
        if let Some(colour) = self.colour {
            headers.insert("colour", colour);
        }
        let mut flags = 0_u16;
        let mut out = vec![0, 0];
        if !headers.is_empty() {
            flags |= 1 << 13;
            headers.encode_field(&mut out);
        }
        if self.persistent {
            flags |= 1 << 12;
            out.push(2);
        }
        if let Some(priority) = self.priority {
            flags |= 1 << 11;
            out.push(priority);
        }
        if let Some(expiration_ms) = self.expiration_ms {
            flags |= 1 << 8;
            let text = expiration_ms.to_string();
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
        out[..2].copy_from_slice(&flags.to_be_bytes());
        out
    }
}
