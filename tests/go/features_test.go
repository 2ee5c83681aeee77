package suite

import (
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// mortal is a queue whose dead letters go to the other one, which is consumed.
func (w *world) mortal(channel *amqp.Channel, args amqp.Table) (string, <-chan amqp.Delivery) {
	w.Helper()
	graves := w.ownQueue(channel, nil)
	args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "", graves
	deliveries, err := channel.Consume(graves, "", true, false, false, false, nil)
	w.must(err)
	return w.ownQueue(channel, args), deliveries
}

// deaths tells of each death in a message's history.
func deaths(message amqp.Delivery) []string {
	told := []string{}
	history, _ := message.Headers["x-death"].([]any)
	for _, entry := range history {
		death := entry.(amqp.Table)
		told = append(told, fmt.Sprintf("%v %v %v", death["queue"], death["reason"], death["count"]))
	}
	return told
}

func TestTimesToLive(t *testing.T) {
	test("messages expire by their queue or their own word, at any position", func(w *world) {
		w.leveretOnly("RabbitMQ's classic queues expire messages at their head only")
		channel := w.confirming()
		queue, graves := w.mortal(channel, amqp.Table{})
		w.publish(channel, "", queue, "stays", amqp.Publishing{})
		w.publish(channel, "", queue, "goes", amqp.Publishing{Expiration: "30"})
		message := receive(w, graves)
		w.equal(string(message.Body), "goes")
		w.equal(message.Expiration, "")
		w.equal(deaths(message), []string{queue + " expired 1"})
		w.equal(w.drain(channel, queue), []string{"stays"})
		queue, graves = w.mortal(channel, amqp.Table{"x-message-ttl": int32(30)})
		w.fill(channel, queue, 3)
		w.equal(bodies(w.take(graves, 3)), numbers(0, 3))
	})(t)
}

func TestDeadLetters(t *testing.T) {
	test("dead letters of rejection and of length", func(w *world) {
		channel := w.confirming()
		queue, graves := w.mortal(channel, amqp.Table{"x-max-length": int32(1)})
		w.fill(channel, queue, 2)
		w.equal(deaths(receive(w, graves)), []string{queue + " maxlen 1"})
		message, ok, err := channel.Get(queue, false)
		w.must(err)
		w.equal(ok, true)
		w.must(message.Reject(false))
		dead := receive(w, graves)
		w.equal(deaths(dead), []string{queue + " rejected 1"})
		w.equal(dead.Headers["x-first-death-queue"], queue)
	})(t)
}

func TestRejectPublish(t *testing.T) {
	test("a full queue that refuses nacks", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
		for _, wanted := range []bool{true, false} {
			confirmation, err := channel.PublishWithDeferredConfirm("", queue, false, false, amqp.Publishing{})
			w.must(err)
			w.equal(confirmation.Wait(), wanted)
		}
		w.equal(w.ready(channel, queue), 1)
	})(t)
}

func TestConsumerPriority(t *testing.T) {
	test("the consumer of the highest priority comes first", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		low, err := channel.Consume(queue, "low", false, false, false, false, nil)
		w.must(err)
		w.must(channel.Qos(2, 0, false))
		high, err := channel.Consume(queue, "high", false, false, false, false, amqp.Table{"x-priority": int32(10)})
		w.must(err)
		w.fill(channel, queue, 3)
		w.equal(bodies(w.take(high, 2)), numbers(0, 2))
		w.equal(bodies(w.take(low, 1)), numbers(2, 3))
	})(t)
}

func TestSingleActiveConsumer(t *testing.T) {
	test("one consumer is active, the next takes over", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-single-active-consumer": true})
		first, err := channel.Consume(queue, "first", true, false, false, false, nil)
		w.must(err)
		second, err := channel.Consume(queue, "second", true, false, false, false, nil)
		w.must(err)
		w.fill(channel, queue, 3)
		w.equal(bodies(w.take(first, 3)), numbers(0, 3))
		w.must(channel.Cancel("first", false))
		w.publish(channel, "", queue, "later", amqp.Publishing{})
		w.equal(bodies(w.take(second, 1)), []string{"later"})
	})(t)
}

func TestAlternateExchange(t *testing.T) {
	test("what nobody takes goes to the alternate exchange", func(w *world) {
		channel := w.confirming()
		others, exchange := w.name(), w.name()
		w.must(channel.ExchangeDeclare(others, "fanout", false, true, false, false, nil))
		rest := w.ownQueue(channel, nil)
		w.must(channel.QueueBind(rest, "", others, false, nil))
		w.must(channel.ExchangeDeclare(exchange, "direct", false, true, false, false, amqp.Table{"alternate-exchange": others}))
		taken := w.ownQueue(channel, nil)
		w.must(channel.QueueBind(taken, "known", exchange, false, nil))
		w.publish(channel, exchange, "known", "a", amqp.Publishing{})
		w.publish(channel, exchange, "unknown", "b", amqp.Publishing{})
		w.equal([][]string{w.drain(channel, taken), w.drain(channel, rest)}, [][]string{{"a"}, {"b"}})
	})(t)
}

