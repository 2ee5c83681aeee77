// The firehose of a virtual host: on, off, and a look at what passes while it passes.

import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call, enc, stillIn } from "../api";
import { listen } from "../events";
import { bytes, count, exchangeName } from "../format";
import { Badge, Card, Head } from "../parts/bits";
import { ConfirmButton } from "../parts/dialog";
import { Choice, Text } from "../parts/form";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { place, show } from "../router";
import { useTyped } from "../typed";
import { vhost } from "../vhost";
import { Time } from "./logs";
import { MessageView, type Message } from "./messages";

interface Copy extends Omit<Message, "message_count" | "redelivered"> {
  at: number;
  kind: "publish" | "deliver";
  queue?: string;
  user?: string;
  connection?: string;
  channel?: number;
  routed_queues?: string[];
  redelivered?: boolean;
}

interface Passing {
  passed: number;
  full: boolean;
  messages: Copy[];
}

interface Numbered extends Copy {
  number: number;
}

/** How many copies the page holds. */
const HELD = 300;
/** How many bytes of a body are asked for. */
const CUT = 4_000;
/** Nothing heard for so long, in milliseconds: the broker is away. */
const PATIENCE = 10_000;

const KINDS: [string, string][] = [["#", "published and delivered"], ["publish", "published to an exchange"], ["deliver", "delivered from a queue"]];

export function Trace() {
  const query = place.use().query;
  const hosts = useApi<{ name: string }[]>("/vhosts?columns=name");
  const chosen = vhost.use();
  const names = Array.isArray(hosts.value) ? hosts.value.map(({ name }) => name) : [];
  const host = query.get("vhost") ?? (chosen || (names.includes("/") || names.length === 0 ? "/" : names[0]!));
  const [held, setHeld] = useState(false);
  const tail = useTail(host, query, held);
  const turn = (on: boolean) => attempt(on ? `Tracing of ${host} was started` : `Tracing of ${host} was stopped`, () => call(on ? "PUT" : "DELETE", `/leveret/trace/${enc(host)}`));
  return (
    <>
      <Head title="Tracing">
        <button type="button" aria-pressed={held} onClick={() => setHeld(!held)}>
          {held ? "Resume" : "Pause"}
        </button>
        {tail.on === true && (
          <button type="button" onClick={() => turn(false)}>
            Stop tracing
          </button>
        )}
        {tail.on === false && (
          <ConfirmButton
            label="Start tracing"
            title={`Trace ${host}?`}
            text={`Every message that is published to or delivered from ${host} will be copied until tracing is stopped or the broker restarts. That can more than double the load on the broker. Users who may read from amq.rabbitmq.trace see the bodies.`}
            action={() => turn(true)}
          />
        )}
      </Head>
      <Card title="Filter" aside={<span>{tail.on === undefined ? <span class="muted">…</span> : tail.on ? <Badge tone="warn">tracing on</Badge> : <Badge>tracing off</Badge>}</span>}>
        <div class="row">
          <Choice label="Virtual host" value={host} options={names.includes(host) ? names : [host, ...names]} onChange={(name) => show({ vhost: name })} />
          <Choice label="Messages" value={query.get("kind") ?? "#"} options={KINDS} onChange={(kind) => show({ kind: kind === "#" ? null : kind })} />
          {query.get("kind") && <Asked name="name" label={query.get("kind") === "publish" ? "Exchange" : "Queue"} hint="empty for all; * is one word, # any number" />}
          <Asked name="user" label="User" hint="empty for all" />
          <Asked name="connection" label="Connection" hint="part of its name" />
        </div>
        <p class="muted">Messages are shown while this page is open, through a temporary queue. If there are more than the page can show, the rest are only counted. Bodies are cut after {bytes(CUT)}.</p>
      </Card>
      {tail.error && <p class="refused">{tail.error}</p>}
      <p class="muted passed">
        {count(tail.passed)} messages seen{tail.passed > tail.copies.length && `, the last ${count(tail.copies.length)} are shown`}
        {tail.full && "; there are more than the page can take"}
      </p>
      {tail.copies.length === 0 ? (
        <div class="empty">
          <p>{tail.on === false ? `Tracing of ${host} is off: start it to see messages here.` : "No messages since this page was opened."}</p>
        </div>
      ) : (
        <ul class="found">
          {tail.copies.map((copy) => (
            <Passed key={copy.number} copy={copy} />
          ))}
        </ul>
      )}
    </>
  );
}

