//! Connections with their publishers and subscriptions: opened at the start, and again when they are lost.

use super::consumer::Subscription;
use super::driver::{Mailbox, Order};
use super::plan::Plan;
use super::shared::Shared;
use super::site::{self, Address, Place};
use super::wire::{Client, Opened};
use crate::failure::Failure;
use protocol::stream::request::{
    DeclarePublisher, QueryOffset, QueryPublisherSequence, ResolveOffsetSpec, Subscribe,
};
use protocol::stream::{Content, Key, ListBuf, OffsetSpec, Property, ResponseCode, Text, field::Trailing};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

/// A publisher on a connection; its number there is its place in the group.
#[derive(Debug, Clone)]
pub struct Publishing {
    pub stream: String,
    /// The name by which the broker recognises what is sent again.
    pub reference: Option<String>,
}

/// What belongs on one connection.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub name: String,
    pub publishers: Vec<Publishing>,
    pub subscriptions: Vec<Subscription>,
}

/// A connection on which all of that is.
pub struct Ready {
    pub opened: Opened,
    /// The number of the first message of each publisher.
    pub bases: Vec<u64>,
    pub subscriptions: Vec<Subscription>,
}

/// Connects to a node, declares publishers, subscribes.
///
/// # Errors
/// If the node is not there or refuses.
pub fn open(plan: &Plan, address: &Address, group: &Group) -> Result<Ready, Failure> {
    let mut client = site::connect_to(plan, address, &group.name)?;
    let filters = !plan.producing.filter_values.is_empty() && !group.publishers.is_empty();
    if filters && !client.speaks(Key::Publish, 2) {
        let text = "--filter-value-set needs a broker with filters in streams, such as RabbitMQ 3.13.";
        return Err(Failure::Usage(text.into()));
    }
    let mut bases = Vec::with_capacity(group.publishers.len());
    for (id, publisher) in group.publishers.iter().enumerate() {
        bases.push(declare(&mut client, id as u8, publisher)?);
    }
    let mut subscriptions = group.subscriptions.clone();
    for (id, it) in subscriptions.iter_mut().enumerate() {
        it.id = id as u8;
        it.restart();
        subscribe(plan, &mut client, it)?;
    }
    Ok(Ready {
        opened: client.hand_over()?,
        bases,
        subscriptions,
    })
}

fn declare(client: &mut Client, publisher_id: u8, publisher: &Publishing) -> Result<u64, Failure> {
    let stream: Text<'_> = publisher.stream.as_str().into();
    let reference: Text<'_> = publisher.reference.as_deref().unwrap_or_default().into();
    let what = format!("publishing to the stream '{}'", publisher.stream);
    client.ask(
        &what,
        DeclarePublisher {
            publisher_id,
            reference,
            stream,
        },
        |_| (),
    )?;
    if publisher.reference.is_none() {
        return Ok(0);
    }
    let last = client.ask(
        &what,
        QueryPublisherSequence { reference, stream },
        |answer| match answer.content {
            Content::Number(number) => number,
            _ => 0,
        },
    )?;
    Ok(last.saturating_add(1))
}

