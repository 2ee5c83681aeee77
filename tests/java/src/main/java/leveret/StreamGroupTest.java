package leveret;

import static leveret.Streams.becomes;
import static leveret.Streams.nothing;
import static leveret.Streams.send;
import static leveret.Streams.texts;
import static leveret.World.equal;
import static leveret.World.numbers;
import static leveret.World.take;

import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Consumers of one name, of which one is active. */
public final class StreamGroupTest {

  /** A consumer of the group, with what it got and what it was told. */
  private static final class Member {
    final BlockingQueue<Streams.Got> got = new LinkedBlockingQueue<>();
    final BlockingQueue<Boolean> told = new LinkedBlockingQueue<>();
    final Consumer consumer;

    Member(Streams streams, String stream, String group) {
      consumer =
          streams.environment
              .consumerBuilder()
              .stream(stream)
              .name(group)
              .singleActiveConsumer()
              .offset(OffsetSpecification.first())
              .manualTrackingStrategy()
              .checkInterval(Duration.ZERO)
              .builder()
              .consumerUpdateListener(
                  context -> {
                    told.add(context.isActive());
                    return context.isActive() ? stored(context.consumer()) : null;
                  })
              .messageHandler(Streams.into(got))
              .build();
    }

    private static OffsetSpecification stored(Consumer consumer) {
      try {
        return OffsetSpecification.offset(consumer.storedOffset() + 1);
      } catch (RuntimeException none) {
        return OffsetSpecification.first();
      }
    }
  }

  public void theSecondTakesOverWhereTheFirstWas(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      Member first = new Member(streams, stream, "group");
      equal(true, World.next(first.told));
      Member second = new Member(streams, stream, "group");
      // A chunk each: a reader begins with a whole one.
      try (Producer producer = streams.producer(stream)) {
        for (int n = 0; n < 20; n++) {
          send(producer, n, n + 1);
        }
      }
      List<Streams.Got> got = take(first.got, 20);
      equal(numbers(0, 20), texts(got));
      nothing(second.got);
      equal(0, second.told.size());
      got.get(13).context().storeOffset();
      becomes(13L, first.consumer::storedOffset);
      first.consumer.close();
      equal(true, World.next(second.told));
      equal(numbers(14, 20), texts(take(second.got, 6)));
      second.consumer.close();
    }
  }

  public void manyInTheOrderOfTheirComing(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      List<Member> members = new ArrayList<>();
      for (int n = 0; n < 6; n++) {
        members.add(new Member(streams, stream, "group"));
        Thread.sleep(50);
      }
      try (Producer producer = streams.producer(stream)) {
        for (int turn = 0; turn < 6; turn++) {
          Member active = members.get(turn);
          equal(true, World.next(active.told));
          send(producer, turn, turn + 1);
          Streams.Got got = World.next(active.got);
          equal(Integer.toString(turn), got.body());
          active.consumer.store(got.offset());
          becomes(got.offset(), active.consumer::storedOffset);
          for (Member waiting : members.subList(turn + 1, members.size())) {
            equal(0, waiting.got.size());
          }
          active.consumer.close();
        }
      }
    }
  }

  public void groupsDoNotKnowOfEachOther(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      Member one = new Member(streams, stream, "one");
      Member two = new Member(streams, stream, "two");
      streams.fill(stream, 0, 10);
      equal(numbers(0, 10), texts(take(one.got, 10)));
      equal(numbers(0, 10), texts(take(two.got, 10)));
    }
  }

  public void aLostConnectionGivesItsPlaceAway(World world) throws Exception {
    try (Streams streams = new Streams();
        Streams others = new Streams()) {
      String stream = streams.stream();
      Member first = new Member(others, stream, "group");
      equal(true, World.next(first.told));
      Member second = new Member(streams, stream, "group");
      streams.fill(stream, 0, 10);
      equal(numbers(0, 10), texts(take(first.got, 10)));
      others.environment.close();
      equal(true, World.next(second.told));
      equal(numbers(0, 10), texts(take(second.got, 10)));
    }
  }

  public void trackedAutomaticallyTheNextGoesOn(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      List<BlockingQueue<Streams.Got>> queues = new ArrayList<>();
      List<Consumer> consumers = new ArrayList<>();
      for (int n = 0; n < 2; n++) {
        queues.add(new LinkedBlockingQueue<>());
        consumers.add(
            streams.environment
                .consumerBuilder()
                .stream(stream)
                .name("group")
                .singleActiveConsumer()
                .offset(OffsetSpecification.first())
                .autoTrackingStrategy()
                .messageCountBeforeStorage(10)
                .builder()
                .messageHandler(Streams.into(queues.get(n)))
                .build());
        Thread.sleep(100);
      }
      streams.fill(stream, 0, 100);
      equal(numbers(0, 100), texts(take(queues.get(0), 100)));
      nothing(queues.get(1));
      consumers.get(0).close();
      streams.fill(stream, 100, 120);
      // The first has stored all when it left.
      equal(numbers(100, 120), texts(take(queues.get(1), 20)));
    }
  }
}
