import { at, bytes, count, moment } from "../format";
import { Head, State, Vhost } from "../parts/bits";
import { Listing, type Column } from "../parts/listing";
import { href } from "../router";
import { vhost } from "../vhost";
import { heldBack } from "./channels";
import { enc } from "../api";

export interface ConnectionBody {
  name: string;
  user_provided_name?: string;
  user?: string;
  vhost?: string;
  state?: string;
  protocol?: string;
  ssl?: boolean;
  channels?: number;
  held_ms?: number;
  connected_at?: number;
  client_properties?: Record<string, unknown>;
}

/** What an application calls its connection says more than its ports. */
export function connectionTitle(connection: { name: string; user_provided_name?: unknown; client_properties?: Record<string, unknown> }): string {
  const given = connection.user_provided_name ?? connection.client_properties?.["connection_name"];
  return typeof given === "string" && given !== "" ? given : connection.name;
}

const COLUMNS: Column<ConnectionBody>[] = [
  {
    title: "Name",
    sort: "name",
    cell: (connection) => (
      <>
        <a href={href("connections", connection.name)}>{connectionTitle(connection)}</a>
        {connectionTitle(connection) !== connection.name && <small class="under">{connection.name}</small>}
      </>
    ),
  },
  { title: "Virtual host", sort: "vhost", cell: (connection) => connection.vhost !== undefined && <Vhost name={connection.vhost} />, from: 3 },
  { title: "User", sort: "user", cell: (connection) => connection.user, from: 2 },
  { title: "State", sort: "state", cell: (connection) => <State value={connection.state} /> },
  { title: "Protocol", sort: "protocol", cell: (connection) => `${connection.protocol ?? "–"}${connection.ssl ? ", TLS" : ""}`, from: 3 },
  { title: "Channels", sort: "channels", number: true, cell: (connection) => count(connection.channels), from: 2 },
  { title: "From client", sort: "recv_oct_details.rate", number: true, cell: (connection) => `${bytes(at(connection, "recv_oct_details.rate"))}/s` },
  { title: "To client", sort: "send_oct_details.rate", number: true, cell: (connection) => `${bytes(at(connection, "send_oct_details.rate"))}/s`, from: 2 },
  { title: "Held back", sort: "held_ms", number: true, cell: (connection) => heldBack(connection.held_ms), from: 2 },
  { title: "Since", sort: "connected_at", cell: (connection) => moment(connection.connected_at), from: 3 },
];

export function Connections() {
  const chosen = vhost.use();
  const path = chosen === "" ? "/connections" : `/vhosts/${enc(chosen)}/connections`;
  return (
    <>
      <Head title="Connections" />
      <Listing path={path} what="connections" columns={COLUMNS} id={(connection) => connection.name} empty={<p>Nobody is connected. <a href="#/connect">How to connect</a></p>} />
    </>
  );
}
