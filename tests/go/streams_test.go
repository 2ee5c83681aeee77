package suite

import (
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strconv"
	"testing"
	"time"

	streamamqp "github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/message"
	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/stream"
)

// first is where a reader begins that wants everything.
var first = stream.OffsetSpecification{}.First()

func init() {
	// The client tells what it tries again and what ends; a test tells it better.
	log.SetOutput(io.Discard)
}

// streams is an environment of the stream client.
type streams struct {
	*world
	env *stream.Environment
}

// got is a message with its offset and the stream that it came from.
type got struct {
	body   string
	offset int64
	stream string
	*streamamqp.Message
}

func streamTest(name string, body func(s *streams)) func(*testing.T) {
	return test(name, func(w *world) {
		port := setting("STREAM_PORT", "")
		if port == "" {
			w.skip("no port of the stream protocol is given")
		}
		body(&streams{w, w.environment(port, "guest")})
	})
}

func (w *world) environment(port, password string) *stream.Environment {
	w.Helper()
	env, err := stream.NewEnvironment(w.environmentOptions(port).SetPassword(password))
	w.must(err)
	w.Cleanup(func() { _ = env.Close() })
	return env
}

func (w *world) environmentOptions(port string) *stream.EnvironmentOptions {
	w.Helper()
	number, err := strconv.Atoi(port)
	w.must(err)
	return stream.NewEnvironmentOptions().SetHost(setting("AMQP_HOST", "127.0.0.1")).SetPort(number).SetUser("guest").SetPassword("guest")
}

// stream makes one that is gone after the test.
func (s *streams) stream(options *stream.StreamOptions) string {
	s.Helper()
	name := s.name()
	s.must(s.env.DeclareStream(name, options))
	s.Cleanup(func() { _ = s.env.DeleteStream(name) })
	return name
}

func (s *streams) producer(name string, options *stream.ProducerOptions) *stream.Producer {
	s.Helper()
	producer, err := s.env.NewProducer(name, options)
	s.must(err)
	s.Cleanup(func() { _ = producer.Close() })
	return producer
}

func plain(n int) message.StreamMessage {
	return streamamqp.NewMessage([]byte(strconv.Itoa(n)))
}

// send publishes and waits for the confirms.
func (s *streams) send(producer *stream.Producer, messages ...message.StreamMessage) {
	s.Helper()
	confirms := producer.NotifyPublishConfirmation()
	// The client stops sending when nobody takes its confirms.
	failed := make(chan error, 1)
	go func() {
		for _, one := range messages {
			if err := producer.Send(one); err != nil {
				failed <- err
				return
			}
		}
	}()
	for confirmed := 0; confirmed < len(messages); {
		select {
		case err := <-failed:
			s.Fatal(err)
		default:
		}
		for _, status := range receive(s.world, confirms) {
			if !status.IsConfirmed() {
				s.Fatalf("not confirmed: code %d", status.GetErrorCode())
			}
			confirmed++
		}
	}
}

// fill writes the numbers from one up to another.
func (s *streams) fill(name string, from, to int, options *stream.ProducerOptions) {
	s.Helper()
	messages := []message.StreamMessage{}
	for n := from; n < to; n++ {
		messages = append(messages, plain(n))
	}
	producer := s.producer(name, options)
	s.send(producer, messages...)
	s.must(producer.Close())
}

func consumerOptions(from stream.OffsetSpecification) *stream.ConsumerOptions {
	return stream.NewConsumerOptions().SetOffset(from).SetCRCCheck(true)
}

// consume reads into a channel.
func (s *streams) consume(name string, options *stream.ConsumerOptions) (*stream.Consumer, chan got) {
	s.Helper()
	queue := make(chan got, 100_000)
	consumer, err := s.env.NewConsumer(name, into(queue), options)
	s.must(err)
	s.Cleanup(func() { _ = consumer.Close() })
	return consumer, queue
}

func into(queue chan got) stream.MessagesHandler {
	return func(context stream.ConsumerContext, message *streamamqp.Message) {
		queue <- got{string(message.GetData()), context.Consumer.GetOffset(), context.Consumer.GetStreamName(), message}
	}
}

