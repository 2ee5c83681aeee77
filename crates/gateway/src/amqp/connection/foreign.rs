//! What others speak who come to the port of AMQP 0-9-1, and what to do about it. For the log: they get our protocol header.

/// What `header` is the beginning of.
pub fn name(header: [u8; 8]) -> &'static str {
    match &header {
        b"AMQP\0\x01\0\0" | b"AMQP\x02\x01\0\0" | b"AMQP\x03\x01\0\0" => {
            "AMQP 1.0, which this version does not have: use a client of AMQP 0-9-1"
        }
        [b'A', b'M', b'Q', b'P', ..] => "another version of AMQP: use a client of AMQP 0-9-1",
        [0x10, _, 0, 4, b'M', b'Q', ..]
        | [0x10, _, _, 0, 4, b'M', b'Q', ..]
        | [0x10, _, 0, 6, b'M', b'Q', ..]
        | [0x10, _, _, 0, 6, b'M', b'Q', ..] => "MQTT, which this version does not have",
        // The length of a frame, then the command `PeerProperties` in its first version.
        [0, _, _, _, 0, 0x11, 0, 1] => "RabbitMQ's stream protocol, which this version does not have",
        [0x16, 3, 0..=4, ..] => "TLS: it belongs on a port of `listeners.ssl`, mostly 5671",
        [b'G', b'E', b'T', b' ', ..]
        | [b'P', b'U', b'T', b' ', ..]
        | [b'P', b'O', b'S', b'T', b' ', ..]
        | [b'H', b'E', b'A', b'D', b' ', ..]
        | b"DELETE /"
        | b"OPTIONS "
        | b"PRI * HT" => {
            "HTTP: the HTTP API and the web UI have a port of their own (`management.tcp.port`), mostly 15672"
        }
        b"CONNECT\n" | b"CONNECT\r" | [b'S', b'T', b'O', b'M', b'P', b'\n' | b'\r', ..] => {
            "STOMP, which this version does not have"
        }
        [b'P', b'R', b'O', b'X', b'Y', b' ', ..] | b"\r\n\r\n\0\r\nQ" => {
            "the PROXY protocol: set `proxy_protocol = true` if all clients come through such a proxy"
        }
        _ => "an unknown protocol",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_protocols_have_names() {
        let known: [(&[u8; 8], &str); 12] = [
            (b"AMQP\0\x01\0\0", "AMQP 1.0"),
            (b"AMQP\x03\x01\0\0", "AMQP 1.0"),
            (b"AMQP\x01\x01\x08\0", "another version of AMQP"),
            (b"\x10\x10\0\x04MQTT", "MQTT"),
            (b"\x10\x90\x01\0\x04MQT", "MQTT"),
            (b"\x10\x0e\0\x06MQIs", "MQTT"),
            (b"\0\0\0\x52\0\x11\0\x01", "RabbitMQ's stream protocol"),
            (b"\x16\x03\x01\x02\0\x01\0\x01", "TLS"),
            (b"GET / HT", "HTTP"),
            (b"STOMP\n\n\0", "STOMP"),
            (b"PROXY TC", "the PROXY protocol"),
            (b"\x01\x02\x03\x04\x05\x06\x07\x08", "an unknown protocol"),
        ];
        for (header, expected) in known {
            let got = name(*header);
            assert!(got.starts_with(expected), "{header:?}: {got}");
        }
    }
}
