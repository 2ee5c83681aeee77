"""The Python client of the stream protocol (rstream), alone and beside pika on the same streams."""

import asyncio
import os
import uuid

import pika
import pytest
import rstream
from rstream import AMQPMessage, CompressionType, ConsumerOffsetSpecification, OffsetType

from conftest import connect, control

PATIENCE = 30


def port() -> int:
    if "STREAM_PORT" not in os.environ:
        pytest.skip("no port of the stream protocol is given")
    return int(os.environ["STREAM_PORT"])


def options(**others):
    return {"host": os.environ["AMQP_HOST"], "port": port(), "username": "guest", "password": "guest"} | others


class Reader:
    """A consumer, and what came to it: bodies with their offsets."""

    def __init__(self):
        self.consumer = rstream.Consumer(**options())
        self.got: asyncio.Queue = asyncio.Queue()
        self.task = None

    async def __aenter__(self):
        await self.consumer.start()
        return self

    async def __aexit__(self, *_):
        await self.consumer.close()
        if self.task:
            self.task.cancel()

    async def subscribe(self, stream, kind=OffsetType.FIRST, value=None, **others):
        def take(message, context):
            body = message.body if isinstance(message, AMQPMessage) else message
            self.got.put_nowait((body.decode(), context.offset, message))

        await self.consumer.subscribe(
            stream, take, decoder=rstream.amqp_decoder, offset_specification=ConsumerOffsetSpecification(kind, value), **others
        )
        self.task = self.task or asyncio.create_task(self.consumer.run())

    async def take(self, count):
        return [await asyncio.wait_for(self.got.get(), PATIENCE) for _ in range(count)]

    async def bodies(self, count):
        return [body for body, _, _ in await self.take(count)]

    async def nothing_more(self, seconds=0.5):
        await asyncio.sleep(seconds)
        assert self.got.empty()


class Streams:
    """A producer that makes streams, which are gone afterwards."""

    def __init__(self, **others):
        self.producer = rstream.Producer(**options(**others))
        self.made = []

    async def __aenter__(self):
        await self.producer.start()
        return self

    async def __aexit__(self, *_):
        for stream in self.made:
            await self.producer.delete_stream(stream, missing_ok=True)
        await self.producer.close()

    async def stream(self, **arguments):
        stream = f"py.stream.{uuid.uuid4().hex[:12]}"
        self.made.append(stream)
        await self.producer.create_stream(stream, arguments)
        return stream

    async def fill(self, stream, numbers, **others):
        for number in numbers:
            await self.producer.send_wait(stream, AMQPMessage(body=str(number).encode()), **others)


def numbers(begin, end):
    return [str(number) for number in range(begin, end)]


def story(body):
    """A test that is a coroutine."""

    def test():
        port()
        asyncio.run(asyncio.wait_for(body(), 60))

    test.__name__ = body.__name__
    return test


@story
async def test_many_in_order_from_the_beginning_and_from_an_offset():
    async with Streams(default_batch_publishing_delay=0.1) as streams, Reader() as reader, Reader() as later:
        stream = await streams.stream()
        await streams.producer.send_batch(stream, [AMQPMessage(body=str(number).encode()) for number in range(1000)])
        await reader.subscribe(stream)
        got = await reader.take(1000)
        assert [body for body, _, _ in got] == numbers(0, 1000)
        assert [offset for _, offset, _ in got] == list(range(1000))
        await later.subscribe(stream, OffsetType.OFFSET, 987)
        assert await later.bodies(13) == numbers(987, 1000)


@story
async def test_last_next_and_timestamp():
    async with Streams() as streams, Reader() as last, Reader() as coming, Reader() as old:
        stream = await streams.stream()
        await streams.fill(stream, range(5))
        await last.subscribe(stream, OffsetType.LAST)
        assert await last.bodies(1) == ["4"]
        await coming.subscribe(stream, OffsetType.NEXT)
        await coming.nothing_more()
        await old.subscribe(stream, OffsetType.TIMESTAMP, 0)
        assert await old.bodies(5) == numbers(0, 5)
        await streams.fill(stream, [5])
        assert await coming.bodies(1) == ["5"]


