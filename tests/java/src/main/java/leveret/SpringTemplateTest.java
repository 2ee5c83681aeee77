package leveret;

import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.numbers;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.core.QueueBuilder.Overflow;
import org.springframework.amqp.rabbit.AsyncRabbitTemplate;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory.ConfirmType;
import org.springframework.amqp.rabbit.connection.CorrelationData;
import org.springframework.amqp.rabbit.core.RabbitTemplate;
import org.springframework.amqp.rabbit.listener.adapter.MessageListenerAdapter;
import org.springframework.amqp.rabbit.transaction.RabbitTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** What Spring's templates send to quorum queues and fetch from them. */
public final class SpringTemplateTest {

  private static CorrelationData.Confirm confirm(CorrelationData message) throws Exception {
    return message.getFuture().get(World.DEADLINE_SECONDS, TimeUnit.SECONDS);
  }

  private static List<String> drain(RabbitTemplate template, String queue, int count) {
    List<String> texts = new ArrayList<>();
    for (int number = 0; number < count; number++) {
      texts.add((String) template.receiveAndConvert(queue));
    }
    return texts;
  }

  public void eachMessageHasItsConfirmOrItsReturn(World world) throws Exception {
    try (Spring spring = new Spring()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      List<CorrelationData> sent = new ArrayList<>();
      for (int number = 0; number < 300; number++) {
        CorrelationData message = new CorrelationData(Integer.toString(number));
        // Each third goes to a queue that there is not.
        spring.template.convertAndSend("", number % 3 == 0 ? queue + ".none" : queue, Integer.toString(number), message);
        sent.add(message);
      }
      List<String> kept = new ArrayList<>();
      for (CorrelationData message : sent) {
        check(confirm(message).ack(), message + " is not confirmed");
        if (message.getReturned() == null) {
          kept.add(message.getId());
        } else {
          equal(List.of(312, "NO_ROUTE", message.getId()), List.of(message.getReturned().getReplyCode(), message.getReturned().getReplyText(), Spring.text(message.getReturned().getMessage())));
        }
      }
      equal(numbers(0, 300).stream().filter(number -> Integer.parseInt(number) % 3 != 0).toList(), kept);
      // Each may have gone through another channel.
      equal(Set.copyOf(kept), Set.copyOf(drain(spring.template, queue, 200)));
      spring.holdsAtLast(0, queue);
    }
  }

  public void whatAFullQueueRefusesIsToldToItsSender(World world) throws Exception {
    try (Spring spring = new Spring()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum().maxLength(5).overflow(Overflow.rejectPublish));
      boolean refused = false;
      int confirmed = 0;
      // A quorum queue may take a few more than its limit, as in RabbitMQ.
      for (int number = 0; number < 100 && !refused; number++) {
        CorrelationData message = new CorrelationData();
        spring.template.convertAndSend("", queue, "x", message);
        refused = !confirm(message).ack();
        confirmed += refused ? 0 : 1;
      }
      check(refused, "100 are confirmed where 5 are allowed");
      spring.holdsAtLast(confirmed, queue);
    }
  }

  public void confirmsAreWaitedForTogether(World world) throws Exception {
    try (Spring spring = new Spring(World.host() + ":" + World.port(), ConfirmType.SIMPLE)) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      spring.template.invoke(
          operations -> {
            for (String number : numbers(0, 500)) {
              operations.convertAndSend("", queue, number);
            }
            operations.waitForConfirmsOrDie(World.DEADLINE_SECONDS * 1000L);
            return null;
          });
      equal(numbers(0, 500), drain(spring.template, queue, 500));
    }
  }

  public void aTransactionThatFailsSendsAndTakesNothing(World world) throws Exception {
    try (Spring spring = new Spring(World.host() + ":" + World.port(), ConfirmType.NONE)) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      spring.template.setChannelTransacted(true);
      TransactionTemplate transaction = new TransactionTemplate(new RabbitTransactionManager(spring.connections));
      transaction.executeWithoutResult(status -> spring.template.convertAndSend("", queue, "kept"));
      try {
        transaction.executeWithoutResult(
            status -> {
              equal("kept", spring.template.receiveAndConvert(queue));
              spring.template.convertAndSend("", queue, "lost");
              throw new IllegalStateException("no");
            });
        throw new AssertionError("it did not fail");
      } catch (IllegalStateException expected) {
        equal("no", expected.getMessage());
      }
      Message again = transaction.execute(status -> spring.received(queue));
      equal(List.of("kept", true), List.of(Spring.text(again), again.getMessageProperties().isRedelivered()));
      spring.holdsAtLast(0, queue);
    }
  }

  public void requestsAreAnsweredDirectlyToManyWhoAsk(World world) throws Exception {
    try (Spring spring = new Spring()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      Object server =
          new Object() {
            @SuppressWarnings("unused")
            public String handleMessage(String question) {
              return "re: " + question;
            }
          };
      spring.container(Spring.Kind.DIRECT, queue, 2, new MessageListenerAdapter(server)).start();
      spring.template.setReplyTimeout(World.DEADLINE_SECONDS * 1000L);
      List<CompletableFuture<Void>> askers = new ArrayList<>();
      for (int asker = 0; asker < 4; asker++) {
        String name = "asker " + asker + " ";
        askers.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int number = 0; number < 50; number++) {
                    equal("re: " + name + number, spring.template.convertSendAndReceive("", queue, name + number));
                  }
                },
                task -> new Thread(task).start()));
      }
      for (CompletableFuture<Void> asker : askers) {
        asker.get(World.DEADLINE_SECONDS, TimeUnit.SECONDS);
      }
      AsyncRabbitTemplate async = new AsyncRabbitTemplate(spring.template);
      async.start();
      try {
        List<CompletableFuture<String>> answers = new ArrayList<>();
        for (String number : numbers(0, 50)) {
          answers.add(async.convertSendAndReceive("", queue, number));
        }
        for (int number = 0; number < 50; number++) {
          equal("re: " + number, answers.get(number).get(World.DEADLINE_SECONDS, TimeUnit.SECONDS));
        }
      } finally {
        async.stop();
      }
    }
  }
}
