// Bindings of a queue or an exchange: a list, a picture of small sets, making and unmaking.

import { useState } from "preact/hooks";
import { call, enc, exchangePath } from "../api";
import { exchangeName } from "../format";
import { Arguments, Card, Waiting } from "../parts/bits";
import { ConfirmButton, DialogButton } from "../parts/dialog";
import { Choice, Form, Table, Text, readTable } from "../parts/form";
import { Rows, type Column } from "../parts/listing";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { href } from "../router";
import { exchangeHref } from "./exchanges";

export interface Binding {
  source: string;
  vhost: string;
  destination: string;
  destination_type: "queue" | "exchange";
  routing_key: string;
  arguments: Record<string, unknown>;
  properties_key: string;
}

/** More rows than these are no help; the list says how many there are. */
const SHOWN = 200;

const letter = (binding: Binding) => (binding.destination_type === "queue" ? "q" : "e");

function End({ vhost, name, kind }: { vhost: string; name: string; kind: "queue" | "exchange" }) {
  return kind === "queue" ? <a href={href("queues", vhost, name)}>{name}</a> : <a href={exchangeHref(vhost, name)}>{exchangeName(name)}</a>;
}

/** A binding's address. The broker's key of it is already encoded as it stands in paths. */
const pathOf = (binding: Binding): string => `/bindings/${enc(binding.vhost)}/e/${exchangePath(binding.source)}/${letter(binding)}/${enc(binding.destination)}/${enc(binding.properties_key)}`;

function columns(end: "source" | "destination", reload: () => void): Column<Binding>[] {
  const other = (binding: Binding) => (end === "source" ? <End vhost={binding.vhost} name={binding.source} kind="exchange" /> : <End vhost={binding.vhost} name={binding.destination} kind={binding.destination_type} />);
  const unbind = async (binding: Binding) => {
    const done = await attempt("The binding was deleted", () => call("DELETE", pathOf(binding)));
    reload();
    return done;
  };
  return [
    { title: end === "source" ? "From" : "To", cell: other },
    ...(end === "destination" ? [{ title: "Kind", cell: (binding: Binding) => binding.destination_type, from: 2 as const }] : []),
    { title: "Routing key", cell: (binding) => <code>{binding.routing_key}</code> },
    { title: "Arguments", cell: (binding) => <Arguments table={binding.arguments} />, from: 2 },
    {
      title: "Action",
      cell: (binding) => binding.source !== "" && <ConfirmButton small label="Unbind" title="Unbind?" text={`This binding will no longer route messages with the key "${binding.routing_key}" from ${exchangeName(binding.source)} to ${binding.destination}.`} action={() => unbind(binding)} />,
    },
  ];
}

const id = (binding: Binding) => `${binding.source} ${binding.destination_type} ${binding.destination} ${binding.properties_key}`;

export function QueueBindings({ host, name }: { host: string; name: string }) {
  const answer = useApi<Binding[]>(`/queues/${enc(host)}/${enc(name)}/bindings`);
  const found = answer.value;
  return (
    <Card title={`Bindings${found ? ` (${found.length})` : ""}`} aside={<NewBinding host={host} destination={name} reload={answer.reload} />}>
      {found ? <Rows columns={columns("source", answer.reload)} rows={found.slice(0, SHOWN)} id={id} what="bindings to this queue" /> : <Waiting answer={answer} what="bindings" />}
      {found && found.length > SHOWN && <p class="muted">Only the first {SHOWN} are shown.</p>}
    </Card>
  );
}

