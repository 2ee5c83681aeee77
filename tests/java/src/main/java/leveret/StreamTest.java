package leveret;

import static leveret.Streams.fails;
import static leveret.Streams.failsWith;
import static leveret.Streams.offsets;
import static leveret.Streams.plain;
import static leveret.Streams.send;
import static leveret.Streams.texts;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.numbers;
import static leveret.World.take;
import static leveret.World.text;

import com.rabbitmq.stream.AuthenticationFailureException;
import com.rabbitmq.stream.ByteCapacity;
import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.ConsumerFlowStrategy;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.Properties;
import com.rabbitmq.stream.StreamDoesNotExistException;
import com.rabbitmq.stream.StreamException;
import com.rabbitmq.stream.sasl.DefaultSaslConfiguration;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.LongStream;

/** Streams made, written, read and deleted by the stream client. */
public final class StreamTest {

  public void manyMessagesInOrder(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 20_000);
      List<Streams.Got> got = streams.read(stream, OffsetSpecification.first(), 20_000);
      equal(numbers(0, 20_000), texts(got));
      equal(LongStream.range(0, 20_000).boxed().toList(), offsets(got));
    }
  }

  public void whatIsWrittenIsDeliveredWhileReading(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.consumer(stream, OffsetSpecification.first(), queue);
          Producer producer = streams.producer(stream)) {
        for (int n = 0; n < 50; n++) {
          send(producer, n, n + 1);
          Streams.Got got = World.next(queue);
          equal(List.of(Integer.toString(n), (long) n), List.of(got.body(), got.offset()));
          check(got.context().committedChunkId() >= 0 && got.context().committedChunkId() <= n, "committed chunk " + got.context().committedChunkId());
        }
      }
    }
  }

  public void allPropertiesComeBack(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      UUID uuid = UUID.randomUUID();
      try (Producer producer = streams.producer(stream)) {
        Message message =
            producer
                .messageBuilder()
                .properties()
                .messageId(42L)
                .userId(bytes("guest"))
                .to("to")
                .subject("subject")
                .replyTo("reply to")
                .correlationId(uuid)
                .contentType("text/plain")
                .contentEncoding("gzip")
                .absoluteExpiryTime(1_700_000_000_123L)
                .creationTime(1_600_000_000_456L)
                .groupId("group")
                .groupSequence(7)
                .replyToGroupId("reply to group")
                .messageBuilder()
                .applicationProperties()
                .entry("text", "täxt")
                .entry("int", 1)
                .entry("long", Long.MIN_VALUE)
                .entry("short", (short) -3)
                .entry("byte", (byte) 4)
                .entry("double", 1.5)
                .entry("float", 2.5f)
                .entry("yes", true)
                .entry("uuid", uuid)
                .entry("binary", new byte[] {0, 1, (byte) 255})
                .entryTimestamp("time", 1_500_000_000_789L)
                .messageBuilder()
                .messageAnnotations()
                .entry("x-note", "annotated")
                .messageBuilder()
                .addData(new byte[] {0, (byte) 0x80, (byte) 0xff})
                .build();
        send(producer, List.of(message));
      }
      Message got = streams.read(stream, OffsetSpecification.first(), 1).get(0).message();
      Properties properties = got.getProperties();
      equal(42L, properties.getMessageIdAsLong());
      equal(uuid, properties.getCorrelationIdAsUuid());
      equal("guest", text(properties.getUserId()));
      equal(
          List.of("to", "subject", "reply to", "text/plain", "gzip", 1_700_000_000_123L, 1_600_000_000_456L, "group", 7L, "reply to group"),
          List.of(
              properties.getTo(),
              properties.getSubject(),
              properties.getReplyTo(),
              properties.getContentType(),
              properties.getContentEncoding(),
              properties.getAbsoluteExpiryTime(),
              properties.getCreationTime(),
              properties.getGroupId(),
              properties.getGroupSequence(),
              properties.getReplyToGroupId()));
      Map<String, Object> application = got.getApplicationProperties();
      equal(
          List.of("täxt", 1, Long.MIN_VALUE, (short) -3, (byte) 4, 1.5, 2.5f, true, uuid, 1_500_000_000_789L),
          List.of(
              application.get("text"),
              application.get("int"),
              application.get("long"),
              application.get("short"),
              application.get("byte"),
              application.get("double"),
              application.get("float"),
              application.get("yes"),
              application.get("uuid"),
              application.get("time")));
      check(Arrays.equals(new byte[] {0, 1, (byte) 255}, (byte[]) application.get("binary")), "binary property");
      equal("annotated", got.getMessageAnnotations().get("x-note"));
      check(Arrays.equals(new byte[] {0, (byte) 0x80, (byte) 0xff}, got.getBodyAsBinary()), "body");
    }
  }

  public void bodiesOfAllSizes(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      List<Integer> sizes = List.of(0, 1, 255, 256, 65_535, 65_536, 1_000_000);
      try (Producer producer = streams.producer(stream)) {
        send(producer, sizes.stream().map(size -> plain(producer, "x".repeat(size))).toList());
      }
      equal(sizes, streams.read(stream, OffsetSpecification.first(), sizes.size()).stream().map(got -> got.body().length()).toList());
    }
  }

  public void createdTwice(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream(creator -> creator.maxLengthBytes(ByteCapacity.MB(100)).maxAge(Duration.ofHours(1)));
      streams.environment.streamCreator().stream(stream).maxLengthBytes(ByteCapacity.MB(100)).maxAge(Duration.ofHours(1)).create();
      failsWith(Constants.RESPONSE_CODE_PRECONDITION_FAILED, () -> streams.environment.streamCreator().stream(stream).maxLengthBytes(ByteCapacity.MB(200)).create());
      failsWith(Constants.RESPONSE_CODE_PRECONDITION_FAILED, () -> streams.environment.streamCreator().stream(stream).create());
      check(streams.environment.streamExists(stream), "it exists");
    }
  }

  public void whatDoesNotExist(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String none = streams.name();
      check(!streams.environment.streamExists(none), "it does not exist");
      fails(StreamDoesNotExistException.class, () -> streams.producer(none));
      fails(StreamDoesNotExistException.class, () -> streams.consumer(none, OffsetSpecification.first(), new LinkedBlockingQueue<>()));
      fails(StreamDoesNotExistException.class, () -> streams.environment.queryStreamStats(none));
      failsWith(Constants.RESPONSE_CODE_STREAM_DOES_NOT_EXIST, () -> streams.environment.deleteStream(none));
    }
  }

  public void wrongPassword(World world) throws Exception {
    fails(AuthenticationFailureException.class, () -> new Streams(builder -> builder.password("wrong")).close());
  }

  public void unknownVirtualHost(World world) throws Exception {
    StreamException thrown = fails(StreamException.class, () -> new Streams(builder -> builder.virtualHost("nowhere")).close());
    check(thrown.getMessage().contains("12 (VIRTUAL_HOST_ACCESS_FAILURE)"), thrown.getMessage());
  }

  public void heartbeatsKeepAConnection(World world) throws Exception {
    try (Streams streams = new Streams(builder -> builder.requestedHeartbeat(Duration.ofSeconds(1)))) {
      String stream = streams.stream();
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.consumer(stream, OffsetSpecification.first(), queue);
          Producer producer = streams.producer(stream)) {
        Thread.sleep(4000);
        send(producer, 0, 10);
        equal(numbers(0, 10), texts(take(queue, 10)));
      }
    }
  }

  public void manyProducersAndConsumersOfOneStream(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      List<Producer> producers = new ArrayList<>();
      List<BlockingQueue<Streams.Got>> queues = new ArrayList<>();
      for (int n = 0; n < 60; n++) {
        producers.add(streams.producer(stream));
        queues.add(new LinkedBlockingQueue<>());
        streams.consumer(stream, OffsetSpecification.first(), queues.get(n));
      }
      BlockingQueue<ConfirmationStatus> statuses = new LinkedBlockingQueue<>();
      for (int n = 0; n < 600; n++) {
        Producer producer = producers.get(n % producers.size());
        producer.send(plain(producer, Integer.toString(n)), statuses::add);
      }
      check(take(statuses, 600).stream().allMatch(ConfirmationStatus::isConfirmed), "all are confirmed");
      List<String> first = texts(take(queues.get(0), 600));
      equal(numbers(0, 600).stream().sorted().toList(), first.stream().sorted().toList());
      for (BlockingQueue<Streams.Got> queue : queues.subList(1, queues.size())) {
        equal(first, texts(take(queue, 600)));
      }
    }
  }

  public void creditWhenHalfIsProcessed(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).batchSize(10).dynamicBatch(false).build()) {
        for (int n = 0; n < 500; n += 10) {
          send(producer, n, n + 10);
        }
      }
      try (Consumer consumer =
          streams.environment
              .consumerBuilder()
              .stream(stream)
              .offset(OffsetSpecification.first())
              .flow()
              .strategy(ConsumerFlowStrategy.creditWhenHalfMessagesProcessed(1))
              .builder()
              .messageHandler(Streams.into(queue))
              .build()) {
        List<String> got = new ArrayList<>();
        // One chunk is on its way at a time: nothing comes unless what came is processed.
        while (got.size() < 500) {
          Streams.Got next = World.next(queue);
          got.add(next.body());
          next.context().processed();
        }
        equal(numbers(0, 500), got);
      }
    }
  }

  public void oldSegmentsGoByLength(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream(creator -> creator.maxLengthBytes(ByteCapacity.kB(300)).maxSegmentSizeBytes(ByteCapacity.kB(100)));
      try (Producer producer = streams.producer(stream)) {
        for (int n = 0; n < 40; n++) {
          send(producer, List.of(plain(producer, "x".repeat(50_000))));
        }
        Streams.becomes(true, () -> streams.environment.queryStreamStats(stream).firstOffset() >= 20);
        long first = streams.environment.queryStreamStats(stream).firstOffset();
        check(first < 40, "something is left, from " + first);
        equal(first, streams.read(stream, OffsetSpecification.first(), 1).get(0).offset());
        // Below what is there, a reader begins at the first message that is.
        equal(first, streams.read(stream, OffsetSpecification.offset(0), 1).get(0).offset());
      }
    }
  }

  public void plainAndTheirOrderOfMechanisms(World world) throws Exception {
    try (Streams streams = new Streams(builder -> builder.saslConfiguration(new DefaultSaslConfiguration("PLAIN")))) {
      check(!streams.environment.streamExists(streams.name()), "logged in");
    }
  }

  public void namesInUtf8(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = "ströme ☂ " + UUID.randomUUID();
      streams.environment.streamCreator().stream(stream).create();
      streams.fill(stream, 0, 3);
      equal(numbers(0, 3), texts(streams.read(stream, OffsetSpecification.first(), 3)));
      streams.environment.deleteStream(stream);
      check(stream.getBytes(StandardCharsets.UTF_8).length > stream.length(), "more bytes than letters");
    }
  }

  public void deletedAndMadeAnewItIsEmpty(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 5);
      streams.environment.deleteStream(stream);
      check(!streams.environment.streamExists(stream), "it is gone");
      streams.environment.streamCreator().stream(stream).create();
      streams.fill(stream, 5, 6);
      List<Streams.Got> got = streams.read(stream, OffsetSpecification.first(), 1);
      equal(List.of("5"), texts(got));
      equal(List.of(0L), offsets(got));
    }
  }
}
