"""One of three nodes stops, and comes back."""

from ..story import case

ACTS = ["stop 3", "start 3"]
STATUS = "rabbitmq-queues quorum_status -p ~ q --formatter json"
WHO = ["Node Name", "Raft State", "Membership"]
LISTED = "rabbitmqctl list_queues -p ~ name leader members online state"


@case("a queue of the node that stops gets another leader")
def _(t):
    t[3].quorum()
    t[1].confirm_select()
    t[1].fill("q", 2)
    t[1].confirms(2)
    yield
    t[1].fill("q", 1)
    t[1].confirms(3)
    t[2].until("q", 3)
    t[2].get("q", no_ack=True)
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2]\t")
    t.http(2, "GET", "/queues/~/q", pick=["members", "online", "state"], until='online=["node1", "node2"]')
    yield
    t.tool(3, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2, node3]\t[node1, node2, node3]")
    t[3].until("q", 2)
    t[3].get("q", no_ack=True)


@case("a queue of another leader goes on")
def _(t):
    t[1].quorum()
    t[2].consume("q")
    yield
    t.tool(1, LISTED, until="[node1, node2]\t")
    t[2].fill("q", 1)
    [tag] = t[2].deliveries(1)
    t[2].ack(tag)
    t[1].purge("q")
    yield
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2, node3]\t[node1, node2, node3]")
    t[3].counts("q")


@case("a consumer of another node keeps what it holds when the leader stops")
def _(t):
    t[3].quorum()
    t[1].confirm_select()
    t[1].fill("q", 3)
    t[1].confirms(3)
    t[2].qos(2)
    t[2].consume("q")
    one, two = t[2].deliveries(2)
    yield
    t[1].fill("q", 1)
    t[1].confirms(4)
    t[2].ack(one)
    t[2].deliveries(1)
    t[2].reject(two)
    t[2].deliveries(1)
    t[2].close_channel()
    t[1].until("q", 3)
    for _ in range(3):
        t[1].get("q")
    yield


@case("the clients of the node that stops")
def _(t):
    t[1].quorum()
    t[1].fill("q", 2)
    t[3].qos(1)
    t[3].consume("q")
    t[3].deliveries(1)
    yield
    t[3].closed()
    t[2].until("q", 2)
    t[2].get("q", no_ack=True)
    t[2].get("q", no_ack=True)
    t.client(3, "b").connects()
    yield
    t.client(3, "c").connects(eventually=True)


@case("a single active consumer of the node that stops")
def _(t):
    t[1].quorum(single_active_consumer=True)
    t[3].consume("q", "first")
    t[2].consume("q", "second")
    t[1].publish("", "q")
    t[3].deliveries(1)
    yield
    t[2].deliveries(1)
    t.tool(1, "rabbitmqctl list_consumers -p ~ queue_name consumer_tag active activity_status", until="second")
    t[3].closed()
    yield


@case("queues come and go without a node")
def _(t):
    t[1].quorum("gone")
    yield
    t[1].quorum("new")
    t[2].quorum("of5", quorum_initial_group_size=5)
    t[2].delete_queue("gone")
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader members online", until="new\tnode1\t[node1, node2, node3]\t[node1, node2]\n    of5\tnode2\t[node1, node2, node3]\t[node1, node2]")
    t[2].confirm_select()
    t[2].publish("", "new")
    t[2].confirms(1)
    yield
    t[3].queue("gone", passive=True)
    t[3].quorum("gone")
    t[3].get("new")
    t.tool(3, "rabbitmqctl list_queues -p ~ name leader members online", until="new")


@case("a queue whose only member stops")
def _(t):
    t[3].quorum(quorum_initial_group_size=1)
    t[1].confirm_select()
    t[1].fill("q", 2, delivery_mode=2)
    t[1].confirms(2)
    yield
    t[1].queue("q", passive=True)
    t[1].quorum(quorum_initial_group_size=1)
    t[1].get("q")
    t[1].consume("q")
    t[1].purge("q")
    t.tool(1, LISTED)
    yield
    t[2].until("q", 2)
    t[2].get("q")


