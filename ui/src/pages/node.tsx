// The node: its budgets, its health, what it listens on, the configuration in force.

import { useState } from "preact/hooks";
import { NONE, bytes, count, duration } from "../format";
import { Badge, Card, Facts, Head, Waiting } from "../parts/bits";
import { Chart, RangeChoice } from "../parts/chart";
import { Check } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";
import { isAdministrator } from "../session";
import { samples, useRange, useTrail } from "../trail";
import type { Range } from "../samples";
import { Budgets, type NodeBody } from "./overview";
import { Times } from "./times";

interface NodeDetail extends NodeBody {
  os_pid?: string;
  rabbitmq_version?: string;
  sockets_used?: number;
  sockets_total?: number;
  auth_mechanisms?: { name: string; enabled?: boolean }[];
  exchange_types?: { name: string; description?: string }[];
  contexts?: { description: string; ip?: string; port: string; path?: string }[];
  config_files?: string[];
  db_dir?: string;
  log_files?: string[];
  cluster_links?: ClusterLink[];
  being_drained?: boolean;
  catalog?: Standing;
}

/** How a node stands in the group of nodes that decides about definitions. */
interface Standing {
  leader?: string | null;
  leads?: boolean;
  term?: number;
  applied?: number;
  fresh?: boolean;
}

interface ClusterLink {
  name: string;
  up?: boolean;
  round_trip_us?: number | null;
  send_bytes?: number;
  recv_bytes?: number;
  backlog_bytes?: number;
  dropped_frames?: number;
}

const CHECKS: [string, string][] = [
  ["/health/checks/alarms", "No alarms"],
  ["/health/checks/virtual-hosts", "All virtual hosts running"],
  ["/health/checks/ready-to-serve-clients", "Ready to serve clients"],
  ["/health/checks/below-node-connection-limit", "Below the connection limit"],
];

export function NodePage() {
  const [range] = useRange();
  const answer = useApi<NodeDetail[]>(`/nodes?${samples(range, "node_stats")}`);
  const asked = useApi<{ node?: string }>("/overview?columns=node").value?.node;
  const nodes = answer.value;
  if (!Array.isArray(nodes)) {
    return (
      <>
        <Head title="Node" />
        <Waiting answer={answer} what="node" />
      </>
    );
  }
  // Nobody has applied more changes than have been decided; who has applied fewer is behind.
  const decided = Math.max(0, ...nodes.map((node) => node.catalog?.applied ?? 0));
  return (
    <>
      {nodes.length > 1 && <Members nodes={nodes} decided={decided} />}
      {nodes.map((node) => (
        <One key={node.name} node={node} range={range} asked={nodes.length === 1 || node.name === asked} />
      ))}
      {isAdministrator() && <Configuration names={nodes.map(({ name }) => name)} own={asked} />}
    </>
  );
}

/** Who is of the cluster, who leads the group that decides about definitions, and who is behind. */
function Members({ nodes, decided }: { nodes: NodeDetail[]; decided: number }) {
  return (
    <>
      <Head title="Nodes" />
      <div class="cards">
        <Card title="Definitions">
          <Facts rows={nodes.map((node) => [node.name, <Stands key={node.name} node={node} decided={decided} />])} />
        </Card>
      </div>
    </>
  );
}

function Stands({ node, decided }: { node: NodeDetail; decided: number }) {
  if (node.running === false) return <Badge tone="bad">not running</Badge>;
  const standing = node.catalog;
  if (!standing) return <Badge tone="bad">no answer</Badge>;
  const behind = decided - (standing.applied ?? 0);
  return (
    <>
      {standing.leads && <Badge tone="good">leads</Badge>} {standing.fresh === false && <Badge tone="bad">reaches no majority</Badge>}{" "}
      {behind > 0 ? `${count(behind)} changes behind` : "in step"}, term {count(standing.term)}
    </>
  );
}

