"""The published rows with mirrored queues: the texts' policies and PerfTest's command lines, on one node and on three.

Queues are declared before PerfTest declares them, and it is waited until they are where their policy wants them: so no run is over before
its queue is mirrored. What is mirrored during a run is looked at, too.
"""

from __future__ import annotations

import time
import urllib.parse
from dataclasses import dataclass, field

import pika

from harness.link import Api

from .rows import Row, low_latency, sizes

PATIENCE_SECONDS = 30
POLICY = "ha"
# Queues of the text on clusters keep so many messages, so that publishers without consumers fill no memory.
KEPT = 100


@dataclass
class Mirrored(Row):
    """A row with a policy. `queues` are its queues as PerfTest declares them."""

    definition: dict = field(default_factory=dict)
    pattern: str = ".*"
    queues: list[str] = field(default_factory=list)
    arguments: dict = field(default_factory=dict)
    durable: bool = False
    auto_delete: bool = True
    # What the policy's pattern becomes once messages flow, if it changes.
    narrowed: str | None = None
    narrowed_queues: list[str] = field(default_factory=list)

    def copies(self, queue: str, nodes: int, is_narrowed: bool) -> int:
        """On how many of so many nodes a queue is to be. Two would stop with either of them, so of three all have it (docs/mirrored-queues.md)."""
        if is_narrowed and queue in self.narrowed_queues:
            return 1
        wanted = self.definition.get("ha-params", nodes)
        return min(nodes, 3 if wanted == 2 else wanted)


def mirrored_rows(seconds: int) -> list[Mirrored]:
    """The rows of the low-latency text on mirrors, of the text on clusters, and of the one on the 3.10 release with its mirrored classic queues."""
    rows = []
    for rate in (10000, 20000, 30000):
        for copies in (1, 2, 3):
            row = low_latency(f"mirrors {copies} at {rate}", rate=rate, smoke=rate == 10000)
            definition = {"ha-mode": "exactly", "ha-params": copies, "ha-sync-mode": "automatic"}
            rows.append(Mirrored(row.name, row.flags, row.producers, row.messages, row.smoke, definition=definition, queues=["perf-test-0"], arguments={"x-max-length": 10_000}))
    rows += [publishing(f"ha-all, {count} threads", count, smoke=count in (1, 4)) for count in (1, 2, 4, 8, 16)]
    rows.append(unblocking())
    windows = ["--confirm", "3000", "--multi-ack-every", "3000", "--qos", "3000"]
    flags = [*windows, *sizes(seconds), "--auto-delete", "false", "--flag", "persistent", "--queue", "cmq"]
    exactly = {"definition": {"ha-mode": "exactly", "ha-params": 3, "ha-sync-mode": "automatic"}, "queues": ["cmq"], "durable": True, "auto_delete": False}
    rows.append(Mirrored("002 scenario 1 with a mirrored queue", ["--producers", "2", "--consumers", "2", *flags], 2, 20_000, **exactly))
    rows.append(Mirrored("002 scenario 2 with a mirrored queue, 10000 msg/s", ["--rate", "10000", *flags], 1, 45_000, smoke=False, **exactly))
    return rows


def publishing(name: str, count: int, smoke: bool) -> Mirrored:
    """So many publishers, each to a queue of its own, nobody consumes: the text on clusters with its policy for all."""
    queues = [f"ha-{number}" for number in range(1, count + 1)]
    flags = ["--producers", str(count), "--consumers", "0", "--size", "200", "--queue-args", f"x-max-length={KEPT}", "--auto-delete", "false"]
    flags += ["--queue-pattern", "ha-%d", "--queue-pattern-from", "1", "--queue-pattern-to", str(count)]
    return Mirrored(f"001 {name}", flags, count, 5_000, smoke, compares=False, ends=[], definition={"ha-mode": "all"}, pattern="^ha-", queues=queues, arguments={"x-max-length": KEPT}, auto_delete=False)


