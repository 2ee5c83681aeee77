package leveret;

import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.drain;
import static leveret.World.equal;
import static leveret.World.fill;
import static leveret.World.numbers;
import static leveret.World.refused;

import com.rabbitmq.client.AMQP.Queue.DeclareOk;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.MessageProperties;
import java.util.List;
import java.util.Map;

/** Kinds of queues, their limits and ends. */
public final class QueueTest {

  public void exclusiveGoesWithItsConnection(World world) throws Exception {
    Connection owner = world.connect(World.port());
    String queue = owner.createChannel().queueDeclare().getQueue();
    check(queue.startsWith("amq.gen-"), queue);
    Channel other = world.channel();
    refused(405, 50, 10, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '" + queue + "'", () -> other.queueDeclarePassive(queue));
    owner.close();
    Channel later = world.channel();
    refused(404, 50, 10, "NOT_FOUND - no queue '" + queue + "' in vhost '/'", () -> later.queueDeclarePassive(queue));
  }

  public void autoDeleteGoesWithItsLastConsumer(World world) throws Exception {
    Channel channel = world.channel();
    String queue = world.name();
    channel.queueDeclare(queue, false, false, true, null);
    String first = channel.basicConsume(queue, (tag, delivery) -> {}, tag -> {});
    String second = channel.basicConsume(queue, (tag, delivery) -> {}, tag -> {});
    channel.basicCancel(first);
    equal(1, channel.queueDeclarePassive(queue).getConsumerCount());
    channel.basicCancel(second);
    refused(404, 50, 10, "no queue", () -> channel.queueDeclarePassive(queue));
  }

  public void countsOfDeclarePurgeAndDelete(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = world.name();
    channel.queueDeclare(queue, true, false, false, null);
    fill(channel, queue, 5);
    DeclareOk declared = channel.queueDeclare(queue, true, false, false, null);
    equal(List.of(queue, 5, 0), List.of(declared.getQueue(), declared.getMessageCount(), declared.getConsumerCount()));
    equal(5, channel.queuePurge(queue).getMessageCount());
    fill(channel, queue, 2);
    equal(2, channel.queueDelete(queue).getMessageCount());
    equal(0, channel.queueDelete(queue).getMessageCount());
    channel.exchangeDelete(world.name());
  }

  public void theLastDeclaredQueueIsMeantByTheEmptyName(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    channel.queueBind("", "amq.direct", "");
    channel.basicPublish("amq.direct", queue, null, bytes("x"));
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("x"), drain(channel, ""));
    equal(0, channel.queuePurge("").getMessageCount());
    channel.queueDelete("");
  }

  public void maxLengthKeepsTheNewest(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare("", false, true, false, Map.of("x-max-length", 3)).getQueue();
    fill(channel, queue, 8);
    equal(numbers(5, 8), drain(channel, queue));
  }

  public void durableQueueAfterARestart(World world) throws Exception {
    World.needsControl();
    Channel channel = world.confirming();
    String queue = world.name();
    channel.queueDeclare(queue, true, false, false, Map.of("x-max-length", 100));
    channel.queueBind(queue, "amq.fanout", "");
    for (int n = 0; n < 120; n++) {
      channel.basicPublish("", queue, MessageProperties.PERSISTENT_TEXT_PLAIN, bytes(Integer.toString(n)));
    }
    channel.waitForConfirmsOrDie(10_000);
    World.control("restart");
    Channel after = world.confirming();
    equal(numbers(20, 120), drain(after, queue));
    after.basicPublish("amq.fanout", "", null, bytes("bound"));
    after.waitForConfirmsOrDie(10_000);
    equal(List.of("bound"), drain(after, queue));
    after.queueDelete(queue);
  }
}