@story
async def test_refusals():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream(**{"max-age": "1h"})
        with pytest.raises(rstream.exceptions.StreamAlreadyExists):
            await streams.producer.create_stream(stream, {"max-age": "1h"})
        with pytest.raises(rstream.exceptions.PreconditionFailed):
            await streams.producer.create_stream(stream, {"max-age": "2h"})
        with pytest.raises(rstream.exceptions.StreamDoesNotExist):
            await streams.producer.delete_stream("py.stream.none")
        with pytest.raises(rstream.exceptions.OffsetNotFound):
            await reader.consumer.query_offset(stream, "reader")


@pytest.mark.parametrize(
    "other, how",
    [({"password": "wrong"}, rstream.exceptions.AuthenticationFailure), ({"vhost": "nowhere"}, rstream.exceptions.VirtualHostAccessFailure)],
)
def test_logins_that_are_refused(other, how):
    async def login():
        producer = rstream.Producer(**options(max_retries=1, **other))
        with pytest.raises(how):
            await producer.start()

    asyncio.run(asyncio.wait_for(login(), 60))


@pytest.mark.parametrize("compression", [CompressionType.No, CompressionType.Gzip])
def test_batches_within_batches(compression):
    @story
    async def batches():
        async with Streams() as streams, Reader() as reader:
            stream = await streams.stream()
            messages = [AMQPMessage(body=str(number).encode()) for number in range(100)]
            confirmed = asyncio.Event()
            await streams.producer.send_sub_entry(stream, messages, compression_type=compression, on_publish_confirm=lambda status: confirmed.set())
            await asyncio.wait_for(confirmed.wait(), PATIENCE)
            await reader.subscribe(stream)
            assert await reader.bodies(100) == numbers(0, 100)

    batches()


@story
async def test_a_named_publishers_numbers_are_known_again():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        for prefix, begin, end in (("a", 1, 6), ("b", 4, 9)):
            for number in range(begin, end):
                message = AMQPMessage(body=f"{prefix}{number}".encode())
                message.publishing_id = number
                await streams.producer.send_wait(stream, message, publisher_name="writer")
        await reader.subscribe(stream)
        assert await reader.bodies(8) == ["a1", "a2", "a3", "a4", "a5", "b6", "b7", "b8"]
        await reader.nothing_more(0.2)


@story
async def test_stored_offsets():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        await streams.fill(stream, range(10))
        await reader.subscribe(stream, subscriber_name="reader")
        await reader.take(10)
        await reader.consumer.store_offset(stream, "reader", 6)
        for _ in range(100):
            try:
                if await reader.consumer.query_offset(stream, "reader") == 6:
                    break
            except rstream.exceptions.OffsetNotFound:
                pass
            await asyncio.sleep(0.05)
        assert await reader.consumer.query_offset(stream, "reader") == 6


@story
async def test_filters():
    async def value(message):
        return message.application_properties["fruit"]

    async with Streams(filter_value_extractor=value) as streams, Reader() as reader, Reader() as both:
        stream = await streams.stream()
        for number in range(10):
            fruit = ["apple", "pear"][number % 2]
            await streams.producer.send_wait(stream, AMQPMessage(body=fruit.encode(), application_properties={"fruit": fruit}))
        await reader.subscribe(stream, filter_input=rstream.FilterConfiguration(values_to_filter=["pear"], match_unfiltered=False))
        assert await reader.bodies(5) == ["pear"] * 5
        await reader.nothing_more(0.3)
        await both.subscribe(stream, filter_input=rstream.FilterConfiguration(values_to_filter=["pear", "apple"], match_unfiltered=True))
        assert await both.bodies(10) == ["apple", "pear"] * 5


@story
async def test_one_of_a_group_is_active():
    async with Streams() as streams, Reader() as one, Reader() as two:
        stream = await streams.stream()
        group = {"single-active-consumer": "true", "name": "group"}

        async def begin(active, context):
            return rstream.OffsetSpecification(OffsetType.FIRST, 0)

        await one.subscribe(stream, properties=dict(group), subscriber_name="group", consumer_update_listener=begin)
        await two.subscribe(stream, properties=dict(group), subscriber_name="group", consumer_update_listener=begin)
        await streams.fill(stream, range(5))
        assert await one.bodies(5) == numbers(0, 5)
        await two.nothing_more()
        await one.consumer.close()
        assert await two.bodies(5) == numbers(0, 5)


