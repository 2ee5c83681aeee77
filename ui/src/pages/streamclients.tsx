// Publishers and consumers of the stream protocol: of a stream, or of a connection.

import { enc } from "../api";
import { count } from "../format";
import { Arguments, Card, NameLink, Waiting } from "../parts/bits";
import { Rows, type Column } from "../parts/listing";
import { useApi, type Answer } from "../poll";
import { href } from "../router";
import { activity } from "./consumers";

interface ClientBody {
  queue?: { name: string; vhost: string };
  connection_details?: { name?: string; user?: string; node?: string; peer_host?: string; peer_port?: number };
}

export interface StreamConsumerBody extends ClientBody {
  subscription_id: number;
  credits?: number;
  consumed?: number;
  offset?: number;
  /** How many messages it is behind. */
  offset_lag?: number;
  active?: boolean;
  activity_status?: string;
  properties?: Record<string, unknown>;
}

export interface StreamPublisherBody extends ClientBody {
  publisher_id: number;
  /** The name that duplicates are recognised by; empty without. */
  reference?: string;
  published?: number;
  confirmed?: number;
  errored?: number;
}

/** More rows than these are no help; the title says how many there are. */
const SHOWN = 200;

function OfConnection({ client }: { client: ClientBody }) {
  const name = client.connection_details?.name;
  return name === undefined ? null : <NameLink to={href("stream", "connections", client.queue?.vhost ?? "/", name)} name={name} endless />;
}

const CONNECTION = { title: "Connection", cell: (client: ClientBody) => <OfConnection client={client} /> };
const STREAM = { title: "Stream", cell: (client: ClientBody) => client.queue && <NameLink to={href("queues", client.queue.vhost, client.queue.name)} name={client.queue.name} /> };

export const STREAM_CONSUMERS: Column<StreamConsumerBody>[] = [
  CONNECTION,
  STREAM,
  { title: "Subscription", cell: (consumer) => count(consumer.subscription_id) },
  { title: "State", cell: activity, from: 2 },
  { title: "Credits", number: true, cell: (consumer) => count(consumer.credits), from: 3, hint: "chunks that it may be sent" },
  { title: "Consumed", number: true, cell: (consumer) => count(consumer.consumed), from: 2 },
  { title: "Offset", number: true, cell: (consumer) => count(consumer.offset) },
  { title: "Behind", number: true, cell: (consumer) => count(consumer.offset_lag), hint: "messages that are there and were not sent to it yet" },
  { title: "Properties", cell: (consumer) => <Arguments table={consumer.properties} />, from: 3 },
];

export const STREAM_PUBLISHERS: Column<StreamPublisherBody>[] = [
  CONNECTION,
  STREAM,
  { title: "Publisher", cell: (publisher) => count(publisher.publisher_id) },
  { title: "Reference", cell: (publisher) => publisher.reference || "none", from: 2, hint: "the name that duplicates are recognised by" },
  { title: "Published", number: true, cell: (publisher) => count(publisher.published) },
  { title: "Confirmed", number: true, cell: (publisher) => count(publisher.confirmed) },
  { title: "Errors", number: true, cell: (publisher) => count(publisher.errored), from: 2 },
];

const idOf = ({ connection_details: connection, queue }: ClientBody) => `${connection?.name} ${queue?.vhost} ${queue?.name}`;
export const consumerId = (consumer: StreamConsumerBody): string => `${idOf(consumer)} ${consumer.subscription_id}`;
export const publisherId = (publisher: StreamPublisherBody): string => `${idOf(publisher)} ${publisher.publisher_id}`;

/** A broker that has no such list is no fault of who looks. */
export function NotTold({ answer, what }: { answer: Answer<unknown>; what: string }) {
  return answer.error?.status === 404 ? <p class="muted">There is nothing to show: this broker does not list {what}.</p> : <Waiting answer={answer} what={what} />;
}

interface Props<T> {
  title: string;
  what: string;
  path: string;
  columns: Column<T>[];
  id(client: T): string;
}

export function Clients<T>({ title, what, path, columns, id }: Props<T>) {
  const answer = useApi<T[]>(path);
  const found = answer.value;
  return (
    <Card title={found ? `${title} (${count(found.length)})` : title}>
      {found === undefined ? <NotTold answer={answer} what={what} /> : found.length === 0 ? <p class="muted">None.</p> : <Rows columns={columns} rows={found.slice(0, SHOWN)} id={id} what={what} />}
      {found && found.length > SHOWN && <p class="muted">Only the first {SHOWN} are shown.</p>}
    </Card>
  );
}

/** All rows are of one connection: what it reads or writes stands first. */
const ofOne = <T extends ClientBody>(columns: Column<T>[]): Column<T>[] => columns.filter(({ title }) => title !== "Connection");

export function StreamsOfConnection({ host, name }: { host: string; name: string }) {
  const path = `/stream/connections/${enc(host)}/${enc(name)}`;
  return (
    <>
      <Clients<StreamPublisherBody> title="Publishers" what="publishers of this connection" path={`${path}/publishers`} columns={ofOne(STREAM_PUBLISHERS)} id={publisherId} />
      <Clients<StreamConsumerBody> title="Consumers" what="consumers of this connection" path={`${path}/consumers`} columns={ofOne(STREAM_CONSUMERS)} id={consumerId} />
    </>
  );
}
