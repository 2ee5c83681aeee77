"""The series of calls of the HTTP API. They build on one another, on a broker that holds nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One request. `user` names who asks; `until` a field that the answer has before it counts."""

    method: str
    path: str
    body: Any = None
    note: str = ""
    user: str = "guest:guest"
    until: str = ""
    headers: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}" + (f": {self.note}" if self.note else "")

    @property
    def about(self) -> str:
        """What differences in the answer are listed under: the first part of the path."""
        first = self.path.split("?")[0].strip("/").split("/")
        return "/".join(first[:3]) if first[0] == "health" else first[0]


# One connection with a channel, a consumer and a message that waits for its acknowledgement is open from here to the end.
CONNECT = Call("AMQP", "/connect")
DISCONNECT = Call("AMQP", "/disconnect")

V = "cmp"
Q, X = f"/queues/{V}", f"/exchanges/{V}"


def get(path, **more):
    return Call("GET", path, **more)


def put(path, body=None, **more):
    return Call("PUT", path, {} if body is None else body, **more)


def post(path, body=None, **more):
    return Call("POST", path, {} if body is None else body, **more)


def delete(path, **more):
    return Call("DELETE", path, **more)


PUBLISH = {"properties": {}, "routing_key": "q1", "payload": "one", "payload_encoding": "string"}
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}

NODE_AS_A_WHOLE = [
    get("/overview"),
    get("/overview?columns=node,object_totals.queues"),
    get("/overview?disable_stats=true"),
    get("/overview?lengths_age=3600&lengths_incr=5", note="too many samples"),
    get("/overview?node_stats_age=60&node_stats_incr=0", note="a step of nothing"),
    get("/nodes?disable_stats=true"),
    get("/nodes?data_rates_age=-1&data_rates_incr=5", note="a past to come"),
    get("/whoami"),
    get("/whoami", note="wrong password", user="guest:wrong"),
    get("/whoami", note="nobody", user=""),
    get("/version"),
    get("/cluster-name"),
    get("/nodes"),
    get("/nodes?columns=name,running"),
    get("/nodes/nope@nowhere"),
    get("/extensions"),
    get("/zork"),
    Call("PATCH", "/overview"),
    post("/overview", note="a verb that the path has not"),
    get("/health/checks/alarms"),
    get("/health/checks/local-alarms"),
    get("/health/checks/virtual-hosts"),
    get("/health/checks/node-is-quorum-critical"),
    get("/health/checks/port-listener/9"),
    get("/health/checks/port-listener/x"),
    get("/health/checks/protocol-listener/amqp"),
    get("/health/checks/protocol-listener/zork"),
    get("/health/checks/protocol-listener/amqp,http"),
    get("/health/checks/certificate-expiration/1/weeks"),
    get("/health/checks/certificate-expiration/x/weeks"),
    get("/health/checks/certificate-expiration/1/eons"),
    get("/health/checks/is-in-service"),
    get("/health/checks/ready-to-serve-clients"),
    get("/health/checks/below-node-connection-limit"),
    get("/health/checks/metadata-store/initialized"),
    get("/health/checks/quorum-queues-without-elected-leaders/all-vhosts"),
    get("/health/checks/zork"),
    get("/deprecated-features"),
    get("/deprecated-features/used"),
    get("/feature-flags"),
    post("/rebalance/queues"),
    get("/auth/hash_password/secret"),
    get("/auth/attempts/nope"),
    get("/nodes/nope@nowhere/memory/ets"),
    get("/reset"),
    delete("/reset/nope@nowhere"),
]

