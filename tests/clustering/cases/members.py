"""Members: who they are, who comes and who goes, and what operators are told."""

from ..story import case

STATUS = "rabbitmq-queues quorum_status -p ~ q --formatter json"
WHO = ["Node Name", "Raft State", "Membership"]
LISTED = "rabbitmqctl list_queues -p ~ name leader members online"


@case("the status of a queue")
def _(t):
    t[2].quorum()
    for node in (1, 2, 3):
        t.tool(node, STATUS, pick=WHO, until='Raft State="leader"')
    t.http(3, "GET", "/queues/quorum/~/q/status", pick=WHO, until='Raft State="leader"')
    t.tool(1, "rabbitmq-queues quorum_status -p ~ zork")
    t.tool(1, "rabbitmq-queues quorum_status -p zork q")
    t.tool(1, "rabbitmq-queues quorum_status -p ~")
    t[1].queue("classic")
    t.tool(1, "rabbitmq-queues quorum_status -p ~ classic")
    t.http(1, "GET", "/queues/quorum/~/classic/status")
    t.http(1, "GET", "/queues/quorum/~/zork/status")
    t.http(1, "GET", "/queues/quorum/zork/q/status")


@case("a member is added")
def _(t):
    t[1].quorum(quorum_initial_group_size=1)
    t[1].confirm_select()
    t[1].fill("q", 3)
    t[1].confirms(3)
    t.tool(2, "rabbitmq-queues add_member -p ~ q node2")
    t.tool(1, LISTED, until="\tnode1\t[node1, node2]")
    t.tool(1, STATUS, pick=WHO, until='"node2", Raft State="follower", Membership="voter"')
    t.tool(1, "rabbitmq-queues add_member -p ~ q node2")
    t.tool(3, "rabbitmq-queues add_member -p ~ q node3 --membership voter")
    t.tool(1, LISTED, until="\tnode1\t[node1, node2, node3]")
    t[3].until("q", 3)
    t.tool(3, "rabbitmq-queues transfer_leadership -p ~ q node3", until="code 0")
    t[2].get("q")


@case("a member is not added")
def _(t):
    t[1].quorum(quorum_initial_group_size=1)
    t[1].queue("classic")
    t.tool(1, "rabbitmq-queues add_member -p ~ q node1")
    t.tool(1, "rabbitmq-queues add_member -p ~ q zork@localhost")
    t.tool(1, "rabbitmq-queues add_member -p ~ zork node2")
    t.tool(1, "rabbitmq-queues add_member -p zork q node2")
    t.tool(1, "rabbitmq-queues add_member -p ~ classic node2")
    t.tool(1, "rabbitmq-queues add_member -p ~ q node2 --membership zork")
    t.tool(1, "rabbitmq-queues add_member -p ~ q")
    t.tool(1, LISTED)


@case("a member is removed")
def _(t):
    t[1].quorum()
    t.tool(2, "rabbitmq-queues delete_member -p ~ q node3")
    t.tool(1, LISTED, until="\tnode1\t[node1, node2]")
    t.tool(1, "rabbitmq-queues delete_member -p ~ q node3")
    t.tool(1, "rabbitmq-queues delete_member -p ~ q zork@localhost")
    t.tool(1, "rabbitmq-queues delete_member -p ~ zork node2")
    t.tool(1, "rabbitmq-queues delete_member -p zork q node2")
    t.tool(1, "rabbitmq-queues delete_member -p ~ q")
    t[1].queue("classic")
    t.tool(1, "rabbitmq-queues delete_member -p ~ classic node1")
    t[3].confirm_select()
    t[3].publish("", "q")
    t[3].confirms(1)
    t[3].get("q")


@case("the leader is removed, and the last member")
def _(t):
    t[1].quorum()
    t[3].consume("q")
    t.tool(2, "rabbitmq-queues delete_member -p ~ q node3")
    t.tool(2, "rabbitmq-queues delete_member -p ~ q node1")
    t.tool(1, LISTED, until="\tnode2\t[node2]")
    t[1].publish("", "q")
    t[3].deliveries(1)
    t.tool(2, "rabbitmq-queues delete_member -p ~ q node2")
    t.tool(1, LISTED)


@case("a member comes back")
def _(t):
    t[1].quorum()
    t.tool(1, "rabbitmq-queues delete_member -p ~ q node3")
    t[1].confirm_select()
    t[1].fill("q", 2)
    t[1].confirms(2)
    t.tool(3, "rabbitmq-queues add_member -p ~ q node3")
    t.tool(1, STATUS, pick=WHO, until='"node3", Raft State="follower", Membership="voter"')
    t[3].get("q")


@case("members over HTTP")
def _(t):
    t[1].quorum(quorum_initial_group_size=1)
    t.http(2, "POST", "/queues/quorum/~/q/replicas/add", {"node": "node2"})
    t.http(2, "POST", "/queues/quorum/~/q/replicas/add", {"node": "node2"})
    t.http(2, "POST", "/queues/quorum/~/q/replicas/add", {"node": "zork@localhost"})
    t.http(2, "POST", "/queues/quorum/~/q/replicas/add", {})
    t.http(2, "POST", "/queues/quorum/~/zork/replicas/add", {"node": "node2"})
    t.http(2, "POST", "/queues/quorum/zork/q/replicas/add", {"node": "node2"})
    t.tool(1, LISTED, until="\tnode1\t[node1, node2]")
    t.http(3, "DELETE", "/queues/quorum/~/q/replicas/delete", {"node": "node2"})
    t.tool(1, LISTED, until="\tnode1\t[node1]")
    t.http(3, "DELETE", "/queues/quorum/~/q/replicas/delete", {"node": "node2"})
    t.http(3, "DELETE", "/queues/quorum/~/q/replicas/delete", {"node": "zork@localhost"})
    t.http(3, "DELETE", "/queues/quorum/~/q/replicas/delete", {})
    t.http(3, "DELETE", "/queues/quorum/~/zork/replicas/delete", {"node": "node2"})
    t.tool(1, LISTED)


