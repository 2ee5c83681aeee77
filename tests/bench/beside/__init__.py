"""Side-by-side measurements: what a message costs Leveret and RabbitMQ on the same machine, in turns."""
