package leveret;

import static leveret.Streams.send;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.take;

import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.ConsumerBuilder;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.UnaryOperator;

/** Filters: the broker leaves out chunks that have none of the values that are asked for. */
public final class StreamFilterTest {

  private static final List<String> VALUES = List.of("apple", "pear", "plum");

  /** Ten chunks of each value, and ten without one, in turns. Each message says what it was. */
  private static String filled(Streams streams) throws Exception {
    String stream = streams.stream(creator -> creator.filterSize(64));
    try (Producer producer =
        streams.environment
            .producerBuilder()
            .stream(stream)
            .filterValue(message -> (String) message.getApplicationProperties().get("fruit"))
            .build()) {
      for (int round = 0; round < 10; round++) {
        for (String value : VALUES) {
          List<Message> messages = new ArrayList<>();
          for (int n = 0; n < 5; n++) {
            messages.add(producer.messageBuilder().applicationProperties().entry("fruit", value).messageBuilder().addData(bytes(value)).build());
          }
          send(producer, messages);
        }
        send(producer, List.of(producer.messageBuilder().applicationProperties().entry("other", "x").messageBuilder().addData(bytes("none")).build()));
      }
    }
    return stream;
  }

  private static BlockingQueue<Streams.Got> reading(Streams streams, String stream, UnaryOperator<ConsumerBuilder.FilterConfiguration> filter) {
    BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
    Consumer consumer =
        filter.apply(streams.environment.consumerBuilder().stream(stream).offset(OffsetSpecification.first()).filter()).builder().messageHandler(Streams.into(queue)).build();
    check(consumer != null, "it reads");
    return queue;
  }

  private static TreeSet<String> kinds(List<Streams.Got> got) {
    return new TreeSet<>(Streams.texts(got));
  }

  public void oneValue(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = filled(streams);
      // The client's own filter lets everything through: what is left out the broker has left out.
      BlockingQueue<Streams.Got> queue = reading(streams, stream, filter -> filter.values("pear").postFilter(message -> true));
      List<Streams.Got> got = take(queue, 50);
      equal(new TreeSet<>(List.of("pear")), kinds(got));
      check(got.get(0).offset() == 5, "offsets count what was left out: " + got.get(0).offset());
      Streams.nothing(queue);
    }
  }

  public void someValues(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = filled(streams);
      BlockingQueue<Streams.Got> queue = reading(streams, stream, filter -> filter.values("plum", "apple", "nothing").postFilter(message -> true));
      equal(new TreeSet<>(List.of("apple", "plum")), kinds(take(queue, 100)));
      Streams.nothing(queue);
    }
  }

  public void whatHasNoValueToo(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = filled(streams);
      BlockingQueue<Streams.Got> queue = reading(streams, stream, filter -> filter.values("plum").matchUnfiltered().postFilter(message -> true));
      equal(new TreeSet<>(List.of("none", "plum")), kinds(take(queue, 60)));
      Streams.nothing(queue);
    }
  }

  public void aValueThatNothingHas(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = filled(streams);
      BlockingQueue<Streams.Got> queue = reading(streams, stream, filter -> filter.values("nothing").postFilter(message -> true));
      Streams.nothing(queue);
      // The reader stands at the end, and gets what fits from there on.
      try (Producer producer = streams.environment.producerBuilder().stream(stream).filterValue(message -> "nothing").build()) {
        send(producer, 0, 1);
      }
      equal("0", World.next(queue).body());
    }
  }

  public void withoutAFilterEverything(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = filled(streams);
      equal(new TreeSet<>(List.of("apple", "none", "pear", "plum")), kinds(streams.read(stream, OffsetSpecification.first(), 160)));
    }
  }

  public void aMixedChunkComesWhole(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      try (Producer producer =
          streams.environment.producerBuilder().stream(stream).filterValue(message -> World.text(message.getBodyAsBinary()).substring(0, 1)).dynamicBatch(false).batchSize(4).build()) {
        send(producer, List.of("a1", "b1", "a2", "b2").stream().map(body -> Streams.plain(producer, body)).toList());
      }
      BlockingQueue<Streams.Got> queue = reading(streams, stream, filter -> filter.values("a").postFilter(message -> World.text(message.getBodyAsBinary()).startsWith("a")));
      equal(List.of("a1", "a2"), Streams.texts(take(queue, 2)));
      Streams.nothing(queue);
      BlockingQueue<Streams.Got> whole = reading(streams, stream, filter -> filter.values("a").postFilter(message -> true));
      equal(List.of("a1", "b1", "a2", "b2"), Streams.texts(take(whole, 4)));
    }
  }
}
