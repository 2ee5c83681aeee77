// Publishing and getting messages by hand.

import { useState } from "preact/hooks";
import { call, enc, exchangePath, load } from "../api";
import { bytes, count, exchangeName, shown } from "../format";
import { Badge, Card } from "../parts/bits";
import { Area, Check, Choice, Form, Table, Text, readTable } from "../parts/form";
import { attempt, notify } from "../parts/notices";

interface PublishProps {
  host: string;
  exchange: string;
  /** Given where it is fixed: a queue is reached by its name. */
  routingKey?: string;
  then(): void;
}

const PROPERTIES = ["content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type", "app_id", "priority", "timestamp"];
/** Properties that are numbers; the rest is text, whatever it looks like. */
const NUMBERS = new Set(["priority", "timestamp", "delivery_mode"]);

export function PublishMessage({ host, exchange, routingKey, then }: PublishProps) {
  const [key, setKey] = useState("");
  const [payload, setPayload] = useState("");
  const [encoding, setEncoding] = useState("string");
  const [persistent, setPersistent] = useState(true);
  const [headers, setHeaders] = useState("");
  const [properties, setProperties] = useState("");
  const publish = async () => {
    const given = Object.entries(readTable(properties)).map(([name, value]) => [name, NUMBERS.has(name) ? Number(value) : shown(value)]);
    const body = {
      routing_key: routingKey ?? key,
      payload,
      payload_encoding: encoding,
      properties: { ...Object.fromEntries(given), delivery_mode: persistent ? 2 : 1, headers: readTable(headers) },
    };
    const { routed } = await call<{ routed: boolean }>("POST", `/exchanges/${enc(host)}/${exchangePath(exchange)}/publish`, body);
    if (!routed) throw new Error("The message was not routed: no binding matched, and it was dropped.");
  };
  return (
    <Card title="Publish a message">
      <Form label="Publish" done={routingKey === undefined ? "The message was published and routed" : "The message is in the queue"} action={publish} then={then}>
        {routingKey === undefined && <Text label="Routing key" value={key} onChange={setKey} />}
        <Area label="Payload" value={payload} onChange={setPayload} />
        <div class="row">
          <Choice label="Payload encoding" value={encoding} options={[["string", "text"], ["base64", "base64"]]} onChange={setEncoding} />
          <Check label="Persistent" value={persistent} onChange={setPersistent} />
        </div>
        <details class="more">
          <summary>Headers and properties</summary>
          <Table label="Headers" value={headers} onChange={setHeaders} />
          <Table label="Properties" value={properties} onChange={setProperties} hint={`One per line, name = value: ${PROPERTIES.join(", ")}`} />
        </details>
      </Form>
    </Card>
  );
}

export interface Message {
  payload_bytes: number;
  redelivered: boolean;
  exchange: string;
  routing_key: string;
  message_count: number;
  properties: Record<string, unknown> | [];
  payload: string;
  payload_encoding: "string" | "base64";
}

/** Longer payloads are cut by the broker. */
export const CUT = 50_000;

export function GetMessages({ host, name, ready, then }: { host: string; name: string; ready: number | undefined; then(): void }) {
  const [mode, setMode] = useState("ack_requeue_true");
  const [many, setMany] = useState("5");
  const [found, setFound] = useState<Message[] | null>(null);
  const fetchThem = async () => {
    const asked = { count: Math.max(1, Number(many) || 1), ackmode: mode, encoding: "auto", truncate: CUT };
    const messages = await call<Message[]>("POST", `/queues/${enc(host)}/${enc(name)}/get`, asked);
    setFound(messages);
    notify(messages.length === 0 ? "The queue has no ready messages" : `${messages.length} messages; ${count(messages.at(-1)?.message_count)} remain in the queue`);
  };
  return (
    <Card title="Get messages" aside={<span class="muted">{count(ready)} ready</span>}>
      <Form label="Get messages" done="" action={fetchThem} then={then} danger={!mode.endsWith("requeue_true")}>
        <div class="row">
          <Choice
            label="Ack mode"
            value={mode}
            options={[
              ["ack_requeue_true", "Nack, requeue (marked as redelivered)"],
              ["ack_requeue_false", "Ack: removed from the queue"],
              ["reject_requeue_true", "Reject, requeue"],
              ["reject_requeue_false", "Reject: dead-lettered or dropped"],
            ]}
            onChange={setMode}
          />
          <Text label="How many" value={many} onChange={setMany} />
        </div>
      </Form>
      {found?.map((message, index) => <MessageView key={index} message={message} title={`Message ${index + 1}`} />)}
    </Card>
  );
}

