"""Streams of three nodes: written and read through any of them, by both protocols, while nodes are killed, cut off and come back."""

import contextlib
import select
import shutil
import sys
import threading
import uuid
from pathlib import Path

import pika
import pytest

from test_process import pytestmark  # noqa: F401 - a mark
from test_quorum_cluster import NODES, PATIENCE_SECONDS, bodies, cluster, command, connect, leader, publish, row, whole  # noqa: F401 - fixtures
from test_stream_queues import Reader
from waiting import until

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.cluster import name as name_of  # noqa: E402
from harness.stream_link import CONSUMER_UPDATE, FIRST, METADATA_UPDATE, NO_SUCH_STREAM, NOT_AVAILABLE, PUBLISH_CONFIRM, Closed, Code, Entry, StreamLink, string  # noqa: E402

STREAM = {"x-queue-type": "stream"}
END = b"end."


class Cancelled(Exception):
    """The broker ends a consumer."""


def declare(cluster, stream, node=0, **arguments):
    said = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    with connect(cluster, node) as connection:
        connection.channel().queue_declare(stream, durable=True, arguments=STREAM | said)


def read(cluster, stream, node, count=None, last=None):
    """What a consumer of this node is sent from the beginning on, with the offsets: so many messages, or up to this one."""
    got = []
    with connect(cluster, node) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=200)
        for method, properties, body in channel.consume(stream, arguments={"x-stream-offset": "first"}, inactivity_timeout=PATIENCE_SECONDS):
            assert method is not None, f"{name_of(node)} sends nothing behind {len(got)} messages"
            channel.basic_ack(method.delivery_tag)
            got.append((properties.headers["x-stream-offset"], body))
            if len(got) == count or body == last:
                channel.cancel()
                return got
    raise Cancelled(f"{name_of(node)} cancels the consumer behind {len(got)} messages")


def mark(cluster, stream, node):
    """Publishes until something is confirmed, and returns that: who has read so far has had everything that was confirmed before."""
    with connect(cluster, node) as connection:
        channel = connection.channel()
        channel.confirm_delivery()

        def taken():
            body = END + uuid.uuid4().hex.encode()
            try:
                channel.basic_publish("", stream, body)
                return body
            except pika.exceptions.NackError:
                return None

        return until(taken, patience=PATIENCE_SECONDS, pause=0.2, what="nothing is confirmed")


def everything(cluster, stream, through=0, nodes=NODES):
    """All that is there, which each of these nodes sends in the same order and with the same offsets, without gaps."""
    last = mark(cluster, stream, through)
    found = [read(cluster, stream, node, last=last) for node in nodes]
    for node, its in zip(nodes, found, strict=True):
        assert its == found[0], f"{name_of(node)} has something else than {name_of(nodes[0])}"
    first = found[0][0][0]
    assert [offset for offset, _ in found[0]] == list(range(first, first + len(found[0])))
    return [body for _, body in found[0] if not body.startswith(END)]


def read_again(cluster, stream, node):
    """All that is there, once this node has it: until then it may send readers elsewhere."""
    last = mark(cluster, stream, node)

    def there():
        with contextlib.suppress(Cancelled, pika.exceptions.ChannelClosedByBroker):
            return read(cluster, stream, node, last=last)

    return until(there, wanted=lambda it: it and it[0][0] == 0, patience=PATIENCE_SECONDS, what="it has not all again")


def others(*nodes):
    return [node for node in NODES if node not in nodes]


def come_back(cluster):
    cluster.spawn()
    for node in cluster.nodes:
        node.wait_until_serving()
    cluster.wait_until_whole()


