package leveret;

import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;

import com.rabbitmq.client.ShutdownSignalException;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.amqp.AmqpIOException;
import org.springframework.amqp.core.BindingBuilder;
import org.springframework.amqp.core.Declarables;
import org.springframework.amqp.core.DirectExchange;
import org.springframework.amqp.core.Queue;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.core.QueueBuilder.LeaderLocator;
import org.springframework.amqp.core.QueueInformation;
import org.springframework.amqp.rabbit.annotation.EnableRabbit;
import org.springframework.amqp.rabbit.annotation.RabbitListener;
import org.springframework.amqp.rabbit.config.SimpleRabbitListenerContainerFactory;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.core.RabbitAdmin;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.RabbitListenerEndpointRegistry;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.exception.FatalListenerStartupException;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Quorum queues as Spring declares them, in an application and by hand. */
public final class SpringDeclaringTest {

  /** An application as people write it: its queues are beans, its listeners are annotated. */
  @Configuration
  @EnableRabbit
  static class Application {
    private final String name = "java." + UUID.randomUUID();
    final BlockingQueue<String> orders = new LinkedBlockingQueue<>();
    final BlockingQueue<String> dead = new LinkedBlockingQueue<>();

    @Bean
    CachingConnectionFactory connections() {
      return Spring.connections(World.host() + ":" + World.port());
    }

    @Bean
    RabbitAdmin admin(ConnectionFactory connections) {
      return new RabbitAdmin(connections);
    }

    @Bean
    RabbitTemplate template(ConnectionFactory connections) {
      RabbitTemplate template = new RabbitTemplate(connections);
      template.setExchange(name);
      template.setReplyTimeout(World.DEADLINE_SECONDS * 1000L);
      return template;
    }

    @Bean
    SimpleRabbitListenerContainerFactory rabbitListenerContainerFactory(ConnectionFactory connections) {
      SimpleRabbitListenerContainerFactory factory = new SimpleRabbitListenerContainerFactory();
      factory.setConnectionFactory(connections);
      factory.setPrefetchCount(10);
      factory.setReceiveTimeout(50L);
      factory.setRecoveryInterval(100L);
      factory.setFailedDeclarationRetryInterval(100L);
      return factory;
    }

    @Bean
    DirectExchange exchange() {
      return new DirectExchange(name);
    }

    @Bean
    Queue orders() {
      return QueueBuilder.durable(name + ".orders")
          .quorum()
          .deliveryLimit(2)
          .deadLetterExchange(name)
          .deadLetterRoutingKey("dead")
          .leaderLocator(LeaderLocator.balanced)
          .singleActiveConsumer()
          .build();
    }

    @Bean
    Queue requests() {
      return QueueBuilder.durable(name + ".requests").quorum().leaderLocator(LeaderLocator.clientLocal).build();
    }

    @Bean
    Queue dead() {
      return QueueBuilder.durable(name + ".dead").quorum().build();
    }

    @Bean
    Declarables bindings() {
      return new Declarables(
          BindingBuilder.bind(orders()).to(exchange()).with("orders"),
          BindingBuilder.bind(requests()).to(exchange()).with("requests"),
          BindingBuilder.bind(dead()).to(exchange()).with("dead"));
    }

    @RabbitListener(queues = "#{orders.name}", concurrency = "2")
    void order(String order) {
      if (order.startsWith("bad")) {
        throw new IllegalStateException("nobody can do this: " + order);
      }
      orders.add(order);
    }

    @RabbitListener(queues = "#{dead.name}")
    void died(String order) {
      dead.add(order);
    }

    @RabbitListener(queues = "#{requests.name}", concurrency = "1-3")
    String answer(String question) {
      return "re: " + question;
    }
  }

