package leveret;

import static leveret.World.bodies;
import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.drain;
import static leveret.World.equal;
import static leveret.World.fill;
import static leveret.World.next;
import static leveret.World.numbers;
import static leveret.World.refused;
import static leveret.World.take;
import static leveret.World.text;

import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import com.rabbitmq.client.RpcServer;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What queues and exchanges do beyond the plain road. */
public final class FeatureTest {

  public void aQueueThatNobodyUsesEnds(World world) throws Exception {
    Connection connection = world.connect(World.port());
    Channel channel = connection.createChannel();
    String queue = world.name();
    String exchange = world.name();
    channel.exchangeDeclare(exchange, "fanout", false, true, null);
    channel.queueDeclare(queue, true, false, false, Map.of("x-expires", 50));
    channel.queueBind(queue, exchange, "");
    // A passive declaration would use the queue; its end is seen at the exchange, which goes with its last binding.
    for (boolean there = true; there; ) {
      try {
        connection.createChannel().exchangeDeclarePassive(exchange);
      } catch (IOException gone) {
        there = false;
      }
    }
    refused(404, 50, 10, "NOT_FOUND - no queue '" + queue + "' in vhost '/'", () -> connection.createChannel().queueDeclarePassive(queue));
  }

  public void aUserIdMustBeTheSendersOwn(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = own(channel, Map.of());
    channel.basicPublish("", queue, new BasicProperties.Builder().userId("guest").build(), bytes("m"));
    channel.waitForConfirmsOrDie(10_000);
    equal("guest", channel.basicGet(queue, true).getProps().getUserId());
    BlockingQueue<ShutdownSignalException> signals = new LinkedBlockingQueue<>();
    channel.addShutdownListener(signals::add);
    channel.basicPublish("", queue, new BasicProperties.Builder().userId("jane").build(), bytes("m"));
    AMQP.Channel.Close reason = (AMQP.Channel.Close) next(signals).getReason();
    equal(406, reason.getReplyCode());
    equal("PRECONDITION_FAILED - user_id property set to 'jane' but authenticated user was 'guest'", reason.getReplyText());
  }

  /** A queue whose dead letters go where they are received. */
  private record Mortal(String queue, BlockingQueue<Delivery> graves) {

    static Mortal declare(Channel channel, Map<String, Object> arguments) throws IOException {
      String dead = channel.queueDeclare().getQueue();
      Map<String, Object> all = new HashMap<>(arguments);
      all.put("x-dead-letter-exchange", "");
      all.put("x-dead-letter-routing-key", dead);
      return new Mortal(own(channel, all), inbox(channel, dead, Map.of()));
    }
  }

  private static String own(Channel channel, Map<String, Object> arguments) throws IOException {
    return channel.queueDeclare("", false, true, false, arguments).getQueue();
  }

