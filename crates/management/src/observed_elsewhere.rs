//! What happens on another node and what it logs, as one listener of this node hears of it: with each turn that node is asked for
//! what came after the last one, so that an answer that is lost is no loss.

use crate::observed::as_events;
use serde_json::Value;

/// What of a node can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// What happens there.
    Happenings,
    /// What it logs.
    Log,
}

/// How far one listener has heard another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedElsewhere {
    /// What is asked for, here and there.
    pub path: String,
    source: Source,
    node: String,
    /// What chooses among what the node has, by name: `level` or `pattern`.
    choice: (&'static str, String),
    /// The number of the last one that was told, or `end`.
    after: String,
}

impl Source {
    /// Of what came after a number, the member of the answer that has it.
    pub fn list(self) -> &'static str {
        match self {
            Self::Happenings => "happenings",
            Self::Log => "lines",
        }
    }

    /// How a listener's events are called.
    fn event(self) -> &'static str {
        match self {
            Self::Happenings => "happened",
            Self::Log => "line",
        }
    }
}

impl ObservedElsewhere {
    /// From now on, of this node.
    pub fn of(path: &str, source: Source, node: &str, choice: (&'static str, &str)) -> Self {
        Self {
            path: path.to_owned(),
            source,
            node: node.to_owned(),
            choice: (choice.0, choice.1.to_owned()),
            after: "end".to_owned(),
        }
    }

    /// What the node is asked with the next turn.
    pub fn words(&self) -> Vec<(String, String)> {
        let (name, value) = &self.choice;
        let pairs = [("node", &self.node), (*name, value), ("after", &self.after)];
        pairs.map(|(name, value)| (name.to_owned(), value.clone())).into()
    }

    /// What it has said as events, as its own listeners get them; it may have said nothing.
    pub fn turn(&mut self, told: &Value) -> String {
        if let Some(after) = told["after"].as_u64() {
            self.after = after.to_string();
        }
        let list = told[self.source.list()].as_array();
        let list = list.map(Vec::as_slice).unwrap_or_default();
        let lost = told["lost"].as_u64().unwrap_or_default();
        as_events(self.source.event(), list, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_is_asked_on_from_what_it_said_last_also_after_it_said_nothing() {
        let path = "/api/leveret/happenings";
        let mut observed = ObservedElsewhere::of(path, Source::Happenings, "n2", ("pattern", "^queue"));
        let after = |observed: &ObservedElsewhere| observed.words().pop().map(|(_, after)| after);
        assert_eq!(after(&observed).as_deref(), Some("end"));
        let silent = "event: turn\ndata: {\"lost\":0}\n\n";
        let told = observed.turn(&json!({"happenings": [], "lost": 0, "after": 7}));
        assert_eq!(told, silent);
        assert_eq!(observed.turn(&Value::Null), silent);
        assert_eq!(after(&observed).as_deref(), Some("7"));
        let told = observed.turn(&json!({"happenings": [{"name": "q"}], "lost": 2, "after": 10}));
        assert!(
            told.starts_with("event: happened\ndata: {\"name\":\"q\"}\n\n"),
            "{told}"
        );
        assert!(told.ends_with("data: {\"lost\":2}\n\n"), "{told}");
        let words = observed.words();
        let words: Vec<_> = words
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(words, [("node", "n2"), ("pattern", "^queue"), ("after", "10")]);
    }
}
