"""Clients of nodes that don't lead the queue: publishing, getting, consuming, settling, and what ends."""

from ..story import case

DEAD = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}


def filled(t, count, **arguments):
    """A queue that node 1 leads, with messages that came through node 2."""
    t[1].quorum(**arguments)
    t[2].confirm_select()
    t[2].fill("q", count, delivery_mode=2)
    t[2].confirms(count)


@case("published, counted and got through other nodes")
def _(t):
    filled(t, 3)
    for node in (1, 2, 3):
        t[node].until("q", 3)
        t[node].counts("q")
    for node in (3, 2, 1, 3):
        t[node].get("q", no_ack=True)


@case("got and settled through another node")
def _(t):
    filled(t, 2)
    t[3].ack(t[3].get("q"))
    t[3].nack(t[3].get("q"))
    t[3].until("q", 1)
    t[2].reject(t[2].get("q"))
    t[2].until("q", 1)
    t[1].get("q")
    t[1].close_channel()
    t[1].until("q", 1)
    t[3].reject(t[3].get("q"), requeue=False)
    t[3].counts("q")


for how in ("nack", "reject", "recover", "a closed channel", "a closed connection", "a lost connection"):

    @case(f"given back through another node by {how}")
    def _(t, how=how):
        filled(t, 3)
        t[3].qos(2)
        t[3].consume("q")
        tags = t[3].deliveries(2)
        if how in ("nack", "reject", "recover"):
            t[3].cancel()
        match how:
            case "nack":
                t[3].nack(tags[1], multiple=True)
            case "reject":
                t[3].reject(tags[0])
                t[3].reject(tags[1])
            case "recover":
                t[3].recover()
            case "a closed channel":
                t[3].close_channel()
            case "a closed connection":
                t[3].close_connection()
            case "a lost connection":
                t[3].hang_up()
        t[2].until("q", 3)
        for _ in range(3):
            t[2].get("q")


@case("consumed through two nodes in turn")
def _(t):
    t[1].quorum()
    for node in (2, 3):
        t[node].qos(1)
        t[node].consume("q", f"c{node}")
    t[1].counts("q")
    t[1].fill("q", 4)
    for node in (2, 3):
        [tag] = t[node].deliveries(1)
        t[node].ack(tag)
        t[node].deliveries(1)
    t.tool(1, "rabbitmqctl list_consumers -p ~ queue_name consumer_tag ack_required prefetch_count active activity_status arguments", until="c3")


@case("acknowledged several at once through another node")
def _(t):
    filled(t, 5)
    t[3].qos(4)
    t[3].consume("q")
    tags = t[3].deliveries(4)
    t[3].ack(tags[2], multiple=True)
    [last] = t[3].deliveries(1)
    t[3].close_channel()
    t[1].until("q", 2)
    t[1].counts("q")


@case("consumers by priority on two nodes")
def _(t):
    t[1].quorum()
    t[2].qos(1)
    t[2].consume("q", "low", arguments={"x-priority": 1})
    t[3].qos(1)
    t[3].consume("q", "high", arguments={"x-priority": 5})
    t[1].until("q", 0)
    t[1].fill("q", 2)
    t[3].deliveries(1)
    t[2].deliveries(1)


@case("an exclusive consumer keeps those of other nodes out")
def _(t):
    t[1].quorum()
    t[2].consume("q", exclusive=True)
    t[3].consume("q", "d")
    t[3].consume("q", "d", exclusive=True)
    t[2].cancel()
    t[3].consume("q", "d", exclusive=True)


@case("a single active consumer over nodes")
def _(t):
    t[1].quorum(single_active_consumer=True)
    t[2].consume("q", "first")
    t[3].consume("q", "second")
    t[1].fill("q", 2)
    t[2].deliveries(2)
    t[3].no_deliveries("q")
    t.tool(1, "rabbitmqctl list_consumers -p ~ queue_name consumer_tag active activity_status", until="second")
    t.http(2, "GET", "/queues/~/q", pick=["single_active_consumer_tag", "consumers"], until="first")
    t[2].cancel("first")
    t[1].publish("", "q", "after")
    t[3].deliveries(1)
    t[2].close_channel()
    t[3].deliveries(2)


