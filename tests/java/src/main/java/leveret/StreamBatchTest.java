package leveret;

import static leveret.Streams.offsets;
import static leveret.Streams.plain;
import static leveret.Streams.send;
import static leveret.Streams.texts;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.numbers;

import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.compression.Compression;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Batches within batches with each compression, and publishers whose messages are known again. */
public final class StreamBatchTest {

  public void uncompressed(World world) throws Exception {
    compressed(Compression.NONE);
  }

  public void gzip(World world) throws Exception {
    compressed(Compression.GZIP);
  }

  public void snappy(World world) throws Exception {
    compressed(Compression.SNAPPY);
  }

  public void lz4(World world) throws Exception {
    compressed(Compression.LZ4);
  }

  public void zstd(World world) throws Exception {
    compressed(Compression.ZSTD);
  }

  private void compressed(Compression compression) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).subEntrySize(100).compression(compression).build()) {
        send(producer, 0, 5_000);
      }
      List<Streams.Got> got = streams.read(stream, OffsetSpecification.first(), 5_000);
      equal(numbers(0, 5_000), texts(got));
      equal(LongStream.range(0, 5_000).boxed().toList(), offsets(got));
      // An offset in the middle of a batch.
      equal(numbers(2_345, 2_400), texts(streams.read(stream, OffsetSpecification.offset(2_345), 55)));
    }
  }

  public void allKindsInOneStream(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      int at = 0;
      for (Compression compression : Compression.values()) {
        try (Producer producer = streams.environment.producerBuilder().stream(stream).subEntrySize(10).compression(compression).build()) {
          send(producer, at, at + 25);
        }
        streams.fill(stream, at + 25, at + 30);
        at += 30;
      }
      equal(numbers(0, at), texts(streams.read(stream, OffsetSpecification.first(), at)));
    }
  }

  public void numbersThatWereThereAreConfirmedAndNotStored(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).name("writer").build()) {
        equal(0L, producer.getLastPublishingId());
        send(producer, numbered(producer, 1, 11, "a"));
        equal(10L, producer.getLastPublishingId());
        send(producer, numbered(producer, 6, 16, "b"));
        equal(15L, producer.getLastPublishingId());
      }
      try (Producer again = streams.environment.producerBuilder().stream(stream).name("writer").build()) {
        equal(15L, again.getLastPublishingId());
        send(again, numbered(again, 12, 18, "c"));
      }
      try (Producer other = streams.environment.producerBuilder().stream(stream).name("other").build()) {
        send(other, numbered(other, 1, 2, "d"));
      }
      // What another name sends is another matter.
      equal(
          List.of("a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "b11", "b12", "b13", "b14", "b15", "c16", "c17", "d1"),
          texts(streams.read(stream, OffsetSpecification.first(), 18)));
      equal(17L, streams.environment.queryStreamStats(stream).committedOffset());
    }
  }

  public void numbersWithGaps(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).name("writer").build()) {
        for (long id : new long[] {5, 100, 7, 101, 100, Integer.MAX_VALUE * 10L, 102}) {
          send(producer, List.of(producer.messageBuilder().publishingId(id).addData(bytes("m" + id)).build()));
        }
        equal(21474836470L, producer.getLastPublishingId());
      }
      equal(List.of("m5", "m100", "m101", "m21474836470"), texts(streams.read(stream, OffsetSpecification.first(), 4)));
      equal(3L, streams.environment.queryStreamStats(stream).committedOffset());
    }
  }

  public void numbersSurviveARestart(World world) throws Exception {
    World.needsControl();
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer = streams.environment.producerBuilder().stream(stream).name("writer").build()) {
        send(producer, numbered(producer, 1, 11, "a"));
      }
      World.control("restart");
      Streams.becomes(true, () -> StreamOffsetTest.existsAgain(streams, stream));
      try (Producer producer = streams.environment.producerBuilder().stream(stream).name("writer").build()) {
        equal(10L, producer.getLastPublishingId());
        send(producer, numbered(producer, 8, 13, "b"));
      }
      equal("b12", streams.read(stream, OffsetSpecification.first(), 12).get(11).body());
      equal(11L, streams.environment.queryStreamStats(stream).committedOffset());
    }
  }

  public void aConfirmForEachMessageOfABatch(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<ConfirmationStatus> statuses = new LinkedBlockingQueue<>();
      try (Producer producer =
          streams.environment.producerBuilder().stream(stream).subEntrySize(7).batchSize(50).batchPublishingDelay(Duration.ofMillis(20)).maxUnconfirmedMessages(100).build()) {
        for (int n = 0; n < 1_000; n++) {
          producer.send(plain(producer, Integer.toString(n)), statuses::add);
        }
        List<ConfirmationStatus> got = World.take(statuses, 1_000);
        check(got.stream().allMatch(ConfirmationStatus::isConfirmed), "all are confirmed");
        equal(numbers(0, 1_000), got.stream().map(status -> World.text(status.getMessage().getBodyAsBinary())).toList());
      }
    }
  }

  private static List<Message> numbered(Producer producer, int from, int to, String prefix) {
    return IntStream.range(from, to).mapToObj(n -> producer.messageBuilder().publishingId(n).addData(bytes(prefix + n)).build()).toList();
  }
}