func TestHashExchanges(t *testing.T) {
	test("a hash exchange keeps a key in one queue", func(w *world) {
		w.leveretOnly("a plugin of RabbitMQ's")
		channel := w.confirming()
		for _, kind := range []string{"x-consistent-hash", "x-modulus-hash"} {
			exchange := w.name()
			w.must(channel.ExchangeDeclare(exchange, kind, false, true, false, false, nil))
			queues := []string{w.ownQueue(channel, nil), w.ownQueue(channel, nil)}
			for _, queue := range queues {
				w.must(channel.QueueBind(queue, "1", exchange, false, nil))
			}
			for key := range 40 {
				w.publish(channel, exchange, fmt.Sprint(key), fmt.Sprint(key), amqp.Publishing{})
				w.publish(channel, exchange, fmt.Sprint(key), fmt.Sprint(key), amqp.Publishing{})
			}
			total := 0
			for _, queue := range queues {
				times := map[string]int{}
				for _, key := range w.drain(channel, queue) {
					times[key]++
					total++
				}
				for key, count := range times {
					w.equal(key+" "+fmt.Sprint(count), key+" 2")
				}
			}
			w.equal(total, 80)
		}
	})(t)
}

func TestMessagePriority(t *testing.T) {
	test("messages of a higher priority come first", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-max-priority": int32(10)})
		for n, priority := range []uint8{0, 5, 200, 5} {
			w.publish(channel, "", queue, fmt.Sprint(n), amqp.Publishing{Priority: priority})
		}
		w.equal(w.drain(channel, queue), []string{"2", "1", "3", "0"})
	})(t)
}

func TestTransactions(t *testing.T) {
	test("a transaction publishes and acknowledges at its commit", func(w *world) {
		channel, outside := w.channel(), w.channel()
		queue := w.name()
		_, err := channel.QueueDeclare(queue, false, false, false, false, nil)
		w.must(err)
		defer channel.QueueDelete(queue, false, false, false)
		w.must(channel.Tx())
		w.must(channel.Publish("", queue, false, false, amqp.Publishing{Body: []byte("back")}))
		w.must(channel.TxRollback())
		w.must(channel.Publish("", queue, false, false, amqp.Publishing{Body: []byte("kept")}))
		w.equal(w.ready(outside, queue), 0)
		w.must(channel.TxCommit())
		w.equal(w.drain(outside, queue), []string{"kept"})
	})(t)
}

func TestDirectReplyTo(t *testing.T) {
	test("requests are answered over direct reply-to, copies go by CC", func(w *world) {
		client, server := w.channel(), w.channel()
		requests, err := server.QueueDeclare("", false, false, true, false, nil)
		w.must(err)
		replies, err := client.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
		w.must(err)
		calls, err := server.Consume(requests.Name, "", true, false, false, false, nil)
		w.must(err)
		call := amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "7", Headers: amqp.Table{"CC": []any{requests.Name}}}
		w.must(client.Publish("", w.name(), false, false, call))
		received := receive(w, calls)
		w.must(server.Publish("", received.ReplyTo, false, false, amqp.Publishing{CorrelationId: received.CorrelationId, Body: []byte("done")}))
		reply := receive(w, replies)
		w.equal(reply.CorrelationId+" "+string(reply.Body), "7 done")
	})(t)
}

// The well-known pattern: a worker that fails rejects, the message waits in a queue with a time to live and comes back, and
// the worker sees in the history how often it has failed.
func TestRetryChain(t *testing.T) {
	test("a delayed retry chain counts its attempts and ends in a parking queue", func(w *world) {
		const messages, attempts = 5, 4
		channel := w.confirming()
		work, waiting := w.name(), w.name()
		for queue, args := range map[string]amqp.Table{
			work:    {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting},
			waiting: {"x-message-ttl": int32(30), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": work},
		} {
			_, err := channel.QueueDeclare(queue, false, false, true, false, args)
			w.must(err)
		}
		parked := w.ownQueue(channel, nil)
		w.must(channel.Qos(1, 0, false))
		jobs, err := channel.Consume(work, "", false, false, false, false, nil)
		w.must(err)
		w.fill(channel, work, messages)
		seen := map[string]int{}
		for range messages * attempts {
			job := receive(w, jobs)
			failures := seen[string(job.Body)]
			seen[string(job.Body)]++
			if failures == 0 {
				w.equal(deaths(job), []string{})
			} else {
				w.equal(deaths(job), []string{fmt.Sprintf("%s expired %d", waiting, failures), fmt.Sprintf("%s rejected %d", work, failures)})
			}
			if failures+1 < attempts {
				w.must(job.Reject(false))
				continue
			}
			w.publish(channel, "", parked, string(job.Body), amqp.Publishing{Headers: job.Headers})
			w.must(job.Ack(false))
		}
		w.equal(w.drain(channel, parked), numbers(0, messages))
		w.equal([]int{w.ready(channel, work), w.ready(channel, waiting)}, []int{0, 0})
	})(t)
}

func TestExpires(t *testing.T) {
	test("a queue that nobody uses ends", func(w *world) {
		channel := w.channel()
		queue, exchange := w.name(), w.name()
		w.must(channel.ExchangeDeclare(exchange, "fanout", false, true, false, false, nil))
		_, err := channel.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-expires": int32(50)})
		w.must(err)
		w.must(channel.QueueBind(queue, "", exchange, false, nil))
		// A passive declaration would use the queue; its end is seen at the exchange, which goes with its last binding.
		for err == nil {
			err = w.channel().ExchangeDeclarePassive(exchange, "fanout", false, true, false, false, nil)
		}
		w.refused(err, 404, "no exchange")
		_, err = w.channel().QueueDeclarePassive(queue, true, false, false, false, nil)
		w.refused(err, 404, "no queue")
	})(t)
}