func (s *streams) takeBodies(queue chan got, count int) []string {
	s.Helper()
	texts := []string{}
	for len(texts) < count {
		texts = append(texts, receive(s.world, queue).body)
	}
	return texts
}

func (s *streams) read(name string, from stream.OffsetSpecification, count int) []string {
	s.Helper()
	consumer, queue := s.consume(name, consumerOptions(from))
	texts := s.takeBodies(queue, count)
	s.must(consumer.Close())
	return texts
}

func (s *streams) nothing(queue chan got) {
	s.Helper()
	select {
	case one := <-queue:
		s.Fatalf("something came: %s", one.body)
	case <-time.After(500 * time.Millisecond):
	}
}

// becomes asks until the answer is this one.
func (s *streams) becomes(want any, question func() any) {
	s.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if fmt.Sprint(question()) == fmt.Sprint(want) {
			return
		}
	}
	s.equal(question(), want)
}

func (s *streams) refusedAs(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got %v, want %v", err, want)
	}
}

func TestStreamOrder(t *testing.T) {
	streamTest("stream: many messages in order, from the beginning and from an offset", func(s *streams) {
		name := s.stream(nil)
		s.fill(name, 0, 10_000, nil)
		s.equal(s.read(name, first, 10_000), numbers(0, 10_000))
		_, queue := s.consume(name, consumerOptions(stream.OffsetSpecification{}.Offset(4_321)))
		begin := receive(s.world, queue)
		s.equal(begin.body, "4321")
		s.equal(begin.offset, 4_321)
	})(t)
}

func TestStreamSpecifications(t *testing.T) {
	streamTest("stream: first, last, next and timestamp", func(s *streams) {
		name := s.stream(nil)
		producer := s.producer(name, nil)
		s.send(producer, plain(0))
		s.send(producer, plain(1))
		time.Sleep(300 * time.Millisecond)
		between := time.Now().UnixMilli()
		time.Sleep(300 * time.Millisecond)
		s.send(producer, plain(2))
		s.send(producer, plain(3))
		s.equal(s.read(name, first, 4), numbers(0, 4))
		s.equal(s.read(name, stream.OffsetSpecification{}.Last(), 1), numbers(3, 4))
		s.equal(s.read(name, stream.OffsetSpecification{}.Timestamp(between), 2), numbers(2, 4))
		_, next := s.consume(name, consumerOptions(stream.OffsetSpecification{}.Next()))
		s.nothing(next)
		s.send(producer, plain(4))
		s.equal(s.takeBodies(next, 1), numbers(4, 5))
	})(t)
}

func TestStreamDeclarations(t *testing.T) {
	streamTest("stream: declared twice, with other options, deleted, unknown", func(s *streams) {
		options := stream.NewStreamOptions().SetMaxLengthBytes(stream.ByteCapacity{}.MB(50)).SetMaxAge(time.Hour)
		name := s.stream(options)
		// The client takes it for done if it is there.
		s.must(s.env.DeclareStream(name, options))
		s.refusedAs(s.env.DeclareStream(name, stream.NewStreamOptions().SetMaxAge(2*time.Hour)), stream.PreconditionFailed)
		exists, err := s.env.StreamExists(name)
		s.must(err)
		s.equal(exists, true)
		s.must(s.env.DeleteStream(name))
		s.refusedAs(s.env.DeleteStream(name), stream.StreamDoesNotExist)
		_, err = s.env.NewProducer(name, nil)
		s.refusedAs(err, stream.StreamDoesNotExist)
		_, err = s.env.NewConsumer(name, into(make(chan got)), nil)
		s.refusedAs(err, stream.StreamDoesNotExist)
	})(t)
}

func TestStreamLogin(t *testing.T) {
	streamTest("stream: a wrong password and an unknown virtual host", func(s *streams) {
		port := setting("STREAM_PORT", "")
		_, err := stream.NewEnvironment(s.environmentOptions(port).SetPassword("wrong"))
		s.refusedAs(err, stream.AuthenticationFailure)
		_, err = stream.NewEnvironment(s.environmentOptions(port).SetVHost("nowhere"))
		s.refusedAs(err, stream.VirtualHostAccessFailure)
	})(t)
}

