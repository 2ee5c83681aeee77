"""Further roads of the kill -9 loop: a queue of fair groups, a delayed exchange, a queue that takes a message once."""

from __future__ import annotations

import time

from harness.link import Link, Q, spec

FAIR = "crash.fair"
LATER = "crash.later"
ONCE = "crash.once"
ARGUMENTS = {FAIR: {"x-fair-key": "group"}, ONCE: {"x-message-deduplication": True}, LATER: {}}
# Messages overtake each other on the one, and may come again on the other once they were acknowledged.
UNORDERED = (LATER, ONCE)
# Publishers that use them alone: of delayed messages, of messages that come twice.
DELAYING = 110
DOUBLING = 111
# A queue that has not changed for so long, in seconds, gets nothing more: no message is delayed for as long, or waits as long until
# it is sent to another node again.
STILL = 1.0


def declare(link: Link) -> None:
    for queue, arguments in ARGUMENTS.items():
        link.call(1, Q.Declare(queue=queue, durable=True, arguments=arguments), Q.DeclareOk)
    link.call(1, spec.Exchange.Declare(exchange=LATER, type="x-delayed-message", durable=True, arguments={"x-delayed-type": "direct"}), spec.Exchange.DeclareOk)
    link.call(1, Q.Bind(queue=LATER, exchange=LATER, routing_key=LATER), Q.BindOk)


def routes(publisher: int) -> list[tuple]:
    """Where the publishers of these roads send: exchange, key, queues, expiration."""
    if publisher == DELAYING:
        return [(LATER, LATER, (LATER,), None)]
    return [("", ONCE, (ONCE,), None)] if publisher == DOUBLING else []


def headers(publisher: int, number: int) -> dict[str, int | str] | None:
    """What a message says of itself; each publisher is one group."""
    if publisher == DELAYING:
        return {"x-delay": number % 7 * 30}
    if publisher == DOUBLING:
        return {"x-deduplication-header": f"{number}"}
    return {"group": publisher}


def wait_for_all(link: Link, queue: str) -> None:
    """Until nothing is on its way to the queue any more."""
    if queue != LATER:
        return
    known, since = link.count(queue), time.monotonic()
    while time.monotonic() - since < STILL:
        time.sleep(0.05)
        if (count := link.count(queue)) != known:
            known, since = count, time.monotonic()
