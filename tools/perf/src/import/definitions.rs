//! A file of definitions as a broker of many teams has it. It follows from the options alone, so that every broker imports
//! the same.

use super::api::{Api, encoded};
use super::options::Options;
use crate::failure::Failure;
use serde_json::{Value, json};

/// RabbitMQ's hash of a password (four bytes of salt, then SHA-256), as exported files have it: none is computed at import.
const PASSWORD_HASH: &str = "AAECAxtCbchSwcj0V8TqbOvV3muJ4ZHQ7nYrzhJzbpKQfGwT";

/// How many there are of each kind, and what their names begin with.
#[derive(Debug)]
pub struct Definitions {
    prefix: String,
    vhosts: u32,
    users: u32,
    exchanges: u32,
    queues: u32,
    bindings: u32,
    policies: u32,
}

impl Definitions {
    pub fn new(options: &Options, id: &str) -> Self {
        Self {
            prefix: format!("perf-import-{id}"),
            vhosts: options.vhosts,
            users: options.users,
            exchanges: options.exchanges.max(options.vhosts),
            queues: options.queues,
            bindings: options.bindings,
            policies: options.policies,
        }
    }

    /// What all names of virtual hosts and users begin with.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Objects in the file; a user's permissions count as one.
    pub fn objects(&self) -> u64 {
        let kinds = [
            self.vhosts,
            self.users,
            self.users,
            self.exchanges,
            self.queues,
            self.bindings,
            self.policies,
        ];
        kinds.map(u64::from).iter().sum()
    }

    /// The file, in the layout of RabbitMQ's exports.
    pub fn to_json(&self) -> Value {
        let all = |count: u32, object: &dyn Fn(u32) -> Value| (0..count).map(object).collect::<Value>();
        json!({
            "vhosts": all(self.vhosts, &|i| json!({ "name": self.vhost(i) })),
            "users": all(self.users, &|i| json!({
                "name": self.user(i), "password_hash": PASSWORD_HASH,
                "hashing_algorithm": "rabbit_password_hashing_sha256", "tags": [],
            })),
            "permissions": all(self.users, &|i| json!({
                "user": self.user(i), "vhost": self.vhost(i), "configure": "^$", "write": "^orders\\.", "read": ".*",
            })),
            "exchanges": all(self.exchanges, &|i| json!({
                "name": exchange(i), "vhost": self.vhost(i), "type": "topic", "durable": true,
                "auto_delete": false, "internal": false, "arguments": {},
            })),
            "queues": all(self.queues, &|i| json!({
                "name": queue(i), "vhost": self.vhost(i), "durable": true, "auto_delete": false,
                "arguments": arguments(i),
            })),
            "bindings": all(self.bindings, &|i| self.binding(i)),
            "policies": all(self.policies, &|i| json!({
                "name": format!("limit-{i}"), "vhost": self.vhost(i), "pattern": format!("^orders\\.service-{i}\\."),
                "apply-to": "queues", "priority": i % 10, "definition": { "max-length": 100_000, "overflow": "reject-publish" },
            })),
        })
    }

    /// Deletes everything that the file names, whether it was imported or not.
    ///
    /// # Errors
    /// The first refusal; all others were tried.
    pub fn delete(&self, api: &Api) -> Result<(), Failure> {
        let mut result = Ok(());
        for i in 0..self.vhosts {
            let path = format!("/vhosts/{}", encoded(&self.vhost(i)));
            result = result.and(api.delete(&path));
        }
        let users: Vec<String> = (0..self.users).map(|i| self.user(i)).collect();
        if !users.is_empty() {
            let names = json!({ "users": users }).to_string();
            result = result.and(api.post("/users/bulk-delete", &names));
        }
        result
    }

    fn vhost(&self, i: u32) -> String {
        format!("{}-team-{}", self.prefix, i % self.vhosts)
    }

    fn user(&self, i: u32) -> String {
        format!("{}-service-{i}", self.prefix)
    }

    /// From one exchange of the queue's virtual host, in turn, with keys that are used once and keys that many share.
    fn binding(&self, i: u32) -> Value {
        let to = i % self.queues;
        let (vhost, turn) = (to % self.vhosts, i / self.queues);
        let in_vhost = (self.exchanges - vhost).div_ceil(self.vhosts);
        let from = vhost + turn % in_vhost * self.vhosts;
        let key = if i.is_multiple_of(3) {
            format!("orders.*.created.v{}", turn / in_vhost)
        } else {
            format!("orders.{i}.#")
        };
        json!({
            "source": exchange(from), "vhost": self.vhost(to), "destination": queue(to), "destination_type": "queue",
            "routing_key": key, "arguments": {},
        })
    }
}

fn exchange(i: u32) -> String {
    format!("orders.events-{i}")
}

fn queue(i: u32) -> String {
    format!("orders.service-{i}.inbox")
}

/// Half of the queues have some, as in most systems.
fn arguments(i: u32) -> Value {
    match i % 4 {
        0 => {
            json!({ "x-queue-type": "classic", "x-message-ttl": 86_400_000, "x-dead-letter-exchange": "dead-letters" })
        }
        1 => json!({ "x-max-length": 10_000 }),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subcommand::Request;
    use std::collections::BTreeSet;

    fn definitions(line: &str) -> Definitions {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Ok(Request::Run(options)) = Options::read(&words) else {
            panic!("{line}");
        };
        Definitions::new(&options, "x")
    }

    #[test]
    fn every_object_is_there_once_and_refers_to_others_of_its_virtual_host() {
        let definitions =
            definitions("--vhosts 7 --users 5 --exchanges 20 --queues 30 --bindings 100 --policies 9");
        let file = definitions.to_json();
        let of = |kind: &str| file[kind].as_array().unwrap().clone();
        let counted: usize = file
            .as_object()
            .unwrap()
            .values()
            .map(|all| all.as_array().unwrap().len())
            .sum();
        assert_eq!(counted as u64, definitions.objects());
        let places = |kind: &str, name: &str| -> BTreeSet<(String, String)> {
            of(kind)
                .iter()
                .map(|it| (it["vhost"].to_string(), it[name].to_string()))
                .collect()
        };
        let (exchanges, queues) = (places("exchanges", "name"), places("queues", "name"));
        assert!(places("bindings", "source").is_subset(&exchanges));
        assert!(places("bindings", "destination").is_subset(&queues));
        let bindings: BTreeSet<String> = of("bindings").iter().map(Value::to_string).collect();
        assert_eq!(bindings.len(), 100, "no binding is there twice");
    }

    #[test]
    fn each_virtual_host_has_an_exchange() {
        let definitions = definitions("--vhosts 9 --exchanges 0 --queues 9 --bindings 9");
        assert_eq!(definitions.to_json()["exchanges"].as_array().unwrap().len(), 9);
    }
}
