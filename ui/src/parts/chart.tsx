// A chart over time. What it shows last also stands below it in words, for whoever does not see it; under the pointer, what was then.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import { NONE, byteRate, bytes, count, duration, milliseconds, rate } from "../format";
import { isolated, type Trail } from "../samples";
import { colours } from "../theme";
import { marks, type Marks, type Unit } from "../ticks";
import { RANGES, useRange } from "../trail";

interface Props {
  title: string;
  trail: Trail;
  unit?: Unit;
}

const HEIGHT = 170;
/** A letter of an axis, in pixels. */
const LETTER = 6.4;
const WRITTEN: Record<Unit, (value: unknown) => string> = { count, rate, bytes, byteRate, time: milliseconds };

export function Chart({ title, trail, unit = "count" }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef(trail);
  shown.current = trail;
  const [under, setUnder] = useState<number | null>(null);
  const chosen = colours.use();
  const labels = trail.series.map(({ label }) => label).join("|");
  const values = (): uPlot.AlignedData => [trail.times, ...trail.series.map(({ values }) => values)];
  const known = trail.series.some(({ values }) => values.some((value) => value !== null));
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const made = new uPlot(options(element, shown, unit, setUnder), values(), element);
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
        {trail.series.map((line, index) => (
          <span key={line.label} class={`line line${index}`}>
            {line.label} <Value trail={trail} values={line.values} under={under} written={WRITTEN[unit]} />
          </span>
        ))}
        {under !== null && trail.times[under] !== undefined && <span>at {clock(trail.times[under], 1)}</span>}
        {!known && trail.times.length > 0 && <span>The broker does not tell these figures.</span>}
      </figcaption>
    </figure>
  );
}

/** The figure under the pointer, or the last one; a last one that is not of now says how old it is. */
function Value({ trail, values, under, written }: { trail: Trail; values: (number | null)[]; under: number | null; written(value: unknown): string }) {
  if (under !== null) return <b>{written(values[under] ?? undefined)}</b>;
  const last = values.findLastIndex((value) => value !== null);
  if (last < 0) return <b>{NONE}</b>;
  const age = trail.window[1] - trail.times[last]!;
  if (age <= trail.fresh) return <b>{written(values[last])}</b>;
  return (
    <>
      <b class="stale">{written(values[last])}</b> <span class="stale">{duration(age * 1000)} ago</span>
    </>
  );
}

/** How far back all charts look. */
export function RangeChoice() {
  const [, age, choose] = useRange();
  return (
    <select aria-label="Range of the charts" value={age} onChange={(event) => choose(event.currentTarget.value)}>
      {RANGES.map(([value, , words]) => (
        <option key={value} value={value} selected={value === age}>
          {words}
        </option>
      ))}
    </select>
  );
}

/** Hours and minutes; seconds where marks are closer than a minute. */
function clock(moment: number, step: number): string {
  const text = new Date(moment * 1000).toTimeString();
  return text.slice(0, step < 60 ? 8 : 5);
}

/** Colours as a canvas takes them. */
function inks(element: HTMLElement): (name: string) => string {
  const probe = document.createElement("i");
  element.append(probe);
  const found = new Map(["--muted", "--line", "--line0", "--line1", "--line2", "--line3"].map((name) => {
    probe.style.color = `var(${name})`;
    return [name, getComputedStyle(probe).color];
  }));
  probe.remove();
  return (name) => found.get(name) ?? "gray";
}

function options(element: HTMLElement, trail: { current: Trail }, unit: Unit, setUnder: (at: number | null) => void): uPlot.Options {
  const ink = inks(element);
  const axis = { stroke: ink("--muted"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  let found: Marks = marks(0, unit);
  return {
    width: element.clientWidth,
    height: HEIGHT,
    padding: [10, 22, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => setUnder(cursor.left === undefined || cursor.left < 0 ? null : (cursor.idx ?? null))] },
    scales: {
      x: { range: () => trail.current.window },
      y: {
        range: (_, _low, high) => {
          found = marks(high ?? 0, unit);
          return [0, found.values.at(-1)!];
        },
      },
    },
    axes: [
      { ...axis, size: 26, values: (_, moments, _axis, _space, step) => moments.map((moment) => clock(moment, step)), space: 74 },
      { ...axis, size: () => 14 + LETTER * Math.max(...found.labels.map(({ length }) => length)), splits: () => found.values, values: () => found.labels },
    ],
    series: [
      {},
      ...trail.current.series.map(({ label }, index) => ({
        label,
        stroke: ink(`--line${index}`),
        width: 2,
        points: { show: false, size: 6, fill: ink(`--line${index}`), filter: (plot: uPlot, line: number) => isolated(plot.data[line] as ArrayLike<number | null>) },
      })),
    ],
  };
}
