//! A catalog with a journal, on which stories are played.

use crate::words::{bare, flag, split, table};
use catalog::{
    Answer, Catalog, DeclareExchange, DeclareQueue, Destination, Effect, Envelope, Incarnation, Metadata,
    Name, NodeConnection, NodeId, PasswordHash, PolicyKind, PutPolicy, Quota, QuotaOf, Record, Refusal,
    RefusalKind, Request, Verb, WantedBinding,
};
use model::properties::{Properties, PropertiesBuilder};
use model::{ConnectionId, DeliveryLimit, Journaled, Machine, Outcome, Timestamp};
use smallvec::SmallVec;

pub struct Stage {
    catalog: Catalog<()>,
    journal: Vec<Vec<u8>>,
    /// A snapshot under way: where it began, and the facts that are not written yet.
    snapshot: Option<(usize, Vec<Record>)>,
    /// Counts server-named queues.
    unique: u8,
    /// Which run of the node this is.
    incarnation: Incarnation,
}

impl Stage {
    pub fn new() -> Self {
        let mut stage = Self {
            catalog: Catalog::new(),
            journal: Vec::new(),
            snapshot: None,
            unique: 0,
            incarnation: Incarnation::default(),
        };
        stage.start();
        for line in [
            "create vhost /",
            "put user guest 'guest' administrator",
            "set permissions guest '.*' '.*' '.*'",
        ] {
            stage.perform(line);
        }
        stage
    }

