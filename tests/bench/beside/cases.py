"""The cases: what is published and consumed, for our loader and for PerfTest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """One kind of load. Queues are declared anew for every run and deleted after it."""

    name: str
    title: str
    loader: str
    perftest: str
    # The part of RabbitMQ's CPU time per message that a later release must not exceed is one by this.
    goal: int


CASES = [
    Case(
        "T1",
        "1→1, 16 B, transient, auto-ack",
        "--size 16 --in-flight 50000",
        "-x 1 -y 1 -s 16 --autoack",
        70,
    ),
    Case(
        "T2",
        "1→1, 1,000 B, transient, auto-ack",
        "--size 1000 --in-flight 4000",
        "-x 1 -y 1 -s 1000 --autoack",
        26,
    ),
    Case(
        "T3",
        "publish only, 200 B, `x-max-length=100`",
        "--size 200 --consumers 0 --max-length 100",
        "-x 1 -y 0 -s 200 --queue-args x-max-length=100",
        80,
    ),
    Case(
        "T4",
        "1→1, 1,000 B, persistent, confirm window 100, ack every 10",
        "--size 1000 --persistent --durable --confirm 100 --ack 10 --prefetch 100 --in-flight 4000",
        "-x 1 -y 1 -s 1000 -f persistent --confirm 100 --multi-ack-every 10 --qos 100",
        13,
    ),
    Case(
        "T5",
        "2→2 on one queue, 1,000 B, persistent, confirm windows and acks of 3,000",
        "--publishers 2 --consumers 2 --size 1000 --persistent --durable --confirm 3000 --ack 3000 --prefetch 3000 --in-flight 20000",
        "-x 2 -y 2 -s 1000 -f persistent --confirm 3000 --multi-ack-every 3000 --qos 3000",
        28,
    ),
]
