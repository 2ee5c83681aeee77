//! `/api/feature-flags` and `/api/deprecated-features`: RabbitMQ's names for what its nodes agree on before they do it.
//! Here nothing has to be agreed on, so what this version can do is on.

use crate::access::Right;
use crate::call::Call;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use serde_json::{Value, json};

pub const ROUTES: &[Route] = &[
    Route {
        path: "/feature-flags",
        verbs: &[("GET", Right::Management, list)],
    },
    Route {
        path: "/feature-flags/:name/enable",
        verbs: &[("PUT", Right::Administrator, enable)],
    },
    Route {
        path: "/deprecated-features",
        verbs: &[("GET", Right::Management, deprecated)],
    },
    Route {
        path: "/deprecated-features/used",
        verbs: &[("GET", Right::Management, crate::overview::none)],
    },
];

/// The flags of RabbitMQ 4.3 that every node of it has had for long, by name; and which of its applications has them,
/// if not `rabbit`.
const REQUIRED: &[(&str, &str)] = &[
    ("classic_mirrored_queue_version", RABBIT),
    ("classic_queue_type_delivery_support", RABBIT),
    ("detailed_queues_endpoint", "rabbitmq_management"),
    ("direct_exchange_routing_v2", RABBIT),
    ("drop_unroutable_metric", AGENT),
    ("empty_basic_get_metric", AGENT),
    ("feature_flags_v2", RABBIT),
    ("implicit_default_bindings", RABBIT),
    ("khepri_db", RABBIT),
    ("listener_records_in_ets", RABBIT),
    ("maintenance_mode_status", RABBIT),
    ("message_containers", RABBIT),
    ("message_containers_deaths_v2", RABBIT),
    ("quorum_queue", RABBIT),
    ("quorum_queue_non_voters", RABBIT),
    ("rabbit_exchange_type_local_random", RABBIT),
    ("rabbitmq_4.0.0", RABBIT),
    ("rabbitmq_4.1.0", RABBIT),
    ("rabbitmq_4.2.0", RABBIT),
    ("restart_streams", RABBIT),
    ("stream_filtering", RABBIT),
    ("stream_queue", RABBIT),
    ("stream_sac_coordinator_unblock_group", RABBIT),
    ("stream_single_active_consumer", RABBIT),
    ("stream_update_config_command", RABBIT),
    ("tracking_records_in_ets", RABBIT),
    ("user_limits", RABBIT),
    ("virtual_host_metadata", RABBIT),
];

/// Those that are new in it.
const STABLE: &[&str] = &[
    "rabbitmq_4.3.0",
    "tie_binding_to_dest_with_keep_while_cond",
    "topic_binding_projection_v4",
    "topic_binding_projection_v5",
    "track_qq_members_uids",
];

/// What is not built yet: these can't be turned on. Streams have no copies of which one could be led by another node, and a
/// group's active consumer can't be chosen from outside.
const LATER: &[&str] = &["restart_streams", "stream_sac_coordinator_unblock_group"];

const RABBIT: &str = "rabbit";
const AGENT: &str = "rabbitmq_management_agent";

/// What RabbitMQ 4.3 calls deprecated: its name, in which phase it is there, whether it works here, and which application has it.
const DEPRECATED: &[(&str, &str, bool, &str)] = &[
    ("amqp_address_v1", "denied_by_default", false, RABBIT),
    ("amqp_filter_set_bug", "denied_by_default", false, RABBIT),
    ("classic_queue_mirroring", "removed", false, RABBIT),
    ("global_qos", "denied_by_default", true, RABBIT),
    (
        "management_metrics_collection",
        "permitted_by_default",
        true,
        AGENT,
    ),
    ("queue_master_locator", "denied_by_default", true, RABBIT),
    ("ram_node_type", "removed", false, RABBIT),
    ("transient_nonexcl_queues", "permitted_by_default", true, RABBIT),
];

/// All flags: name, application, and how long they have been there.
fn flags() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let required = REQUIRED.iter().map(|(name, by)| (*name, *by, "required"));
    let stable = STABLE.iter().map(|name| (*name, RABBIT, "stable"));
    let mut all: Vec<_> = required.chain(stable).collect();
    all.sort_unstable();
    all.into_iter()
}

fn is_later(name: &str) -> bool {
    LATER.contains(&name)
}

fn list(_: &Call<'_>) -> Result<Reply, Refusal> {
    let row = |(name, by, stability): (&str, &str, &str)| {
        let (state, desc) = match is_later(name) {
            true => ("unavailable", "not built yet"),
            false => ("enabled", "always on"),
        };
        json!({
            "name": name,
            "desc": desc,
            "doc_url": "",
            "state": state,
            "stability": stability,
            "require_level": if stability == "required" { "hard" } else { "none" },
            "experiment_level": "supported",
            "callbacks": [],
            "provided_by": by,
        })
    };
    Ok(Reply::json(&flags().map(row).collect::<Value>()))
}

/// What is on may be turned on again; RabbitMQ's word for a flag that it does not know is the one for what is not built.
fn enable(call: &Call<'_>) -> Result<Reply, Refusal> {
    let name = call.part("name");
    match flags().any(|(known, ..)| known == name) && !is_later(name) {
        true => Ok(Reply::empty(204)),
        false => Err(Refusal::bad_request("unsupported")),
    }
}

fn deprecated(_: &Call<'_>) -> Result<Reply, Refusal> {
    let row = |(name, phase, works, by): &(&str, &str, bool, &str)| {
        json!({
            "name": name,
            "state": if *works { "permitted" } else { "denied" },
            "desc": "",
            "deprecation_phase": phase,
            "doc_url": "",
            "provided_by": by,
        })
    };
    Ok(Reply::json(&DEPRECATED.iter().map(row).collect::<Value>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_named_once_and_what_comes_later_is_a_flag() {
        let names: Vec<&str> = flags().map(|(name, ..)| name).collect();
        assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(LATER.iter().all(|name| names.contains(name)));
        assert!(names.contains(&"khepri_db") && !is_later("rabbitmq_4.3.0"));
        assert!(!is_later("stream_queue") && is_later("restart_streams"));
    }
}
