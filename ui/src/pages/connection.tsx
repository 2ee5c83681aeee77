import { call, enc } from "../api";
import { NONE, at, byteRate, bytes, count, moment } from "../format";
import { Arguments, Badge, Card, Facts, Figure, Head, State, Vhost, Waiting } from "../parts/bits";
import { Chart, RangeChoice } from "../parts/chart";
import { DialogButton } from "../parts/dialog";
import { Form, Text } from "../parts/form";
import { Rows } from "../parts/listing";
import { useApi } from "../poll";
import { go, href } from "../router";
import { samples, useRange, useTrail } from "../trail";
import { useState } from "preact/hooks";
import { CHANNEL_COLUMNS, heldBack, titleOf, type ChannelBody } from "./channels";
import { connectionTitle, type ConnectionBody } from "./connections";
import { StreamsOfConnection } from "./streamclients";
import { speaksStream } from "./streamconnections";
import { Why } from "./why";

interface ConnectionDetail extends ConnectionBody {
  peer_host?: string;
  peer_port?: number;
  host?: string;
  port?: number;
  auth_mechanism?: string;
  frame_max?: number;
  channel_max?: number;
  timeout?: number;
  ssl_protocol?: string;
  ssl_cipher?: string;
  peer_cert_subject?: string;
}

/** What all channels of a connection have in common stands above. */
const OF_CONNECTION = CHANNEL_COLUMNS.filter(({ title, from }) => from !== 5 && !["Client", "Virtual host", "User"].includes(title));

export function Connection({ name }: { name: string }) {
  const path = `/connections/${enc(name)}`;
  const [range] = useRange();
  const answer = useApi<ConnectionDetail>(`${path}?${samples(range, "data_rates")}`);
  const connection = answer.value;
  const isStream = connection !== undefined && speaksStream(connection);
  const channels = useApi<ChannelBody[]>(isStream ? null : `${path}/channels`);
  const trail = useTrail(connection, range, [
    { label: "From the client", path: "recv_oct", rate: true },
    { label: "To the client", path: "send_oct", rate: true },
  ]);
  if (!connection) {
    return (
      <>
        <Head kind="Connection" title={name} />
        <Waiting answer={answer} what="connection" />
      </>
    );
  }
  return (
    <>
      <Head kind={isStream ? "Stream connection" : "Connection"} title={connectionTitle(connection)}>
        <RangeChoice />
        <DialogButton label="Close" title="Close this connection?" class="danger">
          {(close) => <CloseForm path={path} isStream={isStream} close={close} />}
        </DialogButton>
      </Head>
      <div class="figures">
        <Figure label="State">
          <State value={connection.state} />
        </Figure>
        {!isStream && <Figure label="Channels">{count(connection.channels)}</Figure>}
        <Figure label="From the client">{byteRate(at(connection, "recv_oct_details.rate"))}</Figure>
        <Figure label="To the client">{byteRate(at(connection, "send_oct_details.rate"))}</Figure>
      </div>
      <div class="cards">
        <Why path={`/leveret/why/connections/${enc(name)}`} />
      </div>
      <div class="charts">
        <Card title="Data rates">
          <Chart title="Data rates" trail={trail} unit="byteRate" />
        </Card>
      </div>
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Name", connection.name],
              ["User", connection.user],
              ["Virtual host", connection.vhost === undefined ? undefined : <Vhost name={connection.vhost} />],
              ["Client", connection.peer_host === undefined ? undefined : `${connection.peer_host}:${connection.peer_port}`],
              ["Listener", connection.host === undefined ? undefined : `${connection.host}:${connection.port}`],
              ["Protocol", `${connection.protocol ?? NONE}${connection.auth_mechanism ? `, ${connection.auth_mechanism}` : ""}`],
              ["TLS", connection.ssl ? `${connection.ssl_protocol ?? ""} ${connection.ssl_cipher ?? ""}` : "no"],
              ["Certificate", connection.peer_cert_subject || undefined],
              ["Connected at", moment(connection.connected_at)],
              ["Heartbeat", connection.timeout === undefined ? undefined : connection.timeout === 0 ? "none" : `${connection.timeout} s`],
              ["Maximum frame size", bytes(connection.frame_max)],
              ["Channel limit", isStream ? undefined : count(connection.channel_max)],
              ["Received", bytes(at(connection, "recv_oct"))],
              ["Sent", bytes(at(connection, "send_oct"))],
            ]}
          />
        </Card>
        <Card title="Client properties">
          <Arguments table={connection.client_properties} />
        </Card>
      </div>
      {isStream ? (
        <StreamsOfConnection host={connection.vhost ?? "/"} name={name} />
      ) : (
        <Card title="Channels">{channels.value ? <Rows columns={OF_CONNECTION} rows={channels.value} id={(channel) => channel.name} what="channels of this connection" /> : <Waiting answer={channels} what="channels" />}</Card>
      )}
    </>
  );
}

