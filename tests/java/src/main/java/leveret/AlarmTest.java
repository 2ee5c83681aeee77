package leveret;

import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;

import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** connection.blocked and connection.unblocked. */
public final class AlarmTest {

  public void aPublisherIsBlockedAndAConsumerIsNot(World world) throws Exception {
    World.needsControl();
    Connection connection = world.connect(World.alarmPort());
    Channel channel = connection.createChannel();
    channel.confirmSelect();
    Channel consumer = world.connect(World.alarmPort()).createChannel();
    String queue = world.name();
    consumer.queueDeclare(queue, true, false, false, null);
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    connection.addBlockedListener(heard::add, () -> heard.add("unblocked"));
    World.control("alarm-on");
    try {
      String reason = null;
      for (int attempt = 0; attempt < World.DEADLINE_SECONDS * 10 && reason == null; attempt++) {
        channel.basicPublish("", queue, null, bytes("x"));
        reason = heard.poll(100, TimeUnit.MILLISECONDS);
      }
      equal("low on disk", reason);
      World.drain(consumer, queue);
      channel.basicPublish("", queue, null, bytes("late"));
      World.control("alarm-off");
      equal("unblocked", next(heard));
      channel.waitForConfirmsOrDie(World.DEADLINE_SECONDS * 1000L);
      List<String> rest = World.drain(consumer, queue);
      check(rest.get(rest.size() - 1).equals("late"), rest.toString());
    } finally {
      World.control("alarm-off");
      consumer.queueDelete(queue);
    }
  }
}
