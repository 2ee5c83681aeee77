//! What producers do.

use super::MANY;
use crate::cli::settings::{Settings, parts};
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::{Producing, Schedule};
use std::time::Duration;

/// `--flag`.
pub struct Flags {
    pub persistent: bool,
    pub mandatory: bool,
}

/// Reads the flags of messages. `immediate` was AMQP's and is RabbitMQ's no more, yet PerfTest still lets it pass.
///
/// # Errors
/// For any other word.
pub fn flags(settings: &Settings<'_>) -> Result<Flags, Failure> {
    let words: Vec<String> = settings
        .list("flag")
        .iter()
        .flat_map(|list| parts(list))
        .collect();
    if let Some(word) = words
        .iter()
        .find(|word| !["persistent", "mandatory", "immediate"].contains(&word.as_str()))
    {
        return Err(settings.refuse("flag", word, "persistent or mandatory"));
    }
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    Ok(Flags {
        persistent: has("persistent") || super::queues::replicated(settings),
        mandatory: has("mandatory"),
    })
}

pub fn producing(settings: &Settings<'_>) -> Result<Producing, Failure> {
    let flags = flags(settings)?;
    // Any number of unconfirmed messages is what 0 means to PerfTest: confirms without a window.
    let confirm = settings.if_not_negative("confirm", i32::MAX.unsigned_abs())?;
    let transaction = settings.whole("ptxsize", 0, 0..=i32::MAX.unsigned_abs())?;
    if transaction > 0 && confirm.is_some() {
        let text = "Cannot select both producerTxSize and confirm: leave --ptxsize or --confirm away.";
        return Err(Failure::Usage(text.to_owned()));
    }
    let messages = settings.whole("pmessages", 0, 0..=u64::MAX)?;
    Ok(Producing {
        producers: settings.whole("producers", 1, 0..=MANY)? as usize,
        channels: settings.whole("producer-channel-count", 1, 1..=u32::from(u16::MAX))? as usize,
        schedule: schedule(settings)?,
        random_start_delay: settings
            .seconds("producer-random-start-delay")?
            .unwrap_or_default(),
        confirm: confirm.map(|window| if window == 0 { u32::MAX } else { window }),
        confirm_timeout: settings
            .seconds("confirm-timeout")?
            .unwrap_or(Duration::from_secs(30)),
        transaction,
        mandatory: flags.mandatory,
        persistent: flags.persistent,
        messages: Some(messages).filter(|messages| *messages > 0),
        latency_from: super::latency_from(settings)?,
    })
}

/// An interval wins over rates, a variable rate over a fixed one, as in PerfTest.
fn schedule(settings: &Settings<'_>) -> Result<Schedule, Failure> {
    let rate = settings.decimal("rate")?;
    let variable = values::variable("variable-rate", &settings.list("variable-rate"))?;
    let interval = interval(settings)?;
    if let Some(interval) = interval {
        return Ok(Schedule::Interval(interval));
    }
    if !variable.is_empty() {
        return Ok(Schedule::Variable(
            variable
                .into_iter()
                .map(|(rate, holds)| (f64::from(rate), holds))
                .collect(),
        ));
    }
    match rate {
        None => Ok(Schedule::Unlimited),
        Some(rate) if rate < 0.0 => Ok(Schedule::Unlimited),
        Some(rate) if rate <= 1e9 => Ok(Schedule::Rate(rate)),
        Some(rate) => Err(settings.refuse("rate", &rate.to_string(), "at most 1000000000")),
    }
}

/// PerfTest refuses less than 0.1 s, since its scheduler threads could not hold it; nothing speaks against it here.
fn interval(settings: &Settings<'_>) -> Result<Option<Duration>, Failure> {
    let Some(text) = settings.text("publishing-interval") else {
        return Ok(None);
    };
    let refuse = |why: &str| {
        Err(Failure::Usage(format!(
            "Invalid value for --publishing-interval: {why}"
        )))
    };
    match text.trim().parse::<f64>() {
        Ok(seconds) if seconds <= 0.0 => refuse("Must be positive"),
        Ok(seconds) if (1e-9..=3e9).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        Ok(seconds) if seconds.is_finite() => refuse("Must be between a nanosecond and 100 years"),
        _ => refuse("Must be a number"),
    }
}
