"""What bad input and a bad day get: one line that says what to do, the right exit code, and the results so far."""

from __future__ import annotations

import re
import signal
import struct
import time

import pika

from harness.broker import Broker

from .setting import Fault, Setting, expect
from .tools import Outcome


def one_line(outcome: Outcome, *words: str, code: int = 1) -> None:
    """One reason on stderr, with these words (each a pattern) in it; nothing of the program's inside."""
    expect(outcome.code == code, f"exit code {outcome.code}, not {code}", outcome)
    lines = [line for line in outcome.err.splitlines() if line.strip()]
    expect(len(lines) == 1, f"{len(lines)} lines on stderr, not one", outcome)
    for word in words:
        expect(re.search(word, lines[0], re.IGNORECASE), f"the reason does not speak of {word!r}", outcome)
    expect(not re.search(r"panicked|Exception|RUST_BACKTRACE|Error\s*\{|Some\(|Os \{", outcome.out + outcome.err), "the program's inside shows", outcome)


def bare(setting: Setting, *flags: str) -> Outcome:
    return setting.tool.run(list(flags), patience_seconds=30)


def test_an_unreachable_broker_is_named_with_its_address(setting: Setting) -> None:
    one_line(bare(setting, "-h", "amqp://127.0.0.1:1", "-z", "1"), r"127\.0\.0\.1:1", "refused|reach|connect")


def test_a_host_that_does_not_exist_is_named(setting: Setting) -> None:
    one_line(bare(setting, "-h", "amqp://no-such-host.invalid", "-z", "1"), r"no-such-host\.invalid")


def test_wrong_credentials_are_told(setting: Setting) -> None:
    outcome = bare(setting, "-h", setting.uri.replace("guest:guest", "guest:wrong-secret"), "-z", "1", "--json", "JSON")
    one_line(outcome, "guest", "password|credential|login|user|refused")
    expect("wrong-secret" not in outcome.out + outcome.err, "the password is shown", outcome)
    expect(outcome.report is None or "wrong-secret" not in str(outcome.report), "the password stands in the JSON", outcome)


def test_a_missing_vhost_is_named(setting: Setting) -> None:
    one_line(bare(setting, "-h", setting.uri.replace("%2F", "no-such-vhost"), "-z", "1"), "vhost|virtual host", "no-such-vhost")


def test_a_uri_that_is_none_is_refused(setting: Setting) -> None:
    for uri in ("http://127.0.0.1", "amqp://127.0.0.1:notaport", "amqp://[::1", "amqp://h:99999", ""):
        one_line(bare(setting, "-h", uri, "-z", "1"))


def test_a_queue_declared_with_other_arguments_is_told(setting: Setting) -> None:
    queue = setting.queue()
    made = setting.run(["-u", queue, "-ad", "false", "-C", "5", "-D", "5"])
    expect(made.code == 0, "the first run failed", made)
    outcome = setting.run(["-u", queue, "-ad", "false", "-qa", "x-max-length=5", "-z", "2"])
    setting.delete(queue)
    one_line(outcome, queue, "x-max-length|inequivalent|other arguments|PRECONDITION")


def test_files_that_are_missing_are_named(setting: Setting) -> None:
    for flags in (["-B", "/no/such/body"], ["-qf", "/no/such/queues"], ["-o", "/no/such/folder/out.csv"], ["--json", "/no/such/folder/out.json"], ["--hdr", "/no/such/folder/out.hdr"]):
        one_line(setting.run([*flags, "-z", "1"]), flags[1])


def test_an_unknown_flag_gets_a_suggestion(setting: Setting) -> None:
    for flag, meant in (("--ratee", "--rate"), ("--producer", "--producers"), ("--queue-arg", "--queue-args"), ("--multi-ack-evry", "--multi-ack-every")):
        one_line(setting.run([flag, "5", "-z", "1"]), flag, f"{meant}(?![a-z-])")
    one_line(setting.run(["--quite-something-else", "-z", "1"]), "--quite-something-else", "--help")


