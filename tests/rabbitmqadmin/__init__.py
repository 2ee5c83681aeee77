"""Both of RabbitMQ's HTTP clients for the command line, unchanged."""
