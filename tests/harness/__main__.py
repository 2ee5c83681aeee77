"""Runs the black-box tests: `python -m harness BINARY`, or `--external HOST:PORT` for a broker that already runs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

from .alarm import AlarmBroker
from .broker import Broker
from .cluster import Front
from .control import Control
from .external import ExternalBroker
from .quorum import QUORUM, Differing
from .suites import CACHE, TESTS, Suite, client_suites


class Tally:
    """Counts the result lines as they pass by, and remembers the failures."""

    def __init__(self, differing: Differing | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.differing = differing

    def see(self, line: str) -> str:
        """Counts a line, and says as what: a failure that is listed is none."""
        if self.differing:
            line = self.differing.judge(line)
        word = line.split(" ", 1)[0]
        if word in ("ok", "FAIL", "skip", "differs"):
            self.counts[word] += 1
            if word == "FAIL":
                self.failures.append(line.rstrip())
        return line

    def failed(self) -> int:
        """How many tests failed, be it listed or not."""
        return self.counts["FAIL"] + self.counts["differs"]

    def say(self, line: str) -> None:
        print(self.see(line), flush=True)


def stream(command: list[str], folder, environment: dict[str, str], limit_seconds: int, tally: Tally) -> tuple[int, int]:
    """Runs a command, passing its lines through; its exit code and how many result lines it gave."""
    before = sum(tally.counts.values())
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    timer = threading.Timer(limit_seconds, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            print(tally.see(line), end="", flush=True)
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
    return code, sum(tally.counts.values()) - before


def install(suite: Suite) -> str | None:
    """What went wrong, if something did. At low priority: another suite may run meanwhile."""
    for command in suite.install:
        done = subprocess.run(["nice", "-n", "10", *command], cwd=suite.folder, env=os.environ | suite.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return "\n".join([" ".join(command), *(f"     {line}" for line in (done.stdout + done.stderr).splitlines()[-40:])])
    return None


def run_clients(suites: list[Suite], broker, alarm_broker, environment: dict[str, str], tally: Tally) -> None:
    """Runs one suite after the other, while those behind it are installed."""
    with ThreadPoolExecutor(1) as pool:
        installed = [pool.submit(install, suite) for suite in suites]
        for suite, wrong in zip(suites, installed, strict=True):
            run_suite(suite, wrong, broker, alarm_broker, environment, tally)


def run_suite(suite: Suite, installed: Future[str | None], broker, alarm_broker, environment: dict[str, str], tally: Tally) -> None:
    started = time.monotonic()
    print(f"== {suite.name}", flush=True)
    if wrong := installed.result():
        tally.say(f"FAIL {suite.name} install: {wrong}")
        return
    ready = time.monotonic()
    failed_before = tally.failed()
    code, lines = stream(suite.command, suite.folder, os.environ | suite.environment | environment, suite.time_limit_seconds, tally)
    if lines == 0 or (code != 0 and tally.failed() == failed_before):
        tally.say(f"FAIL {suite.name} ended with exit code {code} after {lines} results")
    for which in {broker, alarm_broker}:
        for line in which.panics():
            tally.say(f"FAIL {suite.name} made the broker panic: {line}")
        if not which.alive():
            tally.say(f"FAIL {suite.name} ended the broker")
            print(which.log_tail())
            which.start()
    print(f"== {suite.name}: waited {ready - started:.1f} s to be installed, ran {time.monotonic() - ready:.1f} s", flush=True)


def run_load(name: str, extra: list[str], limit_seconds: int, tally: Tally) -> None:
    print(f"== {name}", flush=True)
    started = time.monotonic()
    failed_before = tally.failed()
    code, lines = stream([sys.executable, "-u", str(TESTS / name), *extra], TESTS, dict(os.environ), limit_seconds, tally)
    if lines == 0 or (code != 0 and tally.failed() == failed_before):
        tally.say(f"FAIL {name} ended with exit code {code} after {lines} results")
    print(f"== {name}: {time.monotonic() - started:.1f} s", flush=True)


def stop_cleanly(broker, tally: Tally) -> None:
    if isinstance(broker, Broker | Front):
        try:
            code = broker.stop()
        except RuntimeError as error:
            code = str(error)
        tally.say(f"ok   harness {type(broker).__name__} stops cleanly" if code == 0 else f"FAIL harness stops on SIGTERM with {code}")
    broker.close()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests/run", description=__doc__)
    parser.add_argument("binary", nargs="?", help="the leveret executable")
    parser.add_argument("--only", default="", help="suites to run, separated by commas: python,differential,clustering (with --cluster),node,go,java,lapin,ui,crash,partition,kept,perftest,perf")
    parser.add_argument("--external", help="HOST:PORT of a running broker; only client suites and PerfTest run")
    parser.add_argument("--external-restart", default="", help="a shell command that restarts it")
    parser.add_argument("--external-alarm-on", default="", help="a shell command that raises its disk alarm")
    parser.add_argument("--external-alarm-off", default="", help="a shell command that lifts it")
    parser.add_argument("--cluster", action="store_true", help="the client suites, the differential one and the kill loop through a node that takes no queues, of a cluster of three")
    parser.add_argument("--quorum", action="store_true", help="the client suites with `default_queue_type = quorum`, on one node or with --cluster on three, and a few partitions with quorum queues")
    parser.add_argument("--cycles", type=int, default=20, help="cycles of the kill -9 loop")
    options = parser.parse_args()
    if bool(options.binary) == bool(options.external):
        parser.error("give either the executable or --external HOST:PORT")
    return options


def main() -> int:
    options = arguments()
    CACHE.mkdir(exist_ok=True)
    chosen = [name for name in options.only.split(",") if name]
    tally = Tally(Differing(options.cluster) if options.quorum else None)
    suites = [suite for suite in client_suites() if not chosen or suite.name in chosen]
    if options.cluster or options.quorum:
        suites = [replace(suite, command=suite.command + suite.through_cluster) for suite in suites if suite.through_cluster is not None]
    else:
        suites = [suite for suite in suites if suite.without_cluster]
    if options.quorum:
        suites = [suite for suite in suites if suite.of_clients]
    if suites:
        if options.external:
            host, port = options.external.rsplit(":", 1)
            broker = alarm_broker = ExternalBroker(host, int(port), options.external_restart, options.external_alarm_on, options.external_alarm_off)
            controllable = all(broker.commands.values())
        else:
            settings = QUORUM if options.quorum else {}
            broker = Front(options.binary, settings) if options.cluster else Broker(options.binary, settings)
            broker, alarm_broker, controllable = broker.start(), AlarmBroker(options.binary, settings).start(), True
        control = Control(broker, alarm_broker)
        environment = {"AMQP_HOST": broker.host, "AMQP_PORT": str(broker.port), "HTTP_PORT": str(broker.http_port), "METRICS_PORT": str(broker.metrics_port), "ALARM_PORT": str(alarm_broker.port), "LEVERET": "0" if options.external else "1"}
        if options.cluster:
            environment["OTHER_PORT"] = str(broker.cluster.nodes[0].port)
        if options.binary:
            environment["LEVERET_BINARY"] = broker.binary
        if controllable:
            environment["CONTROL_PORT"] = str(control.port)
        try:
            run_clients(suites, broker, alarm_broker, environment, tally)
        finally:
            control.close()
            for which in {broker, alarm_broker}:
                stop_cleanly(which, tally)
    if tally.differing:
        for line in tally.differing.unseen({suite.name for suite in suites}):
            tally.say(f"FAIL harness: {line} is listed, and nothing of it differs")
    if options.quorum and options.binary and (not chosen or "partition" in chosen):
        # Each kind once, then some at a time of five nodes.
        run_load("partition", [options.binary, "--quorum", "--cycles", "13", "--verify-every", "7"], 600, tally)
        run_load("partition", [options.binary, "--quorum", "--nodes", "5", "--pairs", "--cycles", "3"], 600, tally)
    if not options.quorum and options.binary and (not chosen or "crash" in chosen):
        through = ["--cluster"] if options.cluster else []
        run_load("crash", [options.binary, "--cycles", str(options.cycles), *through], 120 + 30 * options.cycles, tally)
    # These know no node in front of others, and say themselves which queues they declare.
    alone = not options.cluster and not options.quorum
    if alone and options.binary and (not chosen or "partition" in chosen):
        run_load("partition", [options.binary], 600, tally)
    if alone and options.binary and (not chosen or "kept" in chosen):
        run_load("kept", [options.binary], 300, tally)
    if alone and (not chosen or "perftest" in chosen):
        run_load("perftest", [options.binary] if options.binary else ["--external", options.external], 600, tally)
    if alone and options.binary and (not chosen or "perf" in chosen):
        run_load("perf_tool", [options.binary], 300, tally)
    if tally.failures:
        print("== failures")
        print("\n".join(tally.failures))
    print(f"{tally.counts['skip']} skipped")
    if tally.differing:
        print(f"{tally.counts['differs']} differ, as listed in quorum.toml")
    print(f"{tally.counts['ok']} passed, {tally.counts['FAIL']} failed")
    return 1 if tally.failures or tally.counts["ok"] == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