def test_values_that_are_none_are_told_with_their_flag(setting: Setting) -> None:
    for flags, words in (
        (["-z", "abc"], ["--time|-z", "abc"]),
        (["-x", "foo"], ["--producers|-x", "foo"]),
        (["-x", "-3"], ["--producers|-x"]),
        (["--rate", "fast"], ["--rate", "fast"]),
        (["-ew", "never"], ["--exit-when|-ew", "empty", "idle"]),
        (["-mf", "wrong"], ["--metrics-format|-mf", "wrong", "compact"]),
        (["-vr", "abc"], ["--variable-rate|-vr|abc"]),
        (["-vs", "0"], ["--variable-size|-vs"]),
        (["-P", "-1"], ["--publishing-interval|-P"]),
        (["--latency-from", "there"], ["--latency-from", "intended", "sent"]),
        (["-i", "0"], ["--interval|-i"]),
        (["-r"], ["-r|--rate"]),
    ):
        one_line(setting.run(flags), *words)


def test_impossible_combinations_are_refused_with_what_to_do(setting: Setting) -> None:
    for flags, words in (
        (["-qp", "q-%d"], ["--queue-pattern-from|from", "to"]),
        (["-qp", "q-%d", "-qpf", "5", "-qpt", "1"], ["--queue-pattern|from|to"]),
        (["-m", "10", "-c", "10"], ["--ptxsize|-m|transaction", "--confirm|-c"]),
        (["-A", "10", "-q", "5"], ["--multi-ack-every", "--qos"]),
        (["-ei", "2"], ["--id"]),
    ):
        one_line(setting.run([*flags, "-z", "1"]), *words)


def test_a_flag_of_the_JVM_is_explained_and_changes_nothing(setting: Setting) -> None:
    outcome = setting.run(["--nio-threads", "2", "--consumers-thread-pools", "3", "-r", "20", "-z", "1"])
    expect(outcome.code == 0, f"exit code {outcome.code}", outcome)
    expect(re.search("no effect", outcome.err), "nothing explains --nio-threads", outcome)
    expect("no effect" not in outcome.out, "the explanation stands among the results", outcome)


def flags_for(broker: Broker) -> list[str]:
    return ["--uri", f"amqp://127.0.0.1:{broker.port}", "--json", "JSON", "-o", "CSV"]


def under_way(setting: Setting, broker: Broker, *flags: str):
    run = setting.tool.start([*flags_for(broker), *flags])
    if not run.await_output(lambda out: out.count(" time ") >= 2):
        raise Fault("the run did not get under way", run.finish(1))
    return run


def test_a_broker_that_dies_leaves_the_results_so_far(setting: Setting) -> None:
    """Without recovery: marked as cut short, exit code 1."""
    with Broker(setting.binary) as broker:
        run = under_way(setting, broker, "-r", "100", "-z", "30", "-dcr")
        broker.kill()
        outcome = run.finish(20)
    expect(outcome.code == 1, f"exit code {outcome.code}, not 1", outcome)
    expect(outcome.seconds < 15, f"it took {outcome.seconds:.0f} s to end", outcome)
    expect("test stopped (" in outcome.out and "sending rate avg:" in outcome.out, "the results so far are not told", outcome)
    expect("cut short" in outcome.out and "cut short" in outcome.err, "nothing says that it was cut short", outcome)
    report = outcome.report
    expect(report and report["cut_short"] and report["exit_code"] == 1, "the JSON does not say that it was cut short", outcome)
    expect(report["total"]["consumed"] > 50 and len(report["intervals"]) >= 2, "the JSON has no results", outcome)
    expect(len(outcome.csv.splitlines()) >= 3, "the CSV file has no rows", outcome)


