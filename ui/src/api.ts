// The HTTP API as the pages ask it. Whoever is logged in stands in the header; the browser adds nothing of its own
// (`credentials: "omit"`), so that it never opens a log-in window over the page.

import { expire, session } from "./session";

/** What the broker refused, in its words. Status 0: nobody answered. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    reason: string,
  ) {
    super(reason);
  }
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Encodes a name for a path: a slash becomes %2F. (`.` and `..` mean folders in every address, however they are written: objects of these names are out of reach.) */
export const enc = (name: string): string => encodeURIComponent(name);

/** The default exchange has no name, and `amq.default` in paths. */
export const exchangePath = (name: string): string => enc(name === "" ? "amq.default" : name);

/** Asks the API. `undefined` where an answer has no body. */
export async function call<T>(method: string, path: string, body?: unknown, extra: Record<string, string> = {}, signal?: AbortSignal): Promise<T> {
  return (await answered<T>(method, path, body, extra, signal)).body;
}

/** Declares something. True if it was not there before. */
export async function declare(path: string, body: unknown): Promise<boolean> {
  return (await answered("PUT", path, body)).status === 201;
}

/** An answer that is no refusal. */
async function answered<T>(method: string, path: string, body?: unknown, extra: Record<string, string> = {}, signal?: AbortSignal): Promise<{ status: number; body: T }> {
  const asker = session.get();
  const headers: Record<string, string> = { accept: "application/json", ...extra };
  if (asker) headers["authorization"] = asker.authorization;
  if (body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    const request: RequestInit = { method, headers, credentials: "omit", cache: "no-store" };
    if (body !== undefined) request.body = JSON.stringify(body);
    if (signal) request.signal = signal;
    response = await fetch(`api${path}`, request);
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "The broker does not answer.");
  }
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === "" ? undefined : JSON.parse(text);
  } catch {
    throw new ApiError(response.status, "The answer is not what the API gives; is there something between this page and the broker?");
  }
  if (response.ok) return { status: response.status, body: answer as T };
  if (response.status === 401 && asker && path !== "/whoami") await stillIn();
  throw refused(response.status, answer, response.statusText);
}

/** A password that was changed, or a user that was deleted, answers like a right that is missing: whoami tells them apart. */
export async function stillIn(): Promise<void> {
  await call("GET", "/whoami").catch((error) => {
    if (error instanceof ApiError && error.status === 401) expire();
  });
}

/** An answer that is a refusal. */
export const refused = (status: number, answer: unknown, otherwise = ""): ApiError => new ApiError(status, words(answer) ?? `${status} ${otherwise}`);

export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => call<T>("GET", path, undefined, {}, signal);

/** Bytes as they are. */
export async function load(path: string): Promise<Blob> {
  const authorization = session.get()?.authorization ?? "";
  const response = await fetch(`api${path}`, { headers: { authorization }, credentials: "omit", cache: "no-store" }).catch(() => {
    throw new ApiError(0, "The broker does not answer.");
  });
  if (response.ok) return response.blob();
  if (response.status === 401) await stillIn();
  throw refused(response.status, await response.json().catch(() => undefined), response.statusText);
}

/** The reason in an error's body; Erlang's terms come as text, lists or objects. */
function words(answer: unknown): string | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const { reason, error } = answer as { reason?: unknown; error?: unknown };
  const told = reason ?? error;
  if (told === undefined) return undefined;
  return typeof told === "string" ? told : JSON.stringify(told);
}