    /// Does what the line says and returns what came of it.
    pub fn perform(&mut self, line: &str) -> Vec<String> {
        let (connection, line) = match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((number, rest)) => (number.parse().unwrap(), rest),
            None => (1, line),
        };
        let connection = NodeConnection {
            incarnation: self.incarnation,
            connection: ConnectionId(connection),
        };
        let mut words = split(line);
        let verb = words.remove(0);
        match verb.as_str() {
            "route" => vec![self.route(words)],
            "list" => self.list(&words[0]),
            "may" => vec![self.may(&words)],
            "key" => vec![self.may_use_key(&words)],
            "rules" => self.rules(),
            "settings" => vec![self.settings(&bare(&words[0]))],
            "login" => match self
                .catalog
                .view()
                .authenticate(&words[0], bare(&words[1]).as_bytes())
            {
                Ok(user) => vec![format!("welcome {}, {}", user.name, user.tags.join(", "))],
                Err(refusal) => vec![format!("refused: {refusal}")],
            },
            "enter" => vec![
                if self.catalog.view().vhost_access(&words[0], &bare(&words[1])) {
                    "yes"
                } else {
                    "no"
                }
                .into(),
            ],
            "restart" => {
                self.restart();
                Vec::new()
            }
            _ => {
                let request = self.request(&verb, words, connection);
                self.ask(request)
            }
        }
    }

    fn request(&mut self, verb: &str, mut words: Vec<String>, connection: NodeConnection) -> Request {
        let vhost = Name::from("/");
        if verb == "snapshot" {
            return self.snapshot_request(&words);
        }
        let subject = words.remove(0);
        match (verb, subject.as_str()) {
            ("declare", "exchange") => declare_exchange(words, connection.incarnation),
            ("delete", "exchange") => {
                let if_unused = flag(&mut words, "if-unused");
                Request::DeleteExchange {
                    vhost,
                    name: bare(&words[0]),
                    if_unused,
                }
            }
            ("declare", "queue") => {
                self.unique += 1;
                declare_queue(words, connection, self.unique)
            }
            ("delete", "queue") => {
                let view = self.catalog.view();
                let queue = view.queue("/", &bare(&words[0])).expect("a queue to delete");
                Request::DeleteQueue { id: queue.id }
            }
            ("clear", "bindings") => {
                let view = self.catalog.view();
                let queue = view.queue("/", &bare(&words[0])).expect("a queue to clear");
                Request::ClearBindings {
                    id: queue.id,
                    at_most: words[1].parse().unwrap(),
                }
            }
            ("bind" | "unbind", source) => bind(verb == "bind", bare(source), words, connection),
            ("close", _) => Request::CloseConnection {
                connection,
                at_most: words.first().map_or(usize::MAX, |word| word.parse().unwrap()),
            },
            (_, subject) => access(verb, subject, words),
        }
    }

    /// `snapshot starts`, `snapshot goes on [by COUNT]`, `snapshot ends`
    fn snapshot_request(&mut self, words: &[String]) -> Request {
        match (words[0].as_str(), &mut self.snapshot) {
            ("starts", _) => Request::StartSnapshot,
            ("goes", Some((_, facts))) => {
                // With "on by 3" only so many.
                let most = words.get(3).map_or(facts.len(), |word| word.parse().unwrap());
                let facts = facts.drain(..most.min(facts.len())).collect();
                Request::ContinueSnapshot { facts }
            }
            _ => Request::FinishSnapshot,
        }
    }

    fn ask(&mut self, request: Request) -> Vec<String> {
        let mut outcome = Outcome::default();
        self.catalog
            .handle(Timestamp(0), request.asked_by(()), &mut outcome);
        if outcome.records.contains(&Record::SnapshotStarted) {
            self.snapshot = Some((self.journal.len(), self.catalog.view().facts().collect()));
        }
        if outcome.records.contains(&Record::SnapshotFinished) {
            // What the host does once the snapshot is durable.
            let (from, left) = self.snapshot.take().expect("a snapshot to finish");
            assert!(left.is_empty(), "facts that were not written: {left:?}");
            self.journal.drain(..from);
        }
        for record in &outcome.records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.journal.push(bytes);
        }
        let (orders, mut told): (Vec<_>, Vec<_>) = {
            let all = outcome.effects.into_iter();
            all.partition(|effect| !matches!(effect, Effect::Reply(..)))
        };
        let mut lines: Vec<String> = orders.into_iter().filter_map(order).collect();
        lines.extend(outcome.records.iter().filter_map(|record| match record {
            Record::ExchangeDeleted { name, .. } => Some(format!("exchange '{name}' is deleted")),
            _ => None,
        }));
        lines.extend(told.drain(..).map(|reply| answer(reply, "")));
        let late = outcome.promises.into_iter();
        lines.extend(late.map(|reply| answer(reply, ", once durable")));
        lines
    }

    /// Begins a run of the node; what ended with the last one goes, two objects at a time.
    fn start(&mut self) {
        let name = "node".into();
        let node = NodeId::FIRST;
        self.ask(Request::StartNode {
            node,
            name,
            takes_queues: true,
        });
        let view = self.catalog.view();
        let (node, known) = view.nodes().next().expect("the node that has started");
        self.incarnation = Incarnation {
            node: *node,
            number: known.started,
        };
        while self
            .ask(Request::EndTransient { at_most: 2 })
            .last()
            .is_some_and(|line| line.starts_with('2'))
        {}
    }

    fn restart(&mut self) {
        self.catalog = Catalog::new();
        for (at, bytes) in self.journal.iter().enumerate() {
            let record = Record::decode(bytes).expect("a record that was just written");
            self.catalog.apply(at as u64 + 1, record, &mut Outcome::default());
        }
        self.catalog.recovered(true);
        self.snapshot = None;
        self.start();
    }

    fn route(&self, mut words: Vec<String>) -> String {
        let view = self.catalog.view();
        let table = table(&mut words);
        let exchange = view
            .exchange("/", &bare(&words[0]))
            .expect("an exchange to publish to");
        let key = words.get(1).map(|word| bare(word)).unwrap_or_default();
        let mut out = SmallVec::new();
        let properties = PropertiesBuilder::new().headers(&table).encode();
        view.route(
            exchange,
            &mut Envelope::new(key.as_bytes(), Properties::amqp091(&properties)),
            &mut out,
        );
        let mut names: Vec<String> = out
            .iter()
            .map(|id| self.catalog.queue(*id).expect("a queue").name.to_string())
            .collect();
        names.sort();
        if names.is_empty() {
            "to no queue".into()
        } else {
            format!("to {}", names.join(", "))
        }
    }

    fn may(&self, words: &[String]) -> String {
        let verb = match words[1].as_str() {
            "configure" => Verb::Configure,
            "write" => Verb::Write,
            _ => Verb::Read,
        };
        let yes = self.catalog.view().may(&words[0], "/", verb, &bare(&words[2]));
        if yes { "yes" } else { "no" }.into()
    }

    /// `key USER write EXCHANGE 'KEY'`
    fn may_use_key(&self, words: &[String]) -> String {
        let view = self.catalog.view();
        let exchange = view
            .exchange("/", &bare(&words[2]))
            .expect("an exchange with keys");
        let verb = match words[1].as_str() {
            "write" => Verb::Write,
            _ => Verb::Read,
        };
        let yes = view.may_topic(&words[0], exchange, verb, bare(&words[3]).as_bytes());
        if yes { "yes" } else { "no" }.into()
    }

    /// All limits, global parameters and descriptions.
    fn rules(&self) -> Vec<String> {
        let view = self.catalog.view();
        let mut told = Vec::new();
        let limits = |quota: &Quota| {
            let told = quota.iter().map(|(name, value)| format!("{name} {value}"));
            told.collect::<Vec<_>>().join(", ")
        };
        for vhost in view.vhosts() {
            let said = vhost.metadata();
            told.push(format!(
                "vhost {}: '{}', tags '{}', protected {}, limits: {}",
                vhost.name,
                said.description,
                said.tags.join(" "),
                said.protected,
                limits(vhost.quota())
            ));
        }
        for user in view.users() {
            told.push(format!(
                "user {}: {}",
                user.name,
                limits(&view.user_quota(&user.name))
            ));
        }
        told.extend(
            view.globals()
                .map(|(name, value)| format!("global {name}: {value:?}")),
        );
        told
    }

    /// What a queue's arguments and policies mean, as far as it is not what queues without any have.
    fn settings(&self, name: &str) -> String {
        let view = self.catalog.view();
        let queue = view.queue("/", name).expect("a queue with settings");
        let applied = view.vhost("/").unwrap().policies().of_queue(queue);
        let names = [applied.user, applied.operator].map(|policy| policy.map_or("none", |it| &*it.name));
        let found = view.settings(queue);
        let mut told = format!("policy {}, operator policy {}", names[0], names[1]);
        let numbers = [
            ("max-length", found.max_length),
            ("max-length-bytes", found.max_length_bytes),
            ("message-ttl", found.message_ttl_ms),
            ("expires", found.expires_ms),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                told += &format!(", {name} {number}");
            }
        }
        match found.delivery_limit {
            Some(DeliveryLimit::Returns(limit)) => told += &format!(", delivery-limit {limit}"),
            Some(DeliveryLimit::Unlimited) => told += ", delivery-limit -1",
            None => {}
        }
        if let Some(to) = &found.dead_letter {
            told += &format!(", dead letters to {}", to.exchange);
        }
        told + &format!(", {:?}", found.overflow)
    }

    fn list(&self, what: &str) -> Vec<String> {
        let view = self.catalog.view();
        let lines: Vec<String> = match what {
            "queues" => view.queues("/").map(|queue| queue.name.to_string()).collect(),
            "exchanges" => view
                .exchanges("/")
                .map(|exchange| format!("'{}' {}", exchange.name, exchange.kind))
                .collect(),
            "bindings" => view
                .bindings("/")
                .map(|binding| {
                    let key = String::from_utf8_lossy(&binding.routing_key);
                    format!("'{}' to {} by '{key}'", binding.source, binding.destination)
                })
                .collect(),
            other => panic!("a story lists {other}"),
        };
        if lines.is_empty() {
            vec!["none".into()]
        } else {
            lines
        }
    }
}

