//! The streams of a run: made before it, found on the nodes that have them, deleted after it.

use super::plan::Plan;
use super::wire::{Client, refused};
use crate::failure::Failure;
use crate::uri::Uri;
use protocol::stream::metadata::NO_LEADER;
use protocol::stream::request::{Create, CreateSuperStream, Delete, DeleteSuperStream, Metadata};
use protocol::stream::{Content, Key, ListBuf, Property, ResponseCode, Text};
use std::time::{Duration, Instant};

/// Names that are asked for at once: a frame has room for more, but not without end.
const AT_ONCE: usize = 1_000;
/// How long a stream that was just made may have no leader.
const ELECTION: Duration = Duration::from_secs(15);
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
/// How often a load balancer is asked for another node.
const ATTEMPTS_PER_NODE: usize = 100;

/// Where a node can be reached.
pub type Address = (String, u16);

/// Who has a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub leader: Address,
    pub replicas: Vec<Address>,
}

/// Connects to the first broker of `--uris` that is there.
///
/// # Errors
/// What the last one said if there is none.
pub fn connect_any(plan: &Plan, name: &str) -> Result<Client, Failure> {
    let mut failed = None;
    for uri in &plan.connection.uris {
        match Client::open(uri, &plan.connection, name) {
            Ok(client) => return Ok(client),
            Err(failure) => failed = Some(failure),
        }
    }
    Err(failed.unwrap_or_else(|| Failure::Usage("--uris names no broker.".into())))
}

/// Connects to a node.
///
/// # Errors
/// If it is not there, or a load balancer does not lead to it.
pub fn connect_to(plan: &Plan, address: &Address, name: &str) -> Result<Client, Failure> {
    let connection = &plan.connection;
    let uris = &connection.uris;
    if !connection.load_balancer {
        return Client::open(&uri_of(plan, address), connection, name);
    }
    for attempt in 0..ATTEMPTS_PER_NODE {
        let client = Client::open(&uris[attempt % uris.len()], connection, name)?;
        match &client.advertised {
            Some(advertised) if advertised != address => client.close(),
            _ => return Ok(client),
        }
    }
    Err(Failure::Connect(format!(
        "the load balancer did not lead to {}:{} in {ATTEMPTS_PER_NODE} attempts: check --uris and what the brokers advertise",
        address.0, address.1
    )))
}

/// How a node is reached: where the broker says that it is, or where `--uris` says if that is this machine alone, which may not
/// know its own name.
fn uri_of(plan: &Plan, address: &Address) -> Uri {
    let uris = &plan.connection.uris;
    let first = &uris[0];
    let local = uris.len() == 1 && first.host == "localhost";
    if local && plan.connection.development {
        return first.clone();
    }
    Uri {
        host: address.0.clone(),
        port: address.1,
        ..first.clone()
    }
}

/// Makes the streams; one that is there stays as it is. Says what is different about those.
///
/// # Errors
/// If the broker refuses.
pub fn create(plan: &Plan, client: &mut Client, tell: &mut dyn FnMut(String)) -> Result<(), Failure> {
    let arguments = &plan.streams.arguments;
    let listed = ListBuf::of(arguments.iter().map(|(key, value)| Property {
        key: (*key).into(),
        value: value.as_str().into(),
    }));
    if plan.streams.partitions.is_some() && !client.speaks(Key::CreateSuperStream, 1) {
        let text =
            "--super-streams needs a broker that makes them over the stream protocol, such as RabbitMQ 3.13.";
        return Err(Failure::Usage(text.into()));
    }
    for name in &plan.streams.names {
        let code = match plan.streams.partitions {
            None => {
                client
                    .call(
                        Create {
                            stream: name.as_str().into(),
                            arguments: listed.as_list(),
                        },
                        |_| (),
                    )?
                    .0
            }
            Some(count) => {
                let partitions = plan.partitions_of(name);
                let keys: Vec<String> = (0..count).map(|it| it.to_string()).collect();
                let partitions = ListBuf::of(partitions.iter().map(|it| Text::from(it.as_str())));
                let keys = ListBuf::of(keys.iter().map(|it| Text::from(it.as_str())));
                let request = CreateSuperStream {
                    super_stream: name.as_str().into(),
                    partitions: partitions.as_list(),
                    binding_keys: keys.as_list(),
                    arguments: listed.as_list(),
                };
                client.call(request, |_| ())?.0
            }
        };
        match code {
            ResponseCode::Ok | ResponseCode::StreamAlreadyExists => {}
            ResponseCode::PreconditionFailed => {
                let wanted: Vec<String> = arguments
                    .iter()
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect();
                let wanted = wanted.join(", ");
                tell(format!(
                    "Warning: stream '{name}' already exists, but with different properties than {wanted}"
                ));
            }
            code => return Err(refused(&format!("making the stream '{name}'"), code)),
        }
    }
    Ok(())
}

