//! What a configuration puts before every path of the API and of the pages: `management.path_prefix`.

use hyper::Uri;
use hyper::http::uri::PathAndQuery;

/// A path by what stands before it.
#[derive(Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// The address without it.
    Below(Uri),
    /// A page that is there instead; its own addresses are relative, so the slash counts.
    Elsewhere(String),
    /// Nothing is there.
    Outside,
}

/// Takes the prefix away.
pub fn take(uri: &Uri, prefix: &str) -> PathMatch {
    let whole = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let below = match uri.path() {
        _ if prefix.is_empty() => Some(whole),
        "/" => return PathMatch::Elsewhere(format!("{prefix}/")),
        path if path == prefix => return PathMatch::Elsewhere(format!("{prefix}/")),
        _ => whole.strip_prefix(prefix).filter(|rest| rest.starts_with('/')),
    };
    let below: Option<Uri> = below.and_then(|below| below.parse().ok());
    match below {
        // RabbitMQ leads to the description of the API from here.
        Some(uri) if matches!(uri.path(), "/api" | "/api/") => {
            PathMatch::Elsewhere(format!("{prefix}/api/index.html"))
        }
        Some(uri) => PathMatch::Below(uri),
        None => PathMatch::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_prefix_is_there() {
        let ask = |path: &str, prefix: &str| take(&path.parse().unwrap(), prefix);
        let below = |path: &str| PathMatch::Below(path.parse().unwrap());
        assert_eq!(
            ask("/mq/api/queues/%2F?page=1", "/mq"),
            below("/api/queues/%2F?page=1")
        );
        assert_eq!(ask("/mq/", "/mq"), below("/"));
        assert_eq!(ask("/a/b/icon.svg", "/a/b"), below("/icon.svg"));
        assert_eq!(ask("/api/x", ""), below("/api/x"));
        for to_pages in ["/", "/mq", "/?x=1"] {
            assert_eq!(
                ask(to_pages, "/mq"),
                PathMatch::Elsewhere("/mq/".into()),
                "{to_pages}"
            );
        }
        for (root, prefix) in [("/api", ""), ("/api/", ""), ("/mq/api?x", "/mq")] {
            assert_eq!(
                ask(root, prefix),
                PathMatch::Elsewhere(format!("{prefix}/api/index.html")),
                "{root}"
            );
        }
        for outside in ["/api/overview", "/mqx/api", "/m"] {
            assert_eq!(ask(outside, "/mq"), PathMatch::Outside, "{outside}");
        }
    }
}
