"""Whether mirrored queues need a node. Tools name the queues of all virtual hosts, so this is a family of one. The reference is RabbitMQ 3.10."""

from ..story import case
from .mirrored import ALL, mirrors, policy

REFERENCE = "RabbitMQ 3.10"


@case("whether a node is critical")
def _(t):
    policy(t, ALL)
    t[1].queue("q")
    mirrors(t, 2, 3)
    for number in (1, 2):
        t.tool(number, "rabbitmq-queues check_if_node_is_mirror_sync_critical")
        t.http(number, "GET", "/health/checks/node-is-mirror-sync-critical")
    t.tool(1, "rabbitmq-upgrade await_online_synchronized_mirror -t 5")
    policy(t, '{"ha-mode": "exactly", "ha-params": 1}')
    mirrors(t, field="slave_nodes")
    # Copies go one after the other here.
    for number, code, status in ((1, "code 69", "503"), (2, "code 0", "200")):
        t.tool(number, "rabbitmq-queues check_if_node_is_mirror_sync_critical", until=code)
        t.http(number, "GET", "/health/checks/node-is-mirror-sync-critical", until=status)
