//! `/api/openapi.json`: what the API can do, for generators of clients and for the web UI. It is made of the one table of routes,
//! and of what `operations.txt` says about each verb; so is the page of `api_index`.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Table;
use serde_json::{Map, Value, json};

const OPERATIONS: &str = include_str!("operations.txt");

/// What lists take.
const PAGE: &[(&str, &str)] = &[
    ("page", "integer"),
    ("page_size", "integer"),
    ("name", "string"),
    ("use_regex", "boolean"),
    ("sort", "string"),
    ("sort_reverse", "boolean"),
    ("columns", "string"),
];
/// What objects with rates take.
const SAMPLES: &[(&str, &str)] = &[
    ("lengths_age", "integer"),
    ("lengths_incr", "integer"),
    ("msg_rates_age", "integer"),
    ("msg_rates_incr", "integer"),
    ("data_rates_age", "integer"),
    ("data_rates_incr", "integer"),
    ("node_stats_age", "integer"),
    ("node_stats_incr", "integer"),
];

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The verb in capitals.
    pub verb: &'static str,
    /// The path below `/api`, as its route has it.
    pub path: &'static str,
    /// A sentence.
    pub says: &'static str,
    /// Parameters, as `operations.txt` writes them.
    takes: &'static str,
}

/// The operations of all lines, in their order. A line that cannot be read is left out; a test finds it.
fn operations() -> impl Iterator<Item = Operation> {
    let lines = OPERATIONS.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut parts = line.split('|').map(str::trim);
        let (verb, path) = parts.next()?.split_once(' ')?;
        Some(Operation {
            verb,
            path,
            says: parts.next()?,
            takes: parts.next().unwrap_or_default(),
        })
    })
}

/// What each verb of each route does and who may use it, in the order of the routes.
pub fn described(table: Table) -> impl Iterator<Item = (Operation, Right)> {
    let verbs = table.iter().copied().flatten();
    let verbs = verbs.flat_map(|route| {
        route
            .verbs
            .iter()
            .map(|(verb, right, _)| (route.path, *verb, *right))
    });
    verbs.filter_map(|(path, verb, right)| {
        let operation = operations().find(|it| it.verb == verb && it.path == path)?;
        Some((operation, right))
    })
}

/// The document about these routes.
pub fn document(call: &Call<'_>, table: Table) -> Result<Reply, Refusal> {
    Ok(Reply::json(&json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Leveret HTTP API",
            "description": "RabbitMQ's management API, and what is Leveret's own below /leveret.",
            "version": call.api.options.rabbitmq_version,
        },
        "servers": [{"url": format!("{}/api", call.api.options.path_prefix)}],
        "security": [{"basic": []}, {"bearer": []}],
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
            "schemas": {
                "Refusal": {
                    "type": "object",
                    "properties": {"error": {"type": "string"}, "reason": {}},
                },
            },
        },
        "paths": paths(table),
    })))
}

fn paths(table: Table) -> Map<String, Value> {
    let mut paths = Map::new();
    for (operation, right) in described(table) {
        let verbs = paths.entry(braced(operation.path)).or_insert_with(|| json!({}));
        verbs[operation.verb.to_lowercase()] = operation.describe(right);
    }
    paths
}

