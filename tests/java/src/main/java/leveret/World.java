package leveret;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;

/** What a test gets: connections that are closed after it, fresh names, waiting with a deadline, checks. */
final class World implements AutoCloseable {

  static final int DEADLINE_SECONDS = 30;

  private final List<Connection> connections = new ArrayList<>();

  /** A test that cannot run here. */
  static final class Skipped extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Skipped(String reason) {
      super(reason);
    }
  }

  /** Something that may be refused. */
  interface Request {
    void run() throws Exception;
  }

  static int port() {
    return Integer.parseInt(System.getenv().getOrDefault("AMQP_PORT", "5672"));
  }

  static int alarmPort() {
    return Integer.parseInt(System.getenv().getOrDefault("ALARM_PORT", Integer.toString(port())));
  }

  /** Where the stream protocol is spoken; a test that needs it skips itself where nobody says so. */
  static int streamPort() {
    String port = System.getenv("STREAM_PORT");
    if (port == null) {
      throw new Skipped("no port of the stream protocol is given");
    }
    return Integer.parseInt(port);
  }

  static void leveretOnly(String reason) {
    if ("0".equals(System.getenv("LEVERET"))) {
      throw new Skipped(reason);
    }
  }

  static void needsControl() {
    if (System.getenv("CONTROL_PORT") == null) {
      throw new Skipped("no control over this broker");
    }
  }

  /** Asks the harness for something to happen to the broker; what it answers besides {@code ok}. */
  static String control(String verb) throws IOException {
    try (Socket line = new Socket("127.0.0.1", Integer.parseInt(System.getenv("CONTROL_PORT")))) {
      line.getOutputStream().write((verb + "\n").getBytes(StandardCharsets.US_ASCII));
      String answer = new BufferedReader(new InputStreamReader(line.getInputStream(), StandardCharsets.UTF_8)).readLine();
      check(answer != null && answer.startsWith("ok"), verb + ": " + answer);
      return answer.substring(2).strip();
    }
  }

  static String host() {
    return System.getenv().getOrDefault("AMQP_HOST", "127.0.0.1");
  }

  static ConnectionFactory factory(int port) {
    ConnectionFactory factory = new ConnectionFactory();
    factory.setHost(host());
    factory.setPort(port);
    factory.setAutomaticRecoveryEnabled(false);
    return factory;
  }

  Connection connect(int port) throws Exception {
    Connection connection = factory(port).newConnection("java test");
    connections.add(connection);
    return connection;
  }

  Channel channel() throws Exception {
    return connect(port()).createChannel();
  }

  /** A channel in confirm mode. */
  Channel confirming() throws Exception {
    Channel channel = channel();
    channel.confirmSelect();
    return channel;
  }

  String name() {
    return "java." + UUID.randomUUID().toString().substring(0, 12);
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  /** Publishes the numbers from 0 and waits for their confirms. */
  static void fill(Channel channel, String queue, int count) throws Exception {
    for (int n = 0; n < count; n++) {
      channel.basicPublish("", queue, null, bytes(Integer.toString(n)));
    }
    channel.waitForConfirmsOrDie(DEADLINE_SECONDS * 1000L);
  }

  static List<String> drain(Channel channel, String queue) throws IOException {
    List<String> bodies = new ArrayList<>();
    for (GetResponse got = channel.basicGet(queue, true); got != null; got = channel.basicGet(queue, true)) {
      bodies.add(text(got.getBody()));
    }
    return bodies;
  }

  static List<String> numbers(int from, int to) {
    List<String> texts = new ArrayList<>();
    for (int n = from; n < to; n++) {
      texts.add(Integer.toString(n));
    }
    return texts;
  }

  static <T> T next(BlockingQueue<T> from) throws InterruptedException {
    T value = from.poll(DEADLINE_SECONDS, TimeUnit.SECONDS);
    if (value == null) {
      throw new AssertionError("nothing came within " + DEADLINE_SECONDS + " s");
    }
    return value;
  }

  static <T> List<T> take(BlockingQueue<T> from, int count) throws InterruptedException {
    List<T> got = new ArrayList<>();
    while (got.size() < count) {
      got.add(next(from));
    }
    return got;
  }

  static List<String> bodies(List<Delivery> deliveries) {
    return deliveries.stream().map(delivery -> text(delivery.getBody())).toList();
  }

  /** A queue of another node counts what a channel gives back once it has come there. */
  static void countsAtLast(long expected, Channel channel, String queue) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(DEADLINE_SECONDS);
    long count;
    do {
      count = channel.messageCount(queue);
    } while (count != expected && System.nanoTime() < deadline);
    equal(expected, count);
  }

  static void equal(Object expected, Object got) {
    if (!Objects.equals(expected, got)) {
      throw new AssertionError("expected " + expected + ", got " + got);
    }
  }

  static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  /** Runs a request that must be refused by closing the channel. */
  static void refused(int code, int classId, int methodId, String text, Request request) throws Exception {
    check(!isHard(code, classId, methodId, text, shutdownOf(request)), "the whole connection was closed");
  }

  static ShutdownSignalException shutdownOf(Request request) throws Exception {
    try {
      request.run();
    } catch (IOException | ShutdownSignalException thrown) {
      Throwable cause = thrown instanceof ShutdownSignalException ? thrown : thrown.getCause();
      if (cause instanceof ShutdownSignalException signal) {
        return signal;
      }
      throw thrown;
    }
    throw new AssertionError("not refused");
  }

  /** Checks code, failing method and text of a closing; true if it closed the connection. */
  static boolean isHard(int code, int classId, int methodId, String text, ShutdownSignalException signal) {
    Method reason = signal.getReason();
    if (reason instanceof AMQP.Connection.Close close) {
      equal(List.of(code, classId, methodId), List.of(close.getReplyCode(), close.getClassId(), close.getMethodId()));
      check(close.getReplyText().contains(text), close.getReplyText());
    } else if (reason instanceof AMQP.Channel.Close close) {
      equal(List.of(code, classId, methodId), List.of(close.getReplyCode(), close.getClassId(), close.getMethodId()));
      check(close.getReplyText().contains(text), close.getReplyText());
    } else {
      throw new AssertionError("closed for another reason: " + signal);
    }
    return signal.isHardError();
  }

  @Override
  public void close() {
    connections.forEach(connection -> connection.abort(2000));
  }
}