fn declare_exchange(mut words: Vec<String>, by: Incarnation) -> Request {
    let arguments = table(&mut words);
    let [passive, durable, auto_delete, internal] =
        ["passive", "durable", "auto-delete", "internal"].map(|word| flag(&mut words, word));
    Request::DeclareExchange {
        vhost: "/".into(),
        declare: DeclareExchange {
            name: bare(&words[0]),
            kind: words
                .get(1)
                .map(|word| bare(word))
                .unwrap_or_else(|| "direct".into()),
            passive,
            durable,
            auto_delete,
            internal,
            arguments,
            homes: Vec::new(),
        },
        by,
    }
}

fn declare_queue(mut words: Vec<String>, by: NodeConnection, unique: u8) -> Request {
    let arguments = table(&mut words);
    let [passive, durable, exclusive, auto_delete] =
        ["passive", "durable", "exclusive", "auto-delete"].map(|word| flag(&mut words, word));
    Request::DeclareQueue {
        vhost: "/".into(),
        declare: DeclareQueue {
            name: bare(&words[0]),
            passive,
            durable,
            exclusive,
            auto_delete,
            arguments,
            other_arguments: None,
            homes: Vec::new(),
        },
        by,
        unique: [unique; 16],
    }
}

/// Virtual hosts, users and what they may.
fn access(verb: &str, subject: &str, words: Vec<String>) -> Request {
    let vhost = Name::from("/");
    match (verb, subject) {
        ("create", "vhost") => Request::CreateVhost {
            name: bare(&words[0]).into(),
        },
        ("delete", "vhost") => Request::DeleteVhost {
            name: bare(&words[0]).into(),
        },
        ("put", "user") => {
            let password = bare(&words[1]);
            let password =
                (!password.is_empty()).then(|| PasswordHash::new([1, 2, 3, 4], password.as_bytes()));
            Request::PutUser {
                name: words[0].as_str().into(),
                password,
                tags: words[2..].to_vec(),
            }
        }
        ("delete", "user") => Request::DeleteUser {
            name: words[0].as_str().into(),
        },
        ("set", "permissions") => {
            let [configure, write, read] = [1, 2, 3].map(|at| bare(&words[at]));
            Request::SetPermissions {
                user: words[0].as_str().into(),
                vhost,
                configure,
                write,
                read,
            }
        }
        ("clear", "permissions") => Request::ClearPermissions {
            user: words[0].as_str().into(),
            vhost,
        },
        (_, subject) => rule(verb, subject, words),
    }
}

