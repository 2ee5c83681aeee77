package leveret;

import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.text;

import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.Environment;
import com.rabbitmq.stream.EnvironmentBuilder;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.MessageHandler;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.StreamCreator;
import com.rabbitmq.stream.StreamException;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

/** An environment of the stream client; the streams that a test makes by it are gone after the test. */
final class Streams implements AutoCloseable {

  /** All environments share it: one of their own each would have to end with them, which takes a second. */
  private static final EventLoopGroup THREADS = new MultiThreadIoEventLoopGroup(2, NioIoHandler.newFactory());

  final Environment environment;
  private final List<String> streams = new ArrayList<>();
  private final List<String> superStreams = new ArrayList<>();

  Streams() {
    this(builder -> builder);
  }

  Streams(UnaryOperator<EnvironmentBuilder> options) {
    environment = options.apply(builder()).build();
  }

  static EnvironmentBuilder builder() {
    return Environment.builder()
        .host(World.host())
        .port(World.streamPort())
        .recoveryBackOffDelayPolicy(attempt -> Duration.ofMillis(200))
        .topologyUpdateBackOffDelayPolicy(attempt -> Duration.ofMillis(200))
        .netty()
        .eventLoopGroup(THREADS)
        .environmentBuilder();
  }

  /** What a consumer got of a message. */
  record Got(String body, long offset, Message message, MessageHandler.Context context) {
    String stream() {
      return context.stream();
    }
  }

  /** A name that nothing has; what is made under it is deleted after the test. */
  String name() {
    String name = "java.stream." + UUID.randomUUID().toString().substring(0, 12);
    streams.add(name);
    return name;
  }

  String stream() {
    return stream(creator -> creator);
  }

  String stream(UnaryOperator<StreamCreator> options) {
    String name = name();
    options.apply(environment.streamCreator().stream(name)).create();
    return name;
  }

  String superStream(UnaryOperator<StreamCreator.SuperStreamConfiguration> options) {
    String name = "java.super." + UUID.randomUUID().toString().substring(0, 12);
    superStreams.add(name);
    options.apply(environment.streamCreator().name(name).superStream()).creator().create();
    return name;
  }

  Producer producer(String stream) {
    return environment.producerBuilder().stream(stream).build();
  }

  /** Sends the numbers from one up to another, and waits until all are confirmed. */
  static void send(Producer producer, int from, int to) throws Exception {
    send(producer, IntStream.range(from, to).mapToObj(Integer::toString).map(body -> plain(producer, body)).toList());
  }

  static Message plain(Producer producer, String body) {
    return producer.messageBuilder().addData(bytes(body)).build();
  }

  static void send(Producer producer, List<Message> messages) throws Exception {
    BlockingQueue<ConfirmationStatus> statuses = new LinkedBlockingQueue<>();
    messages.forEach(message -> producer.send(message, statuses::add));
    for (ConfirmationStatus status : World.take(statuses, messages.size())) {
      check(status.isConfirmed(), "not confirmed: code " + status.getCode());
    }
  }

  void fill(String stream, int from, int to) throws Exception {
    try (Producer producer = producer(stream)) {
      send(producer, from, to);
    }
  }

  static MessageHandler into(BlockingQueue<Got> queue) {
    return (context, message) -> queue.add(new Got(text(message.getBodyAsBinary()), context.offset(), message, context));
  }

  Consumer consumer(String stream, OffsetSpecification from, BlockingQueue<Got> queue) {
    return environment.consumerBuilder().stream(stream).offset(from).messageHandler(into(queue)).build();
  }

  /** As many messages of a stream as are asked for. */
  List<Got> read(String stream, OffsetSpecification from, int count) throws Exception {
    BlockingQueue<Got> queue = new LinkedBlockingQueue<>();
    try (Consumer consumer = consumer(stream, from, queue)) {
      return World.take(queue, count);
    }
  }

  static List<String> texts(List<Got> got) {
    return got.stream().map(Got::body).toList();
  }

  static List<Long> offsets(List<Got> got) {
    return got.stream().map(Got::offset).toList();
  }

  /** That nothing more comes for a moment. */
  static void nothing(BlockingQueue<Got> queue) throws Exception {
    Got more = queue.poll(500, TimeUnit.MILLISECONDS);
    check(more == null, "something came: " + more);
  }

  /** Asks until the answer is this one, or the time is up. */
  static <T> void becomes(T expected, Callable<T> question) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(World.DEADLINE_SECONDS);
    T got;
    do {
      got = question.call();
      if (expected.equals(got)) {
        return;
      }
      Thread.sleep(50);
    } while (System.nanoTime() < end);
    World.equal(expected, got);
  }

  /** That a request fails with an exception of exactly this class; the exception. */
  static <E extends Exception> E fails(Class<E> how, World.Request request) throws Exception {
    try {
      request.run();
    } catch (Exception thrown) {
      if (thrown.getClass() != how) {
        throw thrown;
      }
      return how.cast(thrown);
    }
    throw new AssertionError("not refused with " + how.getSimpleName());
  }

  static void failsWith(short code, World.Request request) throws Exception {
    try {
      request.run();
    } catch (StreamException thrown) {
      World.equal(code, thrown.getCode());
      return;
    }
    throw new AssertionError("not refused with code " + code);
  }

  /** What was used goes first: consumers of a stream that is deleted look for it. */
  @Override
  public void close() {
    environment.close();
    try (Environment cleaner = builder().build()) {
      for (String name : superStreams) {
        deleteQuietly(() -> cleaner.deleteSuperStream(name));
      }
      for (String name : streams) {
        deleteQuietly(() -> cleaner.deleteStream(name));
      }
    }
  }

  private static void deleteQuietly(Runnable delete) {
    try {
      delete.run();
    } catch (StreamException gone) {
      // The test has deleted it itself, or never made it.
    }
  }
}