/** A text of the filter, which stands in the address. */
function Asked({ name, label, hint }: { name: string; label: string; hint: string }) {
  // Each look at something else has a queue of its own at the broker: not one a letter.
  const [text, setText] = useTyped(name, {}, 400);
  return <Text label={label} value={text} onChange={setText} hint={hint} />;
}

interface Tail {
  copies: Numbered[];
  passed: number;
  full: boolean;
  /** Whether the virtual host is traced, once that is known. */
  on: boolean | undefined;
  error: string | null;
}

const NOTHING: Tail = { copies: [], passed: 0, full: false, on: undefined, error: null };

/** What passes, the newest first. While it is held the page takes no more of it. */
function useTail(host: string, query: URLSearchParams, held: boolean): Tail {
  const [tail, setTail] = useState<Tail>(NOTHING);
  const still = useRef(held);
  still.current = held;
  const [kind, name] = [query.get("kind") ?? "", query.get("name") || "#"];
  const asked = new URLSearchParams({ truncate: String(CUT), key: kind === "" ? "#" : `${kind}.${name}`, user: query.get("user") ?? "", connection: query.get("connection") ?? "" });
  const path = `/leveret/trace/${enc(host)}?${asked}`;
  useEffect(() => {
    let stop = new AbortController();
    let [failures, number] = [0, 0];
    let again: ReturnType<typeof setTimeout> | undefined;
    setTail(NOTHING);
    const take = (kind: string, line: string) => {
      const told = JSON.parse(line) as Partial<Passing> & { tracing?: boolean; reason?: unknown };
      if (kind === "expired") return void stillIn();
      if (kind === "refused") return setTail((before) => ({ ...before, error: String(told.reason ?? "The broker refuses.") }));
      if (kind === "turn") {
        failures = 0;
        return setTail((before) => (before.on === told.tracing ? before : { ...before, on: told.tracing }));
      }
      if (still.current || kind !== "trace") return;
      const fresh = (told.messages ?? []).map((copy): Numbered => ({ ...copy, number: number++ })).reverse();
      setTail((before) => ({ ...before, copies: [...fresh, ...before.copies].slice(0, HELD), passed: before.passed + (told.passed ?? 0), full: told.full ?? false }));
    };
    const begin = async () => {
      const mine = (stop = new AbortController());
      const error = await listen(path, PATIENCE, mine, { begun: () => setTail((before) => ({ ...before, error: null })), take }).then(
        () => null,
        (problem: unknown) => (problem instanceof ApiError ? problem : new ApiError(0, "The broker does not answer.")),
      );
      if (stop !== mine) return;
      if (error) setTail((before) => ({ ...before, error: error.message }));
      failures += 1;
      again = setTimeout(begin, Math.min(1000 * 2 ** failures, 30_000));
    };
    // A tab that nobody sees has no queue at the broker.
    const leave = () => {
      clearTimeout(again);
      stop.abort();
      stop = new AbortController();
    };
    const seen = () => {
      leave();
      if (!document.hidden) void begin();
    };
    document.addEventListener("visibilitychange", seen);
    if (!document.hidden) void begin();
    return () => {
      document.removeEventListener("visibilitychange", seen);
      leave();
    };
  }, [path]);
  return tail;
}

/** One copy in a line; it opens. */
function Passed({ copy }: { copy: Numbered }) {
  const [open, setOpen] = useState(false);
  const start = copy.payload_encoding === "string" ? copy.payload.slice(0, 120) : `${bytes(copy.payload_bytes)} of binary data`;
  const where = copy.kind === "publish" ? exchangeName(copy.exchange) : (copy.queue ?? "");
  return (
    <li class="one">
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class="muted">
            <Time at={copy.at} />
          </span>{" "}
          <Badge tone={copy.kind === "publish" ? "good" : ""}>{copy.kind === "publish" ? "publish" : "deliver"}</Badge> <b>{where}</b> <Badge title="routing key">{copy.routing_key || "(no key)"}</Badge> <code>{start === "" ? "(empty)" : start}</code>
        </summary>
        {open && (
          <>
            <p class="muted">
              {copy.kind === "publish" ? "Published by" : "Delivered to"} {copy.user || "an unknown user"}
              {copy.connection && ` on ${copy.connection}, channel ${copy.channel}`}
              {copy.routed_queues && `; ${copy.routed_queues.length === 0 ? "not routed" : `routed to ${copy.routed_queues.join(", ")}`}`}
            </p>
            <MessageView message={{ ...copy, properties: copy.properties ?? [], message_count: 0, redelivered: copy.redelivered ?? false }} title={`Message of ${new Date(copy.at).toISOString()}`} limit={CUT} />
          </>
        )}
      </details>
    </li>
  );
}
