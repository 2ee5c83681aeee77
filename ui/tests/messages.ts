// What tests of messages in queues share.
import type { Locator, Page } from "@playwright/test";
import { api, enc } from "./broker";

const card = (page: Page, title: string): Locator => page.locator(".card", { has: page.getByRole("heading", { name: title }) });

/** Where messages are looked at. */
export const looking = (page: Page): Locator => card(page, "Browse messages");

/** Where something is done with them. */
export const acting = (page: Page): Locator => card(page, "Move, copy, replay or delete");

export const ready = async (queue: string): Promise<number> => (await api<{ messages_ready: number }>("GET", `/queues/%2F/${enc(queue)}`)).messages_ready;

export const declare = (queue: string, table: Record<string, unknown> = {}): Promise<unknown> => api("PUT", `/queues/%2F/${enc(queue)}`, { durable: false, auto_delete: false, arguments: table });

export const publish = (queue: string, payload: Buffer | string, properties: Record<string, unknown> = {}): Promise<unknown> =>
  api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: queue, properties, payload: Buffer.from(payload).toString("base64"), payload_encoding: "base64" });
