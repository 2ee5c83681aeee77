// What the page of a stream has beside that of a queue: offsets instead of what waits, and who publishes and reads over the stream protocol.

import { enc } from "../api";
import { at, bytes, count, rate } from "../format";
import { Card, Facts, Figure } from "../parts/bits";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";
import type { QueueBody } from "./queues";
import { Clients, NotTold, STREAM_CONSUMERS, STREAM_PUBLISHERS, consumerId, publisherId, type StreamConsumerBody, type StreamPublisherBody } from "./streamclients";

export interface StreamBody extends QueueBody {
  leader?: string;
  members?: string[];
  online?: string[];
  first_offset?: number;
  last_offset?: number;
  committed_offset?: number;
  segments?: number;
  /** How many there are on each node. */
  readers?: Record<string, number> | number;
}

/** Who has said how far he is, by his reference. */
interface TrackingBody {
  /** Offsets that consumers have stored. */
  offsets?: Record<string, number>;
  /** The last publishing id of each publisher. */
  writers?: Record<string, number>;
}

function readers(told: StreamBody["readers"]): string | undefined {
  if (typeof told !== "object" || told === null) return told === undefined || told === null ? undefined : count(told);
  const nodes = Object.entries(told);
  return nodes.length === 0 ? "none" : nodes.map(([node, many]) => `${count(many)} on ${node}`).join(", ");
}

/** A figure that the broker tells; left out where it does not. */
const told = (value: unknown, written: (value: unknown) => string): string | undefined => (typeof value === "number" ? written(value) : undefined);

/** Rates are counted of what goes over AMQP; how fast a stream grows says more. */
export function StreamFigures({ stream }: { stream: StreamBody }) {
  return (
    <div class="figures">
      <Figure label="Messages">{count(stream.messages)}</Figure>
      <Figure label="Bytes">{bytes(stream.message_bytes)}</Figure>
      <Figure label="Growth">{rate(at(stream, "messages_details.rate"))}</Figure>
      <Figure label="Consumers">{count(stream.consumers)}</Figure>
      <Figure label="Publish by AMQP">{rate(at(stream, "message_stats.publish_details.rate"))}</Figure>
      <Figure label="Deliver by AMQP">{rate(at(stream, "message_stats.deliver_get_details.rate"))}</Figure>
    </div>
  );
}

export function StreamContents({ stream }: { stream: StreamBody }) {
  return (
    <Card title="Contents">
      <Facts
        rows={[
          ["Leader", stream.leader],
          ["Members", stream.members?.join(", ")],
          ["Members online", stream.online?.join(", ")],
          ["First offset", told(stream.first_offset, count)],
          ["Last offset", told(stream.last_offset, count)],
          ["Committed offset", told(stream.committed_offset, count)],
          ["Segments", told(stream.segments, count)],
          ["Readers", readers(stream.readers)],
          ["Message bytes", bytes(stream.message_bytes)],
          ["Memory", bytes(stream.memory)],
        ]}
      />
    </Card>
  );
}

export function StreamPanels({ host, name }: { host: string; name: string }) {
  return (
    <>
      <Clients<StreamConsumerBody> title="Consumers by the stream protocol" what="consumers of this stream" path={`/stream/consumers/${enc(host)}/${enc(name)}`} columns={without(STREAM_CONSUMERS)} id={consumerId} />
      <Clients<StreamPublisherBody> title="Publishers by the stream protocol" what="publishers of this stream" path={`/stream/publishers/${enc(host)}/${enc(name)}`} columns={without(STREAM_PUBLISHERS)} id={publisherId} />
      <Tracking host={host} name={name} />
    </>
  );
}

/** All rows are of one stream. */
const without = <T,>(columns: Column<T>[]): Column<T>[] => columns.filter(({ title }) => title !== "Stream");

type Tracked = [reference: string, number: number];

const trackedBy = (what: string, figure: string): Column<Tracked>[] => [
  { title: what, cell: ([reference]) => reference },
  { title: figure, number: true, cell: ([, number]) => count(number) },
];

function Tracking({ host, name }: { host: string; name: string }) {
  const answer = useApi<TrackingBody>(`/stream/${enc(host)}/${enc(name)}/tracking`);
  const tables: [string, Column<Tracked>[], Tracked[]][] = [
    ["stored offsets", trackedBy("Consumer", "Stored offset"), Object.entries(answer.value?.offsets ?? {})],
    ["publishing ids", trackedBy("Publisher", "Last publishing id"), Object.entries(answer.value?.writers ?? {})],
  ];
  return (
    <Card title="Tracking">
      {answer.value === undefined ? (
        <NotTold answer={answer} what="what this stream tracks" />
      ) : (
        <div class="cards">
          {tables.map(([what, columns, rows]) => (
            <div key={what}>{rows.length === 0 ? <p class="muted">No {what}.</p> : <Rows columns={columns} rows={rows} id={([reference]) => reference} what={what} />}</div>
          ))}
        </div>
      )}
    </Card>
  );
}
