//! `/api/leveret/interfaces` and `/api/leveret/certificates`: where the node's machine has addresses, and the
//! certificates by which the node's open listeners show who they are.

use crate::access::Right;
use crate::call::Call;
use crate::others;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Route;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use listener::interfaces::{self, Interface};
use listener::{Certificate, expiry};
use serde_json::{Value, json};
use std::path::Path;

/// How many characters stand on a line of PEM.
const PEM_LINE: usize = 64;

pub const ROUTES: &[Route] = &[
    Route {
        path: "/leveret/interfaces",
        verbs: &[("GET", Right::Administrator, list_interfaces)],
    },
    Route {
        path: "/leveret/certificates",
        verbs: &[("GET", Right::Monitor, certificates)],
    },
];

fn list_interfaces(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let found = interfaces::all()
        .map_err(|error| Refusal::Internal(format!("the network interfaces could not be read: {error}")))?;
    Ok(Reply::json(&found.iter().map(interface).collect()))
}

fn interface(interface: &Interface) -> Value {
    let hardware: Vec<String> = interface
        .hardware
        .iter()
        .map(|byte| format!("{byte:X}"))
        .collect();
    let addresses = interface.addresses.iter();
    let addresses: Vec<Value> = addresses
        .map(|address| {
            let mut shown = json!({"addr": address.ip.to_string(), "netmask": address.netmask().to_string()});
            if let Some(everybody) = address.broadcast {
                shown["broadaddr"] = everybody.to_string().into();
            }
            shown
        })
        .collect();
    json!({
        "name": interface.name,
        "flags": interface.flags,
        "hwaddr": hardware.join(":"),
        "addresses": addresses,
    })
}

/// The certificates of the listeners that speak TLS, as their files have them now. Nothing else of the files is shown:
/// a key may stand there.
fn certificates(call: &Call<'_>) -> Result<Reply, Refusal> {
    if let Some(told) = others::of_named_node(call)? {
        return Ok(told);
    }
    let endpoints = call.api.options.listeners.iter();
    let found = endpoints.filter_map(|endpoint| {
        let options = endpoint.tls.as_ref()?.options();
        Some(json!({
            "node": call.api.options.node,
            "protocol": endpoint.listed_protocol(),
            "ip_address": endpoint.address.host(),
            "port": endpoint.address.port(),
            "certfile": options.certificate.as_deref().map(file),
            "cacertfile": options.authorities.as_deref().map(file),
        }))
    });
    Ok(Reply::json(&found.collect()))
}

fn file(path: &Path) -> Value {
    match expiry::certificates(path) {
        Ok(found) => json!({
            "path": path.display().to_string(),
            "certificates": found.iter().map(|certificate| shown(certificate)).collect::<Value>(),
        }),
        Err(error) => json!({"path": path.display().to_string(), "error": error}),
    }
}

fn shown(der: &[u8]) -> Value {
    let mut shown = match Certificate::parse(der) {
        Some(certificate) => json!({
            "subject": certificate.subject,
            "issuer": certificate.issuer,
            "serial_number": certificate.serial_number,
            "validity": certificate.validity,
        }),
        None => json!({}),
    };
    shown["pem"] = pem(der).into();
    shown
}

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_in_lines_of_64_characters() {
        let lines: Vec<String> = pem(&[7; 60]).lines().map(str::to_owned).collect();
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, [27, 64, 16, 25]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_the_reason() {
        let shown = file(Path::new("/nowhere/server.pem"));
        assert_eq!(shown["path"], "/nowhere/server.pem");
        assert!(shown["error"].is_string(), "{shown}");
    }

    #[test]
    fn interfaces_are_told_in_rabbitmqs_words() {
        let shown = interface(
            &interfaces::all()
                .unwrap()
                .into_iter()
                .find(|it| it.name == "lo")
                .unwrap(),
        );
        assert_eq!(shown["hwaddr"], "0:0:0:0:0:0");
        assert_eq!(
            shown["addresses"][0],
            json!({"addr": "127.0.0.1", "netmask": "255.0.0.0"})
        );
    }
}
