"""Quorum queues on three nodes, compared with RabbitMQ: what clients of any node and operators get, with all nodes and without some."""
