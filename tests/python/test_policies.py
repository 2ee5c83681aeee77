"""Policies: arguments that come and go while queues and exchanges are in use."""

import pytest

from api import q
from test_expiry import ready
from waiting import until


@pytest.fixture
def put(api, name):
    """Puts a policy of the test's own that matches its queues and exchanges only; all go when it ends."""
    made = []

    def put(definition, kind="policies", called="", pattern=None, **more):
        path = f"/{kind}/%2F/{q(name + called)}"
        answer = api.put(path, {"pattern": f"^{name}" if pattern is None else pattern, "definition": definition, **more})
        if answer.status == 201:
            made.append(path)
        return answer

    yield put
    for path in made:
        assert api.delete(path).status in (204, 404)


def shown(api, name):
    queue = api.get(f"/queues/%2F/{q(name)}").json
    return tuple(queue.get(member) or None for member in ("policy", "operator_policy", "effective_policy_definition"))


def test_a_policy_takes_hold_of_a_queue_that_is_there_and_lets_go_of_it(api, channel, name, put):
    channel.queue_declare(name, exclusive=True)
    for body in range(10):
        channel.basic_publish("", name, str(body).encode())
    until(lambda: ready(channel, name) == 10)
    assert put({"max-length": 3}).status == 201
    until(lambda: ready(channel, name) == 3)
    assert channel.basic_get(name, auto_ack=True)[2] == b"7"
    until(lambda: shown(api, name) == (name, None, {"max-length": 3}))
    assert api.delete(f"/policies/%2F/{name}").status == 204
    for body in range(10):
        channel.basic_publish("", name, str(body).encode())
    until(lambda: ready(channel, name) == 12)
    until(lambda: shown(api, name) == (None, None, None))


def test_messages_expire_by_a_policy_and_go_where_it_says(api, channel, name, put):
    channel.queue_declare(name, exclusive=True)
    channel.queue_declare("dead." + name, exclusive=True)
    put({"message-ttl": 100, "dead-letter-exchange": "", "dead-letter-routing-key": "dead." + name})
    until(lambda: shown(api, name)[0])
    channel.basic_publish("", name, b"new")
    until(lambda: ready(channel, "dead." + name) == 1)
    assert ready(channel, name) == 0


def test_a_queue_without_users_ends_by_a_policy(api, channel, name, put):
    channel.queue_declare(name, durable=True)
    put({"expires": 200})
    until(lambda: api.get(f"/queues/%2F/{name}").status == 404)


def test_the_lower_of_argument_policy_and_operator_policy_counts(api, channel, name, put):
    channel.queue_declare(name, exclusive=True, arguments={"x-max-length": 7})
    put({"max-length": 9, "overflow": "reject-publish"})
    put({"max-length": 4, "overflow": "drop-head"}, kind="operator-policies", **{"apply-to": "queues"})
    until(lambda: shown(api, name)[1])
    assert shown(api, name) == (name, name, {"max-length": 4, "overflow": "drop-head"})
    for body in range(20):
        channel.basic_publish("", name, str(body).encode())
    until(lambda: ready(channel, name) == 4)


def test_an_alternate_exchange_comes_and_goes_with_a_policy(api, channel, name, put):
    channel.queue_declare(name, exclusive=True)
    channel.exchange_declare(name, "direct", auto_delete=False)
    channel.exchange_declare("lost." + name, "fanout")
    channel.queue_bind(name, "lost." + name)
    try:
        put({"alternate-exchange": "lost." + name}, **{"apply-to": "exchanges"})
        until(lambda: api.get(f"/exchanges/%2F/{name}").json.get("policy") == name)
        channel.basic_publish(name, "nowhere", b"1")
        until(lambda: ready(channel, name) == 1)
        api.delete(f"/policies/%2F/{name}")
        until(lambda: "policy" not in api.get(f"/exchanges/%2F/{name}").json)
        channel.basic_publish(name, "nowhere", b"2")
        channel.basic_publish("", name, b"3")
        until(lambda: ready(channel, name) == 2)
    finally:
        channel.exchange_delete(name)
        channel.exchange_delete("lost." + name)


