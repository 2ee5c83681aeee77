import { useState } from "preact/hooks";
import { call, enc } from "../api";
import { at, exchangeName, rate } from "../format";
import { Badge, Head, NameLink, Vhost } from "../parts/bits";
import { DialogButton } from "../parts/dialog";
import { Check, Choice, Form, Table, Text, readTable } from "../parts/form";
import { Listing, type Column } from "../parts/listing";
import { VhostChoice } from "../parts/vhosts";
import { useApi } from "../poll";
import { go, href } from "../router";
import { inVhost, vhost } from "../vhost";
import { EXCHANGE_ARGUMENTS } from "./shortcuts";

export interface ExchangeBody {
  name: string;
  vhost: string;
  type: string;
  durable?: boolean;
  auto_delete?: boolean;
  internal?: boolean;
  arguments?: Record<string, unknown>;
  policy?: string | null;
  message_stats?: Record<string, unknown>;
}

export function ExchangeFeatures({ exchange }: { exchange: ExchangeBody }) {
  return (
    <>
      {exchange.durable && <Badge title="durable: survives a restart">D</Badge>}
      {exchange.auto_delete && <Badge title="auto-delete: deleted with its last binding">AD</Badge>}
      {exchange.internal && <Badge title="internal: only exchanges publish to it">I</Badge>}
      {exchange.arguments && "alternate-exchange" in exchange.arguments && <Badge title="has an alternate exchange">AE</Badge>}
    </>
  );
}

export const exchangeHref = (host: string, name: string): string => href("exchanges", host, name === "" ? "amq.default" : name);

const COLUMNS: Column<ExchangeBody>[] = [
  { title: "Name", sort: "name", cell: (exchange) => <NameLink to={exchangeHref(exchange.vhost, exchange.name)} name={exchangeName(exchange.name)} /> },
  { title: "Virtual host", sort: "vhost", cell: (exchange) => <Vhost name={exchange.vhost} />, from: 2 },
  { title: "Type", sort: "type", cell: (exchange) => exchange.type },
  { title: "Policy", sort: "policy", cell: (exchange) => exchange.policy, from: 3 },
  { title: "Features", cell: (exchange) => <ExchangeFeatures exchange={exchange} />, from: 2 },
  { title: "Publish in", sort: "message_stats.publish_in_details.rate", number: true, cell: (exchange) => rate(at(exchange, "message_stats.publish_in_details.rate")) },
  { title: "Publish out", sort: "message_stats.publish_out_details.rate", number: true, cell: (exchange) => rate(at(exchange, "message_stats.publish_out_details.rate")) },
];

export function Exchanges() {
  vhost.use();
  return (
    <>
      <Head title="Exchanges">
        <DialogButton label="New exchange" class="primary" title="New exchange">
          {(close) => <NewExchange close={close} />}
        </DialogButton>
      </Head>
      <Listing path={inVhost("exchanges")} what="exchanges" columns={COLUMNS} id={(exchange) => `${exchange.vhost}/${exchange.name}`} />
    </>
  );
}

function NewExchange({ close }: { close(): void }) {
  const types = useApi<{ exchange_types?: { name: string }[] }>("/overview?columns=exchange_types").value?.exchange_types;
  const [host, setHost] = useState(vhost.get() || "/");
  const [name, setName] = useState("");
  const [type, setType] = useState("direct");
  const [durable, setDurable] = useState(true);
  const [transient, setTransient] = useState(false);
  const [internal, setInternal] = useState(false);
  const [table, setTable] = useState("");
  const create = () => call("PUT", `/exchanges/${enc(host)}/${enc(name)}`, { type, durable, auto_delete: transient, internal, arguments: readTable(table) });
  return (
    <Form label="Create" done={`Exchange ${name} was created`} action={create} then={() => (close(), go("exchanges", host, name))}>
      <VhostChoice value={host} onChange={setHost} />
      <Text label="Name" value={name} onChange={setName} required />
      <Choice label="Type" value={type} options={types?.map((kind) => kind.name) ?? ["direct", "fanout", "topic", "headers"]} onChange={setType} />
      <Check label="Durable: survives a restart" value={durable} onChange={setDurable} />
      <Check label="Auto-delete: deleted with its last binding" value={transient} onChange={setTransient} />
      <Check label="Internal: clients may not publish to it" value={internal} onChange={setInternal} />
      <Table label="Arguments" value={table} onChange={setTable} shortcuts={EXCHANGE_ARGUMENTS} />
    </Form>
  );
}
