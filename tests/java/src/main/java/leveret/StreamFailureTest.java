package leveret;

import static leveret.Streams.becomes;
import static leveret.Streams.plain;
import static leveret.Streams.send;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.numbers;

import com.rabbitmq.stream.ConfirmationStatus;
import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.Consumer;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.Producer;
import com.rabbitmq.stream.Resource;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.LinkedBlockingQueue;

/** Streams that go, and brokers that come back. */
public final class StreamFailureTest {

  public void aDeletedStreamEndsItsProducersAndConsumers(World world) throws Exception {
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<Resource.State> writer = new LinkedBlockingQueue<>();
      BlockingQueue<Resource.State> reader = new LinkedBlockingQueue<>();
      Producer producer = streams.environment.producerBuilder().stream(stream).listeners(context -> writer.add(context.currentState())).build();
      BlockingQueue<Streams.Got> got = new LinkedBlockingQueue<>();
      Consumer consumer =
          streams.environment
              .consumerBuilder()
              .stream(stream)
              .offset(OffsetSpecification.first())
              .listeners(context -> reader.add(context.currentState()))
              .messageHandler(Streams.into(got))
              .build();
      send(producer, 0, 1);
      equal("0", next(got).body());
      streams.environment.deleteStream(stream);
      awaits(Resource.State.CLOSED, writer);
      awaits(Resource.State.CLOSED, reader);
      BlockingQueue<ConfirmationStatus> statuses = new LinkedBlockingQueue<>();
      producer.send(plain(producer, "x"), statuses::add);
      equal(Constants.CODE_PRODUCER_CLOSED, next(statuses).getCode());
      consumer.close();
    }
  }

  private static void awaits(Resource.State state, BlockingQueue<Resource.State> states) throws Exception {
    while (next(states) != state) {
      continue;
    }
  }

  public void whatIsConfirmedIsThereAfterARestart(World world) throws Exception {
    World.needsControl();
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      streams.fill(stream, 0, 1_000);
      World.control("restart");
      becomes(true, () -> StreamOffsetTest.existsAgain(streams, stream));
      List<Streams.Got> got = streams.read(stream, OffsetSpecification.first(), 1_000);
      equal(numbers(0, 1_000), Streams.texts(got));
      equal(999L, got.get(999).offset());
    }
  }

  public void producersAndConsumersGoOnAfterARestart(World world) throws Exception {
    World.needsControl();
    try (Streams streams = new Streams()) {
      String stream = streams.stream();
      BlockingQueue<Streams.Got> queue = new LinkedBlockingQueue<>();
      BlockingQueue<Resource.State> states = new LinkedBlockingQueue<>();
      Set<String> confirmed = new ConcurrentSkipListSet<>();
      try (Consumer consumer = streams.consumer(stream, OffsetSpecification.first(), queue);
          Producer producer = streams.environment.producerBuilder().stream(stream).name("writer").listeners(context -> states.add(context.currentState())).build()) {
        for (int n = 0; n < 2_000; n++) {
          String body = Integer.toString(n);
          producer.send(plain(producer, body), status -> note(confirmed, body, status));
        }
        World.control("restart");
        // What is sent before the client is back is refused by itself.
        awaits(Resource.State.RECOVERING, states);
        awaits(Resource.State.OPEN, states);
        for (int n = 2_000; n < 3_000; n++) {
          String body = Integer.toString(n);
          producer.send(plain(producer, body), status -> note(confirmed, body, status));
        }
        // What was on its way is sent again, and by its number known again.
        becomes(3_000, confirmed::size);
        Set<String> got = new LinkedHashSet<>();
        List<String> order = new ArrayList<>();
        long last = -1;
        while (got.size() < 3_000) {
          Streams.Got one = next(queue);
          // The client begins again with what it had last.
          if (one.offset() <= last) {
            continue;
          }
          last = one.offset();
          got.add(one.body());
          order.add(one.body());
        }
        equal(numbers(0, 3_000), order);
        check(last >= 2_999, "the last offset is " + last);
      }
    }
  }

  private static void note(Set<String> confirmed, String body, ConfirmationStatus status) {
    if (status.isConfirmed()) {
      confirmed.add(body);
    }
  }
}