@case("a consumer of a queue whose only member stops")
def _(t):
    t[3].quorum(quorum_initial_group_size=1)
    t[1].fill("q", 2, delivery_mode=2)
    t[1].qos(1)
    t[1].consume("q")
    t[1].deliveries(1)
    yield
    t[1].silent(8, "the consumer")
    yield
    t[1].close_channel()
    t[2].until("q", 2)


@case("a queue whose only member stops is deleted")
def _(t):
    t[3].quorum(quorum_initial_group_size=1)
    yield
    t[1].delete_queue("q")
    t[1].queue("q", passive=True)
    yield
    t[1].queue("q", passive=True)


@case("publishing to a queue whose only member stops")
def _(t):
    t[3].quorum(quorum_initial_group_size=1)
    t[1].confirm_select()
    yield
    t[1].publish("", "q")
    t[1].confirms(1)
    yield


@case("operators of queues of a node that is stopped")
def _(t):
    t[1].quorum()
    t[1].quorum("two", quorum_initial_group_size=1)
    yield
    t.tool(1, STATUS, pick=WHO)
    t.http(2, "GET", "/queues/quorum/~/q/status", pick=WHO)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node3")
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader")
    t.tool(1, "rabbitmq-queues add_member -p ~ two node3")
    t.tool(1, "rabbitmq-queues grow node3 all --vhost-pattern ^~$")
    t.tool(1, "rabbitmq-queues add_member -p ~ q node3")
    t.http(1, "POST", "/queues/quorum/~/two/replicas/add", {"node": "node3"})
    t.http(1, "POST", "/queues/quorum/replicas/on/node3/grow", {"vhost_pattern": "^~$", "queue_pattern": ".*", "strategy": "all"})
    t.tool(1, "rabbitmq-queues delete_member -p ~ q node3")
    t.tool(1, LISTED, until="q\tnode1\t[node1, node2]\t[node1, node2]")
    yield
    t.tool(3, "rabbitmqctl list_queues -p ~ name members online state", until="q\t[node1, node2]\t[node1, node2]")
    t.tool(3, "rabbitmq-queues add_member -p ~ q node3")
    t.tool(1, "rabbitmqctl list_queues -p ~ name members online state", until="[node1, node2, node3]\t[node1, node2, node3]")


@case("operators of a cluster without a node")
def _(t):
    yield
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes", "partitions"])
    t.http(2, "GET", "/nodes", pick=["name", "running"])
    t.http(2, "GET", "/nodes/node3", pick=["name", "running"])
    t.tool(1, "rabbitmqctl await_online_nodes 2 -t 5")
    t.tool(1, "rabbitmqctl await_online_nodes 3 -t 2")
    t.tool(1, "rabbitmq-upgrade await_online_quorum_plus_one -t 2")
    for check in ("ready-to-serve-clients", "is-in-service", "alarms", "local-alarms", "virtual-hosts", "quorum-queues-without-elected-leaders/vhost/~", "metadata-store/initialized"):
        t.http(1, "GET", f"/health/checks/{check}")
    t.tool(1, "rabbitmq-diagnostics check_virtual_hosts")
    t.tool(1, "rabbitmq-diagnostics check_running")
    yield
    t.tool(3, "rabbitmqctl await_online_nodes 3 -t 5")
    t.tool(1, "rabbitmqctl cluster_status --formatter json", pick=["running_nodes", "disk_nodes", "partitions"])


@case("a policy set without a node")
def _(t):
    t[3].quorum()
    yield
    t.tool(1, """rabbitmqctl set_policy -p ~ limits '^q' '{"max-length":2}' --apply-to quorum_queues""")
    t[1].confirm_select()
    t[1].fill("q", 4)
    t[1].confirms(4)
    t[2].until("q", 2)
    yield
    t[3].until("q", 2)
    t.tool(3, "rabbitmqctl list_queues -p ~ name policy", until="limits")