/// What is said about many objects, users and virtual hosts.
fn rule(verb: &str, subject: &str, words: Vec<String>) -> Request {
    let vhost = Name::from("/");
    match (verb, subject) {
        ("put" | "operator", "policy") => put_policy(verb, words),
        ("delete", "policy") => Request::DeletePolicy {
            vhost,
            kind: PolicyKind::User,
            name: bare(&words[0]).into(),
        },
        ("limit", of) => Request::SetLimits {
            of: match of {
                "vhost" => QuotaOf::Vhost(bare(&words[0]).into()),
                _ => QuotaOf::User(bare(&words[0]).into()),
            },
            limits: vec![(words[1].clone(), words.get(2).map(|it| it.parse().unwrap()))],
        },
        ("protect", _) | ("describe", _) => Request::DescribeVhost {
            vhost,
            metadata: Metadata {
                description: words.first().map(|it| bare(it)).unwrap_or_default(),
                tags: words.iter().skip(1).cloned().collect(),
                protected: verb == "protect",
                default_queue_type: None,
            },
        },
        ("global", name) => Request::SetGlobal {
            name: name.into(),
            value: words.first().map(|it| bare(it).as_str().into()),
        },
        ("topic", user) => {
            let [exchange, write, read] = [0, 1, 2].map(|at| bare(&words[at]));
            Request::SetTopicPermission {
                user: user.into(),
                vhost,
                exchange: exchange.into(),
                write,
                read,
            }
        }
        ("untopic", user) => Request::ClearTopicPermissions {
            user: user.into(),
            vhost,
            exchange: words.first().map(|it| bare(it).into()),
        },
        other => panic!("a story asks for {other:?}"),
    }
}

