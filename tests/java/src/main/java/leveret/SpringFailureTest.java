package leveret;

import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.take;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.aopalliance.aop.Advice;
import org.springframework.amqp.AmqpRejectAndDontRequeueException;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.MessageProperties;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.config.RetryInterceptorBuilder;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;
import org.springframework.amqp.rabbit.retry.RejectAndDontRequeueRecoverer;
import org.springframework.amqp.rabbit.retry.RepublishMessageRecoverer;

/** Listeners that fail on messages of quorum queues: how often they see them, and where these end. */
public final class SpringFailureTest {

  /** A queue whose dead letters go to another one, which is called like it with {@code .dead}. */
  private static String deadLettering(Spring spring, World world, int limit) {
    String queue = world.name();
    spring.declared(QueueBuilder.durable(queue + ".dead").quorum());
    return spring.declared(QueueBuilder.durable(queue).quorum().deliveryLimit(limit).deadLetterExchange("").deadLetterRoutingKey(queue + ".dead"));
  }

  /** What the dead-letter queue got: the message's only death. */
  private static Map<String, ?> death(Spring spring, String queue) {
    List<Map<String, ?>> deaths = spring.received(queue + ".dead").getMessageProperties().getXDeathHeader();
    equal(1, deaths.size());
    equal(queue, deaths.get(0).get("queue"));
    return deaths.get(0);
  }

  public void whatFailsComesAgainUntilTheLimitAndIsDeadLettered(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = deadLettering(spring, world, 2);
        BlockingQueue<List<Object>> seen = new LinkedBlockingQueue<>();
        spring
            .container(
                kind,
                queue,
                message -> {
                  MessageProperties properties = message.getMessageProperties();
                  Number before = properties.getHeader("x-delivery-count");
                  seen.add(List.of(before == null ? 0L : before.longValue(), properties.isRedelivered()));
                  throw new IllegalStateException("never");
                })
            .start();
        spring.fill(queue, 1);
        equal(List.of(List.of(0L, false), List.of(1L, true), List.of(2L, true)), take(seen, 3));
        Map<String, ?> death = death(spring, queue);
        equal(List.of("delivery_limit", 1L), List.of(death.get("reason"), death.get("count")));
        equal(0, seen.size());
      }
    }
  }

  public void whatIsRejectedIsDeadLetteredAtOnce(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = deadLettering(spring, world, 5);
        BlockingQueue<String> seen = new LinkedBlockingQueue<>();
        spring.listen(
            kind,
            queue,
            text -> {
              seen.add(text);
              throw new AmqpRejectAndDontRequeueException("not this one");
            });
        spring.fill(queue, 1);
        equal("rejected", death(spring, queue).get("reason"));
        equal(List.of("0"), new ArrayList<>(seen));
      }
    }
  }

  /** Listens with advice, and fails each time. */
  private static BlockingQueue<Boolean> failing(Spring spring, Spring.Kind kind, String queue, Advice advice) {
    BlockingQueue<Boolean> redelivered = new LinkedBlockingQueue<>();
    AbstractMessageListenerContainer container =
        spring.container(
            kind,
            queue,
            message -> {
              redelivered.add(message.getMessageProperties().isRedelivered());
              throw new IllegalStateException("never");
            });
    container.setAdviceChain(advice);
    container.start();
    return redelivered;
  }

  public void aListenerIsTriedAgainBeforeTheMessageIsRejected(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = deadLettering(spring, world, 5);
        Advice advice = RetryInterceptorBuilder.stateless().maxRetries(2).backOffOptions(10, 2, 50).recoverer(new RejectAndDontRequeueRecoverer()).build();
        BlockingQueue<Boolean> redelivered = failing(spring, kind, queue, advice);
        spring.fill(queue, 1);
        equal("rejected", death(spring, queue).get("reason"));
        equal(List.of(false, false, false), new ArrayList<>(redelivered));
      }
    }
  }

  public void theBrokerBringsAgainWhatIsTriedWithState(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = deadLettering(spring, world, 5);
        String errors = queue + ".dead";
        Advice advice = RetryInterceptorBuilder.stateful().maxRetries(2).backOffOptions(10, 1, 10).recoverer(new RepublishMessageRecoverer(spring.template, "", errors).includeStackTrace(true)).build();
        BlockingQueue<Boolean> redelivered = failing(spring, kind, queue, advice);
        spring.template.convertAndSend(
            "",
            queue,
            (Object) "m",
            message -> {
              message.getMessageProperties().setMessageId("one");
              return message;
            });
        Message failed = spring.received(errors);
        check(failed.getMessageProperties().getHeader(RepublishMessageRecoverer.X_EXCEPTION_STACKTRACE).toString().contains("never"), "no reason is given");
        equal(List.of(false, true, true), new ArrayList<>(redelivered));
        spring.holdsAtLast(0, queue);
      }
    }
  }

  public void aPoisonedMessageDoesNotHoldUpOthers(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = deadLettering(spring, world, 3);
        BlockingQueue<String> done = new LinkedBlockingQueue<>();
        spring.fill(queue, 50);
        spring.listen(
            kind,
            queue,
            text -> {
              if (text.equals("7")) {
                throw new IllegalStateException("poison");
              }
              done.add(text);
            });
        check(!take(done, 49).contains("7"), "it was done");
        equal("delivery_limit", death(spring, queue).get("reason"));
        equal(null, done.peek());
      }
    }
  }
}
