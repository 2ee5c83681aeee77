import { enc } from "../api";
import { at, count, duration, rate } from "../format";
import { Badge, Head, State } from "../parts/bits";
import { Listing, type Column } from "../parts/listing";
import { href } from "../router";
import { vhost } from "../vhost";

export interface ChannelBody {
  name: string;
  number?: number;
  user?: string;
  vhost?: string;
  state?: string;
  confirm?: boolean;
  transactional?: boolean;
  prefetch_count?: number;
  global_prefetch_count?: number;
  consumer_count?: number;
  messages_unacknowledged?: number;
  messages_unconfirmed?: number;
  messages_uncommitted?: number;
  acks_uncommitted?: number;
  held_ms?: number;
  connection_details?: { name?: string };
}

export function Mode({ channel }: { channel: ChannelBody }) {
  return (
    <>
      {channel.confirm && <Badge title="publisher confirms">C</Badge>}
      {channel.transactional && <Badge title="transactions">T</Badge>}
    </>
  );
}

/** For how long the broker did not read from a connection. */
export const heldBack = (milliseconds: unknown): string => (milliseconds === 0 ? "never" : duration(milliseconds));

export const CHANNEL_COLUMNS: Column<ChannelBody>[] = [
  { title: "Channel", sort: "name", cell: (channel) => <a href={href("channels", channel.name)}>{channel.name}</a> },
  { title: "Virtual host", sort: "vhost", cell: (channel) => channel.vhost, from: 3 },
  { title: "User", sort: "user", cell: (channel) => channel.user, from: 3 },
  { title: "Mode", cell: (channel) => <Mode channel={channel} />, from: 2 },
  { title: "State", sort: "state", cell: (channel) => <State value={channel.state} />, from: 2 },
  { title: "Prefetch", sort: "prefetch_count", number: true, cell: (channel) => (channel.global_prefetch_count ? `${count(channel.global_prefetch_count)} (global)` : count(channel.prefetch_count)), from: 3 },
  { title: "Unacked", sort: "messages_unacknowledged", number: true, cell: (channel) => count(channel.messages_unacknowledged) },
  { title: "Unconfirmed", sort: "messages_unconfirmed", number: true, cell: (channel) => count(channel.messages_unconfirmed), from: 3 },
  { title: "Held back", sort: "held_ms", number: true, cell: (channel) => heldBack(channel.held_ms), from: 3 },
  { title: "Publish", sort: "message_stats.publish_details.rate", number: true, cell: (channel) => rate(at(channel, "message_stats.publish_details.rate")) },
  { title: "Deliver", sort: "message_stats.deliver_get_details.rate", number: true, cell: (channel) => rate(at(channel, "message_stats.deliver_get_details.rate")) },
];

export function Channels() {
  const chosen = vhost.use();
  const path = chosen === "" ? "/channels" : `/vhosts/${enc(chosen)}/channels`;
  return (
    <>
      <Head title="Channels" />
      <Listing path={path} what="channels" columns={CHANNEL_COLUMNS} id={(channel) => channel.name} />
    </>
  );
}
