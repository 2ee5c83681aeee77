// Why something is slow, as the broker sees it, and how long its messages take.

import { at, duration, milliseconds } from "../format";
import { Badge, Card } from "../parts/bits";
import { Rows } from "../parts/listing";
import { useApi } from "../poll";

interface Answer {
  holds?: { who: string; resource: string; because: string }[];
  figures?: Record<string, unknown>;
}

const TIMES: [string, string][] = [
  ["publish_to_confirm", "Publish to confirm"],
  ["publish_to_deliver", "Publish to deliver"],
  ["deliver_to_ack", "Deliver to ack"],
  ["log_sync", "Log sync"],
];

/** Causes that hold back the whole node. */
const ALARMS = new Set(["memory_alarm", "disk_alarm", "log_failed"]);
const WHO: Record<string, string> = { publishers: "publishers are held back", deliveries: "deliveries are held back", messages: "messages are lost" };

/** What holds a queue or a connection back, and percentiles of its times. Nothing, where the broker does not say. */
export function Why({ path }: { path: string }) {
  const { value } = useApi<Answer>(path);
  if (!value) return null;
  const holds = value.holds ?? [];
  const rows = TIMES.map(([name, words]) => ({ words, times: value.figures?.[name] as Record<string, unknown> | undefined })).filter(({ times }) => typeof at(times, "p50_ms") === "number");
  const age = value.figures?.["oldest_message_age_ms"];
  const held = Object.entries((value.figures?.["held_ms"] ?? {}) as Record<string, number>).filter(([, ms]) => ms > 0);
  return (
    <>
      <Card title="What holds it back">
        {holds.length === 0 ? (
          <p class="muted">Nothing at the moment.</p>
        ) : (
          <ul class="holds">
            {holds.map((hold) => (
              <li key={`${hold.who} ${hold.resource} ${hold.because}`}>
                <Badge tone={ALARMS.has(hold.resource) ? "bad" : "warn"}>{hold.resource.replace(/_/g, " ")}</Badge> {hold.because} <span class="muted">({WHO[hold.who] ?? hold.who})</span>
              </li>
            ))}
          </ul>
        )}
        {held.length > 0 && <p>Held back so far: {held.map(([reason, ms]) => `${duration(ms)} by ${reason.replace(/_/g, " ")}`).join(", ")}.</p>}
        {typeof age === "number" && <p>The oldest message is {duration(age)} old.</p>}
      </Card>
      {rows.length > 0 && (
        <Card title="Latency, last minute">
          <Rows
            what="times"
            rows={rows}
            id={(row) => row.words}
            columns={[
              { title: "From, to", cell: (row) => <span class="whole">{row.words}</span> },
              { title: "median", number: true, cell: (row) => milliseconds(at(row.times, "p50_ms")) },
              { title: "p95", number: true, cell: (row) => milliseconds(at(row.times, "p95_ms")), from: 2 },
              { title: "p99", number: true, cell: (row) => milliseconds(at(row.times, "p99_ms")) },
              { title: "max", number: true, cell: (row) => milliseconds(at(row.times, "max_ms")), from: 4 },
            ]}
          />
        </Card>
      )}
    </>
  );
}
