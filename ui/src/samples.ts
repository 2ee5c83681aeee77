// Lines of charts from the broker's samples.

import { at } from "./format";

export interface Trail {
  /** Seconds since 1970. */
  times: number[];
  series: { label: string; values: (number | null)[] }[];
  /** The first and the last moment of the chart, in seconds since 1970. */
  window: [number, number];
  /** For so many seconds a sample is as good as a figure of now. */
  fresh: number;
}

export interface Line {
  label: string;
  /** Where the figure stands, e.g. `message_stats.publish`. */
  path: string;
  /** True: the line is the rate of what is counted there, false: the figure itself. */
  rate?: boolean;
}

export interface Range {
  /** How far charts look back, in seconds. */
  age: number;
  /** Seconds between two samples. */
  step: number;
}

interface Sample {
  sample: number;
  timestamp: number;
}

export function fromSamples(value: unknown, { age, step }: Range, lines: Line[], now = Date.now() / 1000): Trail {
  const found = lines.map((line) => at(value, `${line.path}_details.samples`) as Sample[] | undefined);
  const first = found.find((samples) => Array.isArray(samples) && samples.length > 1);
  // The newest sample comes first, and rates need the one before: the oldest moment has none.
  const times = first ? first.map(({ timestamp }) => timestamp / 1000).reverse() : [now - age, now];
  const series = lines.map((line, index) => ({ label: line.label, values: found[index] ? valuesOf(found[index], times, line) : without(value, times, line) }));
  // Samples stand at multiples of their distance: from the last one to what is now it is far, where they are coarse.
  const last = times.at(-1)!;
  if (first && now - last > step / 2 && now - last < 2 * step) {
    times.push(now);
    lines.forEach((line, index) => series[index]!.values.push(present(value, line, found[index]?.[0], now - last)));
  }
  const end = times.at(-1)!;
  return { times, series, window: [end - age, end], fresh: 2.5 * step };
}

/** What a line is now, so many seconds after its last sample. */
function present(value: unknown, line: Line, last: Sample | undefined, seconds: number): number | null {
  const figure = at(value, line.path);
  if (typeof figure !== "number") return line.rate ? 0 : null;
  return line.rate ? Math.max(0, (figure - (last?.sample ?? figure)) / seconds) : figure;
}

function valuesOf(newest: Sample[], times: number[], line: Line): (number | null)[] {
  const samples = [...newest].reverse();
  return times.map((_, moment) => {
    const [here, before] = [samples[moment], samples[moment - 1]];
    if (!here) return null;
    if (!line.rate) return here.sample;
    if (!before || here.timestamp <= before.timestamp) return null;
    return Math.max(0, ((here.sample - before.sample) * 1000) / (here.timestamp - before.timestamp));
  });
}

function without(value: unknown, times: number[], line: Line): (number | null)[] {
  const figure = value !== undefined && line.rate ? 0 : at(value, line.path);
  return times.map(() => (typeof figure === "number" ? figure : null));
}

export interface Timed {
  timestamp: number;
  p50_ms: number;
  p95_ms: number;
  p99_ms: number;
}

const PARTS: [keyof Timed, string][] = [
  ["p99_ms", "p99"],
  ["p95_ms", "p95"],
  ["p50_ms", "median"],
];

/** What was timed within a minute is called the present. */
const FRESH = 60;

/** Lines break where nothing was timed; what stands alone is a point. */
export function drawn(samples: Timed[], { age }: Range, now: number, slot = 5): Trail {
  const moments: (Timed | { timestamp: number })[] = [];
  for (const sample of samples) {
    const last = moments.at(-1);
    if (last && sample.timestamp - last.timestamp > slot * 1000) moments.push({ timestamp: last.timestamp + slot * 1000 });
    moments.push(sample);
  }
  const end = Math.max(now, (moments.at(-1)?.timestamp ?? 0) / 1000);
  return {
    times: moments.map(({ timestamp }) => timestamp / 1000),
    series: PARTS.map(([part, label]) => ({ label, values: moments.map((moment) => (moment as Partial<Timed>)[part] ?? null) })),
    window: [end - age, end],
    fresh: Math.max(FRESH, 2.5 * slot),
  };
}

/** Points that have no neighbour, and so no line. */
export function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const there = (at: number) => typeof values[at] === "number";
  return Array.from({ length: values.length }, (_, at) => at).filter((at) => there(at) && !there(at - 1) && !there(at + 1));
}