def test_with_recovery_a_run_goes_on_when_the_broker_comes_back(setting: Setting) -> None:
    with Broker(setting.binary) as broker:
        run = under_way(setting, broker, "-r", "100", "-z", "12", "-cri", "1")
        broker.kill()
        run.await_output(lambda _: False, 0.7)
        before = run.out().count(" time ")
        broker.start()
        outcome = run.finish(30)
    expect(outcome.code == 0, f"exit code {outcome.code}, not 0", outcome)
    after = [line for line in outcome.lines() if " time " in line][before + 1 :]
    rates = [int(rate) for line in after for rate in re.findall(r"received: (\d+) msg/s", line)]
    expect(rates and max(rates) >= 90, f"after the broker came back {rates} msg/s were received", outcome)
    expect("Reached time limit" in outcome.out, "it did not go on to its end", outcome)


def test_an_outage_is_seen_in_the_latency_from_the_intended_moment(setting: Setting) -> None:
    """A broker that stands still for a second delays what was due meanwhile; whoever counts from the sending hides it."""
    with Broker(setting.binary) as broker:
        # A body must have room for both moments.
        run = under_way(setting, broker, "-r", "1000", "-z", "5", "-c", "100", "-s", "100")
        broker.process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        broker.process.send_signal(signal.SIGCONT)
        outcome = run.finish(30)
    expect(outcome.code == 0 and outcome.report, "the run failed", outcome)
    latency, sent = outcome.report["total"]["latency"], outcome.report["total"]["latency_sent"]
    expect(outcome.report["latency_from"] == "intended", "latency does not count from the intended moment", outcome)
    # About a fifth of all messages was due in the second, and waited for half of it on average.
    expect(latency["p95"] > 200_000, f"p95 is {latency['p95'] / 1000:.1f} ms after a second's outage", outcome)
    expect(latency["p95"] >= sent["p95"], "the send time's latency is above the intended one's", outcome)
    expect("from send time" in outcome.out, "PerfTest's latency is not told", outcome)


def test_a_broker_that_comes_late_is_waited_for(setting: Setting) -> None:
    with Broker(setting.binary) as broker:
        broker.kill()
        run = setting.tool.start([*flags_for(broker), "-r", "100", "-z", "2", "-sst", "20"])
        run.await_output(lambda _: False, 0.8)
        early = run.process.poll()
        broker.start()
        outcome = run.finish(30)
    expect(early is None, "it did not wait", outcome)
    expect(outcome.code == 0 and outcome.report["total"]["consumed"] > 100, "nothing came of waiting", outcome)


def test_a_full_disk_ends_a_report_and_not_the_run(setting: Setting) -> None:
    outcome = setting.run(["-r", "50", "-z", "2", "-o", "/dev/full"])
    expect("sending rate avg" in outcome.out, "the run was not told to its end", outcome)
    one_line(outcome, "/dev/full", "space|full")


def test_messages_from_a_clock_that_is_ahead_are_told_and_not_measured(setting: Setting) -> None:
    """A producer elsewhere, whose clock is a minute ahead: PerfTest's messages have the milliseconds behind a number."""
    queue = setting.queue()
    with pika.BlockingConnection(pika.ConnectionParameters(host=setting.broker.host, port=setting.broker.port)) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        for number in range(20):
            channel.basic_publish("", queue, struct.pack(">iq", number, int(time.time() * 1000) + 60_000))
        outcome, report = setting.report(["-x", "0", "-u", queue, "-p", "--use-millis", "--exit-when", "idle"])
        channel.queue_delete(queue)
    expect(report["total"]["consumed"] == 20, f"{report['total']['consumed']} consumed, of 20", outcome)
    expect(len(outcome.err.splitlines()) == 1 and "clock" in outcome.err, "nothing says that the clocks differ", outcome)
    expect(not report["total"]["latency"] or report["total"]["latency"]["count"] == 0, "a latency was measured all the same", outcome)