func TestStreamCompressions(t *testing.T) {
	for name, compression := range map[string]stream.Compression{
		"none": stream.Compression{}.None(), "gzip": stream.Compression{}.Gzip(), "snappy": stream.Compression{}.Snappy(),
		"lz4": stream.Compression{}.Lz4(), "zstd": stream.Compression{}.Zstd(),
	} {
		streamTest("stream: batches within batches with "+name, func(s *streams) {
			name := s.stream(nil)
			s.fill(name, 0, 2_000, stream.NewProducerOptions().SetSubEntrySize(50).SetCompression(compression))
			s.equal(s.read(name, first, 2_000), numbers(0, 2_000))
		})(t)
	}
}

func TestStreamProperties(t *testing.T) {
	streamTest("stream: properties and annotations come back", func(s *streams) {
		name := s.stream(nil)
		sent := streamamqp.NewMessage([]byte("body"))
		sent.Properties = &streamamqp.MessageProperties{
			MessageID: "id", UserID: []byte("guest"), To: "to", Subject: "subject", ReplyTo: "reply", CorrelationID: "correlation", ContentType: "text/plain", ContentEncoding: "gzip",
			CreationTime: time.UnixMilli(1_600_000_000_123).UTC(), GroupID: "group", GroupSequence: 7, ReplyToGroupID: "reply group",
		}
		sent.ApplicationProperties = map[string]any{"text": "täxt", "int": int64(5), "yes": true}
		sent.Annotations = streamamqp.Annotations{"x-own": "annotation"}
		s.send(s.producer(name, nil), sent)
		_, queue := s.consume(name, consumerOptions(first))
		read := receive(s.world, queue)
		s.equal(*read.Properties, *sent.Properties)
		s.equal(read.ApplicationProperties, sent.ApplicationProperties)
		s.equal(read.Annotations, sent.Annotations)
	})(t)
}

func TestStreamDeduplication(t *testing.T) {
	streamTest("stream: a named publisher's numbers are known again", func(s *streams) {
		name := s.stream(nil)
		options := stream.NewProducerOptions().SetProducerName("writer")
		numbered := func(from, to int, prefix string) []message.StreamMessage {
			messages := []message.StreamMessage{}
			for n := from; n < to; n++ {
				one := streamamqp.NewMessage([]byte(prefix + strconv.Itoa(n)))
				one.SetPublishingId(int64(n))
				messages = append(messages, one)
			}
			return messages
		}
		producer := s.producer(name, options)
		s.send(producer, numbered(1, 11, "a")...)
		s.send(producer, numbered(6, 16, "b")...)
		s.must(producer.Close())
		again := s.producer(name, stream.NewProducerOptions().SetProducerName("writer"))
		last, err := again.GetLastPublishingId()
		s.must(err)
		s.equal(last, 15)
		s.send(again, numbered(15, 18, "c")...)
		sequence, err := s.env.QuerySequence("writer", name)
		s.must(err)
		s.equal(sequence, 17)
		s.equal(s.read(name, first, 17), []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "b11", "b12", "b13", "b14", "b15", "c16", "c17"})
	})(t)
}

func TestStreamTracking(t *testing.T) {
	streamTest("stream: offsets are stored by hand and automatically", func(s *streams) {
		name := s.stream(nil)
		s.fill(name, 0, 100, nil)
		_, err := s.env.QueryOffset("reader", name)
		s.equal(err != nil, true)
		consumer, queue := s.consume(name, consumerOptions(first).SetConsumerName("reader").SetManualCommit())
		s.takeBodies(queue, 100)
		s.must(consumer.StoreCustomOffset(41))
		s.becomes(41, func() any { offset, _ := s.env.QueryOffset("reader", name); return offset })
		s.must(consumer.Close())
		_, queue = s.consume(name, consumerOptions(stream.OffsetSpecification{}.Offset(42)).SetConsumerName("reader").SetManualCommit())
		s.equal(s.takeBodies(queue, 58), numbers(42, 100))

		automatic, queue := s.consume(name, consumerOptions(first).SetConsumerName("auto").SetAutoCommit(stream.NewAutoCommitStrategy().SetCountBeforeStorage(10).SetFlushInterval(time.Second)))
		s.takeBodies(queue, 100)
		s.becomes(99, func() any { offset, _ := s.env.QueryOffset("auto", name); return offset })
		s.must(automatic.Close())
		s.must(s.env.StoreOffset("outside", name, 7))
		s.becomes(7, func() any { offset, _ := s.env.QueryOffset("outside", name); return offset })
	})(t)
}

