// One queue: how it goes, what it is, who consumes from it, where its messages come from, and what can be done.

import { call, enc } from "../api";
import { NONE, at, bytes, count, moment, rate } from "../format";
import { Arguments, Card, Facts, Figure, Head, NameLink, State, Vhost, Waiting } from "../parts/bits";
import { Chart, RangeChoice } from "../parts/chart";
import { ConfirmButton } from "../parts/dialog";
import { Rows, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { go, href } from "../router";
import type { Line } from "../samples";
import { isAdministrator, isPolicymaker } from "../session";
import { samples, useRange, useTrail } from "../trail";
import { Availability } from "./availability";
import { QueueBindings } from "./bindings";
import { QueueMessages } from "./browsing";
import { NUMBER, channelTitle } from "./channels";
import { ACKS, activity, isOfStreams, type ConsumerBody } from "./consumers";
import { Conversion } from "./conversion";
import { Losses } from "./losses";
import { Members } from "./members";
import { GetMessages, PublishMessage } from "./messages";
import { Features } from "./queues";
import { BrowseStream } from "./streambrowsing";
import { StreamContents, StreamFigures, StreamPanels, type StreamBody } from "./stream";
import { Times } from "./times";
import { Why } from "./why";
import { explained } from "./arguments";

interface QueueDetail extends StreamBody {
  consumer_details?: ConsumerBody[];
  consumer_utilisation?: number;
  message_bytes_ready?: number;
  idle_since?: string;
  head_message_timestamp?: number | null;
  owner_pid_details?: { name?: string };
}

const CONSUMERS: Column<ConsumerBody>[] = [
  { title: "Consumer tag", cell: (consumer) => consumer.consumer_tag || "(no tag)" },
  { title: "Channel", cell: (consumer) => consumer.channel_details?.name && <NameLink to={href("channels", consumer.channel_details.name)} name={channelTitle(consumer.channel_details)} end={NUMBER} />, from: 2 },
  { title: "State", cell: activity },
  { title: "Ack mode", cell: ACKS, from: 2 },
  { title: "Prefetch", number: true, cell: (consumer) => (consumer.prefetch_count === 0 ? "no limit" : count(consumer.prefetch_count)) },
  { title: "Exclusive", cell: (consumer) => (consumer.exclusive ? "yes" : "no"), from: 3 },
  { title: "Arguments", cell: (consumer) => <Arguments table={consumer.arguments} />, from: 4 },
];

const OF_QUEUE: Line[] = [
  { label: "Ready", path: "messages_ready" },
  { label: "Unacked", path: "messages_unacknowledged" },
];
const OF_STREAM: Line[] = [{ label: "Messages", path: "messages" }];

export function Queue({ host, name }: { host: string; name: string }) {
  const path = `/queues/${enc(host)}/${enc(name)}`;
  const [range] = useRange();
  const answer = useApi<QueueDetail>(`${path}?${samples(range, "lengths", "msg_rates")}`);
  const queue = answer.value;
  const isStream = queue?.type === "stream";
  const lengths = useTrail(queue, range, isStream ? OF_STREAM : OF_QUEUE);
  const rates = useTrail(queue, range, [
    { label: "Publish", path: "message_stats.publish", rate: true },
    { label: "Deliver", path: "message_stats.deliver_get", rate: true },
    { label: "Ack", path: "message_stats.ack", rate: true },
    { label: "Redelivered", path: "message_stats.redeliver", rate: true },
  ]);
  if (!queue) {
    return (
      <>
        <Head kind="Queue" title={name} />
        <Waiting answer={answer} what="queue" />
      </>
    );
  }
  const remove = async () => {
    const gone = await attempt(`${isStream ? "Stream" : "Queue"} ${name} was deleted`, () => call("DELETE", path));
    if (gone) go("queues");
    return gone;
  };
  const purge = async () => {
    const done = await attempt(`Queue ${name} was purged`, () => call("DELETE", `${path}/contents`));
    answer.reload();
    return done;
  };
  // Those of the stream protocol have a list of their own, which says more.
  const consumers = (queue.consumer_details ?? []).filter((consumer) => !isOfStreams(consumer));
  return (
    <>
      <Head kind={isStream ? "Stream" : "Queue"} title={name}>
        <RangeChoice />
        {isAdministrator() && queue.type && <Conversion host={host} name={name} type={queue.type} then={answer.reload} />}
        {!isStream && <ConfirmButton label="Purge" title={`Purge ${name}?`} text={`Its ${count(queue.messages_ready)} ready messages will be deleted. Messages that consumers have not acknowledged yet stay.`} action={purge} />}
        <ConfirmButton label="Delete" title={`Delete ${name}?`} text={`The ${isStream ? "stream" : "queue"}, its bindings and its ${count(queue.messages)} messages will be deleted, and its ${count(queue.consumers)} consumers cancelled.`} action={remove} />
      </Head>
      {isStream ? <StreamFigures stream={queue} /> : <Figures queue={queue} />}
      <div class="cards">
        <Why path={`/leveret/why/queues/${enc(host)}/${enc(name)}`} />
      </div>
      <div class="charts">
        <Card title={isStream ? "Messages" : "Queued messages"}>
          <Chart title={isStream ? "Messages" : "Queued messages"} trail={lengths} />
        </Card>
        <Card title={isStream ? "Message rates by AMQP" : "Message rates"}>
          <Chart title="Message rates" trail={rates} unit="rate" />
        </Card>
      </div>
      <Losses of={queue} range={range} />
      <Times path={`/leveret/times/queues/${enc(host)}/${enc(name)}`} />
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Virtual host", <Vhost name={queue.vhost} />],
              ["Type", queue.type ?? NONE],
              ["State", <State value={queue.state} />],
              ["Features", <Features queue={queue} />],
              ["Policy", queue.policy ? <a href={href("policies")}>{queue.policy}</a> : "none"],
              ["Operator policy", queue.operator_policy || undefined],
              ["Exclusive owner", queue.owner_pid_details?.name],
              [queue.type === "quorum" ? "Leader" : "Node", queue.node],
            ]}
          />
        </Card>
        {isStream ? <StreamContents stream={queue} /> : <Contents queue={queue} capacity={consumers.length > 0} />}
        <Rules queue={queue} />
      </div>
      {queue.type === "quorum" && <Members host={host} name={name} />}
      {queue.type === "quorum" && <Availability host={host} name={name} />}
      <Card title={isStream ? `Consumers by AMQP (${count(consumers.length)})` : `Consumers (${count(queue.consumers)})`}>
        {consumers.length === 0 ? <p class="muted">{isStream ? "This stream has no consumers by AMQP." : "This queue has no consumers."}</p> : <Rows columns={CONSUMERS} rows={consumers} id={(consumer) => `${consumer.channel_details?.name}/${consumer.consumer_tag}`} what="consumers" />}
      </Card>
      {isStream && <StreamPanels host={host} name={name} />}
      <QueueBindings host={host} name={name} />
      {isStream && <BrowseStream key={path} host={host} name={name} />}
      {!isStream && <QueueMessages key={path} host={host} name={name} ready={queue.messages_ready} then={answer.reload} />}
      <PublishMessage host={host} exchange="" routingKey={name} then={answer.reload} />
      {!isStream && <GetMessages host={host} name={name} ready={queue.messages_ready} then={answer.reload} />}
      {isStream && <p class="muted">The messages of a stream stay in it until its retention drops the oldest ones. They are read by consumers, from any offset, and can be neither taken out nor purged.</p>}
      {isPolicymaker() && <p class="muted">The arguments of a queue cannot be changed once it is declared; a <a href={href("policies")}>policy</a> can.</p>}
    </>
  );
}

