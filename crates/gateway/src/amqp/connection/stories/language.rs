//! Frames as the stories write them.

use model::Limits;
use model::properties::{BasicProperties, PropertiesBuilder};
use model::table::{Table, Value};
use protocol::amqp::frame::frame_length;
use protocol::amqp::handshake::PROTOCOL_HEADER;
use protocol::amqp::method::*;
use protocol::amqp::{LongStr, Method, Part, RawTable, encode, next_frame};

/// A line's words: flags and `key=value`.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn has(&self, flag: &str) -> bool {
        self.0.contains(&flag)
    }

    fn get(&self, key: &str) -> &'a str {
        self.0
            .iter()
            .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
            .unwrap_or("")
    }

    fn number(&self, key: &str) -> u64 {
        self.get(key).parse().unwrap_or(0)
    }

    /// Words `x-name:value` are arguments; a value of digits is a number.
    fn arguments(&self) -> Vec<u8> {
        let mut table = Table::new();
        for (key, value) in self.0.iter().filter_map(|word| word.split_once(':')) {
            match value.parse::<i32>() {
                Ok(number) => table.insert(key, number),
                Err(_) if value == "true" => table.insert(key, true),
                Err(_) => table.insert(key, value),
            }
        }
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        bytes
    }
}

/// What a client sends to come in.
pub fn opening(capable: bool) -> Vec<u8> {
    let mut bytes = PROTOCOL_HEADER.to_vec();
    bytes.extend(encode_line("0 connection.start-ok user=guest password=guest", capable).unwrap());
    bytes.extend(encode_line("0 connection.tune-ok channels=10 frame=8192", capable).unwrap());
    bytes.extend(encode_line("0 connection.open vhost=/", capable).unwrap());
    bytes
}

/// A frame that a client sends. `capable`: it declares all capabilities.
pub fn encode_line(line: &str, capable: bool) -> Option<Vec<u8>> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if first == "header" {
        return Some(PROTOCOL_HEADER.to_vec());
    }
    if first == "bytes" {
        return words.map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    }
    let channel: u16 = first.parse().ok()?;
    let name = words.next()?;
    let words = Words(words.collect());
    let mut out = Vec::new();
    match name {
        "basic.publish" => publish(&mut out, channel, &words),
        "connection.start-ok" => start_ok(&mut out, &words, capable),
        _ => {
            let arguments = words.arguments();
            let method = method(name, &words, RawTable(&arguments))?;
            encode::any_method(&mut out, channel, &method);
        }
    }
    Some(out)
}

/// A method that is one frame.
fn method<'a>(name: &str, words: &Words<'a>, arguments: RawTable<'a>) -> Option<Method<'a>> {
    match name.split_once('.')? {
        ("connection", name) => connection(name, words),
        ("channel", name) => channel(name, words),
        ("exchange", name) => exchange(name, words, arguments),
        ("queue", name) => queue(name, words, arguments),
        ("basic", name) => basic(name, words, arguments),
        _ => of_small_class(name, words),
    }
}

fn connection<'a>(name: &str, words: &Words<'a>) -> Option<Method<'a>> {
    Some(match name {
        "tune-ok" => ConnectionTuneOk {
            channel_max: words.number("channels") as u16,
            frame_max: words.number("frame") as u32,
            heartbeat: words.number("heartbeat") as u16,
        }
        .into(),
        "open" => ConnectionOpen {
            virtual_host: words.get("vhost"),
        }
        .into(),
        "close" => ConnectionClose {
            reply_code: 200,
            ..Default::default()
        }
        .into(),
        "close-ok" => ConnectionCloseOk {}.into(),
        _ => return None,
    })
}

fn channel<'a>(name: &str, words: &Words<'a>) -> Option<Method<'a>> {
    Some(match name {
        "open" => ChannelOpen {}.into(),
        "close" => ChannelClose {
            reply_code: 200,
            ..Default::default()
        }
        .into(),
        "close-ok" => ChannelCloseOk {}.into(),
        "flow" => ChannelFlow {
            active: words.has("active"),
        }
        .into(),
        "flow-ok" => ChannelFlowOk {
            active: words.has("active"),
        }
        .into(),
        _ => return None,
    })
}

fn exchange<'a>(name: &str, words: &Words<'a>, arguments: RawTable<'a>) -> Option<Method<'a>> {
    let (exchange, no_wait) = (words.get("exchange"), words.has("nowait"));
    Some(match name {
        "declare" => ExchangeDeclare {
            exchange,
            kind: words.get("type"),
            passive: words.has("passive"),
            durable: words.has("durable"),
            auto_delete: words.has("auto-delete"),
            internal: words.has("internal"),
            no_wait,
            arguments,
        }
        .into(),
        "delete" => ExchangeDelete {
            exchange,
            if_unused: words.has("if-unused"),
            no_wait,
        }
        .into(),
        "bind" => ExchangeBind {
            destination: words.get("to"),
            source: words.get("from"),
            routing_key: words.get("key"),
            no_wait,
            arguments,
        }
        .into(),
        "unbind" => ExchangeUnbind {
            destination: words.get("to"),
            source: words.get("from"),
            routing_key: words.get("key"),
            no_wait,
            arguments,
        }
        .into(),
        _ => return None,
    })
}

