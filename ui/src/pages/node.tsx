// The node: its budgets, its health, what it listens on, the configuration in force.

import { NONE, bytes, count, duration, shown } from "../format";
import { Badge, Card, Facts, Head, Waiting } from "../parts/bits";
import { Chart } from "../parts/chart";
import { Rows } from "../parts/listing";
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

/** The configuration in force, where the broker tells it. */
function Configuration() {
  const { value } = useApi<unknown>("/config/effective");
  if (typeof value !== "object" || value === null) return null;
  const rows = Array.isArray(value) ? (value as Record<string, unknown>[]) : Object.entries(value).map(([key, found]) => ({ key, value: found }) as Record<string, unknown>);
  return (
    <Card title="Configuration in force">
      <Rows
        what="settings"
        rows={rows}
        id={(row) => shown(row["key"])}
        columns={[
          { title: "Key", cell: (row) => <code>{shown(row["key"])}</code> },
          { title: "Value", cell: (row) => shown(row["value"]) },
          { title: "Default", cell: (row) => (row["default"] === undefined ? NONE : shown(row["default"])), from: 2 },
          { title: "From", cell: (row) => (row["source"] === undefined ? NONE : shown(row["source"])), from: 2 },
        ]}
      />
    </Card>
  );
}