class Publisher:
    """Publishes through one node with confirms, one message after the other, until it is stopped. What is refused may be there, and is not
    sent again."""

    def __init__(self, cluster, stream, node):
        self.cluster, self.stream, self.node = cluster, stream, node
        self.ending, self.sent, self.confirmed, self.failed = threading.Event(), 0, [], []
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join(PATIENCE_SECONDS)

    def run(self):
        try:
            self.publish()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test fails with it
            self.failed.append(repr(error))

    def publish(self):
        with connect(self.cluster, self.node) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            while not self.ending.is_set():
                number = self.sent
                self.sent += 1
                try:
                    channel.basic_publish("", self.stream, b"%d.%d" % (self.node, number))
                    self.confirmed.append(number)
                except pika.exceptions.NackError:
                    self.ending.wait(0.05)

    def more(self, count):
        """Until so many more were confirmed."""
        enough = len(self.confirmed) + count
        until(lambda: self.failed or len(self.confirmed) >= enough, patience=PATIENCE_SECONDS, what=f"{name_of(self.node)} confirms no more")
        assert not self.failed

    def judge(self, found):
        """What was confirmed is there; nothing is there twice, or out of order."""
        assert not self.failed and not self.thread.is_alive()
        own = b"%d." % self.node
        numbers = [int(body.removeprefix(own)) for body in found if body.startswith(own)]
        assert numbers == sorted(set(numbers)), f"what came through {name_of(self.node)} is doubled or out of order"
        assert not set(self.confirmed) - set(numbers), f"what {name_of(self.node)} confirmed is missing"
        assert set(numbers) <= set(range(self.sent))


def link(cluster, node) -> StreamLink:
    return StreamLink(cluster.nodes[node].stream_port, timeout=PATIENCE_SECONDS)


def ports(cluster, nodes):
    return sorted(cluster.nodes[node].stream_port for node in nodes)


def places(cluster, stream, node):
    """What a node tells stream clients, once it knows who leads."""

    def told():
        with link(cluster, node) as asked:
            try:
                return asked.metadata(stream)
            except Code as refusal:
                assert refusal.code in (NOT_AVAILABLE, NO_SUCH_STREAM)
                return None

    return until(told, wanted=lambda it: it and it.leader is not None, patience=PATIENCE_SECONDS, what="nobody leads")


def publishing(cluster, stream, reference, through, but=None) -> StreamLink:
    """A connection to the node that leads, but not this one, with publisher 1 of this name: asked for again and again, as clients do."""

    def opened():
        port = places(cluster, stream, through).leader
        leads = next(node for node in NODES if cluster.nodes[node].stream_port == port)
        if leads == but:
            return None
        writer = link(cluster, leads)
        try:
            writer.declare_publisher(1, stream, reference)
            return writer
        except Code as refusal:
            writer.close()
            assert refusal.code == NOT_AVAILABLE
            return None

    return until(opened, patience=PATIENCE_SECONDS, what="nobody takes publishers")


def entries(first, last):
    """The numbers from `first` up to the one before `last`, as their publishing ids and as their bodies."""
    return [Entry(number, [b"%d" % number]) for number in range(first, last)]


def publish_all(writer, first, last):
    """Publishes these, and waits until each is confirmed."""
    writer.publish(1, entries(first, last))
    missing = set(range(first, last))
    while missing:
        missing -= set(writer.confirms())


def metadata_update(writer):
    """What is said of a stream that one can't publish to any more. What comes before it is passed over."""
    while True:
        for key, payload in writer.unasked_frames():
            if key == METADATA_UPDATE:
                return payload


def frames_of(writer, seconds):
    """Of which kinds the frames are that come until nothing has come for so long."""
    writer.socket.settimeout(seconds)
    keys = []
    with contextlib.suppress(TimeoutError, Closed):
        while True:
            keys += [key for key, _ in writer.unasked_frames()]
    return keys


def take(reader, count):
    """So many messages that come to a reader of the stream protocol, with their offsets."""
    got = []
    while len(got) < count:
        for first, messages in reader.chunks():
            got += enumerate(messages, first)
    return got


def stored(cluster, stream, reference, node):
    """The offset that a node knows of; none while it says that the stream is not available."""
    with link(cluster, node) as asked:
        try:
            return asked.stored_offset(reference, stream)
        except Code as refusal:
            assert refusal.code == NOT_AVAILABLE
            return None


def until_stored(cluster, stream, reference, node, offset):
    until(lambda: stored(cluster, stream, reference, node), wanted=lambda it: it == offset, patience=PATIENCE_SECONDS, what=f"{name_of(node)} knows another offset")


def folders(cluster, node):
    return {folder.name for folder in (cluster.nodes[node].data / "streams").glob("*")}


def segments(folder):
    """The first offsets of a stream's files."""
    return sorted(int(file.stem) for file in folder.glob("*.chunks"))


def declare_and_find(cluster, stream, **arguments):
    """Where each node has the files of a new stream."""
    before = [folders(cluster, node) for node in NODES]
    declare(cluster, stream, **arguments)
    publish(cluster, stream, [b"first"])
    found = []
    for node in NODES:
        (new,) = until(lambda: folders(cluster, node) - before[node], patience=PATIENCE_SECONDS, what=f"{name_of(node)} has no files of it")
        found.append(cluster.nodes[node].data / "streams" / new)
    return found


