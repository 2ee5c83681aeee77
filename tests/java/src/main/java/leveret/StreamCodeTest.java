package leveret;

import static com.rabbitmq.stream.Constants.RESPONSE_CODE_NO_OFFSET;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_OK;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_PRECONDITION_FAILED;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_PUBLISHER_DOES_NOT_EXIST;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_STREAM_ALREADY_EXISTS;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_STREAM_DOES_NOT_EXIST;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_SUBSCRIPTION_ID_ALREADY_EXISTS;
import static com.rabbitmq.stream.Constants.RESPONSE_CODE_SUBSCRIPTION_ID_DOES_NOT_EXIST;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.take;

import com.rabbitmq.stream.Constants;
import com.rabbitmq.stream.Message;
import com.rabbitmq.stream.OffsetSpecification;
import com.rabbitmq.stream.impl.Client;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.IntStream;

/** Single commands of the stream protocol, by the part of the client that sends them, and the codes of their answers. */
public final class StreamCodeTest {

  private static final OffsetSpecification FIRST = OffsetSpecification.first();

  /** A connection that notes everything it is told. */
  private static final class Told implements AutoCloseable {
    final BlockingQueue<Long> confirmed = new LinkedBlockingQueue<>();
    final BlockingQueue<String> refused = new LinkedBlockingQueue<>();
    final BlockingQueue<String> chunks = new LinkedBlockingQueue<>();
    final BlockingQueue<String> messages = new LinkedBlockingQueue<>();
    final BlockingQueue<String> credits = new LinkedBlockingQueue<>();
    final BlockingQueue<String> changed = new LinkedBlockingQueue<>();
    final BlockingQueue<String> activated = new LinkedBlockingQueue<>();
    final BlockingQueue<String> ended = new LinkedBlockingQueue<>();
    final List<String> streams = new ArrayList<>();
    final Client client;

    Told() {
      client =
          new Client(
              new Client.ClientParameters()
                  .host(World.host())
                  .port(World.streamPort())
                  .publishConfirmListener((publisher, id) -> confirmed.add(id))
                  .publishErrorListener((publisher, id, code) -> refused.add(publisher + " " + id + " " + code))
                  .chunkListener(
                      (which, subscription, offset, count, size) -> {
                        chunks.add(subscription + " " + offset + " " + count);
                        return null;
                      })
                  .messageListener((subscription, offset, timestamp, committed, context, message) -> messages.add(offset + " " + World.text(message.getBodyAsBinary())))
                  .creditNotification((subscription, code) -> credits.add(subscription + " " + code))
                  .metadataListener((stream, code) -> changed.add(stream + " " + code))
                  .consumerUpdateListener(
                      (which, subscription, active) -> {
                        activated.add(subscription + " " + active);
                        return active ? FIRST : null;
                      })
                  .shutdownListener(context -> ended.add(context.getShutdownReason().toString())));
    }

    String stream() {
      String name = "java.codes." + UUID.randomUUID().toString().substring(0, 12);
      streams.add(name);
      answers(RESPONSE_CODE_OK, client.create(name));
      return name;
    }

    List<Message> numbers(int from, int to) {
      return IntStream.range(from, to).mapToObj(n -> client.messageBuilder().addData(bytes(Integer.toString(n))).build()).toList();
    }

    /** Publishes numbers, each of which is a chunk, for the one before is confirmed. */
    void publish(byte publisher, int from, int to) throws Exception {
      for (Message message : numbers(from, to)) {
        equal(client.publish(publisher, List.of(message)).get(0), next(confirmed));
      }
    }

    @Override
    public void close() {
      streams.forEach(client::delete);
      client.close();
    }
  }

  private static void answers(short code, Client.Response response) {
    equal(code, response.getResponseCode());
  }

