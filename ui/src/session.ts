// Who is logged in. The credentials live in the tabs: in sessionStorage, never in a cookie, so no other site can act with them. A new tab asks the
// other ones of the same origin, and whoever logs out of one is out of all.

import { store } from "./store";

export interface Session {
  authorization: string;
  name: string;
  tags: string[];
  /** Logged in by single sign-on: the authorization is a token, and the provider may have to be told of the end. */
  single?: boolean;
}

const KEY = "leveret.session";
/** So long a new tab waits for another one to answer before it asks for a name. */
const ANSWER_WITHIN_MS = 250;

export const session = store<Session | null>(remembered());

/** True after a log-in that was valid has stopped being so. */
export const expired = store(false);

/** True while a new tab waits for the answer of another one. */
export const asking = store(false);

type Word = { kind: "who" } | { kind: "session"; session: Session } | { kind: "renewed"; session: Session } | { kind: "out" };

const tabs = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(`${KEY}${location.pathname}`);
const say = (word: Word): void => tabs?.postMessage(word);

tabs?.addEventListener("message", ({ data }: MessageEvent<Word>) => {
  const mine = session.get();
  if (data.kind === "who" && mine) say({ kind: "session", session: mine });
  else if (data.kind === "session" && !mine) take(data.session);
  else if (data.kind === "renewed" && mine) take(data.session);
  else if (data.kind === "out") forget();
});

if (tabs && session.get() === null) {
  asking.set(true);
  say({ kind: "who" });
  setTimeout(() => asking.set(false), ANSWER_WITHIN_MS);
}

export function login(found: Session): void {
  take(found);
  // Tabs that show the log-in go on as well.
  say({ kind: "session", session: found });
}

/** A new token for the same user, in all tabs. */
export function renew(authorization: string): void {
  const mine = session.get();
  if (!mine) return;
  const renewed = { ...mine, authorization };
  take(renewed);
  say({ kind: "renewed", session: renewed });
}

function take(found: Session): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(found));
  } catch {
    // Without storage a reload asks again.
  }
  asking.set(false);
  expired.set(false);
  session.set(found);
}

export function logout(): void {
  say({ kind: "out" });
  forget();
}

function forget(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
  session.set(null);
}

export function expire(): void {
  if (session.get()) expired.set(true);
  forget();
}

/** HTTP's Basic scheme, with names and passwords in UTF-8. */
export function basic(name: string, password: string): string {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...bytes))}`;
}

export const isAdministrator = (): boolean => session.get()?.tags.includes("administrator") ?? false;
export const isMonitor = (): boolean => isAdministrator() || (session.get()?.tags.includes("monitoring") ?? false);
export const isPolicymaker = (): boolean => isAdministrator() || (session.get()?.tags.includes("policymaker") ?? false);

function remembered(): Session | null {
  try {
    const text = sessionStorage.getItem(KEY);
    return text === null ? null : (JSON.parse(text) as Session);
  } catch {
    return null;
  }
}
