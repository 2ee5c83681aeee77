// How figures went, and how far back charts look. The figures are the broker's samples: it keeps
// those of the node and of every object for a day, the older ones less finely.

import { useMemo } from "preact/hooks";
import { fromSamples, type Line, type Range, type Trail } from "./samples";
import { kept } from "./store";

/** How far charts look back: seconds, seconds between two samples, in words. */
export const RANGES: [string, number, string][] = [
  ["600", 10, "Last 10 minutes"],
  ["3600", 60, "Last hour"],
  ["28800", 300, "Last 8 hours"],
  ["86400", 600, "Last 24 hours"],
];

const chosen = kept("range", "600");

/** How far back the charts of all pages look. */
export function useRange(): [Range, string, (age: string) => void] {
  const age = chosen.use();
  const found = RANGES.find(([known]) => known === age) ?? RANGES[0]!;
  return [{ age: Number(found[0]), step: found[1] }, found[0], (next) => chosen.set(next)];
}

/** The parameters of a request that ask for samples of these kinds. */
export function samples({ age, step }: Range, ...kinds: ("lengths" | "msg_rates" | "data_rates" | "node_stats")[]): string {
  return kinds.map((kind) => `${kind}_age=${age}&${kind}_incr=${step}`).join("&");
}

/** Charts' lines from an answer. What has never been counted (`message_stats` is not there yet) is 0. */
export function useTrail(value: unknown, range: Range, lines: Line[]): Trail {
  return useMemo(() => fromSamples(value, range, lines), [value, range.age]);
}
