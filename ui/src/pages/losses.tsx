// Each way in which messages leave a queue without being consumed, and how fast they do. Nothing, where there is none.

import { at, count, rate } from "../format";
import { Card, Facts } from "../parts/bits";
import { Chart } from "../parts/chart";
import type { Range } from "../samples";
import { useTrail } from "../trail";

const WAYS: [string, string][] = [
  ["dropped_maxlen", "Dropped: maximum length"],
  ["dropped_expired", "Dropped: TTL"],
  ["dropped_rejected", "Dropped: rejected"],
  ["dropped_delivery_limit", "Dropped: delivery limit"],
  ["dropped_purged", "Purged"],
  ["dropped_unreadable", "Lost: unreadable on disk"],
  ["dead_lettered_maxlen", "Dead-lettered: maximum length"],
  ["dead_lettered_expired", "Dead-lettered: TTL"],
  ["dead_lettered_rejected", "Dead-lettered: rejected"],
  ["dead_lettered_delivery_limit", "Dead-lettered: delivery limit"],
  ["refused_maxlen", "Publishes refused: maximum length"],
  ["refused_duplicate", "Publishes dropped: duplicates"],
];

const LINES = [
  { label: "Dropped", path: "message_stats.dropped", rate: true },
  { label: "Dead-lettered", path: "message_stats.dead_lettered", rate: true },
  { label: "Refused", path: "message_stats.refused_maxlen", rate: true },
];

export function Losses({ of, range }: { of: unknown; range: Range }) {
  const stats = at(of, "message_stats");
  const trail = useTrail(of, range, LINES);
  const ways = WAYS.filter(([name]) => Number(at(stats, name) ?? 0) > 0);
  if (ways.length === 0) return null;
  return (
    <div class="charts">
      <Card title="Dropped, dead-lettered, refused">
        <Chart title="Dropped, dead-lettered, refused" trail={trail} unit="rate" />
      </Card>
      <Card title="Why messages were dropped">
        <Facts rows={ways.map(([name, words]) => [words, `${count(at(stats, name))} (${rate(at(stats, `${name}_details.rate`))})`])} />
      </Card>
    </div>
  );
}
