// The node at a glance: what is wrong, how much waits, how fast it goes.

import type { ComponentChildren } from "preact";
import { NONE, at, bytes, count, duration, rate } from "../format";
import { Card, Facts, Figure, Head, Waiting } from "../parts/bits";
import { Chart, RangeChoice } from "../parts/chart";
import { useApi } from "../poll";
import { href } from "../router";
import { isAdministrator, isMonitor } from "../session";
import { samples, useRange, useTrail } from "../trail";
import { FirstSteps } from "./connect";
import { Level, Time, type LogBody } from "./logs";
import { Losses } from "./losses";
import { Times } from "./times";

export interface Listener {
  node?: string;
  protocol: string;
  ip_address: string;
  port: number;
  tls?: boolean;
}

export interface OverviewBody {
  cluster_name?: string;
  node?: string;
  product_name?: string;
  product_version?: string;
  rabbitmq_version?: string;
  object_totals?: Record<string, number>;
  queue_totals?: Record<string, number>;
  message_stats?: Record<string, unknown>;
  churn_rates?: Record<string, unknown>;
  listeners?: Listener[];
}

export interface NodeBody {
  name: string;
  running?: boolean;
  uptime?: number;
  mem_used?: number;
  mem_limit?: number;
  mem_alarm?: boolean;
  disk_free?: number;
  disk_free_limit?: number;
  disk_free_alarm?: boolean;
  fd_used?: number;
  fd_total?: number;
  processors?: number;
}

export function Overview() {
  const [range] = useRange();
  const answer = useApi<OverviewBody>(`/overview?${samples(range, "lengths", "msg_rates")}`);
  const nodes = useApi<NodeBody[]>(isMonitor() ? "/nodes" : null);
  const body = answer.value;
  const lengths = useTrail(body, range, [
    { label: "Ready", path: "queue_totals.messages_ready" },
    { label: "Unacked", path: "queue_totals.messages_unacknowledged" },
  ]);
  const rates = useTrail(body, range, [
    { label: "Publish", path: "message_stats.publish", rate: true },
    { label: "Deliver", path: "message_stats.deliver_get", rate: true },
    { label: "Ack", path: "message_stats.ack", rate: true },
    { label: "Confirm", path: "message_stats.confirm", rate: true },
  ]);
  if (!body) return <Waiting answer={answer} what="overview" />;
  const totals = body.object_totals ?? {};
  const counted = (name: string) => count(totals[name]);
  return (
    <>
      <Head title={body.cluster_name ?? "Overview"}>
        <span class="muted">
          {body.product_name} {body.product_version}
        </span>
        <RangeChoice />
      </Head>
      <div class="figures">
        <Figure label="Queues" to={href("queues")}>
          {counted("queues")}
        </Figure>
        <Figure label="Exchanges" to={href("exchanges")}>
          {counted("exchanges")}
        </Figure>
        <Figure label="Connections" to={href("connections")}>
          {counted("connections")}
        </Figure>
        <Figure label="Channels" to={href("channels")}>
          {counted("channels")}
        </Figure>
        <Figure label="Consumers" to={href("consumers")}>
          {counted("consumers")}
        </Figure>
      </div>
      {totals["queues"] === 0 && totals["connections"] === 0 && <FirstSteps listeners={body.listeners?.filter(({ node }) => node === undefined || node === body.node)} />}
      <div class="charts">
        <Card title="Queued messages">
          <Chart title="Queued messages" trail={lengths} />
        </Card>
        <Card title="Message rates">
          <Chart title="Message rates" trail={rates} unit="rate" />
        </Card>
      </div>
      <Losses of={body} range={range} />
      {isMonitor() && Array.isArray(nodes.value) && nodes.value.length > 1 && (
        <p class="muted">Latencies, changes and warnings are those of {body.node}. Those of other nodes stand on the pages Node and Log.</p>
      )}
      {isMonitor() && <Times path="/leveret/times" />}
      <div class="charts">
        {isAdministrator() && <Lately path="/leveret/audit?count=6" title="Latest changes" to="audit" none="Nothing was changed through the HTTP API since the node started." />}
        {isMonitor() && <Lately path="/leveret/logs?count=6&level=warning" title="Latest warnings" to="logs" none="None since the node started." />}
      </div>
      <div class="cards">
        {Array.isArray(nodes.value) && nodes.value.map((node) => <Budgets key={node.name} node={node} more />)}
        <Card title="Churn">
          <Facts
            rows={[
              ["Connections opened", churn(body, "connection_created")],
              ["Connections closed", churn(body, "connection_closed")],
              ["Channels opened", churn(body, "channel_created")],
              ["Queues declared", churn(body, "queue_declared")],
              ["Queues deleted", churn(body, "queue_deleted")],
              ["Unroutable, returned", stat(body, "return_unroutable")],
              ["Unroutable, dropped", stat(body, "drop_unroutable")],
            ]}
          />
        </Card>
        {body.listeners && (
          <Card title="Listening ports">
            <Ports listeners={body.listeners} />
          </Card>
        )}
      </div>
    </>
  );
}

