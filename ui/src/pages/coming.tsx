// For people who know RabbitMQ's pages: what is where.

import type { ComponentChildren } from "preact";
import { Card, Head } from "../parts/bits";
import { Rows } from "../parts/listing";

const ROWS: { there: string; here: ComponentChildren }[] = [
  { there: "Overview", here: <a href="#/">Overview</a> },
  { there: "Overview, Nodes; a node's page", here: <a href="#/node">Node</a> },
  { there: "Overview, Import / export definitions", here: <><a href="#/definitions">Definitions</a>, with a preview of what an import would change</> },
  { there: "Connections, Channels", here: <><a href="#/connections">Connections</a>, <a href="#/channels">Channels</a>; "Force Close" is "Close" on a connection's page</> },
  { there: "Exchanges, Add a new exchange", here: <><a href="#/exchanges">Exchanges</a>, New exchange</> },
  { there: "Queues and Streams, Add a new queue", here: <><a href="#/queues">Queues</a>, New queue, streams too; the buttons below its arguments add them, as there</> },
  { there: "Stream Connections; publishers and consumers of a stream (a plugin)", here: <><a href="#/stream/connections">Stream connections</a>; the page of a stream, also what it tracks</> },
  { there: "Super Streams (a plugin)", here: <><a href="#/stream/super-streams">Super streams</a>, each with its partitions</> },
  { there: "A queue's page: Publish message, Get messages, Purge, Delete", here: "the same, on a queue's page; Browse messages shows them without consuming any or marking them as redelivered" },
  { there: "A queue's page: Move messages (needs the shovel plugin)", here: "Move, copy, replay or delete, on a queue's page" },
  { there: "Overview, Churn statistics; Ports and contexts", here: <><a href="#/">Overview</a>: Churn; Listening ports</> },
  { there: "Top processes (a plugin)", here: <><a href="#/node">Node</a>, Memory by use. The page of a queue or connection says what holds it back</> },
  { there: "Admin, Users", here: <a href="#/users">Users</a> },
  { there: "Admin, Virtual Hosts", here: <a href="#/vhosts">Virtual hosts</a> },
  { there: "Admin, Policies; Operator policies", here: <><a href="#/policies">Policies</a>, both, with a preview of what a pattern matches</> },
  { there: "Admin, Limits", here: <a href="#/limits">Limits</a> },
  { there: "Admin, Tracing (a plugin): traces into files", here: <><a href="#/trace">Tracing</a>: messages are shown live; nothing is written to a file</> },
  { there: "Admin, Feature Flags; Deprecated Features", here: "not needed: there are no flags to enable" },
  { there: "The choice of a virtual host, above on the right", here: "the same place" },
  { there: "Refresh every 5 seconds, above on the right", here: "in the menu under your name; the mark beside the logo says how old the figures are" },
  { there: "Columns chosen with +/-", here: "Columns, above each list; your choice is kept in this browser" },
  { there: "Range of a chart (+/- beside it)", here: "the menu at the top right of a page with charts: from 10 minutes to 24 hours" },
  { there: "Consumers, on the page of a queue or channel", here: <>the same, and <a href="#/consumers">Consumers</a> lists all of them</> },
  { there: "HTTP API, Command Line (at the foot of the page)", here: <a href="#/api">HTTP API</a> },
  { there: "Federation, Shovel (plugins)", here: "nothing yet" },
];

export function Coming() {
  return (
    <>
      <Head title="Coming from RabbitMQ" />
      <Card title="Where to find things">
        <p>Objects have RabbitMQ's names and pages have RabbitMQ's addresses, so bookmarks and links in runbooks keep working.</p>
        <Rows what="what is where" rows={ROWS} id={(row) => row.there} columns={[{ title: "RabbitMQ", cell: (row) => row.there }, { title: "Here", cell: (row) => row.here }]} />
      </Card>
    </>
  );
}
