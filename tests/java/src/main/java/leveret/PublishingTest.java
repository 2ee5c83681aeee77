package leveret;

import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.drain;
import static leveret.World.equal;
import static leveret.World.next;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.LongStream;

/** Confirms, returns, properties, bodies. */
public final class PublishingTest {

  public void singleConfirms(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = world.name();
    channel.queueDeclare(queue, true, false, false, null);
    for (int n = 1; n <= 10; n++) {
      channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, bytes("x"));
      check(channel.waitForConfirms(10_000), "nacked");
      equal((long) n, channel.messageCount(queue));
    }
    channel.queueDelete(queue);
  }

  public void manyConfirmsEachOnce(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    TreeSet<Long> open = new TreeSet<>();
    List<String> faults = Collections.synchronizedList(new ArrayList<>());
    LongStream.rangeClosed(1, 5000).forEach(open::add);
    channel.addConfirmListener(
        (tag, multiple) -> {
          boolean fresh = multiple ? !open.headSet(tag, true).isEmpty() : open.contains(tag);
          if (!fresh) {
            faults.add("confirmed twice: " + tag);
          }
          if (multiple) {
            open.headSet(tag, true).clear();
          } else {
            open.remove(tag);
          }
        },
        (tag, multiple) -> faults.add("nacked: " + tag));
    for (int n = 0; n < 5000; n++) {
      equal(n + 1L, channel.getNextPublishSeqNo());
      channel.basicPublish("", queue, n % 2 == 0 ? MessageProperties.PERSISTENT_BASIC : null, bytes(Integer.toString(n)));
    }
    check(channel.waitForConfirms(World.DEADLINE_SECONDS * 1000L), "nacked");
    equal(List.of(), faults);
    equal(World.numbers(0, 5000), drain(channel, queue));
  }

  public void mandatoryReturnsBeforeItsConfirm(World world) throws Exception {
    Channel channel = world.confirming();
    BlockingQueue<String> order = new LinkedBlockingQueue<>();
    channel.addReturnListener(back -> order.add("return " + back.getReplyCode() + " " + back.getReplyText() + " " + World.text(back.getBody())));
    channel.addConfirmListener((tag, multiple) -> order.add("confirm " + tag), (tag, multiple) -> order.add("nack " + tag));
    channel.basicPublish("amq.direct", "no such key", true, null, bytes("body"));
    equal("return 312 NO_ROUTE body", next(order));
    equal("confirm 1", next(order));
  }

  public void propertiesComeBack(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    Map<String, Object> headers = new HashMap<>();
    headers.put("long", 1L << 40);
    headers.put("int", -7);
    headers.put("short", (short) 300);
    headers.put("byte", (byte) -3);
    headers.put("double", 2.5);
    headers.put("float", 1.5f);
    headers.put("bool", true);
    headers.put("date", new Date(1_700_000_000_000L));
    headers.put("null", null);
    headers.put("list", Arrays.asList(1, 2L, null));
    headers.put("table", Map.of("nested", 3));
    BasicProperties sent =
        new BasicProperties("text/plain", "utf-8", headers, 2, 6, "c", "r", null, "m", new Date(1_700_000_000_000L), "t", "guest", "a", "cl");
    channel.basicPublish("", queue, sent, new byte[0]);
    channel.waitForConfirmsOrDie(10_000);
    GetResponse got = channel.basicGet(queue, true);
    equal(sent, got.getProps());
    equal(0, got.getBody().length);
  }

  public void bodiesOfEverySize(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    int[] sizes = {0, 1, 131063, 131064, 131065, 262128, 262129, 3_000_000};
    for (int size : sizes) {
      byte[] body = new byte[size];
      Arrays.fill(body, (byte) (size % 127));
      channel.basicPublish("", queue, MessageProperties.MINIMAL_PERSISTENT_BASIC, body);
    }
    channel.waitForConfirmsOrDie(30_000);
    for (int size : sizes) {
      byte[] body = channel.basicGet(queue, true).getBody();
      equal(size, body.length);
      check(size == 0 || (body[0] == size % 127 && body[size - 1] == size % 127), "changed body of " + size);
    }
  }
}
