package suite

import (
	"testing"
	"time"

	old "github.com/streadway/amqp"
)

// The goodbyes of the client before amqp091-go, which many libraries still bring along. If the end of the socket comes right behind
// connection.close-ok it takes that for a loss of the connection, and waits for ever until whoever asked to be told of such hears it:
// mostly the one who is just closing.
func TestGoodbyesOfTheOldClient(t *testing.T) {
	test("the old client's connections close in time, idle ones and busy ones", func(w *world) {
		for range 10 {
			w.goodbye(func(connection *old.Connection) {})
			w.goodbye(busy(w))
		}
	})(t)
	test("who wants to hear of errors and does not listen while closing is not waited for", func(w *world) {
		for range 20 {
			w.goodbye(func(connection *old.Connection) {
				connection.NotifyClose(make(chan *old.Error))
				busy(w)(connection)
			})
		}
	})(t)
	test("a connection whose channel was closed for an error closes in time", func(w *world) {
		for range 5 {
			w.goodbye(func(connection *old.Connection) {
				channel, err := connection.Channel()
				w.must(err)
				if _, err = channel.QueueDeclarePassive(w.name(), false, false, false, false, nil); err == nil {
					w.Fatal("it should not exist")
				}
			})
		}
	})(t)
}

// busy opens channels and consumers, and publishes, and leaves all of it open.
func busy(w *world) func(connection *old.Connection) {
	return func(connection *old.Connection) {
		for range 3 {
			channel, err := connection.Channel()
			w.must(err)
			queue, err := channel.QueueDeclare("", false, false, true, false, nil)
			w.must(err)
			deliveries, err := channel.Consume(queue.Name, "", false, false, false, false, nil)
			w.must(err)
			for range 20 {
				w.must(channel.Publish("", queue.Name, false, false, old.Publishing{Body: []byte("m")}))
			}
			go func() {
				for range deliveries {
				}
			}()
		}
	}
}

// goodbye opens a connection, uses it, and closes it, which must end.
func (w *world) goodbye(use func(connection *old.Connection)) {
	w.Helper()
	connection, err := old.Dial(url(amqpPort()))
	w.must(err)
	use(connection)
	ended := make(chan error, 1)
	go func() { ended <- connection.Close() }()
	select {
	case err := <-ended:
		w.must(err)
	case <-time.After(deadline):
		w.Fatal("Connection.Close() does not return")
	}
}
