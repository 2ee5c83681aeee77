"""Mirrored queues: what policies of the 3.x series give and take away, what operators are told of mirrors, and what clients of all nodes get. RabbitMQ
dropped them in 4.0: the reference is 3.10."""

from ..story import case

REFERENCE = "RabbitMQ 3.10"


def policy(t, definition: str, name="ha", pattern="^q", more="") -> None:
    t.tool(2, f"rabbitmqctl set_policy -p ~ {name} {pattern} '{definition}' --apply-to queues{more}")


def mirrors(t, *nodes: int, field="synchronised_slave_nodes", number=3, queue="q") -> None:
    """Waits until these are a queue's mirrors that have everything, or its mirrors at all, as the node says, and notes how it stands."""
    picked = ["name", "node", *dict.fromkeys(["slave_nodes", field])]
    named = ", ".join(f'"node{node}"' for node in nodes)
    t.http(number, "GET", f"/queues/~/{queue}", pick=picked, until=f"{field}=[{named}]")


ALL = '{"ha-mode": "all", "ha-sync-mode": "automatic"}'


@case("a policy for all gives a queue mirrors, and takes them away")
def _(t):
    t[1].queue("q")
    t[2].confirm_select()
    t[2].fill("q", 3, delivery_mode=2)
    t[2].confirms(3)
    policy(t, ALL)
    mirrors(t, 2, 3)
    for node in (1, 2, 3):
        t[node].until("q", 3)
        t[node].counts("q")
    t[3].ack(t[3].get("q"))
    t[2].fill("q", 2)
    t[2].confirms(5)
    t.tool(1, "rabbitmqctl clear_policy -p ~ ha")
    t[1].until("q", 4)
    for _ in range(4):
        t[3].get("q", no_ack=True)


for what, definition, nodes in (
    ("exactly one", '{"ha-mode": "exactly", "ha-params": 1}', []),
    ("exactly three", '{"ha-mode": "exactly", "ha-params": 3}', [2, 3]),
    ("more than there are", '{"ha-mode": "exactly", "ha-params": 7}', [2, 3]),
    ("two named nodes", '{"ha-mode": "nodes", "ha-params": ["node1", "node3"]}', [3]),
    ("nodes of which some are nobody", '{"ha-mode": "nodes", "ha-params": ["node1", "node2", "zork@localhost"]}', [2]),
    ("nodes that are nobody", '{"ha-mode": "nodes", "ha-params": ["zork@localhost"]}', []),
):

    @case(f"mirrors on {what}")
    def _(t, definition=definition, nodes=nodes):
        policy(t, definition)
        t[1].queue("q")
        mirrors(t, *nodes, field="slave_nodes")
        t[2].confirm_select()
        t[2].publish("", "q", "m")
        t[2].confirms(1)
        t[3].get("q", no_ack=True)


@case("mirrors on exactly two of three")
def _(t):
    policy(t, '{"ha-mode": "exactly", "ha-params": 2}')
    t[1].queue("q")
    t[2].confirm_select()
    t[2].publish("", "q", "m")
    t[2].confirms(1)
    t.http(1, "GET", "/queues/~/q", pick=["node", "policy"], until='policy="ha"')
    t[3].get("q", no_ack=True)


@case("a policy with a higher priority decides")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    policy(t, '{"ha-mode": "nodes", "ha-params": ["node1", "node2"]}', "less", more=" --priority 9")
    mirrors(t, 2)
    t.tool(3, "rabbitmqctl clear_policy -p ~ less")
    mirrors(t, 2, 3)


@case("the queue leaves its node if the policy names others")
def _(t):
    t[1].queue("q")
    t[1].confirm_select()
    t[1].fill("q", 3, delivery_mode=2)
    t[1].confirms(3)
    policy(t, '{"ha-mode": "nodes", "ha-params": ["node2", "node3"], "ha-sync-mode": "automatic"}')
    t.http(3, "GET", "/queues/~/q", pick=["name", "policy"], until='policy="ha"')
    t[1].until("q", 3)
    for _ in range(3):
        t[1].get("q", no_ack=True)


@case("exclusive queues have no mirrors, all others of the virtual host have")
def _(t):
    policy(t, ALL)
    t[1].queue("q.mine", durable=False, exclusive=True)
    t[1].queue("q.passing", durable=False)
    t[1].queue("q.going", auto_delete=True)
    t[1].queue("q.lazy", arguments={"x-queue-mode": "lazy"})
    t[1].queue("q.sorted", arguments={"x-max-priority": 5})
    t[1].queue("other")
    for queue in ("q.passing", "q.going", "q.lazy", "q.sorted"):
        mirrors(t, 2, 3, queue=queue)
    for queue in ("q.mine", "other"):
        t.http(2, "GET", f"/queues/~/{queue}", pick=["name", "node", "slave_nodes"])


