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
from itertools import groupby

from .alarm import AlarmBroker
from .broker import Broker
from .cluster import Front
from .control import Control
from .external import ExternalBroker
from .quorum import QUORUM, Differing
from .suites import ALARMS, CACHE, TESTS, Suite, client_suites


class Tally:
    """Counts the result lines as they pass by, prints them, and remembers the failures. Suites that run beside each other share it: a result
    line and the indented ones that follow it stay together."""

    def __init__(self, differing: Differing | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.differing = differing
        self.lock = threading.Lock()

    def see(self, block: str) -> str | None:
        """Prints a line with its details; the word by which it was counted, if it is a result. A failure that is listed is none."""
        with self.lock:
            line, *details = block.splitlines(keepends=True)
            if self.differing:
                line = self.differing.judge(line)
            print("".join([line, *details]), end="", flush=True)
            word = line.split(" ", 1)[0]
            if word not in ("ok", "FAIL", "skip", "differs"):
                return None
            self.counts[word] += 1
            if word == "FAIL":
                self.failures.append(line.rstrip())
            return word

    def say(self, line: str) -> None:
        self.see(f"{line}\n")


def stream(command: list[str], folder, environment: dict[str, str], limit_seconds: int, tally: Tally) -> str | None:
    """Runs a command, passing its lines through; what is wrong with its end, if it is not as its results say."""
    results: Counter[str | None] = Counter()
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    timer = threading.Timer(limit_seconds, process.kill)
    timer.start()
    block = ""
    try:
        for line in process.stdout:
            if block and not line.startswith((" ", "\n")):
                results[tally.see(block)] += 1
                block = ""
            block += line
        if block:
            results[tally.see(block)] += 1
        code = process.wait()
    finally:
        timer.cancel()
        process.kill()
    seen = sum(count for word, count in results.items() if word)
    # A failure ends a suite with another code, be it listed or not.
    if seen and (code == 0 or results["FAIL"] or results["differs"]):
        return None
    return f"ended with exit code {code} after {seen} results"


def install(suite: Suite) -> str | None:
    """What went wrong, if something did. At low priority: another suite may run meanwhile."""
    for command in suite.install:
        done = subprocess.run(["nice", "-n", "10", *command], cwd=suite.folder, env=os.environ | suite.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return "\n".join([" ".join(command), *(f"     {line}" for line in (done.stdout + done.stderr).splitlines()[-40:])])
    return None


def run_clients(suites: list[Suite], options: argparse.Namespace, tally: Tally) -> None:
    """Runs the lanes beside each other, and installs meanwhile what comes later. A broker that runs already is asked by one at a time."""
    lanes = [suites] if options.external else [list(lane) for _, lane in groupby(sorted(suites, key=lambda suite: suite.lane), key=lambda suite: suite.lane)]
    with ThreadPoolExecutor(1) as installer, ThreadPoolExecutor(len(lanes)) as beside:
        to_install = [(suite, installer.submit(install, suite)) for suite in suites]
        running = [beside.submit(run_lane, [(suite, installed) for suite, installed in to_install if suite in lane], options, tally) for lane in lanes]
    for lane in running:
        lane.result()


def run_lane(suites: list[tuple[Suite, Future[str | None]]], options: argparse.Namespace, tally: Tally) -> None:
    """Runs one suite after the other, all with the same brokers."""
    if options.external:
        host, port = options.external.rsplit(":", 1)
        broker = alarm_broker = ExternalBroker(host, int(port), options.external_restart, options.external_alarm_on, options.external_alarm_off)
        controllable = all(broker.commands.values())
    else:
        settings = QUORUM if options.quorum else {}
        broker = Front(options.binary, settings) if options.cluster else Broker(options.binary, settings)
        alarm_broker = AlarmBroker(options.binary, settings) if suites[0][0].lane == ALARMS else None
        controllable = True
        for which in (broker, alarm_broker):
            if which:
                which.start()
    control = Control(broker, alarm_broker)
    environment = {"AMQP_HOST": broker.host, "AMQP_PORT": str(broker.port), "HTTP_PORT": str(broker.http_port), "METRICS_PORT": str(broker.metrics_port), "LEVERET": "0" if options.external else "1"}
    if alarm_broker:
        environment["ALARM_PORT"] = str(alarm_broker.port)
    if options.external_stream:
        environment["STREAM_PORT"] = options.external_stream
    elif isinstance(broker, Broker):
        environment["STREAM_PORT"] = str(broker.stream_port)
    if options.cluster:
        environment["OTHER_PORT"] = str(broker.cluster.nodes[0].port)
    if options.binary:
        environment["LEVERET_BINARY"] = broker.binary
    if controllable:
        environment["CONTROL_PORT"] = str(control.port)
    try:
        for suite, installed in suites:
            run_suite(suite, installed, {broker, alarm_broker} - {None}, environment, tally)
    finally:
        control.close()
        for which in {broker, alarm_broker} - {None}:
            stop_cleanly(which, tally)


def run_suite(suite: Suite, installed: Future[str | None], brokers: set, environment: dict[str, str], tally: Tally) -> None:
    started = time.monotonic()
    tally.say(f"== {suite.name}")
    if wrong := installed.result():
        tally.say(f"FAIL {suite.name} install: {wrong}")
        return
    ready = time.monotonic()
    if wrong := stream(suite.command + suite.arguments, suite.folder, os.environ | suite.environment | environment, suite.time_limit_seconds, tally):
        tally.say(f"FAIL {suite.name} {wrong}")
    for which in brokers:
        for line in which.panics():
            tally.say(f"FAIL {suite.name} made the broker panic: {line}")
        if not which.alive():
            tally.say(f"FAIL {suite.name} ended the broker")
            print(which.log_tail())
            which.start()
    tally.say(f"== {suite.name}: waited {ready - started:.1f} s to be installed, ran {time.monotonic() - ready:.1f} s")


def run_load(name: str, extra: list[str], limit_seconds: int, tally: Tally) -> None:
    tally.say(f"== {name}")
    started = time.monotonic()
    if wrong := stream([sys.executable, "-u", str(TESTS / name), *extra], TESTS, dict(os.environ), limit_seconds, tally):
        tally.say(f"FAIL {name} {wrong}")
    tally.say(f"== {name}: {time.monotonic() - started:.1f} s")


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
    parser.add_argument("--only", default="", help="suites to run, separated by commas: python,differential,clustering (with --cluster),node,go,java,lapin,rust_stream,ui,crash,partition,kept,perftest,stream_perftest,perf")
    parser.add_argument("--external", help="HOST:PORT of a running broker; only client suites and PerfTest run")
    parser.add_argument("--external-stream", default="", help="the port at which it speaks the stream protocol")
    parser.add_argument("--external-restart", default="", help="a shell command that restarts it")
    parser.add_argument("--external-alarm-on", default="", help="a shell command that raises its disk alarm")
    parser.add_argument("--external-alarm-off", default="", help="a shell command that lifts it")
    parser.add_argument("--cluster", action="store_true", help="the client suites, the differential one and the kill loop through a node that takes no queues, of a cluster of three")
    parser.add_argument("--quorum", action="store_true", help="the client suites with `default_queue_type = quorum`, on one node or with --cluster on three, and a few partitions with quorum queues, mirrored ones and streams")
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
        suites = [replace(suite, arguments=suite.through_cluster) for suite in suites if suite.through_cluster is not None]
    else:
        suites = [suite for suite in suites if suite.without_cluster]
    if options.quorum:
        suites = [suite for suite in suites if suite.of_clients]
    if suites:
        run_clients(suites, options, tally)
    if tally.differing:
        for line in tally.differing.unseen({suite.name for suite in suites}):
            tally.say(f"FAIL harness: {line} is listed, and nothing of it differs")
    if options.quorum and options.binary and (not chosen or "partition" in chosen):
        # Each kind once, then some at a time of five nodes.
        run_load("partition", [options.binary, "--quorum", "--cycles", "14", "--verify-every", "7"], 600, tally)
        run_load("partition", [options.binary, "--quorum", "--nodes", "5", "--pairs", "--cycles", "3"], 600, tally)
        run_load("partition", [options.binary, "--mirrored", "--cycles", "4"], 600, tally)
        run_load("partition", [options.binary, "--streams", "--cycles", "4"], 600, tally)
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
    if alone and options.binary and (not chosen or "stream_perftest" in chosen):
        run_load("stream_perftest", [options.binary], 600, tally)
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
