package leveret;

import static leveret.World.bodies;
import static leveret.World.check;
import static leveret.World.countsAtLast;
import static leveret.World.drain;
import static leveret.World.equal;
import static leveret.World.fill;
import static leveret.World.next;
import static leveret.World.numbers;
import static leveret.World.take;

import com.rabbitmq.client.CancelCallback;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Acknowledgements, redelivery, prefetch, get, cancel. */
public final class ConsumingTest {

  private static final CancelCallback IGNORED = tag -> {};

  private static BlockingQueue<Delivery> consume(Channel channel, String queue, boolean autoAck) throws Exception {
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, autoAck, (tag, delivery) -> inbox.add(delivery), IGNORED);
    return inbox;
  }

  private static long tag(Delivery delivery) {
    return delivery.getEnvelope().getDeliveryTag();
  }

  public void acksOneAndMany(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 10);
    BlockingQueue<Delivery> inbox = consume(channel, queue, false);
    List<Delivery> got = take(inbox, 10);
    equal(numbers(0, 10), bodies(got));
    channel.basicAck(tag(got.get(2)), false);
    channel.basicAck(tag(got.get(4)), true);
    channel.basicRecover(true);
    List<Delivery> again = take(inbox, 5);
    equal(numbers(5, 10), bodies(again));
    check(again.stream().allMatch(delivery -> delivery.getEnvelope().isRedeliver()), "redelivered");
    channel.basicAck(0, true);
    channel.basicRecover(true);
    equal(0L, channel.messageCount(queue));
  }

  public void requeueGoesToTheOriginalPosition(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 6);
    for (int n = 0; n < 4; n++) {
      equal(n + 1L, channel.basicGet(queue, false).getEnvelope().getDeliveryTag());
    }
    channel.basicNack(3, false, true);
    channel.basicReject(1, true);
    channel.basicNack(4, true, true);
    for (int n = 0; n < 6; n++) {
      GetResponse got = channel.basicGet(queue, true);
      equal(Integer.toString(n), World.text(got.getBody()));
      equal(n < 4, got.getEnvelope().isRedeliver());
    }
  }

  public void nackAndRejectWithoutRequeueDrop(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 5);
    for (int n = 0; n < 4; n++) {
      channel.basicGet(queue, false);
    }
    channel.basicReject(1, false);
    channel.basicNack(3, true, false);
    channel.basicNack(0, true, true);
    equal(List.of("3", "4"), drain(channel, queue));
  }

  public void aClosedChannelGivesBack(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare("", false, true, false, null).getQueue();
    fill(channel, queue, 3);
    Channel other = channel.getConnection().createChannel();
    take(consume(other, queue, false), 3);
    other.close();
    GetResponse got = channel.basicGet(queue, true);
    equal("0", World.text(got.getBody()));
    equal(true, got.getEnvelope().isRedeliver());
    equal(2, got.getMessageCount());
  }

  public void prefetchPerConsumer(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 10);
    channel.basicQos(2);
    BlockingQueue<Delivery> first = consume(channel, queue, false);
    BlockingQueue<Delivery> second = consume(channel, queue, false);
    List<Delivery> got = take(first, 2);
    take(second, 2);
    equal(6L, channel.messageCount(queue));
    channel.basicAck(tag(got.get(0)), false);
    take(first, 1);
    equal(5L, channel.messageCount(queue));
  }

  public void prefetchPerChannel(World world) throws Exception {
    World.leveretOnly("RabbitMQ 4.3 treats a global prefetch as one per consumer");
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 10);
    channel.basicQos(3, true);
    BlockingQueue<Delivery> inbox = new LinkedBlockingQueue<>();
    for (int n = 0; n < 2; n++) {
      channel.basicConsume(queue, false, (tag, delivery) -> inbox.add(delivery), IGNORED);
    }
    List<Delivery> got = take(inbox, 3);
    countsAtLast(7, channel, queue);
    channel.basicAck(tag(got.get(1)), true);
    take(inbox, 2);
    countsAtLast(5, channel, queue);
  }

  public void getCountsDownToEmpty(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    fill(channel, queue, 2);
    equal(1, channel.basicGet(queue, false).getMessageCount());
    equal(0, channel.basicGet(queue, true).getMessageCount());
    equal(null, channel.basicGet(queue, true));
  }

  public void consumersTakeTurns(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    List<BlockingQueue<Delivery>> inboxes = List.of(consume(channel, queue, true), consume(channel, queue, true), consume(channel, queue, true));
    fill(channel, queue, 30);
    for (BlockingQueue<Delivery> inbox : inboxes) {
      take(inbox, 10);
    }
  }

  public void aConsumerIsToldThatItsQueueWasDeleted(World world) throws Exception {
    Channel channel = world.channel();
    String queue = world.name();
    channel.queueDeclare(queue, true, false, false, null);
    BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
    channel.basicConsume(queue, false, "told", (tag, delivery) -> {}, cancelled::add);
    world.channel().queueDelete(queue);
    equal("told", next(cancelled));
    channel.queueDeclare();
  }

  public void cancelStopsDeliveries(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare("", false, true, false, null).getQueue();
    String tag = channel.basicConsume(queue, true, (consumer, delivery) -> {}, IGNORED);
    equal(1L, channel.consumerCount(queue));
    channel.basicCancel(tag);
    equal(0L, channel.consumerCount(queue));
    fill(channel, queue, 1);
    equal(1L, channel.messageCount(queue));
  }
}
