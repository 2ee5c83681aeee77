//! Doing something with messages of a queue of another node: that one does it, some messages at a time, since nodes wait for a
//! second for each other. Whether the asker may publish where they go is looked at here: only this node knows who asks.

use crate::api_session::ApiSession;
use crate::call::Call;
use crate::exchanges::real_name;
use crate::messages::told;
use crate::others::{self, Answer, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::text::encode;
use broker::RefusalKind;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How many messages one question is about.
const STEP: u64 = 100;
/// How long one request asks on.
const TIME: Duration = Duration::from_secs(2);
/// What a node adds to its answer: how many messages are ready.
pub const READY: &str = "messages_ready";
/// What a node is asked that is to say where messages go, and then is told where they may go.
const TARGETS: &str = "targets";
const PERMITTED: &str = "permitted";
/// Numbers of an answer that are added up.
const SUMS: [&str; 4] = ["refused", "without_origin", "missed", "scanned"];

/// What the member of an answer is called that says how many messages this was done with.
pub fn done(action: &str) -> &'static str {
    match action {
        "delete" => "deleted",
        _ => "moved",
    }
}

/// True if a node asks where messages would go.
pub fn asks_for_targets(body: &Map<String, Value>) -> bool {
    body.contains_key(TARGETS)
}

/// Where messages may go, by the word of the node that asks; `None` if it has no doubts.
///
/// # Errors
/// It says something else.
pub fn permitted(body: &Map<String, Value>) -> Result<Option<HashSet<(String, String)>>, Refusal> {
    let said = body.get(PERMITTED).cloned().map(serde_json::from_value);
    said.transpose().map_err(|_| Refusal::bad_request(PERMITTED))
}

/// A request for messages of a queue of another node.
pub struct Elsewhere<'a> {
    call: &'a Call<'a>,
    session: &'a ApiSession,
    node: String,
    /// `move`, `copy` or `delete`.
    action: &'static str,
}

impl<'a> Elsewhere<'a> {
    /// For the queue of the path, which is on this node.
    pub fn new(call: &'a Call<'a>, session: &'a ApiSession, node: String, action: &'static str) -> Self {
        Self {
            call,
            session,
            node,
            action,
        }
    }

    /// Has it done with so many messages; `body` says which and where to.
    ///
    /// # Errors
    /// The asker may not; or the node says nothing, and may have done some of it.
    pub fn act(&self, body: &Map<String, Value>, count: u64, dry_run: bool) -> Result<Reply, Refusal> {
        let mut asked = body.clone();
        [TARGETS, PERMITTED]
            .iter()
            .for_each(|name| drop(asked.remove(*name)));
        asked.insert("action".into(), self.action.into());
        asked.insert("count".into(), count.into());
        if dry_run {
            return Ok(self.ask(&asked)?.into());
        }
        let until = Instant::now() + TIME;
        let is_head = !body.contains_key("from") && !body.contains_key("positions");
        let (mut sums, mut left) = (Map::new(), count);
        loop {
            asked.insert("count".into(), left.min(STEP).into());
            if self.action != "delete" && !self.call.operator {
                let answer = self.ask(&with(&asked, TARGETS, true.into()))?;
                let Some(targets) = answer.found() else {
                    return Ok(answer.into());
                };
                self.check(&targets)?;
                asked.insert(PERMITTED.into(), targets);
            }
            let answer = self.ask(&asked)?;
            let Some(Value::Object(told)) = answer.found() else {
                return Ok(answer.into());
            };
            left = left.saturating_sub(self.take(&mut sums, &told));
            let next = told.get("next").filter(|next| !next.is_null());
            let (Some(next), false) = (next, left == 0 || Instant::now() >= until) else {
                return Ok(self.reply(sums, &told, is_head));
            };
            asked.insert("from".into(), next.clone());
            asked.insert("end".into(), told.get("end").cloned().unwrap_or_default());
        }
    }

    fn ask(&self, body: &Map<String, Value>) -> Result<Answer, Refusal> {
        let (vhost, queue) = (self.call.part("vhost"), self.call.part("name"));
        let encode = |name: &str| encode(name.as_bytes());
        let question = Question {
            verb: "POST",
            body: Value::Object(body.clone()),
            ..Question::get(format!(
                "/api/leveret/queues/{}/{}/messages",
                encode(vhost),
                encode(queue)
            ))
        };
        let answer = others::ask_one(self.call, &self.node, question);
        answer.ok_or_else(|| Refusal::Unreachable(self.node.clone()))
    }

    /// May the asker publish there? Whatever else is wrong with an exchange shows when it is done.
    fn check(&self, targets: &Value) -> Result<(), Refusal> {
        let targets: Vec<(String, String)> = serde_json::from_value(targets.clone()).unwrap_or_default();
        for (exchange, key) in targets {
            match self
                .session
                .inner()
                .may_publish(real_name(&exchange), key.as_bytes())
            {
                Err(refusal) if refusal.kind() == RefusalKind::AccessRefused => return Err(told(&refusal)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Adds what was done; returns with how many messages something was done or tried.
    fn take(&self, sums: &mut Map<String, Value>, told: &Map<String, Value>) -> u64 {
        let number = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or_default();
        for name in SUMS.into_iter().chain([done(self.action)]) {
            let sum = sums.get(name).and_then(Value::as_u64).unwrap_or_default();
            sums.insert(name.into(), (sum + number(name)).into());
        }
        let tried = number(done(self.action)) + number("refused") + number("without_origin");
        tried + number("missed")
    }

    /// The answer as one node alone would give it; `last` is what was said last.
    fn reply(&self, mut sums: Map<String, Value>, last: &Map<String, Value>, is_head: bool) -> Reply {
        for name in ["next", "end", "edition"] {
            sums.insert(name.into(), last.get(name).cloned().unwrap_or_default());
        }
        if is_head {
            let sum = |name: &str| sums.get(name).and_then(Value::as_u64).unwrap_or_default();
            let gone = match self.action {
                "copy" => 0,
                other => sum(done(other)),
            };
            let stayed = sum("scanned").saturating_sub(gone);
            let ready = last.get(READY).and_then(Value::as_u64).unwrap_or_default();
            sums.insert("left".into(), ready.saturating_sub(stayed).into());
        }
        Reply::json(&json!(sums))
    }
}

fn with(body: &Map<String, Value>, name: &str, value: Value) -> Map<String, Value> {
    let mut body = body.clone();
    body.insert(name.into(), value);
    body
}
