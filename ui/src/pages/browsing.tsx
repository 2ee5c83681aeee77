// The messages of a queue as they stand in it: looked through from any place, found by what they carry, and taken to where they
// belong. Looking consumes nothing; a search goes on in small requests, so that it can be watched and stopped.

import { useRef, useState } from "preact/hooks";
import { call, enc } from "../api";
import { bytes, count, exchangeName, moment } from "../format";
import { Badge, Card } from "../parts/bits";
import { Area, Check, Choice, Text } from "../parts/form";
import { attempt } from "../parts/notices";
import { MessageView, type Message } from "./messages";
import { ActOnMessages } from "./moving";

export interface Standing extends Message {
  position: string;
  state: "ready" | "unacked" | "waiting" | "leaving";
  returns: number;
  received_at: number;
}

interface Page {
  messages: Standing[];
  next: string | null;
  edition: string;
  scanned: number;
  unreadable: number;
  messages_ready: number;
  messages_unacknowledged: number;
}

/** What is looked for. */
export interface Wanted {
  text: string;
  state: string;
  /** One condition a line. */
  more: string;
  regex: boolean;
}

/** How far a search has come. */
interface Progress {
  scanned: number;
  total: number;
}

const STATES: Record<Standing["state"], string> = { ready: "ready", unacked: "unacknowledged", waiting: "waiting for its next retry", leaving: "being dead-lettered" };

/** The conditions as the API takes them. */
export function conditions(wanted: Wanted): Record<string, string> {
  const found: Record<string, string> = {};
  if (wanted.text !== "") found["text"] = wanted.text;
  if (wanted.state !== "") found["state"] = wanted.state;
  if (wanted.regex) found["use_regex"] = "true";
  for (const line of wanted.more.split("\n")) {
    if (line.trim() === "") continue;
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`"${line.trim()}" is not a condition: write it as name = value`);
    found[line.slice(0, at).trim()] = line.slice(at + 1).trim();
  }
  return found;
}

/** A time as the API takes it: what is written without a zone is this browser's. */
function time(text: string): string {
  if (/^\d+[smhd]?$/.test(text)) return text;
  const found = Date.parse(text);
  return Number.isNaN(found) ? text : String(found);
}

interface Props {
  host: string;
  name: string;
  ready: number | undefined;
  then(): void;
}

