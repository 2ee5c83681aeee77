//! What consumers do.

use super::MANY;
use crate::cli::settings::Settings;
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::Consuming;
use model::table::Table;
use std::time::Duration;

/// Streams want a prefetch; PerfTest gives them this one.
const STREAM_PREFETCH: u16 = 200;

pub fn consuming(settings: &Settings<'_>) -> Result<Consuming, Failure> {
    let prefetch = match settings.whole("qos", 0, 0..=u16::MAX)? {
        0 if settings.has("stream-queue") => STREAM_PREFETCH,
        prefetch => prefetch,
    };
    let multi_ack_every = settings.whole("multi-ack-every", 0, 0..=i32::MAX.unsigned_abs())?;
    if multi_ack_every > 0 && prefetch > 0 && multi_ack_every > u32::from(prefetch) {
        return Err(Failure::Usage(
            "--multi-ack-every must be less than or equal to --qos".to_owned(),
        ));
    }
    let requeue = settings.boolean("requeue", true)?;
    let messages = settings.whole("cmessages", 0, 0..=u64::MAX)?;
    let pause = settings
        .if_not_negative("polling-interval", i32::MAX.unsigned_abs())?
        .unwrap_or(0);
    Ok(Consuming {
        consumers: settings.whole("consumers", 1, 0..=MANY)? as usize,
        channels: settings.whole("consumer-channel-count", 1, 1..=u32::from(u16::MAX))? as usize,
        rate: settings.decimal("consumer-rate")?.filter(|rate| *rate > 0.0),
        auto_ack: settings.has("autoack"),
        multi_ack_every,
        prefetch,
        channel_prefetch: settings.whole("global-qos", 0, 0..=u16::MAX)?,
        nack: settings.has("nack").then_some(requeue),
        transaction: settings.whole("ctxsize", 0, 0..=i32::MAX.unsigned_abs())?,
        latency: latency(settings)?,
        polling: settings
            .has("polling")
            .then(|| Duration::from_millis(pause.into())),
        arguments: arguments(settings)?,
        messages: Some(messages).filter(|messages| *messages > 0),
        slow_start: settings.has("slow-start"),
        start_delay: settings.seconds("consumer-start-delay")?.unwrap_or_default(),
    })
}

/// A fixed time is a variable one that never changes.
fn latency(settings: &Settings<'_>) -> Result<Vec<(Duration, Duration)>, Failure> {
    let micros = |number: u32| Duration::from_micros(number.into());
    let variable = values::variable("variable-latency", &settings.list("variable-latency"))?;
    if !variable.is_empty() {
        return Ok(variable
            .into_iter()
            .map(|(number, holds)| (micros(number), holds))
            .collect());
    }
    Ok(
        match settings.if_not_negative("consumer-latency", i32::MAX.unsigned_abs())? {
            None | Some(0) => Vec::new(),
            Some(number) => vec![(micros(number), Duration::from_secs(1))],
        },
    )
}

fn arguments(settings: &Settings<'_>) -> Result<Table, Failure> {
    let mut table = values::pairs("consumer-args", &settings.list("consumer-args"))?;
    if let Some(text) = settings.text("stream-consumer-offset") {
        table.insert("x-stream-offset", values::stream_offset(&text)?);
    }
    Ok(table)
}
