"""Two of three nodes stop: what the third one's clients see, and what is there when the others are back."""

from ..story import case

ACTS = ["stop 2", "stop 3", "start 2", "start 3"]
STATUS = "rabbitmq-queues quorum_status -p ~ q --formatter json"
WHO = ["Node Name", "Raft State", "Membership"]


def filled(t, node=1):
    t[node].quorum()
    t[1].confirm_select()
    t[1].fill("q", 2, delivery_mode=2)
    t[1].confirms(2)


@case("a publish waits for a majority")
def _(t):
    filled(t)
    yield
    yield
    t[1].publish("", "q", "2")
    t[1].silent(8, "the confirm")
    yield
    yield
    t[1].confirms(3)


@case("a publish without confirms")
def _(t):
    filled(t)
    other = t.client(1, "b")
    other.ready()
    yield
    yield
    other.publish("", "q", "2")
    other.silent(8, "the publisher")


@case("what a consumer held is acknowledged")
def _(t):
    filled(t)
    other = t.client(1, "b")
    other.qos(1)
    other.consume("q")
    [tag] = other.deliveries(1)
    yield
    yield
    other.ack(tag)
    other.silent(8, "the consumer")
    yield
    yield
    other.close_channel()
    t[2].until("q", 1)


@case("asked for a message")
def _(t):
    filled(t)
    yield
    yield
    t[1].get("q")
    yield
    yield
    t[1].until("q", 2)
    t[1].get("q")


@case("asked for its figures")
def _(t):
    filled(t)
    yield
    yield
    t[1].queue("q", passive=True)
    yield
    yield
    t[1].until("q", 2)


@case("a queue is declared")
def _(t):
    t[1].ready()
    yield
    yield
    t[1].quorum()
    yield
    yield
    t[2].quorum("p")


@case("a queue is purged")
def _(t):
    filled(t)
    yield
    yield
    t[1].purge("q")
    yield
    yield
    t[2].queue("q", passive=True, note=False)


@case("a queue is deleted")
def _(t):
    filled(t)
    yield
    yield
    t[1].delete_queue("q")
    yield
    yield


@case("somebody begins to consume")
def _(t):
    filled(t)
    yield
    yield
    t[1].consume("q")
    yield
    yield


@case("operators of a node without a majority")
def _(t):
    filled(t)
    yield
    yield
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1]")
    t.tool(1, STATUS, pick=WHO)
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes"])
    t.http(1, "GET", "/nodes", pick=["name", "running"])
    t.http(1, "GET", "/queues/~/q", pick=["state", "members", "online"], until='online=["node1"]')
    t.tool(1, "rabbitmq-queues add_member -p ~ q node2")
    t.tool(1, "rabbitmq-queues delete_member -p ~ q node2")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    for check in ("ready-to-serve-clients", "is-in-service", "alarms", "local-alarms", "virtual-hosts", "quorum-queues-without-elected-leaders/vhost/~", "metadata-store/initialized"):
        t.http(1, "GET", f"/health/checks/{check}")
    yield
    yield
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2, node3]\t[node1, node2, node3]")
