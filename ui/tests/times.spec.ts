// How long messages take, over time; and the age of what waits.
import { api, enc, expect, fresh, test, visit } from "./broker";

test("queues are sorted by the age of their oldest message, and their times are charted", async ({ inside: page }) => {
  test.setTimeout(60_000);
  const [old, young] = [fresh("old"), fresh("young")];
  const publish = (key: string) => api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: key, properties: { delivery_mode: 2 }, payload: "x", payload_encoding: "string" });
  for (const name of [old, young]) await api("PUT", `/queues/%2F/${name}`, { durable: true, auto_delete: false, arguments: {} });
  await publish(old);
  await expect.poll(async () => (await api<{ oldest_message_age_ms: number }>("GET", `/queues/%2F/${old}`)).oldest_message_age_ms).toBeGreaterThan(50);
  await publish(young);
  await visit(page, `queues?name=ui.&sort=oldest_message_age_ms&reverse=true`);
  const names = page.getByRole("rowheader").or(page.locator("tbody td:first-child"));
  await expect(names.filter({ hasText: old })).toBeVisible();
  const order = await names.allInnerTexts();
  expect(order.indexOf(old)).toBeLessThan(order.indexOf(young));

  // One message in many is timed, so many are published and got.
  const path = `/leveret/times/queues/%2F/${enc(old)}`;
  type Times = Record<string, { p50_ms: number; p99_ms: number; timestamp: number }[]>;
  await expect
    .poll(
      async () => {
        await Promise.all(Array.from({ length: 16 }, () => publish(old)));
        return (await api<Times>("GET", path))["publish_to_confirm"]?.length ?? 0;
      },
      { timeout: 30_000 },
    )
    .toBeGreaterThan(0);
  const [sample] = (await api<Times>("GET", path))["publish_to_confirm"]!;
  expect(sample!.p99_ms).toBeGreaterThanOrEqual(sample!.p50_ms);
  await visit(page, `queues/%2F/${enc(old)}`);
  await expect(page.getByRole("heading", { name: "Publish to confirm" })).toBeVisible();
  await expect(page.locator("section.card", { has: page.getByRole("heading", { name: "Publish to confirm" }) }).locator("figcaption")).toContainText("ms");
  for (const name of [old, young]) await api("DELETE", `/queues/%2F/${name}`);
});

test("the overview says what changed last", async ({ inside: page }) => {
  const name = fresh("changed");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, "");
  const card = page.locator("section.card", { hasText: "Latest changes" });
  await expect(card).toContainText(`PUT /api/queues/%2F/${name}`);
  await api("DELETE", `/queues/%2F/${name}`);
  await expect(card).toContainText(`DELETE /api/queues/%2F/${name}`, { timeout: 12_000 });
});

test("each way in which messages leave a queue without being consumed has its rate, and an alarm stands among the causes first", async ({ inside: page, context }) => {
  const name = fresh("lost");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await context.route("**/api/leveret/events*", (route) => route.fulfill({ status: 503, json: { error: "service_unavailable", reason: "full" } }));
  const lost = { dropped: 7_000, dropped_details: { rate: 700 }, dropped_maxlen: 7_000, dropped_maxlen_details: { rate: 700 } };
  const body = await api<object>("GET", `/queues/%2F/${name}`);
  await context.route(`**/api/queues/%2F/${name}?*`, (route) => route.fulfill({ json: { ...body, message_stats: lost } }));
  const holds = [
    { who: "publishers", resource: "memory_alarm", because: "the memory alarm is on" },
    { who: "messages", resource: "max_length", because: "the queue is full" },
  ];
  await context.route(`**/api/leveret/why/queues/%2F/${name}`, (route) => route.fulfill({ json: { held_by: "memory_alarm", holds, figures: {} } }));
  await visit(page, `queues/%2F/${name}`);
  await expect(page.locator(".facts > div", { hasText: "Dropped: maximum length" })).toContainText("7,000 (700/s)");
  const causes = page.locator(".holds li");
  await expect(causes).toHaveCount(2);
  await expect(causes.first()).toContainText("memory alarm");
  await expect(causes.last()).toContainText("messages are lost");
  await api("DELETE", `/queues/%2F/${name}`);
});
