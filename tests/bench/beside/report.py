"""Tables of what was measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable


def spread(values: Iterable[float], digits: int = 2) -> str:
    """Median and, in brackets, smallest and largest."""
    values = list(values)
    return f"{statistics.median(values):,.{digits}f} [{min(values):,.{digits}f}–{max(values):,.{digits}f}]"


def rate(runs: list[dict]) -> str:
    """Messages per second: what was consumed, or published if nobody consumes."""
    rates = [run["consume_rate"] or run["publish_rate"] for run in runs]
    return f"{statistics.median(rates):,.0f}"


def median(runs: list[dict], field: str) -> float | None:
    values = [run[field] for run in runs if field in run]
    return statistics.median(values) if values else None


def ratio(results: dict) -> str:
    """How much less CPU Leveret takes, from medians, and from the least favourable and most favourable pair."""
    ours, theirs = ([run["cpu_us_per_message"] for run in results.get(name, [])] for name in ("Leveret", "RabbitMQ"))
    if not ours or not theirs or min(ours) <= 0:
        return "–"
    middle = statistics.median(theirs) / statistics.median(ours)
    return f"1/{middle:.0f} [{min(theirs) / max(ours):.0f}–{max(theirs) / min(ours):.0f}]"


def table(measurement: dict) -> str:
    """The main table in Markdown: CPU time per message, ratio, rates and memory."""
    lines = [
        "| Case | Leveret, µs CPU a message | RabbitMQ, µs CPU a message | Leveret takes | rate, 1/s (Leveret; RabbitMQ) | peak RSS, MB | bytes written a message |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for case in measurement["cases"]:
        results = case["results"]
        ours, theirs = results.get("Leveret", []), results.get("RabbitMQ", [])
        costs = [spread((run["cpu_us_per_message"] for run in runs), digits) if runs else "–" for runs, digits in ((ours, 2), (theirs, 1))]
        rates = "; ".join(rate(runs) if runs else "–" for runs in (ours, theirs))
        memory = "; ".join(f"{peak / 1e6:,.0f}" if (peak := median(runs, "rss_peak_bytes")) else "–" for runs in (ours, theirs))
        written = "; ".join("–" if (size := median(runs, "written_bytes_per_message")) is None else f"{size:,.0f}" for runs in (ours, theirs))
        lines.append(f"| {case['name']}: {case['title']} | {costs[0]} | {costs[1]} | {ratio(results)} | {rates} | {memory} | {written} |")
    return "\n".join(lines)


def conditions(measurement: dict) -> str:
    """Everything that the figures depend on, in Markdown."""
    machine = measurement["machine"]
    sync = machine["fdatasync_ms"]
    load = ", ".join(str(value) for value in machine["load_average"])
    lines = [
        f"- Date: {measurement['date']}",
        f"- Machine: {machine['processor']}, {machine['memory_gib']} GiB; {machine['kernel']}; load average at the start {load}",
        f"- Processor's speed: a fixed loop in Python took {spread(measurement['probe_ms'], 0)} ms of CPU time before the rounds",
        f"- Disk: append of 4 KiB with fdatasync takes {sync['p50']} ms (p50), {sync['p99']} ms (p99)",
        f"- Brokers: {'; '.join(measurement['versions'].values())}",
        f"- Driven by: {measurement['load']}; {measurement['rounds']} rounds of {measurement['seconds']:g} s, in turns (A B, B A, …)"
        + (f"; brokers and load at niceness {measurement['niceness']}" if measurement["niceness"] else ""),
        "",
        "```",
        *(f"{case['name']}  {case['command']}" for case in measurement["cases"]),
        "```",
    ]
    return "\n".join(lines)