def large(first, last, size=100_000):
    return [b"%d:" % number + bytes([number % 251]) * size for number in range(first, last)]


def test_a_stream_is_on_all_nodes_whichever_declares_it_and_all_say_so(cluster, name):
    for node in NODES:
        stream = f"{name}.{node}"
        declare(cluster, stream, node)
        for asked in NODES:
            assert leader(cluster, stream, asked) == node
            shown = until(lambda: row(cluster, stream, asked), wanted=lambda it: it and len(it["online"]) == 3, patience=PATIENCE_SECONDS)
            assert sorted(shown["members"]) == sorted(shown["online"]) == [name_of(it) for it in NODES]
            assert (shown["type"], shown["state"]) == ("stream", "running")


@pytest.mark.parametrize("size", [1, 2])
def test_a_stream_has_as_many_members_as_its_declaration_says(cluster, name, size):
    declare(cluster, name, 1, initial_cluster_size=size)
    for asked in NODES:
        assert leader(cluster, name, asked) == 1
        members = row(cluster, name, asked)["members"]
        assert len(set(members)) == len(members) == size and name_of(1) in members
    for node in NODES:
        publish(cluster, name, bodies(10 * node, 10 * node + 10), node)
    assert [body for _, body in read(cluster, name, 1, count=30)] == bodies(0, 30)


def test_what_is_published_through_any_node_is_read_alike_through_every_one(cluster, name):
    declare(cluster, name, 1)
    for node in NODES:
        publish(cluster, name, bodies(20 * node, 20 * node + 20), node)
    for node in NODES:
        assert read(cluster, name, node, count=60) == list(enumerate(bodies(0, 60)))
    for asked in NODES:
        shown = ("messages", "first_offset", "last_offset", "committed_offset")
        until(lambda: [row(cluster, name, asked).get(field) for field in shown], wanted=lambda it: it == [60, 0, 59, 59], patience=PATIENCE_SECONDS)
    assert everything(cluster, name) == bodies(0, 60)


def test_publishers_of_all_nodes_at_once_have_their_own_order(cluster, name):
    declare(cluster, name)
    with Publisher(cluster, name, 0) as one, Publisher(cluster, name, 1) as two, Publisher(cluster, name, 2) as three:
        for publisher in (one, two, three):
            publisher.more(50)
    found = everything(cluster, name)
    for publisher in (one, two, three):
        publisher.judge(found)


def test_nothing_that_was_confirmed_is_missing_or_doubled_when_the_leader_is_killed(cluster, name):
    declare(cluster, name)
    killed = leader(cluster, name)
    left = others(killed)
    with Publisher(cluster, name, left[0]) as one, Publisher(cluster, name, left[1]) as two:
        one.more(50)
        two.more(50)
        cluster.nodes[killed].kill()
        one.more(50)
        two.more(50)
    found = everything(cluster, name, left[0], left)
    one.judge(found)
    two.judge(found)
    come_back(cluster)
    assert everything(cluster, name, killed) == found


def test_consumers_of_the_other_nodes_read_on_when_the_leader_is_killed(cluster, name):
    declare(cluster, name)
    killed = leader(cluster, name)
    left = others(killed)
    with connect(cluster, left[0]) as first, connect(cluster, left[1]) as second:
        readers = [Reader(first, name, "first"), Reader(second, name, "first")]
        publish(cluster, name, bodies(0, 50), left[0])
        for reader in readers:
            assert reader.numbers(50) == list(range(50))
        cluster.nodes[killed].kill()
        last = mark(cluster, name, left[0])
        for reader in readers:
            until(lambda: (reader.pump(0.05), reader.got)[1][-1][2], wanted=lambda it: it == last, patience=PATIENCE_SECONDS, what="the reader stands still")
            assert [properties.headers["x-stream-offset"] for _, properties, _ in reader.got] == list(range(len(reader.got)))
            assert reader.bodies()[:50] == [str(number) for number in range(50)] and not reader.cancelled


def test_stream_clients_are_told_who_leads_and_who_has_a_copy(cluster, name):
    for node in NODES:
        stream = f"{name}.{node}"
        with link(cluster, node) as maker:
            maker.create(stream)
        for asked in NODES:
            expected = (cluster.nodes[node].stream_port, ports(cluster, others(node)))
            until(lambda: (found := places(cluster, stream, asked)) and (found.leader, sorted(found.replicas)), wanted=lambda it: it == expected, patience=PATIENCE_SECONDS)


