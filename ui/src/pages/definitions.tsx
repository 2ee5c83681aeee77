// Everything that was declared as one document: out, and in after a look at what it would change.

import { useState } from "preact/hooks";
import { call, enc, get } from "../api";
import { count } from "../format";
import { Badge, Card, Head } from "../parts/bits";
import { Choice, Form } from "../parts/form";
import { Rows } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";

type Item = Record<string, unknown>;
type Document = Record<string, unknown>;

const LISTS = ["vhosts", "users", "permissions", "topic_permissions", "policies", "parameters", "global_parameters", "queues", "exchanges", "bindings"];
/** What tells one object from another, by list. */
const KEYS = ["vhost", "user", "component", "name", "exchange", "source", "destination", "destination_type", "routing_key"];

interface Difference {
  list: string;
  key: string;
  kind: "new" | "different" | "same";
}

export function Definitions() {
  const [scope, setScope] = useState("");
  const names = useApi<{ name: string }[]>("/vhosts?columns=name").value;
  const path = scope === "" ? "/definitions" : `/definitions/${enc(scope)}`;
  const scopes: [string, string][] = [["", "the whole node"], ...(Array.isArray(names) ? names : []).map(({ name }): [string, string] => [name, `virtual host ${name}`])];
  const save = () =>
    attempt("The definitions are saved", async () => {
      const text = JSON.stringify(await get<Document>(path), null, 2);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
      link.download = `definitions${scope === "" ? "" : `-${scope.replace(/\W+/g, "_")}`}.json`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
  return (
    <>
      <Head title="Definitions" />
      <p class="muted">Users, virtual hosts, permissions, policies, exchanges, queues and bindings in RabbitMQ's form; messages are no part of them.</p>
      <Choice label="Of" value={scope} options={scopes} onChange={setScope} />
      <div class="cards">
        <Card title="Out">
          <p>Save them as a file. Passwords are in it as hashes: keep it as you keep those.</p>
          <button type="button" class="primary" onClick={save}>
            Download
          </button>
        </Card>
      </div>
      <Import key={path} path={path} />
    </>
  );
}

function Import({ path }: { path: string }) {
  const [chosen, setChosen] = useState<Document | null>(null);
  const [found, setFound] = useState<Difference[]>([]);
  const look = (event: Event) =>
    attempt("", async () => {
      setChosen(null);
      const file = (event.currentTarget as HTMLInputElement).files?.[0];
      if (!file) return;
      let document: unknown;
      try {
        document = JSON.parse(await file.text());
      } catch {
        throw new Error(`${file.name} is no JSON`);
      }
      if (typeof document !== "object" || document === null || !LISTS.some((list) => Array.isArray((document as Document)[list]))) throw new Error(`${file.name} holds no definitions`);
      setFound(compare(document as Document, await get<Document>(path)));
      setChosen(document as Document);
    });
  const changes = found.filter(({ kind }) => kind !== "same");
  return (
    <Card title="In">
      <p>Choose a file; nothing is changed before you have seen what it would do.</p>
      <label class="file">
        <span class="hidden">File with definitions</span>
        <input type="file" accept=".json,application/json" onChange={look} />
      </label>
      {chosen && (
        <>
          <p role="status">
            <b>{count(found.filter(({ kind }) => kind === "new").length)}</b> new, <b>{count(found.filter(({ kind }) => kind === "different").length)}</b> different, {count(found.length - changes.length)} as they are here. What is here and not in the file stays.
          </p>
          {changes.length > 0 && (
            <Rows
              what="changes"
              rows={changes.slice(0, 200)}
              id={(row) => `${row.list} ${row.key}`}
              columns={[
                { title: "What", cell: (row) => row.list.replace(/_/g, " ") },
                { title: "Which", cell: (row) => row.key },
                { title: "Is", cell: (row) => <Badge tone={row.kind === "new" ? "good" : "warn"}>{row.kind}</Badge> },
              ]}
            />
          )}
          {changes.length > 200 && <p class="muted">The first 200 are shown.</p>}
          <Form label="Import" done="The definitions are imported" action={() => call("POST", path, chosen)} then={() => setChosen(null)}>
            <p class="muted">Users, permissions and policies become what the file says; queues and exchanges that exist stay as they are.</p>
          </Form>
        </>
      )}
    </Card>
  );
}

/** Which objects of a document are not here, or are otherwise. The order of members means nothing. */
export function compare(wanted: Document, here: Document): Difference[] {
  return LISTS.flatMap((list) => {
    const known = new Map(items(here, list).map((item) => [keyOf(item), canonical(item)]));
    return items(wanted, list).map((item): Difference => {
      const key = keyOf(item);
      const found = known.get(key);
      return { list, key, kind: found === undefined ? "new" : found === canonical(item) ? "same" : "different" };
    });
  });
}

function items(document: Document, list: string): Item[] {
  const found = document[list];
  return Array.isArray(found) ? (found as Item[]) : [];
}

/** Bindings with the same ends and key differ by their arguments. */
function keyOf(item: Item): string {
  const words = KEYS.filter((name) => item[name] !== undefined).map((name) => String(item[name]));
  if (item["source"] !== undefined && Object.keys((item["arguments"] as object) ?? {}).length > 0) words.push(canonical(item["arguments"]));
  return words.join(" · ");
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${name}:${canonical(member)}`).join()}}`;
}
