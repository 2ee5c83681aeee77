//! Made-up results for tests: two brokers, of which the second is slower, fails twice and misses a rate.

use crate::results::{
    FORMAT, Latency, Machine, MaxInterval, Moment, Operation, Outcome, Pauses, Phase, PlotKind, Point, Probe,
    Results, Run, ScenarioResult, Target,
};

const ROUNDS: u32 = 3;

/// The results.
pub fn results() -> Results {
    Results {
        format: FORMAT,
        title: "Benchmark of leveret beside rabbitmq".to_owned(),
        started_unix_s: 1_795_238_400,
        finished_unix_s: Some(1_795_240_900),
        machine: machine(),
        targets: vec![
            target("leveret", "leveret 0.1.0", 5672),
            target("rabbitmq", "RabbitMQ 4.3.6", 5673),
        ],
        rounds: ROUNDS,
        seconds: 4.0,
        order: "A B B A".to_owned(),
        scenarios: scenarios(),
    }
}

fn machine() -> Machine {
    Machine {
        cpu: "AMD EPYC".to_owned(),
        cores: 2,
        memory_bytes: 25 << 30,
        kernel: "Linux 6.18".to_owned(),
        os: "Debian GNU/Linux 12".to_owned(),
        disk_sync_us: Some(Probe {
            p50: 251.0,
            p99: 401.0,
            max: 2_300.0,
            count: 200,
        }),
        pauses: Some(Pauses {
            percent: 0.4,
            longest_us: 2_300.0,
        }),
        wake_us: Some(Probe {
            p50: 52.0,
            p99: 180.0,
            max: 2_900.0,
            count: 2_000,
        }),
        halt_poll_us: Some(0.0),
        load_before: None,
        note: "load and brokers share the cores".to_owned(),
    }
}

fn target(name: &str, version: &str, port: u16) -> Target {
    Target {
        name: name.to_owned(),
        version: version.to_owned(),
        uri_shown: format!("amqp://guest:***@localhost:{port}"),
        pid: Some(4_000 + u32::from(port)),
    }
}

fn scenarios() -> Vec<ScenarioResult> {
    let mut all = vec![
        scenario(
            "T1",
            "1→1, 16 B, transient, auto-ack",
            "COST",
            PlotKind::Throughput,
            |t, r| run(t, r, [8_554_002.0, 80_048.0], [0.14, 23.9], [310.0, 5_100.0]),
        ),
        scenario(
            "T4",
            "1→1, 1,000 B, persistent",
            "COST",
            PlotKind::Throughput,
            |t, r| run(t, r, [132_784.0, 19_213.0], [6.3, 76.0], [900.0, 6_000.0]),
        ),
        scenario(
            "L1",
            "latency at 10,000 msg/s",
            "L1",
            PlotKind::LatencyBars,
            |t, r| run(t, r, [10_000.0, 10_000.0], [4.0, 60.0], [120.0, 2_400.0]),
        ),
    ];
    for run in all[1].runs.iter_mut().filter(|run| run.target == 1) {
        run.outcome = Outcome::Failed {
            reason: "refused: the broker is gone".to_owned(),
        };
    }
    all[2].flags.extend(["--rate", "10000"].map(str::to_owned));
    all.extend(rates());
    all.extend(consumers());
    all.push(scenario(
        "S003-BIND",
        "Bind and unbind",
        "S003-BIND",
        PlotKind::Churn,
        churn,
    ));
    all.push(scenario(
        "S004-DRAIN",
        "Fill, then drain under load",
        "S004-DRAIN",
        PlotKind::Depth,
        drain,
    ));
    all
}

fn scenario(
    name: &str,
    title: &str,
    group: &str,
    plot: PlotKind,
    of: impl Fn(usize, u32) -> Run,
) -> ScenarioResult {
    ScenarioResult {
        name: name.to_owned(),
        title: title.to_owned(),
        group: group.to_owned(),
        fill: Vec::new(),
        flags: ["--producers", "1", "--size", "1000"].map(str::to_owned).to_vec(),
        plot: Some(plot),
        point: None,
        runs: (0..ROUNDS)
            .flat_map(|round| [of(0, round), of(1, round)])
            .collect(),
    }
}

fn rates() -> Vec<ScenarioResult> {
    let mut points: Vec<ScenarioResult> = [100.0, 1_000.0, 10_000.0, 30_000.0, 60_000.0]
        .into_iter()
        .map(|x: f64| {
            let (name, title) = (
                format!("S000-RATE@{x}"),
                format!("Latency against publish rate: publish rate {x} msg/s"),
            );
            let p99 = [150.0 + x / 500.0, 700.0 + x.powf(1.1) / 10.0];
            let mut point = scenario(&name, &title, "S000-RATE", PlotKind::LatencyVsRate, |t, r| {
                run(
                    t,
                    r,
                    [x, x.min(43_000.0)],
                    [30.0 - x.ln() * 2.0, 90.0 - x.ln() * 4.0],
                    p99,
                )
            });
            point.flags.extend(["--rate".to_owned(), x.to_string()]);
            point.point = Some(at("", x, "publish rate", "msg/s"));
            point
        })
        .collect();
    if let Some(run) = points[4].runs.last_mut() {
        *run = Run::failed(
            run.target,
            run.round,
            "the load generator stopped: connection reset",
        );
    }
    points
}

