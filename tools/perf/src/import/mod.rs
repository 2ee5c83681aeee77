//! `leveret perf import`: how long a broker takes to import definitions over its HTTP API.
//!
//! What never happens here: anything that was on the broker before is changed. All names begin with the run's id, and what
//! was imported is deleted at the end.
//!
//! Reading order: [`options`] is what was asked for, [`definitions`] the file, [`api`] the broker.

mod api;
mod definitions;
mod options;

use crate::churn::words;
use crate::clock;
use crate::failure::{Failure, complain};
use crate::measure;
use crate::report::json;
use crate::run::Interrupt;
use crate::subcommand;
use crate::uri::Uri;
use api::Api;
use definitions::Definitions;
use options::Options;
use serde_json::Value;
use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Runs `leveret perf import` with the arguments behind its name.
pub fn main(arguments: &[String]) -> ExitCode {
    subcommand::execute(Options::read(arguments), |options| run(&options, arguments))
}

/// An import that was answered.
struct Imported {
    server: Value,
    objects: u64,
    from_unix_us: u64,
    to_unix_us: u64,
    time: Duration,
}

fn run(options: &Options, arguments: &[String]) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::catch();
    let id = options.id.clone().unwrap_or_else(subcommand::own_id);
    let uri = Uri::parse(&options.uri)?;
    let api = Api::new(&uri, options.http.as_deref(), options.timeout())?;
    let definitions = Definitions::new(options, &id);
    let imported = import(&api, &definitions);
    // Also after a failure: an import may have come half the way.
    let deleted = definitions.delete(&api);
    let imported = imported?;
    let rate = imported.objects as f64 / imported.time.as_secs_f64();
    println!(
        "id: {id}, import: {} objects in {:.3} s, {rate:.0} objects/s",
        imported.objects,
        imported.time.as_secs_f64()
    );
    if let Some(path) = &options.json {
        let written = fs::write(path, results(&id, arguments, &imported).to_string());
        written.map_err(|error| Failure::File(format!("cannot write {}: {error}.", path.display())))?;
    }
    if let Err(failure) = deleted {
        complain(format_args!(
            "Not all that was imported could be deleted (names {}…): {failure}",
            definitions.prefix()
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(interrupt
        .came()
        .map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}

fn import(api: &Api, definitions: &Definitions) -> Result<Imported, Failure> {
    let overview = api.get("/overview")?;
    let file = definitions.to_json().to_string();
    let (from_unix_us, started) = (clock::unix_us(), Instant::now());
    api.post("/definitions", &file)?;
    Ok(Imported {
        server: serde_json::json!({ "product": overview["product_name"], "version": overview["product_version"] }),
        objects: definitions.objects(),
        from_unix_us,
        to_unix_us: clock::unix_us(),
        time: started.elapsed(),
    })
}

/// The same layout as that of other runs: the operation counts objects, and its latency is that of the whole import.
fn results(id: &str, arguments: &[String], imported: &Imported) -> Value {
    let seconds = imported.time.as_secs_f64();
    let mut histogram = measure::latencies();
    let ns = u64::try_from(imported.time.as_nanos()).unwrap_or(u64::MAX);
    histogram.saturating_record(ns);
    let mut masked = vec!["import".to_owned()];
    masked.extend(arguments.iter().map(|it| words::masked(it)));
    serde_json::json!({
        "format": json::FORMAT, "version": env!("CARGO_PKG_VERSION"), "id": id, "arguments": masked,
        "started_unix_us": imported.from_unix_us, "finished_unix_us": imported.to_unix_us, "exit_code": 0, "cut_short": null,
        "server": imported.server,
        "intervals": [{ "from_unix_us": imported.from_unix_us, "to_unix_us": imported.to_unix_us, "elapsed_s": seconds }],
        "total": { "seconds": seconds },
        "churn": {
            "what": "definitions", "seconds": seconds, "errors": 0,
            "operations": {
                "import": { "count": imported.objects, "rate": imported.objects as f64 / seconds, "latency": json::latency(&histogram) },
            },
        },
    })
}
