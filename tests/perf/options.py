"""The options that PerfTest's --help and --metrics-help list, each with a value that it takes, and what the three pages say of them."""

from __future__ import annotations

import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .setting import Setting, expect
from .tools import Outcome, Tool

# Nobody listens there.
NOWHERE = "amqp://127.0.0.1:1"


@dataclass(frozen=True)
class Option:
    """`value` is None for a switch; FILE stands for a file that exists."""

    short: str
    long: str
    value: str | None = None
    # Other options that it needs beside it.
    beside: str = ""


def listed(text: str, metrics: bool = False, newer: bool = False) -> list[Option]:
    """A line: short, long, value, what goes beside it."""
    options = []
    for line in text.strip().splitlines():
        words = line.split(None, 3)
        value = None if len(words) < 3 or words[2] == "-" else words[2]
        options.append(Option(words[0].strip("-"), words[1], value, words[3] if len(words) > 3 else ""))
    return options


# From 2.22.
OPTIONS = listed("""
a    autoack
A    multi-ack-every              2
ad   auto-delete                  false
b    heartbeat                    10
B    body                         FILE
bc   body-count                   2       -jb -s 500
bfc  body-field-count             20      -jb -s 500
c    confirm                      10
C    pmessages                    10
ca   consumer-args                x-priority=10
cri  connection-recovery-interval 30-60
csd  consumer-start-delay         1
ct   confirm-timeout              5
ctp  consumers-thread-pools       2
d    id                           some
D    cmessages                    10
dcr  disable-connection-recovery
e    exchange                     amq.direct
E    exclusive
ei   expected-instances           0
em   exposed-metrics              expected_published=50000
ew   exit-when                    idle
f    flag                         persistent
h    uri                          amqp://127.0.0.1:1
H    uris                         amqp://127.0.0.1:1,amqp://127.0.0.1:1
hst  heartbeat-sender-threads     2
i    interval                     2
isn  instance-sync-namespace      ns
ist  instance-sync-timeout        5
jb   json-body                    -       -s 500
k    routing-key                  key
K    random-routing-key
L    consumer-latency             100
ll   leader-locator               balanced
m    ptxsize                      5
M    framemax                     131072
ma   max-age                      PT10M30S -sq
mf   metrics-format               compact
mlb  max-length-bytes             10mb
mp   message-properties           priority=5,foo=bar
ms   use-millis
n    ctxsize                      5
na   nack
niot nio-threads                  2
niotp nio-thread-pool             4
o    output-file                  FILE
o2gr oauth2-grant-type            client_credentials
o2id oauth2-client-id             me
o2p  oauth2-parameters            orgId=1234
o2sec oauth2-client-secret        secret
o2uri oauth2-token-endpoint       http://127.0.0.1:1/token -o2id me -o2sec secret
p    predeclared
P    publishing-interval          0.5
pi   polling-interval             10      -po
po   polling
prsd producer-random-start-delay  1
pst  producer-scheduler-threads   2
q    qos                          10
Q    global-qos                   10
qa   queue-args                   x-max-length=10
qf   queue-file                   FILE
qp   queue-pattern                q-%d    -qpf 1 -qpt 2
qpf  queue-pattern-from           1       -qp q-%d -qpt 2
qpt  queue-pattern-to             2       -qp q-%d -qpf 1
qq   quorum-queue
r    rate                         100
R    consumer-rate                100
re   requeue                      false   -na
rkcs routing-key-cache-size       10      -K
S    slow-start
s    size                         100
sb   skip-binding-queues
sco  stream-consumer-offset       first   -sq
se   sasl-external
smssb stream-max-segment-size-bytes 100mb -sq
sni  server-name-indication       a.example,b.example
sq   stream-queue
sst  servers-startup-timeout      1
st   shutdown-timeout             1
sul  servers-up-limit             1       -sst 1
t    type                         topic
T    body-content-type            text/plain -B FILE
tnd  tcp-no-delay                 true
trbs tcp-receive-buffer-size      65536
tsbs tcp-send-buffer-size         65536
u    queue                        q
udsc use-default-ssl-context
-    verbose
-    verbose-full
vl   variable-latency             100:1
vr   variable-rate                100:1
vs   variable-size                100:1
x    producers                    2
X    producer-channel-count       2
y    consumers                    2
Y    consumer-channel-count       2
z    time                         1
""")
# From 2.23 to 2.25, as its source lists them.
NEWER = listed("""
cal  connection-allocation        round-robin
nty  netty
ntyt netty-threads                2
ntyep netty-epoll
ntykq netty-kqueue
""")
PAGES = listed("""
?    help
v    version
env  environment-variables
mh   metrics-help
""")
METRICS = listed("""
mc   metrics-client
mcl  metrics-class-loader
mcla metrics-command-line-arguments
mda  metrics-datadog                 -    -mdk key -mdu http://127.0.0.1:1
mdak metrics-datadog-application-key key
mdd  metrics-datadog-descriptions
mdh  metrics-datadog-host-tag        host
mdk  metrics-datadog-api-key         key
mds  metrics-datadog-step-size       5
mdu  metrics-datadog-uri             http://127.0.0.1:1
mjgc metrics-jvm-gc
mjm  metrics-jvm-memory
mjp  metrics-processor
mjt  metrics-jvm-thread
mjx  metrics-jmx
mpe  metrics-prometheus-endpoint     /lab
mpp  metrics-prometheus-port         9419
mpr  metrics-prometheus              -    -mpp 0
mpx  metrics-prefix                  lab_
mt   metrics-tags                    a=b,c=d
""")