@case("many queues grow and shrink")
def _(t):
    for name in ("q1", "q2"):
        t[1].quorum(name, quorum_initial_group_size=1)
    t[1].quorum("full")
    t[1].queue("classic")
    t.tool(1, "rabbitmq-queues grow node2 all --vhost-pattern ^~$ --queue-pattern ^q")
    t.tool(1, LISTED, until="q1\tnode1\t[node1, node2]\t[node1, node2]", note=False)
    t.tool(1, LISTED, until="q2\tnode1\t[node1, node2]\t[node1, node2]")
    t.tool(2, "rabbitmq-queues grow node2 all --vhost-pattern ^~$ --queue-pattern ^q")
    t.tool(2, "rabbitmq-queues grow node3 even --vhost-pattern ^~$ --queue-pattern ^q1$ --errors-only")
    t.tool(1, LISTED, until="q1\tnode1\t[node1, node2, node3]\t[node1, node2, node3]")
    t.tool(2, "rabbitmq-queues grow node3 zork --vhost-pattern ^~$")
    t.tool(2, "rabbitmq-queues grow zork@localhost all --vhost-pattern ^~$")
    t.tool(2, "rabbitmq-queues grow node3 all --vhost-pattern ^nothing$")
    t.tool(2, "rabbitmq-queues grow node3")
    t.tool(2, "rabbitmq-queues shrink zork@localhost")


@case("many queues grow to a count")
def _(t):
    for name in ("q1", "q2"):
        t[1].quorum(name, quorum_initial_group_size=1)
    t.tool(1, "rabbitmq-queues grow_to_count 2 all --vhost-pattern ^~$ --queue-pattern ^q1$")
    t.http(1, "GET", "/queues/quorum/~/q1/status", pick=["Membership"], until=2 * '\n    Membership="voter"')
    t.tool(1, "rabbitmq-queues grow_to_count 2 all --vhost-pattern ^~$ --queue-pattern ^q1$")
    t.tool(1, "rabbitmq-queues grow_to_count 9 all --vhost-pattern ^~$ --queue-pattern ^q1$")
    t.tool(1, LISTED, until="q1\tnode1\t[node1, node2, node3]\t[node1, node2, node3]")
    t.tool(1, "rabbitmq-queues grow_to_count 0 all --vhost-pattern ^~$")
    t.tool(1, "rabbitmq-queues grow_to_count 3 zork --vhost-pattern ^~$")
    t.tool(1, "rabbitmq-queues grow_to_count 3")


@case("many queues grow over HTTP")
def _(t):
    t[1].quorum(quorum_initial_group_size=1)
    t.http(2, "POST", "/queues/quorum/replicas/on/node2/grow", {"vhost_pattern": "^~$", "queue_pattern": ".*", "strategy": "all"})
    t.tool(1, LISTED, until="\tnode1\t[node1, node2]")
    t.http(2, "POST", "/queues/quorum/replicas/on/zork@localhost/grow", {"vhost_pattern": "^~$", "queue_pattern": ".*", "strategy": "all"})
    t.http(2, "POST", "/queues/quorum/replicas/on/node2/grow", {"vhost_pattern": "^~$", "queue_pattern": ".*", "strategy": "zork"})
    t.http(2, "DELETE", "/queues/quorum/replicas/on/zork@localhost/shrink")


@case("messages are peeked at through each node")
def _(t):
    t[1].quorum()
    t[1].confirm_select()
    t[1].publish("", "q", "one", delivery_mode=2, headers={"a": 1})
    t[1].publish("", "q", "two")
    t[1].confirms(2)
    for node in (1, 2, 3):
        t.tool(node, "rabbitmq-queues peek -p ~ q 2", until="two")
    t.tool(1, "rabbitmq-queues peek -p ~ q 1")
    for position in ("3", "0", "-1", "x"):
        t.tool(2, f"rabbitmq-queues peek -p ~ q {position}")
    t.tool(2, "rabbitmq-queues peek -p ~ q")
    t.tool(2, "rabbitmq-queues peek -p ~ zork 1")
    t.tool(2, "rabbitmq-queues peek -p zork q 1")
    t[1].queue("classic")
    t.tool(2, "rabbitmq-queues peek -p ~ classic 1")


@case("memory and checkpoints")
def _(t):
    t[1].quorum()
    t[1].queue("classic")
    t.tool(2, "rabbitmq-queues reclaim_quorum_memory -p ~ q")
    t.tool(2, "rabbitmq-queues reclaim_quorum_memory -p ~ zork")
    t.tool(2, "rabbitmq-queues reclaim_quorum_memory -p ~ classic")
    t.tool(2, "rabbitmq-queues reclaim_quorum_memory -p zork q")
    t.tool(2, "rabbitmq-queues reclaim_quorum_memory -p ~")
    t.tool(2, "rabbitmq-queues force_checkpoint --vhost-pattern ^~$")
    t.tool(2, "rabbitmq-queues force_checkpoint --vhost-pattern ^~$ --queue-pattern ^nothing$")
    t.tool(2, "rabbitmq-queues force_checkpoint --vhost-pattern ^~$ --errors-only")


@case("nobody learns yet")
def _(t):
    t[1].quorum()
    for node in (1, 2, 3):
        t.tool(node, "rabbitmq-queues check_if_new_quorum_queue_replicas_have_finished_initial_sync")
