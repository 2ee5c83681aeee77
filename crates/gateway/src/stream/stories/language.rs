//! What is said, in words.

use super::*;

/// One line.
pub fn described(command: &Command<'_>) -> String {
    match command {
        Command::Answer {
            correlation_id: id,
            answer,
        } => {
            let key = answer.key;
            let code = match answer.code.number() {
                1 => String::new(),
                _ => format!("{} ", answer.code),
            };
            let names = |all: Vec<String>| format!("[{}]", all.join(", "));
            let content = match &answer.content {
                Content::Nothing => return format!("{id} {key}: {}", answer.code),
                Content::Number(number) => number.to_string(),
                Content::Names(all) => names(all.iter().map(|it| it.to_string()).collect()),
                Content::Properties(all) => {
                    names(all.iter().map(|it| format!("{}={}", it.key, it.value)).collect())
                }
                Content::Stats(all) => {
                    names(all.iter().map(|it| format!("{}={}", it.name, it.value)).collect())
                }
                Content::Versions(all) => format!("{} versions", all.len()),
                Content::Resolved(offset) => format!("offset {}", offset.0),
                Content::Places(places) => {
                    let nodes = places.nodes.iter().map(|it| format!("{}:{}", it.host, it.port));
                    let streams = places.streams.iter();
                    let streams = streams.map(|it| {
                        let replicas = it.replicas.iter().map(|node| format!(" +{node}"));
                        let replicas: String = replicas.collect();
                        format!("{} {} {}{replicas}", it.stream, it.code.number(), it.leader)
                    });
                    format!("{} {}", names(nodes.collect()), names(streams.collect()))
                }
                other => panic!("{other:?}"),
            };
            format!("{id} {key}: {code}{content}")
        }
        Command::Request {
            correlation_id: id,
            request,
        } => match request {
            Request::Close(close) => format!("{id} close {} {}", close.code, close.reason),
            Request::ConsumerUpdate(it) => {
                format!("{id} consumer_update {} {}", it.subscription_id, it.active)
            }
            other => panic!("{other:?}"),
        },
        Command::Tune {
            frame_max,
            heartbeat_s,
        } => format!("tune {frame_max} {heartbeat_s}"),
        Command::PublishConfirm {
            publisher_id: id,
            publishing_ids,
        } => format!("confirm {id} {publishing_ids:?}"),
        Command::PublishError {
            publisher_id: id,
            errors,
        } => {
            let errors = errors
                .iter()
                .map(|it| format!("{}: {}", it.publishing_id, it.code.number()));
            format!("error {id} [{}]", errors.collect::<Vec<_>>().join(", "))
        }
        Command::Deliver {
            subscription_id: id,
            committed_chunk_id,
            chunk,
        } => {
            let (header, data) = chunk.split_at(48);
            let first = u64::from_be_bytes(header[24..32].try_into().unwrap());
            let committed = committed_chunk_id.map_or(String::new(), |it| format!(" of {it}"));
            format!(
                "deliver {id} from {first}{committed}: {}",
                String::from_utf8_lossy(&data[4..])
            )
        }
        Command::CreditError {
            code,
            subscription_id,
        } => format!("credit {subscription_id}: {code}"),
        Command::MetadataUpdate { code, stream } => format!("metadata_update {stream} {code}"),
        Command::Heartbeat => "heartbeat".into(),
        other => panic!("{other:?}"),
    }
}