export function ExchangeBindings({ host, name }: { host: string; name: string }) {
  const path = `/exchanges/${enc(host)}/${exchangePath(name)}/bindings`;
  const out = useApi<Binding[]>(`${path}/source`);
  const into = useApi<Binding[]>(name === "" ? null : `${path}/destination`);
  const found = out.value;
  return (
    <>
      {found && found.length > 0 && found.length <= 40 && <Picture name={name} out={found} into={into.value ?? []} />}
      <Card title={`Bindings from here${found ? ` (${found.length})` : ""}`} aside={name !== "" && <NewBinding host={host} source={name} reload={out.reload} />}>
        {found === undefined ? <Waiting answer={out} what="bindings" /> : found.length === 0 ? <p class="muted">No bindings: messages published here are not routed anywhere.</p> : <Rows columns={columns("destination", out.reload)} rows={found.slice(0, SHOWN)} id={id} what="bindings from this exchange" />}
        {found && found.length > SHOWN && <p class="muted">Only the first {SHOWN} are shown.</p>}
      </Card>
      {into.value && into.value.length > 0 && (
        <Card title={`Bindings to here (${into.value.length})`}>
          <Rows columns={columns("source", into.reload)} rows={into.value.slice(0, SHOWN)} id={id} what="bindings to this exchange" />
        </Card>
      )}
    </>
  );
}

/** Small sets as a picture: what comes in on the left, what goes out on the right. The list below it says the same in words. */
function Picture({ name, out, into }: { name: string; out: Binding[]; into: Binding[] }) {
  const step = 34;
  const height = Math.max(out.length, into.length, 1) * step + 10;
  const middle = height / 2;
  const cut = (text: string, length: number) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
  const y = (index: number, of: number) => middle + (index - (of - 1) / 2) * step;
  const start = into.length > 0 ? 250 : 10;
  return (
    <Card title="Routing">
      <div class="picture" aria-hidden="true">
        <svg width={start + 640} height={height} viewBox={`0 0 ${start + 640} ${height}`}>
          {into.map((binding, index) => (
            <g key={id(binding)}>
              <path d={`M180 ${y(index, into.length)} C215 ${y(index, into.length)} 215 ${middle} 250 ${middle}`} />
              <text x="175" y={y(index, into.length) + 4} text-anchor="end">
                {cut(exchangeName(binding.source), 22)}
              </text>
            </g>
          ))}
          <rect x={start} y={middle - 15} width="170" height="30" rx="6" />
          <text x={start + 85} y={middle + 4} text-anchor="middle" class="strong">
            {cut(exchangeName(name), 20)}
          </text>
          {out.map((binding, index) => {
            const end = y(index, out.length);
            return (
              <g key={id(binding)}>
                <path d={`M${start + 170} ${middle} C${start + 230} ${middle} ${start + 230} ${end} ${start + 290} ${end} L${start + 420} ${end}`} />
                <text x={start + 295} y={end - 5} class="key">
                  {cut(binding.routing_key || "(any)", 18)}
                </text>
                <text x={start + 428} y={end + 4}>
                  {cut(binding.destination, 24)}
                  {binding.destination_type === "exchange" ? " (exchange)" : ""}
                </text>
              </g>
            );
          })}
        </svg>
      </div>
    </Card>
  );
}

function NewBinding({ host, source, destination, reload }: { host: string; source?: string; destination?: string; reload(): void }) {
  return (
    <DialogButton label="New binding" title="New binding">
      {(close) => <BindingForm host={host} source={source} destination={destination} then={() => (close(), reload())} />}
    </DialogButton>
  );
}

function BindingForm({ host, source, destination, then }: { host: string; source: string | undefined; destination: string | undefined; then(): void }) {
  const [other, setOther] = useState("");
  const [kind, setKind] = useState("queue");
  const [key, setKey] = useState("");
  const [table, setTable] = useState("");
  const bind = async () => {
    const [from, to] = source === undefined ? [other, destination ?? ""] : [source, other];
    const short = source === undefined || kind === "queue" ? "q" : "e";
    await call("POST", `/bindings/${enc(host)}/e/${exchangePath(from)}/${short}/${enc(to)}`, { routing_key: key, arguments: readTable(table) });
  };
  return (
    <Form label="Bind" done="The binding was created" action={bind} then={then}>
      {source !== undefined && <Choice label="To" value={kind} options={[["queue", "a queue"], ["exchange", "an exchange"]]} onChange={setKind} />}
      <Text label={source === undefined ? "From the exchange" : "Name"} value={other} onChange={setOther} required />
      <Text label="Routing key" value={key} onChange={setKey} />
      <Table label="Arguments" value={table} onChange={setTable} />
    </Form>
  );
}
