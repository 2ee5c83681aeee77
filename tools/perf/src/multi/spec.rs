//! A specification: which loads to run one after the other.

use super::properties::{camel_case, property};
use serde_json::{Map, Value};

/// Seconds between two samples, and the address, where a scenario says nothing.
const INTERVAL_S: f64 = 1.0;
const URI: &str = "amqp://localhost";

/// One scenario.
#[derive(Debug, PartialEq)]
pub struct Scenario {
    pub name: String,
    pub kind: Kind,
    pub uri: String,
    pub interval_s: f64,
    /// The loads, by PerfTest's names of properties. They run one after the other and count as one.
    pub loads: Vec<Map<String, Value>>,
}

/// What a scenario does with its loads.
#[derive(Debug, PartialEq)]
pub enum Kind {
    Simple,
    /// Runs them with all combinations of the variables' values.
    Varying(Vec<Variable>),
    /// Runs the first one without a limit, then at rates around the one that it reached.
    RateVsLatency,
}

/// A property that is varied.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    pub property: String,
    pub values: Vec<Value>,
}

/// Reads a specification. PerfTest's examples are not quite JSON: they have single quotes.
///
/// # Errors
/// What is wrong, in PerfTest's words where it has some.
pub fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let value: Value =
        json5::from_str(text).map_err(|error| format!("Input json file could not be parsed: {error}"))?;
    let Value::Array(scenarios) = value else {
        return Err(
            "Input json file could not be parsed: it must be a list of scenarios, [{…}, …]".to_owned(),
        );
    };
    scenarios.iter().map(scenario).collect()
}

fn scenario(value: &Value) -> Result<Scenario, String> {
    let name = required(value, "name", Value::as_str)?.to_owned();
    let told = |why: String| format!("scenario {name}: {why}");
    let kind = match required(value, "type", Value::as_str).map_err(told)? {
        "simple" => Kind::Simple,
        "rate-vs-latency" => Kind::RateVsLatency,
        "varying" => {
            let variables = required(value, "variables", Value::as_array).map_err(told)?;
            Kind::Varying(
                variables
                    .iter()
                    .map(variable)
                    .collect::<Result<_, _>>()
                    .map_err(told)?,
            )
        }
        other => {
            let why = format!("Type {other} was not simple, varying or rate-vs-latency");
            return Err(told(why));
        }
    };
    let interval_ms = optional(value, "interval", Value::as_f64).map_err(told)?;
    let uri = optional(value, "uri", Value::as_str)
        .map_err(told)?
        .unwrap_or(URI)
        .to_owned();
    let loads = required(value, "params", Value::as_array).map_err(told)?;
    let loads = loads.iter().map(load).collect::<Option<Vec<_>>>();
    let loads = loads
        .filter(|it| !it.is_empty())
        .ok_or_else(|| told("params must be a list of objects, [{…}]".to_owned()))?;
    Ok(Scenario {
        kind,
        uri,
        interval_s: interval_ms.map_or(INTERVAL_S, |ms| ms / 1_000.0),
        loads,
        name,
    })
}

fn load(value: &Value) -> Option<Map<String, Value>> {
    let load = value.as_object()?;
    Some(
        load.iter()
            .map(|(name, value)| (property(name), value.clone()))
            .collect(),
    )
}

fn variable(value: &Value) -> Result<Variable, String> {
    let kind = optional(value, "type", Value::as_str)?.unwrap_or("multicast");
    if kind != "multicast" {
        return Err(format!("Type {kind} was not multicast"));
    }
    // PerfTest reads all numbers as decimal ones, which shows in the keys of its results.
    let decimal = |value: &Value| value.as_f64().map_or_else(|| value.clone(), Value::from);
    let values: Vec<Value> = required(value, "values", Value::as_array)?
        .iter()
        .map(decimal)
        .collect();
    if values.is_empty() {
        return Err("a variable has no values".to_owned());
    }
    Ok(Variable {
        property: camel_case(required(value, "name", Value::as_str)?),
        values,
    })
}

fn required<'a, T>(value: &'a Value, key: &str, of: fn(&'a Value) -> Option<T>) -> Result<T, String> {
    optional(value, key, of)?.ok_or_else(|| format!("Key {key} not found"))
}

fn optional<'a, T>(value: &'a Value, key: &str, of: fn(&'a Value) -> Option<T>) -> Result<Option<T>, String> {
    match value.get(key) {
        None => Ok(None),
        Some(found) => of(found)
            .map(Some)
            .ok_or_else(|| format!("{key} can't be {found}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn specifications_in_perftests_style_are_read() {
        let text = "[ // loads\n {'name': 'a', 'type': 'simple', 'interval': 500, 'params': [{'time-limit': 30, 'rate': 5}]},\n
            {'name': 'v', 'type': 'varying', 'uri': 'amqp://h', 'params': [{'consumer-count': 0}],
             'variables': [{'name': 'min-msg-size', 'values': [0, 100]}]},
            {name: 'r', type: \"rate-vs-latency\", params: [{}],}]";
        let scenarios = read(text).unwrap();
        assert_eq!((scenarios[0].interval_s, scenarios[0].uri.as_str()), (0.5, URI));
        assert_eq!(
            Value::Object(scenarios[0].loads[0].clone()),
            json!({ "timeLimit": 30, "producerRateLimit": 5 })
        );
        let Kind::Varying(variables) = &scenarios[1].kind else {
            panic!("not varying");
        };
        assert_eq!(
            (variables[0].property.as_str(), variables[0].values.len()),
            ("minMsgSize", 2)
        );
        assert_eq!(scenarios[2].kind, Kind::RateVsLatency);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_scenario() {
        for (text, wanted) in [
            ("{'name': 'a'}", "must be a list"),
            ("[{", "could not be parsed"),
            ("[{'type': 'simple'}]", "Key name not found"),
            (
                "[{'name': 'a', 'type': 'simpl', 'params': []}]",
                "scenario a: Type simpl was not simple",
            ),
            (
                "[{'name': 'a', 'type': 'simple', 'params': []}]",
                "list of objects",
            ),
            (
                "[{'name': 'a', 'type': 'simple', 'params': {}}]",
                "params can't be",
            ),
            (
                "[{'name': 'a', 'type': 'varying', 'params': [{}]}]",
                "Key variables not found",
            ),
            (
                "[{'name': 'a', 'type': 'varying', 'params': [{}], 'variables': [{'name': 'x', 'values': []}]}]",
                "no values",
            ),
        ] {
            let said = read(text).unwrap_err();
            assert!(said.contains(wanted), "{text}: {said}");
        }
    }
}
