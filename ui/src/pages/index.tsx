// Which address is which page. The addresses are RabbitMQ's.

import type { ComponentChildren } from "preact";
import { Overview } from "./overview";
import { Queues } from "./queues";
import { Exchanges } from "./exchanges";
import { Connections } from "./connections";
import { Channels } from "./channels";
import { Connect } from "./connect";

export function pageFor(parts: string[]): ComponentChildren {
  const [room = "", first, second] = parts;
  const key = `${room}/${parts.length}`;
  if (parts.length > 3) return <Unknown />;
  switch (key) {
    case "/0":
      return <Overview />;
    case "queues/1":
      return <Queues />;
    case "exchanges/1":
      return <Exchanges />;
    case "connections/1":
      return <Connections />;
    case "connect/1":
      return <Connect />;
    case "channels/1":
      return <Channels />;
    default:
      void first;
      void second;
      return <Unknown />;
  }
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
