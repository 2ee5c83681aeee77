// A body of 16 MiB: cut on the page, found by its last bytes, downloaded whole.
import { readFileSync } from "node:fs";
import { Client } from "./amqp";
import { api, expect, fresh, test, visit } from "./broker";
import { declare, looking, ready } from "./messages";

const SIZE = 16 * 1024 * 1024;

test("a body of 16 MiB is shown in part, found by its end and downloaded whole", async ({ inside: page }) => {
  test.setTimeout(90_000);
  const name = fresh("large");
  // Characters of two bytes: wherever it is cut, it stays text.
  const body = Buffer.alloc(SIZE, "é");
  body.write("the very end", SIZE - 12);
  await declare(name);
  const client = await Client.open(name);
  try {
    await client.publish(name, body);
    await expect.poll(() => ready(name)).toBe(1);
    await visit(page, `queues/%2F/${name}`);
    const card = looking(page);
    await card.getByLabel("Contains").fill("the very end");
    await card.getByRole("button", { name: "Browse", exact: true }).click();
    const found = card.locator(".found > li");
    await expect(found).toHaveCount(1);
    await found.locator("summary").click();
    await expect(found).toContainText("16 MiB");
    await expect(found).toContainText("Only the first 48.8 KiB are shown; download the message for all of it.");
    expect((await found.locator("pre").innerText()).length).toBeLessThanOrEqual(50_000);
    const download = page.waitForEvent("download");
    await found.getByRole("button", { name: "Download" }).click();
    const stored = readFileSync(await (await download).path());
    expect(stored.equals(body)).toBe(true);

    await page.getByRole("button", { name: "Get messages" }).click();
    await expect(page.getByRole("article", { name: "Message 1" })).toContainText("Only the first 48.8 KiB are shown");
    expect(await ready(name)).toBe(1);
  } finally {
    client.close();
    await api("DELETE", `/queues/%2F/${name}`);
  }
});

test("a body that is larger than the API takes is refused in its words, and what was written stays", async ({ inside: page }) => {
  test.setTimeout(60_000);
  const name = fresh("larger");
  await declare(name);
  await visit(page, `queues/%2F/${name}`);
  const payload = page.getByLabel("Payload", { exact: true });
  await payload.evaluate((area: HTMLTextAreaElement) => {
    area.value = "x".repeat(11 * 1024 * 1024);
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await page.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("Exceeded HTTP request body size limit")).toBeVisible({ timeout: 20_000 });
  expect(await payload.evaluate((area: HTMLTextAreaElement) => area.value.length)).toBe(11 * 1024 * 1024);
  expect(await ready(name)).toBe(0);
  await api("DELETE", `/queues/%2F/${name}`);
});
