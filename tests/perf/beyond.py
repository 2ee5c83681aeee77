"""What PerfTest cannot do: accounting for every message, churn, phases, thousands of connections."""

from __future__ import annotations

import pika

from .setting import Fault, Setting, alone, expect

CHURN = {
    "bind": ("bind", "unbind"),
    "queue": ("declare", "delete"),
    "connection": ("connect", "close"),
    "channel": ("open", "close"),
    "consumer": ("consume", "cancel"),
}
FILL = 20_000


def sound(latency: dict | None, what: str, outcome) -> None:
    """Percentiles exist and rise."""
    expect(latency is not None and latency["count"] > 0, f"{what} has no latency", outcome)
    steps = [latency[key] for key in ("min", "p50", "p75", "p90", "p95", "p99", "p99_9", "p99_99", "max")]
    expect(steps == sorted(steps) and steps[0] > 0, f"{what}'s percentiles do not rise: {steps}", outcome)


def test_the_JSON_agrees_with_the_console(setting: Setting) -> None:
    outcome, report = setting.report(["-r", "200", "-z", "3", "-c", "50", "--hdr", "/dev/null"])
    total = report["total"]
    expect(report["format"] == 1 and report["stop_reasons"] == ["Reached time limit"] and report["cut_short"] is None, "how it ended is not told", outcome)
    # What was on its way at the end is at most the window.
    expect(0 <= total["published"] - total["confirmed"] <= 50 and total["nacked"] == total["returned"] == 0, f"not all was confirmed: {total}", outcome)
    expect(0 <= total["published"] - total["consumed"] <= 50, f"{total['published']} published and {total['consumed']} consumed", outcome)
    for key in ("published", "consumed", "confirmed"):
        parts = sum(interval[key] for interval in report["intervals"])
        expect(0 <= total[key] - parts <= 250, f"{key}: the intervals have {parts}, the whole {total[key]}", outcome)
    rate = total["published"] / total["seconds"]
    expect(180 < rate < 220, f"{total['published']} messages in {total['seconds']:.1f} s at 200 msg/s", outcome)
    for key in ("latency", "latency_sent", "confirm_latency"):
        sound(total[key], key, outcome)
    told = int(next(line for line in outcome.lines() if "sending rate avg" in line).split("avg: ")[1].split()[0])
    expect(abs(told - total["publish_rate"]) <= 1, f"the console says {told} msg/s, the JSON {total['publish_rate']}", outcome)


def test_verify_accounts_for_every_message(setting: Setting) -> str:
    outcome, report = setting.report(["--verify", "-x", "3", "-C", "3000", "-u", setting.queue(), "--exit-when", "idle", "-c", "100", "-q", "100"])
    verdict = report["verify"]
    expect(verdict and verdict["ok"], f"the verdict is {verdict}", outcome)
    expect(verdict["published"] == verdict["consumed"] == 9000, f"the verdict counts {verdict}", outcome)
    counts = ("lost", "duplicates", "redelivered", "out_of_order", "corrupt", "unconfirmed_missing")
    expect(all(verdict[count] == 0 for count in counts), f"the verdict is {verdict}", outcome)
    sound(report["total"]["latency"], "the latency", outcome)
    expect(report["total"]["latency"]["max"] < outcome.seconds * 1e6, f"a latency of {report['total']['latency']['max'] / 1e6:.0f} s in {outcome.seconds:.0f} s", outcome)
    return f"{verdict['published']} messages"


def test_verify_finds_nothing_wrong_with_consumers_that_share_a_queue(setting: Setting) -> None:
    """Each gets a part, so that together they see another order; that alone is no fault."""
    outcome, report = setting.report(["--verify", "-x", "2", "-y", "3", "-C", "3000", "-u", setting.queue(), "--exit-when", "idle", "-q", "10"])
    verdict = report["verify"]
    expect(verdict["ok"] and verdict["published"] == verdict["consumed"] == 6000 and verdict["lost"] == verdict["duplicates"] == 0, f"the verdict is {verdict}", outcome)


