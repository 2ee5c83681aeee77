import { at, byteRate, count, duration, moment } from "../format";
import { Head, NameLink, State, Vhost } from "../parts/bits";
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
  node?: string;
  protocol?: string;
  ssl?: boolean;
  channels?: number;
  held_ms?: number;
  connected_at?: number;
  client_properties?: Record<string, unknown>;
  peer_host?: string;
  peer_port?: number;
}

/** What an application calls its connection says more than its ports. */
export function connectionTitle(connection: { name: string; user_provided_name?: unknown; client_properties?: Record<string, unknown> }): string {
  const given = connection.user_provided_name ?? connection.client_properties?.["connection_name"];
  return typeof given === "string" && given !== "" ? given : connection.name;
}

/** The library that a client says it uses. */
function library({ client_properties: said }: ConnectionBody): string {
  const [product, version] = [said?.["product"], said?.["version"]];
  return typeof product === "string" ? `${product}${typeof version === "string" ? ` ${version}` : ""}` : "";
}

export const CONNECTION_COLUMNS: Column<ConnectionBody>[] = [
  { title: "Name", sort: "name", cell: (connection) => <NameLink to={href("connections", connection.name)} name={connectionTitle(connection)} endless /> },
  { title: "Client", sort: "peer_host", cell: (connection) => connection.peer_host && `${connection.peer_host}:${connection.peer_port}`, from: 2 },
  { title: "Virtual host", sort: "vhost", cell: (connection) => connection.vhost !== undefined && <Vhost name={connection.vhost} />, from: 4 },
  { title: "User", sort: "user", cell: (connection) => connection.user, from: 2 },
  { title: "State", sort: "state", cell: (connection) => <State value={connection.state} /> },
  { title: "TLS", sort: "ssl", cell: (connection) => (connection.ssl ? "yes" : "no"), from: 4 },
  { title: "Protocol", sort: "protocol", cell: (connection) => connection.protocol, from: 5 },
  { title: "Library", cell: (connection) => <span class="cut" title={library(connection)}>{library(connection)}</span>, from: 5, hint: "product and version in the client properties" },
  { title: "Channels", sort: "channels", number: true, cell: (connection) => count(connection.channels), from: 3 },
  { title: "Node", sort: "node", cell: (connection) => connection.node, from: 5, hint: "the node of the cluster that has it" },
  { title: "From client", sort: "recv_oct_details.rate", number: true, cell: (connection) => byteRate(at(connection, "recv_oct_details.rate")) },
  { title: "To client", sort: "send_oct_details.rate", number: true, cell: (connection) => byteRate(at(connection, "send_oct_details.rate")), from: 2 },
  { title: "Held back", sort: "held_ms", number: true, cell: (connection) => heldBack(connection.held_ms), from: 3, hint: "how long the broker did not read from it, since it was opened" },
  { title: "Open for", sort: "connected_at", number: true, cell: (connection) => <time title={`since ${moment(connection.connected_at)}`}>{connection.connected_at && duration(Date.now() - connection.connected_at)}</time>, from: 3 },
];

export function Connections() {
  const chosen = vhost.use();
  const path = chosen === "" ? "/connections" : `/vhosts/${enc(chosen)}/connections`;
  return (
    <>
      <Head title="Connections" />
      <Listing path={path} what="connections" columns={CONNECTION_COLUMNS} id={(connection) => connection.name} empty={<p>There are no connections. <a href="#/connect">How to connect</a></p>} />
    </>
  );
}
