package suite

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestConfirms(t *testing.T) {
	test("confirms of many, each once and in order", func(w *world) {
		channel := w.channel()
		w.must(channel.Confirm(false))
		queue := w.ownQueue(channel, nil)
		confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 1000))
		for n := range 1000 {
			w.must(channel.Publish("", queue, false, false, amqp.Publishing{Body: []byte(fmt.Sprint(n)), DeliveryMode: amqp.Persistent}))
		}
		for n := range uint64(1000) {
			confirm := receive(w, confirms)
			w.equal(confirm, amqp.Confirmation{DeliveryTag: n + 1, Ack: true})
		}
		w.equal(w.ready(channel, queue), 1000)
	})(t)
}

func TestSingleConfirm(t *testing.T) {
	test("a single confirm of a persistent message", func(w *world) {
		channel := w.confirming()
		name := w.name()
		_, err := channel.QueueDeclare(name, true, false, false, false, nil)
		w.must(err)
		for n := range 10 {
			w.publish(channel, "", name, "x", amqp.Publishing{DeliveryMode: amqp.Persistent})
			w.equal(w.ready(channel, name), n+1)
		}
		count, err := channel.QueueDelete(name, false, false, false)
		w.must(err)
		w.equal(count, 10)
	})(t)
}

func TestReturn(t *testing.T) {
	test("a mandatory message returns before its confirm", func(w *world) {
		channel := w.confirming()
		returns := channel.NotifyReturn(make(chan amqp.Return, 1))
		confirms := channel.NotifyPublish(make(chan amqp.Confirmation, 1))
		w.must(channel.Publish("amq.direct", "no such key", true, false, amqp.Publishing{Body: []byte("back"), MessageId: "m"}))
		receive(w, confirms)
		select {
		case message := <-returns:
			w.equal([]any{message.ReplyCode, message.ReplyText, message.Exchange, message.RoutingKey, string(message.Body), message.MessageId}, []any{312, "NO_ROUTE", "amq.direct", "no such key", "back", "m"})
		default:
			w.Fatal("the confirm came first")
		}
	})(t)
}

func TestProperties(t *testing.T) {
	test("properties and headers come back", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		sent := amqp.Publishing{
			Headers: amqp.Table{
				"bool": true, "byte": byte(1), "int8": int8(-1), "int16": int16(-300), "int32": int32(-70000), "int64": int64(1) << 40, "float32": float32(1.5), "float64": 2.5,
				"string": "ü", "bytes": []byte{0, 1, 2}, "time": time.Unix(1700000000, 0), "decimal": amqp.Decimal{Scale: 2, Value: 314}, "list": []any{int32(1), "two"}, "table": amqp.Table{"nested": int32(3)}, "nil": nil,
			},
			ContentType: "text/plain", ContentEncoding: "utf-8", DeliveryMode: amqp.Persistent, Priority: 5, CorrelationId: "c", ReplyTo: "r",
			MessageId: "m", Timestamp: time.Unix(1700000000, 0), Type: "t", UserId: "guest", AppId: "a",
		}
		w.publish(channel, "", queue, "body", sent)
		got, ok, err := channel.Get(queue, true)
		w.must(err)
		w.equal(ok, true)
		w.equal(got.Headers, sent.Headers)
		w.equal([]any{got.ContentType, got.ContentEncoding, got.DeliveryMode, got.Priority, got.CorrelationId, got.ReplyTo}, []any{"text/plain", "utf-8", 2, 5, "c", "r"})
		w.equal([]any{got.MessageId, got.Timestamp.Unix(), got.Type, got.UserId, got.AppId}, []any{"m", 1700000000, "t", "guest", "a"})
	})(t)
}

func TestAcks(t *testing.T) {
	test("acks, one and many, and recover", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 10)
		deliveries, err := channel.Consume(queue, "", false, false, false, false, nil)
		w.must(err)
		got := w.take(deliveries, 10)
		w.equal(bodies(got), numbers(0, 10))
		w.must(got[2].Ack(false))
		w.must(got[4].Ack(true))
		w.must(channel.Recover(true))
		again := w.take(deliveries, 5)
		w.equal(bodies(again), numbers(5, 10))
		for _, delivery := range again {
			w.equal(delivery.Redelivered, true)
		}
		w.must(again[4].Ack(true))
		w.must(channel.Recover(true))
		w.equal(w.ready(channel, queue), 0)
	})(t)
}

