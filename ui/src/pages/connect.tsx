// How to connect, in five languages, with what this broker listens on filled in.

import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { Card, Head } from "../parts/bits";
import { Text } from "../parts/form";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { go } from "../router";
import { isMonitor, session } from "../session";
import { vhost } from "../vhost";
import { VhostChoice } from "../parts/vhosts";
import type { Listener, OverviewBody } from "./overview";

export function Connect() {
  const mayAsk = isMonitor();
  const body = useApi<OverviewBody>(mayAsk ? "/overview?columns=listeners" : null).value;
  return (
    <>
      <Head title="Connect a client" />
      {/* A port that came later would get into what somebody is typing already. */}
      {(body || !mayAsk) && <FirstSteps listeners={body?.listeners} />}
    </>
  );
}

export function FirstSteps({ listeners }: { listeners: Listener[] | undefined }) {
  const door = listeners?.find((listener) => listener.protocol === "amqp" || listener.protocol === "amqp/ssl");
  const [port, setPort] = useState<string | null>(null);
  const [host, setHost] = useState(location.hostname);
  const [user, setUser] = useState(session.get()?.name ?? "guest");
  const [chosen, setChosen] = useState(vhost.get() || "/");
  const [language, setLanguage] = useState("Python");
  const address = { host: host.includes(":") && !host.startsWith("[") ? `[${host}]` : host, port: port ?? String(door?.port ?? 5672), user, vhost: chosen };
  return (
    <Card title="Connect a client" wide>
      <div class="row">
        <Text label="Host" value={host} onChange={setHost} />
        <Text label="Port" value={address.port} onChange={setPort} />
        <Text label="User" value={user} onChange={setUser} />
        <VhostChoice value={chosen} onChange={setChosen} />
      </div>
      <div class="tabs" role="group" aria-label="Language">
        {Object.keys(SAMPLES).map((name) => (
          <button type="button" key={name} aria-pressed={name === language} onClick={() => setLanguage(name)}>
            {name}
          </button>
        ))}
      </div>
      <pre tabIndex={0}>
        <code>{SAMPLES[language]!(address)}</code>
      </pre>
      <Sample host={chosen} />
    </Card>
  );
}

/** How many messages the sample is, and how long there is between two, in milliseconds. */
const SAMPLE = { messages: 60, pause: 250 };

/** A queue with a bit of traffic, to have something to look at: three messages come for two that go. */
function Sample({ host }: { host: string }) {
  const start = () =>
    attempt("The queue sample was created; messages flow through it for 15 seconds", async () => {
      await call("PUT", `/queues/${enc(host)}/sample`, { durable: true, auto_delete: false, arguments: {} });
      go("queues", host, "sample");
      void traffic(host);
    });
  return (
    <p class="buttons">
      <button type="button" onClick={start}>
        Create a sample queue
      </button>
      <span class="muted">a queue named sample and {SAMPLE.messages} small messages</span>
    </p>
  );
}

async function traffic(host: string): Promise<void> {
  for (let at = 1; at <= SAMPLE.messages; at++) {
    const payload = JSON.stringify({ number: at, words: "A sample from the web UI" });
    await call("POST", `/exchanges/${enc(host)}/amq.default/publish`, { routing_key: "sample", payload, payload_encoding: "string", properties: { content_type: "application/json" } });
    if (at % 3 !== 0) await call("POST", `/queues/${enc(host)}/sample/get`, { count: 1, ackmode: "ack_requeue_false", encoding: "auto" });
    await new Promise((resolve) => setTimeout(resolve, SAMPLE.pause));
  }
}

interface Address {
  host: string;
  port: string;
  user: string;
  vhost: string;
}

/** An AMQP address; every language below reads it. */
const uri = ({ host, port, user, vhost: name }: Address) => `amqp://${encodeURIComponent(user)}:PASSWORD@${host}:${port}/${encodeURIComponent(name)}`;

const SAMPLES: Record<string, (address: Address) => string> = {
  Python: (address) => `# pip install pika
import pika

connection = pika.BlockingConnection(pika.URLParameters("${uri(address)}"))
channel = connection.channel()
channel.queue_declare("hello", durable=True)
channel.basic_publish("", "hello", b"Hello!")
method, properties, body = channel.basic_get("hello", auto_ack=True)
print(body)`,
  "Node.js": (address) => `// npm install amqplib
const connection = await require("amqplib").connect("${uri(address)}");
const channel = await connection.createChannel();
await channel.assertQueue("hello");
channel.sendToQueue("hello", Buffer.from("Hello!"));
await channel.consume("hello", (message) => {
  console.log(message.content.toString());
  channel.ack(message);
});`,
  Java: (address) => `// com.rabbitmq:amqp-client
ConnectionFactory factory = new ConnectionFactory();
factory.setUri("${uri(address)}");
try (Connection connection = factory.newConnection()) {
  Channel channel = connection.createChannel();
  channel.queueDeclare("hello", true, false, false, null);
  channel.basicPublish("", "hello", null, "Hello!".getBytes());
}`,
  Go: (address) => `// go get github.com/rabbitmq/amqp091-go
connection, err := amqp.Dial("${uri(address)}")
if err != nil { log.Fatal(err) }
defer connection.Close()
channel, _ := connection.Channel()
channel.QueueDeclare("hello", true, false, false, false, nil)
channel.PublishWithContext(ctx, "", "hello", false, false,
    amqp.Publishing{Body: []byte("Hello!")})`,
  Rust: (address) => `// cargo add lapin
let connection = Connection::connect("${uri(address)}", Default::default()).await?;
let channel = connection.create_channel().await?;
channel.queue_declare("hello".into(), Default::default(), Default::default()).await?;
channel.basic_publish("".into(), "hello".into(), Default::default(),
    b"Hello!", Default::default()).await?;`,
};
