//! What other nodes of the cluster are asked: a request of this API about what is on them alone, in the asker's name. Whoever
//! asks has looked at the asker's rights.
//!
//! Nodes that say nothing within a second are left out. What may go wrong between two steps stands in decision note 50.

use crate::call::Call;
use crate::options::Members;
use crate::refusal::Refusal;
use crate::reply::Reply;
use broker::User;
use hyper::body::Bytes;
use serde_json::{Map, Value, json};

/// Nodes tell each other no more than a few bytes more than these at once.
pub const LONGEST: usize = (4 << 20) - 64;

/// Of what may be long a node tells at least one thing at a time, and no more beyond so many bytes.
pub const TOLD: usize = 1 << 20;

/// What a node is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// `GET`, or another verb.
    pub verb: &'static str,
    /// The path, as it is asked for by HTTP.
    pub path: String,
    /// What stands after the question mark.
    pub query: Vec<(String, String)>,
    /// What the asker gives as its reason (`X-Reason`).
    pub reason: Option<String>,
    /// What is to be told, in more words than the address has.
    pub body: Value,
}

/// What it says.
#[derive(Clone, Debug)]
pub struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// Status and body, one behind the other.
    pub fn encode(status: u16, body: &[u8]) -> Vec<u8> {
        [&status.to_be_bytes(), body].concat()
    }

    fn decode(bytes: &Bytes) -> Option<Self> {
        let status = u16::from_be_bytes(*bytes.first_chunk()?);
        let body = bytes.slice(2..);
        Some(Self { status, body })
    }

    /// The JSON of what was found.
    pub fn found(&self) -> Option<Value> {
        (self.status == 200).then(|| serde_json::from_slice(&self.body).ok())?
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self {
            body: (!answer.body.is_empty()).then(|| answer.body.to_vec()),
            ..Self::empty(answer.status)
        }
    }
}

impl Question {
    /// Reads this path without more words.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            verb: "GET",
            path: path.into(),
            query: Vec::new(),
            reason: None,
            body: Value::Null,
        }
    }

    /// The request itself, to be answered by another node.
    pub fn again(call: &Call<'_>) -> Self {
        let pairs = call.query.pairs();
        Self {
            query: pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            ..Self::get(call.path.clone())
        }
    }

    /// The same with all members of the answer: which of them are shown is chosen here.
    pub fn whole(call: &Call<'_>) -> Self {
        let mut whole = Self::again(call);
        whole.query.retain(|(name, _)| name != "columns");
        whole
    }

    fn encode(&self, user: &User) -> Vec<u8> {
        let question = json!({
            "verb": self.verb,
            "path": self.path,
            "query": self.query,
            "user": &*user.name,
            "tags": user.tags,
            "reason": self.reason,
            "body": self.body,
        });
        question.to_string().into_bytes()
    }
}

/// The names of the other nodes that run; none if another node asks for what is here alone.
pub fn running(call: &Call<'_>) -> Vec<String> {
    if call.for_node || call.api.options.members.is_none() {
        return Vec::new();
    }
    let own = &call.api.options.node;
    let members = call.members().into_iter();
    members
        .filter(|member| member.is_running && member.name != *own)
        .map(|member| member.name)
        .collect()
}

/// Asks each of these nodes its question, all at once; `None` for those that say nothing in time.
pub fn ask(call: &Call<'_>, questions: Vec<(String, Question)>) -> Vec<Option<Answer>> {
    match &call.api.options.members {
        Some(members) => ask_as(members, &call.user, questions),
        None => questions.iter().map(|_| None).collect(),
    }
}

/// The same for this user, whoever asks.
pub fn ask_as(members: &Members, user: &User, questions: Vec<(String, Question)>) -> Vec<Option<Answer>> {
    if questions.is_empty() {
        return Vec::new();
    }
    let encoded = questions
        .into_iter()
        .map(|(node, question)| (node, question.encode(user)));
    let answers = (members.ask)(encoded.collect()).into_iter();
    answers.map(|answer| Answer::decode(&answer?)).collect()
}

/// Asks one node.
pub fn ask_one(call: &Call<'_>, node: &str, question: Question) -> Option<Answer> {
    ask(call, vec![(node.to_owned(), question)]).pop()?
}

/// Asks all other nodes the same, and passes on what those found that know something, with their names.
pub fn ask_all(call: &Call<'_>, question: &Question) -> Vec<(String, Value)> {
    ask_same(call, running(call), question)
}

/// Asks these nodes the same: as [`ask_all`].
pub fn ask_same(call: &Call<'_>, nodes: Vec<String>, question: &Question) -> Vec<(String, Value)> {
    let questions = nodes.iter().map(|node| (node.clone(), question.clone()));
    let answers = ask(call, questions.collect());
    let told = nodes.into_iter().zip(answers);
    told.filter_map(|(node, answer)| Some((node, answer?.found()?)))
        .collect()
}

