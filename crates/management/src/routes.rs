//! The one table of paths, verbs and rights.

use crate::access::Right;
use crate::route::{Route, Table};
use crate::{
    alarms, api_index, application, availability, bindings, browsing, channels, configuration, connections,
    consumers, converting, definitions, events, exchanges, feature_flags, health, limits, login, logs,
    messages, moving, network, nodes, openapi, overview, parameters, permissions, policies, process, queues,
    quorum, rebalancing, single, stop_impact, stream_browsing, stream_members, stream_tracking, streams,
    times_pages, topic_permissions, trace, upkeep, users, vhosts, why,
};

/// All paths, by object.
pub const ROUTES: Table = &[
    overview::ROUTES,
    feature_flags::ROUTES,
    nodes::ROUTES,
    stop_impact::ROUTES,
    vhosts::ROUTES,
    users::ROUTES,
    permissions::ROUTES,
    topic_permissions::ROUTES,
    policies::ROUTES,
    process::ROUTES,
    parameters::ROUTES,
    limits::ROUTES,
    exchanges::ROUTES,
    queues::ROUTES,
    quorum::ROUTES,
    availability::ROUTES,
    rebalancing::ROUTES,
    converting::ROUTES,
    bindings::ROUTES,
    connections::ROUTES,
    channels::ROUTES,
    consumers::ROUTES,
    streams::ROUTES,
    stream_browsing::ROUTES,
    stream_members::ROUTES,
    stream_tracking::ROUTES,
    alarms::ROUTES,
    why::ROUTES,
    messages::ROUTES,
    browsing::ROUTES,
    moving::ROUTES,
    definitions::ROUTES,
    health::ROUTES,
    upkeep::ROUTES,
    application::ROUTES,
    events::ROUTES,
    DESCRIPTIONS,
    logs::ROUTES,
    configuration::ROUTES,
    times_pages::ROUTES,
    trace::ROUTES,
    network::ROUTES,
    login::ROUTES,
    single::ROUTES,
];

/// What is said of this table.
const DESCRIPTIONS: &[Route] = &[
    Route {
        path: "/openapi.json",
        verbs: &[("GET", Right::Management, |call| openapi::document(call, ROUTES))],
    },
    Route {
        path: "/index.html",
        verbs: &[("GET", Right::Anyone, |call| api_index::page(call, ROUTES))],
    },
];

/// A path's route and variable parts.
type RouteMatch = (&'static Route, Vec<(&'static str, String)>);

/// Finds a path's route; a slash at its end does not count.
pub fn find(path: &str) -> Option<RouteMatch> {
    let path = path.strip_prefix("/api")?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let mut routes = ROUTES.iter().copied().flatten();
    routes.find_map(|route| Some((route, route.parts(path)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_objects_may_contain_anything_that_is_encoded() {
        let (route, parts) = find("/api/queues/%2F/a%2Fb%20c").unwrap();
        assert_eq!(route.path, "/queues/:vhost/:name");
        assert_eq!(parts, [("vhost", "/".to_owned()), ("name", "a/b c".to_owned())]);
        assert_eq!(find("/api/queues/").unwrap().0.path, "/queues");
        for unknown in [
            "/",
            "/api",
            "/api//",
            "//",
            "/api/zork",
            "/queues",
            "/api/queues/%/x",
            "/api/whoami/x",
        ] {
            assert!(find(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    fn a_name_may_be_empty_and_one_slash_at_the_end_does_not_count() {
        let found = |path: &str| {
            let (route, parts) = find(path).unwrap();
            let parts: Vec<String> = parts.into_iter().map(|(_, value)| value).collect();
            (route.path, parts.join("|"))
        };
        for (path, route, parts) in [
            ("/api/exchanges/%2F/", "/exchanges/:vhost", "/"),
            ("/api/exchanges/%2F//", "/exchanges/:vhost/:exchange", "/|"),
            (
                "/api/exchanges/%2F//publish",
                "/exchanges/:vhost/:exchange/publish",
                "/|",
            ),
            (
                "/api/bindings/%2F/e//q/Q",
                "/bindings/:vhost/e/:source/q/:queue",
                "/||Q",
            ),
            ("/api/queues//q", "/queues/:vhost/:name", "|q"),
        ] {
            assert_eq!(found(path), (route, parts.to_owned()), "{path}");
        }
    }

    #[test]
    fn no_path_has_two_routes() {
        let paths: Vec<_> = ROUTES.iter().copied().flatten().map(|route| route.path).collect();
        for (at, path) in paths.iter().enumerate() {
            assert!(!paths[..at].contains(path), "{path} is there twice");
            let concrete = format!("/api{}", path.replace(':', "x"));
            assert_eq!(find(&concrete).unwrap().0.path, *path);
        }
    }

    #[test]
    fn every_verb_of_every_path_has_a_row_in_the_table_of_who_may_do_what() {
        let table = include_str!("../../../tests/authorizing/endpoints.txt");
        let rows: Vec<(&str, &str)> = table
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| {
                let mut words = line.split(' ');
                let (verb, path) = (words.next()?, words.next()?);
                let path = path.split('?').next()?;
                // What stands in braces is filled in when the row is played.
                let (route, _) = find(&format!("/api{path}"))?;
                Some((verb, route.path))
            })
            .collect();
        for route in ROUTES.iter().copied().flatten() {
            for (verb, ..) in route.verbs {
                assert!(
                    rows.contains(&(verb, route.path)),
                    "{verb} {} has no row in tests/authorizing/endpoints.txt: write one, with `ours RIGHT` behind it if RabbitMQ \
                     has no such endpoint, and run `tests/authorize BINARY`",
                    route.path
                );
            }
        }
    }
}