@case("confirmed, returned, expired and dead-lettered as without mirrors")
def _(t):
    policy(t, ALL)
    t[1].queue("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q.dead", "x-max-length": 3})
    t[2].queue("q.dead")
    mirrors(t, 2, 3)
    t[3].confirm_select()
    t[3].fill("q", 5)
    t[3].publish("", "nobody", "lost", mandatory=True)
    t[3].returns(1)
    t[3].confirms(6)
    t[1].until("q.dead", 2)
    t[1].get("q.dead", no_ack=True)
    t[2].nack(t[2].get("q"), requeue=False)
    t[1].until("q.dead", 2)
    t[2].purge("q")
    t[3].delete_queue("q")
    t[1].queue("q", passive=True)


@case("priorities, and consumers of every node")
def _(t):
    policy(t, ALL)
    t[1].queue("q", arguments={"x-max-priority": 3})
    mirrors(t, 2, 3)
    t[2].confirm_select()
    for number in range(4):
        t[2].publish("", "q", str(number), priority=number)
    t[2].confirms(4)
    t[3].get("q", no_ack=True)
    t[2].qos(1)
    t[2].consume("q", "two")
    [tag] = t[2].deliveries(1)
    t[3].qos(1)
    t[3].consume("q", "three")
    [other] = t[3].deliveries(1)
    t[3].ack(other)
    t[3].deliveries(1)
    t[2].ack(tag)
    t[1].counts("q")


@case("a transaction on a mirrored queue")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    t[3].tx_select()
    t[3].fill("q", 2)
    t[2].counts("q")
    t[3].tx_commit()
    t[2].until("q", 2)
    t[3].get("q")
    t[3].ack(1)
    t[3].tx_rollback()
    t[3].close_channel()
    t[2].until("q", 2)


@case("a queue is declared again, and its policy is no argument")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    for node in (1, 2, 3):
        t[node].queue("q")
    t[3].queue("q", durable=False)
    t[2].queue("q", arguments={"x-max-length": 3})
    t.http(2, "GET", "/queues/~/q", pick=["effective_policy_definition.ha-mode"], until="all")


@case("synchronised by hand")
def _(t):
    t[1].queue("q")
    t[1].confirm_select()
    t[1].fill("q", 3, delivery_mode=2)
    t[1].confirms(3)
    policy(t, '{"ha-mode": "all", "ha-sync-mode": "manual"}')
    mirrors(t, 2, 3, field="slave_nodes")
    t.tool(2, "rabbitmqctl sync_queue -p ~ q")
    mirrors(t, 2, 3)
    t.tool(3, "rabbitmqctl sync_queue -p ~ q")
    t.tool(3, "rabbitmqctl cancel_sync_queue -p ~ q")


@case("what is not synchronised by hand")
def _(t):
    t[1].queue("other")
    t[1].quorum("quorum")
    for verb in ("sync_queue", "cancel_sync_queue"):
        t.tool(2, f"rabbitmqctl {verb} -p ~ zork")
        t.tool(2, f"rabbitmqctl {verb} -p zork q")
        t.tool(2, f"rabbitmqctl {verb} -p ~")
        t.tool(2, f"rabbitmqctl {verb} -p ~ other")
        t.tool(2, f"rabbitmqctl {verb} -p ~ quorum")


@case("synchronised over HTTP")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    for body in ({"action": "sync"}, {"action": "cancel_sync"}, {"action": "zork"}, {}):
        t.http(2, "POST", "/queues/~/q/actions", body)
    t.http(2, "POST", "/queues/~/zork/actions", {"action": "sync"})
    t.http(2, "POST", "/queues/zork/q/actions", {"action": "sync"})


@case("policies that say nothing sensible")
def _(t):
    for definition in ('{"ha-mode": "some"}', '{"ha-mode": "exactly"}', '{"ha-mode": "nodes", "ha-params": []}', '{"ha-params": 2}', '{"ha-mode": "all", "ha-sync-mode": "often"}'):
        policy(t, definition)
    t.tool(1, "rabbitmqctl list_policies -p ~")


@case("policies as tools list them")
def _(t):
    t.tool(1, "rabbitmqctl set_policy -p ~ ha-all ^q '{\"ha-mode\":\"all\"}'")
    t.tool(3, "rabbitmqctl list_policies -p ~")
    t.http(2, "GET", "/policies/~/ha-all", pick=["name", "pattern", "apply-to", "definition"])
    t[1].queue("q")
    t.tool(2, "rabbitmqctl list_queues -p ~ name policy --formatter json", pick=["name", "policy"])
    t.tool(2, "rabbitmqctl clear_policy -p ~ ha-all")
    t.tool(2, "rabbitmqctl clear_policy -p ~ ha-all")
