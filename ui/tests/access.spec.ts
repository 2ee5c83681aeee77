// Accessibility by axe, the keyboard, a phone, and a broker that goes away.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { Client } from "./amqp";
import { api, enc, expect, fresh, test, visit } from "./broker";
import type { Page } from "@playwright/test";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = ["", "queues", "queues/%2F/QUEUE", "exchanges", "exchanges/%2F/amq.topic", "connections", "connections/CLIENT", "channels", "channels/CLIENT (1)", "consumers", "queues/%2F/STREAM", "stream/connections", "stream/super-streams", "users", "users/guest", "vhosts", "vhosts/%2F", "policies", "limits", "definitions", "node", "logs", "audit", "trace", "connect", "coming-from-rabbitmq", "api"];

/** Visits each page, those of a queue and of a client that are there included. */
async function eachPage(page: Page, look: (address: string) => Promise<void>): Promise<void> {
  const name = fresh("page");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: { "x-max-length": 5 } });
  await api("PUT", `/queues/%2F/${name}.stream`, { durable: true, arguments: { "x-queue-type": "stream" } });
  const client = await Client.open(name);
  try {
    const all = await api<{ name: string; user_provided_name: string }[]>("GET", "/connections");
    const address = all.find((one) => one.user_provided_name === name)?.name ?? "";
    for (const pattern of PAGES) {
      await visit(page, pattern.replace("QUEUE", name).replace("STREAM", `${name}.stream`).replace(/CLIENT.*/, (client) => enc(client.replace("CLIENT", address))));
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await look(pattern);
    }
  } finally {
    client.close();
    for (const end of ["", ".stream"]) await api("DELETE", `/queues/%2F/${name}${end}`);
  }
}

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string }[];
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as { violations: Violation[] };
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 160)}`);
}

test("axe finds nothing serious on any page, light or dark", async ({ inside: page }) => {
  test.setTimeout(150_000);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await eachPage(page, async (address) => {
      await expect(page.locator("main [aria-busy]")).toHaveCount(0);
      expect(await violations(page), `${colorScheme} ${address}`).toEqual([]);
    });
    await visit(page, "queues");
    await page.getByRole("button", { name: "New queue" }).click();
    expect(await violations(page), `${colorScheme} dialog`).toEqual([]);
    await page.keyboard.press("Escape");
  }
  await page.locator("summary", { hasText: "guest" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  expect(await violations(page), "log-in").toEqual([]);
});

test("the pages are used by keyboard alone", async ({ inside: page }) => {
  await visit(page, "queues");
  await expect(page.locator("main")).toBeFocused();
  await page.getByRole("button", { name: "New queue" }).focus();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(page.getByRole("button", { name: "New queue" })).toBeFocused();
});

test("on a phone the pages fit, and the menu opens", async ({ inside: page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await eachPage(page, async (address) => {
    await expect(page.locator("main [aria-busy]")).toHaveCount(0);
    // A chart learns how wide it may be once it stands on the page.
    const wide = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await expect.poll(wide, { message: `${address} is wider than the screen` }).toBeLessThanOrEqual(0);
  });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Exchanges" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Exchanges");
  await expect(page.getByRole("link", { name: "Users" })).toBeHidden();
});

test("a broker that does not answer leaves the figures, says how old they are, and comes back by itself", async ({ inside: page, context }) => {
  await visit(page, "exchanges");
  await expect(page.getByRole("link", { name: "amq.topic" }).first()).toBeVisible();
  await context.setOffline(true);
  await expect(page.getByText(/No connection/)).toBeVisible({ timeout: 15_000 });
  await expect(page.getByRole("link", { name: "amq.topic" }).first()).toBeVisible();
  await context.setOffline(false);
  await expect(page.getByText(/^(Live|Updated)/)).toBeVisible({ timeout: 20_000 });
});

test("a broker that starts again is found again, and nobody has to log in anew", async ({ inside: page }) => {
  const control = process.env["CONTROL_PORT"];
  test.skip(!control, "nobody can restart the broker");
  test.setTimeout(60_000);
  await visit(page, "vhosts");
  await expect(page.getByRole("cell", { name: "/", exact: true })).toBeVisible();
  await new Promise<void>((resolve, reject) => {
    const socket = connect(Number(control), "127.0.0.1", () => socket.write("restart\n"));
    socket.once("data", () => (socket.end(), resolve()));
    socket.once("error", reject);
  });
  await expect(page.getByText(/^(Live|Updated)/)).toBeVisible({ timeout: 30_000 });
  await page.getByRole("link", { name: "Queues", exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  await expect(page.getByLabel("Password")).toHaveCount(0);
});

test("an empty broker shows how to connect, and a sample to look at is one click away", async ({ inside: page }) => {
  await visit(page, "connect");
  await page.getByLabel("Port").fill("5999");
  for (const language of ["Python", "Node.js", "Java", "Go", "Rust"]) {
    await page.getByRole("button", { name: language }).click();
    await expect(page.locator("pre")).toContainText("amqp://guest:PASSWORD@127.0.0.1:5999/%2F");
  }
  await page.getByRole("button", { name: "Create a sample queue" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queue sample");
  await expect(page.locator(".figure", { hasText: "Ready" })).not.toContainText("0", { timeout: 15_000 });
  await page.goto("about:blank");
  await api("DELETE", "/queues/%2F/sample");
});