func TestRequeue(t *testing.T) {
	test("nack and reject requeue to the original position", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 6)
		got := []amqp.Delivery{}
		for range 4 {
			message, _, err := channel.Get(queue, false)
			w.must(err)
			got = append(got, message)
		}
		w.must(got[2].Nack(false, true))
		w.must(got[0].Reject(true))
		w.must(got[3].Nack(true, true))
		for n := range 6 {
			message, ok, err := channel.Get(queue, true)
			w.must(err)
			w.equal([]any{ok, string(message.Body), message.Redelivered}, []any{true, fmt.Sprint(n), n < 4})
		}
	})(t)
}

func TestDrop(t *testing.T) {
	test("nack and reject without requeue drop", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 5)
		for range 4 {
			_, _, err := channel.Get(queue, false)
			w.must(err)
		}
		w.must(channel.Reject(1, false))
		w.must(channel.Nack(3, true, false))
		w.must(channel.Nack(0, true, true))
		w.equal(w.drain(channel, queue), []string{"3", "4"})
	})(t)
}

func TestConsumerPrefetch(t *testing.T) {
	test("prefetch per consumer", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 10)
		w.must(channel.Qos(2, 0, false))
		first, err := channel.Consume(queue, "first", false, false, false, false, nil)
		w.must(err)
		second, err := channel.Consume(queue, "second", false, false, false, false, nil)
		w.must(err)
		got := w.take(first, 2)
		w.take(second, 2)
		w.equal(w.ready(channel, queue), 6)
		w.must(got[1].Ack(true))
		w.take(first, 2)
		w.equal(w.ready(channel, queue), 4)
	})(t)
}

func TestChannelPrefetch(t *testing.T) {
	test("prefetch per channel", func(w *world) {
		w.leveretOnly("RabbitMQ 4.3 treats a global prefetch as one per consumer")
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 10)
		w.must(channel.Qos(3, 0, true))
		first, err := channel.Consume(queue, "first", false, false, false, false, nil)
		w.must(err)
		_, err = channel.Consume(queue, "second", false, false, false, false, nil)
		w.must(err)
		w.take(first, 3)
		w.equal(w.ready(channel, queue), 7)
	})(t)
}

func TestGet(t *testing.T) {
	test("get counts down to empty", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.fill(channel, queue, 2)
		for left := 1; left >= 0; left-- {
			message, ok, err := channel.Get(queue, false)
			w.must(err)
			w.equal([]any{ok, int(message.MessageCount), message.Redelivered}, []any{true, left, false})
		}
		_, ok, err := channel.Get(queue, false)
		w.must(err)
		w.equal(ok, false)
	})(t)
}

func TestCancelNotify(t *testing.T) {
	test("a consumer is told that its queue was deleted", func(w *world) {
		channel := w.channel()
		name := w.name()
		_, err := channel.QueueDeclare(name, true, false, false, false, nil)
		w.must(err)
		cancelled := channel.NotifyCancel(make(chan string, 1))
		deliveries, err := channel.Consume(name, "told", false, false, false, false, nil)
		w.must(err)
		_, err = w.channel().QueueDelete(name, false, false, false)
		w.must(err)
		w.equal(receive(w, cancelled), "told")
		if _, open := <-deliveries; open {
			w.Fatal("the delivery channel should be closed")
		}
		// The channel itself goes on.
		w.ownQueue(channel, nil)
	})(t)
}

func TestBlocked(t *testing.T) {
	test("a publisher is blocked and unblocked, a consumer is not", func(w *world) {
		w.needsControl()
		connection := w.dial(alarmPort())
		channel, consumer := w.channelOn(connection), w.channelOn(w.dial(alarmPort()))
		name := w.name()
		_, err := consumer.QueueDeclare(name, true, false, false, false, nil)
		w.must(err)
		blockings := connection.NotifyBlocked(make(chan amqp.Blocking, 4))
		w.control("alarm-on")
		defer w.control("alarm-off")
		var blocking amqp.Blocking
		for limit := time.Now().Add(deadline); !blocking.Active; {
			w.must(channel.Publish("", name, false, false, amqp.Publishing{Body: []byte("x")}))
			select {
			case blocking = <-blockings:
			case <-time.After(100 * time.Millisecond):
				if time.Now().After(limit) {
					w.Fatal("no connection.blocked")
				}
			}
		}
		w.equal(blocking.Reason, "low on disk")
		w.drain(consumer, name)
		w.must(channel.Publish("", name, false, false, amqp.Publishing{Body: []byte("late")}))
		w.control("alarm-off")
		w.equal(receive(w, blockings).Active, false)
		for limit := time.Now().Add(deadline); ; {
			got := w.drain(consumer, name)
			if len(got) > 0 && got[len(got)-1] == "late" {
				break
			}
			if time.Now().After(limit) {
				w.Fatal("the held message never came")
			}
		}
		_, err = consumer.QueueDelete(name, false, false, false)
		w.must(err)
	})(t)
}
