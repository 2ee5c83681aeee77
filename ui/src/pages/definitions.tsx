// Everything that was declared as one document: exported, and imported after a look at what that would change.

import { useState } from "preact/hooks";
import { call, enc, get } from "../api";
import { count } from "../format";
import { Badge, Card, Head } from "../parts/bits";
import { Check, Choice, Form } from "../parts/form";
import { Rows } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";

type Item = Record<string, unknown>;
type Document = Record<string, unknown>;

const LISTS = ["vhosts", "users", "permissions", "topic_permissions", "policies", "parameters", "global_parameters", "queues", "exchanges", "bindings"];
/** What tells one object from another, by list. */
const KEYS = ["vhost", "user", "component", "name", "exchange", "source", "destination", "destination_type", "routing_key"];

type Kind = "new" | "different" | "same";

interface Difference {
  list: string;
  index: number;
  key: string;
  kind: Kind;
}

/** What the broker has to say about an object of a document. */
interface Remark {
  outcome: "refused" | "skipped" | "converted" | "kept" | "noted";
  class: string;
  index: number;
  reason: string;
  instead?: string;
}

interface Report {
  importable: boolean;
  remarks: Remark[];
  omitted: number;
}

interface Choices {
  skip: boolean;
  classic: boolean;
}

const asQuery = ({ skip, classic }: Choices): string => new URLSearchParams({ on_unsupported: skip ? "skip" : "refuse", quorum_as: classic ? "classic" : "refuse" }).toString();

