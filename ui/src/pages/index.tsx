// Which address is which page. The addresses are RabbitMQ's.

import type { ComponentChildren } from "preact";
import { ApiPage } from "./api";
import { Channels } from "./channels";
import { Coming } from "./coming";
import { Connect } from "./connect";
import { Channel, Connection } from "./connection";
import { Connections } from "./connections";
import { Consumers } from "./consumers";
import { Definitions } from "./definitions";
import { Exchange } from "./exchange";
import { Exchanges } from "./exchanges";
import { LimitsPage } from "./limits";
import { Logs } from "./logs";
import { NodePage } from "./node";
import { Overview } from "./overview";
import { Policies } from "./policies";
import { Queue } from "./queue";
import { Queues } from "./queues";
import { StreamConnections } from "./streamconnections";
import { SuperStream, SuperStreams } from "./superstreams";
import { Trace } from "./trace";
import { User, Users } from "./users";
import { VhostPage, Vhosts } from "./vhosts";

/** Pages by their first word (two, for those about streams) and the number of names after it. */
const PAGES: Record<string, (first: string, second: string) => ComponentChildren> = {
  "/0": () => <Overview />,
  "queues/0": () => <Queues />,
  "queues/2": (host, name) => <Queue host={host} name={name} />,
  "exchanges/0": () => <Exchanges />,
  "exchanges/2": (host, name) => <Exchange host={host} name={name} />,
  "connections/0": () => <Connections />,
  "connections/1": (name) => <Connection name={name} />,
  "channels/0": () => <Channels />,
  "channels/1": (name) => <Channel name={name} />,
  "api/0": () => <ApiPage />,
  "consumers/0": () => <Consumers />,
  "stream/connections/0": () => <StreamConnections />,
  "stream/connections/2": (_host, name) => <Connection name={name} />,
  "stream/super-streams/0": () => <SuperStreams />,
  "stream/super-streams/2": (host, name) => <SuperStream host={host} name={name} />,
  "users/0": () => <Users />,
  "users/1": (name) => <User name={name} />,
  "vhosts/0": () => <Vhosts />,
  "vhosts/1": (name) => <VhostPage name={name} />,
  "policies/0": () => <Policies />,
  "policies/2": () => <Policies />,
  "limits/0": () => <LimitsPage />,
  "definitions/0": () => <Definitions />,
  "trace/0": () => <Trace />,
  "logs/0": () => <Logs audit={false} />,
  "audit/0": () => <Logs audit />,
  "node/0": () => <NodePage />,
  "nodes/1": () => <NodePage />,
  "coming-from-rabbitmq/0": () => <Coming />,
  "connect/0": () => <Connect />,
};

export function pageFor(parts: string[]): ComponentChildren {
  const words = parts[0] === "stream" ? 2 : 1;
  const [first = "", second = ""] = parts.slice(words);
  const page = PAGES[`${parts.slice(0, words).join("/")}/${Math.max(parts.length - words, 0)}`];
  return page ? page(first, second) : <Unknown />;
}

function Unknown() {
  return (
    <div class="empty">
      <h1>There is no such page</h1>
      <p>
        <a href="#/">Go to the overview</a>
      </p>
    </div>
  );
}
