// How long messages took over time, as percentiles.

import { Card } from "../parts/bits";
import { Chart } from "../parts/chart";
import { freshness, useApi } from "../poll";
import { drawn, type Timed } from "../samples";
import { useRange } from "../trail";
import { useMemo } from "preact/hooks";

/** Lists of samples by sort, and how they were taken. */
type TimesBody = Record<string, Timed[] | undefined> & { now?: number; step_ms?: number };

const TITLES: [string, string][] = [
  ["publish_to_confirm", "Publish to confirm"],
  ["publish_to_deliver", "Publish to deliver"],
  ["deliver_to_ack", "Deliver to ack"],
  ["log_sync", "Log sync"],
];

/** A chart of each sort of time of which there is something; nothing, if there is none. `node`: as another one than this has timed it. */
export function Times({ path, node }: { path: string; node?: string }) {
  const [range] = useRange();
  const { value } = useApi<TimesBody>(`${path}?age=${range.age}${node === undefined ? "" : `&node=${encodeURIComponent(node)}`}`);
  if (!value) return null;
  const known = TITLES.filter(([name]) => (value[name]?.length ?? 0) > 0);
  if (known.length === 0) return null;
  return (
    <div class="charts">
      {known.map(([name, title]) => (
        <Card key={name} title={title}>
          <One title={title} samples={value[name] ?? []} now={value.now} step={value.step_ms} />
        </Card>
      ))}
    </div>
  );
}

function One({ title, samples, now, step = 5000 }: { title: string; samples: Timed[]; now: number | undefined; step: number | undefined }) {
  const [range] = useRange();
  // The answer does not change while nothing new is timed; what was timed last grows old all the same.
  const end = Math.max(freshness.use().at || Date.now(), now ?? 0);
  const trail = useMemo(() => drawn(samples, range, end / 1000, step / 1000), [samples, range.age, end]);
  return <Chart title={title} trail={trail} unit="time" />;
}
