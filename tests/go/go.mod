module leveret/tests/go

go 1.26

require (
	github.com/rabbitmq/amqp091-go v1.16.0
	github.com/streadway/amqp v1.0.0
)