def unblocking() -> Mirrored:
    """Four publishers, and the policy that goes from two of their queues meanwhile. All that was published has to come, so here somebody consumes."""
    queues = [f"ha-{number}" for number in range(1, 5)]
    flags = ["--producers", "4", "--consumers", "4", "--autoack", "--confirm", "100", "--rate", "1000", "--size", "200", "--auto-delete", "false"]
    flags += ["--queue-pattern", "ha-%d", "--queue-pattern-from", "1", "--queue-pattern-to", "4"]
    name = "001 the policy goes from two of four queues"
    return Mirrored(name, flags, 4, 4_000, definition={"ha-mode": "all"}, pattern="^ha-[1-4]$", queues=queues, auto_delete=False, narrowed="^ha-[12]$", narrowed_queues=queues[2:])


class Stage:
    """Nodes with the policy and the queues of one row."""

    def __init__(self, nodes: list, row: Mirrored):
        self.nodes, self.row = nodes, row
        self.api = Api(root=f"http://127.0.0.1:{nodes[0].http_port}")
        self.is_narrowed = False

    def connect(self) -> pika.BlockingConnection:
        return pika.BlockingConnection(pika.ConnectionParameters(host="127.0.0.1", port=self.nodes[0].port))

    def put_policy(self, pattern: str) -> None:
        answer = self.api.put(f"/policies/%2F/{POLICY}", {"pattern": pattern, "apply-to": "queues", "definition": self.row.definition})
        if answer.status not in (201, 204):
            raise RuntimeError(f"the policy is refused: {answer.status} {answer.text}")

    def misplaced(self) -> list[str]:
        """Queues that are not where their policy wants them, or not yet with everything."""
        found = []
        for queue in self.row.queues:
            told = self.api.get(f"/queues/%2F/{urllib.parse.quote(queue, safe='')}")
            mirrors = [len(told.json.get(field, [])) for field in ("slave_nodes", "synchronised_slave_nodes")]
            wanted = self.row.copies(queue, len(self.nodes), self.is_narrowed) - 1
            if told.status != 200 or mirrors != [wanted, wanted]:
                found.append(f"{queue} has {mirrors[0]} mirrors, {mirrors[1]} of them synchronised, not {wanted}")
        return found

    def prepare(self) -> list[str]:
        """Sets the policy and makes the queues; what is not as it should be by then."""
        row = self.row
        self.put_policy(row.pattern)
        with self.connect() as connection:
            channel = connection.channel()
            for queue in row.queues:
                channel.queue_declare(queue, durable=row.durable, auto_delete=row.auto_delete, arguments=row.arguments)
        return soon(self.misplaced)

    def watch(self, received: int) -> None:
        """While messages flow."""
        if self.row.narrowed and received > 0 and not self.is_narrowed:
            self.put_policy(self.row.narrowed)
            self.is_narrowed = True

    def finish(self, bounded: bool) -> list[str]:
        """Faults in what a run left behind, which then goes."""
        row, faults = self.row, []
        if row.narrowed and not self.is_narrowed:
            faults.append("the policy was never changed")
        if row.auto_delete:
            there = lambda: [f"{it['name']} is still there" for it in self.api.get("/queues?columns=name").json if it["name"] in row.queues]  # noqa: E731
            faults += soon(there)
        else:
            faults += soon(self.misplaced)
            with self.connect() as connection:
                channel = connection.channel()
                for queue in row.queues:
                    # Of publishers alone the last messages have to be there, in their order.
                    if row.arguments.get("x-max-length") == KEPT and bounded:
                        faults += rest(channel, queue, row.messages)
                    channel.queue_delete(queue)
        self.api.delete(f"/policies/%2F/{POLICY}")
        return faults


def rest(channel, queue: str, published: int) -> list[str]:
    """What is wrong with what a queue has kept of so many messages, which begin with their numbers."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (count := channel.queue_declare(queue, passive=True).method.message_count) != KEPT and time.monotonic() < deadline:
        time.sleep(0.05)
    numbers = []
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        numbers.append(int.from_bytes(got[2][:4], "big"))
    wanted = list(range(published - KEPT, published))
    return [] if numbers == wanted else [f"{queue} has {count} messages, {numbers[:3]} to {numbers[-3:]}, not {wanted[0]} to {wanted[-1]}"]


def soon(look) -> list[str]:
    """What is still found after a while; nothing as soon as nothing is."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found
