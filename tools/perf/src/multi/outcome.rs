//! The results of a scenario, as PerfTest lays them out.

use super::stats::Stats;
use serde_json::{Map, Value, json};

/// What came of a scenario.
#[derive(Debug)]
pub struct Outcome {
    pub name: String,
    /// The properties that were varied; none of a simple scenario.
    pub variables: Vec<String>,
    /// One for each combination of values.
    pub points: Vec<Point>,
}

/// The loads with one value of each variable.
#[derive(Debug)]
pub struct Point {
    pub values: Vec<Value>,
    pub stats: Stats,
}

impl Outcome {
    /// The results of a simple scenario, or `dimensions`, `dimension-values` and nested `data` of a varying one.
    pub fn to_json(&self) -> Value {
        if self.variables.is_empty() {
            return self
                .points
                .first()
                .map_or(Value::Null, |point| point.stats.to_json());
        }
        let mut values = Map::new();
        for (index, name) in self.variables.iter().enumerate() {
            let mut known: Vec<String> = Vec::new();
            for shown in self
                .points
                .iter()
                .filter_map(|point| point.values.get(index))
                .map(shown)
            {
                if !known.contains(&shown) {
                    known.push(shown);
                }
            }
            values.insert(name.clone(), json!(known));
        }
        let mut data = Value::Object(Map::new());
        for point in &self.points {
            let mut place = &mut data;
            for value in &point.values {
                place = &mut place[shown(value)];
            }
            *place = point.stats.to_json();
        }
        json!({ "dimensions": self.variables, "dimension-values": values, "data": data })
    }
}

/// A value as a key: all numbers of a specification are decimal in PerfTest's eyes, those that it computes itself are not.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_u64() => number.as_f64().map_or_else(String::new, java_decimal),
        other => other.to_string(),
    }
}

/// A number as Java writes a `double`.
fn java_decimal(number: f64) -> String {
    let size = number.abs();
    if number != 0.0 && !(1e-3..1e7).contains(&size) {
        let text = format!("{number:E}");
        return match text.split_once('E') {
            Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0E{exponent}"),
            _ => text,
        };
    }
    format!("{number:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(values: &[Value]) -> Point {
        Point {
            values: values.to_vec(),
            stats: Stats::default(),
        }
    }

    #[test]
    fn values_are_nested_by_their_java_texts() {
        let outcome = Outcome {
            name: "v".to_owned(),
            variables: vec!["minMsgSize".to_owned(), "confirm".to_owned()],
            points: vec![
                point(&[json!(0.0), json!(1.0)]),
                point(&[json!(100.5), json!(1.0)]),
            ],
        };
        let json = outcome.to_json();
        assert_eq!(json["dimensions"], json!(["minMsgSize", "confirm"]));
        assert_eq!(
            json["dimension-values"],
            json!({ "minMsgSize": ["0.0", "100.5"], "confirm": ["1.0"] })
        );
        assert_eq!(json["data"]["100.5"]["1.0"]["send-msg-rate"], 0.0);
    }

    #[test]
    fn numbers_read_as_in_java() {
        let table = [
            (json!(1.0), "1.0"),
            (json!(12_345_678.0), "1.2345678E7"),
            (json!(10_000_000.0), "1.0E7"),
            (json!(0.0001), "1.0E-4"),
            (json!(7), "7"),
            (json!("a"), "a"),
            (json!(true), "true"),
        ];
        for (value, wanted) in table {
            assert_eq!(shown(&value), wanted);
        }
    }
}
