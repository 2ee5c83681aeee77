// How long messages took over the last ten minutes, as percentiles.

import { Card } from "../parts/bits";
import { Chart } from "../parts/chart";
import { freshness, useApi } from "../poll";
import { drawn, type Timed } from "../samples";
import { useRange } from "../trail";
import { useMemo } from "preact/hooks";

export type TimesBody = Record<string, Timed[] | undefined>;

const TITLES: [string, string][] = [
  ["publish_to_confirm", "Publish to confirm"],
  ["publish_to_deliver", "Publish to deliver"],
  ["deliver_to_ack", "Deliver to ack"],
  ["log_sync", "Log sync"],
];

/** A chart of each sort of time of which there is something; nothing, if there is none. */
export function Times({ path }: { path: string }) {
  const { value } = useApi<TimesBody>(path);
  if (!value) return null;
  const known = TITLES.filter(([name]) => (value[name]?.length ?? 0) > 0);
  if (known.length === 0) return null;
  return (
    <div class="charts">
      {known.map(([name, title]) => (
        <Card key={name} title={title}>
          <One title={title} samples={value[name] ?? []} />
        </Card>
      ))}
    </div>
  );
}

function One({ title, samples }: { title: string; samples: Timed[] }) {
  const [range] = useRange();
  // What was timed last grows old while nothing new comes.
  const now = freshness.use().at || Date.now();
  const trail = useMemo(() => drawn(samples, range, now / 1000), [samples, range.age, now]);
  return <Chart title={title} trail={trail} unit="time" />;
}
