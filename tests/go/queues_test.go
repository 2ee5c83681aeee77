package suite

import (
	"fmt"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestExclusive(t *testing.T) {
	test("server-named exclusive queue goes with its connection", func(w *world) {
		owner := w.dial(amqpPort())
		queue := w.ownQueue(w.channelOn(owner), nil)
		w.equal(strings.HasPrefix(queue, "amq.gen-"), true)
		_, err := w.channel().QueueDeclarePassive(queue, false, false, true, false, nil)
		w.refused(err, 405, fmt.Sprintf("RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '%s' in vhost '/'", queue))
		w.must(owner.Close())
		_, err = w.channel().QueueDeclarePassive(queue, false, false, true, false, nil)
		w.refused(err, 404, fmt.Sprintf("NOT_FOUND - no queue '%s' in vhost '/'", queue))
	})(t)
}

func TestAutoDelete(t *testing.T) {
	test("auto-delete queue goes with its last consumer", func(w *world) {
		channel := w.channel()
		name := w.name()
		_, err := channel.QueueDeclare(name, false, true, false, false, nil)
		w.must(err)
		_, err = channel.Consume(name, "c", true, false, false, false, nil)
		w.must(err)
		w.equal(w.ready(channel, name), 0)
		w.must(channel.Cancel("c", false))
		_, err = channel.QueueDeclarePassive(name, false, true, false, false, nil)
		w.refused(err, 404, "no queue")
	})(t)
}

func TestMaxLength(t *testing.T) {
	test("max-length and max-length-bytes keep the newest", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, amqp.Table{"x-max-length": int32(3), "x-overflow": "drop-head"})
		w.fill(channel, queue, 8)
		w.equal(w.drain(channel, queue), numbers(5, 8))
		queue = w.ownQueue(channel, amqp.Table{"x-max-length-bytes": int64(4)})
		w.fill(channel, queue, 8)
		w.equal(w.drain(channel, queue), numbers(4, 8))
	})(t)
}

func TestShortcuts(t *testing.T) {
	test("the last declared queue is meant by the empty name", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.must(channel.QueueBind("", "", "amq.direct", false, nil))
		w.publish(channel, "amq.direct", queue, "x", amqp.Publishing{})
		w.equal(w.drain(channel, ""), []string{"x"})
		w.publish(channel, "", queue, "y", amqp.Publishing{})
		count, err := channel.QueuePurge("", false)
		w.must(err)
		w.equal(count, 1)
		_, err = channel.QueueDelete("", false, false, false)
		w.must(err)
	})(t)
}

func TestIdempotentDeletes(t *testing.T) {
	test("deletes and unbinds of what is not there", func(w *world) {
		channel := w.channel()
		count, err := channel.QueueDelete(w.name(), false, false, false)
		w.must(err)
		w.equal(count, 0)
		w.must(channel.ExchangeDelete(w.name(), false, false))
		w.must(channel.QueueUnbind(w.ownQueue(channel, nil), "never", "amq.direct", nil))
	})(t)
}

func TestRestart(t *testing.T) {
	test("durable queue with persistent messages after a restart", func(w *world) {
		w.needsControl()
		channel := w.confirming()
		name := w.name()
		_, err := channel.QueueDeclare(name, true, false, false, false, nil)
		w.must(err)
		// A quorum queue would keep what is transient.
		brief := w.name()
		_, err = channel.QueueDeclare(brief, true, false, false, false, amqp.Table{"x-queue-type": "classic"})
		w.must(err)
		w.must(channel.ExchangeDeclare(name, "headers", true, false, false, false, nil))
		w.must(channel.QueueBind(name, "", name, false, amqp.Table{"x-match": "any", "k": "v"}))
		for n := range 20 {
			w.publish(channel, name, "", fmt.Sprint(n), amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"k": "v"}})
			w.publish(channel, "", brief, "transient", amqp.Publishing{})
		}
		w.control("restart")
		channel = w.confirming()
		w.equal(w.drain(channel, name), numbers(0, 20))
		count, err := channel.QueueDelete(brief, false, false, false)
		w.must(err)
		w.equal(count, 0)
		w.publish(channel, name, "", "bound", amqp.Publishing{Headers: amqp.Table{"k": "v"}})
		w.equal(w.drain(channel, name), []string{"bound"})
		_, err = channel.QueueDelete(name, false, false, false)
		w.must(err)
		w.must(channel.ExchangeDelete(name, false, false))
	})(t)
}

