"""Short scripts played on a broker, whose observations are compared with what RabbitMQ answers."""
