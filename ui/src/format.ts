// Figures and names in words. What is not known is a dash, never a zero.

export const NONE = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function count(value: unknown): string {
  return typeof value === "number" && Number.isFinite(value) ? whole.format(value) : NONE;
}

/** 12,345 becomes 12.3k: for axes and narrow columns. */
export function short(value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  return size >= 100 || Number.isInteger(value) ? whole.format(value) : trim(value);
}

function trim(value: number): string {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 1).replace(/\.0$/, "");
}

export function rate(value: unknown): string {
  return typeof value === "number" && Number.isFinite(value) ? `${short(Math.round(value * 10) / 10)}/s` : NONE;
}

export function bytes(value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [size, at] = [value, 0];
  while (Math.abs(size) >= 1024 && at < units.length - 1) {
    size /= 1024;
    at += 1;
  }
  return `${at === 0 ? size : trim(size)} ${units[at]}`;
}

export function duration(milliseconds: unknown): string {
  if (typeof milliseconds !== "number" || !Number.isFinite(milliseconds)) return NONE;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return two(minutes, "min", seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return two(hours, "h", minutes % 60, "min");
  return two(Math.floor(hours / 24), "d", hours % 24, "h");
}

const two = (large: number, unit: string, small: number, under: string): string => `${large} ${unit}${small === 0 ? "" : ` ${small} ${under}`}`;

/** A short time, with a digit more below ten milliseconds, two below one, and tenths of seconds. */
export function milliseconds(value: unknown): string {
  if (typeof value !== "number" || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0 ms";
  if (value >= 1000 && value < 60_000) return `${trim(value / 1000)} s`;
  return value < 10 ? `${value.toFixed(value < 1 ? 2 : 1)} ms` : duration(value);
}

export function byteRate(value: unknown): string {
  return typeof value === "number" ? `${bytes(Math.round(value))}/s` : NONE;
}

export function moment(milliseconds: unknown): string {
  return typeof milliseconds === "number" ? new Date(milliseconds).toLocaleString() : NONE;
}

/** The member at a dotted path of an object that came from outside; `undefined` wherever the path ends early. */
export function at(value: unknown, path: string): unknown {
  let found = value;
  for (const name of path.split(".")) {
    if (typeof found !== "object" || found === null) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

/** The nameless exchange as RabbitMQ's UI calls it. */
export const exchangeName = (name: string): string => (name === "" ? "(AMQP default)" : name);

/** A value of a table of arguments. */
export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
