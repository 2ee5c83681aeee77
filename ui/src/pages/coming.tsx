// For people who know RabbitMQ's pages: what is where.

import type { ComponentChildren } from "preact";
import { Card, Head } from "../parts/bits";
import { Rows } from "../parts/listing";

const ROWS: { there: string; here: ComponentChildren }[] = [
  { there: "Overview", here: <a href="#/">Overview</a> },
  { there: "Overview, Nodes; a node's page", here: <a href="#/node">Node</a> },
  { there: "Overview, Import / export definitions", here: <><a href="#/definitions">Definitions</a>, with a look at what an import would change</> },
  { there: "Connections, Channels", here: <><a href="#/connections">Connections</a>, <a href="#/channels">Channels</a>; "Force Close" is "Close" on a connection's page</> },
  { there: "Exchanges, Add a new exchange", here: <><a href="#/exchanges">Exchanges</a>, New exchange</> },
  { there: "Queues and Streams, Add a new queue", here: <><a href="#/queues">Queues</a>, New queue; arguments are written one a line</> },
  { there: "A queue's page: Publish message, Get messages, Purge, Delete", here: "the same, on a queue's page; Messages in the queue shows them without consuming or marking any" },
  { there: "A queue's page: Move messages (needs the shovel plugin)", here: "Move, copy, replay or delete, on a queue's page" },
  { there: "Overview, Churn statistics; Ports and contexts", here: <><a href="#/">Overview</a>: Comings and goings; Listens on</> },
  { there: "Top processes (a plugin)", here: <><a href="#/node">Node</a>, Memory by use; what holds a queue or a connection back stands on its page</> },
  { there: "Admin, Users", here: <a href="#/users">Users</a> },
  { there: "Admin, Virtual Hosts", here: <a href="#/vhosts">Virtual hosts</a> },
  { there: "Admin, Policies; Operator policies", here: <><a href="#/policies">Policies</a>, both, with a preview of what a pattern takes hold of</> },
  { there: "Admin, Limits", here: <a href="#/limits">Limits</a> },
  { there: "Admin, Tracing (a plugin): traces into files", here: <><a href="#/trace">Tracing</a>: what passes is shown as it passes; nothing is written to a file</> },
  { there: "Admin, Feature Flags; Deprecated Features", here: "nothing: there are no flags to enable" },
  { there: "The choice of a virtual host, above on the right", here: "the same place" },
  { there: "Refresh every 5 seconds, above on the right", here: "in the menu under your name; the mark on the left says how old the figures are" },
  { there: "Columns that are chosen with +/-", here: "as many as the window has room for" },
  { there: "Federation, Shovel, Streams (plugins); a page for super streams", here: "nothing yet" },
];

export function Coming() {
  return (
    <>
      <Head title="Coming from RabbitMQ" />
      <Card title="What is where">
        <p>Things have RabbitMQ's names, and pages have its addresses: bookmarks and links in runbooks go on working.</p>
        <Rows what="what is where" rows={ROWS} id={(row) => row.there} columns={[{ title: "There", cell: (row) => row.there }, { title: "Here", cell: (row) => row.here }]} />
      </Card>
    </>
  );
}