function CloseForm({ path, isStream, close }: { path: string; isStream: boolean; close(): void }) {
  const [reason, setReason] = useState("Closed via management");
  const act = () => call("DELETE", path, undefined, { "x-reason": encodeURIComponent(reason) === reason.replace(/ /g, "%20") ? reason : encodeURIComponent(reason) });
  return (
    <Form label="Close the connection" done="The connection was closed" action={act} then={() => (close(), isStream ? go("stream", "connections") : go("connections"))} danger>
      <p>Most clients reconnect by themselves. {isStream ? "Its publishers and consumers end; offsets that are stored stay." : "Messages that it has not acknowledged go back to their queues."}</p>
      <Text label="Reason, sent to the client" value={reason} onChange={setReason} />
    </Form>
  );
}

export function Channel({ name }: { name: string }) {
  const path = `/channels/${enc(name)}`;
  const answer = useApi<ChannelBody & { consumer_details?: { consumer_tag: string; queue: { name: string; vhost: string }; prefetch_count?: number }[] }>(path);
  const channel = answer.value;
  if (!channel) {
    return (
      <>
        <Head kind="Channel" title={name} />
        <Waiting answer={answer} what="channel" />
      </>
    );
  }
  const consumers = channel.consumer_details ?? [];
  const owner = channel.connection_details?.name;
  return (
    <>
      <Head kind="Channel" title={titleOf(channel)} />
      {owner && (
        <div class="cards">
          <Why path={`/leveret/why/connections/${enc(owner)}`} />
        </div>
      )}
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Name", channel.name],
              ["Connection", owner ? <a href={href("connections", owner)}>{channel.connection_details?.user_provided_name ?? owner}</a> : undefined],
              ["User", channel.user],
              ["Virtual host", channel.vhost],
              ["State", <State value={channel.state} />],
              ["Connection held back for", heldBack(channel.held_ms)],
              ["Mode", channel.confirm ? <Badge>publisher confirms</Badge> : channel.transactional ? <Badge>transactional</Badge> : "no confirms"],
              ["Prefetch", `${count(channel.prefetch_count)} per consumer, ${count(channel.global_prefetch_count)} for the channel (0: no limit)`],
            ]}
          />
        </Card>
        <Card title="In flight">
          <Facts
            rows={[
              ["Delivered, not acknowledged", count(channel.messages_unacknowledged)],
              ["Published, not confirmed", count(channel.messages_unconfirmed)],
              ["Published, not committed", count(channel.messages_uncommitted)],
              ["Acks, not committed", count(channel.acks_uncommitted)],
            ]}
          />
        </Card>
      </div>
      <Card title="Consumers">
        {consumers.length === 0 ? (
          <p class="muted">None.</p>
        ) : (
          <Rows
            what="consumers of this channel"
            rows={consumers}
            id={(consumer) => consumer.consumer_tag}
            columns={[
              { title: "Consumer tag", cell: (consumer) => consumer.consumer_tag },
              { title: "Queue", cell: (consumer) => <a href={href("queues", consumer.queue.vhost, consumer.queue.name)}>{consumer.queue.name}</a> },
              { title: "Prefetch", number: true, cell: (consumer) => count(consumer.prefetch_count) },
            ]}
          />
        )}
      </Card>
    </>
  );
}
