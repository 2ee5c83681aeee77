"""A first handshake with a running broker: declare, publish with confirm, consume, ack, get, delete.

Meant for quick trials while the broker is being built:

    tests/.venv/bin/python tests/python/smoke.py --port 5672
"""

import argparse
import sys

import pika


def run(host: str, port: int, messages: int) -> None:
    parameters = pika.ConnectionParameters(host=host, port=port, blocked_connection_timeout=10, socket_timeout=10)
    connection = pika.BlockingConnection(parameters)
    properties = connection._impl.server_properties
    print(f"connected: {properties.get('product')} {properties.get('version')}")
    channel = connection.channel()
    print("channel open")
    queue = channel.queue_declare("smoke", durable=True).method.queue
    channel.queue_purge(queue)
    print(f"declared and purged {queue}")
    channel.confirm_delivery()
    for number in range(messages):
        body = f"message {number}".encode()
        channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=2, headers={"n": number}))
    print(f"published and confirmed {messages} persistent messages")
    assert channel.queue_declare(queue, passive=True).method.message_count == messages
    channel.basic_qos(prefetch_count=10)
    received = 0
    for method, props, body in channel.consume(queue, inactivity_timeout=10):
        assert method is not None, f"no delivery within 10 s, got {received} of {messages}"
        assert body == f"message {received}".encode(), body
        assert props.headers == {"n": received}, props.headers
        channel.basic_ack(method.delivery_tag)
        received += 1
        if received == messages:
            break
    channel.cancel()
    print(f"consumed and acknowledged {received}")
    method, _, _ = channel.basic_get(queue)
    assert method is None, "the queue should be empty"
    channel.queue_delete(queue)
    connection.close()
    print("SMOKE OK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5672)
    parser.add_argument("--messages", type=int, default=100)
    arguments = parser.parse_args()
    try:
        run(arguments.host, arguments.port, arguments.messages)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer of this script
        print(f"SMOKE FAILED: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
