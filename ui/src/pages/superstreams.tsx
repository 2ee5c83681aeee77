// Super streams: a list, one with its partitions, making and deleting.

import { useEffect, useState } from "preact/hooks";
import { enc, get } from "../api";
import { NONE, bytes, count } from "../format";
import { Card, Facts, Figure, Head, NameLink, State, Vhost, Waiting } from "../parts/bits";
import { ConfirmButton, DialogButton } from "../parts/dialog";
import { Area, Choice, Form, Table, Text, readTable } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { VhostChoice } from "../parts/vhosts";
import { useApi } from "../poll";
import { go, href } from "../router";
import { inVhost, vhost } from "../vhost";
import type { Binding } from "./bindings";
import { exchangeHref, type ExchangeBody } from "./exchanges";
import { PublishMessage } from "./messages";
import type { QueueBody } from "./queues";
import { STREAM_ARGUMENTS } from "./shortcuts";
import { bindingsOf, deleteSuperStream, isSuperStream, keysOf, makeSuperStream, partitionsOf, type Partition } from "./superstream";

/** More rows than these are no help; the text says how many there are. */
const SHOWN = 200;
/** The most queues that the broker gives at once. */
const PAGE_MOST = 500;

const COLUMNS: Column<ExchangeBody>[] = [
  { title: "Name", cell: (exchange) => <NameLink to={href("stream", "super-streams", exchange.vhost, exchange.name)} name={exchange.name} /> },
  { title: "Virtual host", cell: (exchange) => <Vhost name={exchange.vhost} />, from: 2 },
  { title: "Partitions", number: true, cell: (exchange) => <PartitionCount host={exchange.vhost} name={exchange.name} /> },
];

/** Partitions seldom change: each row asks for them once, and not every few seconds. */
function PartitionCount({ host, name }: { host: string; name: string }) {
  const [many, setMany] = useState<number>();
  useEffect(() => {
    const stop = new AbortController();
    get<Binding[]>(bindingsOf(host, name), stop.signal).then(
      (found) => setMany(partitionsOf(found).length),
      () => undefined,
    );
    return () => stop.abort();
  }, [host, name]);
  return <>{count(many)}</>;
}

export function SuperStreams() {
  vhost.use();
  const answer = useApi<ExchangeBody[]>(`${inVhost("exchanges")}?columns=vhost,name,arguments`);
  const found = answer.value?.filter(isSuperStream);
  return (
    <>
      <Head title="Super streams">
        <DialogButton label="New super stream" class="primary" title="New super stream">
          {(close) => <NewSuperStream close={close} />}
        </DialogButton>
      </Head>
      {found === undefined ? (
        <Waiting answer={answer} what="super streams" />
      ) : found.length === 0 ? (
        <div class="empty">
          <p>There are no super streams. A super stream is a stream in several partitions, each a stream of its own.</p>
        </div>
      ) : (
        <div class="listing">
          <Rows columns={COLUMNS} rows={found.slice(0, SHOWN)} id={(exchange) => `${exchange.vhost}/${exchange.name}`} what="super streams" />
        </div>
      )}
      {found && found.length > SHOWN && <p class="muted">Only the first {SHOWN} of {count(found.length)} are shown.</p>}
    </>
  );
}

function NewSuperStream({ close }: { close(): void }) {
  const [host, setHost] = useState(vhost.get() || "/");
  const [name, setName] = useState("");
  const [by, setBy] = useState("number");
  const [many, setMany] = useState("3");
  const [keys, setKeys] = useState("");
  const [table, setTable] = useState("");
  const create = async () => makeSuperStream({ host, name, keys: keysOf(by, by === "number" ? many : keys), arguments: readTable(table) });
  return (
    <Form label="Create" done={`Super stream ${name} was created`} action={create} then={() => (close(), go("stream", "super-streams", host, name))}>
      <VhostChoice value={host} onChange={setHost} />
      <Text label="Name" value={name} onChange={setName} required />
      <Choice label="Partitions" value={by} options={[["number", "by number: clients hash the routing key"], ["keys", "by binding keys"]]} onChange={setBy} />
      {by === "number" ? <Text label="How many" value={many} onChange={setMany} required /> : <Area label="Binding keys" value={keys} onChange={setKeys} hint="One per line, or parted by commas; each is a partition: emea, amer, apac" />}
      <Table label="Arguments of each stream" value={table} onChange={setTable} shortcuts={STREAM_ARGUMENTS} />
    </Form>
  );
}

type Row = Partition & { queue: QueueBody | undefined };

