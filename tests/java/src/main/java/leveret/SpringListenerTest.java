package leveret;

import static leveret.World.check;
import static leveret.World.equal;
import static leveret.World.next;
import static leveret.World.numbers;
import static leveret.World.take;

import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.springframework.amqp.core.AcknowledgeMode;
import org.springframework.amqp.core.Message;
import org.springframework.amqp.core.QueueBuilder;
import org.springframework.amqp.rabbit.listener.AbstractMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.amqp.rabbit.listener.api.ChannelAwareBatchMessageListener;
import org.springframework.amqp.rabbit.listener.api.ChannelAwareMessageListener;

/** Spring's two kinds of containers on quorum queues. */
public final class SpringListenerTest {

  private static List<String> sorted(List<String> numbers) {
    return numbers.stream().sorted(Comparator.comparing(Integer::valueOf)).toList();
  }

  public void severalConsumersGetEachMessageOnce(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      for (AcknowledgeMode mode : List.of(AcknowledgeMode.AUTO, AcknowledgeMode.NONE)) {
        try (Spring spring = new Spring()) {
          String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
          BlockingQueue<String> heard = new LinkedBlockingQueue<>();
          AbstractMessageListenerContainer container = spring.container(kind, queue, 3, message -> heard.add(Spring.text(message)));
          container.setAcknowledgeMode(mode);
          container.setPrefetchCount(10);
          container.start();
          spring.fill(queue, 300);
          equal(numbers(0, 300), sorted(take(heard, 300)));
          container.stop();
          spring.holdsAtLast(0, queue);
          equal(0, heard.size());
        }
      }
    }
  }

  public void aListenerAcknowledgesByItself(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        ChannelAwareMessageListener listener =
            (Message message, Channel channel) -> {
              long tag = message.getMessageProperties().getDeliveryTag();
              String text = Spring.text(message);
              boolean again = Boolean.TRUE.equals(message.getMessageProperties().isRedelivered());
              if (text.equals("3") && !again) {
                channel.basicNack(tag, false, true);
              } else if (Integer.parseInt(text) % 10 == 9) {
                channel.basicAck(tag, true);
              }
              heard.add(again ? text + " again" : text);
            };
        AbstractMessageListenerContainer container = spring.container(kind, queue, listener);
        container.setAcknowledgeMode(AcknowledgeMode.MANUAL);
        container.setPrefetchCount(20);
        spring.fill(queue, 20);
        container.start();
        List<String> all = take(heard, 21);
        check(all.contains("3") && all.contains("3 again"), all.toString());
        container.stop();
        // What came again after the last acknowledgement of all before it is still the queue's.
        spring.holdsAtLast(all.get(20).equals("3 again") ? 1 : 0, queue);
      }
    }
  }

  public void messagesComeInBatchesAndABatchThatFailsComesAgain(World world) throws Exception {
    try (Spring spring = new Spring()) {
      String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
      BlockingQueue<List<Message>> batches = new LinkedBlockingQueue<>();
      AtomicBoolean failed = new AtomicBoolean();
      ChannelAwareBatchMessageListener listener =
          (messages, channel) -> {
            if (!failed.getAndSet(true)) {
              throw new IllegalStateException("not the first one");
            }
            batches.add(messages);
          };
      SimpleMessageListenerContainer container = spring.container(new SimpleMessageListenerContainer(spring.connections), queue, listener);
      container.setConsumerBatchEnabled(true);
      container.setBatchSize(10);
      container.setReceiveTimeout(50);
      container.setBatchReceiveTimeout(200);
      spring.fill(queue, 45);
      container.start();
      List<Message> all = new ArrayList<>();
      while (all.size() < 45) {
        List<Message> batch = next(batches);
        check(batch.size() <= 10, batch.size() + " in a batch");
        all.addAll(batch);
      }
      equal(numbers(0, 45), sorted(all.stream().map(Spring::text).toList()));
      check(all.stream().filter(message -> message.getMessageProperties().isRedelivered()).count() >= 10, "the first batch does not come again");
      container.stop();
      spring.holdsAtLast(0, queue);
    }
  }

  public void oneOfTwoApplicationsIsActiveAndTheOtherTakesOver(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring first = new Spring();
          Spring second = new Spring()) {
        String queue = first.declared(QueueBuilder.durable(world.name()).quorum().singleActiveConsumer());
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AbstractMessageListenerContainer active = first.listen(kind, queue, text -> heard.add("first " + text));
        first.fill(queue, 1);
        equal("first 0", next(heard));
        second.listen(kind, queue, text -> heard.add("second " + text));
        first.fill(queue, 20);
        equal(numbers(0, 20).stream().map(number -> "first " + number).toList(), take(heard, 20));
        active.stop();
        first.fill(queue, 20);
        equal(numbers(0, 20).stream().map(number -> "second " + number).toList(), take(heard, 20));
      }
    }
  }

  public void whatAContainerHasNotBegunGoesBackWhenItStops(World world) throws Exception {
    for (Spring.Kind kind : Spring.Kind.values()) {
      try (Spring spring = new Spring()) {
        String queue = spring.declared(QueueBuilder.durable(world.name()).quorum());
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch goOn = new CountDownLatch(1);
        BlockingQueue<String> heard = new LinkedBlockingQueue<>();
        AbstractMessageListenerContainer container =
            spring.container(
                kind,
                queue,
                message -> {
                  begun.countDown();
                  try {
                    goOn.await();
                  } catch (InterruptedException stopped) {
                    throw new IllegalStateException(stopped);
                  }
                  heard.add(Spring.text(message));
                });
        container.setPrefetchCount(10);
        container.setForceStop(true);
        spring.fill(queue, 10);
        container.start();
        check(begun.await(World.DEADLINE_SECONDS, TimeUnit.SECONDS), "nothing came");
        CountDownLatch stopped = new CountDownLatch(1);
        container.stop(stopped::countDown);
        goOn.countDown();
        check(stopped.await(World.DEADLINE_SECONDS, TimeUnit.SECONDS), "the container does not stop");
        int done = heard.size();
        spring.holdsAtLast(10 - done, queue);
        spring.listen(kind, queue, heard::add);
        equal(numbers(0, 10), sorted(take(heard, 10)));
      }
    }
  }
}
