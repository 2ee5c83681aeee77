package leveret;

import static leveret.World.bytes;
import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.isHard;
import static leveret.World.next;
import static leveret.World.refused;

import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownNotifier;
import com.rabbitmq.client.ShutdownSignalException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Errors with their code, failing method, text and scope. */
public final class ErrorTest {

  private static ShutdownSignalException closing(ShutdownNotifier what, World.Request request) throws Exception {
    BlockingQueue<ShutdownSignalException> signals = new LinkedBlockingQueue<>();
    what.addShutdownListener(signals::add);
    request.run();
    return next(signals);
  }

  public void notFound(World world) throws Exception {
    Connection connection = world.connect(World.port());
    String missing = world.name();
    String noQueue = "NOT_FOUND - no queue '" + missing + "' in vhost '/'";
    String noExchange = "NOT_FOUND - no exchange '" + missing + "' in vhost '/'";
    refused(404, 50, 10, noQueue, () -> connection.createChannel().queueDeclarePassive(missing));
    refused(404, 60, 20, noQueue, () -> connection.createChannel().basicConsume(missing, (tag, delivery) -> {}, tag -> {}));
    refused(404, 60, 70, noQueue, () -> connection.createChannel().basicGet(missing, true));
    refused(404, 50, 20, noQueue, () -> connection.createChannel().queueBind(missing, "amq.direct", "k"));
    refused(404, 50, 30, noQueue, () -> connection.createChannel().queuePurge(missing));
    refused(404, 40, 10, noExchange, () -> connection.createChannel().exchangeDeclarePassive(missing));
    refused(404, 40, 30, noExchange, () -> connection.createChannel().exchangeBind("amq.direct", missing, "k"));
    refused(404, 60, 20, "NOT_FOUND - no previously declared queue", () -> connection.createChannel().basicConsume("", (tag, delivery) -> {}, tag -> {}));
    Channel publisher = connection.createChannel();
    check(!isHard(404, 60, 40, noExchange, closing(publisher, () -> publisher.basicPublish(missing, "k", null, bytes("x")))), "channel only");
    check(connection.isOpen(), "the connection stays");
  }

  public void accessRefused(World world) throws Exception {
    Connection connection = world.connect(World.port());
    String onDefault = "ACCESS_REFUSED - operation not permitted on the default exchange";
    refused(403, 40, 20, onDefault, () -> connection.createChannel().exchangeDelete(""));
    refused(403, 40, 20, "ACCESS_REFUSED - deletion of system exchange 'amq.match' in vhost '/' not allowed", () -> connection.createChannel().exchangeDelete("amq.match"));
    refused(403, 40, 10, "exchange name 'amq.own' contains reserved prefix 'amq.*'", () -> connection.createChannel().exchangeDeclare("amq.own", "direct"));
    Channel holder = connection.createChannel();
    String queue = holder.queueDeclare().getQueue();
    refused(403, 50, 20, onDefault, () -> connection.createChannel().queueBind(queue, "", "k"));
    holder.basicConsume(queue, true, "alone", false, true, null, (tag, delivery) -> {}, tag -> {});
    refused(403, 60, 20, "ACCESS_REFUSED - queue '" + queue + "' in vhost '/' in exclusive use", () -> connection.createChannel().basicConsume(queue, (tag, delivery) -> {}, tag -> {}));
    String internal = world.name();
    holder.exchangeDeclare(internal, "fanout", false, true, true, null);
    Channel publisher = connection.createChannel();
    check(!isHard(403, 60, 40, "cannot publish to internal exchange '" + internal + "'", closing(publisher, () -> publisher.basicPublish(internal, "", null, bytes("x")))), "channel only");
    holder.exchangeDelete(internal);
  }

  public void preconditionFailed(World world) throws Exception {
    Connection connection = world.connect(World.port());
    String name = world.name();
    Channel holder = connection.createChannel();
    holder.queueDeclare(name, false, true, false, Map.of("x-max-length", 3));
    holder.exchangeDeclare(name, "direct");
    refused(406, 50, 10, "inequivalent arg 'auto_delete' for queue '" + name + "' in vhost '/': received 'true' but current is 'false'", () -> connection.createChannel().queueDeclare(name, false, true, true, Map.of("x-max-length", 3)));
    refused(406, 50, 10, "inequivalent arg 'x-max-length' for queue '" + name + "' in vhost '/': received none but current is the value '3' of type 'signedint'", () -> connection.createChannel().queueDeclare(name, false, true, false, null));
    refused(406, 40, 10, "inequivalent arg 'type' for exchange '" + name + "' in vhost '/': received 'topic' but current is 'direct'", () -> connection.createChannel().exchangeDeclare(name, "topic"));
    refused(406, 40, 10, "unknown exchange type 'nonsense'", () -> connection.createChannel().exchangeDeclare(name, "nonsense"));
    holder.basicConsume(name, (tag, delivery) -> {}, tag -> {});
    refused(406, 50, 40, "PRECONDITION_FAILED - queue '" + name + "' in vhost '/' in use", () -> connection.createChannel().queueDelete(name, true, false));
    holder.queueBind(name, name, "k");
    refused(406, 40, 20, "PRECONDITION_FAILED - exchange '" + name + "' in vhost '/' in use", () -> connection.createChannel().exchangeDelete(name, true));
    Channel acking = connection.createChannel();
    check(!isHard(406, 60, 80, "unknown delivery tag 5", closing(acking, () -> acking.basicAck(5, false))), "channel only");
    holder.exchangeDelete(name);
  }

  public void notAllowed(World world) throws Exception {
    Channel channel = world.channel();
    String queue = channel.queueDeclare().getQueue();
    channel.basicConsume(queue, false, "twice", (tag, delivery) -> {}, tag -> {});
    ShutdownSignalException signal = World.shutdownOf(() -> channel.basicConsume(queue, false, "twice", (tag, delivery) -> {}, tag -> {}));
    check(isHard(530, 60, 20, "NOT_ALLOWED - attempt to reuse consumer tag 'twice'", signal), "the whole connection");
  }

  public void notImplemented(World world) throws Exception {
    Connection first = world.connect(World.port());
    Channel publisher = first.createChannel();
    check(isHard(540, 60, 40, "NOT_IMPLEMENTED - immediate=true", closing(first, () -> publisher.basicPublish("", "q", false, true, null, bytes("x")))), "the whole connection");
    Channel second = world.channel();
    check(isHard(540, 60, 10, "NOT_IMPLEMENTED - prefetch_size!=0 (9)", World.shutdownOf(() -> second.basicQos(9, 1, false))), "the whole connection");
  }

  public void login(World world) throws Exception {
    ConnectionFactory wrong = World.factory(World.port());
    wrong.setPassword("wrong");
    try {
      wrong.newConnection();
      throw new AssertionError("logged in with a wrong password");
    } catch (AuthenticationFailureException refused) {
      check(refused.getMessage().contains("ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN"), refused.getMessage());
    }
    ConnectionFactory nowhere = World.factory(World.port());
    nowhere.setVirtualHost("nope");
    ShutdownSignalException signal = World.shutdownOf(nowhere::newConnection);
    check(isHard(530, 10, 40, "NOT_ALLOWED - vhost nope not found", signal), "the whole connection");
  }

  public void aChannelNumberMayBeUsedAgain(World world) throws Exception {
    Connection connection = world.connect(World.port());
    Channel channel = connection.createChannel(5);
    refused(404, 50, 10, "no queue", () -> channel.queueDeclarePassive(world.name()));
    Channel again = connection.createChannel(5);
    equal(5, again.getChannelNumber());
    again.queueDeclare();
  }
}
