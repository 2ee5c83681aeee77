package suite

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func (w *world) exchange(channel *amqp.Channel, kind string) string {
	w.Helper()
	name := w.name() + "." + kind
	w.must(channel.ExchangeDeclare(name, kind, false, true, false, false, nil))
	return name
}

func (w *world) bound(channel *amqp.Channel, exchange, key string, args amqp.Table) string {
	w.Helper()
	queue := w.ownQueue(channel, nil)
	w.must(channel.QueueBind(queue, key, exchange, false, args))
	return queue
}

func TestDefaultExchange(t *testing.T) {
	test("default exchange", func(w *world) {
		channel := w.confirming()
		queue := w.ownQueue(channel, nil)
		w.publish(channel, "", queue, "x", amqp.Publishing{})
		w.equal(w.drain(channel, queue), []string{"x"})
	})(t)
}

func TestDirect(t *testing.T) {
	test("direct exchange", func(w *world) {
		channel := w.confirming()
		exchange := w.exchange(channel, "direct")
		first, second := w.bound(channel, exchange, "a", nil), w.bound(channel, exchange, "b", nil)
		for _, key := range []string{"a", "b", "c"} {
			w.publish(channel, exchange, key, key, amqp.Publishing{})
		}
		w.equal(w.drain(channel, first), []string{"a"})
		w.equal(w.drain(channel, second), []string{"b"})
	})(t)
}

func TestFanout(t *testing.T) {
	test("fanout exchange", func(w *world) {
		channel := w.confirming()
		exchange := w.exchange(channel, "fanout")
		first, second := w.bound(channel, exchange, "", nil), w.bound(channel, exchange, "ignored", nil)
		w.publish(channel, exchange, "any", "x", amqp.Publishing{})
		w.equal(w.drain(channel, first), []string{"x"})
		w.equal(w.drain(channel, second), []string{"x"})
	})(t)
}

func TestTopic(t *testing.T) {
	test("topic exchange", func(w *world) {
		channel := w.confirming()
		exchange := w.exchange(channel, "topic")
		want := map[string][]string{
			"kern.*":     {"kern.crit"},
			"#.crit":     {"kern.crit", "a.b.crit", "crit"},
			"#":          {"kern.crit", "a.b.crit", "crit", "kern.info.more"},
			"kern.#":     {"kern.crit", "kern.info.more"},
			"*.*.*":      {"a.b.crit", "kern.info.more"},
			"kern.*.#":   {"kern.crit", "kern.info.more"},
			"kern..crit": {},
		}
		queues := map[string]string{}
		for pattern := range want {
			queues[pattern] = w.bound(channel, exchange, pattern, nil)
		}
		for _, key := range []string{"kern.crit", "a.b.crit", "crit", "kern.info.more"} {
			w.publish(channel, exchange, key, key, amqp.Publishing{})
		}
		for pattern, keys := range want {
			w.equal(w.drain(channel, queues[pattern]), keys)
		}
	})(t)
}

func TestHeaders(t *testing.T) {
	test("headers exchange", func(w *world) {
		channel := w.confirming()
		exchange := w.exchange(channel, "headers")
		cases := []struct {
			args amqp.Table
			want []string
		}{
			{amqp.Table{"x-match": "all", "a": "1", "b": int32(2)}, []string{"both"}},
			{amqp.Table{"x-match": "any", "a": "1", "b": int32(2)}, []string{"both", "a only"}},
			{amqp.Table{"x-match": "all-with-x", "x-k": "v"}, []string{"x too"}},
			{amqp.Table{"x-match": "any-with-x", "x-k": "v", "a": "1"}, []string{"both", "a only", "x too"}},
		}
		queues := []string{}
		for _, c := range cases {
			queues = append(queues, w.bound(channel, exchange, "", c.args))
		}
		messages := []struct {
			body    string
			headers amqp.Table
		}{
			{"both", amqp.Table{"a": "1", "b": int32(2)}}, {"a only", amqp.Table{"a": "1"}},
			{"neither", amqp.Table{"a": "2"}}, {"x too", amqp.Table{"x-k": "v"}},
		}
		for _, m := range messages {
			w.publish(channel, exchange, "", m.body, amqp.Publishing{Headers: m.headers})
		}
		for i, c := range cases {
			w.equal(w.drain(channel, queues[i]), c.want)
		}
	})(t)
}

func TestExchangeToExchange(t *testing.T) {
	test("exchange-to-exchange binding", func(w *world) {
		channel := w.confirming()
		source, sink := w.exchange(channel, "direct"), w.exchange(channel, "fanout")
		w.must(channel.ExchangeBind(sink, "k", source, false, nil))
		queue := w.bound(channel, sink, "", nil)
		w.publish(channel, source, "k", "through", amqp.Publishing{})
		w.publish(channel, source, "other", "lost", amqp.Publishing{})
		w.equal(w.drain(channel, queue), []string{"through"})
		// Its last binding gone, the auto-delete source goes too.
		w.must(channel.ExchangeUnbind(sink, "k", source, false, nil))
		w.refused(channel.ExchangeDeclarePassive(source, "direct", false, true, false, false, nil), 404, "no exchange")
	})(t)
}