def test_policies_are_listed_and_shown(api, name, put):
    put({"max-length": 3, "message-ttl": 5}, priority=4, **{"apply-to": "classic_queues"})
    wanted = {"vhost": "/", "name": name, "pattern": f"^{name}", "apply-to": "classic_queues", "definition": {"max-length": 3, "message-ttl": 5}, "priority": 4}
    assert api.get(f"/policies/%2F/{name}").json == wanted
    for path in ("/policies", "/policies/%2F"):
        assert wanted in api.get(path).json
    assert put({"max-length": 3}).status == 204
    assert api.get(f"/policies/%2F/{name}").json["definition"] == {"max-length": 3}
    assert api.get(f"/operator-policies/%2F/{name}").status == 404
    exported = api.get("/definitions").json["policies"]
    assert [one["definition"] for one in exported if one["name"] == name] == [{"max-length": 3}]


def test_operator_policies_are_parameters_of_definitions(api, name, put):
    put({"expires": 600000}, kind="operator-policies")
    (exported,) = [one for one in api.get("/definitions").json["parameters"] if one["name"] == name]
    value = {"apply-to": "all", "definition": {"expires": 600000}, "pattern": f"^{name}", "priority": 0}
    assert exported == {"component": "operator_policy", "name": name, "value": value, "vhost": "/"}
    exported["value"]["definition"]["expires"] = 700000
    assert api.post("/definitions", {"parameters": [exported]}).status in (200, 204)
    assert api.get(f"/operator-policies/%2F/{name}").json["definition"] == {"expires": 700000}


VALIDATION = [
    ({"pattern": "x", "definition": {}}, "no policy provided"),
    ({"pattern": "x", "definition": {"max-length": "a"}}, '<<"a">> is not a valid maximum length'),
    ({"pattern": "x", "definition": {"expires": 0}}, "0 is not a valid queue expiry"),
    ({"pattern": "x", "definition": {"zork": 1, "foo": "bar", "message-ttl": 5}}, '[{<<"foo">>,<<"bar">>},{<<"zork">>,1}] are not recognised policy settings'),
    ({"pattern": "x", "definition": {"overflow": "x"}}, '<<"x">> is not a valid overflow value'),
    ({"pattern": "x", "definition": {"queue-version": 3}}, "3 is not a valid queue-version value"),
    ({"pattern": "x", "definition": {"alternate-exchange": 1}}, "1 is not a valid alternate exchange name"),
    ({"pattern": "x", "definition": {"federation-upstream": "x"}}, '[{<<"federation-upstream">>,<<"x">>}] are not recognised policy settings'),
    ({"pattern": "x", "definition": {"message-ttl": 5}, "priority": "a"}, 'priority should be a number, actually was <<"a">>'),
    ({"pattern": 1, "definition": {"message-ttl": 5}}, "pattern should be a binary but was 1"),
    ({"pattern": "x", "definition": {"message-ttl": 5}, "apply-to": "foo"}, "apply-to 'foo' unrecognised; should be one of: 'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"),
]


@pytest.mark.parametrize("body,text", VALIDATION, ids=[text[:30] for _, text in VALIDATION])
def test_a_policy_that_makes_no_sense_is_refused_in_rabbitmqs_words(api, name, body, text):
    answer = api.put(f"/policies/%2F/{name}", body)
    assert (answer.status, answer.json) == (400, {"error": "bad_request", "reason": f"Validation failed\n\n{text}\n"})
    assert api.get(f"/policies/%2F/{name}").status == 404


def test_what_is_missing_is_named(api, name):
    path = f"/policies/%2F/{name}"
    assert api.put(path, {}).json["reason"] == "[{key_missing,pattern},{key_missing,definition}]"
    assert api.put(path, {"pattern": "("}).json["reason"] == "[{key_missing,definition}]"
    assert api.put(path, {"pattern": "(", "definition": {"expires": 5}}).json["reason"].startswith("Validation failed\n\npattern should be regular expression but is invalid: ")
    assert api.put(f"/policies/{name}/x", {"pattern": "x", "definition": {"expires": 5}}).json == {"error": "not_found", "reason": "vhost_not_found"}
    assert (api.get(f"/policies/{name}").status, api.delete(path).status) == (404, 404)


@pytest.mark.leveret_only("RabbitMQ 4 knows no mirrored queues, and has the other types")
def test_keys_for_clusters_are_kept_with_a_word(api, name, put):
    assert put({"ha-mode": "all"}).status == 201
    is_alone = len(api.get("/nodes").json) == 1
    assert api.get(f"/policies/%2F/{name}").json.get("takes_effect_in_a_cluster") == (["ha-mode"] if is_alone else None)