/// `put policy NAME 'PATTERN' [for APPLY-TO] [at PRIORITY] KEY=VALUE …`
fn put_policy(verb: &str, mut words: Vec<String>) -> Request {
    let definition = table(&mut words);
    let after = |word: &str| {
        let at = words.iter().position(|known| known == word)?;
        words.get(at + 1).cloned()
    };
    Request::PutPolicy {
        vhost: "/".into(),
        kind: match verb {
            "operator" => PolicyKind::Operator,
            _ => PolicyKind::User,
        },
        name: bare(&words[0]).into(),
        policy: PutPolicy {
            pattern: bare(&words[1]),
            apply_to: after("for").unwrap_or("all".into()),
            priority: after("at").map_or(0, |it| it.parse().unwrap()),
            definition,
        },
    }
}

/// `bind SOURCE to queue NAME [by KEY] [ARGUMENT=VALUE …]`
fn bind(bind: bool, source: String, mut words: Vec<String>, connection: NodeConnection) -> Request {
    let arguments = table(&mut words);
    let name: Name = bare(&words[2]).into();
    let destination = if words[1] == "queue" {
        Destination::Queue(name)
    } else {
        Destination::Exchange(name)
    };
    let routing_key = words
        .get(4)
        .map(|word| bare(word))
        .unwrap_or_default()
        .into_bytes();
    let vhost = Name::from("/");
    let binding = WantedBinding {
        source,
        destination,
        routing_key,
        arguments,
        by: connection,
    };
    match bind {
        true => Request::Bind { vhost, binding },
        false => Request::Unbind { vhost, binding },
    }
}

fn answer(reply: Effect<()>, when: &str) -> String {
    match reply {
        Effect::Reply((), Ok(Answer::Done)) => format!("ok{when}"),
        Effect::Reply((), Ok(Answer::Cleared(count))) => format!("{count} taken away{when}"),
        Effect::Reply((), Ok(Answer::Snapshot(_) | Answer::Started(_))) => format!("started{when}"),
        Effect::Reply((), Ok(Answer::Queue(queue))) => format!("ok, queue '{}'{when}", queue.name),
        Effect::Reply((), Err(refusal)) => {
            let text = refusal.to_string().replace('\n', "\\n");
            format!("{} - {text}", code(&refusal))
        }
        other => panic!("{other:?} is no reply"),
    }
}

/// What the host is told to do with a queue, or with what an exchange keeps for itself.
fn order(effect: Effect<()>) -> Option<String> {
    let (queue, what) = match effect {
        Effect::StartQueue(queue) => (queue, "created"),
        Effect::StopQueue(queue) => (queue, "deleted"),
        Effect::FollowMembers(queue) => (queue, "on other nodes"),
        Effect::FollowPolicies(_) | Effect::Reply(..) => return None,
    };
    Some(match queue.kind.is_of_clients() {
        true => format!("queue '{}' is {what}", queue.name),
        false => format!("what exchange '{}' keeps is {what}", queue.name),
    })
}

fn code(refusal: &Refusal) -> &'static str {
    match refusal.kind() {
        RefusalKind::NotFound => "NOT_FOUND",
        RefusalKind::AccessRefused => "ACCESS_REFUSED",
        RefusalKind::ResourceLocked => "RESOURCE_LOCKED",
        RefusalKind::PreconditionFailed => "PRECONDITION_FAILED",
        RefusalKind::NotAllowed => "NOT_ALLOWED",
        RefusalKind::NotImplemented => "NOT_IMPLEMENTED",
        RefusalKind::CommandInvalid => "COMMAND_INVALID",
        RefusalKind::Internal => "INTERNAL_ERROR",
    }
}
