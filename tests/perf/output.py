"""The console, the CSV file and the metrics page, line by line against what PerfTest prints."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
import urllib.error
import urllib.request

from harness.broker import free_port

from .facts import Fact, facts
from .setting import Fault, Setting, Skip, Test, expect
from .template import Line, differences, older
from .tools import Outcome, Tool

# What `leveret perf` prints and PerfTest does not: PerfTest's own latency, where ours counts from an earlier moment.
OURS = (
    Line("id: {id}, consumer latency from send time min/median/75th/95th/99th/max {six} {any}"),
    Line("consumer latency from send time min/median/75th/95th/99th/max {six} {any}"),
)
# The samples of the page with `--confirm`, `--metrics-client`, `--metrics-command-line-arguments` and `--exposed-metrics`.
QUANTILES = ("0.5", "0.75", "0.95", "0.99")
GAUGES = ("published", "confirmed", "nacked", "returned", "consumed")
CLIENT_COUNTERS = ("acknowledged", "acknowledged_published", "consumed", "failed_to_publish", "not_acknowledged_published", "published", "rejected", "requeued", "unrouted_published")


def judge(fact: Fact, outcome: Outcome, java: bool) -> None:
    """Raises if a run did not print what the fact says."""
    expect(outcome.code == 0, f"exit code {outcome.code}", outcome)
    form = older if java else (lambda line: line)
    faults = differences(outcome.lines(), [form(line) for line in fact.lines], () if java else OURS)
    if fact.csv:
        faults += [f"CSV {fault}" for fault in differences(outcome.csv.splitlines(), fact.csv)]
    expect(not faults, "\n".join(faults), outcome)
    # PerfTest says nothing about what it does not understand; we do, but not among the results.
    expect(not outcome.err or (fact.noted and not java), "something stands on stderr", outcome)


def hold(fact: Fact, setting: Setting, tool: Tool) -> Outcome:
    if fact.transactions and setting.leveret:
        raise Skip("Leveret has no transactions yet")
    environment = dict(fact.environment)
    if fact.environment:
        prefix = fact.environment.get("RABBITMQ_PERF_TEST_ENV_PREFIX", "")
        environment[f"{prefix}URI"] = setting.uri
        outcome = tool.run(fact.flags, environment)
    else:
        outcome = setting.run(fact.flags, tool=tool)
    if fact.leaves:
        setting.delete(*fact.leaves)
    return outcome


def fact_tests(tool: Tool | None = None) -> list[Test]:
    """A test for each fact; of another tool than the setting's, if one is given."""

    def test_of(fact: Fact) -> Test:
        def check(setting: Setting) -> None:
            which = tool or setting.tool
            judge(fact, hold(fact, setting, which), which.java)

        return Test(f"{tool.name if tool else 'output'}: {fact.name}", check)

    return [test_of(fact) for fact in facts()]


