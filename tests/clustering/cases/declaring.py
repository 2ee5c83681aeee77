"""Queues declared, described and deleted through any node."""

from ..story import case

FIELDS = "name leader members online type state"


@case("a queue is led by the node that declares it")
def _(t):
    for node in (1, 2, 3):
        t[node].quorum(f"q{node}")
    for node in (1, 2, 3):
        t.tool(node, f"rabbitmqctl list_queues -p ~ {FIELDS}")
    t.http(2, "GET", "/queues/~", pick=["name", "leader", "node", "members", "online", "type", "state", "durable", "auto_delete", "exclusive"], until="q3")


@case("declared again through another node")
def _(t):
    t[1].quorum(delivery_limit=5)
    for node in (2, 3):
        t[node].quorum(delivery_limit=5)
        t[node].queue("q", passive=True)
        t[node].quorum(delivery_limit=6)
        t[node].queue("q")
        t[node].quorum()
    t[2].delete_queue("q")
    for node in (1, 3):
        t[node].queue("q", passive=True)
    t[3].quorum(delivery_limit=6)
    t[1].quorum(delivery_limit=6)


@case("refused through any node")
def _(t):
    for node in (2, 3):
        t[node].quorum(flags={"durable": False})
        t[node].quorum(flags={"exclusive": True})
        t[node].quorum(flags={"auto_delete": True})
        t[node].quorum(max_priority=5)
        t[node].quorum(quorum_initial_group_size=0)
        t[node].quorum(overflow="zork")
        t[node].quorum(queue_leader_locator="zork")
        t[node].queue("q", passive=True)


@case("with every argument")
def _(t):
    t[2].quorum(
        quorum_initial_group_size=3, quorum_target_group_size=3, delivery_limit=7, max_length=10, max_length_bytes=10_000, message_ttl=60_000,
        expires=600_000, overflow="reject-publish", single_active_consumer=True, queue_leader_locator="client-local", dead_letter_exchange="amq.fanout",
        dead_letter_routing_key="k", dead_letter_strategy="at-least-once", consumer_timeout=60_000, delayed_retry_type="all", delayed_retry_min=10,
        delayed_retry_max=100,
    )  # fmt: skip
    t.tool(3, "rabbitmqctl list_queues -p ~ name leader members --formatter json", pick=["name", "leader", "members"])
    t.http(1, "GET", "/queues/~/q", pick=["arguments", "leader", "members"])


for size in (1, 2, 3, 5):

    @case(f"a first group of {size}")
    def _(t, size=size):
        t[2].quorum(quorum_initial_group_size=size)
        t.tool(1, "rabbitmqctl list_queues -p ~ name leader")
        if size != 2:
            t.tool(1, "rabbitmqctl list_queues -p ~ name members online")
        t[3].confirm_select()
        t[3].publish("", "q")
        t[3].confirms(1)
        t[1].get("q")


@case("a quorum queue by the virtual host's default")
def _(t):
    t.tool(1, "rabbitmqctl update_vhost_metadata ~ --default-queue-type quorum")
    t[3].queue("q")
    t.tool(2, f"rabbitmqctl list_queues -p ~ {FIELDS}")