const PARTITIONS: Column<Row>[] = [
  { title: "Stream", cell: ({ stream, queue }) => (queue ? <NameLink to={href("queues", queue.vhost, stream)} name={stream} /> : stream) },
  { title: "Order", cell: ({ order }) => count(order), from: 2 },
  { title: "Binding key", cell: ({ key }) => <code>{key}</code> },
  { title: "State", cell: ({ queue }) => <State value={queue?.state} />, from: 2 },
  { title: "Messages", number: true, cell: ({ queue }) => count(queue?.messages) },
  { title: "Bytes", number: true, cell: ({ queue }) => bytes(queue?.message_bytes), from: 2 },
  { title: "Consumers", number: true, cell: ({ queue }) => count(queue?.consumers), from: 2 },
  { title: "Node", cell: ({ queue }) => queue?.node ?? NONE, from: 3 },
];

export function SuperStream({ host, name }: { host: string; name: string }) {
  const exchange = useApi<ExchangeBody>(`/exchanges/${enc(host)}/${enc(name)}`);
  const bindings = useApi<Binding[]>(bindingsOf(host, name));
  // The streams of a super stream begin with its name, and there are no more of them than two pages have.
  const asked = { page_size: String(PAGE_MOST), name: `^${name.replace(/[\\^$.*+?()[\]{}|#&~-]/g, "\\$&")}`, use_regex: "true", columns: "name,vhost,type,state,messages,message_bytes,consumers,node" };
  const page = (number: string) => `/queues/${enc(host)}?${new URLSearchParams({ page: number, ...asked })}`;
  const queues = useApi<{ items: QueueBody[]; page_count: number }>(page("1"));
  const further = useApi<{ items: QueueBody[] }>((queues.value?.page_count ?? 1) > 1 ? page("2") : null);
  if (exchange.value === undefined || bindings.value === undefined) {
    return (
      <>
        <Head kind="Super stream" title={name} />
        <Waiting answer={exchange.value === undefined ? exchange : bindings} what="super stream" />
      </>
    );
  }
  if (!isSuperStream(exchange.value)) {
    return (
      <>
        <Head kind="Exchange" title={name} />
        <div class="empty">
          <p>This is no super stream, but another <a href={exchangeHref(host, name)}>exchange</a>.</p>
        </div>
      </>
    );
  }
  const known = new Map([queues, further].flatMap(({ value }) => value?.items ?? []).map((queue) => [queue.name, queue]));
  const rows = partitionsOf(bindings.value).map((partition): Row => ({ ...partition, queue: known.get(partition.stream) }));
  // A stream may be bound by several keys, and what is no stream is no part of it.
  const streams = [...new Map(rows.map((row) => [row.stream, row])).values()].filter(({ queue }) => queue === undefined || queue.type === "stream");
  // A sum of some is no sum.
  const sum = (of: (queue: QueueBody) => number | undefined) => (streams.every(({ queue }) => queue) ? streams.reduce((all, { queue }) => all + (of(queue!) ?? 0), 0) : undefined);
  const remove = async () => {
    const gone = await attempt(`Super stream ${name} was deleted`, () => deleteSuperStream(host, name));
    if (gone) go("stream", "super-streams");
    else bindings.reload();
    return gone;
  };
  const reload = () => {
    queues.reload();
    further.reload();
  };
  const added = streams.filter(({ order }) => order === undefined).map(({ stream }) => stream);
  const doomed = `The exchange and its ${count(streams.length)} streams, with ${count(sum((queue) => queue.messages))} messages, will be deleted${added.length === 0 ? "." : `, also what is bound without a place among the partitions: ${added.slice(0, 5).join(", ")}${added.length > 5 ? " …" : ""}.`}`;
  return (
    <>
      <Head kind="Super stream" title={name}>
        <ConfirmButton label="Delete" title={`Delete ${name}?`} text={doomed} action={remove} />
      </Head>
      <div class="figures">
        <Figure label="Partitions">{count(rows.length)}</Figure>
        <Figure label="Messages">{count(sum((queue) => queue.messages))}</Figure>
        <Figure label="Bytes">{bytes(sum((queue) => queue.message_bytes))}</Figure>
        <Figure label="Consumers">{count(sum((queue) => queue.consumers))}</Figure>
      </div>
      <Card title={`Partitions (${count(rows.length)})`}>{rows.length === 0 ? <p class="muted">None.</p> : <Rows columns={PARTITIONS} rows={rows} id={({ stream, key }) => `${stream} ${key}`} what="partitions" />}</Card>
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Virtual host", <Vhost name={host} />],
              ["Exchange", <a href={exchangeHref(host, name)}>{name}</a>],
            ]}
          />
          <p class="muted">Its partitions are bound to the exchange. Clients of the stream protocol choose a partition by a hash of the routing key, or by the binding keys; what is published to the exchange by AMQP goes to the partition with that binding key.</p>
        </Card>
        <PublishMessage host={host} exchange={name} then={reload} />
      </div>
    </>
  );
}
