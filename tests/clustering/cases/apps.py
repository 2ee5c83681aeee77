"""The broker of one node is stopped, its process stays."""

from ..story import case

ACTS = ["tell 3 rabbitmqctl stop_app", "tell 3 rabbitmqctl start_app"]


@case("queues go on without it")
def _(t):
    t[3].quorum()
    t[3].confirm_select()
    t[3].fill("q", 2)
    t[3].confirms(2)
    t[1].qos(1)
    t[1].consume("q")
    [tag] = t[1].deliveries(1)
    yield
    t[3].closed()
    t[2].confirm_select()
    t[2].publish("", "q", "2")
    t[2].confirms(1)
    t[1].ack(tag)
    t[1].deliveries(1)
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2]\t")
    t.tool(3, "rabbitmqctl list_queues -p ~ name")
    t.tool(3, "rabbitmq-queues quorum_status -p ~ q")
    t.tool(3, "rabbitmqctl await_startup -t 1")
    t.tool(3, "rabbitmq-diagnostics check_running")
    t.tool(3, "rabbitmq-diagnostics ping")
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes"])
    yield
    t.tool(3, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2, node3]\t[node1, node2, node3]")
    t[3].until("q", 1)


@case("told what it is told already")
def _(t):
    yield
    t.tool(3, "rabbitmqctl stop_app")
    yield
    t.tool(3, "rabbitmqctl start_app")
