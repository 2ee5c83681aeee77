// The node: its budgets, its health, what it listens on, the configuration in force.

import { useState } from "preact/hooks";
import { NONE, bytes, count, duration } from "../format";
import { Badge, Card, Facts, Head, Waiting } from "../parts/bits";
import { Chart } from "../parts/chart";
import { Check } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";
import { isAdministrator } from "../session";
import { useTrail } from "../trail";
import { Alarms, Budgets, type NodeBody } from "./overview";

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
}

const CHECKS: [string, string][] = [
  ["/health/checks/alarms", "No alarms"],
  ["/health/checks/virtual-hosts", "All virtual hosts run"],
  ["/health/checks/ready-to-serve-clients", "Ready to serve clients"],
  ["/health/checks/below-node-connection-limit", "Below the limit of connections"],
];

export function NodePage() {
  const answer = useApi<NodeDetail[]>("/nodes");
  const nodes = answer.value;
  if (!Array.isArray(nodes)) {
    return (
      <>
        <Head title="Node" />
        <Waiting answer={answer} what="node" />
      </>
    );
  }
  return (
    <>
      <Alarms nodes={nodes} />
      {nodes.map((node) => (
        <One key={node.name} node={node} />
      ))}
    </>
  );
}

function One({ node }: { node: NodeDetail }) {
  const memory = useTrail(`node/${node.name}`, node, [{ label: "Memory", path: "mem_used" }]);
  const disk = useTrail(`disk/${node.name}`, node, [{ label: "Free disk", path: "disk_free" }]);
  return (
    <>
      <Head kind="Node" title={node.name}>
        <Badge tone={node.running === false ? "bad" : "good"}>{node.running === false ? "does not run" : "runs"}</Badge>
      </Head>
      <div class="charts">
        <Card title="Memory">
          <Chart title="Memory" trail={memory} unit={bytes} />
        </Card>
        <Card title="Free disk">
          <Chart title="Free disk" trail={disk} unit={bytes} />
        </Card>
      </div>
      <div class="cards">
        <Budgets node={node} />
        <MemoryByUse name={node.name} />
        <Health />
        <Card title="What it is">
          <Facts
            rows={[
              ["Process", node.os_pid],
              ["Compatible with", node.rabbitmq_version ? `RabbitMQ ${node.rabbitmq_version}` : undefined],
              ["Up for", duration(node.uptime)],
              ["Sockets", `${count(node.sockets_used)} of ${count(node.sockets_total)}`],
              ["Data", node.db_dir],
              ["Configuration", node.config_files && node.config_files.length > 0 ? node.config_files.join(", ") : undefined],
              ["Logs", node.log_files && node.log_files.length > 0 ? node.log_files.join(", ") : undefined],
              ["Log-ins by", (node.auth_mechanisms ?? []).filter(({ enabled }) => enabled !== false).map(({ name }) => name).join(", ") || NONE],
              ["Exchange types", (node.exchange_types ?? []).map(({ name }) => name).join(", ") || NONE],
            ]}
          />
        </Card>
      </div>
      {isAdministrator() && <Configuration />}
    </>
  );
}

/** RabbitMQ's names for the parts that this broker tells apart. */
const PARTS: [string, string][] = [
  ["queue_procs", "Messages in queues"],
  ["mgmt_db", "Samples for charts"],
  ["code", "The program"],
  ["other_system", "Connections, definitions, buffers, what is kept for reuse"],
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
  { title: "From", cell: (row) => (row.source === "default" ? <span class="muted">default</span> : row.source), from: 2 },
];

/** The configuration in force: at first what somebody has set. It changes with a start only. */
function Configuration() {
  const { value } = useApi<Setting[]>("/leveret/config");
  const [all, setAll] = useState(false);
  const [text, setText] = useState("");
  if (!Array.isArray(value)) return null;
  const wanted = text.trim().toLowerCase();
  const rows = value.filter((row) => (all || wanted !== "" || row.source !== "default") && `${row.key} ${row.value}`.toLowerCase().includes(wanted));
  return (
    <Card title="Configuration in force">
      <div class="filter">
        <input type="search" aria-label="Search in the configuration" placeholder="Search keys and values" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        <Check label={`all ${count(value.length)} keys, with their defaults`} value={all} onChange={setAll} />
      </div>
      {rows.length === 0 ? <p class="muted">{wanted ? "No key or value has this in it." : "Nothing was set: all keys have their defaults."}</p> : <Rows what="settings" rows={rows} id={(row) => `${row.key} ${row.source}`} columns={SETTINGS} />}
    </Card>
  );
}
