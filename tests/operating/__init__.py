"""What operators and their tools get from a broker, compared with RabbitMQ: the HTTP API and the command line."""
