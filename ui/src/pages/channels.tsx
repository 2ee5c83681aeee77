import { enc } from "../api";
import { at, count, duration, rate } from "../format";
import { Badge, Head, NameLink, State } from "../parts/bits";
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
  connection_details?: { name?: string; user_provided_name?: string; peer_host?: string; peer_port?: number };
}

/** What the application calls its connection, with the channel's number: that says more than ports. */
export function channelTitle(channel: { name?: string; number?: number; user_provided_name?: string }): string {
  const { name = "", number, user_provided_name: given } = channel;
  const last = number ?? /\((\d+)\)$/.exec(name)?.[1];
  return given && last !== undefined ? `${given} (${last})` : name;
}

/** How many letters of a channel's name are its number. */
export const NUMBER = 4;

export const titleOf = (channel: ChannelBody): string => channelTitle({ ...channel, user_provided_name: channel.connection_details?.user_provided_name ?? "" });

export function Mode({ channel }: { channel: ChannelBody }) {
  return (
    <>
      {channel.confirm && <Badge title="publisher confirms">C</Badge>}
      {channel.transactional && <Badge title="transactional">T</Badge>}
    </>
  );
}

/** For how long the broker did not read from a connection. */
export const heldBack = (milliseconds: unknown): string => (milliseconds === 0 ? "never" : duration(milliseconds));

export const CHANNEL_COLUMNS: Column<ChannelBody>[] = [
  { title: "Channel", sort: "name", cell: (channel) => <NameLink to={href("channels", channel.name)} name={titleOf(channel)} end={NUMBER} /> },
  { title: "Client", cell: (channel) => channel.connection_details?.peer_host && `${channel.connection_details.peer_host}:${channel.connection_details.peer_port}`, from: 4 },
  { title: "Virtual host", sort: "vhost", cell: (channel) => channel.vhost, from: 4 },
  { title: "User", sort: "user", cell: (channel) => channel.user, from: 3 },
  { title: "Mode", cell: (channel) => <Mode channel={channel} />, from: 2 },
  { title: "State", sort: "state", cell: (channel) => <State value={channel.state} />, from: 2 },
  { title: "Consumers", sort: "consumer_count", number: true, cell: (channel) => count(channel.consumer_count), from: 5 },
  { title: "Prefetch", sort: "prefetch_count", number: true, cell: (channel) => (channel.global_prefetch_count ? `${count(channel.global_prefetch_count)} (global)` : count(channel.prefetch_count)), from: 3 },
  { title: "Unacked", sort: "messages_unacknowledged", number: true, cell: (channel) => count(channel.messages_unacknowledged) },
  { title: "Unconfirmed", sort: "messages_unconfirmed", number: true, cell: (channel) => count(channel.messages_unconfirmed), from: 4 },
  { title: "Held back", sort: "held_ms", number: true, cell: (channel) => heldBack(channel.held_ms), from: 5, hint: "how long the broker did not read from the connection, since it was opened" },
  { title: "Publish", sort: "message_stats.publish_details.rate", number: true, cell: (channel) => rate(at(channel, "message_stats.publish_details.rate")) },
  { title: "Deliver", sort: "message_stats.deliver_get_details.rate", number: true, cell: (channel) => rate(at(channel, "message_stats.deliver_get_details.rate")) },
  { title: "Ack", sort: "message_stats.ack_details.rate", number: true, cell: (channel) => rate(at(channel, "message_stats.ack_details.rate")), from: 4 },
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