def test_verify_reports_messages_that_a_full_queue_dropped(setting: Setting) -> None:
    """A hundred fit; consumers that take 10 ms each make the queue drop the oldest."""
    outcome, report = setting.report(["--verify", "-C", "2000", "-u", setting.queue(), "-qa", "x-max-length=100", "-L", "10000", "-q", "1", "--exit-when", "idle"], code=1)
    verdict = report["verify"]
    expect(verdict and not verdict["ok"] and verdict["lost"] > 1000, f"the verdict is {verdict}", outcome)
    expect(verdict["lost"] + verdict["consumed"] == 2000 and verdict["corrupt"] == 0, f"the verdict is {verdict}", outcome)
    expect("lost" in outcome.out + outcome.err, "the loss is not told", outcome)


def test_max_in_flight_keeps_the_queue_short(setting: Setting) -> None:
    queue = setting.queue()
    run = setting.start(["-z", "6", "-u", queue, "--max-in-flight", "500", "-q", "100", "-c", "1000", "--json", "JSON"])
    deepest = 0
    if run.await_output(lambda out: " time 1." in out):
        deepest = max(setting.count(queue) for _ in range(5))
    outcome = run.finish()
    expect(outcome.code == 0, f"exit code {outcome.code}", outcome)
    expect(deepest <= 500, f"{deepest} messages were in the queue", outcome)
    expect(outcome.report["total"]["consumed"] > 1000, "nothing moved", outcome)


@alone
def test_two_thousand_connections_in_one_process(setting: Setting) -> str:
    run = setting.start(["-x", "1000", "-y", "1000", "-P", "1", "-z", "4", "--queue-pattern", "perf-conn-%d", "--queue-pattern-from", "1", "--queue-pattern-to", "10", "--json", "JSON"])
    threads = 0

    def flowing(out: str) -> bool:
        nonlocal threads
        try:
            status = open(f"/proc/{run.process.pid}/status").read()
            threads = max(threads, int(status.split("Threads:")[1].split()[0]))
        except (OSError, IndexError):
            pass
        return " time 2." in out

    run.await_output(flowing, 60)
    outcome = run.finish(90)
    expect(outcome.code == 0 and outcome.report, f"exit code {outcome.code}", outcome)
    total = outcome.report["total"]
    rate = total["published"] / total["seconds"]
    expect(rate > 850, f"1000 producers at 1 msg/s published {rate:.0f} msg/s", outcome)
    expect(0 < threads < 64, f"{threads} threads", outcome)
    return f"{rate:.0f} msg/s, {threads} threads"


def churn_test(what: str, operations: tuple[str, ...]):
    def check(setting: Setting) -> str:
        outcome = setting.tool.run(["churn", "--what", what, "--uri", setting.uri, "--time", "2", "--json", "JSON"], patience_seconds=40)
        expect(outcome.code == 0 and outcome.report, f"exit code {outcome.code}", outcome)
        churn = outcome.report["churn"]
        expect(churn and churn["what"] == what and churn["errors"] == 0, f"the JSON says {churn}", outcome)
        expect(set(operations) <= set(churn["operations"]), f"operations {sorted(churn['operations'])}", outcome)
        for name, operation in churn["operations"].items():
            expect(operation["count"] > 10 and operation["rate"] > 5, f"{name}: {operation['count']} in 2 s", outcome)
            sound(operation["latency"], name, outcome)
        return ", ".join(f"{name} {operation['rate']:.0f}/s" for name, operation in churn["operations"].items())

    check.__name__ = f"test_churn_of_{what}s"
    return check


test_churn_of_bindings = churn_test("bind", CHURN["bind"])
test_churn_of_queues = churn_test("queue", CHURN["queue"])
test_churn_of_connections = churn_test("connection", CHURN["connection"])
test_churn_of_channels = churn_test("channel", CHURN["channel"])
test_churn_of_consumers = churn_test("consumer", CHURN["consumer"])


