"""A question about the whole cluster, so nobody else has queues meanwhile."""

from ..story import case

ACTS = ["stop 3", "start 3"]
CRITICAL = "rabbitmq-queues check_if_node_is_quorum_critical"


@case("whether a node is critical, and who has to be there")
def _(t):
    t[1].quorum()
    for node in (1, 2, 3):
        t.tool(node, CRITICAL)
        t.http(node, "GET", "/health/checks/node-is-quorum-critical")
    t[2].quorum("single", quorum_initial_group_size=1)
    t.tool(1, CRITICAL)
    t.tool(2, CRITICAL)
    t.http(2, "GET", "/health/checks/node-is-quorum-critical", until="503")
    t.tool(2, "rabbitmq-diagnostics check_if_node_is_quorum_critical")
    t.tool(2, "rabbitmq-upgrade await_online_quorum_plus_one -t 4")
    t[2].delete_queue("single")
    t.tool(2, "rabbitmq-upgrade await_online_quorum_plus_one -t 10")
    t.tool(1, "rabbitmqctl await_online_nodes 3 -t 5")
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes", "partitions", "maintenance_status"])
    t.http(3, "GET", "/nodes", pick=["name", "running", "being_drained", "type"])
    t.http(3, "GET", "/nodes/node2", pick=["name", "running"])
    t.http(3, "GET", "/cluster-name", pick=[])
    t.tool(1, "rabbitmqctl forget_cluster_node node2")
    t.tool(1, "rabbitmqctl forget_cluster_node node1")
    t.tool(1, "rabbitmqctl forget_cluster_node zork@localhost")
    t.tool(1, "rabbitmqctl reset")
    t.tool(1, "rabbitmqctl start_app")
    for check in ("ready-to-serve-clients", "is-in-service", "reached-target-cluster-size", "quorum-queues-without-elected-leaders/all-vhosts", "quorum-queues-without-elected-leaders/vhost/~", "quorum-queues-without-elected-leaders/vhost/zork", "quorum-queues-without-elected-leaders/vhost/~/pattern/q", "quorum-queues-without-elected-leaders/all-vhosts/pattern/nothing"):
        t.http(2, "GET", f"/health/checks/{check}")
    yield
    for node in (1, 2):
        t.tool(node, CRITICAL, until="queue 'q'")
        t.http(node, "GET", "/health/checks/node-is-quorum-critical", until="503")
    yield
    t.tool(1, CRITICAL, until="code 0")
    t.http(3, "GET", "/health/checks/node-is-quorum-critical", until="200")
