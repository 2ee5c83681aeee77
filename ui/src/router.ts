// Addresses: what follows `#` is a path of names, as in RabbitMQ's UI, so its bookmarks go on working. Names are
// percent-encoded; a question mark begins how a list is shown.

import { enc } from "./api";
import { store } from "./store";

export interface Place {
  parts: string[];
  query: URLSearchParams;
}

/** Pages of RabbitMQ's UI that have another name here. */
const MOVED: Record<string, string> = {
  "feature-flags": "node",
  "deprecated-features": "node",
  "cluster-name": "node",
  "vhost-limits": "limits",
  "user-limits": "limits",
  "operator-policies": "policies",
  traces: "trace",
  "import-succeeded": "definitions",
  admin: "users",
  overview: "",
};

export const place = store<Place>(read());

addEventListener("hashchange", () => place.set(read()));

function read(): Place {
  const [path = "", query = ""] = split(location.hash.replace(/^#/, ""), "?");
  const parts = path.split("/").filter((part) => part !== "").map(decoded);
  const moved = parts.length > 0 ? MOVED[parts[0]!] : undefined;
  if (moved !== undefined) {
    history.replaceState(null, "", `#/${moved}`);
    return { parts: moved === "" ? [] : [moved], query: new URLSearchParams() };
  }
  return { parts, query: new URLSearchParams(query) };
}

function split(text: string, at: string): [string, string] {
  const found = text.indexOf(at);
  return found < 0 ? [text, ""] : [text.slice(0, found), text.slice(found + 1)];
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page. */
export function href(...parts: string[]): string {
  return `#/${parts.map((part) => enc(part)).join("/")}`;
}

export function go(...parts: string[]): void {
  location.hash = href(...parts);
}

/** Changes how the present list is shown. Each state has an address, but typing into a filter leaves no trail of them. */
export function show(changes: Record<string, string | null>, silently = false): void {
  const { parts, query } = place.get();
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  const address = href(...parts) + (text === "" ? "" : `?${text}`);
  if (silently) {
    history.replaceState(null, "", address);
    place.set(read());
  } else {
    location.hash = address;
    // Not only once the browser tells it: what is changed next, by a timer perhaps, goes on from here.
    place.set(read());
  }
}