function Figures({ queue }: { queue: QueueDetail }) {
  return (
    <div class="figures">
      <Figure label="Ready">{count(queue.messages_ready)}</Figure>
      <Figure label="Unacked">{count(queue.messages_unacknowledged)}</Figure>
      <Figure label="Consumers" tone={queue.consumers === 0 && (queue.messages_ready ?? 0) > 0 ? "warn" : ""}>
        {count(queue.consumers)}
      </Figure>
      <Figure label="Publish">{rate(at(queue, "message_stats.publish_details.rate"))}</Figure>
      <Figure label="Deliver">{rate(at(queue, "message_stats.deliver_get_details.rate"))}</Figure>
    </div>
  );
}

function Contents({ queue, capacity }: { queue: QueueDetail; capacity: boolean }) {
  return (
    <Card title="Contents">
      <Facts
        rows={[
          ["Message bytes", bytes(queue.message_bytes)],
          ["Message bytes, ready", bytes(queue.message_bytes_ready)],
          ["Memory", bytes(queue.memory)],
          ["Timestamp of the head", typeof queue.head_message_timestamp === "number" ? moment(queue.head_message_timestamp * 1000) : undefined],
          ["Consumer capacity", typeof queue.consumer_utilisation === "number" && capacity ? `${Math.round(queue.consumer_utilisation * 100)} %` : undefined],
          ["Idle since", queue.idle_since === undefined ? undefined : moment(Date.parse(queue.idle_since))],
        ]}
      />
    </Card>
  );
}

/** Arguments and the policy in force, in words. */
function Rules({ queue }: { queue: QueueDetail }) {
  const rules = explained(queue.arguments, queue.effective_policy_definition, queue.type);
  return (
    <Card title="Effective limits">
      {rules.length === 0 ? (
        <p class="muted">{queue.type === "stream" ? "No retention: everything is kept." : "No maximum length, no TTL, no dead letter exchange."}</p>
      ) : (
        <Facts rows={rules.map(({ name, words, source }) => [name, <>{words}{source === "policy" && <span class="muted"> (policy)</span>}</>])} />
      )}
    </Card>
  );
}
