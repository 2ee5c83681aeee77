import { call, enc } from "../api";
import { at, count, duration, milliseconds, rate } from "../format";
import { Badge, Head, State, Vhost } from "../parts/bits";
import { DialogButton } from "../parts/dialog";
import { Check, Choice, Form, Table, Text, readTable } from "../parts/form";
import { Listing, type Column } from "../parts/listing";
import { go, href } from "../router";
import { useState } from "preact/hooks";
import { inVhost, vhost } from "../vhost";
import { VhostChoice } from "../parts/vhosts";

export interface QueueBody {
  name: string;
  vhost: string;
  type?: string;
  durable?: boolean;
  auto_delete?: boolean;
  exclusive?: boolean;
  state?: string;
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
  effective_policy_definition?: unknown;
}

/** What a queue is, in letters as RabbitMQ's UI has them, each with its meaning. */
export function Features({ queue }: { queue: QueueBody }) {
  const given = { ...(queue.effective_policy_definition as object), ...queue.arguments } as Record<string, unknown>;
  const has = (name: string) => `x-${name}` in given || name in given;
  const letters: [boolean, string, string][] = [
    [queue.durable === true, "D", "durable: survives a restart"],
    [queue.auto_delete === true, "AD", "deleted with its last consumer"],
    [queue.exclusive === true, "Excl", "belongs to one connection"],
    [has("message-ttl"), "TTL", "messages live for a limited time"],
    [has("expires"), "Exp", "the queue is deleted when nobody uses it"],
    [has("max-length") || has("max-length-bytes"), "Lim", "limited in length"],
    [has("dead-letter-exchange"), "DLX", "dead messages go to an exchange"],
    [has("max-priority"), "Pri", "has priorities"],
    [has("single-active-consumer"), "SAC", "one consumer at a time"],
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
      {queue.policy && <Badge title="policy">{queue.policy}</Badge>}
    </>
  );
}

const COLUMNS: Column<QueueBody>[] = [
  { title: "Name", sort: "name", cell: (queue) => <a href={href("queues", queue.vhost, queue.name)}>{queue.name}</a> },
  { title: "Virtual host", sort: "vhost", cell: (queue) => <Vhost name={queue.vhost} />, from: 3 },
  { title: "Type", sort: "type", cell: (queue) => queue.type, from: 4 },
  { title: "Features", cell: (queue) => <Features queue={queue} />, from: 2 },
  { title: "State", sort: "state", cell: (queue) => <State value={queue.state} />, from: 2 },
  { title: "Ready", sort: "messages_ready", number: true, cell: (queue) => count(queue.messages_ready) },
  { title: "Unacked", sort: "messages_unacknowledged", number: true, cell: (queue) => count(queue.messages_unacknowledged), from: 2 },
  { title: "In", sort: "message_stats.publish_details.rate", number: true, cell: (queue) => rate(at(queue, "message_stats.publish_details.rate")) },
  { title: "Out", sort: "message_stats.deliver_get_details.rate", number: true, cell: (queue) => rate(at(queue, "message_stats.deliver_get_details.rate")) },
  { title: "Acked", sort: "message_stats.ack_details.rate", number: true, cell: (queue) => rate(at(queue, "message_stats.ack_details.rate")), from: 4 },
  { title: "Oldest", sort: "oldest_message_age_ms", number: true, cell: (queue) => duration(queue.oldest_message_age_ms), from: 2 },
  { title: "99 % within", sort: "latency.publish_to_deliver.p99_ms", number: true, cell: (queue) => milliseconds(queue.latency?.["publish_to_deliver"]?.p99_ms), from: 3 },
  { title: "Consumers", sort: "consumers", number: true, cell: (queue) => count(queue.consumers), from: 2 },
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

function NewQueue({ close }: { close(): void }) {
  const [host, setHost] = useState(vhost.get() || "/");
  const [name, setName] = useState("");
  const [type, setType] = useState("classic");
  const [durable, setDurable] = useState(true);
  const [transient, setTransient] = useState(false);
  const [table, setTable] = useState("");
  const create = async () => {
    const given: Record<string, unknown> = readTable(table);
    if (type !== "classic") given["x-queue-type"] = type;
    await call("PUT", `/queues/${enc(host)}/${enc(name)}`, { durable, auto_delete: transient, arguments: given });
  };
  return (
    <Form label="Create" done={`Queue ${name} is there`} action={create} then={() => (close(), go("queues", host, name))}>
      <VhostChoice value={host} onChange={setHost} />
      <Text label="Name" value={name} onChange={setName} required />
      <Choice label="Type" value={type} options={["classic", "quorum", "stream"]} onChange={setType} />
      <Check label="Durable: survives a restart" value={durable} onChange={setDurable} />
      <Check label="Deleted with its last consumer" value={transient} onChange={setTransient} />
      <Table label="Arguments" value={table} onChange={setTable} hint="One a line, for example x-max-length = 1000, x-message-ttl = 60000, x-dead-letter-exchange = dead" />
    </Form>
  );
}
