"""A node is stopped and forgotten, and another one of its name comes."""

from ..story import case

ACTS = ["stop 3", "replace 3"]
LISTED = "rabbitmqctl list_queues -p ~ name leader members online state"


@case("what was on it")
def _(t):
    t[1].quorum()
    t[3].quorum("led")
    t[3].quorum("single", quorum_initial_group_size=1)
    t[1].confirm_select()
    t[1].fill("led", 2)
    t[1].confirms(2)
    yield
    t.tool(1, "rabbitmqctl forget_cluster_node node3")
    t.tool(2, "rabbitmqctl list_queues -p ~ name members online", until="led\t[node1, node2]\t[node1, node2]")
    t[2].get("led")
    t[1].queue("single", passive=True)
    t.tool(1, "rabbitmqctl forget_cluster_node node3")
    t.tool(2, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes"])
    t.http(1, "GET", "/nodes", pick=["name", "running"])
    t.tool(1, "rabbitmq-queues add_member -p ~ q node3")
    t[1].quorum("new")
    yield
    t[3].until("led", 1)
    t.tool(3, "rabbitmq-queues add_member -p ~ led node3")
    t.tool(3, "rabbitmqctl list_queues -p ~ name members online", until="led\t[node1, node2, node3]\t[node1, node2, node3]")
    t[3].quorum("last")
    # Who leads is as an election went.
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online", until="last\t[node1, node2, node3]\t[node1, node2, node3]")