export function QueueMessages({ host, name, ready, then }: Props) {
  const path = `/leveret/queues/${enc(host)}/${enc(name)}/messages`;
  const [where, setWhere] = useState("head");
  const [place, setPlace] = useState("");
  const [many, setMany] = useState("20");
  const [wanted, setWanted] = useState<Wanted>({ text: "", state: "", more: "", regex: false });
  const [found, setFound] = useState<{ messages: Standing[]; next: string | null; edition: string; unreadable: number } | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [progress, setProgress] = useState<Progress | null>(null);
  const search = useRef<AbortController | null>(null);

  const look = async (start: Record<string, string>) => {
    const stop = new AbortController();
    search.current = stop;
    const messages: Standing[] = [];
    let [scanned, unreadable, edition] = [0, 0, ""];
    let next: string | null = null;
    setProgress({ scanned, total: ready ?? 0 });
    await attempt("", async () => {
      const filter = conditions(wanted);
      const most = Math.min(1000, Math.max(1, Number(many) || 1));
      let from = start;
      do {
        const query = new URLSearchParams({ ...filter, ...from, count: String(most - messages.length) });
        const page = await call<Page>("GET", `${path}?${query}`, undefined, {}, stop.signal).catch((error) => {
          if (stop.signal.aborted) return null;
          throw error;
        });
        if (page === null) break;
        messages.push(...page.messages);
        scanned += page.scanned;
        unreadable += page.unreadable;
        ({ next, edition } = page);
        setProgress({ scanned, total: page.messages_ready + page.messages_unacknowledged });
        from = { from: next ?? "" };
        // The messages before a place are one piece.
        if ("before" in start) break;
      } while (next !== null && messages.length < most && !stop.signal.aborted);
      setFound({ messages, next, edition, unreadable });
      setChosen(new Set());
    });
    setProgress(null);
    search.current = null;
  };
  const begin = (event: Event) => {
    event.preventDefault();
    const starts: Record<string, Record<string, string>> = { head: {}, tail: { from: "tail" }, index: { index: place }, time: { time: time(place) }, position: { from: place } };
    void look(starts[where] ?? {});
  };
  const change = (part: Partial<Wanted>) => setWanted({ ...wanted, ...part });
  const choose = (position: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(position);
    else next.delete(position);
    setChosen(next);
  };
  const messages = found?.messages ?? [];
  return (
    <>
      <Card title="Browse messages" aside={<span class="muted">nothing is consumed or marked as redelivered</span>}>
        <form onSubmit={begin}>
          <div class="row">
            <Choice label="Start" value={where} options={[["head", "at the head"], ["tail", "at the tail"], ["index", "at a number from the head"], ["time", "at a time"], ["position", "at a position"]]} onChange={setWhere} />
            {where === "index" && <Text label="Number" value={place} onChange={setPlace} required placeholder="1000" />}
            {where === "time" && <Text label="Time" value={place} onChange={setPlace} required placeholder="15m or 2026-03-01 12:30" hint="How long ago, or a date and time" />}
            {where === "position" && <Text label="Position" value={place} onChange={setPlace} required />}
            <Text label="Contains" value={wanted.text} onChange={(text) => change({ text })} placeholder="anywhere in the message" />
            <Choice label="State" value={wanted.state} options={[["", "any"], ...Object.entries(STATES).map(([key, words]): [string, string] => [key, words])]} onChange={(state) => change({ state })} />
            <Text label="How many" value={many} onChange={setMany} />
          </div>
          <details class="more">
            <summary>More conditions</summary>
            <Area label="Conditions" value={wanted.more} onChange={(more) => change({ more })} rows={3} hint="One per line, all must match: header.tenant = north, header.x-death.0.queue = orders, property.message_id = 5, routing_key = a.b, body = refused, since = 2h, redelivered = true" />
            <Check label="Use regular expressions" value={wanted.regex} onChange={(regex) => change({ regex })} />
          </details>
          {progress && (
            <p>
              <progress aria-label="Searched" max={Math.max(progress.total, progress.scanned, 1)} value={progress.scanned} /> {count(progress.scanned)} searched
            </p>
          )}
          <p class="buttons">
            {progress && (
              <button type="button" onClick={() => search.current?.abort()}>
                Stop
              </button>
            )}
            <button type="submit" class="primary" disabled={progress !== null}>
              Browse
            </button>
          </p>
        </form>
        {found && messages.length === 0 && <p class="muted">No messages found{found.next === null ? "." : " so far."}</p>}
        {found && found.unreadable > 0 && <p class="bad">{count(found.unreadable)} messages cannot be read: their data on disk is damaged.</p>}
        {messages.length > 0 && <Check label={`Select all ${count(messages.length)} shown`} value={chosen.size === messages.length} onChange={(on) => setChosen(new Set(on ? messages.map((it) => it.position) : []))} />}
        <ul class="found">
          {messages.map((message) => (
            <Found key={`${found?.edition}/${message.position}`} message={message} body={`${path}/${message.position}/body?edition=${enc(found?.edition ?? "")}`} on={chosen.has(message.position)} choose={(on) => choose(message.position, on)} />
          ))}
        </ul>
        {found && (
          <p class="buttons">
            <button type="button" disabled={messages.length === 0 || progress !== null} onClick={() => look({ before: messages[0]?.position ?? "" })}>
              Previous
            </button>
            <button type="button" disabled={found.next === null || progress !== null} onClick={() => look({ from: found.next ?? "" })}>
              Next
            </button>
          </p>
        )}
      </Card>
      <ActOnMessages path={path} ready={ready} chosen={messages.filter((it) => chosen.has(it.position)).map((it) => it.position)} edition={found?.edition ?? ""} wanted={wanted} then={then} />
    </>
  );
}

/** One message in a line; it opens. */
function Found({ message, body, on, choose }: { message: Standing; body: string; on: boolean; choose(on: boolean): void }) {
  const [open, setOpen] = useState(false);
  const start = message.payload_encoding === "string" ? message.payload.slice(0, 120) : `${bytes(message.payload_bytes)} of binary data`;
  return (
    <li>
      <input type="checkbox" aria-label={`Message at ${message.position}`} checked={on} onChange={(event) => choose(event.currentTarget.checked)} />
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="muted">{message.position}</span> {message.state !== "ready" && <Badge tone="warn">{STATES[message.state]}</Badge>} <Badge title="routing key">{message.routing_key || "(no key)"}</Badge>{" "}
          <code>{start === "" ? "(empty)" : start}</code>
        </summary>
        {open && (
          <>
            <p class="muted">
              Received {moment(message.received_at)} from {exchangeName(message.exchange)}
              {message.returns > 0 && `; returned ${count(message.returns)} times`}
            </p>
            <MessageView message={message} title={`Message at ${message.position}`} whole={body} />
          </>
        )}
      </details>
    </li>
  );
}