  public void anApplicationDeclaresServesAndComesAgain(World world) throws Exception {
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Application.class)) {
      Application application = context.getBean(Application.class);
      RabbitTemplate template = context.getBean(RabbitTemplate.class);
      RabbitAdmin admin = context.getBean(RabbitAdmin.class);
      try {
        template.convertAndSend("orders", "first");
        template.convertAndSend("orders", "bad one");
        template.convertAndSend("orders", "second");
        equal("re: who", template.convertSendAndReceive("requests", "who"));
        equal(List.of("first", "second"), List.of(next(application.orders), next(application.orders)));
        equal("bad one", next(application.dead));

        // What is there already is declared again by whoever connects again.
        context.getBean(CachingConnectionFactory.class).resetConnection();
        template.convertAndSend("orders", "third");
        equal("third", next(application.orders));

        // A queue that somebody deletes is declared again by the container that misses it.
        admin.deleteQueue(application.orders().getName());
        QueueInformation again = null;
        // Its bindings are declared after it, and it is consumed after them.
        while (again == null || again.getConsumerCount() == 0) {
          Thread.sleep(10);
          again = admin.getQueueInfo(application.orders().getName());
        }
        template.convertAndSend("orders", "fourth");
        equal("fourth", next(application.orders));
      } finally {
        context.getBean(RabbitListenerEndpointRegistry.class).stop();
        for (Queue queue : context.getBeansOfType(Queue.class).values()) {
          admin.deleteQueue(queue.getName());
        }
        admin.deleteExchange(application.exchange().getName());
      }
    }
  }

  public void aQueueThatIsDifferentIsRefusedAndTheNextOneIsNot(World world) throws Exception {
    try (Spring spring = new Spring()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum().singleActiveConsumer());
      spring.declared(QueueBuilder.durable(queue).quorum().singleActiveConsumer());
      refused(spring, QueueBuilder.durable(queue).classic().singleActiveConsumer(), "x-queue-type", "received 'classic' but current is 'quorum'");
      refused(spring, QueueBuilder.durable(queue).quorum(), "x-single-active-consumer", "received none but current is the value 'true' of type 'bool'");
      String other = world.name();
      refusedBecause(spring, QueueBuilder.nonDurable(other).quorum(), "invalid property 'non-durable' for queue '" + other + "' in vhost '/'");

      spring.admin.setIgnoreDeclarationExceptions(true);
      equal(null, spring.admin.declareQueue(QueueBuilder.durable(queue).classic().build()));
      spring.declared(QueueBuilder.durable(other).quorum());
    }
  }

  private static void refused(Spring spring, QueueBuilder builder, String argument, String difference) {
    refusedBecause(spring, builder, "inequivalent arg '" + argument + "' for queue '" + builder.build().getName() + "' in vhost '/': " + difference);
  }

  private static void refusedBecause(Spring spring, QueueBuilder builder, String text) {
    try {
      spring.admin.declareQueue(builder.build());
    } catch (AmqpIOException expected) {
      Throwable cause = expected;
      while (!(cause instanceof ShutdownSignalException) && cause.getCause() != null) {
        cause = cause.getCause();
      }
      check(cause.getMessage().contains("PRECONDITION_FAILED - " + text), cause.getMessage());
      return;
    }
    throw new AssertionError("not refused: " + text);
  }

  public void aContainerDoesNotStartOnAQueueThatIsDifferent(World world) throws Exception {
    try (Spring spring = new Spring();
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      CachingConnectionFactory connections = Spring.connections(World.host() + ":" + World.port());
      context.registerBean("queue", Queue.class, () -> QueueBuilder.durable(queue).classic().build());
      context.registerBean("connections", CachingConnectionFactory.class, () -> connections);
      RabbitAdmin admin = new RabbitAdmin(connections);
      // It would be refused five times.
      admin.setRetryTemplate(null);
      context.registerBean("admin", RabbitAdmin.class, () -> admin);
      context.refresh();
      SimpleMessageListenerContainer container = spring.container(new SimpleMessageListenerContainer(connections), queue, message -> {});
      container.setApplicationContext(context);
      container.setAmqpAdmin(admin);
      container.setMismatchedQueuesFatal(true);
      try {
        container.start();
        throw new AssertionError("the container starts");
      } catch (FatalListenerStartupException expected) {
        check(!container.isRunning(), "the container runs");
      }
    }
  }
}