def named(page: str) -> set[tuple[str, str]]:
    """The short and long names that a usage page lists at the beginnings of its lines."""
    found = re.findall(r"^ {1,8}(?:-([\w?]+), *)?--([\w-]+)", page, re.MULTILINE)
    return {(short, long) for short, long in found}


def names(options: list[Option]) -> set[tuple[str, str]]:
    return {(option.short, option.long) for option in options}


def variable(option: Option) -> str:
    return option.long.replace("-", "_").upper()


def judge_help(tool: Tool) -> None:
    """PerfTest of the facts lists these and no others; ours at least these."""
    for flag, options in (("--help", OPTIONS + PAGES), ("--metrics-help", METRICS), ("-?", OPTIONS + PAGES), ("-mh", METRICS)):
        outcome = tool.run([flag])
        expect(outcome.code == 0, f"{flag} gives exit code {outcome.code}", outcome)
        wanted = names(options if tool.java else options + (NEWER if options is not METRICS else []))
        missing = wanted - named(outcome.out)
        expect(not missing, f"{flag} does not list: {', '.join(f'-{short},--{long}' for short, long in sorted(missing))}")
        if tool.java:
            expect(names(options) == named(outcome.out), f"{flag} lists others too: {sorted(named(outcome.out) - names(options))}")
        expect(outcome.err == "", f"{flag} writes on stderr", outcome)


def judge_environment(tool: Tool) -> None:
    """The pages with the environment variables."""
    for flags, options in ((["--environment-variables"], [*OPTIONS, *(PAGES[3:])]), (["-env", "-mh"], METRICS)):
        outcome = tool.run(flags)
        expect(outcome.code == 0, f"{flags} gives exit code {outcome.code}", outcome)
        found = set(re.findall(r"^ +([A-Z][A-Z0-9_]*)\b", outcome.out, re.MULTILINE))
        wanted = {variable(option) for option in options}
        missing = wanted - found
        expect(not missing, f"{' '.join(flags)} does not list {', '.join(sorted(missing))}", outcome if not found else None)


def judge_version(tool: Tool) -> None:
    for flag in ("--version", "-v"):
        outcome = tool.run([flag])
        expect(outcome.code == 0 and re.search(r"\d+\.\d+\.\d+", outcome.out), f"{flag} tells no version", outcome)


def accepts(tool: Tool, option: Option, name: str, folder: str) -> str | None:
    """Why an option is not taken: with one that is, the run ends for want of a broker."""
    flags = [name, *([option.value] if option.value else []), *option.beside.split()]
    file = option.long if option.value == "FILE" else "body"
    flags = [f"{folder}/{file}" if flag == "FILE" else flag for flag in flags]
    if not {"-h", "--uri", "-H", "--uris"} & set(flags):
        flags += ["--uri", NOWHERE]
    outcome = tool.run(flags, patience_seconds=20)
    if outcome.code == 1 and refused(outcome):
        return None
    return f"{' '.join(flags[:4])}: exit code {outcome.code}: {(outcome.err or outcome.out).strip().splitlines()[-1:]}"


def refused(outcome: Outcome) -> bool:
    return "127.0.0.1:1" in outcome.err and re.search(r"refused|reach|connect", outcome.err, re.IGNORECASE) is not None


def test_help_lists_each_of_PerfTests_options(setting: Setting) -> None:
    judge_help(setting.tool)


def test_the_pages_on_environment_variables_list_each_of_PerfTests(setting: Setting) -> None:
    judge_environment(setting.tool)


def test_the_version_is_told(setting: Setting) -> None:
    judge_version(setting.tool)


def test_each_option_is_taken_by_its_short_and_its_long_name(setting: Setting) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("body", "queue-file", "output-file"):
            (Path(folder) / name).write_text("a\nb\n")
        jobs = [(option, name) for option in OPTIONS + NEWER + METRICS for name in ([f"-{option.short}"] if option.short else []) + [f"--{option.long}"]]
        with ThreadPoolExecutor(8) as pool:
            faults = list(filter(None, pool.map(lambda job: accepts(setting.tool, *job, folder), jobs)))
    expect(not faults, "\n".join(faults))


def test_each_option_is_taken_from_the_environment(setting: Setting) -> None:
    """All that go together at once: what one of them means is the console's tests' business."""
    plain = [option for option in OPTIONS if not option.beside and option.value not in (None, "FILE") and option.long not in ("uris", "sst", "quorum-queue", "variable-rate", "ptxsize", "ctxsize")]
    environment = {variable(option): option.value for option in plain} | {"AUTOACK": "false", "URI": NOWHERE, "MULTI_ACK_EVERY": "1"}
    environment.pop("O2_TOKEN", None)
    for key in ("OAUTH2_CLIENT_ID", "OAUTH2_CLIENT_SECRET", "OAUTH2_GRANT_TYPE", "OAUTH2_PARAMETERS"):
        environment.pop(key, None)
    outcome = setting.tool.run([], environment)
    expect(outcome.code == 1 and refused(outcome), "the environment's options were not taken", outcome)