@case("a single active consumer whose connection is lost")
def _(t):
    t[1].quorum(single_active_consumer=True)
    t[2].consume("q", "first")
    t[3].consume("q", "second")
    t[1].fill("q", 2)
    t[2].deliveries(2)
    t[2].hang_up()
    t[3].deliveries(2)


@case("a consumer ends with its queue")
def _(t):
    t[1].quorum()
    for node in (1, 2):
        t[node].consume("q", f"c{node}")
    t[1].publish("", "q", mandatory=True)
    t[3].delete_queue("q", if_empty=False)
    for node in (1, 2):
        t[node].cancelled()


@case("purged and deleted through another node")
def _(t):
    filled(t, 3)
    t[3].purge("q")
    t[2].counts("q")
    t[2].fill("q", 2)
    t[2].confirms(5)
    t[3].delete_queue("q")
    t[2].publish("", "q", "lost", mandatory=True)
    t[2].returns(1)
    t[2].get("q")
    t[1].consume("q")


@case("nothing to get through another node")
def _(t):
    t[1].quorum()
    for node in (1, 2, 3):
        t[node].get("q")
        t[node].get("zork")


for overflow in ("drop-head", "reject-publish"):

    @case(f"a full queue, overflow {overflow}")
    def _(t, overflow=overflow):
        t[1].quorum(max_length=2, overflow=overflow)
        t[3].confirm_select()
        for number in range(4):
            t[3].publish("", "q", str(number))
            t[3].confirms(number + 1)
        t[2].sync("q")
        t[2].get("q")


for strategy, more in (("at-most-once", {}), ("at-least-once", {"overflow": "reject-publish"})):

    @case(f"dead letters {strategy} over three nodes: rejected")
    def _(t, strategy=strategy, more=more):
        t[3].quorum("dead")
        filled(t, 2, dead_letter_strategy=strategy, **DEAD, **more)
        t[2].reject(t[2].get("q"), requeue=False)
        t[1].until("dead", 1)
        t[1].get("dead")

    @case(f"dead letters {strategy} over three nodes: too many deliveries")
    def _(t, strategy=strategy, more=more):
        t[3].quorum("dead")
        filled(t, 1, dead_letter_strategy=strategy, delivery_limit=1, **DEAD, **more)
        for _ in range(2):
            t[2].reject(t[2].get("q"))
            t[2].sync("q")
        t[1].until("dead", 1)
        t[1].get("dead")

    @case(f"dead letters {strategy} over three nodes: expired")
    def _(t, strategy=strategy, more=more):
        t[3].quorum("dead")
        filled(t, 1, dead_letter_strategy=strategy, message_ttl=50, **DEAD, **more)
        t[2].until("dead", 1)
        t[2].get("dead")


@case("the limit of deliveries counts those through all nodes")
def _(t):
    filled(t, 1, delivery_limit=2)
    for node in (1, 2, 3):
        t[node].reject(t[node].get("q"))
        t[node].until("q", 0 if node == 3 else 1)


@case("a queue that expires")
def _(t):
    t[1].quorum(expires=500)
    t.http(3, "GET", "/queues/~/q", until="404")
    t[2].queue("q", passive=True)


@case("a transaction through another node")
def _(t):
    t[1].quorum()
    t[2].tx_select()
    t[2].publish("", "q")
    t[3].counts("q")
    t[2].tx_commit()
    t[3].until("q", 1)
    t[3].tx_select()
    t[3].ack(t[3].get("q"))
    t[3].tx_rollback()
    t[3].close_channel()
    t[2].until("q", 1)


@case("published over HTTP through each node")
def _(t):
    t[1].quorum()
    for node in (1, 2, 3):
        t.http(node, "POST", "/exchanges/~/amq.default/publish", {"properties": {"delivery_mode": 2}, "routing_key": "q", "payload": f"by {node}", "payload_encoding": "string"}, pick=["routed"])
    t[2].until("q", 3)
    for node in (3, 2):
        t.http(node, "POST", "/queues/~/q/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}, pick=["payload", "redelivered", "message_count", "exchange", "routing_key"])
    t.http(3, "DELETE", "/queues/~/q/contents")
    t[1].counts("q")
