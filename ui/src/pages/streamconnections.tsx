// Connections that speak the stream protocol. They are among all connections, too; here their names lead to what they read and write.

import { enc } from "../api";
import { Head, NameLink } from "../parts/bits";
import { Listing, type Column } from "../parts/listing";
import { href } from "../router";
import { vhost } from "../vhost";
import { CONNECTION_COLUMNS, connectionTitle, type ConnectionBody } from "./connections";

export const speaksStream = (connection: ConnectionBody): boolean => connection.protocol?.startsWith("stream") ?? false;

const COLUMNS: Column<ConnectionBody>[] = [
  { title: "Name", sort: "name", cell: (connection) => <NameLink to={href("stream", "connections", connection.vhost ?? "/", connection.name)} name={connectionTitle(connection)} endless /> },
  ...CONNECTION_COLUMNS.filter(({ title }) => !["Name", "Channels", "Protocol"].includes(title)),
];

export function StreamConnections() {
  const chosen = vhost.use();
  return (
    <>
      <Head title="Stream connections" />
      <Listing
        path={`/stream/connections${chosen === "" ? "" : `/${enc(chosen)}`}`}
        what="stream connections"
        columns={COLUMNS}
        id={(connection) => connection.name}
        absent={
          <p>
            There is nothing to show: this broker does not list them by themselves. They are among all <a href="#/connections">connections</a>, with the protocol <code>stream</code>.
          </p>
        }
      />
    </>
  );
}