fn queue<'a>(name: &str, words: &Words<'a>, arguments: RawTable<'a>) -> Option<Method<'a>> {
    let (queue, no_wait) = (words.get("queue"), words.has("nowait"));
    Some(match name {
        "declare" => QueueDeclare {
            queue,
            passive: words.has("passive"),
            durable: words.has("durable"),
            exclusive: words.has("exclusive"),
            auto_delete: words.has("auto-delete"),
            no_wait,
            arguments,
        }
        .into(),
        "bind" => QueueBind {
            queue,
            exchange: words.get("exchange"),
            routing_key: words.get("key"),
            no_wait,
            arguments,
        }
        .into(),
        "unbind" => QueueUnbind {
            queue,
            exchange: words.get("exchange"),
            routing_key: words.get("key"),
            arguments,
        }
        .into(),
        "purge" => QueuePurge { queue, no_wait }.into(),
        "delete" => QueueDelete {
            queue,
            if_unused: words.has("if-unused"),
            if_empty: words.has("if-empty"),
            no_wait,
        }
        .into(),
        _ => return None,
    })
}

fn basic<'a>(name: &str, words: &Words<'a>, arguments: RawTable<'a>) -> Option<Method<'a>> {
    let (queue, no_wait) = (words.get("queue"), words.has("nowait"));
    let (delivery_tag, multiple, requeue) =
        (words.number("tag"), words.has("multiple"), words.has("requeue"));
    Some(match name {
        "qos" => BasicQos {
            prefetch_size: words.number("size") as u32,
            prefetch_count: words.number("count") as u16,
            global: words.has("global"),
        }
        .into(),
        "consume" => BasicConsume {
            queue,
            consumer_tag: words.get("consumer"),
            no_local: false,
            no_ack: words.has("no-ack"),
            exclusive: words.has("exclusive"),
            no_wait,
            arguments,
        }
        .into(),
        "cancel" => BasicCancel {
            consumer_tag: words.get("consumer"),
            no_wait,
        }
        .into(),
        "get" => BasicGet {
            queue,
            no_ack: words.has("no-ack"),
        }
        .into(),
        "ack" => BasicAck {
            delivery_tag,
            multiple,
        }
        .into(),
        "nack" => BasicNack {
            delivery_tag,
            multiple,
            requeue,
        }
        .into(),
        "reject" => BasicReject {
            delivery_tag,
            requeue,
        }
        .into(),
        "recover" => BasicRecover { requeue }.into(),
        _ => return None,
    })
}

/// Classes of a few methods: `access`, `confirm`, `tx`.
fn of_small_class<'a>(name: &str, words: &Words<'a>) -> Option<Method<'a>> {
    Some(match name {
        "access.request" => AccessRequest {
            realm: "/",
            ..Default::default()
        }
        .into(),
        "confirm.select" => ConfirmSelect {
            no_wait: words.has("nowait"),
        }
        .into(),
        "tx.select" => TxSelect {}.into(),
        "tx.commit" => TxCommit {}.into(),
        "tx.rollback" => TxRollback {}.into(),
        _ => return None,
    })
}

fn publish(out: &mut Vec<u8>, channel: u16, words: &Words<'_>) {
    let mut properties = PropertiesBuilder::new();
    if words.has("persistent") {
        properties = properties.delivery_mode(2);
    }
    if !words.get("expiration").is_empty() {
        properties = properties.expiration(words.get("expiration"));
    }
    if !words.get("reply-to").is_empty() {
        properties = properties.reply_to(words.get("reply-to"));
    }
    let mut headers: Table = ["CC", "BCC"]
        .into_iter()
        .filter(|name| !words.get(name).is_empty())
        .map(|name| {
            (
                name,
                Value::Array(words.get(name).split(',').map(Value::from).collect()),
            )
        })
        .collect();
    if !words.get("same").is_empty() {
        headers.insert(model::X_DEDUPLICATION_HEADER, words.get("same"));
    }
    if !headers.is_empty() {
        properties = properties.headers(&headers);
    }
    let method = BasicPublish {
        exchange: words.get("exchange").as_bytes(),
        routing_key: words.get("key").as_bytes(),
        mandatory: words.has("mandatory"),
        immediate: words.has("immediate"),
    };
    let mut body = words.get("body").as_bytes().to_vec();
    body.resize(body.len().max(words.number("size") as usize), b'x');
    for _ in 0..words.number("times").max(1) {
        let start = out.len();
        encode::content(out, channel, &method, &properties.encode(), &body, 8192);
        if words.has("unfinished") {
            announce_more(&mut out[start..]);
        }
    }
}