  public void createAndDelete(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_STREAM_ALREADY_EXISTS, told.client.create(stream));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.create(stream, Map.of("max-age", "1h")));
      answers(RESPONSE_CODE_OK, told.client.delete(stream));
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.delete(stream));
    }
  }

  public void argumentsThatAreRefused(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      told.client.delete(stream);
      for (Map<String, String> arguments :
          List.of(
              Map.of("stream-max-segment-size-bytes", "3000000001"),
              Map.of("stream-filter-size-bytes", "15"),
              Map.of("stream-filter-size-bytes", "256"),
              Map.of("initial-cluster-size", "0"),
              Map.of("queue-leader-locator", "somewhere"))) {
        answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.create(stream, arguments));
      }
      for (Map<String, String> arguments :
          List.of(
              Map.of("max-length-bytes", "1000000", "max-age", "30D", "stream-max-segment-size-bytes", "500000", "initial-cluster-size", "1", "queue-leader-locator", "client-local"),
              Map.of("queue-leader-locator", "least-leaders"),
              Map.of("stream-filter-size-bytes", "255"),
              Map.of("unheard-of", "yes"))) {
        answers(RESPONSE_CODE_OK, told.client.create(stream, arguments));
        answers(RESPONSE_CODE_OK, told.client.delete(stream));
      }
    }
  }

  public void namesThatAreRefused(World world) throws Exception {
    try (Told told = new Told()) {
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.create(""));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.create("\n"));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.create("amq.mine"));
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.delete("none.such"));
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.delete(""));
    }
  }

  public void publishers(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.declarePublisher((byte) 1, null, "none.such"));
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 1, null, stream));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.declarePublisher((byte) 1, null, stream));
      // One name has one publisher of a stream in a connection.
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 2, "name", stream));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.declarePublisher((byte) 3, "name", stream));
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) -1, "other", stream));
      answers(RESPONSE_CODE_OK, told.client.deletePublisher((byte) 1));
      answers(RESPONSE_CODE_PUBLISHER_DOES_NOT_EXIST, told.client.deletePublisher((byte) 1));
      List<Long> ids = told.client.publish((byte) 1, told.numbers(0, 3));
      equal(ids.stream().map(id -> "1 " + id + " " + RESPONSE_CODE_PUBLISHER_DOES_NOT_EXIST).toList(), take(told.refused, 3));
      told.publish((byte) 2, 0, 3);
      told.publish((byte) -1, 0, 3);
      equal(0, told.confirmed.size());
    }
  }

  public void sequences(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      equal(0L, told.client.queryPublisherSequence("name", stream));
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 1, "name", stream));
      List<Long> ids = told.client.publish((byte) 1, told.numbers(0, 10));
      take(told.confirmed, 10);
      equal(ids.get(9), told.client.queryPublisherSequence("name", stream));
      equal(0L, told.client.queryPublisherSequence("other", stream));
    }
  }

  public void subscriptions(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.subscribe((byte) 1, "none.such", FIRST, 10));
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) 1, stream, FIRST, 10));
      answers(RESPONSE_CODE_SUBSCRIPTION_ID_ALREADY_EXISTS, told.client.subscribe((byte) 1, stream, FIRST, 10));
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) -1, stream, FIRST, 10));
      answers(RESPONSE_CODE_OK, told.client.unsubscribe((byte) 1));
      answers(RESPONSE_CODE_SUBSCRIPTION_ID_DOES_NOT_EXIST, told.client.unsubscribe((byte) 1));
      told.client.credit((byte) 1, 1);
      equal("1 " + RESPONSE_CODE_SUBSCRIPTION_ID_DOES_NOT_EXIST, next(told.credits));
      answers(RESPONSE_CODE_PRECONDITION_FAILED, told.client.subscribe((byte) 2, stream, FIRST, 10, Map.of("single-active-consumer", "true")));
    }
  }

  public void creditIsChunks(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 0, null, stream));
      told.publish((byte) 0, 0, 6);
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) 7, stream, FIRST, 2));
      equal(List.of("7 0 1", "7 1 1"), take(told.chunks, 2));
      Thread.sleep(300);
      equal(0, told.chunks.size());
      told.client.credit((byte) 7, 3);
      equal(List.of("7 2 1", "7 3 1", "7 4 1"), take(told.chunks, 3));
      told.client.credit((byte) 7, 5);
      equal("7 5 1", next(told.chunks));
      told.publish((byte) 0, 6, 7);
      equal("7 6 1", next(told.chunks));
      equal("6 6", take(told.messages, 7).get(6));
    }
  }

  public void withoutCreditNothing(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 0, null, stream));
      told.publish((byte) 0, 0, 1);
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) 1, stream, FIRST, 0));
      Thread.sleep(300);
      equal(0, told.chunks.size());
      told.client.credit((byte) 1, 1);
      equal("1 0 1", next(told.chunks));
    }
  }

  public void anOffsetBeyondTheEndIsTheNext(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 0, null, stream));
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) 1, stream, OffsetSpecification.offset(15), 10));
      told.publish((byte) 0, 0, 1);
      answers(RESPONSE_CODE_OK, told.client.subscribe((byte) 2, stream, OffsetSpecification.offset(15), 10));
      told.publish((byte) 0, 1, 2);
      equal(List.of("1 0 1", "1 1 1", "2 1 1"), take(told.chunks, 3).stream().sorted().toList());
    }
  }

  public void offsets(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_NO_OFFSET, told.client.queryOffset("reader", stream));
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.queryOffset("reader", "none.such"));
      told.client.storeOffset("reader", stream, 5);
      Streams.becomes(5L, () -> told.client.queryOffset("reader", stream).getOffset());
      // It may go back, too.
      told.client.storeOffset("reader", stream, 3);
      Streams.becomes(3L, () -> told.client.queryOffset("reader", stream).getOffset());
      // Of a stream that is not there nothing is answered, and nothing breaks.
      told.client.storeOffset("reader", "none.such", 3);
      answers(RESPONSE_CODE_NO_OFFSET, told.client.queryOffset("other", stream));
    }
  }

  public void metadata(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      Map<String, Client.StreamMetadata> answer = told.client.metadata(stream, "none.such");
      Client.StreamMetadata there = answer.get(stream);
      equal(RESPONSE_CODE_OK, there.getResponseCode());
      equal(World.streamPort(), there.getLeader().getPort());
      equal(List.of(), there.getReplicas());
      equal(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, answer.get("none.such").getResponseCode());
      check(answer.get("none.such").getLeader() == null, "nobody leads what is not there");
    }
  }

  public void whoUsesAStreamHearsThatItIsGone(World world) throws Exception {
    try (Told writer = new Told();
        Told reader = new Told();
        Told other = new Told()) {
      String stream = other.stream();
      answers(RESPONSE_CODE_OK, writer.client.declarePublisher((byte) 1, null, stream));
      answers(RESPONSE_CODE_OK, reader.client.subscribe((byte) 1, stream, FIRST, 10));
      answers(RESPONSE_CODE_OK, reader.client.subscribe((byte) 2, stream, FIRST, 10));
      answers(RESPONSE_CODE_OK, other.client.delete(stream));
      String gone = stream + " " + Constants.RESPONSE_CODE_STREAM_NOT_AVAILABLE;
      equal(gone, next(writer.changed));
      equal(gone, next(reader.changed));
      Thread.sleep(300);
      equal(List.of(0, 0, 0), List.of(writer.changed.size(), reader.changed.size(), other.changed.size()));
      answers(RESPONSE_CODE_PUBLISHER_DOES_NOT_EXIST, writer.client.deletePublisher((byte) 1));
      answers(RESPONSE_CODE_SUBSCRIPTION_ID_DOES_NOT_EXIST, reader.client.unsubscribe((byte) 1));
      check(writer.client.isOpen() && reader.client.isOpen(), "the connections stay");
    }
  }

  public void statistics(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.streamStats("none.such"));
      check(told.client.streamStats(stream).isOk(), "figures");
    }
  }

  public void whereASpecificationBegins(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      answers(RESPONSE_CODE_STREAM_DOES_NOT_EXIST, told.client.resolveOffsetSpec("none.such", FIRST));
      equal(0L, resolved(told, stream, FIRST));
      equal(0L, resolved(told, stream, OffsetSpecification.offset(5)));
      answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) 1, null, stream));
      told.publish((byte) 1, 0, 5);
      equal(0L, resolved(told, stream, FIRST));
      equal(4L, resolved(told, stream, OffsetSpecification.last()));
      equal(5L, resolved(told, stream, OffsetSpecification.next()));
      equal(3L, resolved(told, stream, OffsetSpecification.offset(3)));
      equal(5L, resolved(told, stream, OffsetSpecification.offset(9)));
      equal(0L, resolved(told, stream, OffsetSpecification.timestamp(0)));
    }
  }

  private static long resolved(Told told, String stream, OffsetSpecification where) {
    Client.ResolveOffsetSpecResponse response = told.client.resolveOffsetSpec(stream, where);
    answers(RESPONSE_CODE_OK, response);
    return response.offset();
  }

  public void partitionsAndRoutes(World world) throws Exception {
    try (Streams streams = new Streams();
        Told told = new Told()) {
      String name = streams.superStream(made -> made.bindingKeys("x", "y", "z"));
      equal(List.of(name + "-x", name + "-y", name + "-z"), told.client.partitions(name));
      equal(List.of(name + "-y"), told.client.route("y", name));
      equal(List.of(), told.client.route("w", name));
      // The client tells nothing of the codes with which these are answered.
      equal(List.of(), told.client.partitions("none.such"));
      equal(List.of(), told.client.route("y", "none.such"));
    }
  }

  public void oneOfAGroupIsActive(World world) throws Exception {
    try (Told one = new Told();
        Told two = new Told()) {
      String stream = one.stream();
      Map<String, String> member = Map.of("single-active-consumer", "true", "name", "group");
      answers(RESPONSE_CODE_OK, one.client.subscribe((byte) 1, stream, FIRST, 10, member));
      equal("1 true", next(one.activated));
      answers(RESPONSE_CODE_OK, two.client.subscribe((byte) 9, stream, FIRST, 10, member));
      answers(RESPONSE_CODE_OK, one.client.declarePublisher((byte) 1, null, stream));
      one.publish((byte) 1, 0, 1);
      equal("1 0 1", next(one.chunks));
      Thread.sleep(300);
      equal(List.of(0, 0), List.of(two.activated.size(), two.chunks.size()));
      answers(RESPONSE_CODE_OK, one.client.unsubscribe((byte) 1));
      equal("9 true", next(two.activated));
      equal("9 0 1", next(two.chunks));
    }
  }

  public void aPublisherAndASubscriptionOfEachNumber(World world) throws Exception {
    try (Told told = new Told()) {
      String stream = told.stream();
      for (int n = 0; n < 256; n++) {
        answers(RESPONSE_CODE_OK, told.client.declarePublisher((byte) n, null, stream));
        answers(RESPONSE_CODE_OK, told.client.subscribe((byte) n, stream, OffsetSpecification.next(), 1));
      }
      told.publish((byte) 255, 0, 1);
      equal(256L, take(told.chunks, 256).stream().distinct().count());
    }
  }
}
