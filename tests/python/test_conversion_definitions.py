"""Definitions of queues that were converted: what an export says of them, and what an import makes of it."""

import pika
import pytest

from api import q
from test_conversion import One, convert, declare, there
from test_process import broker, pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import api, bodies, consume, publish, row

STRICT = {"quorum_queue.property_equivalence.relaxed_checks_on_redeclaration": "false"}


@pytest.fixture
def one(broker):
    return One(broker(STRICT).start())


@pytest.fixture
def other(broker):
    return One(broker(STRICT).start())


def exported(cluster, name, vhost=None):
    """What an export says of a queue, apart from where it is; and the document."""
    document = api(cluster, 0).get(f"/definitions/{q(vhost)}" if vhost else "/definitions").json
    found = next(it for it in document["queues"] if it["name"] == name)
    return {key: value for key, value in found.items() if key != "vhost"}, document


def refuses(cluster, name, **arguments):
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as refused:
        declare(cluster, name, **arguments)
    return refused.value.reply_code == 406


def test_both_forms_of_a_converted_queue_are_let_in_where_its_definitions_are_imported(one, other, name):
    lazy = {"x-max-length": 9, "x-queue-mode": "lazy"}
    declare(one, name, **lazy)
    assert "converted_from" not in exported(one, name)[0]
    convert(api(one, 0), name, "quorum")
    quorum, document = exported(one, name)
    assert quorum == {
        "name": name,
        "type": "quorum",
        "durable": True,
        "auto_delete": False,
        "arguments": {"x-max-length": 9, "x-queue-type": "quorum"},
        "converted_from": {"arguments": lazy | {"x-queue-type": "classic"}},
    }
    # What RabbitMQ reads of a queue says what it is now.
    document["bindings"].append({"vhost": "/", "source": "amq.topic", "destination": name, "destination_type": "queue", "routing_key": "k", "arguments": {}})
    assert api(other, 0).post("/definitions", document).status == 204
    for cluster in (one, other):
        declare(cluster, name, **lazy)
        declare(cluster, name, **{"x-max-length": 9, "x-queue-type": "quorum"})
        assert refuses(cluster, name, **{"x-max-length": 9})
        # It goes on without rules that nobody asked for, as where it was converted.
        assert row(cluster, name)["delivery_limit"] == "unlimited"
    assert exported(other, name)[0] == quorum, "and what is exported there says it again"
    publish(other, name, bodies(0, 5), delivery_mode=2)
    other.nodes[0].crash()
    declare(other, name, **lazy)
    assert there(other, name)[0] == "quorum"
    convert(api(other, 0), name, "classic")
    assert there(other, name)[1] == lazy | {"x-queue-type": "classic"}, "what a quorum queue does not take is not lost"
    assert [body for body, _ in consume(other, name, 5)] == bodies(0, 5)


def test_a_queue_that_went_there_and_back_keeps_both_forms_too_and_of_one_virtual_host(one, other, name):
    declare(one, name, **{"x-max-priority": 5})
    for kind in ("quorum", "classic"):
        convert(api(one, 0), name, kind, force=True)
    classic, document = exported(one, name, "/")
    assert classic["arguments"] == {"x-max-priority": 5, "x-queue-type": "classic"}
    assert classic["converted_from"] == {"arguments": {"x-queue-type": "quorum"}}
    assert api(other, 0).post("/definitions/%2F", document).status == 204
    assert there(other, name)[0] == "classic"
    declare(other, name, **{"x-queue-type": "quorum"})
    declare(other, name, **{"x-max-priority": 5})
    publish(other, name, [b"1"], delivery_mode=2, priority=1)
    publish(other, name, [b"4"], delivery_mode=2, priority=4)
    assert [body for body, _ in consume(other, name, 2)] == [b"4", b"1"]


def test_what_the_options_of_an_import_make_of_it_has_both_forms(one, other, name):
    sorted_ = {"x-max-priority": 5}
    for suffix in ("a", "b"):
        declare(one, f"{name}.{suffix}", **sorted_)
        convert(api(one, 0), f"{name}.{suffix}", "quorum", force=True)
    convert(api(one, 0), f"{name}.b", "classic")
    document = exported(one, f"{name}.a")[1]
    assert api(other, 0).post("/definitions?quorum_as=classic", document).status == 204
    assert there(other, f"{name}.a") == ("classic", sorted_ | {"x-queue-type": "classic"})
    for suffix in ("a", "b"):
        declare(other, f"{name}.{suffix}", **sorted_)
        declare(other, f"{name}.{suffix}", **{"x-queue-type": "quorum"})
        assert api(other, 0).delete(f"/queues/%2F/{q(name)}.{suffix}").status == 204
    assert api(other, 0).post("/definitions?classic_as=quorum", document).status == 204
    # It would lose its priorities by that.
    assert [there(other, f"{name}.{suffix}")[0] for suffix in ("a", "b")] == ["quorum", "classic"]


def test_a_queue_that_is_there_stays_as_it_is_and_a_form_that_cannot_have_been_is_refused(one, name):
    through = api(one, 0)
    declare(one, name, **{"x-queue-type": "quorum"})
    told = {"vhost": "/", "name": name, "type": "quorum", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "quorum"}}
    check = lambda queue: through.post("/leveret/definitions/check", {"queues": [queue]}).json  # noqa: E731
    assert check(told)["remarks"] == []
    remark = check(told | {"converted_from": {"arguments": {"x-max-length": 9}}})["remarks"][0]
    assert (remark["outcome"], remark["field"]) == ("kept", "converted_from")
    convert(through, name, "classic")
    convert(through, name, "quorum")
    remark = check(told | {"converted_from": {"arguments": {"x-max-length": 9}}})["remarks"][0]
    assert (remark["outcome"], remark["field"]) == ("kept", "converted_from.arguments.x-max-length")
    assert check(told | {"converted_from": {"arguments": {"x-queue-type": "classic"}}})["remarks"] == []
    refused = {
        "cannot have been a quorum queue before": {"x-queue-type": "quorum"},
        "only classic queues and quorum queues": {"x-queue-type": "stream"},
        "x-max-length": {"x-max-length": -1},
        "x-quorum-initial-group-size": {"x-quorum-initial-group-size": 3},
    }
    new = told | {"name": f"{name}.new"}
    for why, arguments in refused.items():
        remark = check(new | {"converted_from": {"arguments": arguments}})["remarks"][0]
        assert remark["outcome"] == "refused" and why in remark["reason"], remark
    for form in ([], "classic", {"arguments": "x"}):
        assert check(new | {"converted_from": form})["remarks"][0]["outcome"] == "refused"
    passing = {"name": f"{name}.new", "vhost": "/", "type": "classic", "durable": False, "auto_delete": False, "arguments": {}, "converted_from": {"arguments": {"x-queue-type": "quorum"}}}
    assert "not durable" in check(passing)["remarks"][0]["reason"]
    assert check(new | {"converted_from": None})["importable"]
