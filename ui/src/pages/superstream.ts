// Super streams: a direct exchange that says it is one, and a stream for each of its partitions, bound by its key. The API knows
// them as such things only, so they are made and deleted piece by piece, as `rabbitmq-streams add_super_stream` does.

import { ApiError, call, declare, enc, get } from "../api";
import type { Binding } from "./bindings";
import type { ExchangeBody } from "./exchanges";

/** As many as the stream protocol allows. */
const PARTITIONS_MOST = 1000;

export interface Partition {
  stream: string;
  key: string;
  /** Its place among the others; nothing if its binding does not say. */
  order?: number;
}

export const isSuperStream = (exchange: ExchangeBody): boolean => exchange.arguments?.["x-super-stream"] === true;

export const bindingsOf = (host: string, name: string): string => `/exchanges/${enc(host)}/${enc(name)}/bindings/source`;

/** The partitions by their order; a stream that is bound by several keys is one for each. */
export function partitionsOf(bindings: Binding[]): Partition[] {
  const found = bindings.filter(({ destination_type }) => destination_type === "queue").map(({ destination, routing_key, arguments: table }): Partition => {
    const order = table["x-stream-partition-order"];
    return { stream: destination, key: routing_key, ...(typeof order === "number" && { order }) };
  });
  return found.sort((one, other) => (one.order ?? Infinity) - (other.order ?? Infinity) || one.stream.localeCompare(other.stream, undefined, { numeric: true }) || 0);
}

export interface Wanted {
  host: string;
  name: string;
  /** The key of each partition, which is also the end of its name. */
  keys: string[];
  arguments: Record<string, unknown>;
}

/** Keys by their number or as they are written, one in a line or parted by commas. Throws what is wrong with them. */
export function keysOf(by: string, text: string): string[] {
  if (by === "number") {
    const many = Number(text);
    if (!Number.isInteger(many) || many < 1 || many > PARTITIONS_MOST) throw new Error(`A super stream has 1 to ${PARTITIONS_MOST} partitions`);
    return Array.from({ length: many }, (_, at) => String(at));
  }
  const keys = text.split(/[\n,]/).map((key) => key.trim()).filter((key) => key !== "");
  if (keys.length < 1 || keys.length > PARTITIONS_MOST) throw new Error(`A super stream has 1 to ${PARTITIONS_MOST} partitions`);
  if (new Set(keys).size < keys.length) throw new Error("Two partitions have the same key");
  return keys;
}

async function isThere(path: string): Promise<boolean> {
  try {
    await get(path);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

export async function makeSuperStream({ host, name, keys, arguments: table }: Wanted): Promise<void> {
  if (name.startsWith("amq.") || /[\n\r]/.test(name)) throw new Error(`${name} is not a correct name for a super stream`);
  const exchange = `/exchanges/${enc(host)}/${enc(name)}`;
  const streams = keys.map((key) => `${name}-${key}`);
  if (await isThere(exchange)) throw new Error(`There is already an exchange named ${name}`);
  for (const stream of streams) {
    if (await isThere(`/queues/${enc(host)}/${enc(stream)}`)) throw new Error(`There is already a queue named ${stream}`);
  }
  const made: string[] = [];
  // What somebody else has made meanwhile is left alone, whatever comes.
  const make = async (path: string, body: unknown) => void ((await declare(path, body)) && made.push(path));
  try {
    await make(exchange, { type: "direct", durable: true, arguments: { "x-super-stream": true } });
    for (const stream of streams) await make(`/queues/${enc(host)}/${enc(stream)}`, { durable: true, arguments: { ...table, "x-queue-type": "stream" } });
    for (const [order, stream] of streams.entries()) {
      await call("POST", `/bindings/${enc(host)}/e/${enc(name)}/q/${enc(stream)}`, { routing_key: keys[order], arguments: { "x-stream-partition-order": order } });
    }
  } catch (error) {
    const left: string[] = [];
    for (const path of made.reverse()) await call("DELETE", path).catch(() => left.push(path));
    const words = error instanceof Error ? error.message : String(error);
    throw left.length === 0 ? error : new Error(`${words} (left behind: ${left.join(", ")})`);
  }
}

/** The exchange last: what was not carried out to its end can be asked for again. Bound queues that are no streams stay. */
export async function deleteSuperStream(host: string, name: string): Promise<void> {
  const bindings = await get<Binding[]>(bindingsOf(host, name));
  for (const stream of new Set(partitionsOf(bindings).map((partition) => partition.stream))) {
    const path = `/queues/${enc(host)}/${enc(stream)}`;
    if ((await get<{ type?: string }>(`${path}?columns=type`)).type === "stream") await call("DELETE", path);
  }
  await call("DELETE", `/exchanges/${enc(host)}/${enc(name)}`);
}
