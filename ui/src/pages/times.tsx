// How long messages took over the last ten minutes, as percentiles.

import { milliseconds } from "../format";
import { Card } from "../parts/bits";
import { Chart } from "../parts/chart";
import { useApi } from "../poll";
import type { Trail } from "../trail";
import { useMemo } from "preact/hooks";

interface Sample {
  timestamp: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

export type TimesBody = Record<string, Sample[] | undefined>;

const PARTS: [keyof Sample, string][] = [
  ["p99_ms", "99 %"],
  ["p95_ms", "95 %"],
  ["p50_ms", "half"],
];

/** Seconds between two samples. */
const SLOT = 5;

const TITLES: [string, string][] = [
  ["publish_to_confirm", "Publish to confirm"],
  ["publish_to_deliver", "Publish to deliver"],
  ["deliver_to_ack", "Deliver to ack"],
  ["log_sync", "Sync of the log"],
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

function One({ title, samples }: { title: string; samples: Sample[] }) {
  const trail = useMemo(() => drawn(samples), [samples]);
  return <Chart title={title} trail={trail} unit={milliseconds} />;
}

/** Lines break where nothing was timed. */
function drawn(samples: Sample[]): Trail {
  const moments: (Sample | { timestamp: number })[] = [];
  for (const sample of samples) {
    const last = moments.at(-1);
    if (last && sample.timestamp - last.timestamp > SLOT * 1000) moments.push({ timestamp: last.timestamp + SLOT * 1000 });
    moments.push(sample);
  }
  return {
    times: moments.map(({ timestamp }) => timestamp / 1000),
    series: PARTS.map(([part, label]) => ({ label, values: moments.map((moment) => (moment as Partial<Sample>)[part] ?? null) })),
    broken: true,
  };
}