/** A message as text, whatever it is; JSON is laid out, bytes stand as hex. */
export function MessageView({ message, title, whole, limit = CUT }: { message: Message; title: string; whole?: string; limit?: number }) {
  const properties = Array.isArray(message.properties) ? {} : message.properties;
  const { headers, ...plain } = properties as { headers?: Record<string, unknown> };
  const cut = message.payload_bytes > limit;
  return (
    <article class="message" aria-label={title}>
      <p>
        <b>{title}</b> <Badge title="exchange">{exchangeName(message.exchange)}</Badge> <Badge title="routing key">{message.routing_key || "(no key)"}</Badge> {bytes(message.payload_bytes)} {message.redelivered && <Badge tone="warn">redelivered</Badge>}
      </p>
      {(Object.keys(plain).length > 0 || headers) && (
        <dl class="inline">
          {[...Object.entries(plain), ...Object.entries(headers ?? {}).map(([name, value]) => [`header ${name}`, value] as const)].map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{shown(value)}</dd>
            </div>
          ))}
        </dl>
      )}
      <Payload message={message} whole={whole} />
      {cut && (
        <p class="muted">
          Only the first {bytes(limit)} are shown{whole ? "; download the message for all of it." : "."}
        </p>
      )}
    </article>
  );
}

/** Whatever it is, in the readings that it has. What is cut is downloaded from where it is `whole`. */
function Payload({ message, whole }: { message: Message; whole: string | undefined }) {
  const readings = readingsOf(message);
  const [picked, setPicked] = useState<string>();
  // Another message may have no such reading.
  const chosen = picked !== undefined && picked in readings ? picked : (Object.keys(readings)[0] ?? "Text");
  const text = readings[chosen] ?? "";
  const save = async () => {
    const here = () => new Blob([(message.payload_encoding === "base64" ? bytesOf(message.payload) : new TextEncoder().encode(message.payload)) as BlobPart]);
    const body = whole && message.payload_bytes > CUT ? await load(whole) : here();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(body);
    link.download = "message.bin";
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <>
      <div class="tabs" role="group" aria-label="Show as">
        {Object.keys(readings).map((name) => (
          <button type="button" class="small" key={name} aria-pressed={name === chosen} onClick={() => setPicked(name)}>
            {name}
          </button>
        ))}
        <button type="button" class="small" onClick={() => attempt("", save)}>
          Download
        </button>
      </div>
      <pre tabIndex={0}>{text === "" ? <span class="muted">(empty)</span> : text}</pre>
    </>
  );
}

function readingsOf(message: Message): Record<string, string> {
  if (message.payload_encoding === "base64") {
    const found = bytesOf(message.payload);
    return { Hex: hex(found), Text: new TextDecoder().decode(found), Base64: message.payload };
  }
  const text = { Text: message.payload, Hex: hex(new TextEncoder().encode(message.payload.slice(0, 4096))) };
  try {
    const value: unknown = JSON.parse(message.payload);
    return typeof value === "object" && value !== null ? { JSON: JSON.stringify(value, null, 2), ...text } : text;
  } catch {
    return text;
  }
}

function bytesOf(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** Sixteen bytes a line with their place before them; the first 4 KiB. */
function hex(found: Uint8Array): string {
  const lines: string[] = [];
  for (let start = 0; start < Math.min(found.length, 4096); start += 16) {
    const line = found.subarray(start, start + 16);
    const left = [...line].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const right = [...line].map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${start.toString(16).padStart(6, "0")}  ${left.padEnd(47)}  ${right}`);
  }
  return lines.join("\n");
}