VHOSTS_AND_USERS = [
    get("/vhosts"),
    put(f"/vhosts/{V}", note="new"),
    put(f"/vhosts/{V}", note="there already"),
    get(f"/vhosts/{V}"),
    get(f"/vhosts/{V}?disable_stats=true"),
    get(f"/vhosts/{V}?msg_rates_age=501&msg_rates_incr=1", note="too many samples"),
    get("/vhosts?msg_rates_age=501&msg_rates_incr=1", note="too many samples"),
    get("/vhosts/nope"),
    delete("/vhosts/nope"),
    get("/aliveness-test/cmp"),
    get("/aliveness-test/nope"),
    put("/vhosts/cmp2", {"description": "second", "tags": "a,b"}),
    get("/vhosts/cmp2"),
    delete("/vhosts/cmp2"),
    put("/users/jane", {"password": "secret", "tags": "management"}, note="new"),
    put("/users/jane", {"password": "secret", "tags": "management"}, note="there already"),
    put("/users/jim", {"password": "secret"}, note="without tags"),
    put("/users/jim", {"password_hash": "zzz!", "tags": ""}, note="no hash"),
    put("/users/jim", {"password_hash": "P91nGhGXHxApk4/8S+K6J46w8LjFiVNlfInyLQUhrgH0ZnWm", "tags": ["monitoring"]}, note="hash and list"),
    Call("PUT", "/users/joe", b"{", note="no JSON"),
    get("/users"),
    get("/users/jane"),
    get("/users/nope"),
    get("/users/without-permissions"),
    get("/users", note="by jane", user="jane:secret"),
    get("/overview", note="by jane", user="jane:secret"),
    get("/nodes", note="by jane", user="jane:secret"),
    get(Q, note="by jane without permissions", user="jane:secret"),
    put("/permissions/cmp/jane", {"configure": "^mine", "write": ".*", "read": ".*"}, note="new"),
    put("/permissions/cmp/jane", {"configure": "^mine", "write": ".*", "read": ".*"}, note="there already"),
    put("/permissions/cmp/jane", {"configure": "(", "write": ".*", "read": ".*"}, note="no expression"),
    put("/permissions/cmp/jane", {"configure": ".*"}, note="incomplete"),
    put("/permissions/cmp/nope", {"configure": "", "write": "", "read": ""}),
    put("/permissions/nope/jane", {"configure": "", "write": "", "read": ""}),
    get("/permissions"),
    get("/permissions/cmp/jane"),
    get("/permissions/cmp/jim"),
    get("/vhosts/cmp/permissions"),
    get("/users/jane/permissions"),
    get("/vhosts/nope/permissions"),
    delete("/permissions/cmp/jim"),
    get(Q, note="by jane", user="jane:secret"),
    put("/topic-permissions/cmp/jane", {"exchange": "amq.topic", "write": "^a", "read": "^b"}),
    get("/topic-permissions"),
    get("/topic-permissions/cmp/jane"),
    get("/users/jane/topic-permissions"),
    get("/vhosts/cmp/topic-permissions"),
    delete("/topic-permissions/cmp/jane"),
    delete("/topic-permissions/cmp/jane", note="again"),
    put("/permissions/cmp/guest", {"configure": ".*", "write": ".*", "read": ".*"}),
]

EXCHANGES_QUEUES_BINDINGS = [
    get(X),
    put(f"{X}/x1", {"type": "direct", "durable": True}, note="new"),
    put(f"{X}/x1", {"type": "direct", "durable": True}, note="there already"),
    put(f"{X}/x1", {"type": "fanout", "durable": True}, note="of another type"),
    put(f"{X}/x2", {"type": "zork"}),
    put(f"{X}/x2", {}, note="without a type"),
    put(f"{X}/amq.mine", {"type": "direct"}),
    put(f"{X}/mine-not", {"type": "direct"}, note="by jane", user="jane:secret"),
    put(f"{X}/x3", {"type": "fanout", "arguments": {"alternate-exchange": "x1"}}),
    get(f"{X}/x1"),
    get(f"{X}/x3"),
    get(f"{X}/nope"),
    get(f"{X}/amq.default"),
    get(f"{X}/x1?disable_stats=true"),
    get(f"{X}?lengths_age=3600&lengths_incr=5", note="too many samples"),
    get(f"{X}/x1?lengths_age=3600&lengths_incr=5", note="too many samples"),
    get("/exchanges/nope"),
    put(f"{Q}/q1", {"durable": True, "auto_delete": False, "arguments": {}}, note="new"),
    put(f"{Q}/q1", {"durable": True, "auto_delete": False, "arguments": {}}, note="there already"),
    put(f"{Q}/q1", {"durable": True, "auto_delete": True, "arguments": {}}, note="otherwise"),
    put(f"{Q}/q2", {"durable": True, "arguments": {"x-max-length": "many"}}, note="of a wrong type"),
    put(f"{Q}/q2", {"durable": True, "arguments": {"x-max-length": 10, "x-overflow": "reject-publish"}}),
    put(f"{Q}/q3", {"durable": True, "arguments": {"x-queue-type": "zork"}}),
    put(f"{Q}/q3", {"durable": "yes"}, note="no bool"),
    put(f"{Q}/amq.mine", {}),
    put("/queues/nope/q", {}),
    get(f"{Q}/nope"),
    get(f"{Q}/q1?disable_stats=true"),
    get(f"{Q}/q1?disable_stats=true&enable_queue_totals=true"),
    get(f"{Q}?lengths_age=3600&lengths_incr=5", note="too many samples"),
    get(f"{Q}/q1?lengths_age=3600&lengths_incr=5", note="too many samples"),
    get("/queues/quorum/cmp/q1/status"),
    get("/queues/quorum/cmp/nope/status"),
    post("/queues/quorum/cmp/q1/replicas/add", {"node": "nope@nowhere"}),
    post("/queues/quorum/cmp/q1/replicas/add", {}),
    delete("/queues/quorum/cmp/nope/replicas/delete"),
    delete("/queues/quorum/replicas/on/nope@nowhere/shrink"),
    get("/queues/nope"),
    post("/bindings/cmp/e/x1/q/q1", {"routing_key": "k"}, note="new"),
    post("/bindings/cmp/e/x1/q/q1", {"routing_key": "k"}, note="there already"),
    post("/bindings/cmp/e/x1/q/q1", {"routing_key": "k", "arguments": {"a": 1}}, note="with arguments"),
    post("/bindings/cmp/e/x1/e/x3", {"routing_key": "all"}),
    post("/bindings/cmp/e/nope/q/q1", {"routing_key": "k"}),
    post("/bindings/cmp/e/x1/q/nope", {"routing_key": "k"}),
    get("/bindings/cmp"),
    get("/bindings/cmp/e/x1/q/q1"),
    get("/bindings/cmp/e/x1/q/q1/k"),
    get("/bindings/cmp/e/x1/q/q1/zork"),
    get("/bindings/cmp/e/x1/e/x3"),
    get(f"{Q}/q1/bindings"),
    get(f"{X}/x1/bindings/source"),
    get(f"{X}/x3/bindings/destination"),
    delete("/bindings/cmp/e/x1/q/q1/k"),
    delete("/bindings/cmp/e/x1/q/q1/k", note="again"),
    post("/bindings/cmp/e/x1/q/q1", {"routing_key": "q1"}),
]