def test_stream_clients_publish_on_the_leader_alone_and_read_on_any_copy(cluster, name):
    declare(cluster, name)
    leads = leader(cluster, name)
    with link(cluster, leads) as writer, link(cluster, others(leads)[0]) as one, link(cluster, others(leads)[1]) as other:
        # One reads from before there is anything, the other one from what is there.
        one.subscribe(1, name, FIRST)
        writer.declare_publisher(1, name)
        publish_all(writer, 0, 100)
        other.subscribe(1, name, FIRST)
        for reader in (one, other):
            assert take(reader, 100) == list(enumerate(bodies(0, 100)))
            for reference in ("", "writer"):
                with pytest.raises(Code) as refused:
                    reader.declare_publisher(1, name, reference)
                assert refused.value.code == NOT_AVAILABLE
        # Whoever was refused reads on, and what comes over AMQP has its place among the others.
        publish(cluster, name, bodies(100, 110), leads)
        publish_all(writer, 110, 120)
        for reader in (one, other):
            assert take(reader, 20) == list(enumerate(bodies(100, 120), 100))


def test_a_named_publisher_goes_on_with_the_next_leader_and_what_it_sends_again_is_there_once(cluster, name):
    declare(cluster, name)
    killed = leader(cluster, name)
    left = others(killed)
    with link(cluster, left[0]) as reader:
        reader.subscribe(1, name, FIRST)
        with publishing(cluster, name, "writer", left[0]) as writer:
            publish_all(writer, 1, 201)
            confirmed = set(range(1, 201))
            # What becomes of these nobody knows but whoever leads next.
            writer.publish(1, entries(201, 301))
            cluster.nodes[killed].kill()
            with pytest.raises(Closed):
                while True:
                    confirmed |= set(writer.confirms())
        with publishing(cluster, name, "writer", left[0], but=killed) as writer:
            assert max(confirmed) <= writer.sequence("writer", name) <= 300
            publish_all(writer, 1, 321)
            assert writer.sequence("writer", name) == 320
        assert take(reader, 320) == list(enumerate(bodies(1, 321)))
    assert everything(cluster, name, left[0], left) == bodies(1, 321)
    come_back(cluster)
    assert everything(cluster, name, killed) == bodies(1, 321)


def test_one_of_a_group_is_active_on_whichever_node_its_readers_are(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 5))
    lead = leader(cluster, name)
    with contextlib.ExitStack() as ends:
        # The first and the second one are not where the stream is led.
        one, two, three = (ends.enter_context(link(cluster, node)) for node in [*others(lead), lead])
        one.join(1, name, FIRST, "group")
        assert one.update(FIRST)
        assert take(one, 5) == list(enumerate(bodies(0, 5)))
        two.join(1, name, FIRST, "group")
        publish(cluster, name, bodies(5, 8))
        assert take(one, 3) == list(enumerate(bodies(5, 8), 5))
        one.unsubscribe(1)
        assert two.update(FIRST)
        assert take(two, 8) == list(enumerate(bodies(0, 8)))
        three.join(1, name, FIRST, "group")
        # Its node is lost, and with it the reader.
        cluster.nodes[others(lead)[1]].kill()
        assert three.update(FIRST)
        assert take(three, 8) == list(enumerate(bodies(0, 8)))


def active_again(readers, stream):
    """The one of a group that is its active one next. Whoever is told that the stream is not available joins again."""

    def told():
        for reader in readers:
            if not reader.unasked and not select.select([reader.socket], [], [], 0)[0]:
                continue
            for key, payload in reader.unasked_frames():
                if key == METADATA_UPDATE:
                    reader.join(1, stream, FIRST, "group")
                elif key == CONSUMER_UPDATE:
                    reader.unasked.appendleft((key, payload))
                    if reader.update(FIRST):
                        return reader
        return None

    return until(told, patience=PATIENCE_SECONDS, pause=0.05, what="nobody of the group is active")


