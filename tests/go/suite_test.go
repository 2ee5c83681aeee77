// Package suite drives the broker with amqp091-go.
package suite

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const deadline = 30 * time.Second

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func url(port string) string {
	return fmt.Sprintf("amqp://guest:guest@%s:%s/", setting("AMQP_HOST", "127.0.0.1"), port)
}

func amqpPort() string { return setting("AMQP_PORT", "5672") }

func alarmPort() string { return setting("ALARM_PORT", amqpPort()) }

// world is what a test gets: it closes what the test opened and reports in one line.
type world struct {
	*testing.T
}

func test(name string, body func(w *world)) func(*testing.T) {
	return func(t *testing.T) {
		started := time.Now()
		t.Cleanup(func() {
			switch {
			case t.Failed():
				fmt.Printf("FAIL go %s\n", name)
			case t.Skipped():
			default:
				fmt.Printf("ok   go %s (%.2f s)\n", name, time.Since(started).Seconds())
			}
		})
		body(&world{t})
	}
}

// skip leaves a test out, with a reason.
func (w *world) skip(reason string) {
	fmt.Printf("skip go %s: %s\n", w.Name(), reason)
	w.SkipNow()
}

// leveretOnly skips a test against another broker.
func (w *world) leveretOnly(reason string) {
	if os.Getenv("LEVERET") == "0" {
		w.skip(reason)
	}
}

func (w *world) needsControl() {
	if os.Getenv("CONTROL_PORT") == "" {
		w.skip("no control over this broker")
	}
}

// control asks the harness for something to happen to the broker.
func (w *world) control(verb string) {
	w.Helper()
	line, err := net.Dial("tcp", "127.0.0.1:"+os.Getenv("CONTROL_PORT"))
	w.must(err)
	defer line.Close()
	_, err = fmt.Fprintln(line, verb)
	w.must(err)
	answer, err := bufio.NewReader(line).ReadString('\n')
	w.must(err)
	if strings.TrimSpace(answer) != "ok" {
		w.Fatalf("%s: %s", verb, answer)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// equal fails the test unless both print the same.
func (w *world) equal(got, want any) {
	w.Helper()
	if g, x := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != x {
		w.Fatalf("got %s, want %s", g, x)
	}
}

func (w *world) name() string {
	bytes := make([]byte, 6)
	_, err := rand.Read(bytes)
	w.must(err)
	return "go." + hex.EncodeToString(bytes)
}

func (w *world) dial(port string) *amqp.Connection {
	w.Helper()
	connection, err := amqp.Dial(url(port))
	w.must(err)
	w.Cleanup(func() { _ = connection.Close() })
	return connection
}

func (w *world) channelOn(connection *amqp.Connection) *amqp.Channel {
	w.Helper()
	channel, err := connection.Channel()
	w.must(err)
	return channel
}

func (w *world) channel() *amqp.Channel {
	w.Helper()
	return w.channelOn(w.dial(amqpPort()))
}

// confirming is a channel in confirm mode.
func (w *world) confirming() *amqp.Channel {
	w.Helper()
	channel := w.channel()
	w.must(channel.Confirm(false))
	return channel
}

// ownQueue is server-named and exclusive.
func (w *world) ownQueue(channel *amqp.Channel, args amqp.Table) string {
	w.Helper()
	queue, err := channel.QueueDeclare("", false, false, true, false, args)
	w.must(err)
	return queue.Name
}

// publish waits for the confirm of one message.
func (w *world) publish(channel *amqp.Channel, exchange, key, body string, publishing amqp.Publishing) {
	w.Helper()
	publishing.Body = []byte(body)
	confirmation, err := channel.PublishWithDeferredConfirm(exchange, key, false, false, publishing)
	w.must(err)
	if confirmation != nil && !confirmation.Wait() {
		w.Fatal("nacked")
	}
}

func (w *world) fill(channel *amqp.Channel, queue string, count int) {
	w.Helper()
	for n := range count {
		w.publish(channel, "", queue, fmt.Sprint(n), amqp.Publishing{})
	}
}

func (w *world) drain(channel *amqp.Channel, queue string) []string {
	w.Helper()
	bodies := []string{}
	for {
		message, ok, err := channel.Get(queue, true)
		w.must(err)
		if !ok {
			return bodies
		}
		bodies = append(bodies, string(message.Body))
	}
}

func (w *world) ready(channel *amqp.Channel, queue string) int {
	w.Helper()
	state, err := channel.QueueDeclarePassive(queue, false, false, false, false, nil)
	w.must(err)
	return state.Messages
}

// take receives that many deliveries.
func (w *world) take(deliveries <-chan amqp.Delivery, count int) []amqp.Delivery {
	w.Helper()
	got := []amqp.Delivery{}
	for len(got) < count {
		got = append(got, receive(w, deliveries))
	}
	return got
}

func receive[T any](w *world, from <-chan T) T {
	w.Helper()
	select {
	case value, ok := <-from:
		if !ok {
			w.Fatal("closed instead of a value")
		}
		return value
	case <-time.After(deadline):
		w.Fatal("nothing came")
	}
	panic("unreachable")
}

// refused checks the error of a closed channel or connection.
func (w *world) refused(err error, code int, text string) {
	w.Helper()
	var closed *amqp.Error
	if !errors.As(err, &closed) {
		w.Fatalf("expected a refusal with %d, got %v", code, err)
	}
	if closed.Code != code || !strings.Contains(closed.Reason, text) || !closed.Server {
		w.Fatalf("got %d %q, want %d %q", closed.Code, closed.Reason, code, text)
	}
}

func bodies(deliveries []amqp.Delivery) []string {
	texts := []string{}
	for _, delivery := range deliveries {
		texts = append(texts, string(delivery.Body))
	}
	return texts
}

func numbers(from, to int) []string {
	texts := []string{}
	for n := from; n < to; n++ {
		texts = append(texts, fmt.Sprint(n))
	}
	return texts
}