MESSAGES = [
    post(f"{X}/x1/publish", PUBLISH),
    post(f"{X}/x1/publish", PUBLISH | {"routing_key": "nowhere"}, note="unroutable"),
    post(f"{X}/amq.default/publish", PUBLISH | {"payload": "dHdv", "payload_encoding": "base64"}),
    post(f"{X}/x1/publish", PUBLISH | {"payload": "!", "payload_encoding": "base64"}, note="no base64"),
    post(f"{X}/x1/publish", PUBLISH | {"payload_encoding": "zork"}, note="unknown encoding"),
    post(f"{X}/x1/publish", {"routing_key": "q1"}, note="incomplete"),
    post(f"{X}/nope/publish", PUBLISH),
    post(f"{X}/x1/publish", PUBLISH | {"properties": {"delivery_mode": 2, "headers": {"a": 1}}}),
    post(f"{X}/x1/publish", PUBLISH | {"properties": {"delivery_mode": "two"}}, note="a property of a wrong type"),
    post(f"{Q}/q1/get", GET),
    post(f"{Q}/q1/get", GET | {"count": 5, "ackmode": "ack_requeue_false"}),
    post(f"{Q}/q1/get", GET, note="of none"),
    post(f"{Q}/q1/get", {"count": 1}, note="incomplete"),
    post(f"{Q}/q1/get", GET | {"ackmode": "zork"}, note="unknown mode"),
    post(f"{Q}/nope/get", GET),
    post(f"{X}/x1/publish", PUBLISH, note="for the purge"),
    delete(f"{Q}/q1/contents"),
    delete(f"{Q}/nope/contents"),
    post(f"{X}/x1/publish", PUBLISH, note="for the consumer"),
]

POLICIES = [
    put("/policies/cmp/p1", {"pattern": "^q", "definition": {"max-length": 100}, "priority": 1, "apply-to": "queues"}, note="new"),
    put("/policies/cmp/p1", {"pattern": "^q", "definition": {"max-length": 100}, "priority": 1, "apply-to": "queues"}, note="again"),
    put("/policies/cmp/p2", {"pattern": "(", "definition": {"max-length": 100}}, note="no expression"),
    put("/policies/cmp/p2", {"pattern": "x", "definition": {"max-length": "x"}}, note="a value of a wrong type"),
    put("/policies/cmp/p2", {"pattern": "x", "definition": {"zork": 1}}, note="an unknown key"),
    put("/policies/cmp/p2", {"pattern": "x", "definition": {"max-length": 1}, "apply-to": "zork"}),
    put("/policies/cmp/p2", {"pattern": "x"}, note="incomplete"),
    get("/policies"),
    get("/policies/cmp"),
    get("/policies/cmp/p1"),
    get("/policies/cmp/nope"),
    get(f"{Q}/q1", note="with a policy", until="consumers"),
    put("/operator-policies/cmp/o1", {"pattern": "^q", "definition": {"max-length": 50}, "priority": 1, "apply-to": "queues"}),
    get("/operator-policies/cmp"),
    get("/operator-policies/cmp/o1"),
    delete("/operator-policies/cmp/o1"),
    delete("/operator-policies/cmp/o1", note="again"),
    delete("/policies/cmp/p1"),
    delete("/policies/cmp/p1", note="again"),
    get("/parameters"),
    put("/parameters/zork/cmp/x", {"value": {}}),
    get("/parameters/zork/cmp/x"),
    put("/global-parameters/zork", {"value": {"a": 1}}),
    get("/global-parameters/zork"),
    delete("/global-parameters/zork"),
    delete("/global-parameters/zork", note="again"),
    put("/vhost-limits/cmp/max-queues", {"value": 100}),
    put("/vhost-limits/cmp/max-queues", {"value": "many"}, note="no number"),
    put("/vhost-limits/cmp/zork", {"value": 1}),
    get("/vhost-limits"),
    get("/vhost-limits/cmp"),
    delete("/vhost-limits/cmp/max-queues"),
    put("/user-limits/jane/max-channels", {"value": 100}),
    put("/user-limits/nope/max-channels", {"value": 100}),
    get("/user-limits"),
    get("/user-limits/jane"),
    delete("/user-limits/jane/max-channels"),
]

