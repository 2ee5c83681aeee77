// How figures went. The broker's samples are taken where it has them; else what this page has seen since it was opened.

import { useRef } from "preact/hooks";
import { at } from "./format";

export interface Trail {
  /** Seconds since 1970. */
  times: number[];
  series: { label: string; values: (number | null)[] }[];
  /** A line ends where a figure is missing, and begins anew after it. */
  broken?: boolean;
}

interface Line {
  label: string;
  /** Where the figure stands, e.g. `message_stats.publish`. */
  path: string;
  /** True: the line is the rate of what is counted there, false: the figure itself. */
  rate?: boolean;
}

/** How far back charts look, and how fine: parameters of a request. */
export const SAMPLES = "msg_rates_age=600&msg_rates_incr=10&lengths_age=600&lengths_incr=10";

/** How many points a page remembers by itself. */
const POINTS = 360;

interface Sample {
  sample: number;
  timestamp: number;
}

/** Charts' lines from an answer. */
export function useTrail(key: string, value: unknown, lines: Line[]): Trail {
  const seen = useRef<{ key: string; last: unknown; trail: Trail }>({ key: "", last: undefined, trail: empty(lines) });
  const sampled = value === undefined ? undefined : fromSamples(value, lines);
  if (seen.current.key !== key) seen.current = { key, last: undefined, trail: empty(lines) };
  if (value !== undefined && seen.current.last !== value) {
    const { trail } = seen.current;
    const grown: Trail = {
      times: [...trail.times, Date.now() / 1000].slice(-POINTS),
      series: lines.map((line, index) => ({ label: line.label, values: [...trail.series[index]!.values, figure(value, line)].slice(-POINTS) })),
    };
    seen.current = { key, last: value, trail: grown };
  }
  return sampled ?? seen.current.trail;
}

function empty(lines: Line[]): Trail {
  return { times: [], series: lines.map(({ label }) => ({ label, values: [] })) };
}

function figure(value: unknown, line: Line): number | null {
  const found = at(value, line.rate ? `${line.path}_details.rate` : line.path);
  return typeof found === "number" ? found : null;
}

function fromSamples(value: unknown, lines: Line[]): Trail | undefined {
  const found = lines.map((line) => at(value, `${line.path}_details.samples`) as Sample[] | undefined);
  const first = found.find((samples) => Array.isArray(samples) && samples.length > 2);
  if (!first) return undefined;
  // The newest sample comes first, and rates need the one before: the oldest moment has none.
  const times = first.map(({ timestamp }) => timestamp / 1000).reverse();
  const series = lines.map((line, index) => {
    const samples = [...(found[index] ?? [])].reverse();
    const values = times.map((_, moment) => {
      const [here, before] = [samples[moment], samples[moment - 1]];
      if (!here) return null;
      if (!line.rate) return here.sample;
      if (!before || here.timestamp <= before.timestamp) return null;
      return Math.max(0, ((here.sample - before.sample) * 1000) / (here.timestamp - before.timestamp));
    });
    return { label: line.label, values };
  });
  return { times, series };
}