def test_one_of_a_group_is_active_again_when_its_leader_is_cut_off_or_killed(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 5))
    lead = leader(cluster, name)
    left = others(lead)
    with contextlib.ExitStack() as ends:
        one, two = (ends.enter_context(link(cluster, node)) for node in left)
        one.join(1, name, FIRST, "group")
        assert one.update(FIRST)
        two.join(1, name, FIRST, "group")
        cluster.cut_off(lead)
        active = active_again([one, two], name)
        assert take(active, 5) == list(enumerate(bodies(0, 5)))
        cluster.heal()
        cluster.wait_until_whole()
        # And once more, without whoever leads now.
        lead = leader(cluster, name)
        there = [reader for node, reader in zip(left, [one, two], strict=True) if node != lead]
        cluster.nodes[lead].kill()
        active = active_again(there, name)
        assert take(active, 5) == list(enumerate(bodies(0, 5)))


def test_publishers_of_a_leader_that_was_deposed_are_told(cluster, name):
    declare(cluster, name)
    away = leader(cluster, name)
    left = others(away)
    with publishing(cluster, name, "writer", away) as writer:
        publish_all(writer, 1, 11)
        cluster.cut_off(away)
        writer.publish(1, entries(11, 21))
        with publishing(cluster, name, "writer", left[0], but=away) as successor:
            assert successor.sequence("writer", name) == 10
            publish_all(successor, 11, 31)
        cluster.heal()
        cluster.wait_until_whole()
        assert metadata_update(writer) == NOT_AVAILABLE.to_bytes(2, "big") + string(name)
        with pytest.raises(Code) as refused:
            writer.declare_publisher(2, name)
        assert refused.value.code == NOT_AVAILABLE
    assert everything(cluster, name, away) == bodies(1, 31)


def test_a_connection_to_a_leader_that_was_deposed_is_answered_and_goes_on_with_its_other_streams(cluster, name):
    own = f"{name}.own"
    declare(cluster, name)
    away = leader(cluster, name)
    declare(cluster, own, away, initial_cluster_size=1)
    with publishing(cluster, name, "writer", away) as writer:
        writer.declare_publisher(2, own)
        publish_all(writer, 1, 11)
        cluster.cut_off(away)
        # Most of what a connection may have unconfirmed.
        for first in range(11, 40_011, 5_000):
            writer.publish(1, entries(first, first + 5_000))
        with pytest.raises(Code) as refused:
            writer.sequence("writer", name)
        assert refused.value.code == NOT_AVAILABLE
        assert next(writer.unasked_frames()) == (METADATA_UPDATE, NOT_AVAILABLE.to_bytes(2, "big") + string(name))
        for first in range(0, 20_000, 5_000):
            writer.publish(2, entries(first, first + 5_000))
        missing = set(range(20_000))
        while missing:
            missing -= set(writer.confirms())
        cluster.heal()
        cluster.wait_until_whole()
    with publishing(cluster, name, "writer", away) as writer:
        assert writer.sequence("writer", name) == 10
        publish_all(writer, 11, 31)
    assert everything(cluster, name, away) == bodies(1, 31)


def test_an_offset_that_is_stored_through_any_node_is_known_to_all_and_to_the_next_leader(cluster, name):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 10))
    killed = leader(cluster, name)
    left = others(killed)
    with link(cluster, left[0]) as reader:
        reader.store_offset("reader", name, 6)
        for node in NODES:
            until_stored(cluster, name, "reader", node, 6)
        cluster.nodes[killed].kill()
        mark(cluster, name, left[0])
        for node in left:
            until_stored(cluster, name, "reader", node, 6)

        def stored_again():
            # Nobody says whether it arrived while nobody led.
            reader.store_offset("reader", name, 8)
            return stored(cluster, name, "reader", left[1])

        until(stored_again, wanted=lambda it: it == 8, patience=PATIENCE_SECONDS, what="it is not stored any more")
    come_back(cluster)
    for node in NODES:
        until_stored(cluster, name, "reader", node, 8)


def test_all_nodes_are_killed_at_once_and_have_everything(cluster, name):
    declare(cluster, name, 1)
    for node in NODES:
        publish(cluster, name, bodies(20 * node, 20 * node + 20), node)
    with publishing(cluster, name, "writer", 0) as writer:
        publish_all(writer, 60, 80)
        for node in cluster.nodes:
            node.process.kill()
        for node in cluster.nodes:
            node.kill()
    come_back(cluster)
    for node in NODES:
        assert read(cluster, name, node, count=80) == list(enumerate(bodies(0, 80)))
    with publishing(cluster, name, "writer", 2) as writer:
        assert writer.sequence("writer", name) == 79
        publish_all(writer, 70, 90)
    assert everything(cluster, name) == bodies(0, 90)


