//! Drives the broker with lapin. One line per test; see the harness for what the environment tells.

mod alarms;
mod errors;
mod features;
mod messages;
mod ours;
mod queues;
mod routing;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use world::{Case, World};

/// Longer than any test may take.
const LIMIT: Duration = Duration::from_secs(90);

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let mut failed = false;
    let cases = [
        routing::cases(),
        messages::cases(),
        queues::cases(),
        features::cases(),
        ours::cases(),
        errors::cases(),
        alarms::cases(),
    ];
    for case in cases.into_iter().flatten() {
        failed |= !run(case).await;
    }
    ExitCode::from(u8::from(failed))
}

async fn run(case: Case) -> bool {
    if let Some(reason) = case.skipped() {
        println!("skip lapin {}: {reason}", case.name);
        return true;
    }
    let started = Instant::now();
    let outcome = match tokio::time::timeout(LIMIT, (case.body)(World::default())).await {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some(format!("took more than {} s", LIMIT.as_secs())),
    };
    match outcome {
        None => println!(
            "ok   lapin {} ({:.2} s)",
            case.name,
            started.elapsed().as_secs_f32()
        ),
        Some(ref why) => println!("FAIL lapin {}\n     {}", case.name, why.replace('\n', "\n     ")),
    }
    outcome.is_none()
}
