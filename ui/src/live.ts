// One answer that does not end: the broker tells what has changed of all that is on the screen. While there is none (a proxy that
// holds answers back, a broker that is away or has too many listeners), each part of the page asks for itself.

import { stillIn } from "./api";
import { listen } from "./events";
import { session } from "./session";
import { store } from "./store";

/** A part of a page that looks at an address. */
export interface Watcher {
  answer(status: number, body: unknown): void;
  /** It is told about the address from now on, or no longer. */
  covered(yes: boolean): void;
}

/** When the broker was heard last, in milliseconds since 1970; 0 while nothing is told. */
export const heard = store(0);

const watchers = new Map<string, Map<Watcher, number>>();
/** The most addresses that the broker tells about; what is beyond asks for itself. */
const MOST = 16;
/** Parts of a page come one by one: so long, in milliseconds, it is waited for the last of them. */
const GATHER = 150;

interface Stream {
  stop: AbortController;
  paths: string[];
  every: number;
}

let stream: Stream | null = null;
let opening: ReturnType<typeof setTimeout> | undefined;
let failures = 0;

/** Looks at an address every so many seconds until the answer is called. */
export function watch(path: string, every: number, watcher: Watcher): () => void {
  const there = watchers.get(path) ?? new Map<Watcher, number>();
  there.set(watcher, every);
  watchers.set(path, there);
  if (stream?.paths.includes(path) && stream.every <= every && heard.get() > 0) watcher.covered(true);
  else soon(GATHER);
  return () => {
    there.delete(watcher);
    if (there.size === 0 && watchers.get(path) === there) watchers.delete(path);
    soon(GATHER);
  };
}

document.addEventListener("visibilitychange", () => soon(0));
addEventListener("offline", () => lose());

function soon(milliseconds: number): void {
  clearTimeout(opening);
  opening = setTimeout(open, milliseconds);
}

function open(): void {
  const asker = session.get();
  const paths = document.hidden || !asker ? [] : [...watchers.keys()].slice(0, MOST);
  const every = Math.min(...paths.flatMap((path) => [...watchers.get(path)!.values()]));
  if (stream && stream.every === every && stream.paths.join("\n") === paths.join("\n")) return;
  stream?.stop.abort();
  stream = null;
  if (paths.length === 0 || !asker) return heard.set(0);
  const mine: Stream = { stop: new AbortController(), paths, every };
  stream = mine;
  const query = new URLSearchParams([["every", String(every)], ["later", "true"], ...paths.map((path): [string, string] => ["watch", path])]);
  const begun = () => {
    heard.set(Date.now());
    tell(paths, (watcher) => watcher.covered(true));
  };
  listen(`/leveret/events?${query}`, every * 2000 + 5000, mine.stop, { begun, take: (kind, line) => take(kind, line, paths) })
    .catch(() => undefined)
    .then(() => {
      if (stream === mine) lose();
    });
}

/** Nothing is told any more: whoever looks at something asks for it, and it is tried again, ever less often. */
function lose(): void {
  stream?.stop.abort();
  stream = null;
  heard.set(0);
  failures += 1;
  tell(watchers.keys(), (watcher) => watcher.covered(false));
  soon(Math.min(1000 * 2 ** failures, 30_000));
}

function tell(paths: Iterable<string>, what: (watcher: Watcher) => void): void {
  for (const path of [...paths]) for (const watcher of [...(watchers.get(path)?.keys() ?? [])]) what(watcher);
}

function take(kind: string, line: string, paths: string[]): void {
  if (kind === "expired") return void stillIn();
  const { watch, status, body } = JSON.parse(line) as { watch?: number; status?: number; body?: unknown };
  const path = paths[watch ?? -1];
  if (kind === "turn") {
    failures = 0;
    heard.set(Date.now());
  } else if (path !== undefined && kind === "over") {
    tell([path], (watcher) => watcher.covered(false));
  } else if (path !== undefined && kind === "answer") {
    tell([path], (watcher) => watcher.answer(status ?? 0, body));
  }
}