@story
async def test_super_streams():
    name = f"py.super.{uuid.uuid4().hex[:12]}"

    async def key(message):
        return message.body.decode()

    def take(message, context):
        got.put_nowait((context.stream, message.body.decode()))

    got: asyncio.Queue = asyncio.Queue()
    producer = rstream.SuperStreamProducer(
        **options(default_batch_publishing_delay=0.1),
        super_stream=name,
        routing_extractor=key,
        routing=rstream.RouteType.Hash,
        super_stream_creation_option=rstream.SuperStreamCreationOption(n_partitions=3),
    )
    async with producer:
        for number in range(100):
            await producer.send(AMQPMessage(body=str(number).encode()))
        consumer = rstream.SuperStreamConsumer(**options(), super_stream=name)
        await consumer.start()
        await consumer.subscribe(callback=take, decoder=rstream.amqp_decoder, offset_specification=ConsumerOffsetSpecification(OffsetType.FIRST, None))
        task = asyncio.create_task(consumer.run())
        messages = [await asyncio.wait_for(got.get(), PATIENCE) for _ in range(100)]
        assert sorted(int(body) for _, body in messages) == list(range(100))
        assert {stream for stream, _ in messages} == {f"{name}-{partition}" for partition in range(3)}
        await consumer.close()
        task.cancel()
    async with rstream.SuperStreamProducer(**options(), super_stream=name, routing_extractor=key) as remover:
        assert await remover.stream_exists(f"{name}-0")
        await remover.delete_super_stream(name)


@story
async def test_written_by_amqp_and_read_by_the_stream_protocol():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        with connect() as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            properties = pika.BasicProperties(content_type="text/plain", message_id="id", correlation_id="correlation", headers={"text": "täxt", "int": 5, "x-own": "annotation"})
            channel.basic_publish("", stream, b"body", properties)
        await reader.subscribe(stream)
        [(body, offset, message)] = await reader.take(1)
        assert (body, offset) == ("body", 0)
        assert (message.properties.content_type, message.properties.message_id, message.properties.correlation_id) == (b"text/plain", b"id", b"correlation")
        # The client leaves texts of messages undecoded.
        assert message.application_properties == {b"text": "täxt".encode(), b"int": 5}
        assert message.message_annotations == {b"x-own": b"annotation", b"x-exchange": b"", b"x-routing-key": stream.encode()}


@story
async def test_written_by_the_stream_protocol_and_read_by_amqp():
    async with Streams() as streams:
        stream = await streams.stream()
        message = AMQPMessage(
            body=b"body",
            properties=rstream.Properties(message_id="id", correlation_id="correlation", content_type="text/plain", reply_to="reply"),
            application_properties={"text": "value", "int": 5, "yes": True},
        )
        await streams.producer.send_wait(stream, message)
        with connect() as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=10)
            for method, properties, body in channel.consume(stream, arguments={"x-stream-offset": "first"}, inactivity_timeout=PATIENCE):
                break
        assert (method.exchange, method.routing_key, body) == ("", stream, b"body")
        assert (properties.message_id, properties.correlation_id, properties.content_type) == ("id", "correlation", "text/plain")
        assert properties.headers == {"text": "value", "int": 5, "yes": True, "x-stream-offset": 0}


@pytest.mark.needs_control
@story
async def test_messages_offsets_and_numbers_survive_a_restart():
    async with Streams() as streams, Reader() as reader:
        stream = await streams.stream()
        streams.made.clear()
        await streams.fill(stream, range(20), publisher_name="writer")
        await reader.consumer.store_offset(stream, "reader", 7)
    await asyncio.to_thread(control, "restart", False)
    async with Streams() as streams, Reader() as reader:
        streams.made.append(stream)
        await reader.subscribe(stream)
        assert await reader.bodies(20) == numbers(0, 20)
        assert await reader.consumer.query_offset(stream, "reader") == 7