  private static BlockingQueue<Delivery> inbox(Channel channel, String queue, Map<String, Object> arguments) throws IOException {
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, false, arguments, (tag, delivery) -> inbox.add(delivery), tag -> {});
    return inbox;
  }

  private static List<String> deaths(Delivery delivery) {
    List<?> history = (List<?>) delivery.getProperties().getHeaders().get("x-death");
    return history.stream()
        .map(entry -> (Map<?, ?>) entry)
        .map(death -> death.get("queue") + " " + death.get("reason") + " " + death.get("count"))
        .toList();
  }

  private static void send(Channel channel, String exchange, String key, BasicProperties properties, String body) throws Exception {
    channel.basicPublish(exchange, key, properties, bytes(body));
    channel.waitForConfirmsOrDie(10_000);
  }

  public void messagesExpireAtAnyPosition(World world) throws Exception {
    World.leveretOnly("RabbitMQ's classic queues expire messages at their head only");
    Channel channel = world.confirming();
    Mortal mortal = Mortal.declare(channel, Map.of());
    send(channel, "", mortal.queue, null, "stays");
    send(channel, "", mortal.queue, new BasicProperties.Builder().expiration("30").build(), "goes");
    Delivery dead = next(mortal.graves);
    equal("goes", text(dead.getBody()));
    equal(null, dead.getProperties().getExpiration());
    equal(List.of(mortal.queue + " expired 1"), deaths(dead));
    equal(List.of("stays"), drain(channel, mortal.queue));
  }

  public void aQueueHasATimeToLive(World world) throws Exception {
    Channel channel = world.confirming();
    Mortal mortal = Mortal.declare(channel, Map.of("x-message-ttl", 30));
    fill(channel, mortal.queue, 5);
    equal(numbers(0, 5), bodies(take(mortal.graves, 5)));
  }

  public void deadLettersOfLengthAndOfRejection(World world) throws Exception {
    Channel channel = world.confirming();
    Mortal mortal = Mortal.declare(channel, Map.of("x-max-length", 1));
    fill(channel, mortal.queue, 2);
    equal(List.of(mortal.queue + " maxlen 1"), deaths(next(mortal.graves)));
    channel.basicReject(channel.basicGet(mortal.queue, false).getEnvelope().getDeliveryTag(), false);
    equal(List.of(mortal.queue + " rejected 1"), deaths(next(mortal.graves)));
  }

  public void aFullQueueThatRefusesNacks(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-max-length", 1, "x-overflow", "reject-publish"));
    channel.basicPublish("", queue, null, bytes("1"));
    equal(true, channel.waitForConfirms(10_000));
    channel.basicPublish("", queue, null, bytes("2"));
    equal(false, channel.waitForConfirms(10_000));
  }

  public void theConsumerOfTheHighestPriorityComesFirst(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = own(channel, null);
    BlockingQueue<Delivery> low = inbox(channel, queue, Map.of());
    channel.basicQos(2);
    BlockingQueue<Delivery> high = inbox(channel, queue, Map.of("x-priority", 5));
    fill(channel, queue, 3);
    equal(numbers(0, 2), bodies(take(high, 2)));
    equal(numbers(2, 3), bodies(take(low, 1)));
  }

  public void oneConsumerIsActive(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-single-active-consumer", true));
    BlockingQueue<Delivery> first = new LinkedBlockingQueue<>();
    String tag = channel.basicConsume(queue, true, (consumer, delivery) -> first.add(delivery), consumer -> {});
    BlockingQueue<Delivery> second = inbox(channel, queue, Map.of());
    fill(channel, queue, 3);
    equal(numbers(0, 3), bodies(take(first, 3)));
    channel.basicCancel(tag);
    fill(channel, queue, 1);
    equal(numbers(0, 1), bodies(take(second, 1)));
  }

  public void messagesOfAHigherPriorityComeFirst(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-max-priority", 10));
    for (int priority : List.of(0, 5, 200, 5)) {
      send(channel, "", queue, new BasicProperties.Builder().priority(priority).build(), Integer.toString(priority));
    }
    equal(List.of("200", "5", "5", "0"), drain(channel, queue));
  }

  public void whatNobodyTakesGoesToTheAlternateExchange(World world) throws Exception {
    Channel channel = world.confirming();
    String others = world.name();
    channel.exchangeDeclare(others, "fanout", false, true, null);
    String rest = own(channel, null);
    channel.queueBind(rest, others, "");
    String exchange = world.name();
    channel.exchangeDeclare(exchange, "direct", false, true, Map.of("alternate-exchange", others));
    String queue = own(channel, null);
    channel.queueBind(queue, exchange, "known");
    send(channel, exchange, "known", null, "a");
    send(channel, exchange, "unknown", null, "b");
    equal(List.of("a"), drain(channel, queue));
    equal(List.of("b"), drain(channel, rest));
  }

  public void hashExchangesKeepAKeyInOneQueue(World world) throws Exception {
    World.leveretOnly("a plugin of RabbitMQ's");
    Channel channel = world.confirming();
    for (String kind : List.of("x-consistent-hash", "x-modulus-hash")) {
      String exchange = world.name();
      channel.exchangeDeclare(exchange, kind, false, true, null);
      List<String> queues = new ArrayList<>();
      for (int n = 0; n < 3; n++) {
        String queue = own(channel, null);
        channel.queueBind(queue, exchange, "1");
        queues.add(queue);
      }
      for (int n = 0; n < 100; n++) {
        send(channel, exchange, Integer.toString(n % 50), null, Integer.toString(n % 50));
      }
      int total = 0;
      for (String queue : queues) {
        List<String> keys = drain(channel, queue);
        equal(keys.size(), 2 * new HashSet<>(keys).size());
        total += keys.size();
      }
      equal(100, total);
    }
  }

  public void aTransactionPublishesAndAcknowledgesAtItsCommit(World world) throws Exception {
    Channel channel = world.channel();
    String queue = own(channel, null);
    channel.txSelect();
    channel.basicPublish("", queue, null, bytes("back"));
    channel.txRollback();
    channel.basicPublish("", queue, null, bytes("kept"));
    equal(0, channel.queueDeclarePassive(queue).getMessageCount());
    channel.txCommit();
    long tag = channel.basicGet(queue, false).getEnvelope().getDeliveryTag();
    channel.basicAck(tag, false);
    channel.txRollback();
    channel.basicAck(tag, false);
    channel.txCommit();
    equal(List.of(), drain(channel, queue));
  }

  public void rpcOverDirectReplyTo(World world) throws Exception {
    Channel serving = world.channel();
    String queue = own(serving, null);
    RpcServer server =
        new RpcServer(serving, queue) {
          @Override
          public byte[] handleCall(byte[] request, BasicProperties reply) {
            return bytes(text(request).toUpperCase(java.util.Locale.ROOT));
          }
        };
    Thread thread =
        new Thread(
            () -> {
              try {
                server.mainloop();
              } catch (IOException gone) {
                // The connection ends with the test.
              }
            });
    thread.setDaemon(true);
    thread.start();
    Channel asking = world.channel();
    try (RpcClient client = new RpcClient(new RpcClientParams().channel(asking).exchange("").routingKey(queue).timeout(10_000))) {
      for (int n = 0; n < 100; n++) {
        equal("QUESTION " + n, client.stringCall("question " + n));
      }
    }
    server.terminateMainloop();
  }

  public void copiesGoByCc(World world) throws Exception {
    Channel channel = world.confirming();
    List<String> queues = List.of(own(channel, null), own(channel, null), own(channel, null));
    Map<String, Object> headers = Map.of("CC", List.of(queues.get(1)), "BCC", List.of(queues.get(2)));
    send(channel, "", queues.get(0), new BasicProperties.Builder().headers(headers).build(), "x");
    for (String queue : queues) {
      Map<String, Object> got = channel.basicGet(queue, true).getProps().getHeaders();
      check(got.containsKey("CC") && !got.containsKey("BCC"), got.toString());
    }
  }
}
