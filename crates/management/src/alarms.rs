//! `/api/leveret/alarms`: what holds up publishers on the whole node, for whoever may use the API: each page says so.

use crate::access::Right;
use crate::call::Call;
use crate::others::{self, Question};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use broker::NodeStatus;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[Route {
    path: "/leveret/alarms",
    verbs: &[("GET", Right::Management, list)],
}];

fn list(call: &Call<'_>) -> Result<Reply, Refusal> {
    let (node, broker) = (&call.api.options.node, &call.api.broker);
    let mut alarms = in_force(node, &broker.status());
    if broker.is_cut_off() {
        alarms.insert(0, json!({"node": node, "resource": "majority"}));
    }
    for (_, told) in others::ask_all(call, &Question::again(call)) {
        alarms.extend(told.as_array().into_iter().flatten().cloned());
    }
    Ok(Reply::json(&alarms.into()))
}

/// Alarms with the figures that explain them, in bytes; the gravest first.
fn in_force(node: &str, status: &NodeStatus) -> Vec<Value> {
    let mut alarms = Vec::new();
    if status.log_failed {
        alarms.push(json!({"node": node, "resource": "log"}));
    }
    if status.memory_alarm {
        alarms.push(
            json!({"node": node, "resource": "memory", "used": status.memory, "limit": status.memory_limit}),
        );
    }
    if status.disk_alarm {
        alarms.push(json!({"node": node, "resource": "disk", "free": status.disk_free, "limit": status.disk_free_limit}));
    }
    alarms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_in_order_has_no_alarms_and_each_alarm_says_its_figures() {
        let status = |alarm| NodeStatus {
            memory: 9,
            memory_limit: 8,
            memory_alarm: alarm,
            disk_free: 3,
            disk_free_limit: 4,
            disk_alarm: alarm,
            log_failed: alarm,
            ..NodeStatus::default()
        };
        assert_eq!(in_force("n", &status(false)), Vec::<Value>::new());
        let alarms = in_force("n", &status(true));
        assert_eq!(alarms[0]["resource"], "log");
        assert_eq!((&alarms[1]["used"], &alarms[1]["limit"]), (&json!(9), &json!(8)));
        assert_eq!((&alarms[2]["free"], &alarms[2]["limit"]), (&json!(3), &json!(4)));
    }
}