@pytest.mark.parametrize("left", [0, 1], ids=["the-leader", "another-one"])
def test_without_a_majority_nothing_is_confirmed_and_what_is_there_is_read(cluster, name, left):
    declare(cluster, name)
    publish(cluster, name, bodies(0, 50))
    assert read(cluster, name, left, count=50) == list(enumerate(bodies(0, 50)))
    for node in others(left):
        cluster.nodes[node].kill()
    # Who closes a connection is answered by a majority: these stay open until there is one again.
    with connect(cluster, left) as connection, link(cluster, left) as streamer, Publisher(cluster, name, left) as publisher:
        try:
            until(lambda: publisher.sent, patience=PATIENCE_SECONDS, what="nothing is published")
            reader = Reader(connection, name, "first")
            streamer.subscribe(1, name, FIRST)
            assert reader.numbers(50) == list(range(50))
            assert take(streamer, 50) == list(enumerate(bodies(0, 50)))
            reader.nothing_more(2)
            assert not publisher.confirmed
        finally:
            come_back(cluster)
        publisher.more(20)
        # Who has read meanwhile reads on.
        assert [properties.headers["x-stream-offset"] for _, properties, _ in reader.first(60, PATIENCE_SECONDS)] == list(range(60))
        assert [offset for offset, _ in take(streamer, 10)][:10] == list(range(50, 60))
    found = everything(cluster, name, left)
    assert found[:50] == bodies(0, 50)
    publisher.judge(found[50:])


def test_what_a_leader_without_a_majority_was_sent_is_not_confirmed_and_there_once_if_it_is_sent_again(cluster, name):
    declare(cluster, name)
    left = leader(cluster, name)
    with publishing(cluster, name, "writer", left) as writer:
        publish_all(writer, 1, 51)
        for node in others(left):
            cluster.nodes[node].kill()
        try:
            writer.publish(1, entries(51, 61))
            assert PUBLISH_CONFIRM not in frames_of(writer, 3)
        finally:
            come_back(cluster)
    with publishing(cluster, name, "writer", others(left)[0]) as writer:
        assert 50 <= writer.sequence("writer", name) <= 60
        publish_all(writer, 1, 71)
    assert everything(cluster, name) == bodies(1, 71)


def test_each_node_drops_its_oldest_segments(cluster, name):
    where = declare_and_find(cluster, name, max_length_bytes=400_000, stream_max_segment_size_bytes=50_000)
    sent = [b"%d:" % number + bytes(20_000) for number in range(100)]
    publish(cluster, name, sent, 1)
    last = mark(cluster, name, 2)
    for node in NODES:
        until(lambda: read(cluster, name, node, count=1), wanted=lambda it: it[0][0] > 0, patience=PATIENCE_SECONDS, what=f"{name_of(node)} keeps all")
        got = read(cluster, name, node, last=last)
        # About twenty are left, for segments go as wholes; readers may keep twice as many for a while.
        assert 15 <= len(got) <= 41
        kept = [(number, body) for number, body in got if not body.startswith(END)]
        assert kept == list(enumerate(sent, 1))[-len(kept) :]
        assert segments(where[node])[0] > 0


def test_each_node_drops_what_is_too_old_though_nothing_is_published(cluster, name):
    where = declare_and_find(cluster, name, max_age="2s", stream_max_segment_size_bytes=50_000)
    publish(cluster, name, large(0, 10, 20_000), 1)
    for node in NODES:
        # All are too old, and the newest is never dropped.
        until(lambda: segments(where[node]), wanted=lambda it: len(it) == 1 and it[0] > 0, patience=PATIENCE_SECONDS, what=f"{name_of(node)} keeps all")
        assert read(cluster, name, node, count=1)[0][0] == segments(where[node])[0]


def test_the_files_of_a_stream_go_from_all_nodes_when_it_is_deleted(cluster, name):
    stays = declare_and_find(cluster, f"{name}.stays")
    where = declare_and_find(cluster, name)
    publish(cluster, name, bodies(0, 20), 2)
    assert all(segments(folder) for folder in where)
    with connect(cluster, 1) as connection:
        connection.channel().queue_delete(name)
    for node in NODES:
        assert row(cluster, name, node) is None
        until(lambda: not where[node].exists(), patience=PATIENCE_SECONDS, what=f"{name_of(node)} keeps the files")
    # Another one of the same name has nothing of it.
    declare(cluster, name, 2)
    publish(cluster, name, [b"new"], 0)
    assert everything(cluster, name) == [b"new"]
    assert all(folder.exists() for folder in stays) and everything(cluster, f"{name}.stays") == [b"first"]


