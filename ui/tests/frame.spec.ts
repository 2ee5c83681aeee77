// What stands around every page: one log-in for all tabs, alarms above each page, the range of charts.
import { api, enc, expect, fresh, login, test, visit } from "./broker";

test("a queue that is opened in a new tab asks for no second log-in, and a log-out ends them all", async ({ inside: page, context }) => {
  const name = fresh("tab");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, `queues?name=${name}`);
  const opened = context.waitForEvent("page");
  await page.getByRole("link", { name }).click({ modifiers: ["ControlOrMeta"] });
  const tab = await opened;
  await expect(tab.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await expect(tab.getByLabel("Password")).toHaveCount(0);
  await tab.locator("summary", { hasText: "guest" }).click();
  await tab.getByRole("button", { name: "Log out" }).click();
  await expect(tab.getByLabel("Password")).toBeVisible();
  await expect(page.getByLabel("Password")).toBeVisible();
  // Whoever logs in again does so for both.
  await login(page);
  await expect(tab.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await tab.close();
  await api("DELETE", `/queues/%2F/${name}`);
});

test("credentials are in no cookie and in no storage that outlives the tab", async ({ inside: page, context }) => {
  expect(await context.cookies()).toEqual([]);
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }));
  expect(kept).not.toContain("Basic");
  expect(kept).not.toContain("authorization");
});

test("an alarm stands above every page while it is in force", async ({ inside: page, context }) => {
  const alarm = [{ node: "rabbit@here", resource: "memory", used: 2 * 2 ** 30, limit: 2 ** 30 }];
  // The stream would tell what the broker says itself.
  await context.route("**/api/leveret/events*", (route) => route.fulfill({ status: 503, json: { error: "service_unavailable", reason: "full" } }));
  await context.route("**/api/leveret/alarms", (route) => route.fulfill({ json: alarm }));
  for (const address of ["", "queues", "connections", "channels", "users", "node", "coming-from-rabbitmq"]) {
    await page.goto("about:blank");
    await visit(page, address);
    await expect(page.getByRole("alert"), address).toContainText("Memory alarm on rabbit@here: it uses 2 GiB of memory, more than the limit of 1 GiB. Publishers are blocked");
  }
});

test("an alarm of the broker is told on the page of a queue, and goes by itself", async ({ inside: page }) => {
  const name = fresh("alarm");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, `queues/%2F/${enc(name)}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await expect(page.getByRole("alert")).toHaveCount(0);
  const [node] = await api<{ mem_limit: number }[]>("GET", "/nodes?columns=mem_limit");
  await api("PUT", "/leveret/limits", { memory_high_watermark: { absolute: 1_000_000 } });
  try {
    await expect(page.getByRole("alert")).toContainText("Publishers are blocked", { timeout: 15_000 });
  } finally {
    await api("PUT", "/leveret/limits", { memory_high_watermark: { absolute: node!.mem_limit } });
  }
  await expect(page.getByRole("alert")).toHaveCount(0, { timeout: 15_000 });
  await api("DELETE", `/queues/%2F/${name}`);
});

test("charts look back as far as was chosen, on every page, from the node's own samples", async ({ inside: page }) => {
  for (const [address, sample] of [["", "lengths_age"], ["node", "node_stats_age"]] as const) {
    await visit(page, address);
    await page.getByLabel("Range of the charts").selectOption("600");
    for (const age of ["3600", "28800", "86400"]) {
      const asked = page.waitForRequest((request) => request.url().includes(`${sample}=${age}`));
      await page.getByLabel("Range of the charts").selectOption(age);
      const answer = await (await asked).response();
      expect(answer?.status()).toBe(200);
    }
  }
  await page.reload();
  await expect(page.getByLabel("Range of the charts")).toHaveValue("86400");
  await visit(page, "");
  await expect(page.getByLabel("Range of the charts")).toHaveValue("86400");
});

test("the charts of a node have its samples at the first look", async ({ inside: page }) => {
  const [node] = await api<{ mem_used_details: { samples?: unknown[] } }[]>("GET", "/nodes?node_stats_age=600&node_stats_incr=10");
  expect(node!.mem_used_details.samples!.length).toBeGreaterThan(50);
  const first = page.waitForResponse((response) => response.url().includes("/api/nodes?node_stats_age=600"));
  await visit(page, "node");
  expect(((await (await first).json()) as { mem_used_details: { samples: unknown[] } }[])[0]!.mem_used_details.samples.length).toBeGreaterThan(50);
  await expect(page.locator(".card", { has: page.getByRole("heading", { name: "Memory", exact: true }) }).locator("figcaption")).toContainText("MiB");
});

test("the menu leads to the HTTP API, which is told by the broker, and to the list of consumers", async ({ inside: page }) => {
  const pages = page.getByRole("navigation", { name: "Pages" });
  await pages.getByRole("link", { name: "HTTP API" }).click();
  await page.getByLabel("Search operations").fill("/api/queues/{vhost}/{name}/contents");
  await expect(page.getByRole("row", { name: /contents/ })).toContainText("DELETE");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download openapi.json" }).click()]);
  expect(download.suggestedFilename()).toBe("openapi.json");
  await pages.getByRole("link", { name: "Consumers" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Consumers");
});
