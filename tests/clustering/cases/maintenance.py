"""A node in maintenance."""

from ..story import case

ACTS = ["tell 3 rabbitmq-upgrade drain", "tell 3 rabbitmq-upgrade revive"]


@case("its queues are led by others, its clients go")
def _(t):
    t[3].quorum()
    t[3].consume("q", "here")
    t[1].consume("q", "there")
    t[2].confirm_select()
    yield
    t[3].closed()
    t.client(3, "b").connects()
    t[2].fill("q", 2)
    t[2].confirms(2)
    t[1].deliveries(2)
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="online")
    assert "\tnode3" not in t.tool(1, "rabbitmqctl list_queues -p ~ name leader", note=False)
    yield
    t.client(3, "c").connects(eventually=True)
    t[1].close_channel()
    t[3].until("q", 2)


@case("queues are declared meanwhile")
def _(t):
    yield
    t[1].quorum()
    t[1].quorum("of5", quorum_initial_group_size=5)
    t.tool(3, "rabbitmqctl list_queues -p ~ name leader members online", until="of5")
    yield
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online")


@case("operators see it")
def _(t):
    t[1].quorum()
    t[1].quorum("one", quorum_initial_group_size=1)
    yield
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes", "maintenance_status"])
    t.tool(3, "rabbitmq-upgrade drain")
    t.http(1, "GET", "/nodes", pick=["name", "running", "being_drained"], until="being_drained=true")
    for node in (1, 3):
        for check in ("is-in-service", "ready-to-serve-clients", "port-listener/9", "protocol-listener/amqp"):
            t.http(node, "GET", f"/health/checks/{check}")
    t.tool(3, "rabbitmq-diagnostics check_running")
    t.tool(3, "rabbitmq-diagnostics check_local_alarms")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node3")
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader")
    t.tool(1, "rabbitmq-queues add_member -p ~ one node3")
    yield
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes", "maintenance_status"])
    t.tool(3, "rabbitmq-upgrade revive")
    t.http(1, "GET", "/nodes", pick=["name", "running", "being_drained"], until='name="node3", running=true, being_drained=false')
    for check in ("is-in-service", "ready-to-serve-clients"):
        t.http(3, "GET", f"/health/checks/{check}")