/// A content's header announces a byte more than follows, which a frame of its own may bring.
fn announce_more(content: &mut [u8]) {
    let method = frame_length(content).expect("a content begins with a method");
    // Behind the head of the frame, the class and the weight.
    let size = &mut content[method + 11..method + 19];
    let announced = u64::from_be_bytes(size.try_into().expect("eight bytes")) + 1;
    size.copy_from_slice(&announced.to_be_bytes());
}

fn start_ok(out: &mut Vec<u8>, words: &Words<'_>, capable: bool) {
    let capabilities: Table = [
        "consumer_cancel_notify",
        "connection.blocked",
        "authentication_failure_close",
    ]
    .into_iter()
    .map(|name| (name, Value::Bool(capable)))
    .collect();
    let mut properties = Vec::new();
    Table::new()
        .with("capabilities", capabilities)
        .encode(&mut properties);
    let response = format!("\0{}\0{}", words.get("user"), words.get("password"));
    let method = ConnectionStartOk {
        client_properties: RawTable(&properties),
        mechanism: "PLAIN",
        response: LongStr(response.as_bytes()),
        locale: "en_US",
    };
    encode::method(out, 0, &method);
}

/// All frames in `bytes`, a line each; a content's frames are one line.
pub fn describe(mut bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if let Some(rest) = bytes.strip_prefix(&PROTOCOL_HEADER) {
        lines.push("header".into());
        bytes = rest;
    }
    let mut body: Vec<u8> = Vec::new();
    let mut left = 0;
    while let Some((frame, length)) = next_frame(bytes, 0).expect("the broker writes frames") {
        bytes = &bytes[length..];
        match frame.part().expect("the broker writes known frames") {
            Part::Heartbeat => lines.push("0 heartbeat".into()),
            Part::Method(id, fields) => {
                let method = Method::decode(id, fields).expect("the broker writes methods");
                lines.push(format!("{} {}", frame.channel, words(&method)));
            }
            Part::Header(header) => {
                left = header.body_size;
                let persistent = BasicProperties::check(header.properties, &Limits::default())
                    .expect("properties")
                    .persistent();
                let line = lines.last_mut().expect("a header follows its method");
                line.push_str(if persistent { " persistent" } else { "" });
            }
            Part::Body(piece) => {
                body.extend_from_slice(piece);
                left -= piece.len() as u64;
                if left == 0 {
                    let line = lines.last_mut().expect("a body follows its method");
                    match body.len() {
                        0..100 => line.push_str(&format!(" body={}", String::from_utf8_lossy(&body))),
                        size => line.push_str(&format!(" size={size}")),
                    }
                    body.clear();
                }
            }
        }
    }
    assert!(bytes.is_empty(), "a frame is not whole");
    lines
}

fn words(method: &Method<'_>) -> String {
    let text = String::from_utf8_lossy;
    match method {
        Method::ConnectionClose(it) => {
            format!(
                "connection.close {}.{} {} {}",
                it.class_id, it.method_id, it.reply_code, it.reply_text
            )
        }
        Method::ChannelClose(it) => {
            format!(
                "channel.close {}.{} {} {}",
                it.class_id, it.method_id, it.reply_code, it.reply_text
            )
        }
        Method::QueueDeclareOk(it) => format!(
            "queue.declare-ok queue={} messages={} consumers={}",
            it.queue, it.message_count, it.consumer_count
        ),
        Method::QueuePurgeOk(it) => format!("queue.purge-ok messages={}", it.message_count),
        Method::QueueDeleteOk(it) => format!("queue.delete-ok messages={}", it.message_count),
        Method::BasicConsumeOk(it) => format!("basic.consume-ok consumer={}", it.consumer_tag),
        Method::BasicCancelOk(it) => format!("basic.cancel-ok consumer={}", it.consumer_tag),
        Method::BasicCancel(it) => format!("basic.cancel consumer={}", it.consumer_tag),
        Method::BasicAck(it) => {
            format!(
                "basic.ack tag={}{}",
                it.delivery_tag,
                if it.multiple { " multiple" } else { "" }
            )
        }
        Method::BasicDeliver(it) => format!(
            "basic.deliver consumer={} tag={}{} exchange={} key={}",
            it.consumer_tag,
            it.delivery_tag,
            if it.redelivered { " redelivered" } else { "" },
            text(it.exchange),
            text(it.routing_key)
        ),
        Method::BasicGetOk(it) => format!(
            "basic.get-ok tag={}{} exchange={} key={} left={}",
            it.delivery_tag,
            if it.redelivered { " redelivered" } else { "" },
            text(it.exchange),
            text(it.routing_key),
            it.message_count
        ),
        Method::BasicReturn(it) => format!(
            "basic.return {} {} exchange={} key={}",
            it.reply_code,
            it.reply_text,
            text(it.exchange),
            text(it.routing_key)
        ),
        Method::ChannelFlowOk(it) => format!("channel.flow-ok active={}", it.active),
        Method::AccessRequestOk(it) => format!("access.request-ok ticket={}", it.ticket),
        other => other.id().to_string(),
    }
}
