package leveret;

import static leveret.World.bytes;
import static leveret.World.equal;

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.RpcClient;
import com.rabbitmq.client.RpcClientParams;
import com.rabbitmq.client.RpcServer;
import com.rabbitmq.client.StringRpcServer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/** The client's own request and answer, which asks over {@code amq.rabbitmq.reply-to} if it is told nothing else. */
public final class ReplyTest {

  /** Answers requests to a queue until it is closed. */
  private static final class Server implements AutoCloseable {
    private final RpcServer server;
    private final Thread thread;

    Server(Channel channel, String queue) throws Exception {
      server =
          new StringRpcServer(channel, queue) {
            @Override
            public String handleStringCall(String request, BasicProperties replyProperties) {
              return "re: " + request;
            }
          };
      thread =
          new Thread(
              () -> {
                try {
                  server.mainloop();
                } catch (Exception stopped) {
                  // The channel is closed: the test is over.
                }
              });
      thread.start();
    }

    @Override
    public void close() throws Exception {
      server.terminateMainloop();
      // The loop looks whether it is over between two requests, and there are none any more.
      thread.interrupt();
      thread.join(10_000);
    }
  }

  private static RpcClient client(Channel channel, String queue, int timeout) throws Exception {
    return new RpcClient(new RpcClientParams().channel(channel).exchange("").routingKey(queue).timeout(timeout));
  }

  public void requestsAreAnsweredDirectly(World world) throws Exception {
    Channel serving = world.channel();
    String queue = serving.queueDeclare(world.name(), false, false, true, null).getQueue();
    try (Server server = new Server(serving, queue)) {
      RpcClient client = client(world.channel(), queue, 10_000);
      for (int number = 0; number < 200; number++) {
        equal("re: " + number, client.stringCall("" + number));
      }
      client.close();
    }
  }

  public void clientsOfOneServerGetTheirOwnAnswers(World world) throws Exception {
    Channel serving = world.channel();
    String queue = serving.queueDeclare(world.name(), false, false, true, null).getQueue();
    try (Server server = new Server(serving, queue)) {
      List<Thread> threads = new ArrayList<>();
      List<String> wrong = new java.util.concurrent.CopyOnWriteArrayList<>();
      for (int at = 0; at < 8; at++) {
        RpcClient client = client(world.channel(), queue, 10_000);
        String name = "client " + at;
        Thread thread =
            new Thread(
                () -> {
                  try {
                    for (int number = 0; number < 50; number++) {
                      String answer = client.stringCall(name + " " + number);
                      if (!answer.equals("re: " + name + " " + number)) {
                        wrong.add(answer);
                      }
                    }
                  } catch (Exception failed) {
                    wrong.add(failed.toString());
                  }
                });
        thread.start();
        threads.add(thread);
      }
      for (Thread thread : threads) {
        thread.join(30_000);
      }
      equal(List.of(), wrong);
    }
  }

  public void nobodyAnswers(World world) throws Exception {
    Channel channel = world.channel();
    String queue = channel.queueDeclare().getQueue();
    RpcClient client = client(channel, queue, 200);
    try {
      client.primitiveCall(bytes("anybody?"));
      throw new AssertionError("somebody answered");
    } catch (TimeoutException expected) {
      equal(1L, channel.messageCount(queue));
    }
  }
}