def test_churn_beside_a_load_with_bindings_preloaded(setting: Setting) -> None:
    flags = ["churn", "--what", "bind", "--uri", setting.uri, "--time", "2", "--json", "JSON", "--preload", "1000", "--background", "--producers 1 --consumers 1 --rate 500"]
    outcome = setting.tool.run(flags, patience_seconds=60)
    expect(outcome.code == 0 and outcome.report, f"exit code {outcome.code}", outcome)
    report = outcome.report
    expect(report["churn"]["errors"] == 0 and report["churn"]["operations"]["bind"]["count"] > 10, f"the JSON says {report['churn']}", outcome)
    expect(report["total"]["consumed"] > 500, "there was no load beside it", outcome)


def test_churn_of_something_unknown_is_refused(setting: Setting) -> None:
    outcome = setting.tool.run(["churn", "--what", "vhost", "--uri", setting.uri, "--time", "1"], patience_seconds=20)
    expect(outcome.code == 1 and all(word in outcome.err for word in ("vhost", "bind", "queue", "connection", "channel", "consumer")), "the choices are not told", outcome)


def test_phases_fill_and_drain(setting: Setting) -> str:
    flags = ["phases", "--fill", str(FILL), "--drain", "--uri", setting.uri, "--queue", setting.queue(), "--size", "100", "--json", "JSON"]
    outcome = setting.tool.run(flags, patience_seconds=60)
    expect(outcome.code == 0 and outcome.report, f"exit code {outcome.code}", outcome)
    phases = outcome.report["phases"]
    expect(phases and len(phases) >= 2, f"the JSON says {phases}", outcome)
    fill, drain = phases[0], phases[-1]
    expect(fill["name"] == "fill" and fill["published"] >= FILL and fill["depth_at_end"] >= FILL, f"the fill is {fill}", outcome)
    expect("drain" in drain["name"] and drain["depth_at_end"] == 0 and drain["consumed"] >= FILL, f"the drain is {drain}", outcome)
    return f"fill {fill['publish_rate']:.0f} msg/s, drain {drain['consume_rate']:.0f} msg/s"


def test_phases_drain_under_load(setting: Setting) -> str:
    flags = ["phases", "--fill", "2000", "--drain-under-load", "--rate", "1000", "--qos", "100", "--multi-ack-every", "10", "--uri", setting.uri, "--queue", setting.queue(), "--json", "JSON"]
    outcome = setting.tool.run(flags, patience_seconds=60)
    expect(outcome.code == 0 and outcome.report, f"exit code {outcome.code}", outcome)
    fill, drain = outcome.report["phases"][0], outcome.report["phases"][-1]
    # It is over once fewer than a thousand are left: producers go on, so none may never be.
    expect(fill["depth_at_end"] >= 2000 and drain["consumed"] >= 1000, f"the JSON says {outcome.report['phases']}", outcome)
    expect(drain["depth_at_end"] <= 1000, f"{drain['depth_at_end']} messages are left", outcome)
    return f"{drain['seconds']:.1f} s"


def test_phases_without_anything_to_do_are_refused(setting: Setting) -> None:
    outcome = setting.tool.run(["phases", "--uri", setting.uri], patience_seconds=20)
    expect(outcome.code == 1 and "--fill" in outcome.err, "the refusal does not speak of --fill", outcome)


def test_queues_are_deleted_at_the_end_if_asked(setting: Setting) -> None:
    queue = setting.queue()
    outcome = setting.run(["-y", "0", "-C", "10", "-u", queue, "-e", f"{queue}-exchange", "-ad", "false", "--delete-queues"])
    expect(outcome.code == 0, f"exit code {outcome.code}", outcome)
    try:
        left = setting.count(queue)
    except pika.exceptions.ChannelClosedByBroker as closed:
        expect(closed.reply_code == 404, f"the queue answers with {closed}", outcome)
    else:
        setting.delete(queue)
        raise Fault(f"the queue is still there, with {left} messages", outcome)