def test_the_files_go_too_from_a_node_that_was_away_when_the_stream_was_deleted(cluster, name):
    where = declare_and_find(cluster, name)
    away = 2
    cluster.nodes[away].kill()
    with connect(cluster, 1) as connection:
        connection.channel().queue_delete(name)
    assert where[away].exists()
    come_back(cluster)
    assert row(cluster, name, away) is None
    for node in NODES:
        until(lambda: not where[node].exists(), patience=PATIENCE_SECONDS, what=f"{name_of(node)} keeps the files")


@pytest.mark.parametrize("away", [0, 2], ids=["the-leader", "another-one"])
def test_a_node_that_was_away_for_a_while_gets_what_it_lacks(cluster, name, away):
    declare(cluster, name, stream_max_segment_size_bytes=500_000)
    publish(cluster, name, large(0, 20))
    cluster.nodes[away].kill()
    mark(cluster, name, 1)
    publish(cluster, name, large(20, 100), 1)
    come_back(cluster)
    assert everything(cluster, name, away, [away]) == large(0, 100)
    # Its copy counts again: another one may go.
    cluster.nodes[1].kill()
    left = others(1)
    assert everything(cluster, name, away, left) == large(0, 100)


def test_a_node_that_has_lost_the_files_of_a_stream_fetches_what_the_log_has_let_go_of(cluster, name):
    where = declare_and_find(cluster, name, stream_max_segment_size_bytes=5_000_000)
    # A checkpoint is taken once 64 MiB were applied; what is older is in files alone then.
    sent = large(0, 80, 900_000)
    for node, begin in enumerate(range(0, 80, 30)):
        publish(cluster, name, sent[begin : begin + 30], node)
    lost = others(leader(cluster, name))[0]
    # All of it is written there.
    assert [body for _, body in read(cluster, name, lost, count=81)][1:] == sent
    cluster.nodes[lost].kill()
    shutil.rmtree(where[lost])
    come_back(cluster)
    assert read_again(cluster, name, lost)[:81] == list(enumerate([b"first", *sent]))
    # Retention takes segments as wholes: all nodes have the same ones.
    leads = leader(cluster, name, lost)
    assert segments(where[lost]) == segments(where[leads])


def test_a_copy_that_is_taken_away_and_given_back_at_once_is_whole_before_it_votes(cluster, name):
    declare(cluster, name)
    sent = large(0, 30)
    publish(cluster, name, sent)
    moved = others(leader(cluster, name))[0]
    for _ in range(3):
        for does in ["delete_replica", "add_replica"]:
            told = command(cluster, moved, does, name, name_of(moved))
            assert told.returncode == 0, told.stderr
        until(lambda: sorted(row(cluster, name, moved)["online"]), wanted=lambda it: it == [name_of(node) for node in NODES], patience=PATIENCE_SECONDS)
        assert [body for _, body in read_again(cluster, name, moved) if not body.startswith(END)] == sent
    cluster.nodes[moved].kill()
    come_back(cluster)
    assert everything(cluster, name, moved) == sent


def test_a_node_that_lost_its_disk_joins_anew_and_is_given_a_copy(cluster, name):
    declare(cluster, name, stream_max_segment_size_bytes=500_000)
    publish(cluster, name, large(0, 60))
    gone, asked = 2, 1
    cluster.nodes[gone].kill()
    shutil.rmtree(cluster.nodes[gone].data)
    told = command(cluster, asked, "forget_cluster_node", name_of(gone))
    assert told.returncode == 0, told.stderr
    until(lambda: row(cluster, name, asked)["members"], wanted=lambda it: sorted(it) == [name_of(0), name_of(1)], patience=PATIENCE_SECONDS)
    publish(cluster, name, large(60, 80), asked)
    come_back(cluster)
    told = command(cluster, asked, "add_replica", name, name_of(gone))
    assert told.returncode == 0, told.stderr
    until(lambda: sorted(row(cluster, name, gone)["online"]), wanted=lambda it: it == [name_of(node) for node in NODES], patience=PATIENCE_SECONDS)
    assert everything(cluster, name, gone) == large(0, 80)
