package leveret;

import static leveret.World.equal;
import static leveret.World.numbers;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.TimeUnit;
import org.springframework.amqp.AmqpException;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.connection.CorrelationData;

/** Applications that know all nodes of a cluster, and lose the one that they are connected to. */
public final class SpringClusterTest {

  /** The nodes' addresses, this one first: Spring tries them in order. */
  private static String from(int first, List<String> nodes) {
    return nodes.get(first) + "," + nodes.get((first + 1) % 3) + "," + nodes.get((first + 2) % 3);
  }

  /** Sends until the message is confirmed, as an application does that loses nothing. */
  private static void insist(Spring spring, String queue, String text) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(World.DEADLINE_SECONDS);
    Throwable last = null;
    while (System.nanoTime() < deadline) {
      try {
        CorrelationData message = new CorrelationData(text);
        spring.template.convertAndSend("", queue, text, message);
        if (message.getFuture().get(World.DEADLINE_SECONDS, TimeUnit.SECONDS).ack() && message.getReturned() == null) {
          return;
        }
      } catch (AmqpException lost) {
        last = lost;
        Thread.sleep(20);
      }
    }
    throw new AssertionError(text + " is not confirmed", last);
  }

  private static void contains(Collection<String> expected, Set<String> heard) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(World.DEADLINE_SECONDS);
    while (!heard.containsAll(expected) && System.nanoTime() < deadline) {
      Thread.sleep(10);
    }
    Set<String> missing = new TreeSet<>(expected);
    missing.removeAll(heard);
    equal(Set.of(), missing);
  }

  /** Sends these to each queue, and waits until all are confirmed and were heard. */
  private static void exchange(Spring sending, Map<String, Set<String>> heard, List<String> numbers) throws Exception {
    for (String number : numbers) {
      for (String queue : heard.keySet()) {
        insist(sending, queue, number);
      }
    }
    for (Set<String> there : heard.values()) {
      contains(numbers, there);
    }
  }

  public void applicationsOutliveTheNodeThatTheyAreConnectedTo(World world) throws Exception {
    World.needsControl();
    World.leveretOnly("nobody starts three nodes of another broker");
    if (System.getenv("OTHER_PORT") != null) {
      throw new World.Skipped("once, where there is one node otherwise");
    }
    List<String> nodes = Arrays.stream(World.control("cluster").split(" ")).map(port -> World.host() + ":" + port).toList();
    // The queues are led by the node that their containers are connected to, and the sender is on the second one.
    try (Spring consuming = new Spring(from(0, nodes), ConfirmType.NONE);
        Spring sending = new Spring(from(1, nodes), ConfirmType.CORRELATED)) {
      Map<String, Set<String>> heard = new HashMap<>();
      for (Spring.Kind kind : Spring.Kind.values()) {
        String queue = consuming.declared(QueueBuilder.durable(world.name()).quorum());
        heard.put(queue, new ConcurrentSkipListSet<>());
        consuming.listen(kind, queue, heard.get(queue)::add);
      }
      exchange(sending, heard, numbers(0, 50));
      World.control("kill-node 0");
      exchange(sending, heard, numbers(50, 100));
      World.control("start-node 0");
      World.control("kill-node 1");
      exchange(sending, heard, numbers(100, 150));
    } finally {
      World.control("cluster-gone");
    }
  }
}
