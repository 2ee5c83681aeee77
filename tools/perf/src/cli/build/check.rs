//! What does not go together.

use super::message::SMALLEST_VERIFIED;
use crate::cli::settings::Settings;
use crate::failure::Failure;
use crate::plan::{BodyPlan, Plan, QueueNames};

/// Refuses plans that could only fail or mislead.
///
/// # Errors
/// [`Failure::Usage`] that says which flags to change.
pub fn check(plan: &Plan, settings: &Settings<'_>) -> Result<(), Failure> {
    let refuse = |text: &str| Err(Failure::Usage(text.to_owned()));
    let (producers, consumers) = (plan.producing.producers, plan.consuming.consumers);
    if producers == 0 && consumers == 0 {
        return refuse(
            "--producers 0 and --consumers 0 leave nothing to do: give at least one of them another number.",
        );
    }
    if plan.max_in_flight.is_some() && consumers == 0 {
        return refuse(
            "--max-in-flight waits for consumers and there are none: leave it or --consumers 0 away.",
        );
    }
    if plan.stopping.exit_when.is_some() && consumers == 0 {
        return refuse("--exit-when waits for consumers and there are none: leave it or --consumers 0 away.");
    }
    if plan.verify {
        verify(plan, settings)?;
    }
    Ok(())
}

/// Verification accounts for each message once, so each must be made here, be able to carry its number, and come once.
fn verify(plan: &Plan, settings: &Settings<'_>) -> Result<(), Failure> {
    let refuse = |text: &str| Err(Failure::Usage(text.to_owned()));
    if plan.producing.producers == 0 || plan.consuming.consumers == 0 {
        return refuse(
            "--verify compares what is published with what is consumed: it needs producers and consumers.",
        );
    }
    let too_small = match &plan.message.body {
        BodyPlan::Files(_) | BodyPlan::Json { .. } => {
            return refuse("--verify numbers its own bodies: leave --body and --json-body away.");
        }
        BodyPlan::Size(size) => *size < SMALLEST_VERIFIED,
        BodyPlan::VariableSize(sizes) => sizes.iter().any(|(size, _)| *size < SMALLEST_VERIFIED),
    };
    if too_small {
        return refuse(
            "--verify writes a number and a checksum into each body: write a size of at least 40.",
        );
    }
    if plan.consuming.nack == Some(true) {
        return refuse(
            "--verify never ends while messages go back to the queue: add --requeue false, or leave --nack away.",
        );
    }
    let readers = plan.consuming.consumers * plan.consuming.channels;
    if settings.has("stream-queue") && readers > 1 {
        return refuse(
            "--verify would count each message once for each consumer of a stream: give it one consumer.",
        );
    }
    if copied(plan, readers) {
        return refuse(
            "--verify would count each message several times, since several queues get it: name one queue, or use a direct \
             exchange and --queue-pattern without --routing-key.",
        );
    }
    Ok(())
}

/// Whether one message goes to several queues.
fn copied(plan: &Plan, readers: usize) -> bool {
    if plan.exchange.name.is_empty() || plan.queues.skip_binding {
        return false;
    }
    match &plan.queues.names {
        // Each consumer has a queue of its own then.
        QueueNames::ServerNamed => readers > 1,
        QueueNames::Fixed(names) => names.len() > 1,
        QueueNames::Sequence(names) => {
            let by_key =
                matches!(plan.exchange.kind.as_str(), "direct" | "topic") && plan.routing.key.is_none();
            names.len() > 1 && !by_key
        }
    }
}
