package leveret;

import static leveret.Streams.send;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.numbers;
import static leveret.World.refused;
import static leveret.World.take;
import static leveret.World.text;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.LongString;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.Properties;
import com.rabbitmq.stream.compression.Compression;
import java.time.Duration;
import java.util.Date;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.LongStream;

/** Written over one protocol and read over the other. */
public final class StreamAmqpTest {

  private static final Map<String, Object> STREAM = Map.of("x-queue-type", "stream");

  private static BlockingQueue<Delivery> reading(World world, String stream, Object from) throws Exception {
    Channel channel = world.channel();
    BlockingQueue<Delivery> queue = new LinkedBlockingQueue<>();
    channel.basicQos(1000);
    channel.basicConsume(
        stream,
        false,
        Map.of("x-stream-offset", from),
        (tag, delivery) -> {
          queue.add(delivery);
          channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        },
        tag -> {});
    return queue;
  }

  public void propertiesOfAmqpReadByTheStreamClient(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.name();
      Channel channel = world.confirming();
      channel.queueDeclare(stream, true, false, false, STREAM);
      BasicProperties properties =
          new BasicProperties.Builder()
              .contentType("text/plain")
              .contentEncoding("gzip")
              .deliveryMode(2)
              .priority(5)
              .correlationId("correlation")
              .replyTo("reply to")
              .expiration("60000")
              .messageId("message")
              .timestamp(new Date(1_600_000_000_000L))
              .type("type")
              .userId("guest")
              .appId("application")
              .headers(Map.of("text", "value", "int", 5, "long", 1L << 40, "yes", true, "x-own", "annotation"))
              .build();
      channel.basicPublish("", stream, properties, bytes("body"));
      channel.waitForConfirmsOrDie(10_000);
      Message got = streams.read(stream, OffsetSpecification.first(), 1).get(0).message();
      Properties read = got.getProperties();
      equal("body", text(got.getBodyAsBinary()));
      equal(
          List.of("text/plain", "gzip", "message", "correlation", "guest", 1_600_000_000_000L, "application"),
          List.of(
              read.getContentType(), read.getContentEncoding(), read.getMessageIdAsString(), read.getCorrelationIdAsString(), text(read.getUserId()), read.getCreationTime(), read.getGroupId()));
      equal(Map.of("text", "value", "int", 5, "long", 1L << 40, "yes", true), got.getApplicationProperties());
      Map<String, Object> annotations = got.getMessageAnnotations();
      equal(
          List.of("", stream, "annotation", "type"),
          List.of(annotations.get("x-exchange"), annotations.get("x-routing-key"), annotations.get("x-own"), annotations.get("x-basic-type")));
    }
  }

  public void propertiesOfTheStreamClientReadByAmqp(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.producer(stream)) {
        send(
            producer,
            List.of(
                producer
                    .messageBuilder()
                    .properties()
                    .messageId("message")
                    .userId(bytes("guest"))
                    .to("to")
                    .subject("subject")
                    .replyTo("reply to")
                    .correlationId("correlation")
                    .contentType("text/plain")
                    .contentEncoding("gzip")
                    .creationTime(1_600_000_000_000L)
                    .groupId("group")
                    .messageBuilder()
                    .applicationProperties()
                    .entry("text", "value")
                    .entry("long", 1L << 40)
                    .entry("yes", true)
                    .messageBuilder()
                    .messageAnnotations()
                    .entry("x-own", "annotation")
                    .messageBuilder()
                    .addData(bytes("body"))
                    .build()));
      }
      Delivery got = next(reading(world, stream, "first"));
      BasicProperties read = got.getProperties();
      equal("body", text(got.getBody()));
      equal(List.of("", stream), List.of(got.getEnvelope().getExchange(), got.getEnvelope().getRoutingKey()));
      equal(
          List.of("message", "guest", "correlation", "text/plain", "gzip", new Date(1_600_000_000_000L), "group"),
          List.of(read.getMessageId(), read.getUserId(), read.getCorrelationId(), read.getContentType(), read.getContentEncoding(), read.getTimestamp(), read.getAppId()));
      Map<String, Object> headers = read.getHeaders();
      equal(
          List.of("value", 1L << 40, true, "annotation", 0L),
          List.of(headers.get("text").toString(), headers.get("long"), headers.get("yes"), headers.get("x-own").toString(), headers.get("x-stream-offset")));
      check(headers.get("text") instanceof LongString, "a text is one");
    }
  }

  public void batchesAreReadByAmqp(World world) throws Exception {
    batches(world, Compression.NONE);
  }

  public void compressedBatchesAreReadByAmqp(World world) throws Exception {
    World.leveretOnly("RabbitMQ leaves compressed batches out");
    for (Compression compression : List.of(Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)) {
      batches(world, compression);
    }
  }

  private static void batches(World world, Compression compression) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).subEntrySize(10).compression(compression).build()) {
        send(producer, 0, 200);
      }
      List<Delivery> got = take(reading(world, stream, "first"), 200);
      equal(numbers(0, 200), World.bodies(got));
      equal(LongStream.range(0, 200).boxed().toList(), got.stream().map(delivery -> delivery.getProperties().getHeaders().get("x-stream-offset")).toList());
    }
  }

  public void mixedWritersAndReaders(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      Channel channel = world.confirming();
      for (int n = 0; n < 20; n += 2) {
        streams.fill(stream, n, n + 1);
        channel.basicPublish("", stream, null, bytes(Integer.toString(n + 1)));
        channel.waitForConfirmsOrDie(10_000);
      }
      equal(numbers(0, 20), Streams.texts(streams.read(stream, OffsetSpecification.first(), 20)));
      equal(numbers(0, 20), World.bodies(take(reading(world, stream, "first"), 20)));
      equal(numbers(7, 20), World.bodies(take(reading(world, stream, 7L), 13)));
    }
  }

  public void filterValuesOfAmqpAreThoseOfTheStreamClient(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      Channel channel = world.confirming();
      for (String value : List.of("apple", "pear", "apple", "plum")) {
        channel.basicPublish("", stream, new BasicProperties.Builder().headers(Map.of("x-stream-filter-value", value)).build(), bytes(value));
        channel.waitForConfirmsOrDie(10_000);
      }
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      streams.environment.consumerBuilder().stream(stream).offset(OffsetSpecification.first()).filter().values("apple").postFilter(message -> true).builder().messageHandler(Streams.into(queue)).build();
      equal(List.of("apple", "apple"), Streams.texts(take(queue, 2)));
      Streams.nothing(queue);
    }
  }

  public void aStreamIsAQueueForAmqp(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream(creator -> creator.maxAge(Duration.ofHours(2)));
      Channel channel = world.channel();
      AMQP.Queue.DeclareOk declared = channel.queueDeclarePassive(stream);
      equal(stream, declared.getQueue());
      channel.queueDeclare(stream, true, false, false, Map.of("x-queue-type", "stream", "x-max-age", "7200s", "x-queue-leader-locator", "balanced"));
      refused(406, 50, 10, "PRECONDITION_FAILED - inequivalent arg 'x-max-age' for queue '" + stream + "' in vhost '/': received none but current is the value '7200000' of type 'longstr'", () -> channel.queueDeclare(stream, true, false, false, STREAM));
    }
  }

  public void aClassicQueueIsNoStream(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String queue = world.name();
      Channel channel = world.channel();
      channel.queueDeclare(queue, true, false, false, Map.of());
      check(!streams.environment.streamExists(queue), "no stream");
      channel.queueDelete(queue);
    }
  }
}
