package leveret;

import static leveret.Streams.becomes;
import static leveret.Streams.fails;
import static leveret.Streams.send;
import static leveret.Streams.texts;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.numbers;
import static leveret.World.take;

import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.NoOffsetException;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.StreamStats;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Where readers begin, and where they were. */
public final class StreamOffsetTest {

  public void firstAndNumber(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 100);
      equal(numbers(0, 100), texts(streams.read(stream, OffsetSpecification.first(), 100)));
      // A reader gets whole chunks; the client leaves out what stands before its offset.
      equal(numbers(37, 100), texts(streams.read(stream, OffsetSpecification.offset(37), 63)));
    }
  }

  public void lastIsTheLastChunk(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.producer(stream)) {
        send(producer, 0, 10);
        send(producer, 10, 11);
      }
      equal(List.of("10"), texts(streams.read(stream, OffsetSpecification.last(), 1)));
    }
  }

  public void nextIsOnlyWhatComes(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Producer producer = streams.producer(stream)) {
        send(producer, 0, 10);
        try (Consumer consumer = streams.consumer(stream, OffsetSpecification.next(), queue)) {
          Streams.nothing(queue);
          send(producer, 10, 20);
          List<Streams.Got> got = take(queue, 10);
          equal(numbers(10, 20), texts(got));
          equal(10L, got.get(0).offset());
        }
      }
    }
  }

  public void aTimestampIsAChunk(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.producer(stream)) {
        send(producer, 0, 10);
        Thread.sleep(300);
        long between = System.currentTimeMillis();
        Thread.sleep(300);
        send(producer, 10, 20);
        List<Streams.Got> got = streams.read(stream, OffsetSpecification.timestamp(between), 10);
        equal(numbers(10, 20), texts(got));
        check(got.get(0).context().timestamp() >= between, "its chunk is not older");
        equal("0", streams.read(stream, OffsetSpecification.timestamp(between - 3_600_000), 1).get(0).body());
        BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
        // After all that is there: what comes.
        try (Consumer consumer = streams.consumer(stream, OffsetSpecification.timestamp(System.currentTimeMillis() + 3_600_000), queue)) {
          Streams.nothing(queue);
          send(producer, 20, 21);
          equal("20", World.next(queue).body());
        }
      }
    }
  }

  public void firstLastAndNextOfAnEmptyStream(World world) throws Exception {
    try (Streams streams = new Streams()) {
      for (OffsetSpecification from : List.of(OffsetSpecification.first(), OffsetSpecification.last(), OffsetSpecification.next(), OffsetSpecification.timestamp(0))) {
        String stream = streams.stream();
        BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
        try (Consumer consumer = streams.consumer(stream, from, queue);
            Producer producer = streams.producer(stream)) {
          Streams.nothing(queue);
          send(producer, 0, 1);
          equal("0", World.next(queue).body());
        }
      }
    }
  }

  public void statistics(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      StreamStats empty = streams.environment.queryStreamStats(stream);
      fails(NoOffsetException.class, empty::firstOffset);
      fails(NoOffsetException.class, empty::committedChunkId);
      fails(NoOffsetException.class, empty::committedOffset);
      try (Producer producer = streams.producer(stream)) {
        send(producer, 0, 10);
        send(producer, 10, 11);
      }
      becomes(10L, () -> streams.environment.queryStreamStats(stream).committedChunkId());
      StreamStats filled = streams.environment.queryStreamStats(stream);
      equal(List.of(0L, 10L), List.of(filled.firstOffset(), filled.committedOffset()));
    }
  }

  public void trackedByHand(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 100);
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer =
          streams.environment
              .consumerBuilder()
              .stream(stream)
              .name("reader")
              .offset(OffsetSpecification.first())
              .manualTrackingStrategy()
              .checkInterval(Duration.ZERO)
              .builder()
              .messageHandler(Streams.into(queue))
              .build()) {
        fails(NoOffsetException.class, consumer::storedOffset);
        take(queue, 100).get(59).context().storeOffset();
        becomes(59L, consumer::storedOffset);
        consumer.store(64);
        becomes(64L, consumer::storedOffset);
      }
      BlockingQueue<Streams.Got> rest = new LinkedBlockingQueue<>();
      try (Consumer consumer =
          streams.environment.consumerBuilder().stream(stream).name("reader").offset(OffsetSpecification.first()).manualTrackingStrategy().builder().messageHandler(Streams.into(rest)).build()) {
        equal(numbers(65, 100), texts(take(rest, 35)));
      }
      // Another name begins where it says.
      BlockingQueue<Streams.Got> all = new LinkedBlockingQueue<>();
      try (Consumer consumer =
          streams.environment.consumerBuilder().stream(stream).name("other").offset(OffsetSpecification.first()).manualTrackingStrategy().builder().messageHandler(Streams.into(all)).build()) {
        equal(numbers(0, 100), texts(take(all, 100)));
      }
    }
  }

  public void trackedAutomatically(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 1000);
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer =
          streams.environment
              .consumerBuilder()
              .stream(stream)
              .name("reader")
              .offset(OffsetSpecification.first())
              .autoTrackingStrategy()
              .messageCountBeforeStorage(100)
              .flushInterval(Duration.ofSeconds(2))
              .builder()
              .messageHandler(Streams.into(queue))
              .build()) {
        equal(numbers(0, 1000), texts(take(queue, 1000)));
        becomes(999L, consumer::storedOffset);
      }
      streams.fill(stream, 1000, 1010);
      BlockingQueue<Streams.Got> rest = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.environment.consumerBuilder().stream(stream).name("reader").autoTrackingStrategy().builder().messageHandler(Streams.into(rest)).build()) {
        equal(numbers(1000, 1010), texts(take(rest, 10)));
      }
    }
  }

  public void storedByTheEnvironment(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 20);
      streams.environment.storeOffset("reader", stream, 9);
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.environment.consumerBuilder().stream(stream).name("reader").manualTrackingStrategy().builder().messageHandler(Streams.into(queue)).build()) {
        equal(9L, consumer.storedOffset());
        equal(numbers(10, 20), texts(take(queue, 10)));
      }
    }
  }

  public void offsetsSurviveARestart(World world) throws Exception {
    World.needsControl();
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 50);
      streams.environment.storeOffset("reader", stream, 29);
      World.control("restart");
      becomes(true, () -> existsAgain(streams, stream));
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      try (Consumer consumer = streams.environment.consumerBuilder().stream(stream).name("reader").manualTrackingStrategy().builder().messageHandler(Streams.into(queue)).build()) {
        List<Streams.Got> got = take(queue, 20);
        equal(numbers(30, 50), texts(got));
        equal(30L, got.get(0).offset());
      }
      streams.fill(stream, 50, 51);
      equal("50", streams.read(stream, OffsetSpecification.last(), 1).get(0).body());
    }
  }

  /** Whether it can be reached; while the broker is away nobody can say. */
  static boolean existsAgain(Streams streams, String stream) {
    try {
      return streams.environment.streamExists(stream);
    } catch (RuntimeException away) {
      return false;
    }
  }
}
