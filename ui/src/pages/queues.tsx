import { call, enc } from "../api";
import { at, bytes, count, duration, milliseconds, rate } from "../format";
import { Badge, Head, NameLink, State, Vhost } from "../parts/bits";
import { DialogButton } from "../parts/dialog";
import { Check, Choice, Form, Table, Text, readTable } from "../parts/form";
import { Listing, type Column } from "../parts/listing";
import { go, href } from "../router";
import { useState } from "preact/hooks";
import { inVhost, vhost } from "../vhost";
import { VhostChoice } from "../parts/vhosts";
import { queueArguments } from "./shortcuts";

export interface QueueBody {
  name: string;
  vhost: string;
  type?: string;
  durable?: boolean;
  auto_delete?: boolean;
  exclusive?: boolean;
  state?: string;
  node?: string;
  consumers?: number;
  messages?: number;
  messages_ready?: number;
  messages_unacknowledged?: number;
  message_stats?: Record<string, unknown>;
  oldest_message_age_ms?: number | null;
  latency?: Record<string, { p50_ms?: number; p95_ms?: number; p99_ms?: number } | null> | null;
  arguments?: Record<string, unknown>;
  policy?: string | null;
  operator_policy?: string | null;
  message_bytes?: number;
  memory?: number;
  effective_policy_definition?: unknown;
}

/** What a queue is: its type, if it is no classic one, and letters as RabbitMQ's UI has them, each with its meaning. */
export function Features({ queue }: { queue: QueueBody }) {
  const given = { ...(queue.effective_policy_definition as object), ...queue.arguments } as Record<string, unknown>;
  const has = (name: string) => `x-${name}` in given || name in given;
  const letters: [boolean, string, string][] = [
    [queue.type === "quorum", "quorum", "has copies on several nodes of a cluster"],
    [queue.type === "stream", "stream", "keeps its messages for any number of readers"],
    [queue.durable === true, "D", "durable: survives a restart"],
    [queue.auto_delete === true, "AD", "auto-delete: deleted when its last consumer goes"],
    [queue.exclusive === true, "Excl", "exclusive: belongs to one connection"],
    [has("message-ttl"), "TTL", "messages expire"],
    [has("expires"), "Exp", "the queue is deleted when it is unused"],
    [has("max-length") || has("max-length-bytes"), "Lim", "has a maximum length"],
    [has("dead-letter-exchange"), "DLX", "has a dead letter exchange"],
    [has("max-priority"), "Pri", "has priorities"],
    [has("single-active-consumer"), "SAC", "single active consumer"],
  ];
  return (
    <>
      {letters
        .filter(([there]) => there)
        .map(([, letter, words]) => (
          <Badge key={letter} title={words}>
            {letter}
          </Badge>
        ))}
    </>
  );
}

const perSecond = (name: string) => (queue: QueueBody) => rate(at(queue, `message_stats.${name}_details.rate`));
const rateOf = (name: string) => `message_stats.${name}_details.rate`;

