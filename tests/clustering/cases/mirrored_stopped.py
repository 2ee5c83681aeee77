"""Mirrored queues whose node stops and comes back: what is there, who decides, and what consumers are told. The reference is RabbitMQ 3.10."""

from ..story import case
from .mirrored import ALL, mirrors, policy

REFERENCE = "RabbitMQ 3.10"

ACTS = ["stop 1", "start 1"]


@case("all that was confirmed is there, and it goes on")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    t[3].confirm_select()
    t[3].fill("q", 3)
    t[3].confirms(3)
    yield
    t[3].until("q", 3)
    t[2].confirm_select()
    t[2].publish("", "q", "more", delivery_mode=2)
    t[2].confirms(1)
    t[3].counts("q")
    yield
    t[1].until("q", 4)
    t.http(2, "GET", "/queues/~/q", pick=["name", "policy"], until='policy="ha"')
    for _ in range(4):
        t[1].get("q", no_ack=True)


@case("a consumer of another node goes on")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    t[3].consume("q")
    t[3].fill("q", 1)
    t[3].ack(t[3].deliveries(1)[0])
    t[1].until("q", 0)
    yield
    t[2].confirm_select()
    t[2].publish("", "q", "after")
    t[2].confirms(1)
    t[3].ack(t[3].deliveries(1)[0])
    t[3].counts("q")


@case("a consumer that asks for it is told that another one decides")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    t[3].consume("q", arguments={"x-cancel-on-ha-failover": True})
    t[1].counts("q")
    yield
    t[3].silent(3.0, "waiting")
    t[2].until("q", 0)


@case("what a lost client held comes again")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    t[2].confirm_select()
    t[2].fill("q", 2, delivery_mode=2)
    t[2].confirms(2)
    t[1].get("q")
    yield
    t[3].until("q", 2)
    t[3].get("q", no_ack=True)
    t[3].get("q", no_ack=True)


@case("a transient queue outlives its node")
def _(t):
    policy(t, ALL)
    t[1].queue("q", durable=False)
    mirrors(t, 2, 3)
    t[2].confirm_select()
    t[2].fill("q", 2)
    t[2].confirms(2)
    yield
    t[3].until("q", 2)
    t[3].queue("q", durable=False)
    yield
    t[1].until("q", 2)
    t[1].get("q", no_ack=True)


@case("a queue without mirrors is down meanwhile")
def _(t):
    t[1].queue("q")
    t[1].confirm_select()
    t[1].fill("q", 2, delivery_mode=2)
    t[1].confirms(2)
    yield
    t[2].queue("q", passive=True)
    yield
    t[3].until("q", 2)
    t[3].get("q", no_ack=True)
