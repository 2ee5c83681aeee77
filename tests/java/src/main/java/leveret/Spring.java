package leveret;

import static leveret.World.check;
import static leveret.World.equal;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.core.QueueInformation;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.DirectMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;

/** What a Spring application has: connections, an admin, a template, and containers with listeners. At the end its queues are deleted. */
final class Spring implements AutoCloseable {

  /** The two kinds of containers that Spring has. */
  enum Kind {
    SIMPLE,
    DIRECT
  }

  final CachingConnectionFactory connections;
  final RabbitAdmin admin;
  final RabbitTemplate template;
  private final Deque<Runnable> endings = new ArrayDeque<>();

  Spring() {
    this(World.host() + ":" + World.port(), ConfirmType.CORRELATED);
  }

  Spring(String addresses, ConfirmType confirms) {
    connections = connections(addresses);
    connections.setPublisherConfirmType(confirms);
    connections.setPublisherReturns(true);
    endings.push(connections::destroy);
    admin = new RabbitAdmin(connections);
    template = new RabbitTemplate(connections);
    template.setMandatory(true);
    template.setReceiveTimeout(World.DEADLINE_SECONDS * 1000L);
  }

  static CachingConnectionFactory connections(String addresses) {
    CachingConnectionFactory connections = new CachingConnectionFactory();
    connections.setAddresses(addresses);
    connections.setConnectionNameStrategy(factory -> "spring test");
    return connections;
  }

  /** Declares a queue that is deleted at the end, and returns its name. */
  String declared(QueueBuilder builder) {
    Queue queue = builder.build();
    equal(queue.getName(), admin.declareQueue(queue));
    endings.push(() -> admin.deleteQueue(queue.getName()));
    return queue.getName();
  }

  /** Sends the numbers from 0; each is confirmed. */
  void fill(String queue, int count) {
    template.invoke(
        operations -> {
          for (int number = 0; number < count; number++) {
            operations.convertAndSend("", queue, Integer.toString(number));
          }
          return null;
        });
  }

  /** A container that starts when the test says so, and stops at the end. */
  <C extends AbstractMessageListenerContainer> C container(C container, String queue, MessageListener listener) {
    container.setQueueNames(queue);
    container.setMessageListener(listener);
    return stoppedAtLast(container);
  }

  <C extends AbstractMessageListenerContainer> C stoppedAtLast(C container) {
    container.setRecoveryInterval(200);
    container.setShutdownTimeout(5000);
    endings.push(container::destroy);
    return container;
  }

  AbstractMessageListenerContainer container(Kind kind, String queue, MessageListener listener) {
    return switch (kind) {
      case SIMPLE -> {
        SimpleMessageListenerContainer container = new SimpleMessageListenerContainer(connections);
        container.setReceiveTimeout(50);
        yield container(container, queue, listener);
      }
      case DIRECT -> container(new DirectMessageListenerContainer(connections), queue, listener);
    };
  }

  /** The same with as many consumers. */
  AbstractMessageListenerContainer container(Kind kind, String queue, int consumers, MessageListener listener) {
    AbstractMessageListenerContainer container = container(kind, queue, listener);
    if (container instanceof SimpleMessageListenerContainer simple) {
      simple.setConcurrentConsumers(consumers);
    } else if (container instanceof DirectMessageListenerContainer direct) {
      direct.setConsumersPerQueue(consumers);
    }
    return container;
  }

  /** Starts a container with a listener that gets texts. */
  AbstractMessageListenerContainer listen(Kind kind, String queue, Consumer<String> listener) {
    AbstractMessageListenerContainer container = container(kind, queue, message -> listener.accept(text(message)));
    container.start();
    return container;
  }

  static String text(Message message) {
    return World.text(message.getBody());
  }

  /** The next message of a queue, which is there within the deadline. */
  Message received(String queue) {
    Message message = template.receive(queue);
    check(message != null, "nothing came to " + queue);
    return message;
  }

  /** Until the queue says that it has so many messages that wait. */
  void holdsAtLast(long expected, String queue) throws Exception {
    long deadline = System.nanoTime() + World.DEADLINE_SECONDS * 1_000_000_000L;
    QueueInformation found;
    do {
      found = admin.getQueueInfo(queue);
    } while (found.getMessageCount() != expected && System.nanoTime() < deadline);
    equal(expected, (long) found.getMessageCount());
  }

  @Override
  public void close() {
    while (!endings.isEmpty()) {
      endings.pop().run();
    }
  }
}