const COLUMNS: Column<QueueBody>[] = [
  { title: "Name", sort: "name", cell: (queue) => <NameLink to={href("queues", queue.vhost, queue.name)} name={queue.name} /> },
  { title: "Virtual host", sort: "vhost", cell: (queue) => <Vhost name={queue.vhost} />, from: 4 },
  { title: "Type", sort: "type", cell: (queue) => queue.type, from: 5 },
  { title: "Features", cell: (queue) => <Features queue={queue} />, from: 3 },
  { title: "Policy", sort: "policy", cell: (queue) => queue.policy, from: 4 },
  { title: "Operator policy", sort: "operator_policy", cell: (queue) => queue.operator_policy, from: 5 },
  { title: "State", sort: "state", cell: (queue) => <State value={queue.state} />, from: 4 },
  { title: "Node", sort: "node", cell: (queue) => queue.node, from: 5, hint: "the node of the cluster that has it" },
  { title: "Ready", sort: "messages_ready", number: true, cell: (queue) => count(queue.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", number: true, cell: (queue) => count(queue.messages_unacknowledged), from: 2 },
  { title: "Total", sort: "messages", number: true, cell: (queue) => count(queue.messages), from: 5 },
  { title: "Publish", sort: rateOf("publish"), number: true, cell: perSecond("publish") },
  { title: "Deliver", sort: rateOf("deliver_get"), number: true, cell: perSecond("deliver_get"), hint: "delivered and got" },
  { title: "Ack", sort: rateOf("ack"), number: true, cell: perSecond("ack"), from: 4 },
  { title: "Redelivered", sort: rateOf("redeliver"), number: true, cell: perSecond("redeliver"), from: 5 },
  { title: "Dropped", sort: rateOf("dropped"), number: true, cell: perSecond("dropped"), from: 5, hint: "dropped for good: by a maximum length, a TTL, a rejection, a delivery limit or a purge" },
  { title: "Dead-lettered", sort: rateOf("dead_lettered"), number: true, cell: perSecond("dead_lettered"), from: 5 },
  { title: "Oldest", sort: "oldest_message_age_ms", number: true, cell: (queue) => duration(queue.oldest_message_age_ms), from: 2, hint: "age of the oldest ready message" },
  { title: "p99 latency", sort: "latency.publish_to_deliver.p99_ms", number: true, cell: (queue) => milliseconds(queue.latency?.["publish_to_deliver"]?.p99_ms), from: 3, hint: "from publish to delivery, 99th percentile" },
  { title: "Consumers", sort: "consumers", number: true, cell: (queue) => count(queue.consumers), from: 2 },
  { title: "Message bytes", sort: "message_bytes", number: true, cell: (queue) => bytes(queue.message_bytes), from: 5 },
  { title: "Memory", sort: "memory", number: true, cell: (queue) => bytes(queue.memory), from: 5 },
];

export function Queues() {
  vhost.use();
  return (
    <>
      <Head title="Queues">
        <DialogButton label="New queue" class="primary" title="New queue">
          {(close) => <NewQueue close={close} />}
        </DialogButton>
      </Head>
      <Listing path={inVhost("queues")} what="queues" columns={COLUMNS} id={(queue) => `${queue.vhost}/${queue.name}`} />
    </>
  );
}

const TYPES: [string, string][] = [
  ["", "default of the virtual host"],
  ["classic", "classic"],
  ["quorum", "quorum"],
  ["stream", "stream"],
];
const MEANINGS: Record<string, string> = {
  classic: "On one node",
  quorum: "Copies on several nodes of a cluster",
  stream: "Keeps its messages; any number of consumers read them, from any offset",
};

function NewQueue({ close }: { close(): void }) {
  const [host, setHost] = useState(vhost.get() || "/");
  const [name, setName] = useState("");
  const [type, setType] = useState("");
  const [durable, setDurable] = useState(true);
  const [transient, setTransient] = useState(false);
  const [table, setTable] = useState("");
  // Queues of the other types are durable, and stay when their consumers go.
  const mayEnd = type === "" || type === "classic";
  const create = () => {
    const all = { ...(type !== "" && { "x-queue-type": type }), ...readTable(table) };
    return call("PUT", `/queues/${enc(host)}/${enc(name)}`, { durable: durable || !mayEnd, auto_delete: transient && mayEnd, arguments: all });
  };
  return (
    <Form label="Create" done={`Queue ${name} was created`} action={create} then={() => (close(), go("queues", host, name))}>
      <VhostChoice value={host} onChange={setHost} />
      <Text label="Name" value={name} onChange={setName} required />
      <Choice label="Type" value={type} options={TYPES} onChange={setType} hint={MEANINGS[type]} />
      {mayEnd && <Check label="Durable: survives a restart" value={durable} onChange={setDurable} />}
      {mayEnd && <Check label="Auto-delete: deleted when its last consumer goes" value={transient} onChange={setTransient} />}
      <Table label="Arguments" value={table} onChange={setTable} shortcuts={queueArguments(type)} />
    </Form>
  );
}