fn consumers() -> Vec<ScenarioResult> {
    let mut points = Vec::new();
    for rate in [10_000.0, 50_000.0] {
        for x in [1.0, 10.0, 100.0, 500.0] {
            let name = format!("S000-CONS/{rate}@{x}");
            let p99 = [200.0 + x, 1_500.0 + rate / 50.0 * f64::sqrt(x)];
            let mut point = scenario(&name, "Consumers", "S000-CONS", PlotKind::LatencyBars, |t, r| {
                run(t, r, [rate, rate], [3.0, 40.0], p99)
            });
            point.flags.extend(["--rate".to_owned(), rate.to_string()]);
            point.point = Some(at(&format!("{rate} msg/s"), x, "consumers", ""));
            points.push(point);
        }
    }
    points
}

fn at(series: &str, x: f64, label: &str, unit: &str) -> Point {
    Point {
        series: series.to_owned(),
        x,
        x_label: label.to_owned(),
        x_unit: unit.to_owned(),
    }
}

/// Rounds differ by a few per cent.
fn noise(target: usize, round: u32) -> f64 {
    1.0 + 0.05 * f64::from(round) - 0.03 * target as f64
}

fn latency(p99: f64) -> Latency {
    Latency {
        count: 40_000,
        min: p99 / 12.0,
        mean: p99 / 3.0,
        p50: p99 / 4.0,
        p75: p99 / 3.0,
        p90: p99 / 2.0,
        p95: p99 / 1.5,
        p99,
        p99_9: p99 * 1.8,
        p99_99: p99 * 2.6,
        max: p99 * 4.0,
    }
}

fn run(target: usize, round: u32, rate: [f64; 2], cpu: [f64; 2], p99: [f64; 2]) -> Run {
    let factor = noise(target, round);
    let exact = rate[0] <= 60_000.0;
    let rate = rate[target] * if exact { 1.0 } else { factor };
    let p99 = latency(p99[target] * factor);
    Run {
        seconds: 4.0,
        published: (rate * 4.0) as u64,
        consumed: (rate * 4.0) as u64,
        publish_rate: rate,
        consume_rate: rate,
        latency: Some(p99),
        latency_sent: Some(p99),
        max_interval: Some(MaxInterval {
            p75: p99.p75,
            p95: p99.p95,
            p99: p99.p99 * 1.2,
        }),
        cpu_us_per_message: Some(cpu[target] * factor),
        rss_peak_bytes: Some([9_000_000, 165_000_000][target]),
        written_bytes_per_message: Some([1_166.0, 977.0][target]),
        syncs_per_message: Some([1.0 / 69.0, 0.0][target]),
        ..Run::empty(target, round)
    }
}

fn churn(target: usize, round: u32) -> Run {
    let operation = |p99: [f64; 2]| Operation {
        count: 400,
        rate: 100.0,
        latency: Some(latency(p99[target] * noise(target, round))),
    };
    let operations = [
        ("bind", operation([900.0, 66_000.0])),
        ("unbind", operation([1_100.0, 90_000.0])),
    ];
    Run {
        seconds: 4.0,
        cpu_us_per_message: Some([200.0, 4_000.0][target]),
        rss_peak_bytes: Some(9_000_000),
        churn: Some(
            operations
                .map(|(name, o)| (name.to_owned(), o))
                .into_iter()
                .collect(),
        ),
        ..Run::empty(target, round)
    }
}

fn drain(target: usize, round: u32) -> Run {
    let slow = [1.0, 6.0][target] * noise(target, round);
    let (fill, drain) = (2.0 * slow, 3.0 * slow);
    let moments = (1..=20).map(|n| {
        let at_s = (fill + drain) * f64::from(n) / 20.0;
        let filling = at_s <= fill;
        let depth = if filling {
            200_000.0 * at_s / fill
        } else {
            200_000.0 * (fill + drain - at_s) / drain
        };
        Moment {
            at_s,
            publish_rate: 100_000.0 / slow,
            consume_rate: if filling { 0.0 } else { 160_000.0 / slow },
            depth: depth as u64,
            p50_us: (!filling).then_some(depth * slow + 100.0),
            p99_us: (!filling).then_some(depth * slow * 2.0 + 400.0),
            cpu_percent: Some(80.0),
            rss_bytes: Some((20e6 + depth * 100.0 * slow) as u64),
        }
    });
    let phase = |name: &str, seconds, depth_at_end| Phase {
        name: name.to_owned(),
        seconds,
        publish_rate: 100_000.0 / slow,
        consume_rate: if name == "fill" { 0.0 } else { 160_000.0 / slow },
        depth_at_end,
    };
    Run {
        over_time: moments.collect(),
        phases: vec![phase("fill", fill, 200_000), phase("drain", drain, 0)],
        ..run(
            target,
            round,
            [100_000.0, 16_000.0],
            [2.0, 50.0],
            [90_000.0, 900_000.0],
        )
    }
}