/** `asked`: it is the node that these pages come from, which alone tells of its health. */
function One({ node, range, asked }: { node: NodeDetail; range: Range; asked: boolean }) {
  const memory = useTrail(node, range, [{ label: "Memory in use", path: "mem_used" }]);
  const disk = useTrail(node, range, [{ label: "Free disk space", path: "disk_free" }]);
  const files = useTrail(node, range, [
    { label: "Open files", path: "fd_used" },
    { label: "Connections", path: "sockets_used" },
  ]);
  const churn = useTrail(node, range, [
    { label: "Connections opened", path: "connection_created", rate: true },
    { label: "Connections closed", path: "connection_closed", rate: true },
    { label: "Channels opened", path: "channel_created", rate: true },
    { label: "Queues declared", path: "queue_declared", rate: true },
  ]);
  if (node.mem_used === undefined)
    return (
      <>
        <Head kind="Node" title={node.name}>
          <Badge tone="bad">{node.running === false ? "not running" : "no answer"}</Badge>
        </Head>
        <p class="muted">{node.running === false ? "It does not run, or cannot be reached." : "It says nothing of itself."}</p>
        <StopImpact name={node.name} />
      </>
    );
  return (
    <>
      <Head kind="Node" title={node.name}>
        <Badge tone={node.running === false ? "bad" : "good"}>{node.running === false ? "not running" : "running"}</Badge>
        {node.being_drained && <Badge tone="warn">in maintenance</Badge>}
        <RangeChoice />
      </Head>
      <div class="charts">
        <Card title="Memory">
          <Chart title="Memory" trail={memory} unit="bytes" />
        </Card>
        <Card title="Disk">
          <Chart title="Disk" trail={disk} unit="bytes" />
        </Card>
        <Card title="Files and connections">
          <Chart title="Files and connections" trail={files} />
        </Card>
        <Card title="Churn">
          <Chart title="Churn" trail={churn} unit="rate" />
        </Card>
      </div>
      <Times path="/leveret/times" node={asked ? undefined : node.name} />
      <div class="cards">
        <Budgets node={node} />
        <MemoryByUse name={node.name} />
        {asked && <Health />}
        <StopImpact name={node.name} />
        {(node.cluster_links ?? []).length > 0 && <Links links={node.cluster_links ?? []} />}
        <Card title="Details">
          <Facts
            rows={[
              ["Process id", node.os_pid],
              ["Compatible with", node.rabbitmq_version ? `RabbitMQ ${node.rabbitmq_version}` : undefined],
              ["Uptime", duration(node.uptime)],
              ["Sockets", `${count(node.sockets_used)} of ${count(node.sockets_total)}`],
              ["Data directory", node.db_dir],
              ["Configuration", node.config_files && node.config_files.length > 0 ? node.config_files.join(", ") : undefined],
              ["Logs", node.log_files && node.log_files.length > 0 ? node.log_files.join(", ") : undefined],
              ["Authentication mechanisms", (node.auth_mechanisms ?? []).filter(({ enabled }) => enabled !== false).map(({ name }) => name).join(", ") || NONE],
              ["Exchange types", (node.exchange_types ?? []).map(({ name }) => name).join(", ") || NONE],
            ]}
          />
        </Card>
      </div>
    </>
  );
}

/** RabbitMQ's names for the parts that this broker tells apart. */
const PARTS: [string, string][] = [
  ["queue_procs", "Messages in queues"],
  ["mgmt_db", "Samples of charts"],
  ["code", "Program code"],
  ["other_system", "Connections, definitions, buffers"],
];

function MemoryByUse({ name }: { name: string }) {
  const { value } = useApi<{ memory?: Record<string, unknown> }>(`/nodes/${encodeURIComponent(name)}/memory`);
  const parts = value?.memory ?? {};
  return (
    <Card title="Memory by use">
      <Facts rows={PARTS.map(([part, words]) => [words, typeof parts[part] === "number" ? bytes(parts[part]) : undefined])} />
    </Card>
  );
}

interface Impact {
  running?: boolean;
  definitions_can_be_changed?: boolean;
  members?: number;
  running_without_it?: number;
  durable_queues?: number;
  transient_queues?: number;
  exclusive_queues?: number;
  exchanges?: number;
  connections?: number | null;
}

