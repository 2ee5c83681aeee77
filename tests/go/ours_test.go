package suite

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

const ours = "RabbitMQ has it in quorum queues or plugins only"

func TestDeadlinesOfAcknowledgements(t *testing.T) {
	test("a consumer that takes too long is cancelled, and its message goes back", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-consumer-timeout": int32(200)})
		cancelled := channel.NotifyCancel(make(chan string, 1))
		deliveries, err := channel.Consume(queue, "slow", false, false, false, false, nil)
		w.must(err)
		w.publish(channel, "", queue, "m", amqp.Publishing{})
		message := receive(w, deliveries)
		w.equal(<-cancelled, "slow")
		w.must(message.Ack(false))
		w.equal(w.drain(channel, queue), []string{"m"})
	})(t)
}

func TestDelayedRetries(t *testing.T) {
	test("a message comes back later each time, says how often, and is a dead letter then", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		retry := amqp.Table{"initial": int32(40), "factor": int32(2)}
		queue, graves := w.mortal(channel, amqp.Table{"x-delivery-limit": int32(2), "x-retry-delay": retry})
		deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
		w.must(err)
		w.publish(channel, "", queue, "bad", amqp.Publishing{})
		for _, count := range []any{nil, int64(1), int64(2)} {
			message := receive(w, deliveries)
			w.equal(message.Headers["x-delivery-count"], count)
			w.must(message.Nack(false, true))
		}
		w.equal(deaths(receive(w, graves)), []string{queue + " delivery_limit 1"})
	})(t)
}

func TestDuplicates(t *testing.T) {
	test("a queue takes a message once", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-message-deduplication": true})
		for _, body := range []string{"1", "2"} {
			w.publish(channel, "", queue, body, amqp.Publishing{Headers: amqp.Table{"x-deduplication-header": "same"}})
		}
		w.publish(channel, "", queue, "3", amqp.Publishing{Headers: amqp.Table{"x-deduplication-header": "other"}})
		w.equal(w.drain(channel, queue), []string{"1", "3"})
	})(t)
}

func TestDeduplicatingExchange(t *testing.T) {
	test("an exchange lets a message pass once", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		exchange := w.name()
		arguments := amqp.Table{"x-cache-size": int32(10), "x-cache-ttl": int32(3600000)}
		w.must(channel.ExchangeDeclare(exchange, "x-message-deduplication", false, true, false, false, arguments))
		queue := w.ownQueue(channel, nil)
		w.must(channel.QueueBind(queue, "any", exchange, false, nil))
		for _, body := range []string{"1", "2"} {
			w.publish(channel, exchange, "k", body, amqp.Publishing{Headers: amqp.Table{"x-deduplication-header": "same"}})
		}
		w.publish(channel, exchange, "k", "3", amqp.Publishing{Headers: amqp.Table{"x-deduplication-header": "other"}})
		w.publish(channel, exchange, "k", "4", amqp.Publishing{})
		// A confirmed message may be on its way yet: the exchange may remember on another node than the queue's.
		inbox, err := channel.Consume(queue, "", true, false, false, false, nil)
		w.must(err)
		for _, body := range []string{"1", "3", "4"} {
			w.equal(string(receive(w, inbox).Body), body)
		}
	})(t)
}

func TestGroups(t *testing.T) {
	test("groups take turns", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-fair-key": "tenant"})
		large := strings.Repeat("x", 8192)
		for _, body := range []string{"a1", "a2", "a3"} {
			w.publish(channel, "", queue, body+large, amqp.Publishing{Headers: amqp.Table{"tenant": "a"}})
		}
		w.publish(channel, "", queue, "b1", amqp.Publishing{Headers: amqp.Table{"tenant": "b"}})
		came := w.drain(channel, queue)
		w.equal(len(came), 4)
		w.equal(came[3][:2], "a3")
	})(t)
}

func TestDelayedMessages(t *testing.T) {
	test("a delayed message waits in its exchange", func(w *world) {
		w.leveretOnly(ours)
		channel := w.confirming()
		exchange := w.name()
		w.must(channel.ExchangeDeclare(exchange, "x-delayed-message", false, true, false, false, amqp.Table{"x-delayed-type": "direct"}))
		queue := w.ownQueue(channel, nil)
		w.must(channel.QueueBind(queue, "k", exchange, false, nil))
		deliveries, err := channel.Consume(queue, "", true, false, false, false, nil)
		w.must(err)
		w.publish(channel, exchange, "k", "late", amqp.Publishing{Headers: amqp.Table{"x-delay": int32(150)}})
		w.publish(channel, exchange, "k", "soon", amqp.Publishing{})
		w.equal(bodies(w.take(deliveries, 2)), []string{"soon", "late"})
	})(t)
}
