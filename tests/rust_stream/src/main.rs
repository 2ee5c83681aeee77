//! Drives the broker with the Rust client of the stream protocol. One line per test; see the harness for what the
//! environment tells.

mod cases;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use world::{Case, World};

/// Longer than any test may take.
const LIMIT: Duration = Duration::from_secs(60);

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let mut failed = false;
    for case in cases::cases() {
        failed |= !run(case).await;
    }
    ExitCode::from(u8::from(failed))
}

async fn run(case: Case) -> bool {
    if let Some(reason) = case.skipped() {
        println!("skip rust_stream {}: {reason}", case.name);
        return true;
    }
    let started = Instant::now();
    let outcome = match tokio::time::timeout(LIMIT, (case.body)(World)).await {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure.to_string()),
        Err(_) => Some(format!("took more than {} s", LIMIT.as_secs())),
    };
    match outcome {
        None => println!(
            "ok   rust_stream {} ({:.2} s)",
            case.name,
            started.elapsed().as_secs_f32()
        ),
        Some(ref why) => println!(
            "FAIL rust_stream {}\n     {}",
            case.name,
            why.replace('\n', "\n     ")
        ),
    }
    outcome.is_none()
}