fn subscribe(plan: &Plan, client: &mut Client, it: &mut Subscription) -> Result<(), Failure> {
    let consuming = &plan.consuming;
    let stream = it.stream.clone();
    if let (Some(name), None, false) = (&it.name, it.next, consuming.single_active) {
        let request = QueryOffset {
            reference: name.as_str().into(),
            stream: stream.as_str().into(),
        };
        let (code, stored) = client.call(request, |answer| match answer.content {
            Content::Number(number) => number,
            _ => 0,
        })?;
        if code == ResponseCode::Ok {
            it.resume_at(stored.saturating_add(1));
        }
    }
    if it.from == OffsetSpec::Next && client.speaks(Key::ResolveOffsetSpec, 1) {
        // Where to go on if the connection is lost before anything came.
        let request = ResolveOffsetSpec {
            stream: stream.as_str().into(),
            from: it.from,
            properties: Trailing::default(),
        };
        let (code, offset) = client.call(request, |answer| match answer.content {
            Content::Resolved(resolved) => Some(resolved.0),
            _ => None,
        })?;
        it.began = offset.filter(|_| code == ResponseCode::Ok);
    }
    let mut properties: Vec<(String, String)> = Vec::new();
    if consuming.single_active {
        properties.push(("single-active-consumer".into(), "true".into()));
    }
    properties.extend(it.name.iter().map(|name| ("name".into(), name.clone())));
    properties.extend(
        it.super_stream
            .iter()
            .map(|name| ("super-stream".into(), name.clone())),
    );
    let values = consuming.filter_values.iter().enumerate();
    properties.extend(values.map(|(at, value)| (format!("filter.{at}"), value.clone())));
    if !consuming.filter_values.is_empty() {
        properties.push(("match-unfiltered".into(), "false".into()));
    }
    let properties = properties.iter().map(|(key, value)| Property {
        key: key.as_str().into(),
        value: value.as_str().into(),
    });
    let properties = ListBuf::of(properties);
    let request = Subscribe {
        subscription_id: it.id,
        stream: stream.as_str().into(),
        from: it.from,
        credit: consuming.credits.0,
        properties: Trailing(properties.as_list()),
    };
    client.ask(&format!("consuming from the stream '{stream}'"), request, |_| ())
}

/// Which node readers of a stream connect to: a replica, if there is one, so that the leader is left to publishers.
///
/// # Errors
/// If it must be a replica and there is none.
pub fn node_to_read(plan: &Plan, stream: &str, place: &Place) -> Result<Address, Failure> {
    if place.replicas.is_empty() {
        if plan.consuming.force_replica {
            let text = format!(
                "the stream '{stream}' has no replica, which --force-replica-for-consumers asks for."
            );
            return Err(Failure::Usage(text));
        }
        return Ok(place.leader.clone());
    }
    Ok(place.replicas[fastrand::usize(..place.replicas.len())].clone())
}

/// Opens a lost connection again, in a thread of its own, as often as it takes, and gives it back to its link.
pub fn reopen(shared: &Arc<Shared>, link: usize, group: Group, moved: bool, mailbox: Mailbox) {
    shared.recovering.fetch_add(1, Relaxed);
    let shared_there = shared.clone();
    let work = move || {
        let shared = shared_there;
        let plan = shared.plan.clone();
        let (first, next) = if moved {
            plan.connection.relocation
        } else {
            plan.connection.recovery
        };
        let mut pause = first;
        loop {
            if !sleep(&shared, pause) {
                return;
            }
            match find_and_open(&plan, &group) {
                Ok(ready) => {
                    shared.tell(format!("{} is connected again.", group.name));
                    mailbox.send(Order::Reopened {
                        link,
                        ready: Box::new(ready),
                    });
                    return;
                }
                Err(failure) => {
                    shared.tell(format!("{} could not be connected again: {failure}", group.name))
                }
            }
            pause = next;
        }
    };
    if thread::Builder::new().name("reopen".into()).spawn(work).is_err() {
        shared.fail(Failure::Lost(
            "a lost connection could not be opened again: the system has no thread left".into(),
        ));
    }
}

fn find_and_open(plan: &Plan, group: &Group) -> Result<Ready, Failure> {
    let mut locator = site::connect_any(plan, "stream-perf-locator")?;
    let publisher = group.publishers.first().map(|it| &it.stream);
    let Some(stream) = publisher.or_else(|| group.subscriptions.first().map(|it| &it.stream)) else {
        return Err(Failure::Lost("there is nothing on this connection".into()));
    };
    let places = site::locate(&mut locator, std::slice::from_ref(stream));
    locator.close();
    let place = places?
        .pop()
        .ok_or_else(|| Failure::Lost("the broker does not know the stream".into()))?;
    let address = match publisher {
        Some(_) => place.leader,
        None => node_to_read(plan, stream, &place)?,
    };
    open(plan, &address, group)
}

/// Sleeps unless the run is over, and says whether it is not.
fn sleep(shared: &Shared, mut pause: Duration) -> bool {
    const GLANCE: Duration = Duration::from_millis(50);
    while !pause.is_zero() && !shared.over.load(Relaxed) {
        let some = pause.min(GLANCE);
        thread::park_timeout(some);
        pause -= some;
    }
    !shared.over.load(Relaxed)
}