SIGHT = [
    CONNECT,
    get("/connections", until="[].channels"),
    get("/vhosts/cmp/connections", until="[].channels"),
    get("/connections/username/guest", until="[].channels"),
    get("/connections/nope"),
    get("/connections/nope/sessions"),
    get("/connections?data_rates_age=3600&data_rates_incr=5", note="too many samples"),
    get("/channels?msg_rates_age=3600&msg_rates_incr=5", note="too many samples"),
    delete("/connections/nope"),
    get("/channels", until="[].consumer_count"),
    get("/vhosts/cmp/channels", until="[].consumer_count"),
    get("/channels/nope"),
    get("/consumers"),
    get("/consumers/cmp"),
    get("/consumers/nope"),
    get(f"{Q}/q1", note="with a consumer", until="message_stats"),
    get(Q, until="[].messages"),
    get("/queues/detailed", until="[].messages"),
    get(f"{Q}?page=1&page_size=1"),
    get(f"{Q}?page=1&page_size=1&name=q&use_regex=true&sort=name&sort_reverse=true"),
    get(f"{Q}?page=9&page_size=1"),
    get(f"{Q}?page=x"),
    get(f"{Q}?page=1&page_size=501"),
    get(f"{Q}?columns=name,durable"),
    get(f"{Q}?disable_stats=true&enable_queue_totals=true"),
    get("/queues?page=1&page_size=10&name=(&use_regex=true"),
    get(f"{X}/x1", note="with messages", until="message_stats"),
    get(f"/vhosts/{V}", note="with messages", until="message_stats"),
    get("/overview", note="with messages", until="message_stats.publish"),
    DISCONNECT,
]

DEFINITIONS_AND_THE_END = [
    get("/definitions"),
    get("/definitions/cmp"),
    get("/definitions/nope"),
    post("/definitions", {"queues": [{"vhost": "cmp", "name": "q9", "durable": True, "auto_delete": False, "arguments": {}}]}),
    post("/definitions", {"queues": [{"vhost": "nope", "name": "q9", "durable": True, "auto_delete": False, "arguments": {}}]}, note="no such host"),
    post("/definitions/cmp", {"queues": [{"name": "q8", "durable": True, "auto_delete": False, "arguments": {}}]}),
    Call("POST", "/definitions", b"zork", note="no JSON"),
    get(f"{Q}/q9?columns=name,durable"),
    get(f"{Q}/q8?columns=name,vhost"),
    delete(f"{Q}/q9?if-empty=true"),
    delete(f"{Q}/q8?if-unused=true"),
    post(f"{X}/amq.default/publish", PUBLISH | {"routing_key": "q2"}, note="to be in the way"),
    delete(f"{Q}/q2?if-empty=true", note="with a message"),
    delete(f"{Q}/q2"),
    delete(f"{Q}/q2", note="again"),
    delete(f"{X}/x1?if-unused=true", note="with bindings"),
    delete(f"{X}/x3"),
    delete(f"{X}/x1"),
    delete(f"{X}/x1", note="again"),
    delete(f"{X}/amq.direct"),
    post("/users/bulk-delete", {"users": ["jim"]}),
    delete("/permissions/cmp/jane"),
    delete("/permissions/cmp/jane", note="again"),
    delete("/users/jane"),
    delete("/users/jane", note="again"),
    delete(f"/vhosts/{V}"),
    delete("/reset"),
]

SERIES: list[Call] = [
    *NODE_AS_A_WHOLE,
    *VHOSTS_AND_USERS,
    *EXCHANGES_QUEUES_BINDINGS,
    *MESSAGES,
    *SIGHT,
    *POLICIES,
    *DEFINITIONS_AND_THE_END,
]