def scrape(port: int, path: str = "/metrics") -> tuple[int, str, str]:
    """Status, content type and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.headers["Content-Type"] or "", answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", ""


def samples(page: str) -> dict[str, float]:
    """Every sample of a page, by its name and labels in order."""
    found = {}
    for line in page.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            if "{" in name:
                bare, labels = name[:-1].split("{", 1)
                name = bare + "{" + ",".join(sorted(re.findall(r'\w+="(?:[^"\\]|\\.)*"', labels))) + "}"
            found[name] = float(value)
    return found


def page_of(setting: Setting, tool: Tool, flags: list[str], path: str = "/metrics") -> tuple[str, Outcome]:
    """The metrics page after three seconds of a run, and the run."""
    port = free_port()
    run = setting.start([*flags, "--metrics-prometheus", "--metrics-prometheus-port", str(port), "--time", "4"], tool=tool)
    status, kind, page = 0, "", ""
    if run.await_output(lambda out: out.count(" time ") >= 3):
        status, kind, page = scrape(port, path)
        with contextlib.suppress(OSError):
            expect(scrape(port, "/nowhere")[0] == 404, "a page that does not exist is not 404")
    outcome = run.finish()
    expect(status == 200 and kind.startswith("text/plain"), f"the page came with status {status} and type {kind!r}", outcome)
    return page, outcome


def expected_samples(prefix: str, labels: str) -> set[str]:
    names = {f"{prefix}{gauge}{{{labels}}}" for gauge in GAUGES}
    for summary in ("latency_seconds", "confirm_latency_seconds", "confirm_size"):
        names |= {f"{prefix}{summary}{suffix}{{{labels}}}" for suffix in ("_count", "_sum", "_max")}
        names |= {f"{prefix}{summary}{{{','.join(sorted([*filter(None, labels.split(',')), f'quantile=' + chr(34) + quantile + chr(34)]))}}}" for quantile in QUANTILES}
    return {name.replace("{}", "") for name in names}


def judge_page(page: str, outcome: Outcome) -> None:
    labels = 'deployment="low-latency",type="consumer"'
    got = samples(page)
    wanted = expected_samples("perftest_", labels)
    wanted |= {f"perftest_expected_{what}{{{labels}}}" for what in ("published", "consumed")}
    wanted |= {f"client_{counter}_total{{{labels}}}" for counter in CLIENT_COUNTERS} | {f"client_channels{{{labels}}}", f"client_connections{{{labels}}}"}
    arguments = 'command_line="-r 50 -c 10 -f mandatory -em expected_published=50,expected_consumed=50 --time 4"'
    wanted.add(f"perftest_args{{{arguments},{labels}}}")
    # The ratio to what was expected is newer than the PerfTest that the facts were taken from.
    extra = {name for name in set(got) - wanted if "ratio" not in name}
    expect(set(got) >= wanted, "missing samples:\n" + "\n".join(sorted(wanted - set(got))), outcome)
    expect(not extra, "samples that PerfTest does not have:\n" + "\n".join(sorted(extra)), outcome)
    rate = got[f"perftest_published{{{labels}}}"]
    expect(40 <= rate <= 60, f"the page says {rate} msg/s published, of 50", outcome)
    latency = got[f'perftest_latency_seconds{{{labels.replace(",", ",quantile=" + chr(34) + "0.5" + chr(34) + ",")}}}']
    expect(0 < latency < 2, f"a median latency of {latency} s", outcome)
    types = set(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    kinds = {(f"perftest_{gauge}", "gauge") for gauge in GAUGES} | {(f"perftest_{summary}", "summary") for summary in ("latency_seconds", "confirm_latency_seconds")}
    kinds |= {("perftest_latency_seconds_max", "gauge"), ("client_published_total", "counter"), ("perftest_args", "gauge")}
    expect(types >= kinds, f"missing types: {sorted(kinds - types)}", outcome)


FULL_PAGE = ["-r", "50", "-c", "10", "-f", "mandatory", "-em", "expected_published=50,expected_consumed=50", "-mcla", "-mc", "-mt", "type=publisher,type=consumer,deployment=low-latency"]


def check_page(setting: Setting, tool: Tool) -> None:
    page, outcome = page_of(setting, tool, FULL_PAGE)
    judge_page(page, outcome)


def test_the_metrics_page_has_PerfTests_names_labels_and_quantiles(setting: Setting) -> None:
    check_page(setting, setting.tool)


def test_the_metrics_page_with_another_prefix_and_path_and_nothing_else(setting: Setting) -> None:
    page, outcome = page_of(setting, setting.tool, ["-r", "50", "-mpx", "lab_", "-mpe", "/lab"], "/lab")
    missing = expected_samples("lab_", "") - set(samples(page))
    expect(not missing, f"missing samples: {sorted(missing)}", outcome)
    expect("perftest_" not in page and "client_" not in page, "samples that nobody asked for", outcome)


def test_interrupting_a_run_ends_it_as_PerfTest_does(setting: Setting) -> None:
    """SIGINT: the summary of what was, exit code 130."""
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        run = setting.start(["-r", "20", "--json", "JSON", "-o", "CSV"])
        if not run.await_output(lambda out: out.count(" time ") >= 1):
            raise Fault("no interval was printed", run.finish(1))
        run.process.send_signal(number)
        outcome = run.finish(20)
        expect(outcome.code == code, f"{number.name} gives exit code {outcome.code}, PerfTest's is {code}", outcome)
        last = [line for line in outcome.lines() if "avg:" in line or line.startswith("test stopped")]
        expect(len(last) == 3 and last[0].startswith("test stopped"), "the end and the summary were not told", outcome)
        expect(outcome.report is not None and outcome.report["exit_code"] == code, "the JSON is missing or has another exit code", outcome)
        expect(len(outcome.csv.splitlines()) >= 2, "the CSV file has no row", outcome)


def test_lines_come_when_they_are_due(setting: Setting) -> None:
    """Output that goes into a file or a pipe is not kept back until the end."""
    run = setting.start(["-r", "20", "-z", "5"])
    seen = run.await_output(lambda out: " time 1." in out, 10)
    early = time.monotonic() - run.started
    outcome = run.finish()
    expect(seen and early < 4.5, f"the first interval's line came after {early:.1f} s", outcome)


def test_a_terminal_gets_a_live_line_and_a_pipe_does_not(setting: Setting) -> None:
    """With --time or --pmessages there is a bar, which leaves the lines whole and is gone at the end."""
    for bound in (["-z", "3", "-r", "50"], ["-C", "150", "-r", "50"]):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
        command = [*setting.tool.program, *bound, "--uri", setting.uri]
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm"}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=environment)
        os.close(slave)
        shown = b""
        # The read fails once nobody holds the other end.
        with contextlib.suppress(OSError):
            while piece := os.read(master, 65536):
                shown += piece
        os.close(master)
        code = process.wait(20)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode(errors="replace"))
        outcome = Outcome(command, code, text, "", 0)
        expect(code == 0, f"exit code {code}", outcome)
        expect("%" in text, "there is no bar", outcome)
        if "-z" in bound:
            whole = [line for line in re.split(r"[\r\n]+", text) if re.fullmatch(r"id: \S+, time \d+\.\d{3} s, sent: .* µs *", line)]
            expect(len(whole) >= 2, "the bar tears the intervals' lines", outcome)
        expect("%" not in re.split(r"[\r\n]+", text.rstrip())[-1], "the bar is still there at the end", outcome)