/// Deletes the streams; what can't be deleted is told.
pub fn delete(plan: &Plan, client: &mut Client, tell: &mut dyn FnMut(String)) {
    for name in &plan.streams.names {
        let stream: Text<'_> = name.as_str().into();
        let done = match plan.streams.partitions {
            None => client.call(Delete { stream }, |_| ()),
            Some(_) => client.call(DeleteSuperStream { super_stream: stream }, |_| ()),
        };
        let why = match done {
            Ok((ResponseCode::Ok, ())) => continue,
            Ok((code, ())) => refused("the broker", code).to_string(),
            Err(failure) => failure.to_string(),
        };
        tell(format!("Could not delete stream {name}: {why}"));
    }
}

/// Finds out who has each of these streams, and waits a while for those that have no leader yet.
///
/// # Errors
/// If one does not exist, or gets no leader in time.
pub fn locate(client: &mut Client, streams: &[String]) -> Result<Vec<Place>, Failure> {
    let deadline = Instant::now() + ELECTION;
    let mut places = Vec::with_capacity(streams.len());
    for some in streams.chunks(AT_ONCE) {
        loop {
            let found = ask(client, some)?;
            let missing = found.iter().zip(some).find_map(|(place, name)| match place {
                Ok(_) => None,
                Err(code) => Some((name, *code)),
            });
            match missing {
                None => {
                    places.extend(found.into_iter().flatten());
                    break;
                }
                Some((name, code))
                    if code == ResponseCode::StreamDoesNotExist || Instant::now() >= deadline =>
                {
                    return Err(refused(&format!("looking for the stream '{name}'"), code));
                }
                Some(_) => std::thread::park_timeout(BETWEEN_LOOKS),
            }
        }
    }
    Ok(places)
}

fn ask(client: &mut Client, streams: &[String]) -> Result<Vec<Result<Place, ResponseCode>>, Failure> {
    let names = ListBuf::of(streams.iter().map(|it| Text::from(it.as_str())));
    let request = Metadata {
        streams: names.as_list(),
    };
    client.ask("who has the streams", request, |answer| {
        let Content::Places(places) = answer.content else {
            return vec![Err(ResponseCode::StreamNotAvailable); streams.len()];
        };
        let address = |reference: u16| {
            let node = places.nodes.iter().find(|node| node.reference == reference)?;
            Some((node.host.to_string(), u16::try_from(node.port).ok()?))
        };
        let of = |name: &String| {
            let found = places
                .streams
                .iter()
                .find(|place| place.stream.0 == name.as_bytes());
            let found = found.ok_or(ResponseCode::StreamDoesNotExist)?;
            if found.code != ResponseCode::Ok {
                return Err(found.code);
            }
            let leader = (found.leader != NO_LEADER)
                .then(|| address(found.leader))
                .flatten();
            let leader = leader.ok_or(ResponseCode::StreamNotAvailable)?;
            Ok(Place {
                leader,
                replicas: found.replicas.iter().filter_map(address).collect(),
            })
        };
        streams.iter().map(of).collect()
    })
}