func TestChannelErrors(t *testing.T) {
	test("channel errors", func(w *world) {
		connection := w.dial(amqpPort())
		witness := w.channelOn(connection)
		held := w.ownQueue(witness, nil)
		missing := w.name()
		cases := []struct {
			request func(channel *amqp.Channel) error
			code    int
			text    string
		}{
			{func(c *amqp.Channel) error {
				_, err := c.QueueDeclarePassive(missing, false, false, false, false, nil)
				return err
			}, 404, "NOT_FOUND - no queue '" + missing + "' in vhost '/'"},
			{func(c *amqp.Channel) error { return c.QueueBind(held, "k", missing, false, nil) }, 404, "NOT_FOUND - no exchange '" + missing + "' in vhost '/'"},
			{func(c *amqp.Channel) error { _, _, err := c.Get(missing, false); return err }, 404, "NOT_FOUND - no queue"},
			{func(c *amqp.Channel) error { _, err := c.QueuePurge("", false); return err }, 404, "NOT_FOUND - no previously declared queue"},
			{func(c *amqp.Channel) error { return c.QueueBind(held, "k", "", false, nil) }, 403, "ACCESS_REFUSED - operation not permitted on the default exchange"},
			{func(c *amqp.Channel) error { return c.ExchangeDelete("amq.fanout", false, false) }, 403, "ACCESS_REFUSED - deletion of system exchange 'amq.fanout' in vhost '/' not allowed"},
			{func(c *amqp.Channel) error {
				return c.ExchangeDeclare(missing, "nonsense", false, true, false, false, nil)
			}, 406, "PRECONDITION_FAILED - unknown exchange type 'nonsense'"},
			{func(c *amqp.Channel) error {
				return c.ExchangeDeclare("amq.topic", "direct", true, false, false, false, nil)
			}, 406, "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'direct' but current is 'topic'"},
			{func(c *amqp.Channel) error {
				_, err := c.QueueDeclare("", false, false, true, false, amqp.Table{"x-max-length": int32(-1)})
				return err
			}, 406, "invalid arg 'x-max-length'"},
		}
		for _, c := range cases {
			w.refused(c.request(w.channelOn(connection)), c.code, c.text)
		}
		w.equal(w.ready(witness, held), 0)
	})(t)
}

func TestAsynchronousErrors(t *testing.T) {
	test("errors of what is not answered", func(w *world) {
		connection := w.dial(amqpPort())
		cases := []struct {
			request func(channel *amqp.Channel) error
			code    int
			text    string
		}{
			{func(c *amqp.Channel) error { return c.Ack(7, false) }, 406, "PRECONDITION_FAILED - unknown delivery tag 7"},
			{func(c *amqp.Channel) error { return c.Publish("no such exchange", "", false, false, amqp.Publishing{}) }, 404, "NOT_FOUND - no exchange 'no such exchange' in vhost '/'"},
		}
		for _, c := range cases {
			channel := w.channelOn(connection)
			closed := channel.NotifyClose(make(chan *amqp.Error, 1))
			w.must(c.request(channel))
			w.refused(receive(w, closed), c.code, c.text)
		}
	})(t)
}

func TestConnectionErrors(t *testing.T) {
	test("connection errors", func(w *world) {
		cases := []struct {
			request func(channel *amqp.Channel)
			code    int
			text    string
		}{
			{func(c *amqp.Channel) { _ = c.Publish("", "q", false, true, amqp.Publishing{}) }, 540, "NOT_IMPLEMENTED - immediate=true"},
			{func(c *amqp.Channel) { _ = c.Qos(0, 1, false) }, 540, "NOT_IMPLEMENTED - prefetch_size!=0 (1)"},
			{func(c *amqp.Channel) { _ = c.Recover(false) }, 540, "NOT_IMPLEMENTED - requeue=false"},
			{func(c *amqp.Channel) { _ = c.Flow(false) }, 540, "NOT_IMPLEMENTED - active=false"},
		}
		for _, c := range cases {
			connection := w.dial(amqpPort())
			channel := w.channelOn(connection)
			closed := connection.NotifyClose(make(chan *amqp.Error, 1))
			c.request(channel)
			w.refused(receive(w, closed), c.code, c.text)
		}
	})(t)
}

func TestLogin(t *testing.T) {
	test("wrong password and unknown vhost", func(w *world) {
		_, err := amqp.Dial(strings.Replace(url(amqpPort()), "guest:guest", "guest:wrong", 1))
		w.equal(err != nil && strings.Contains(err.Error(), "403"), true)
		_, err = amqp.Dial(url(amqpPort()) + "nope")
		w.equal(err != nil, true)
	})(t)
}