func TestStreamStatistics(t *testing.T) {
	streamTest("stream: statistics of an empty and of a filled one", func(s *streams) {
		name := s.stream(nil)
		stats, err := s.env.StreamStats(name)
		s.must(err)
		_, err = stats.FirstOffset()
		s.equal(err != nil, true)
		producer := s.producer(name, nil)
		for n := range 3 {
			s.send(producer, plain(n))
		}
		s.becomes(2, func() any {
			stats, err := s.env.StreamStats(name)
			s.must(err)
			committed, _ := stats.CommittedChunkId()
			return committed
		})
		stats, err = s.env.StreamStats(name)
		s.must(err)
		begin, err := stats.FirstOffset()
		s.must(err)
		s.equal(begin, 0)
		meta, err := s.env.StreamMetaData(name)
		s.must(err)
		s.equal(meta.Leader.Port, setting("STREAM_PORT", ""))
	})(t)
}

func TestStreamFilters(t *testing.T) {
	streamTest("stream: filters leave out chunks", func(s *streams) {
		name := s.stream(nil)
		value := func(one message.StreamMessage) string { return fmt.Sprint(one.GetApplicationProperties()["fruit"]) }
		producer := s.producer(name, stream.NewProducerOptions().SetFilter(stream.NewProducerFilter(value)))
		unfiltered := s.producer(name, nil)
		for range 5 {
			for _, fruit := range []string{"apple", "pear"} {
				one := streamamqp.NewMessage([]byte(fruit))
				one.ApplicationProperties = map[string]any{"fruit": fruit}
				s.send(producer, one)
			}
			s.send(unfiltered, streamamqp.NewMessage([]byte("none")))
		}
		kinds := func(values []string, too bool, count int) []string {
			filter := stream.NewConsumerFilter(values, too, func(*streamamqp.Message) bool { return true })
			consumer, queue := s.consume(name, consumerOptions(first).SetFilter(filter))
			texts := s.takeBodies(queue, count)
			s.nothing(queue)
			s.must(consumer.Close())
			slices.Sort(texts)
			return slices.Compact(texts)
		}
		s.equal(kinds([]string{"pear"}, false, 5), []string{"pear"})
		s.equal(kinds([]string{"pear", "apple"}, false, 10), []string{"apple", "pear"})
		s.equal(kinds([]string{"pear"}, true, 10), []string{"none", "pear"})
	})(t)
}

func TestStreamSingleActive(t *testing.T) {
	streamTest("stream: one of a group is active, and the next takes over", func(s *streams) {
		name := s.stream(nil)
		member := func(from int64) (*stream.Consumer, chan got, chan bool) {
			told := make(chan bool, 10)
			update := func(_ string, active bool) stream.OffsetSpecification {
				told <- active
				return stream.OffsetSpecification{}.Offset(from)
			}
			consumer, queue := s.consume(name, consumerOptions(first).SetConsumerName("group").SetSingleActiveConsumer(stream.NewSingleActiveConsumer(update)))
			return consumer, queue, told
		}
		one, ones, told := member(0)
		s.equal(receive(s.world, told), true)
		_, others, other := member(10)
		s.fill(name, 0, 20, nil)
		s.equal(s.takeBodies(ones, 20), numbers(0, 20))
		s.nothing(others)
		s.must(one.Close())
		s.equal(receive(s.world, other), true)
		s.equal(s.takeBodies(others, 10), numbers(10, 20))
	})(t)
}