/// What the node of this name answers to the request, if that is another member of the cluster.
///
/// # Errors
/// There is no such node, or it says nothing.
pub fn of_node(call: &Call<'_>, name: &str, verb: &'static str) -> Result<Option<Reply>, Refusal> {
    let question = Question {
        verb,
        ..Question::again(call)
    };
    Ok(said_by(call, name, question)?.map(Reply::from))
}

/// The same of another question.
///
/// # Errors
/// As [`of_node`].
pub fn said_by(call: &Call<'_>, name: &str, question: Question) -> Result<Option<Answer>, Refusal> {
    if name == call.api.options.node {
        return Ok(None);
    }
    if call.for_node || !call.members().iter().any(|member| member.name == name) {
        return Err(Refusal::NotFound);
    }
    let answer = ask_one(call, name, question);
    let answer = answer.ok_or_else(|| Refusal::Unreachable(name.to_owned()))?;
    Ok(Some(answer))
}

/// The same for what is read of one node, this one unless the query names another one (`?node=rabbit@n2`).
///
/// # Errors
/// As [`of_node`].
pub fn of_named_node(call: &Call<'_>) -> Result<Option<Reply>, Refusal> {
    match call.query.get("node").filter(|name| !name.is_empty()) {
        None => Ok(None),
        Some(name) => of_node(call, name, "GET"),
    }
}

/// Has the request answered by the node that has what it is about, if that is not this one.
///
/// # Errors
/// All nodes know nothing of it; or something is to be changed, and a node said nothing that may have it.
pub fn of_whoever_has_it(call: &Call<'_>, question: &Question) -> Result<Reply, Refusal> {
    let nodes = running(call);
    let questions = nodes.iter().map(|node| (node.clone(), question.clone()));
    let answers = ask(call, questions.collect());
    // An older node does not know what it is asked.
    let known = answers.iter().flatten();
    let known = known
        .clone()
        .find(|answer| !matches!(answer.status, 400 | 404))
        .or_else(|| known.clone().find(|answer| answer.status == 400));
    if let Some(answer) = known {
        return Ok(answer.clone().into());
    }
    let silent = nodes
        .into_iter()
        .zip(&answers)
        .find(|(_, answer)| answer.is_none());
    Err(match silent {
        Some((node, _)) if question.verb != "GET" => Refusal::Unreachable(node),
        _ => Refusal::NotFound,
    })
}

/// Adds the figures of another node to those of this one, as deep as they go: numbers are added up, samples by their time. What
/// only the other one has is taken over; text stays.
pub fn add(sum: &mut Value, other: &Value) {
    match (sum, other) {
        (Value::Object(sum), Value::Object(other)) => add_members(sum, other),
        (Value::Array(sum), Value::Array(other)) => {
            for sample in sum {
                let same = |it: &&Value| it.get("timestamp") == sample.get("timestamp");
                if let Some(same) = other.iter().find(same)
                    && let (Some(one), Some(other)) = (sample.get_mut("sample"), same.get("sample"))
                {
                    add(one, other);
                }
            }
        }
        (sum @ Value::Number(_), Value::Number(other)) => {
            let whole = sum.as_u64().zip(other.as_u64());
            let both = sum.as_f64().zip(other.as_f64());
            *sum = match whole {
                Some((one, other)) => one.saturating_add(other).into(),
                None => both.map_or(0.0, |(one, other)| one + other).into(),
            };
        }
        _ => {}
    }
}

fn add_members(sum: &mut Map<String, Value>, other: &Map<String, Value>) {
    for (name, value) in other {
        match sum.get_mut(name) {
            Some(known) => add(known, value),
            None => {
                sum.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_nodes_are_added_up_and_samples_by_their_time() {
        let mut sum = json!({
            "messages": 2, "name": "a", "rate": 0.5,
            "messages_details": {"samples": [{"sample": 2, "timestamp": 10}, {"sample": 1, "timestamp": 5}]},
        });
        add(
            &mut sum,
            &json!({
                "messages": 40, "name": "b", "rate": 1.0, "more": 7,
                "messages_details": {"samples": [{"sample": 40, "timestamp": 5}, {"sample": 9, "timestamp": 0}]},
            }),
        );
        assert_eq!(
            sum,
            json!({
                "messages": 42, "name": "a", "rate": 1.5, "more": 7,
                "messages_details": {"samples": [{"sample": 2, "timestamp": 10}, {"sample": 41, "timestamp": 5}]},
            })
        );
    }

    #[test]
    fn answers_are_read_as_they_were_written_and_nothing_shorter_is() {
        let answer = Answer::decode(&Answer::encode(200, b"[1]").into()).unwrap();
        assert_eq!((answer.status, answer.found()), (200, Some(json!([1]))));
        let refused = Answer::decode(&Answer::encode(404, b"[1]").into()).unwrap();
        assert_eq!(refused.found(), None);
        assert!(Answer::decode(&Bytes::from_static(b"1")).is_none());
    }
}
