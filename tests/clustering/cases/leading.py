"""Where leaders are, who moves them, and what clients notice of that."""

from ..story import case

STATUS = "rabbitmq-queues quorum_status -p ~ q --formatter json"


def leads(t, node):
    """Waits until this node leads."""
    t.tool(1, "rabbitmqctl list_queues -p ~ name leader", until=f"q\tnode{node}")


@case("leadership is transferred")
def _(t):
    t[1].quorum()
    t.tool(3, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    t.tool(2, STATUS, pick=["Node Name", "Raft State", "Membership"], until='"node2", Raft State="leader"')
    t.http(1, "GET", "/queues/~/q", pick=["leader", "node", "members", "online"], until='leader="node2", node="node2"')


@case("leadership is transferred to nobody")
def _(t):
    t[1].quorum(quorum_initial_group_size=1)
    t[1].quorum("p")
    t[1].queue("classic")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q zork@localhost")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ zork node2")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ classic node2")
    t.tool(1, "rabbitmq-queues transfer_leadership -p zork q node2")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ p node1")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ p")
    t.tool(2, "rabbitmqctl list_queues -p ~ name leader")


@case("a consumer goes on when the leader moves")
def _(t):
    t[1].quorum()
    t[3].qos(2)
    t[3].consume("q")
    t[2].confirm_select()
    t[2].fill("q", 3)
    t[2].confirms(3)
    one, two = t[3].deliveries(2)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    t[3].ack(one)
    t[3].deliveries(1)
    t[2].fill("q", 1)
    t[2].confirms(4)
    t[3].reject(two)
    t[3].deliveries(1)
    t.tool(1, "rabbitmqctl list_consumers -p ~ queue_name consumer_tag active", until="c")
    t[3].close_channel()
    t[1].until("q", 3)
    for _ in range(3):
        t[1].get("q")


@case("who consumes through the leaders stays a consumer")
def _(t):
    t[1].quorum()
    t[1].consume("q", "one")
    t[2].consume("q", "two")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    for _ in range(2):
        t[3].publish("", "q")
    t[1].deliveries(1)
    t[2].deliveries(1)
    t[1].hang_up()
    t[2].deliveries(1)


@case("what was got is settled after the leader moved")
def _(t):
    t[1].quorum()
    t[2].confirm_select()
    t[2].fill("q", 3)
    t[2].confirms(3)
    acked, returned, kept = t[1].get("q"), t[1].get("q"), t[1].get("q")
    t.tool(2, "rabbitmq-queues transfer_leadership -p ~ q node3")
    leads(t, 3)
    t[1].ack(acked)
    t[1].nack(returned)
    t[2].until("q", 1)
    t[2].get("q")
    t[1].close_channel()
    t[2].until("q", 1)
    t[2].get("q")


@case("deliveries are counted over a change of leader")
def _(t):
    t[1].quorum(delivery_limit=2)
    t[2].confirm_select()
    t[2].publish("", "q")
    t[2].confirms(1)
    t[2].reject(t[2].get("q"))
    t[2].until("q", 1)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    t[1].reject(t[1].get("q"))
    t[1].until("q", 1)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node3")
    leads(t, 3)
    t[1].reject(t[1].get("q"))
    t[1].until("q", 0)


@case("a single active consumer stays the one when the leader moves")
def _(t):
    t[1].quorum(single_active_consumer=True)
    t[2].consume("q", "first")
    t[3].consume("q", "second")
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node3")
    leads(t, 3)
    t[1].publish("", "q", "one")
    [tag] = t[2].deliveries(1)
    t[3].no_deliveries("q")
    t[2].cancel("first")
    t[1].publish("", "q", "two")
    t[3].deliveries(1)
    t[2].ack(tag)
    t[1].until("q", 0)


@case("an exclusive consumer stays alone when the leader moves")
def _(t):
    t[1].quorum()
    t[2].consume("q", exclusive=True)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    t[3].consume("q", "d")


@case("dead letters at least once go on when the leader moves")
def _(t):
    t[3].quorum("dead")
    t[1].quorum(dead_letter_exchange="", dead_letter_routing_key="dead", dead_letter_strategy="at-least-once", overflow="reject-publish")
    t[2].confirm_select()
    t[2].publish("", "q", "one")
    t[2].confirms(1)
    t.tool(1, "rabbitmq-queues transfer_leadership -p ~ q node2")
    leads(t, 2)
    t[2].publish("", "q", "two")
    t[2].confirms(2)
    t[1].reject(t[1].get("q"), requeue=False)
    t[1].until("dead", 1)
    t[1].get("dead")


@case("the leader moves again and again")
def _(t):
    t[1].quorum()
    t[3].consume("q")
    t[1].confirm_select()
    for number, node in enumerate((2, 3, 1), 1):
        t.tool(node, f"rabbitmq-queues transfer_leadership -p ~ q node{node}")
        leads(t, node)
        t[1].publish("", "q", str(number))
        t[1].confirms(number)
        [tag] = t[3].deliveries(1)
        t[3].ack(tag)
    t[2].counts("q")


@case("leaders are spread")
def _(t):
    for number in range(3):
        t[1].quorum(f"q{number}")
    t.tool(2, "rabbitmq-queues rebalance quorum --vhost-pattern ^~$ --queue-pattern ^q")
    t.tool(1, "rabbitmq-queues rebalance zork")
    t.tool(1, "rabbitmq-queues rebalance")
    t.tool(1, "rabbitmq-queues rebalance all --vhost-pattern ^~$ --queue-pattern ^nothing")
