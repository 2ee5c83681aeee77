// Screenshots of every page for people to look at: SHOTS=folder. No test otherwise.
import { api, enc, expect, test, visit } from "./broker";

const folder = process.env["SHOTS"];
const PAGES: Record<string, string> = (process.env["PAGES"] ? JSON.parse(process.env["PAGES"]) : null) ?? {
  overview: "",
  queues: "queues",
  queue: "queues/%2F/orders",
  exchanges: "exchanges",
  exchange: "exchanges/%2F/shop",
  connections: "connections",
  channels: "channels",
  consumers: "consumers",
  stream: "queues/%2F/events",
  streamconnections: "stream/connections",
  superstreams: "stream/super-streams",
  superstream: "stream/super-streams/%2F/clicks",
  users: "users",
  user: "users/guest",
  vhosts: "vhosts",
  vhost: "vhosts/%2F",
  policies: "policies",
  limits: "limits",
  definitions: "definitions",
  node: "node",
  logs: "logs",
  audit: "audit",
  trace: "trace",
  connect: "connect",
  rabbitmq: "coming-from-rabbitmq",
  api: "api",
};

const SIZES = { desktop: { width: 1280, height: 850 }, phone: { width: 390, height: 800 } };

test("pages have their pictures taken", async ({ inside: page }) => {
  test.skip(!folder, "no folder for pictures was named");
  test.setTimeout(300_000);
  await api("PUT", "/exchanges/%2F/shop", { type: "topic", durable: true });
  for (const [queue, key] of [["orders", "order.*"], ["invoices", "order.paid"], ["audit", "#"]] as const) {
    await api("PUT", `/queues/%2F/${queue}`, { durable: true, arguments: queue === "orders" ? { "x-max-length": 100000, "x-dead-letter-exchange": "dead" } : {} });
    await api("POST", `/bindings/%2F/e/shop/q/${enc(queue)}`, { routing_key: key, arguments: {} });
  }
  for (let at = 0; at < 25; at++) {
    const payload = JSON.stringify({ order: 1000 + at, customer: "Ada", items: [{ sku: "A-17", count: 2 }] });
    await api("POST", "/exchanges/%2F/shop/publish", { routing_key: at % 3 ? "order.placed" : "order.paid", payload, payload_encoding: "string", properties: { content_type: "application/json", delivery_mode: 2, headers: { tenant: "north" } } });
  }
  for (const [size, viewport] of Object.entries(SIZES)) {
    await page.setViewportSize(viewport);
    for (const scheme of ["light", "dark"] as const) {
      if (process.env["SCHEME"] && process.env["SCHEME"] !== `${size}-${scheme}`) continue;
      await page.emulateMedia({ colorScheme: scheme });
      for (const [name, address] of Object.entries(PAGES)) {
        // A page that has come together is told what changes from then on.
        await page.goto("about:blank");
        const together = page.waitForResponse((response) => response.url().includes("/leveret/events"));
        await visit(page, address);
        await together;
        await expect(page.locator("main [aria-busy]")).toHaveCount(0);
        await page.screenshot({ path: `${folder}/${name}-${size}-${scheme}.png`, fullPage: size === "desktop" });
      }
    }
  }
});