@case("declared over HTTP")
def _(t):
    t.http(2, "PUT", "/queues/~/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    t.http(3, "PUT", "/queues/~/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    t.http(3, "PUT", "/queues/~/q", {"durable": True, "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 3}})
    t.http(3, "PUT", "/queues/~/p", {"durable": True, "arguments": {"x-queue-type": "quorum", "x-max-priority": 3}})
    t.http(3, "PUT", "/queues/~/p", {"durable": False, "arguments": {"x-queue-type": "quorum"}})
    t.tool(1, f"rabbitmqctl list_queues -p ~ {FIELDS}")
    t.http(1, "DELETE", "/queues/~/q")
    t.http(3, "DELETE", "/queues/~/q")


@case("lists by where queues are")
def _(t):
    t[1].quorum("q1")
    t[2].quorum("q2")
    for option in ("--local", "--online", "--offline"):
        for node in (1, 2):
            t.tool(node, f"rabbitmqctl list_queues -p ~ {option} name")
    t.tool(3, "rabbitmqctl list_queues -p ~ name policy durable auto_delete arguments pid messages consumers --formatter json", pick=["name", "policy", "durable", "auto_delete", "messages", "consumers"])
    t.tool(3, "rabbitmqctl list_queues -p ~ name open_files confirm_on effective_policy_definition")
    t.http(2, "GET", "/queues/~?page=1&page_size=1&sort=name", pick=["filtered_count", "total_count", "page_count"])
    t.http(2, "GET", "/queues/~/q2?columns=name,leader", pick=["name", "leader", "members"])


@case("figures are told by every node")
def _(t):
    t[2].quorum()
    t[1].confirm_select()
    t[1].fill("q", 3)
    t[1].confirms(3)
    t[3].get("q")
    for node in (1, 2, 3):
        t.tool(node, "rabbitmqctl list_queues -p ~ name messages messages_ready messages_unacknowledged", until="q\t3\t2\t1")
        t.http(node, "GET", "/queues/~/q", pick=["messages", "messages_ready", "messages_unacknowledged"], until="messages=3, messages_ready=2, messages_unacknowledged=1")


@case("a policy holds on all nodes")
def _(t):
    t[2].quorum()
    t.tool(3, """rabbitmqctl set_policy -p ~ limits '^q' '{"max-length":2,"delivery-limit":1}' --apply-to quorum_queues""")
    t.tool(1, "rabbitmqctl list_queues -p ~ name policy effective_policy_definition", until="limits")
    t.http(1, "GET", "/queues/~/q", pick=["policy", "effective_policy_definition"], until='policy="limits"')
    t[1].confirm_select()
    t[1].fill("q", 4)
    t[1].confirms(4)
    t[3].until("q", 2)
    for _ in range(2):
        t[3].reject(t[3].get("q"))
        t[3].sync("q")
    t[3].get("q")
    t.tool(2, "rabbitmqctl list_policies -p ~")
    t.tool(2, "rabbitmqctl clear_policy -p ~ limits")
    t.tool(1, "rabbitmqctl list_queues -p ~ name policy effective_policy_definition", until="q\t\t")


@case("a policy that is none")
def _(t):
    t[1].quorum()
    t.tool(2, """rabbitmqctl set_policy -p ~ bad '^q' '{"delivery-limit":"x"}'""")
    t.tool(2, """rabbitmqctl set_policy -p ~ bad '^q' '{"target-group-size":0}'""")
    t.tool(2, """rabbitmqctl set_policy -p ~ bad '^q' '{"queue-leader-locator":"zork"}'""")
    t.tool(2, """rabbitmqctl set_policy -p ~ good '^q' '{"target-group-size":3,"queue-leader-locator":"balanced"}' --apply-to queues""")
    t.tool(3, """rabbitmqctl set_operator_policy -p ~ least '^q' '{"max-length":1}' --apply-to quorum_queues""")
    t.tool(1, "rabbitmqctl list_queues -p ~ name policy operator_policy effective_policy_definition", until="least")


@case("deleted by tools")
def _(t):
    t[1].quorum()
    t[2].confirm_select()
    t[2].fill("q", 2)
    t[2].confirms(2)
    t.tool(3, "rabbitmqctl purge_queue -p ~ q")
    t[2].fill("q", 2)
    t[2].confirms(4)
    t.tool(3, "rabbitmqctl delete_queue -p ~ q --if-empty")
    t.tool(3, "rabbitmqctl delete_queue -p ~ q")
    t.tool(2, "rabbitmqctl delete_queue -p ~ q")
    t[1].queue("q", passive=True)