func TestStreamSuper(t *testing.T) {
	streamTest("stream: super streams by hash and by key", func(s *streams) {
		superStream := s.name()
		s.must(s.env.DeclareSuperStream(superStream, stream.NewPartitionsOptions(3)))
		partitions, err := s.env.QueryPartitions(superStream)
		s.must(err)
		s.equal(partitions, []string{superStream + "-0", superStream + "-1", superStream + "-2"})
		body := func(one message.StreamMessage) string { return string(one.GetData()[0]) }
		s.writeSuper(superStream, stream.NewHashRoutingStrategy(body), 300)
		queue := make(chan got, 1_000)
		consumer, err := s.env.NewSuperStreamConsumer(superStream, into(queue), stream.NewSuperStreamConsumerOptions().SetOffset(first))
		s.must(err)
		texts := s.takeBodies(queue, 300)
		slices.SortFunc(texts, func(a, b string) int { x, _ := strconv.Atoi(a); y, _ := strconv.Atoi(b); return x - y })
		s.equal(texts, numbers(0, 300))
		s.must(consumer.Close())
		s.must(s.env.DeleteSuperStream(superStream))

		keyed := s.name()
		s.must(s.env.DeclareSuperStream(keyed, stream.NewBindingsOptions([]string{"0", "1", "2"})))
		route, err := s.env.QueryRoute(keyed, "1")
		s.must(err)
		s.equal(route, []string{keyed + "-1"})
		s.writeSuper(keyed, stream.NewKeyRoutingStrategy(body), 3)
		for n := range 3 {
			s.equal(s.read(fmt.Sprintf("%s-%d", keyed, n), first, 1), numbers(n, n+1))
		}
		s.must(s.env.DeleteSuperStream(keyed))
		exists, err := s.env.StreamExists(keyed + "-0")
		s.must(err)
		s.equal(exists, false)
	})(t)
}

// writeSuper sends so many numbers, and waits until all partitions have confirmed them.
func (s *streams) writeSuper(superStream string, routing stream.RoutingStrategy, count int) {
	s.Helper()
	producer, err := s.env.NewSuperStreamProducer(superStream, stream.NewSuperStreamProducerOptions(routing))
	s.must(err)
	confirms := producer.NotifyPublishConfirmation(count)
	for n := range count {
		s.must(producer.Send(plain(n)))
	}
	for confirmed := 0; confirmed < count; {
		for _, status := range receive(s.world, confirms).ConfirmationStatus {
			s.equal(status.IsConfirmed(), true)
			confirmed++
		}
	}
	s.must(producer.Close())
}

func TestStreamDeleted(t *testing.T) {
	streamTest("stream: producers and consumers hear that it is gone", func(s *streams) {
		name := s.stream(nil)
		producer := s.producer(name, nil)
		consumer, _ := s.consume(name, consumerOptions(first))
		writerClosed, readerClosed := producer.NotifyClose(), consumer.NotifyClose()
		s.must(s.env.DeleteStream(name))
		s.equal(receive(s.world, writerClosed).Reason, stream.MetaDataUpdate)
		s.equal(receive(s.world, readerClosed).Reason, stream.MetaDataUpdate)
	})(t)
}

func TestStreamRestart(t *testing.T) {
	streamTest("stream: messages, offsets and sequences are there after a restart", func(s *streams) {
		s.needsControl()
		name := s.stream(nil)
		s.fill(name, 0, 500, stream.NewProducerOptions().SetProducerName("writer"))
		s.must(s.env.StoreOffset("reader", name, 123))
		s.control("restart")
		after := &streams{s.world, s.environment(setting("STREAM_PORT", ""), "guest")}
		s.equal(after.read(name, first, 500), numbers(0, 500))
		offset, err := after.env.QueryOffset("reader", name)
		s.must(err)
		s.equal(offset, 123)
		sequence, err := after.env.QuerySequence("writer", name)
		s.must(err)
		s.equal(sequence > 0, true)
		s.must(after.env.DeleteStream(name))
	})(t)
}
