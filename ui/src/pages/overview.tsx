// The node at a glance: what is wrong, how much waits, how fast it goes.

import { NONE, at, bytes, count, duration, rate } from "../format";
import { Badge, Card, Facts, Figure, Head, Waiting } from "../parts/bits";
import { Chart } from "../parts/chart";
import { useApi } from "../poll";
import { href } from "../router";
import { isAdministrator, isMonitor } from "../session";
import { SAMPLES, useTrail } from "../trail";
import { FirstSteps } from "./connect";
import { Level, Time, type LogBody } from "./logs";
import { Times } from "./times";

export interface Listener {
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
  const answer = useApi<OverviewBody>(`/overview?${SAMPLES}`);
  const nodes = useApi<NodeBody[]>(isMonitor() ? "/nodes" : null);
  const body = answer.value;
  const lengths = useTrail("overview/lengths", body, [
    { label: "Ready", path: "queue_totals.messages_ready" },
    { label: "Unacked", path: "queue_totals.messages_unacknowledged" },
  ]);
  const rates = useTrail("overview/rates", body, [
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
      </Head>
      {Array.isArray(nodes.value) && <Alarms nodes={nodes.value} />}
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
        <Figure label="Consumers">{counted("consumers")}</Figure>
      </div>
      {totals["queues"] === 0 && totals["connections"] === 0 && <FirstSteps listeners={body.listeners} />}
      <div class="charts">
        <Card title="Messages waiting">
          <Chart title="Messages waiting" trail={lengths} />
        </Card>
        <Card title="Messages a second">
          <Chart title="Messages a second" trail={rates} unit={rate} />
        </Card>
      </div>
      {isMonitor() && <Times path="/leveret/times" />}
      <div class="charts">
        {isAdministrator() && <Lately path="/leveret/audit?count=6" title="What changed last" to="audit" none="Nobody has changed anything by the HTTP API since the start." />}
        {isMonitor() && <Lately path="/leveret/logs?count=6&level=warning" title="Latest warnings" to="logs" none="None since the start." />}
      </div>
      <div class="cards">
        {Array.isArray(nodes.value) && nodes.value.map((node) => <Budgets key={node.name} node={node} more />)}
        <Card title="Comings and goings">
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
          <Card title="Listens on">
            <Facts rows={body.listeners.map((listener) => [`${listener.protocol}${listener.tls ? " (TLS)" : ""}`, <code>{`${listener.ip_address}:${listener.port}`}</code>])} />
          </Card>
        )}
      </div>
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
            <li key={`${line.at} ${at}`} class="short" title={line.text}>
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

/** Alarms first, each with its reason and what helps. */
export function Alarms({ nodes }: { nodes: NodeBody[] }) {
  const lines: string[] = [];
  for (const node of nodes) {
    if (node.running === false) lines.push(`${node.name} does not run.`);
    if (node.mem_alarm) lines.push(`${node.name} uses ${bytes(node.mem_used)} of memory and may use ${bytes(node.mem_limit)}. Publishers are held until consumers have made room.`);
    if (node.disk_free_alarm) lines.push(`${node.name} has ${bytes(node.disk_free)} of free disk, less than the limit of ${bytes(node.disk_free_limit)}. Publishers are held until there is room on the disk.`);
  }
  if (lines.length === 0) return null;
  return (
    <div class="alarms" role="alert">
      {lines.map((line) => (
        <p key={line}>
          <Badge tone="bad">alarm</Badge> {line}
        </p>
      ))}
    </div>
  );
}

export function Budgets({ node, more }: { node: NodeBody; more?: boolean }) {
  return (
    <Card title={node.name} aside={more && <a href={href("node")}>More</a>}>
      <Gauge label="Memory" used={node.mem_used} limit={node.mem_limit} words={`${bytes(node.mem_used)} of ${bytes(node.mem_limit)}`} />
      <Gauge label="Files" used={node.fd_used} limit={node.fd_total} words={`${count(node.fd_used)} of ${count(node.fd_total)}`} />
      <Facts
        rows={[
          ["Free disk", `${bytes(node.disk_free)}; alarm below ${bytes(node.disk_free_limit)}`],
          ["Up for", duration(node.uptime)],
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
