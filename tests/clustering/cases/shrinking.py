"""What is done to all queues of a node, so nobody else has queues meanwhile."""

from ..story import case


@case("a node's queues shrink")
def _(t):
    t[1].quorum()
    t[3].quorum("single", quorum_initial_group_size=1)
    t.tool(1, "rabbitmq-queues shrink node3")
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader members", until="[node1, node2]")
    t.http(1, "POST", "/queues/quorum/replicas/on/node3/grow", {"vhost_pattern": "^~$", "queue_pattern": ".*", "strategy": "all"})
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader members", until="[node1, node2, node3]")
    t.http(1, "DELETE", "/queues/quorum/replicas/on/node3/shrink")
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader members", until="[node1, node2]")
