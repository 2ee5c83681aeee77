//! Under which conditions it was measured, for the head of the report.

use super::details;
use super::verdict;
use crate::results::{Machine, Probe, Results, Target};
use charts::axis::plain;
use charts::shown;
use jiff::Timestamp;

/// The conditions: a name and a text each.
pub fn facts(results: &Results) -> Vec<(String, String)> {
    let machine = &results.machine;
    let date = |s: u64| {
        let second = i64::try_from(s).ok()?;
        let stamp = Timestamp::from_second(second).ok()?;
        Some(stamp.strftime("%Y-%m-%d %H:%M UTC").to_string())
    };
    let finished = match results.finished_unix_s {
        Some(end) => {
            let minutes = end.saturating_sub(results.started_unix_s).div_ceil(60);
            format!("took {minutes} min")
        }
        None => "cut short: not all of it was run".to_owned(),
    };
    let started = shown::or_none(date(results.started_unix_s));
    let memory = shown::number(machine.memory_bytes as f64 / f64::from(1 << 30));
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let mut facts = vec![
        ("Verdict".to_owned(), verdict::of_run(results)),
        ("Measured".to_owned(), format!("{started}; {finished}")),
        (
            "Machine".to_owned(),
            format!(
                "{}, {} {cores}, {memory} GiB of memory",
                machine.cpu, machine.cores
            ),
        ),
        ("System".to_owned(), format!("{}; {}", machine.os, machine.kernel)),
        ("Disk".to_owned(), disk(machine)),
    ];
    if let Some(pauses) = machine.pauses {
        let (share, longest) = (shown::percent(pauses.percent), shown::time_us(pauses.longest_us));
        let text = format!(
            "the processors stood still for {share} of two seconds, at most {longest} at a time, in pauses of 0.5 ms and more"
        );
        facts.push(("Pauses".to_owned(), text));
    }
    if let Some(wakes) = machine.wake_us {
        let text = format!(
            "a sleeping thread runs after {}{}",
            probed(wakes),
            machine.halt_poll_us.map_or_else(String::new, given_back)
        );
        facts.push(("Wake-ups".to_owned(), text));
    }
    for (index, target) in results.targets.iter().enumerate() {
        facts.push((format!("Target {}", letter(index)), described(target)));
    }
    facts.push((
        "Order".to_owned(),
        format!(
            "in turn, {}; up to {} rounds{}",
            results.order,
            results.rounds,
            windows(results)
        ),
    ));
    if !machine.note.is_empty() {
        facts.push(("Note".to_owned(), machine.note.clone()));
    }
    facts
}

/// How long was measured at a time, if it is known.
fn windows(results: &Results) -> String {
    details::windows(results).map_or_else(String::new, |w| {
        let (low, high) = (plain(w.low), plain(w.high));
        if low == high {
            format!(", windows of {low} s")
        } else {
            format!(", windows of {low} to {high} s")
        }
    })
}

fn disk(machine: &Machine) -> String {
    machine.disk_sync_us.map_or_else(
        || "– (the output directory could not be written in that way)".to_owned(),
        |sync| format!("append of 4 KiB with fdatasync: {}", probed(sync)),
    )
}

fn probed(probe: Probe) -> String {
    format!(
        "{} (median), {} (p99), {} (max of {})",
        shown::time_us(probe.p50),
        shown::time_us(probe.p99),
        shown::time_us(probe.max),
        probe.count
    )
}

/// What this virtual machine does with a processor that has nothing to do.
fn given_back(halt_poll_us: f64) -> String {
    if halt_poll_us > 0.0 {
        let after = shown::time_us(halt_poll_us);
        format!("; an idle processor is returned to the host after {after} (guest_halt_poll_ns)")
    } else {
        "; an idle processor is returned to the host at once (guest_halt_poll_ns = 0), which costs every broker latency \
         and processor time: see docs/tuning.md"
            .to_owned()
    }
}

fn letter(index: usize) -> char {
    u8::try_from(index)
        .ok()
        .and_then(|index| b'A'.checked_add(index))
        .filter(u8::is_ascii_uppercase)
        .map_or('?', char::from)
}

fn described(target: &Target) -> String {
    let process = match target.pid {
        Some(_) => String::new(),
        None => "; its process is not known, so there are no figures for CPU, memory and disk".to_owned(),
    };
    format!(
        "{}: {} at {}{process}",
        target.name, target.version, target.uri_shown
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn the_conditions_name_machine_disk_targets_and_order() {
        let text: String = facts(&results())
            .into_iter()
            .map(|(a, b)| a + b.as_str())
            .collect();
        for expected in [
            "EPYC",
            "2 cores",
            "fdatasync",
            "52.0 µs (median)",
            "at once",
            "rabbitmq: RabbitMQ 4.3",
            "A B B A",
            "UTC",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
    }

    #[test]
    fn a_run_that_was_cut_short_says_so() {
        let mut results = results();
        results.finished_unix_s = None;
        assert!(facts(&results)[1].1.contains("cut short"));
    }
}
