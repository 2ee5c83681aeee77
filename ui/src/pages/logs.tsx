// The last lines of the log and of the audit trail, as they come.

import { count, duration, moment } from "../format";
import { Badge, Head, Waiting } from "../parts/bits";
import { Rows, type Column } from "../parts/listing";
import { useApi } from "../poll";
import { href, place, show } from "../router";
import { isAdministrator } from "../session";
import { useTyped } from "../typed";
import { useRef, useState } from "preact/hooks";

export interface LogLine {
  at: number;
  level: string;
  area: string;
  text: string;
}

export interface LogBody {
  lines?: LogLine[];
  areas?: string[];
  kept?: number;
  kept_at_most?: number;
  oldest?: number | null;
}

const TONES: Record<string, "" | "warn" | "bad"> = { error: "bad", warning: "warn" };

/** Hours, minutes, seconds and what is below them; the day stands in the title. */
export function Time({ at }: { at: number }) {
  const day = new Date(at);
  return (
    <time dateTime={day.toISOString()} title={moment(at)}>
      {day.toTimeString().slice(0, 8)}.{String(day.getMilliseconds()).padStart(3, "0")}
    </time>
  );
}

export const Level = ({ value }: { value: string }) => <Badge tone={TONES[value] ?? ""}>{value}</Badge>;

const COLUMNS: Column<LogLine>[] = [
  { title: "When", cell: (line) => <Time at={line.at} /> },
  { title: "Level", cell: (line) => <Level value={line.level} />, from: 2 },
  { title: "Area", cell: (line) => line.area, from: 2 },
  {
    title: "Line",
    cell: (line) => (
      <>
        {line.level !== "info" && (
          <span class="only2">
            <Level value={line.level} />{" "}
          </span>
        )}
        <span class="log">{line.text}</span>
      </>
    ),
  },
];

/** Lines are looked at more often than figures, in seconds. */
const PACE = 1;

export function Logs({ audit }: { audit: boolean }) {
  const query = place.use().query;
  const asked = new URLSearchParams({ count: query.get("count") ?? "100" });
  for (const name of ["node", "level", "area", "text"]) if (query.get(name)) asked.set(name, query.get(name)!);
  const [held, setHeld] = useState(false);
  const path = `/leveret/${audit ? "audit" : "logs"}?${asked}`;
  const answer = useApi<LogBody>(path, PACE);
  // Lines that somebody reads stay where they are.
  const kept = useRef<LogBody | undefined>(undefined);
  if (!held || !kept.current) kept.current = answer.value;
  const body = held ? kept.current : answer.value;
  const lines = body?.lines ?? [];
  const node = query.get("node");
  const of = (page: string) => href(page) + (node ? `?node=${encodeURIComponent(node)}` : "");
  return (
    <>
      <Head title={audit ? "Audit trail" : "Log"}>
        <button type="button" aria-pressed={held} onClick={() => setHeld(!held)}>
          {held ? "Resume" : "Pause"}
        </button>
      </Head>
      <div class="tabs" role="group" aria-label="Which lines">
        <a class="tab" href={of("logs")} aria-current={audit ? undefined : "page"}>
          Log
        </a>
        {isAdministrator() && (
          <a class="tab" href={of("audit")} aria-current={audit ? "page" : undefined}>
            Audit trail
          </a>
        )}
      </div>
      <Filter audit={audit} areas={body?.areas ?? []} query={query} />
      {!body ? (
        <Waiting answer={answer} what={audit ? "audit trail" : "log"} />
      ) : lines.length === 0 ? (
        <div class="empty">
          <p>{audit ? "Nothing that matches this filter was changed through the HTTP API since the node started." : "No line matches this filter."}</p>
        </div>
      ) : (
        <Rows columns={COLUMNS} rows={lines} id={(line) => `${line.at} ${line.text} ${lines.indexOf(line)}`} what={audit ? "audit trail" : "log"} />
      )}
      {body && (
        <p class="muted">
          {count(lines.length)} lines, newest first. The node keeps the last {count(body.kept_at_most)} since it started
          {typeof body.oldest === "number" && `, the oldest is ${duration(Math.max(0, Date.now() - body.oldest))} old`}. Older lines are in the log file.
        </p>
      )}
    </>
  );
}

/** All nodes of the cluster, and the one that these pages come from. */
function useNodes(): { names: string[]; own: string | undefined } {
  const nodes = useApi<{ name: string }[]>("/nodes?columns=name").value;
  const own = useApi<{ node?: string }>("/overview?columns=node").value?.node;
  return { names: Array.isArray(nodes) ? nodes.map(({ name }) => name) : [], own };
}

function Filter({ audit, areas, query }: { audit: boolean; areas: string[]; query: URLSearchParams }) {
  const [text, setText] = useTyped("text");
  const { names, own } = useNodes();
  const choice = (label: string, name: string, options: [string, string][]) => (
    <select aria-label={label} value={query.get(name) ?? ""} onChange={(event) => show({ [name]: event.currentTarget.value })}>
      {options.map(([value, words]) => (
        <option key={value} value={value} selected={value === (query.get(name) ?? "")}>
          {words}
        </option>
      ))}
    </select>
  );
  return (
    <div class="filter">
      <input type="search" aria-label="Search in lines" placeholder={audit ? "Search: a user, a queue, DELETE…" : "Search in lines"} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      {names.length > 1 && choice("Node", "node", [["", own ?? "This node"], ...names.filter((name) => name !== own).map((name): [string, string] => [name, name])])}
      {choice("Level", "level", [["", "All levels"], ["error", "Errors"], ["warning", "Warnings and above"], ["info", "Info and above"]])}
      {!audit && choice("Area", "area", [["", "All areas"], ...areas.map((area): [string, string] => [area, area])])}
      {choice("Lines", "count", [["", "100 lines"], ["500", "500 lines"]])}
    </div>
  );
}
