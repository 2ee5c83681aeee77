package leveret;

import static leveret.World.bytes;
import static leveret.World.drain;
import static leveret.World.equal;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.BuiltinExchangeType;
import com.rabbitmq.client.Channel;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Exchange types and exchange-to-exchange bindings. */
public final class RoutingTest {

  private static String bound(Channel channel, String exchange, String key, Map<String, Object> arguments) throws Exception {
    String queue = channel.queueDeclare().getQueue();
    channel.queueBind(queue, exchange, key, arguments);
    return queue;
  }

  private static String exchange(World world, Channel channel, BuiltinExchangeType type) throws Exception {
    String name = world.name();
    channel.exchangeDeclare(name, type, false, true, null);
    return name;
  }

  private static void publish(Channel channel, String exchange, String key, Map<String, Object> headers, String body) throws Exception {
    channel.basicPublish(exchange, key, new BasicProperties.Builder().headers(headers).build(), bytes(body));
  }

  public void defaultExchange(World world) throws Exception {
    Channel channel = world.confirming();
    String queue = channel.queueDeclare().getQueue();
    publish(channel, "", queue, null, "x");
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("x"), drain(channel, queue));
  }

  public void direct(World world) throws Exception {
    Channel channel = world.confirming();
    String exchange = exchange(world, channel, BuiltinExchangeType.DIRECT);
    String one = bound(channel, exchange, "one", null);
    String both = bound(channel, exchange, "one", null);
    channel.queueBind(both, exchange, "two");
    for (String key : List.of("one", "two", "three")) {
      publish(channel, exchange, key, null, key);
    }
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("one"), drain(channel, one));
    equal(List.of("one", "two"), drain(channel, both));
  }

  public void fanout(World world) throws Exception {
    Channel channel = world.confirming();
    String exchange = exchange(world, channel, BuiltinExchangeType.FANOUT);
    String first = bound(channel, exchange, "", null);
    String second = bound(channel, exchange, "ignored", null);
    publish(channel, exchange, "any", null, "x");
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("x"), drain(channel, first));
    equal(List.of("x"), drain(channel, second));
  }

  public void topic(World world) throws Exception {
    Channel channel = world.confirming();
    String exchange = exchange(world, channel, BuiltinExchangeType.TOPIC);
    Map<String, List<String>> wanted = new LinkedHashMap<>();
    wanted.put("*.orange.*", List.of("quick.orange.rabbit", "lazy.orange.elephant"));
    wanted.put("*.*.rabbit", List.of("quick.orange.rabbit"));
    wanted.put("lazy.#", List.of("lazy.orange.elephant", "lazy", "lazy.a.b.c"));
    wanted.put("#", List.of("quick.orange.rabbit", "lazy.orange.elephant", "lazy", "lazy.a.b.c"));
    wanted.put("#.c", List.of("lazy.a.b.c"));
    wanted.put("lazy.*", List.of());
    Map<String, String> queues = new LinkedHashMap<>();
    for (String pattern : wanted.keySet()) {
      queues.put(pattern, bound(channel, exchange, pattern, null));
    }
    for (String key : List.of("quick.orange.rabbit", "lazy.orange.elephant", "lazy", "lazy.a.b.c")) {
      publish(channel, exchange, key, null, key);
    }
    channel.waitForConfirmsOrDie(10_000);
    for (var entry : wanted.entrySet()) {
      equal(entry.getValue(), drain(channel, queues.get(entry.getKey())));
    }
  }

  public void headers(World world) throws Exception {
    Channel channel = world.confirming();
    String exchange = exchange(world, channel, BuiltinExchangeType.HEADERS);
    String all = bound(channel, exchange, "", Map.of("x-match", "all", "h1", "v", "h2", 2));
    String any = bound(channel, exchange, "", Map.of("x-match", "any", "h1", "v", "h2", 2));
    String allWithX = bound(channel, exchange, "", Map.of("x-match", "all-with-x", "x-h", "x", "h1", "v"));
    String anyWithX = bound(channel, exchange, "", Map.of("x-match", "any-with-x", "x-h", "x"));
    String allWithoutX = bound(channel, exchange, "", Map.of("x-match", "all", "x-h", "x", "h1", "v"));
    publish(channel, exchange, "", Map.of("h1", "v", "h2", 2, "h3", 3), "both");
    publish(channel, exchange, "", Map.of("h2", 2), "one");
    publish(channel, exchange, "", Map.of("h1", "v", "x-h", "x"), "with x");
    publish(channel, exchange, "", Map.of("h1", "other"), "none");
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("both"), drain(channel, all));
    equal(List.of("both", "one", "with x"), drain(channel, any));
    equal(List.of("with x"), drain(channel, allWithX));
    equal(List.of("with x"), drain(channel, anyWithX));
    equal(List.of("both", "with x"), drain(channel, allWithoutX));
  }

  public void exchangeToExchange(World world) throws Exception {
    Channel channel = world.confirming();
    String source = exchange(world, channel, BuiltinExchangeType.TOPIC);
    String sink = exchange(world, channel, BuiltinExchangeType.DIRECT);
    channel.exchangeBind(sink, source, "a.#");
    String queue = bound(channel, sink, "a.b", null);
    publish(channel, source, "a.b", null, "1");
    publish(channel, source, "a.c", null, "2");
    channel.waitForConfirmsOrDie(10_000);
    equal(List.of("1"), drain(channel, queue));
    channel.exchangeUnbind(sink, source, "a.#");
    World.refused(404, 40, 10, "no exchange '" + source + "' in vhost '/'", () -> channel.exchangeDeclarePassive(source));
  }
}
