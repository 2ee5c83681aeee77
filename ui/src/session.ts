// Who is logged in. The credentials live as long as the tab: sessionStorage, never a cookie, so no other site can act with them.

import { store } from "./store";

export interface Session {
  authorization: string;
  name: string;
  tags: string[];
}

const KEY = "leveret.session";

export const session = store<Session | null>(remembered());

/** True after a log-in that was valid has stopped being so. */
export const expired = store(false);

export function login(found: Session): void {
  expired.set(false);
  try {
    sessionStorage.setItem(KEY, JSON.stringify(found));
  } catch {
    // Without storage a reload asks again.
  }
  session.set(found);
}

export function logout(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
  session.set(null);
}

export function expire(): void {
  if (session.get()) expired.set(true);
  logout();
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
