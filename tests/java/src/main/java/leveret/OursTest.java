package leveret;

import static leveret.World.bodies;
import static leveret.World.bytes;
import static leveret.World.drain;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.take;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Deadlines, delayed retries, duplicates, groups and delays: RabbitMQ 4.3 has them in quorum queues, in plugins or not at all. */
public final class OursTest {

  private static final String REASON = "RabbitMQ has it in quorum queues or plugins only";

  private static String own(Channel channel, Map<String, Object> arguments) throws IOException {
    return channel.queueDeclare("", false, true, false, arguments).getQueue();
  }

  private static void send(Channel channel, String exchange, String key, Map<String, Object> headers, String body) throws Exception {
    channel.basicPublish(exchange, key, new BasicProperties.Builder().headers(headers).build(), bytes(body));
    channel.waitForConfirmsOrDie(10_000);
  }

  public void aConsumerThatTakesTooLongIsCancelled(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-consumer-timeout", 200));
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, false, "slow", (tag, delivery) -> inbox.add(delivery), cancelled::add);
    send(channel, "", queue, Map.of(), "m");
    Delivery late = next(inbox);
    equal("slow", next(cancelled));
    channel.basicAck(late.getEnvelope().getDeliveryTag(), false);
    equal(List.of("m"), drain(channel, queue));
  }

  public void aMessageComesBackLaterEachTimeAndIsADeadLetterThen(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String graves = own(channel, Map.of());
    String queue =
        own(
            channel,
            Map.of(
                "x-delivery-limit", 2,
                "x-retry-delay", Map.of("initial", 40, "factor", 2),
                "x-dead-letter-exchange", "",
                "x-dead-letter-routing-key", graves));
    BlockingQueue<Delivery> dead = new LinkedBlockingQueue<>();
    channel.basicConsume(graves, true, (tag, delivery) -> dead.add(delivery), tag -> {});
    List<Object> counts = new ArrayList<>();
    channel.basicConsume(
        queue,
        false,
        (tag, delivery) -> {
          Map<String, Object> headers = delivery.getProperties().getHeaders();
          counts.add(headers.getOrDefault("x-delivery-count", 0L));
          channel.basicNack(delivery.getEnvelope().getDeliveryTag(), false, true);
        },
        tag -> {});
    send(channel, "", queue, Map.of("mine", 1), "bad");
    List<?> history = (List<?>) next(dead).getProperties().getHeaders().get("x-death");
    equal("delivery_limit", ((Map<?, ?>) history.get(0)).get("reason").toString());
    equal(List.of(0L, 1L, 2L), counts);
  }

  public void aQueueTakesAMessageOnce(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-message-deduplication", true));
    send(channel, "", queue, Map.of("x-deduplication-header", "same"), "1");
    send(channel, "", queue, Map.of("x-deduplication-header", "same"), "2");
    send(channel, "", queue, Map.of("x-deduplication-header", "other"), "3");
    equal(List.of("1", "3"), drain(channel, queue));
  }

  public void anExchangeLetsAMessagePassOnce(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String exchange = world.name();
    channel.exchangeDeclare(exchange, "x-message-deduplication", false, true, Map.of("x-cache-size", 10, "x-cache-ttl", 3_600_000));
    String queue = own(channel, Map.of());
    channel.queueBind(queue, exchange, "any");
    send(channel, exchange, "k", Map.of("x-deduplication-header", "same"), "1");
    send(channel, exchange, "k", Map.of("x-deduplication-header", "same"), "2");
    send(channel, exchange, "k", Map.of("x-deduplication-header", "other"), "3");
    send(channel, exchange, "k", Map.of(), "4");
    // A confirmed message may be on its way yet: the exchange may remember on another node than the queue's.
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, true, (tag, delivery) -> inbox.add(delivery), tag -> {});
    equal(List.of("1", "3", "4"), bodies(take(inbox, 3)));
  }

  public void groupsTakeTurns(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String queue = own(channel, Map.of("x-fair-key", "tenant"));
    for (String body : List.of("a1", "a2", "a3")) {
      send(channel, "", queue, Map.of("tenant", "a"), body + "x".repeat(8192));
    }
    send(channel, "", queue, Map.of("tenant", "b"), "b1");
    List<String> came = drain(channel, queue);
    equal(4, came.size());
    equal("a3", came.get(3).substring(0, 2));
  }

  public void aDelayedMessageWaitsInItsExchange(World world) throws Exception {
    World.leveretOnly(REASON);
    Channel channel = world.confirming();
    String exchange = world.name();
    channel.exchangeDeclare(exchange, "x-delayed-message", false, true, Map.of("x-delayed-type", "direct"));
    String queue = own(channel, Map.of());
    channel.queueBind(queue, exchange, "k");
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, true, (tag, delivery) -> inbox.add(delivery), tag -> {});
    send(channel, exchange, "k", Map.of("x-delay", 150), "late");
    send(channel, exchange, "k", Map.of(), "soon");
    equal(List.of("soon", "late"), bodies(take(inbox, 2)));
  }
}
