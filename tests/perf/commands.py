"""The published commands, run by `leveret perf` under PerfTest's name: the rows of the tables, and the texts' own command lines."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.broker import Broker

from .rows import Row, drain_rows, low_latency_rows, release_rows
from .setting import Fault, Setting, Skip, Test, alone, expect
from .tools import Outcome, Tool

# As the texts print them: the low-latency text's with its address (ours is put in its place), the others without any.
LOW_LATENCY = """--autoack --interval 15 --size 1000 --queue-args 'x-max-length=10000' --routing-key perf-test --uri 'amqp://admin:pass@10.99.244.3:5672/%2F'
--metrics-prometheus --metrics-tags 'type=publisher,type=consumer,deployment=low-latency' --queue-pattern 'perf-test-%d' --queue-pattern-from 0 --queue-pattern-to 0
--consumers 1 --producers 1 --rate 100"""
SIZES = "--variable-size 10:900 --variable-size 100:900 --variable-size 1000:900 --variable-size 5000:900"
FAST = "--producers 2 --consumers 2 --confirm 3000 --multi-ack-every 3000 --qos 3000 " + SIZES
FIXED = "--rate 10000 --confirm 3000 --multi-ack-every 3000 --qos 3000 " + SIZES
MANY = "--producers 500 --consumers 500 --publishing-interval 0.1 --confirm 10 --multi-ack-every 100 --qos 100 " + SIZES
CLASSIC = "--auto-delete false --flag persistent"
LONG = "--queue-args x-max-in-memory-length=0 --quorum-queue --queue qq"
# Name, command line, queues that stay.
TEXTS = [
    ("002 scenario 1, classic", f"{FAST} {CLASSIC} --queue cq", ["cq"]),
    ("002 scenario 2, classic", f"{FIXED} {CLASSIC} --queue cq", ["cq"]),
    ("002 scenario 3, classic", f"{MANY} --queue-pattern cq-%d --queue-pattern-from 1 --queue-pattern-to 500 {CLASSIC}", [f"cq-{n}" for n in range(1, 501)]),
    ("002 scenario 1, quorum", f"{FAST} --quorum-queue --queue qq", ["qq"]),
    ("002 scenario 2, quorum", f"{FIXED} --quorum-queue --queue qq", ["qq"]),
    ("002 scenario 3, quorum", f"{MANY} --quorum-queue --queue-pattern qq-%d --queue-pattern-from 1 --queue-pattern-to 500", [f"qq-{n}" for n in range(1, 501)]),
    ("002 scenario 4, publish", f"--producers 2 --consumers 0 --confirm 3000 --pmessages 5000000 {LONG}", []),
    ("002 scenario 4, consume", f"--producers 0 --consumers 2 --multi-ack-every 3000 --qos 3000 --exit-when empty {LONG}", ["qq"]),
]  # fmt: skip
# What of the tables' rows is run each time.
SMOKE = ("000 rate 10000", "000 rate unlimited", "000 500 consumers at 10000", "000 500 producers at 10000", "000 100 queues at 50000", "000 durable queue, 10 kB at 10000", "000 confirms every 1",
         "000 acks every 10", "000 topic exchange at 20000", "000 headers exchange at 20000", "002 ", "004 ")  # fmt: skip


def is_leveret(broker: object) -> bool:
    """By what the broker says of itself."""
    import pika

    with pika.BlockingConnection(pika.ConnectionParameters(host=broker.host, port=broker.port)) as connection:
        return "leveret" in str(connection._impl.server_properties).lower()


def rows(full: bool, seconds: int) -> list[Row]:
    every = [*low_latency_rows(), *release_rows(500 if full else 50, max(seconds // 4, 1)), *drain_rows()]
    return every if full else [row for row in every if row.smoke and row.name.startswith(SMOKE)]


def run_row(row: Row, setting: Setting, seconds: int | None) -> tuple[Outcome, str]:
    """A row, bounded by messages, or by time; checked by what the JSON counts."""
    flags = [*row.flags]
    if seconds is None:
        flags += (["--pmessages", str(row.messages)] if row.producers else []) + [*row.ends, "--time", "60"]
    else:
        flags += ["--time", str(seconds)]
    outcome, report = setting.report(flags, patience_seconds=120)
    total = report["total"]
    sent = row.messages * row.producers
    expect(not outcome.err, "something stands on stderr", outcome)
    if seconds is None:
        expect(total["published"] == sent, f"{total['published']} published, not {sent}", outcome)
        if row.compares:
            expect(total["consumed"] == sent, f"{sent} published, {total['consumed']} consumed", outcome)
        if row.producers:
            count = f" [{row.producers}]" if row.producers > 1 else ""
            expect(f"Producer reached message limit{count}" in outcome.out, "no end told", outcome)
    elif row.compares:
        expect(total["consumed"] > 0, "nothing was consumed", outcome)
    else:
        expect(total["published" if row.producers else "consumed"] > 0, "nothing was moved", outcome)
    latency = total["latency"]
    said = f"{total['publish_rate']:.0f} msg/s sent, {total['consume_rate']:.0f} received"
    return outcome, said + (f", p50 {latency['p50'] / 1000:.2f} ms, p99 {latency['p99'] / 1000:.2f} ms" if latency else "")


def look_after(setting: Setting, row: Row, bounded: bool) -> None:
    if row.left and bounded:
        queue, wanted = row.left
        got = setting.count(queue)
        expect(got == wanted, f"{got} messages in {queue}, not {wanted}")
    if row.leaves:
        setting.delete(*row.leaves)


def row_test(row: Row, seconds: int | None) -> Test:
    def check(setting: Setting) -> str:
        _, said = run_row(row, setting, seconds)
        look_after(setting, row, seconds is None)
        return said

    return Test(f"row {row.name}", check, alone=True)


def row_tests(full: bool, seconds: int | None) -> list[Test]:
    return [row_test(row, seconds) for row in rows(full, seconds or 4)]


@alone
def test_rows_of_the_published_tables(setting: Setting) -> str:
    """On three brokers at a time: the rows use the same queues, and each waits a second for its end."""
    if not setting.leveret:
        raise Skip("run them with --full")
    chosen = rows(False, 4)
    shares: list[list[Row]] = [[row for row in chosen if row.name.startswith(("002", "004"))]]
    others = [row for row in chosen if row not in shares[0]]
    shares += [others[0::2], others[1::2]]

    def run_share(share: list[Row]) -> list[str]:
        faults = []
        with Broker(setting.binary) as broker:
            own = Setting(setting.tool, setting.binary, broker, True)
            for row in share:
                try:
                    run_row(row, own, None)
                    look_after(own, row, True)
                except Fault as fault:
                    faults.append(f"{row.name}: {fault}")
            faults += [f"the broker panicked: {line}" for line in broker.panics()]
        return faults

    with ThreadPoolExecutor(len(shares)) as pool:
        faults = [fault for found in pool.map(run_share, shares) for fault in found]
    expect(not faults, "\n".join(faults))
    return f"{len(chosen)} rows"


def named_as(binary: str, name: str, folder: Path) -> Tool:
    """The executable through a link of another name, which is how a script calls PerfTest."""
    link = folder / name
    link.symlink_to(Path(binary).resolve())
    return Tool(name, [name], environment={"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"})


def watch(tool: Tool, command: list[str], environment: dict[str, str], receives: bool) -> Outcome:
    """A command that would go on for an hour: until messages flow for some intervals; then it is asked to end."""
    run = tool.start(command, environment)
    word = "received: " if receives else "sent: "
    good = run.await_output(lambda out: sum(word in line and f"{word}0 msg/s" not in line for line in out.splitlines()) >= 3, 60)
    ended = run.process.poll()
    if ended is None:
        run.process.send_signal(signal.SIGINT)
    outcome = run.finish()
    expect(good, "no messages flowed", outcome)
    expect(outcome.code == 130, f"exit code {outcome.code} after SIGINT, not 130", outcome)
    expect("avg:" in outcome.out, "no summary", outcome)
    return outcome


def text_test(name: str, line: str, leaves: list[str]) -> Test:
    def check(setting: Setting) -> None:
        with tempfile.TemporaryDirectory() as folder:
            tool = named_as(setting.binary, "perf-test", Path(folder))
            command = shlex.split(line)
            if "--exit-when" in command:
                outcome = tool.run(command, {"URI": setting.uri}, patience_seconds=600)
                expect(outcome.code == 0 and "Consumer queue(s) empty" in outcome.out, "it did not empty the queue", outcome)
            else:
                watch(tool, command, {"URI": setting.uri}, "--consumers 0" not in line)
        if leaves:
            setting.delete(*leaves)

    return Test(f"text {name}", check, alone=True)


def text_tests() -> list[Test]:
    return [text_test(*text) for text in TEXTS]


def test_the_low_latency_texts_command_runs_unchanged_but_for_its_address(setting: Setting) -> None:
    """Its metrics page stands on PerfTest's port and tells whether messages flow, after the first interval of 15 s at the latest."""
    from .output import samples, scrape

    with tempfile.TemporaryDirectory() as folder:
        tool = named_as(setting.binary, "perftest", Path(folder))
        command = shlex.split(LOW_LATENCY.replace("amqp://admin:pass@10.99.244.3:5672/%2F", setting.uri))
        run = tool.start(command)
        name = 'perftest_latency_seconds_count{deployment="low-latency",type="consumer"}'
        flowed = 0.0
        deadline = time.monotonic() + 30
        while flowed < 100 and run.process.poll() is None and time.monotonic() < deadline:
            try:
                flowed = samples(scrape(8080)[2]).get(name, 0.0)
            except OSError:
                pass
            run.await_output(lambda _: False, 0.1)
        run.process.send_signal(signal.SIGINT)
        outcome = run.finish()
    if "8080" in outcome.err:
        raise Skip("port 8080 is in use")
    expect(flowed >= 100, f"the metrics page counts {flowed} messages", outcome)
    expect(outcome.code == 130, f"exit code {outcome.code} after SIGINT, not 130", outcome)


def test_the_names_perftest_and_perf_test_mean_leveret_perf(setting: Setting) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("perftest", "perf-test"):
            tool = named_as(setting.binary, name, Path(folder))
            outcome = tool.run(["-C", "100", "-D", "100"], {"URI": setting.uri})
            expect(outcome.code == 0 and "Producer reached message limit, Consumer reached message limit" in outcome.out, f"{name} did not run", outcome)
            expect(tool.run(["--no-such-flag"]).code == 1, f"{name} --no-such-flag does not give exit code 1")
