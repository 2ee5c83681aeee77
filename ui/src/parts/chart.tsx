// A chart over time. What it shows last also stands beside it in words, for whoever does not see it.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef } from "preact/hooks";
import { short } from "../format";
import { colours } from "../theme";
import type { Trail } from "../trail";

interface Props {
  title: string;
  trail: Trail;
  /** How a value is written. */
  unit?(value: unknown): string;
}

const HEIGHT = 170;
/** What a chart shows at least, in seconds. */
const WINDOW = 60;

export function Chart({ title, trail, unit = short }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const chosen = colours.use();
  const labels = trail.series.map(({ label }) => label).join("|");
  const values = (): uPlot.AlignedData => drawn(trail);
  const known = trail.series.some(({ values }) => values.some((value) => value !== null));
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(element, trail, unit), values(), element);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [chosen, labels]);
  useEffect(() => plot.current?.setData(values()), [trail]);
  return (
    <figure class="chart">
      <div ref={place} aria-hidden="true" />
      <figcaption>
        <span class="hidden">{title}, now: </span>
        {trail.series.map(({ label, values }, index) => (
          <span key={label} class={`line line${index}`}>
            {label} <b>{unit(values.at(-1) ?? undefined)}</b>
          </span>
        ))}
        {!known && trail.times.length > 0 && <span>The broker does not tell these figures.</span>}
      </figcaption>
    </figure>
  );
}

/** A chart needs two moments: before the first one there was nothing. */
function drawn({ times, series }: Trail): uPlot.AlignedData {
  const first = times[0];
  const lines = series.map(({ values }) => values);
  if (first === undefined || times.length > 1) return [times, ...lines];
  return [[first - WINDOW, first], ...lines.map((values) => [null, ...values])];
}

function options(element: HTMLElement, trail: Trail, unit: (value: unknown) => string): uPlot.Options {
  const style = getComputedStyle(element);
  const ink = (name: string) => style.getPropertyValue(name).trim();
  const axis = { stroke: ink("--muted"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: { x: { range: (_, low, high) => [Math.min(low ?? 0, (high ?? WINDOW) - WINDOW), high ?? WINDOW] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(high ?? 0, 1) * 1.1] } },
    axes: [{ ...axis, size: 26, values: (_, moments) => moments.map((moment) => new Date(moment * 1000).toTimeString().slice(0, 8)), space: 80 }, { ...axis, size: 52, values: (_, marks) => marks.map(unit) }],
    series: [{}, ...trail.series.map(({ label }, index) => ({ label, stroke: ink(`--line${index}`), width: 2, points: { show: trail.times.length < 3 }, spanGaps: !trail.broken }))],
  };
}
