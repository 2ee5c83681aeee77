//! Where the node's machine has addresses, and by which certificates the node is known.

use crate::ask::Ask;
use crate::command::{Command, Section::Configuration, Section::Monitoring};
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Map, Value, json};

const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(Configuration, "certificates", (0, 0), "", certificates)
        .about("Shows the certificates of all TLS listeners")
        .more("Includes subject, issuer, serial number and validity.")
        .of(DIAGNOSTICS),
    Command::new(Monitoring, "list_network_interfaces", (0, 0), "", interfaces)
        .about("Lists the network interfaces of the node's machine")
        .options(&["offline"])
        .of(DIAGNOSTICS),
];

/// What a listener's file holds: the certificates as text, what is in them, or why they can't be read.
fn file(listener: &Value, member: &str) -> (Value, Value) {
    let file = &listener[member];
    if !file["error"].is_null() {
        return (file["error"].clone(), json!([]));
    }
    let Some(certificates) = file["certificates"].as_array() else {
        return (Value::Null, json!([]));
    };
    let whole: String = certificates
        .iter()
        .filter_map(|certificate| certificate["pem"].as_str())
        .collect();
    let mut told = certificates.clone();
    for certificate in &mut told {
        if let Value::Object(certificate) = certificate {
            certificate.remove("pem");
        }
    }
    (whole.into(), told.into())
}

/// A listener as RabbitMQ shows it, with what the certificates say.
fn listener(found: &Value) -> Value {
    let mut shown = super::node::listener(found);
    for member in ["certfile", "cacertfile"] {
        let (whole, told) = file(found, member);
        shown[member] = whole;
        shown[format!("{member}_certificates")] = told;
    }
    shown
}

fn certificates(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Certificates of node {} ...", ask.node()));
    let found = ask.get("/leveret/certificates")?;
    let listeners: Vec<Value> = found.as_array().into_iter().flatten().map(listener).collect();
    let text = match listeners.is_empty() {
        true => "#{}".to_owned(),
        false => crate::output::term(&json!(listeners)),
    };
    Ok(Output::Told(text, listeners.into()))
}

fn interfaces(ask: &Ask<'_>) -> Result<Output, Failure> {
    if ask.line.has("offline") {
        let text =
            "the list comes from the node; without a running node, use the system's tools (ip address)";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let node = ask.node();
    ask.say(format!("Asking node {node} to report its network interfaces ..."));
    let found = ask.get("/leveret/interfaces")?;
    let interfaces = found.as_array().map(Vec::as_slice).unwrap_or_default();
    if interfaces.is_empty() {
        let text = format!("Node {node} reported no network interfaces");
        return Ok(Output::Told(
            text,
            json!({"result": "ok", "node": node, "interfaces": {}}),
        ));
    }
    let text: String = interfaces.iter().map(lines).collect();
    let members: Map<String, Value> = interfaces
        .iter()
        .map(|interface| (super::text(interface, "name").to_owned(), members(interface)))
        .collect();
    let message = format!("Node {node} reported network interfaces");
    let document = json!({"result": "ok", "message": message, "interfaces": members});
    Ok(Output::Told(text, document))
}

fn flags(interface: &Value) -> String {
    let flags = interface["flags"].as_array().into_iter().flatten();
    flags.filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

/// The members of an address in the order in which RabbitMQ tells them.
const ADDRESS: [&str; 3] = ["broadaddr", "netmask", "addr"];

/// RabbitMQ tells the last address first and the flags last.
fn lines(interface: &Value) -> String {
    let mut text = format!("Interface {}\n\n", super::text(interface, "name"));
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name}: {value}\n"));
        }
    };
    line("hwaddr", super::text(interface, "hwaddr"));
    let addresses = interface["addresses"].as_array().into_iter().flatten();
    for address in addresses.rev() {
        for name in ADDRESS {
            line(name, super::text(address, name));
        }
    }
    line("flags", &flags(interface));
    text.push_str("\n\n");
    text
}

/// An interface as JSON: as in RabbitMQ, the last of its addresses; all of them stand in `addresses`.
fn members(interface: &Value) -> Value {
    let mut members = json!({"flags": flags(interface)});
    let addresses = &interface["addresses"];
    for address in addresses.as_array().into_iter().flatten() {
        for name in ADDRESS {
            if let Some(value) = address.get(name) {
                members[name] = value.clone();
            }
        }
    }
    let hardware = super::text(interface, "hwaddr");
    if !hardware.is_empty() {
        members["hwaddr"] = hardware.into();
    }
    members["addresses"] = addresses.clone();
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_told_as_rabbitmq_tells_it() {
        let interface = json!({"name": "eth0", "flags": ["up", "running"], "hwaddr": "2:FC:0:0:0:1", "addresses": [
            {"addr": "192.0.2.2", "netmask": "255.255.255.0", "broadaddr": "192.0.2.255"},
            {"addr": "fd00::2", "netmask": "ffff:ffff:ffff:ffff::"},
        ]});
        assert_eq!(
            lines(&interface),
            "Interface eth0\n\nhwaddr: 2:FC:0:0:0:1\nnetmask: ffff:ffff:ffff:ffff::\naddr: fd00::2\nbroadaddr: 192.0.2.255\n\
             netmask: 255.255.255.0\naddr: 192.0.2.2\nflags: up, running\n\n\n"
        );
        let members = members(&interface);
        assert_eq!(
            (&members["addr"], &members["broadaddr"]),
            (&json!("fd00::2"), &json!("192.0.2.255"))
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_in_place_of_its_certificates() {
        let found = json!({"protocol": "amqp/ssl", "port": 5671, "ip_address": "::",
            "certfile": {"path": "a", "certificates": [{"subject": "CN=a", "pem": "PEM\n"}]}, "cacertfile": {"path": "b", "error": "gone"}});
        let shown = listener(&found);
        assert_eq!(
            (&shown["certfile"], &shown["cacertfile"]),
            (&json!("PEM\n"), &json!("gone"))
        );
        assert_eq!(shown["certfile_certificates"], json!([{"subject": "CN=a"}]));
        assert_eq!(shown["interface"], "[::]");
    }
}
