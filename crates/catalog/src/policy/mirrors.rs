//! The policies of mirrored queues, which RabbitMQ had until 4.0: checked as RabbitMQ 3.10 checks them, with its texts, and what
//! they say of the nodes that are to have a queue. See decision note 61.

use super::definition::term;
use model::table::{Table, Value};

const SYNC_MODES: [&str; 2] = ["manual", "automatic"];
const PROMOTIONS: [&str; 2] = ["always", "when-synced"];
const LOCATORS: &[&str] = &["min-masters", "client-local", "random"];

/// Who is to have a classic queue beside the node that it is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All nodes.
    All,
    /// So many, the one that leads among them.
    Exactly(usize),
    /// These, by their names.
    Nodes(Vec<Vec<u8>>),
}

impl Mode {
    pub(crate) fn of(definition: &Table) -> Option<Self> {
        let params = definition.get("ha-params");
        match definition.get("ha-mode")?.as_str()? {
            "all" => Some(Self::All),
            "exactly" => Some(Self::Exactly(usize::try_from(params?.as_integer()?).ok()?)),
            "nodes" => {
                let Value::Array(nodes) = params? else {
                    return None;
                };
                let names = nodes.iter().filter_map(Value::as_bytes);
                Some(Self::Nodes(names.map(<[u8]>::to_vec).collect()))
            }
            _ => None,
        }
    }
}

/// Checks what a definition says about mirrors.
///
/// # Errors
/// What is wrong.
pub(super) fn check(definition: &Table) -> Result<(), String> {
    let Some(mode) = definition.get("ha-mode") else {
        let others = definition
            .iter()
            .any(|(name, _)| super::definition::is_for_clusters(name));
        return match others {
            true => Err(
                "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
                    .into(),
            ),
            false => Ok(()),
        };
    };
    check_mode(mode, definition.get("ha-params"))?;
    word(definition, "ha-sync-mode", SYNC_MODES)?;
    if let Some(size) = definition.get("ha-sync-batch-size")
        && size.as_integer().is_none_or(|it| it < 1)
    {
        return Err(format!(
            "ha-sync-batch-size takes an integer greater than 0, {} given",
            term(size)
        ));
    }
    word(definition, "ha-promote-on-shutdown", PROMOTIONS)?;
    word(definition, "ha-promote-on-failure", PROMOTIONS)
}

/// True if it is a place where RabbitMQ 3 put queues' masters.
pub(super) fn is_locator(value: &Value) -> bool {
    value.as_str().is_some_and(|it| LOCATORS.contains(&it))
}

fn check_mode(mode: &Value, params: Option<&Value>) -> Result<(), String> {
    let given = || params.map_or("none".into(), term);
    match (mode.as_str(), params) {
        (Some("all"), None) => Ok(()),
        (Some("all"), Some(_)) => Err("ha-mode=\"all\" does not take parameters".into()),
        (Some("exactly"), Some(count)) if count.as_integer().is_some_and(|it| it > 0) => Ok(()),
        (Some("exactly"), _) => Err(format!("ha-mode=\"exactly\" takes an integer, {} given", given())),
        (Some("nodes"), Some(Value::Array(nodes))) if nodes.is_empty() => {
            Err("ha-mode=\"nodes\" list must be non-empty".into())
        }
        (Some("nodes"), Some(Value::Array(nodes))) => {
            let wrong: Vec<_> = nodes.iter().filter(|it| it.as_bytes().is_none()).collect();
            match wrong.is_empty() {
                true => Ok(()),
                false => {
                    let wrong = Value::Array(wrong.into_iter().cloned().collect());
                    let wrong = term(&wrong);
                    Err(format!(
                        "ha-mode=\"nodes\" takes a list of strings, {wrong} was not a string"
                    ))
                }
            }
        }
        (Some("nodes"), _) => Err(format!("ha-mode=\"nodes\" takes a list, {} given", given())),
        _ => Err(format!("{} is not a valid ha-mode value", term(mode))),
    }
}

fn word(definition: &Table, name: &str, words: [&str; 2]) -> Result<(), String> {
    match definition.get(name) {
        Some(value) if value.as_str().is_none_or(|it| !words.contains(&it)) => {
            let [one, other] = words;
            Err(format!(
                "{name} must be \"{one}\" or \"{other}\", got {}",
                term(value)
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_suit_the_mode() {
        let all = Table::new().with("ha-mode", "all");
        assert_eq!(check(&all), Ok(()));
        let said = |definition: Table| check(&definition).unwrap_err();
        assert_eq!(
            said(all.clone().with("ha-params", 2)),
            "ha-mode=\"all\" does not take parameters"
        );
        assert_eq!(
            said(Table::new().with("ha-mode", "exactly")),
            "ha-mode=\"exactly\" takes an integer, none given"
        );
        let nodes = Table::new().with("ha-mode", "nodes");
        let mixed = Value::Array(vec![Value::from("a"), Value::from(1)]);
        assert_eq!(
            said(nodes.with("ha-params", mixed)),
            "ha-mode=\"nodes\" takes a list of strings, [1] was not a string"
        );
        assert_eq!(
            said(all.with("ha-sync-mode", "sometimes")),
            "ha-sync-mode must be \"manual\" or \"automatic\", got <<\"sometimes\">>"
        );
    }
}