/** What would be unavailable if the node stopped, or is because it does not run. */
function StopImpact({ name }: { name: string }) {
  const { value } = useApi<Impact>(`/leveret/nodes/${encodeURIComponent(name)}/stop-impact`);
  if (!value) return null;
  const left = `${count(value.running_without_it)} of ${count(value.members)} nodes left`;
  return (
    <Card title={value.running === false ? "Unavailable while it does not run" : "If this node stops"}>
      <Facts
        rows={[
          ["Definitions and publishing", value.definitions_can_be_changed ? `go on: ${left}` : <>{`stop: ${left} `}<Badge tone="bad">no majority</Badge></>],
          ["Durable queues unavailable", count(value.durable_queues)],
          ["Transient queues deleted", count(value.transient_queues)],
          ["Exclusive queues emptied", count(value.exclusive_queues)],
          ["Exchanges that refuse", count(value.exchanges)],
          ["Connections to be made anew", typeof value.connections === "number" ? count(value.connections) : undefined],
        ]}
      />
    </Card>
  );
}

/** The links with the other nodes of the cluster. */
function Links({ links }: { links: ClusterLink[] }) {
  const words = (link: ClusterLink) => {
    const trip = typeof link.round_trip_us === "number" ? `${(link.round_trip_us / 1000).toFixed(1)} ms` : NONE;
    const waits = link.backlog_bytes ? `, ${bytes(link.backlog_bytes)} wait` : "";
    const lost = link.dropped_frames ? `, ${count(link.dropped_frames)} frames dropped` : "";
    return `round trip ${trip}, ${bytes(link.send_bytes)} sent, ${bytes(link.recv_bytes)} received${waits}${lost}`;
  };
  return (
    <Card title="Links">
      <Facts rows={links.map((link) => [link.name, link.up === false ? <Badge tone="bad">no link</Badge> : words(link)])} />
    </Card>
  );
}

function Health() {
  return (
    <Card title="Health">
      <Facts rows={CHECKS.map(([path, words]) => [words, <Result key={path} path={path} />])} />
    </Card>
  );
}

function Result({ path }: { path: string }) {
  const { value, error } = useApi<{ status?: string }>(path);
  if (value) return <Badge tone="good">{value.status ?? "ok"}</Badge>;
  if (error?.status === 503) return <Badge tone="bad">{error.message}</Badge>;
  return <>{NONE}</>;
}

interface Setting {
  key: string;
  value: string;
  default?: string | null;
  source: string;
  without_effect?: string | null;
}

const SETTINGS: Column<Setting>[] = [
  { title: "Key", cell: (row) => <code>{row.key}</code> },
  {
    title: "Value",
    cell: (row) => (
      <>
        {row.value}
        {row.without_effect && (
          <span class="under">
            <Badge tone="warn">no effect</Badge> {row.without_effect}
          </span>
        )}
      </>
    ),
  },
  { title: "Default", cell: (row) => row.default ?? NONE, from: 2 },
  { title: "Source", cell: (row) => (row.source === "default" ? <span class="muted">default</span> : row.source), from: 2 },
];

/** The configuration in force: at first what somebody has set. It changes with a start only. */
function Configuration({ names, own }: { names: string[]; own: string | undefined }) {
  const [chosen, setChosen] = useState<string>();
  const node = chosen ?? own;
  const { value } = useApi<Setting[]>(node === undefined ? null : `/leveret/config?node=${encodeURIComponent(node)}`);
  const [all, setAll] = useState(false);
  const [text, setText] = useState("");
  if (!Array.isArray(value)) return null;
  const wanted = text.trim().toLowerCase();
  const rows = value.filter((row) => (all || wanted !== "" || row.source !== "default") && `${row.key} ${row.value}`.toLowerCase().includes(wanted));
  return (
    <Card title={names.length > 1 ? `Effective configuration of ${node}` : "Effective configuration"}>
      <div class="filter">
        {names.length > 1 && (
          <select aria-label="Node" value={node} onChange={(event) => setChosen(event.currentTarget.value)}>
            {names.map((name) => (
              <option key={name} value={name} selected={name === node}>
                {name}
              </option>
            ))}
          </select>
        )}
        <input type="search" aria-label="Search in the configuration" placeholder="Search keys and values" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Check label={`Show all ${count(value.length)} keys with their defaults`} value={all} onChange={setAll} />
      </div>
      {rows.length === 0 ? <p class="muted">{wanted ? "No key or value contains this." : "Nothing is set: all keys have their defaults."}</p> : <Rows what="settings" rows={rows} id={(row) => `${row.key} ${row.source}`} columns={SETTINGS} />}
    </Card>
  );
}
