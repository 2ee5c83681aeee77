"""Who may do what: every endpoint by every role, every operation by every grant, compared with RabbitMQ's answers."""
