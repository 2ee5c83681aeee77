// Marks of a chart's value axis: round numbers of one unit, no two alike. Bytes are counted in 1,024s, times in what a clock shows.

export type Unit = "count" | "rate" | "bytes" | "byteRate" | "time";

/** The most distances between two marks. */
const MOST = 4;

interface Scale {
  /** What a mark's number is divided by, in the unit of the values. */
  size: number;
  word: string;
  /** Distances between two marks, in this unit. */
  steps: number[];
}

const BYTES: Scale[] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((word, power) => ({ size: 1024 ** power, word, steps: [1, 2, 5, 10, 20, 50, 100, 200, 256, 512] }));
const TIMES: Scale[] = [
  { size: 0.001, word: "µs", steps: [1, 2, 5, 10, 20, 50, 100, 200] },
  { size: 1, word: "ms", steps: [0.5, 1, 2, 5, 10, 20, 50, 100, 200] },
  { size: 1000, word: "s", steps: [0.5, 1, 2, 5, 10, 15, 20, 30] },
  { size: 60_000, word: "min", steps: [1, 2, 5, 10, 15, 20, 30] },
  { size: 3_600_000, word: "h", steps: [1, 2, 4, 6, 12] },
  { size: 86_400_000, word: "d", steps: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] },
];
const NUMBERS: Scale[] = ["", "k", "M", "G", "T"].map((word, power) => ({ size: 1000 ** power, word, steps: power === 0 ? [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000] : [5, 10, 20, 50, 100, 200, 500] }));
// Messages are whole, and their thousands are as well written out up to 10,000.
const COUNTS: Scale[] = NUMBERS.map((scale, power) => (power === 0 ? { ...scale, steps: scale.steps.filter((step) => step >= 1) } : scale));

const SCALES: Record<Unit, Scale[]> = { count: COUNTS, rate: NUMBERS, bytes: BYTES, byteRate: BYTES, time: TIMES };
/** The least that an axis reaches up to: a line of zeros lies at the bottom of something. */
const LEAST: Record<Unit, number> = { count: 4, rate: 1, bytes: 1024, byteRate: 100, time: 1 };

export interface Marks {
  values: number[];
  labels: string[];
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

/** Marks from 0 to the first one that is not below `high`. */
export function marks(high: number, unit: Unit): Marks {
  const reach = Math.max(Number.isFinite(high) ? high : 0, LEAST[unit]);
  const { scale, step } = distance(reach, SCALES[unit]);
  const many = Math.max(1, Math.ceil(reach / step - 1e-9));
  const values = Array.from({ length: many + 1 }, (_, at) => at * step);
  return { values, labels: values.map((value) => label(value, scale, unit)) };
}

function distance(reach: number, scales: Scale[]): { scale: Scale; step: number } {
  for (const scale of scales) {
    for (const step of scale.steps) if (step * scale.size * MOST >= reach * (1 - 1e-9)) return { scale, step: step * scale.size };
  }
  const scale = scales.at(-1)!;
  return { scale, step: Math.ceil(reach / MOST / scale.size) * scale.size };
}

function label(value: number, scale: Scale, unit: Unit): string {
  const each = unit === "rate" || unit === "byteRate" ? "/s" : "";
  if (value === 0) return `0${each}`;
  const [size, word] = unit === "bytes" || unit === "byteRate" ? nextUnit(value, scale) : [scale.size, scale.word];
  const number = whole.format(value / size);
  return `${number}${unit === "count" || unit === "rate" || word === "" ? word : ` ${word}`}${each}`;
}

/** 1,024 MiB are 1 GiB. */
function nextUnit(value: number, scale: Scale): [number, string] {
  const above = BYTES[BYTES.indexOf(scale) + 1];
  return above && value >= above.size ? [above.size, above.word] : [scale.size, scale.word];
}
