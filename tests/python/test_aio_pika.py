"""aio-pika with a quorum queue: its robust connection, confirms, an iterator that gives back, limits of deliveries, dead letters."""

import asyncio

import aio_pika

from conftest import connect
from wire import address

QUORUM = {"x-queue-type": "quorum"}


async def work(name: str) -> None:
    host, port = address()
    connection = await aio_pika.connect_robust(host=host, port=port)
    async with connection:
        channel = await connection.channel(publisher_confirms=True)
        await channel.set_qos(prefetch_count=10)
        dead = await channel.declare_queue(f"{name}.dead", durable=True, arguments=QUORUM)
        arguments = QUORUM | {"x-delivery-limit": 2, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead.name}
        queue = await channel.declare_queue(name, durable=True, arguments=arguments)
        for number in range(50):
            message = aio_pika.Message(str(number).encode(), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(message, routing_key=name)
        # Every tenth message fails as often as it may, and the others are done in their order.
        done, counts = [], {}
        async with queue.iterator(timeout=20) as messages:
            async for message in messages:
                number = int(message.body)
                if number % 10 == 0:
                    counts.setdefault(number, []).append((message.redelivered, message.headers.get("x-delivery-count", 0)))
                    await message.reject(requeue=True)
                else:
                    done.append(number)
                    await message.ack()
                if len(done) == 45 and all(len(seen) == 3 for seen in counts.values()):
                    break
        assert done == [number for number in range(50) if number % 10]
        assert counts == {number: [(False, 0), (True, 1), (True, 2)] for number in range(0, 50, 10)}
        for _ in range(5):
            message = await dead.get(timeout=20, fail=False) or await later(dead)
            async with message.process():
                (death,) = message.headers["x-death"]
                assert (death["queue"], death["reason"], int(message.body) % 10) == (name, "delivery_limit", 0)


async def later(queue):
    """A dead letter may be on its way."""
    for _ in range(200):
        await asyncio.sleep(0.05)
        if message := await queue.get(fail=False):
            return message
    raise AssertionError("no dead letter came")


def test_a_quorum_queue_counts_what_fails_and_buries_it(name):
    try:
        asyncio.run(work(name))
    finally:
        channel = connect().channel()
        channel.queue_delete(name)
        channel.queue_delete(f"{name}.dead")
