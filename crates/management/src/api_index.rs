//! `/api/index.html`: the operations of the API as a page for people, made of the same lines as `/api/openapi.json`. RabbitMQ has
//! a page there as well, and shows it to anyone.

use crate::access::Right;
use crate::call::Call;
use crate::openapi::{self, Operation};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Table;
use std::fmt::Write;

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Leveret HTTP API</title>
<style>
:root { color-scheme: light dark; }
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid #8884; padding: 4px 12px 4px 0; text-align: left; vertical-align: top; }
code { overflow-wrap: anywhere; }
</style>
</head>
<body>
<h1>Leveret HTTP API</h1>
<p>It is RabbitMQ's HTTP API; Leveret's own additions are below <code>/api/leveret</code>. Requests carry a user name and a
password (HTTP Basic), or a token. Names in paths are percent-encoded: the virtual host <code>/</code> is
<code>%2F</code>.</p>
<p>The same as a document for tools: <a href="openapi.json">openapi.json</a>. The web UI: <a href="../">overview</a>.</p>
"#;

/// The page about these routes.
pub fn page(call: &Call<'_>, table: Table) -> Result<Reply, Refusal> {
    let page = Reply {
        content_type: "text/html; charset=utf-8",
        ..Reply::text(html(table))
    };
    Ok(page.unless_known(call.header("if-none-match")))
}

/// The page: a table for each kind of object.
fn html(table: Table) -> String {
    let mut html = String::from(HEAD);
    let mut section = "";
    for (operation, right) in openapi::described(table) {
        if operation.section() != section {
            if !section.is_empty() {
                html.push_str("</table>\n");
            }
            section = operation.section();
            let _ = write!(
                html,
                "<h2>{}</h2>\n<table>\n<tr><th>Method</th><th>Path</th><th>Description</th><th>Tag</th></tr>\n",
                escaped(section)
            );
        }
        row(&mut html, &operation, right);
    }
    html.push_str("</table>\n</body>\n</html>\n");
    html
}

fn row(html: &mut String, operation: &Operation, right: Right) {
    let _ = writeln!(
        html,
        "<tr><td>{}</td><td><code>/api{}</code></td><td>{}</td><td>{}</td></tr>",
        operation.verb,
        escaped(&openapi::braced(operation.path)),
        escaped(operation.says),
        openapi::right_name(right),
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;

    #[test]
    fn the_page_has_every_operation_once_and_no_markup_from_a_description() {
        let html = html(ROUTES);
        for (operation, _) in openapi::described(ROUTES) {
            let row = format!(
                "<tr><td>{}</td><td><code>/api{}</code></td>",
                operation.verb,
                openapi::braced(operation.path)
            );
            assert_eq!(html.matches(&row).count(), 1, "{row}");
        }
        assert_eq!(html.matches("<table>").count(), html.matches("</table>").count());
        assert_eq!(escaped("a <b> & c"), "a &lt;b&gt; &amp; c");
    }
}
