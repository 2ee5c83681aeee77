// Policies and operator policies, with what a pattern takes hold of shown before it is saved.

import { useEffect, useState } from "preact/hooks";
import { call, enc, get } from "../api";
import { count, exchangeName } from "../format";
import { Arguments, Badge, Card, Head, Vhost, Waiting } from "../parts/bits";
import { ConfirmButton, DialogButton } from "../parts/dialog";
import { Choice, Form, Table, Text, readTable } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { VhostChoice } from "../parts/vhosts";
import { useApi } from "../poll";
import { isAdministrator, isPolicymaker } from "../session";
import { inVhost, vhost } from "../vhost";
import { policyKeys } from "./shortcuts";

interface Policy {
  vhost: string;
  name: string;
  pattern: string;
  "apply-to": string;
  definition: Record<string, unknown>;
  priority: number;
}

type Kind = "policies" | "operator-policies";

export function Policies() {
  vhost.use();
  return (
    <>
      <Head title="Policies" />
      <List kind="policies" title="Policies" words="Settings for queues and exchanges whose names match a pattern. If several match, the one with the highest priority applies." may={isPolicymaker()} />
      <List kind="operator-policies" title="Operator policies" words="Limits that only administrators can change. They apply in addition to the policy; of two limits the lower one counts." may={isAdministrator()} />
    </>
  );
}

function List({ kind, title, words, may }: { kind: Kind; title: string; words: string; may: boolean }) {
  const answer = useApi<Policy[]>(inVhost(kind));
  const remove = async (policy: Policy) => {
    const done = await attempt(`Policy ${policy.name} was deleted`, () => call("DELETE", `/${kind}/${enc(policy.vhost)}/${enc(policy.name)}`));
    answer.reload();
    return done;
  };
  const columns: Column<Policy>[] = [
    { title: "Name", cell: (policy) => policy.name },
    { title: "Virtual host", cell: (policy) => <Vhost name={policy.vhost} />, from: 3 },
    { title: "Pattern", cell: (policy) => <code>{policy.pattern}</code>, from: 2 },
    { title: "Applies to", cell: (policy) => policy["apply-to"], from: 2 },
    { title: "Definition", cell: (policy) => <Arguments table={policy.definition} /> },
    { title: "Priority", number: true, cell: (policy) => count(policy.priority), from: 2 },
  ];
  if (may) {
    columns.push({
      title: "Actions",
      cell: (policy) => (
        <span class="buttons">
          <DialogButton label="Edit" title={`Policy ${policy.name}`} class="small">
            {(close) => <PolicyForm kind={kind} policy={policy} then={() => (close(), answer.reload())} />}
          </DialogButton>
          <ConfirmButton small label="Delete" title={`Delete ${policy.name}?`} text="Queues and exchanges lose its settings at once." action={() => remove(policy)} />
        </span>
      ),
    });
  }
  return (
    <Card
      title={title}
      aside={
        may && (
          <DialogButton label={kind === "policies" ? "New policy" : "New operator policy"} title={kind === "policies" ? "New policy" : "New operator policy"} class="primary">
            {(close) => <PolicyForm kind={kind} then={() => (close(), answer.reload())} />}
          </DialogButton>
        )
      }
    >
      <p class="muted">{words}</p>
      {answer.value === undefined ? <Waiting answer={answer} what={title.toLowerCase()} /> : answer.value.length === 0 ? <p class="muted">None.</p> : <Rows columns={columns} rows={answer.value} id={(policy) => `${policy.vhost} ${policy.name}`} what={title} />}
    </Card>
  );
}

function written(definition: Record<string, unknown>): string {
  return Object.entries(definition)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    .join("\n");
}

function PolicyForm({ kind, policy, then }: { kind: Kind; policy?: Policy; then(): void }) {
  const [host, setHost] = useState(policy?.vhost ?? (vhost.get() || "/"));
  const [name, setName] = useState(policy?.name ?? "");
  const [pattern, setPattern] = useState(policy?.pattern ?? "");
  const [applies, setApplies] = useState(policy?.["apply-to"] ?? (kind === "policies" ? "all" : "queues"));
  const [table, setTable] = useState(policy ? written(policy.definition) : "");
  const [priority, setPriority] = useState(String(policy?.priority ?? 0));
  const save = () => call("PUT", `/${kind}/${enc(host)}/${enc(name)}`, { pattern, "apply-to": applies, definition: readTable(table), priority: Number(priority) });
  const targets = ["queues", "classic_queues", "quorum_queues", "streams"];
  return (
    <Form label="Save" done={`Policy ${name} was saved`} action={save} then={then}>
      {!policy && <VhostChoice value={host} onChange={setHost} />}
      {!policy && <Text label="Name" value={name} onChange={setName} required />}
      <Text label="Pattern" value={pattern} onChange={setPattern} required hint="A regular expression: ^orders\. matches all names that begin with orders." />
      <div class="row">
        <Choice label="Applies to" value={applies} options={kind === "policies" ? ["all", "exchanges", ...targets] : targets} onChange={setApplies} />
        <Text label="Priority" value={priority} onChange={setPriority} />
      </div>
      <Table label="Definition" value={table} onChange={setTable} shortcuts={policyKeys(kind, applies)} />
      <Preview host={host} pattern={pattern} applies={applies} />
    </Form>
  );
}

interface Named {
  name: string;
  policy?: string | null;
}

/** So many candidates are looked at; the count is a lower bound behind them. */
const LOOKED_AT = 500;

/** What a pattern takes hold of. The broker's filter does not look at upper and lower case, policies do: so the page filters once more. */
function Preview({ host, pattern, applies }: { host: string; pattern: string; applies: string }) {
  const [found, setFound] = useState<{ words: string; names: Named[] } | null>(null);
  useEffect(() => {
    if (pattern === "") return setFound(null);
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const expression = new RegExp(pattern);
        const lists = applies === "all" ? ["queues", "exchanges"] : [applies === "exchanges" ? "exchanges" : "queues"];
        const parameters = new URLSearchParams({ page: "1", page_size: String(LOOKED_AT), name: pattern, use_regex: "true", columns: "name,policy,type" });
        const pages = await Promise.all(lists.map((list) => get<{ items: (Named & { type?: string })[]; filtered_count: number }>(`/${list}/${enc(host)}?${parameters}`, stop.signal)));
        const types: Record<string, string> = { classic_queues: "classic", quorum_queues: "quorum", streams: "stream" };
        const names = pages.flatMap((page) => page.items).filter((item) => expression.test(item.name) && (!types[applies] || item.type === types[applies]));
        const more = pages.some((page) => page.filtered_count > LOOKED_AT);
        setFound({ words: `${more ? "At least " : ""}${count(names.length)} ${names.length === 1 ? "match" : "matches"}`, names: names.slice(0, 12) });
      } catch (error) {
        if (!stop.signal.aborted) setFound({ words: error instanceof Error ? error.message : String(error), names: [] });
      }
    }, 300);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [host, pattern, applies]);
  if (!found) return null;
  return (
    <div role="status" class="preview">
      <b>{found.words}</b>{" "}
      {found.names.map((item) => (
        <Badge key={item.name} title={item.policy ? `current policy: ${item.policy}` : "no policy at present"}>
          {exchangeName(item.name)}
        </Badge>
      ))}
    </div>
  );
}