/// A path with its variable parts in braces.
pub fn braced(path: &str) -> String {
    let parts = path.split('/').map(|part| match part.strip_prefix(':') {
        Some(name) => format!("{{{name}}}"),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

/// A kind of value as a schema; `any` says nothing.
fn schema(kind: &str) -> Value {
    match kind {
        "any" => json!({}),
        "array" => json!({"type": "array", "items": {}}),
        _ => json!({"type": kind}),
    }
}

impl Operation {
    /// The kind of object that it is about: the first part of the path.
    pub fn section(&self) -> &'static str {
        let path = self.path.trim_start_matches('/');
        path.split('/').next().unwrap_or_default()
    }

    fn describe(&self, right: Right) -> Value {
        let variable = self.path.split('/').filter_map(|part| part.strip_prefix(':'));
        let in_path = variable
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": schema("string")}));
        let in_query = self
            .query()
            .into_iter()
            .map(|(name, kind)| json!({"name": name, "in": "query", "schema": schema(kind)}));
        let mut operation = json!({
            "summary": self.says,
            "operationId": self.id(),
            "tags": [self.section()],
            "parameters": in_path.chain(in_query).collect::<Vec<_>>(),
            "responses": self.responses(),
            "x-right": right_name(right),
        });
        if right == Right::Anyone {
            operation["security"] = json!([]);
        }
        if let Some(body) = self.body() {
            operation["requestBody"] = json!({
                "required": body.get("required").is_some(),
                "content": {"application/json": {"schema": body}},
            });
        }
        operation
    }

    /// A name that no other verb of any path has, for generated functions.
    fn id(&self) -> String {
        let mut id = self.verb.to_lowercase();
        for part in self.path.split(['/', '-', '.']).filter(|part| !part.is_empty()) {
            id.push('_');
            id.push_str(&part.replace(':', "by_"));
        }
        id
    }

    fn query(&self) -> Vec<(&'static str, &'static str)> {
        let mut found = Vec::new();
        for name in self.takes.split(' ').filter_map(|token| token.strip_prefix('?')) {
            match name {
                "page" => found.extend(PAGE),
                "samples" => found.extend(SAMPLES),
                _ => found.extend(name.split_once(':')),
            }
        }
        found
    }

    fn body(&self) -> Option<Value> {
        let members = self.takes.split(' ').filter(|token| !token.starts_with('?'));
        let members: Vec<(&str, &str)> = members.filter_map(|token| token.split_once(':')).collect();
        if members.is_empty() {
            return None;
        }
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (name, kind) in members {
            let must = kind.strip_suffix('!');
            if must.is_some() {
                required.push(name);
            }
            // A document of any members.
            if name != "any" {
                properties.insert(name.to_owned(), schema(must.unwrap_or(kind)));
            }
        }
        let mut body = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            body["required"] = required.into();
        }
        Some(body)
    }

    fn responses(&self) -> Value {
        let refusal = |says: &str| json!({"description": says, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}});
        let json = |says: &str| json!({"description": says, "content": {"application/json": {"schema": {}}}});
        let mut responses = Map::new();
        let mut put = |status: &str, reply: Value| responses.insert(status.to_owned(), reply);
        match self.verb {
            "PUT" => {
                put("201", json!({"description": "made"}));
                put("204", json!({"description": "done"}));
            }
            "DELETE" => {
                put("204", json!({"description": "gone"}));
            }
            "POST" => {
                put("200", json("done"));
                put("201", json!({"description": "made"}));
                put("204", json!({"description": "done"}));
            }
            _ => {
                put("200", json("as asked"));
            }
        }
        put("401", refusal("not logged in, or not permitted"));
        if self.path.contains(':') {
            put(
                "404",
                refusal("the object does not exist, or the user may not see it"),
            );
        }
        if self.verb != "GET" || self.query().iter().any(|(name, _)| *name == "page") {
            put("400", refusal("the request is invalid"));
        }
        if self.path.contains("/health") {
            put("503", refusal("not well"));
        }
        responses.into()
    }
}

/// Who may make a request, by RabbitMQ's tags.
pub fn right_name(right: Right) -> &'static str {
    match right {
        Right::Anyone => "none",
        Right::Management => "management",
        Right::VhostOrMonitor => "management, in the virtual host; or monitoring",
        Right::Vhost => "management, in the virtual host",
        Right::Policymaker => "policymaker, in the virtual host",
        Right::Monitor => "monitoring",
        Right::Administrator => "administrator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;
    use std::collections::BTreeSet;

    #[test]
    fn every_verb_of_every_route_is_described_and_nothing_else() {
        let routes: BTreeSet<(&str, &str)> = ROUTES
            .iter()
            .copied()
            .flatten()
            .flat_map(|route| route.verbs.iter().map(|(verb, ..)| (route.path, *verb)))
            .collect();
        let described: Vec<(&str, &str)> = operations().map(|it| (it.path, it.verb)).collect();
        let unique: BTreeSet<(&str, &str)> = described.iter().copied().collect();
        assert_eq!(
            described.len(),
            unique.len(),
            "a line of operations.txt is there twice"
        );
        let missing: Vec<_> = routes.difference(&unique).collect();
        assert!(missing.is_empty(), "operations.txt has no line for {missing:?}");
        let stale: Vec<_> = unique.difference(&routes).collect();
        assert!(stale.is_empty(), "no route is what operations.txt has: {stale:?}");
        let lines = OPERATIONS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(lines.count(), described.len(), "a line cannot be read");
    }

    #[test]
    fn what_an_operation_takes_is_of_a_kind_that_json_has() {
        let kinds = ["string", "integer", "boolean", "object", "array", "any"];
        for operation in operations() {
            assert!(operation.says.ends_with('.'), "{operation:?}");
            for token in operation.takes.split(' ').filter(|token| !token.is_empty()) {
                let kind = token.trim_end_matches('!').split_once(':').map(|(_, kind)| kind);
                let known =
                    ["?page", "?samples"].contains(&token) || kind.is_some_and(|it| kinds.contains(&it));
                assert!(known, "{token} of {operation:?}");
            }
        }
    }

    #[test]
    fn the_document_has_parameters_bodies_and_names_of_their_own() {
        let paths = paths(ROUTES);
        let queue = &paths["/queues/{vhost}/{name}"];
        assert_eq!(queue["put"]["parameters"][1]["name"], "name");
        let body = &queue["put"]["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body["properties"]["durable"]["type"], "boolean");
        let publish = &paths["/exchanges/{vhost}/{exchange}/publish"]["post"]["requestBody"];
        assert_eq!(publish["required"], true);
        assert_eq!(paths["/queues"]["get"]["parameters"][0]["name"], "page");
        assert_eq!(paths["/overview"]["get"]["x-right"], "management");
        let ids: Vec<String> = operations().map(|it| it.id()).collect();
        let unique: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "two operations have the same name");
    }
}
