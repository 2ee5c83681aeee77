// What the broker tells without being asked, and what happens when it cannot.
import { api, expect, fresh, test, visit } from "./broker";
import type { Request } from "@playwright/test";

/** The path of the API that a request asks. */
const asked = (request: Request): string => new URL(request.url()).pathname;

test("a page is told what changes and asks no more", async ({ inside: page }) => {
  test.setTimeout(60_000);
  const name = fresh("live");
  const publish = () => api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: name, properties: {}, payload: "x", payload_encoding: "string" });
  const ready = page.locator(".figure", { hasText: "Ready" });
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  // Parts of the page come one after another, and each new one has the stream begun anew: the last stream is the one that tells about all of them.
  const parts = [`/queues/%2F/${name}`, `/queues/%2F/${name}/bindings`, `/leveret/why/queues/%2F/${name}`, `/leveret/times/queues/%2F/${name}`];
  const events = page.waitForResponse((response) => {
    const watched = new URL(response.url()).searchParams.getAll("watch").map((path) => path.split("?")[0]);
    return response.url().includes("/leveret/events") && parts.every((part) => watched.includes(part));
  });
  await visit(page, `queues/%2F/${name}`);
  expect((await events).headers()["content-type"]).toBe("text/event-stream");
  await publish();
  await expect(ready).toContainText("1", { timeout: 12_000 });
  const questions: string[] = [];
  page.on("request", (request) => questions.push(asked(request)));
  await publish();
  await expect(ready).toContainText("2", { timeout: 12_000 });
  await expect(page.getByText("Live", { exact: true })).toBeVisible();
  expect(questions).toEqual([]);
  await api("DELETE", `/queues/%2F/${name}`);
});

test("without a stream of events the page asks by itself", async ({ inside: page, context }) => {
  const name = fresh("asks");
  await context.route("**/api/leveret/events*", (route) => route.fulfill({ status: 503, json: { error: "service_unavailable", reason: "full" } }));
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, `queues/%2F/${name}`);
  await expect(page.locator(".figure", { hasText: "Ready" })).toContainText("0");
  await api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: name, properties: {}, payload: "x", payload_encoding: "string" });
  await expect(page.locator(".figure", { hasText: "Ready" })).toContainText("1", { timeout: 12_000 });
  await api("DELETE", `/queues/%2F/${name}`);
});

test("a log-in that ends while a page is told leads to the log-in", async ({ page }) => {
  const user = fresh("leaver");
  await api("PUT", `/users/${user}`, { password: "one", tags: "management" });
  await api("PUT", `/permissions/%2F/${user}`, { configure: "", write: "", read: ".*" });
  await page.goto("/#/queues");
  await page.getByLabel("User").fill(user);
  await page.getByLabel("Password").fill("one");
  const events = page.waitForResponse((response) => response.url().includes("/leveret/events"));
  await page.getByRole("button", { name: "Log in" }).click();
  await events;
  await api("DELETE", `/users/${user}`);
  await expect(page.getByText("Your log-in is no longer valid")).toBeVisible({ timeout: 12_000 });
});

test("events are bounded, and only tell what their listener may see", async () => {
  const user = fresh("listener");
  await api("PUT", `/users/${user}`, { password: "one", tags: "management" });
  const listen = async (query: string): Promise<[number, string]> => {
    const stop = new AbortController();
    const headers = { authorization: `Basic ${Buffer.from(`${user}:one`).toString("base64")}` };
    const response = await fetch(`http://127.0.0.1:${process.env["HTTP_PORT"] ?? "15672"}/api/leveret/events?${query}`, { headers, signal: stop.signal });
    let text = "";
    for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (!response.ok || text.includes("event: turn")) break;
    }
    stop.abort();
    return [response.status, text];
  };
  const [status, told] = await listen("watch=/whoami&watch=/nodes&watch=/queues/%252F&watch=/no/such/thing");
  expect(status).toBe(200);
  const answers = [...told.matchAll(/^data: (\{"watch".*)$/gm)].map(([, line]) => JSON.parse(line!) as { watch: number; status: number });
  expect(answers.map(({ watch, status }) => [watch, status])).toEqual([[0, 200], [1, 401], [2, 404], [3, 404]]);
  expect((await listen("every=0&watch=/overview"))[0]).toBe(400);
  expect((await listen("every=5"))[0]).toBe(400);
  expect((await listen(Array.from({ length: 17 }, () => "watch=/overview").join("&")))[0]).toBe(400);
  expect((await listen("watch=/leveret/events"))[0]).toBe(400);
  await api("DELETE", `/users/${user}`);
});
