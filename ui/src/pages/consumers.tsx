// All consumers, with the queue and the channel of each.

import { count, duration } from "../format";
import { Arguments, Badge, Head, NameLink, Vhost } from "../parts/bits";
import { Listing, type Column } from "../parts/listing";
import { href } from "../router";
import { inVhost, vhost } from "../vhost";
import { NUMBER, channelTitle } from "./channels";

export interface ConsumerBody {
  consumer_tag: string;
  queue?: { name: string; vhost: string };
  ack_required?: boolean;
  exclusive?: boolean;
  active?: boolean;
  activity_status?: string;
  prefetch_count?: number;
  consumer_timeout?: number;
  arguments?: Record<string, unknown>;
  channel_details?: { name?: string; number?: number; connection_name?: string; user_provided_name?: string; user?: string };
}

const STATES: Record<string, string> = { up: "active", single_active: "single active", waiting: "waiting" };

export const activity = (consumer: Pick<ConsumerBody, "activity_status" | "active">) => {
  const known = consumer.activity_status ?? (consumer.active === false ? "waiting" : "up");
  return <Badge tone={known === "waiting" ? "" : "good"}>{STATES[known] ?? known}</Badge>;
};
export const ACKS = (consumer: ConsumerBody): string => (consumer.ack_required === false ? "automatic" : "manual");

/** Consumers of the stream protocol have a connection and no channel. */
export const isOfStreams = (consumer: ConsumerBody): boolean => consumer.channel_details?.number === 0;

function Where({ consumer: { queue, channel_details: channel, ...more } }: { consumer: ConsumerBody }) {
  if (channel?.connection_name !== undefined && isOfStreams({ channel_details: channel, ...more })) return <NameLink to={href("stream", "connections", queue?.vhost ?? "/", channel.connection_name)} name={channel.user_provided_name ?? channel.connection_name} endless />;
  return channel?.name ? <NameLink to={href("channels", channel.name)} name={channelTitle(channel)} end={NUMBER} /> : null;
}

const COLUMNS: Column<ConsumerBody>[] = [
  { title: "Consumer tag", sort: "consumer_tag", cell: (consumer) => <span class="cut" title={consumer.consumer_tag}>{consumer.consumer_tag || "(no tag)"}</span> },
  { title: "Queue", sort: "queue.name", cell: (consumer) => consumer.queue && <NameLink to={href("queues", consumer.queue.vhost, consumer.queue.name)} name={consumer.queue.name} /> },
  { title: "Virtual host", sort: "queue.vhost", cell: (consumer) => consumer.queue && <Vhost name={consumer.queue.vhost} />, from: 4 },
  { title: "Channel", sort: "channel_details.name", cell: (consumer) => <Where consumer={consumer} />, from: 2 },
  { title: "User", sort: "channel_details.user", cell: (consumer) => consumer.channel_details?.user, from: 3 },
  { title: "State", sort: "activity_status", cell: activity, from: 2 },
  { title: "Ack mode", sort: "ack_required", cell: ACKS, from: 4 },
  { title: "Prefetch", sort: "prefetch_count", number: true, cell: (consumer) => (consumer.prefetch_count === 0 ? "no limit" : count(consumer.prefetch_count)), from: 2 },
  { title: "Exclusive", sort: "exclusive", cell: (consumer) => (consumer.exclusive ? "yes" : "no"), from: 5 },
  { title: "Ack timeout", number: true, cell: (consumer) => (consumer.consumer_timeout ? duration(consumer.consumer_timeout) : "none"), from: 5 },
  { title: "Arguments", cell: (consumer) => <Arguments table={consumer.arguments} />, from: 5 },
];

export function Consumers() {
  vhost.use();
  return (
    <>
      <Head title="Consumers" />
      <Listing path={inVhost("consumers")} what="consumers" columns={COLUMNS} id={(consumer) => `${consumer.channel_details?.name || consumer.channel_details?.connection_name}/${consumer.consumer_tag}`} />
    </>
  );
}