/** The ports of each node; of one alone without its name. */
function Ports({ listeners }: { listeners: Listener[] }) {
  const nodes = [...new Set(listeners.map(({ node }) => node))].sort();
  const rows = (node: string | undefined) =>
    listeners
      .filter((listener) => listener.node === node)
      .map((listener): [string, ComponentChildren] => [`${listener.protocol}${listener.tls ? " (TLS)" : ""}`, <code>{`${listener.ip_address}:${listener.port}`}</code>]);
  return (
    <>
      {nodes.map((node) => (
        <div key={node}>
          {nodes.length > 1 && <h3>{node}</h3>}
          <Facts rows={rows(node)} />
        </div>
      ))}
    </>
  );
}

/** The latest lines of the log, or of the audit trail. */
function Lately({ path, title, to, none }: { path: string; title: string; to: string; none: string }) {
  const lines = useApi<LogBody>(path).value?.lines;
  if (!lines) return null;
  return (
    <Card title={title} aside={<a href={href(to)}>More</a>}>
      {lines.length === 0 ? (
        <p class="muted">{none}</p>
      ) : (
        <ul class="holds">
          {lines.map((line, at) => (
            <li key={`${line.at} ${at}`} >
              <span class="muted">
                <Time at={line.at} />
              </span>{" "}
              {line.level !== "info" && <Level value={line.level} />} <span class="log">{line.text}</span>
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function churn(body: OverviewBody, name: string) {
  return counter(body.churn_rates, name);
}

function stat(body: OverviewBody, name: string) {
  return counter(body.message_stats, name);
}

function counter(table: unknown, name: string): string {
  const total = at(table, name);
  return total === undefined ? NONE : `${count(total)} (${rate(at(table, `${name}_details.rate`))})`;
}

export function Budgets({ node, more }: { node: NodeBody; more?: boolean }) {
  if (node.mem_used === undefined)
    return (
      <Card title={node.name} aside={more && <a href={href("node")}>More</a>}>
        <p class="muted">{node.running === false ? "It does not run, or cannot be reached." : "It says nothing of itself."}</p>
      </Card>
    );
  return (
    <Card title={node.name} aside={more && <a href={href("node")}>More</a>}>
      <Gauge label="Memory" used={node.mem_used} limit={node.mem_limit} words={`${bytes(node.mem_used)} of ${bytes(node.mem_limit)}`} />
      <Gauge label="Open files" used={node.fd_used} limit={node.fd_total} words={`${count(node.fd_used)} of ${count(node.fd_total)}`} />
      <Facts
        rows={[
          ["Free disk space", `${bytes(node.disk_free)} (alarm below ${bytes(node.disk_free_limit)})`],
          ["Uptime", duration(node.uptime)],
          ["Processors", count(node.processors)],
        ]}
      />
    </Card>
  );
}

function Gauge({ label, used, limit, words }: { label: string; used: number | undefined; limit: number | undefined; words: string }) {
  const known = typeof used === "number" && typeof limit === "number" && limit > 0;
  return (
    <label class="gauge">
      <span>{label}</span>
      <span>{words}</span>
      <meter min={0} max={1} low={0.7} high={0.9} optimum={0} value={known ? Math.min(used / limit, 1) : 0} />
    </label>
  );
}
