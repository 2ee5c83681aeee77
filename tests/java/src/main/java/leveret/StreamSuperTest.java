package leveret;

import static leveret.Streams.becomes;
import static leveret.Streams.failsWith;
import static leveret.Streams.send;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.numbers;
import static leveret.World.take;
import static leveret.World.text;

import com.rabbitmq.client.Channel;
import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;

/** Streams of streams: made, written by hash and by key, read by one and by many. */
public final class StreamSuperTest {

  private static Producer hashing(Streams streams, String superStream) {
    return streams.environment.producerBuilder().superStream(superStream).routing(message -> text(message.getBodyAsBinary())).producerBuilder().build();
  }

  private static List<String> sorted(List<Streams.Got> got) {
    return got.stream().map(Streams.Got::body).sorted().toList();
  }

  private static List<String> sortedNumbers(int from, int to) {
    return numbers(from, to).stream().sorted().toList();
  }

  public void partitionsAndTheirNames(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.partitions(3));
      for (int n = 0; n < 3; n++) {
        check(streams.environment.streamExists(name + "-" + n), "partition " + n);
      }
      check(!streams.environment.streamExists(name + "-3"), "no fourth one");
      // The client takes it for done if it is there.
      streams.environment.streamCreator().name(name).superStream().partitions(3).creator().create();
      streams.environment.deleteSuperStream(name);
      for (int n = 0; n < 3; n++) {
        check(!streams.environment.streamExists(name + "-" + n), "partition " + n + " is gone");
      }
      failsWith(Constants.RESPONSE_CODE_STREAM_DOES_NOT_EXIST, () -> streams.environment.deleteSuperStream(name));
    }
  }

  public void whatDoesNotExist(World world) throws Exception {
    try (Streams streams = new Streams()) {
      IllegalArgumentException thrown =
          Streams.fails(IllegalArgumentException.class, () -> streams.environment.producerBuilder().superStream("java.super.none").routing(message -> "x").key().producerBuilder().build());
      check(thrown.getMessage().contains("has no partition"), thrown.getMessage());
      failsWith(Constants.RESPONSE_CODE_STREAM_DOES_NOT_EXIST, () -> streams.environment.deleteSuperStream("java.super.none"));
    }
  }

  public void allThatIsWrittenByHashIsRead(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.partitions(3));
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Producer producer = hashing(streams, name);
          Consumer consumer = streams.environment.consumerBuilder().superStream(name).offset(OffsetSpecification.first()).messageHandler(Streams.into(queue)).build()) {
        send(producer, 0, 3_000);
        List<Streams.Got> got = take(queue, 3_000);
        equal(sortedNumbers(0, 3_000), sorted(got));
        Set<String> from = new TreeSet<>(got.stream().map(Streams.Got::stream).toList());
        equal(new TreeSet<>(Set.of(name + "-0", name + "-1", name + "-2")), from);
        // In each partition the order is that of sending.
        Map<String, Integer> last = new HashMap<>();
        for (Streams.Got one : got) {
          int number = Integer.parseInt(one.body());
          check(last.getOrDefault(one.stream(), -1) < number, number + " after " + last.get(one.stream()));
          last.put(one.stream(), number);
        }
      }
    }
  }

  public void keysOfBindings(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.bindingKeys("amer", "emea", "apac"));
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Producer producer =
              streams.environment.producerBuilder().superStream(name).routing(message -> (String) message.getApplicationProperties().get("region")).key().producerBuilder().build();
          Consumer consumer = streams.environment.consumerBuilder().superStream(name).offset(OffsetSpecification.first()).messageHandler(Streams.into(queue)).build()) {
        List<String> regions = List.of("amer", "emea", "apac");
        List<Message> messages =
            IntStream.range(0, 90)
                .mapToObj(n -> producer.messageBuilder().applicationProperties().entry("region", regions.get(n % 3)).messageBuilder().addData(bytes(regions.get(n % 3))).build())
                .toList();
        send(producer, messages);
        for (Streams.Got got : take(queue, 90)) {
          equal(name + "-" + got.body(), got.stream());
        }
        BlockingQueue<ConfirmationStatus> statuses = new LinkedBlockingQueue<>();
        producer.send(producer.messageBuilder().applicationProperties().entry("region", "moon").messageBuilder().addData(bytes("moon")).build(), statuses::add);
        equal(Constants.CODE_NO_ROUTE_FOUND, World.next(statuses).getCode());
      }
    }
  }

  public void oneActiveForEachPartition(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.partitions(3));
      List<Map<String, Boolean>> told = new ArrayList<>();
      List<BlockingQueue<Streams.Got>> queues = new ArrayList<>();
      List<Consumer> consumers = new ArrayList<>();
      for (int n = 0; n < 3; n++) {
        Map<String, Boolean> active = new ConcurrentHashMap<>();
        BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
        told.add(active);
        queues.add(queue);
        consumers.add(
            streams.environment
                .consumerBuilder()
                .superStream(name)
                .name("group")
                .singleActiveConsumer()
                .offset(OffsetSpecification.first())
                .autoTrackingStrategy()
                .builder()
                .consumerUpdateListener(
                    context -> {
                      active.put(context.stream(), context.isActive());
                      return context.isActive() ? OffsetSpecification.first() : null;
                    })
                .messageHandler(Streams.into(queue))
                .build());
        int members = n + 1;
        becomes(3, () -> told.subList(0, members).stream().mapToInt(map -> active(map).size()).sum());
      }
      // Each of the three has one of the three.
      becomes(List.of(1, 1, 1), () -> told.stream().map(map -> active(map).size()).toList());
      try (Producer producer = hashing(streams, name)) {
        send(producer, 0, 300);
      }
      for (int n = 0; n < 3; n++) {
        Set<String> mine = active(told.get(n));
        Streams.Got first = World.next(queues.get(n));
        check(mine.contains(first.stream()), first.stream() + " is not of " + mine);
      }
      // One goes: another has two.
      consumers.get(0).close();
      told.get(0).clear();
      becomes(3, () -> told.subList(1, 3).stream().mapToInt(map -> active(map).size()).sum());
      for (Consumer consumer : consumers.subList(1, 3)) {
        consumer.close();
      }
    }
  }

  private static Set<String> active(Map<String, Boolean> told) {
    Set<String> streams = new HashSet<>();
    told.forEach(
        (stream, is) -> {
          if (is) {
            streams.add(stream);
          }
        });
    return streams;
  }

  public void trackedAutomatically(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.partitions(3));
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Producer producer = hashing(streams, name)) {
        send(producer, 0, 300);
        try (Consumer consumer = streams.environment.consumerBuilder().superStream(name).name("reader").offset(OffsetSpecification.first()).autoTrackingStrategy().builder().messageHandler(Streams.into(queue)).build()) {
          equal(sortedNumbers(0, 300), sorted(take(queue, 300)));
        }
        send(producer, 300, 400);
      }
      BlockingQueue<Streams.Got> rest = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.environment.consumerBuilder().superStream(name).name("reader").offset(OffsetSpecification.first()).autoTrackingStrategy().builder().messageHandler(Streams.into(rest)).build()) {
        equal(sortedNumbers(300, 400), sorted(take(rest, 100)));
        Streams.nothing(rest);
      }
    }
  }

  public void namedPublishersAreKnownInEachPartition(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.partitions(2));
      for (int times = 0; times < 2; times++) {
        try (Producer producer = streams.environment.producerBuilder().name("writer").superStream(name).routing(message -> text(message.getBodyAsBinary())).producerBuilder().build()) {
          send(producer, IntStream.range(1, 101).mapToObj(n -> producer.messageBuilder().publishingId(n).addData(bytes(Integer.toString(n))).build()).toList());
        }
      }
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.environment.consumerBuilder().superStream(name).offset(OffsetSpecification.first()).messageHandler(Streams.into(queue)).build()) {
        equal(sortedNumbers(1, 101), sorted(take(queue, 100)));
        Streams.nothing(queue);
      }
    }
  }

  public void itIsAnExchangeForAmqp(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String name = streams.superStream(made -> made.bindingKeys("a", "b"));
      Channel channel = world.confirming();
      channel.basicPublish(name, "a", null, bytes("to a"));
      channel.basicPublish(name, "b", null, bytes("to b"));
      channel.basicPublish(name, "c", null, bytes("to nobody"));
      channel.waitForConfirmsOrDie(10_000);
      Streams.Got got = streams.read(name + "-a", OffsetSpecification.first(), 1).get(0);
      equal("to a", got.body());
      equal("to b", streams.read(name + "-b", OffsetSpecification.first(), 1).get(0).body());
      equal(0L, streams.environment.queryStreamStats(name + "-a").committedOffset());
    }
  }
}