export function Definitions() {
  const [scope, setScope] = useState("");
  const names = useApi<{ name: string }[]>("/vhosts?columns=name").value;
  const path = scope === "" ? "/definitions" : `/definitions/${enc(scope)}`;
  const scopes: [string, string][] = [["", "the whole node"], ...(Array.isArray(names) ? names : []).map(({ name }): [string, string] => [name, `virtual host ${name}`])];
  const save = () =>
    attempt("The definitions were exported", async () => {
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
      <p class="muted">Users, virtual hosts, permissions, policies, exchanges, queues and bindings in RabbitMQ's format, without messages.</p>
      <div class="narrow">
        <Choice label="Scope" value={scope} options={scopes} onChange={setScope} />
      </div>
      <div class="cards">
        <Card title="Export">
          <p>Download the definitions as a file. It contains password hashes: store it as carefully as those.</p>
          <button type="button" class="primary" onClick={save}>
            Download
          </button>
        </Card>
      </div>
      <Import key={path} path={path} scope={scope} />
    </>
  );
}

function Import({ path, scope }: { path: string; scope: string }) {
  const [chosen, setChosen] = useState<Document | null>(null);
  const [found, setFound] = useState<Difference[]>([]);
  const [report, setReport] = useState<Report | null>(null);
  const [choices, setChoices] = useState<Choices>({ skip: false, classic: false });
  const check = (document: Document, wanted: Choices) => call<Report>("POST", `/leveret/definitions/check${scope === "" ? "" : `/${enc(scope)}`}?${asQuery(wanted)}`, document);
  const look = (event: Event) =>
    attempt("", async () => {
      setChosen(null);
      const file = (event.currentTarget as HTMLInputElement).files?.[0];
      if (!file) return;
      let document: unknown;
      try {
        document = JSON.parse(await file.text());
      } catch {
        throw new Error(`${file.name} is not JSON`);
      }
      if (typeof document !== "object" || document === null || !LISTS.some((list) => Array.isArray((document as Document)[list]))) throw new Error(`${file.name} contains no definitions`);
      setFound(compare(document as Document, await get<Document>(path)));
      setReport(await check(document as Document, choices));
      setChosen(document as Document);
    });
  const choose = (part: Partial<Choices>) =>
    attempt("", async () => {
      const wanted = { ...choices, ...part };
      setChoices(wanted);
      if (chosen) setReport(await check(chosen, wanted));
    });
  return (
    <Card title="Import">
      <p>Choose a file. Nothing is changed before you have seen what the import would do.</p>
      <label class="file">
        <span class="hidden">File with definitions</span>
        <input type="file" accept=".json,application/json" onChange={look} />
      </label>
      <fieldset class="apart">
        <legend>What this version does not support</legend>
        <Check label="Leave it out, with everything that depends on it, and import the rest" value={choices.skip} onChange={(skip) => void choose({ skip })} />
        <Check label="Import quorum queues as durable classic queues" value={choices.classic} onChange={(classic) => void choose({ classic })} />
      </fieldset>
      {chosen && report && (
        <>
          <Preview found={found} report={report} />
          {report.importable ? (
            <Form label="Import" done="The definitions were imported" action={() => call("POST", `${path}?${asQuery(choices)}`, chosen)} then={() => setChosen(null)}>
              <p class="muted">Users, permissions and policies that exist are overwritten; queues and exchanges that exist stay as they are. What is not in the file is left alone.</p>
            </Form>
          ) : (
            <p class="refused" role="alert">
              This file cannot be imported as it is: nothing of it would be. See what is refused above{choices.skip && choices.classic ? "." : ", or choose above what to do with it."}
            </p>
          )}
        </>
      )}
    </Card>
  );
}

const TONES: Record<string, "" | "good" | "warn" | "bad"> = { new: "good", different: "warn", refused: "bad", skipped: "warn", converted: "warn", kept: "", noted: "" };
const OUTCOMES: Record<string, string> = { refused: "refused", skipped: "left out", converted: "converted", kept: "stays as it is", noted: "note" };
/** What is refused comes first. */
const ORDER = ["refused", "skipped", "converted", "kept", "noted", "different", "new"];
const SHOWN = 200;

interface Row extends Difference {
  outcome: string;
  remark: Remark | undefined;
}

function Preview({ found, report }: { found: Difference[]; report: Report }) {
  const remarks = new Map(report.remarks.map((remark) => [`${remark.class} ${remark.index}`, remark]));
  const all = found.map((it): Row => {
    const remark = remarks.get(`${it.list} ${it.index}`);
    return { ...it, remark, outcome: remark && remark.outcome !== "noted" ? remark.outcome : it.kind };
  });
  const many = (outcome: string) => all.filter((row) => row.outcome === outcome).length;
  const rows = all.filter((row) => row.outcome !== "same" || row.remark).sort((a, b) => ORDER.indexOf(a.outcome) - ORDER.indexOf(b.outcome));
  const others = ["refused", "skipped", "converted", "kept"].filter((outcome) => many(outcome) > 0);
  return (
    <>
      <p role="status">
        <b>{count(many("new"))}</b> new, <b>{count(many("different"))}</b> different, {count(many("same"))} already the same
        {others.map((outcome) => (
          <span key={outcome}>
            , <b>{count(many(outcome))}</b> {outcome === "kept" ? "stay as they are" : OUTCOMES[outcome]}
          </span>
        ))}
        .
      </p>
      {rows.length > 0 && (
        <Rows
          what="changes"
          rows={rows.slice(0, SHOWN)}
          id={(row) => `${row.list} ${row.index}`}
          columns={[
            { title: "Class", cell: (row) => row.list.replace(/_/g, " ") },
            { title: "Object", cell: (row) => row.key },
            { title: "Outcome", cell: (row) => <Badge tone={TONES[row.outcome] ?? ""}>{OUTCOMES[row.outcome] ?? row.outcome}</Badge> },
            {
              title: "Reason",
              cell: (row) =>
                row.remark && (
                  <>
                    {row.remark.reason}
                    {row.remark.instead && row.outcome === "refused" && <small class="under">{row.remark.instead}</small>}
                  </>
                ),
            },
          ]}
        />
      )}
      {rows.length > SHOWN && <p class="muted">Only the first {SHOWN} of {count(rows.length)} are shown.</p>}
      {report.omitted > 0 && <p class="muted">There are {count(report.omitted)} further remarks.</p>}
    </>
  );
}

/** Which objects of a document are not here, or are otherwise. The order of members means nothing. */
export function compare(wanted: Document, here: Document): Difference[] {
  return LISTS.flatMap((list) => {
    const known = new Map(items(here, list).map((item) => [keyOf(item), canonical(item)]));
    return items(wanted, list).map((item, index): Difference => {
      const key = keyOf(item);
      const found = known.get(key);
      return { list, index, key, kind: found === undefined ? "new" : found === canonical(item) ? "same" : "different" };
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
