// Clients that are there: who they are, what they hold, what holds them, and sending them away.
import { Client } from "./amqp";
import { api, enc, expect, fresh, test, visit } from "./broker";
import { declare, publish } from "./messages";

test("a client is found by its name, its channel says what it holds and why, and it is sent away with a reason", async ({ inside: page }) => {
  test.setTimeout(60_000);
  const name = `${fresh("client")}"'><b>x</b> 🐇`;
  const queue = fresh("held");
  await declare(queue);
  const client = await Client.open(name);
  try {
    await client.hold(queue, 2);
    for (let at = 0; at < 3; at++) await publish(queue, `m${at}`);
    await visit(page, "connections");
    await page.getByRole("link", { name, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Connection ${name}`);
    const said = page.locator("section.card", { hasText: "Client properties" });
    await expect(said).toContainText("capabilities connection.blocked");
    const address = await page.locator("dt", { hasText: "Name" }).first().locator("xpath=../dd").innerText();

    await page.getByRole("link", { name: `${name} (1)` }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Channel ${name} (1)`);
    const facts = page.locator("main");
    await expect(facts.locator("dl", { hasText: "Delivered, not acknowledged" })).toContainText("2", { timeout: 12_000 });
    await expect(facts).toContainText("2 per consumer");
    await expect(facts).toContainText("publisher confirms");
    await expect(page.locator(".facts > div", { hasText: "Connection held back" })).toContainText("never");
    await expect(page.getByRole("link", { name: queue, exact: true })).toBeVisible();
    await expect(page.getByRole("heading", { name: "What holds it back" })).toBeVisible();

    await visit(page, `queues/%2F/${queue}`);
    await expect(page.locator("section.card", { hasText: "What holds it back" })).toContainText("prefetch", { timeout: 12_000 });
    await visit(page, "channels?sort=held_ms&reverse=true");
    await expect(page.getByRole("link", { name: `${name} (1)` })).toBeVisible();

    await visit(page, `connections/${enc(address)}`);
    await page.getByRole("button", { name: "Close" }).click();
    const form = page.getByRole("dialog");
    await form.getByLabel("Reason").fill("moving house");
    await form.getByRole("button", { name: "Close the connection" }).click();
    expect(await client.closed).toBe("CONNECTION_FORCED - moving house");
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Connections");
    await expect(page.getByRole("link", { name, exact: true })).toHaveCount(0, { timeout: 12_000 });
  } finally {
    client.close();
    await api("DELETE", `/queues/%2F/${queue}`);
  }
});
