// What can be done with exchanges, queues, bindings, messages and connections.
import { api, enc, expect, fresh, test, visit } from "./broker";
import { acting, ready } from "./messages";

test("a queue is made with arguments, explained, emptied and deleted", async ({ inside: page }) => {
  const name = fresh("made");
  await visit(page, "queues");
  await page.getByRole("button", { name: "New queue" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("Arguments").fill("x-max-length = 10\nx-message-ttl = 3600000");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await expect(page.getByText("at most 10 ready messages")).toBeVisible();
  await expect(page.getByText("messages expire after 1 h")).toBeVisible();
  const found = await api<{ durable: boolean; arguments: Record<string, unknown> }>("GET", `/queues/%2F/${name}`);
  expect([found.durable, found.arguments["x-max-length"], found.arguments["x-message-ttl"]]).toEqual([true, 10, 3600000]);

  await page.getByLabel("Payload", { exact: true }).fill('{"hello": "<b>world</b>"}');
  await page.getByText("Headers and properties").click();
  await page.getByLabel("Headers", { exact: true }).fill("tenant = north\nsize = 7");
  await page.getByLabel("Properties", { exact: true }).fill("content_type = application/json");
  await page.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("The message is in the queue")).toBeVisible();
  await expect(page.locator(".figure", { hasText: "Ready" })).toContainText("1");

  await page.getByRole("button", { name: "Get messages" }).click();
  const message = page.getByRole("article", { name: "Message 1" });
  await expect(message).toContainText('"hello": "<b>world</b>"');
  await expect(message).toContainText("north");
  await message.getByRole("button", { name: "Hex" }).click();
  await expect(message).toContainText("7b 22 68");

  await page.getByRole("button", { name: "Purge" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Purge" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Purge" }).click();
  await expect(page.locator(".figure", { hasText: "Ready" })).toContainText("0");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  expect(await api("GET", `/queues/%2F/${name}`)).toMatchObject({ error: "Object Not Found" });
});

test("an exchange is made, bound with any key, published to, unbound and deleted", async ({ inside: page }) => {
  const name = fresh("exchange");
  const key = "a/b%2F c.*é";
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, "exchanges");
  await page.getByRole("button", { name: "New exchange" }).click();
  await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("dialog").getByLabel("Type").selectOption("topic");
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Exchange ${name}`);
  await expect(page.getByText("messages published here are not routed anywhere")).toBeVisible();

  await page.getByLabel("Routing key").fill("x");
  await page.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("no binding matched")).toBeVisible();

  await page.getByRole("button", { name: "New binding" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill(name);
  await form.getByLabel("Routing key").fill(key);
  await form.getByLabel("Arguments").fill("weight = 3");
  await form.getByRole("button", { name: "Bind" }).click();
  await expect(page.getByRole("cell", { name: key })).toBeVisible();
  await expect(page.getByRole("heading", { name: "Routing" })).toBeVisible();
  await page.getByRole("button", { name: "Unbind" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Unbind" }).click();
  await expect(page.getByRole("cell", { name: key })).toHaveCount(0);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Exchanges");
  await api("DELETE", `/queues/%2F/${name}`);
});

test("what the broker refuses is said in its words, and the page stays", async ({ inside: page }) => {
  await visit(page, "queues");
  await page.getByRole("button", { name: "New queue" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill(fresh("refused"));
  await form.getByLabel("Arguments").fill("x-max-length = minus one");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByText("invalid arg 'x-max-length'")).toBeVisible();
  await expect(form).toBeVisible();
});

test("bodies of any bytes are shown, large ones cut", async ({ inside: page }) => {
  const name = fresh("bytes");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  const publish = (payload: Buffer) => api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: name, properties: {}, payload: payload.toString("base64"), payload_encoding: "base64" });
  await publish(Buffer.from([0xff, 0xfe, 0x00, 0x41]));
  await publish(Buffer.alloc(5_000_000, "x"));
  await visit(page, `queues/%2F/${enc(name)}`);
  await page.getByRole("button", { name: "Get messages" }).click();
  await expect(page.getByRole("article", { name: "Message 1" })).toContainText("ff fe 00 41");
  await expect(page.getByRole("article", { name: "Message 2" })).toContainText("Only the first 48.8 KiB are shown");
  await api("DELETE", `/queues/%2F/${name}`);
});

test("objects with hostile names have pages, and can be acted on", async ({ inside: page }) => {
  const start = fresh("page");
  let alerts = 0;
  page.on("dialog", (dialog) => (alerts++, dialog.dismiss()));
  for (const name of [`${start}"'><script>alert(1)</script>`, `${start}/../%2F?#&`, `${start} 🐇`]) {
    await api("PUT", `/queues/%2F/${enc(name)}`, { durable: false, auto_delete: false, arguments: {} });
    await visit(page, "queues");
    await page.getByRole("searchbox").fill(name);
    await page.getByRole("link", { name, exact: true }).first().click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  }
  expect(alerts).toBe(0);
});

test("messages are moved to another queue, slowly if asked for, and dead ones replayed to where they came from", async ({ inside: page }) => {
  const name = fresh("move");
  await api("PUT", `/exchanges/%2F/${name}.in`, { type: "topic", durable: false, auto_delete: false });
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: { "x-dead-letter-exchange": "", "x-dead-letter-routing-key": `${name}.dead` } });
  for (const end of ["dead", "other"]) await api("PUT", `/queues/%2F/${name}.${end}`, { durable: false, auto_delete: false, arguments: {} });
  await api("POST", `/bindings/%2F/e/${name}.in/q/${name}`, { routing_key: "a.#", arguments: {} });
  for (let at = 0; at < 5; at++) await api("POST", `/exchanges/%2F/${name}.in/publish`, { routing_key: `a.${at}`, properties: {}, payload: `m${at}`, payload_encoding: "string" });
  await api("POST", `/queues/%2F/${name}/get`, { count: 5, ackmode: "reject_requeue_false", encoding: "auto" });
  await expect.poll(() => ready(`${name}.dead`)).toBe(5);

  await visit(page, `queues/%2F/${name}.dead`);
  const card = acting(page);
  await card.getByRole("textbox", { name: "Queue" }).fill(`${name}.other`);
  await card.getByRole("textbox", { name: "Maximum" }).fill("2");
  await card.getByLabel("Messages per second").fill("2");
  await card.getByRole("button", { name: "Move" }).click();
  await expect(page.getByText("2 messages were moved")).toBeVisible();
  expect([await ready(`${name}.dead`), await ready(`${name}.other`)]).toEqual([3, 2]);

  await card.getByLabel("Action").selectOption("replay");
  await card.getByRole("textbox", { name: "Maximum" }).fill("");
  await card.getByLabel("Messages per second").fill("");
  await card.getByRole("button", { name: "Dry run" }).click();
  await expect(card.getByRole("status")).toContainText("3 messages match");
  expect(await ready(name)).toBe(0);
  await card.getByRole("button", { name: "Replay" }).click();
  await expect(page.getByText("3 messages were replayed")).toBeVisible();
  expect([await ready(`${name}.dead`), await ready(name)]).toEqual([0, 3]);
  const [first] = await api<{ exchange: string; routing_key: string; payload: string }[]>("POST", `/queues/%2F/${name}/get`, { count: 1, ackmode: "ack_requeue_true", encoding: "auto" });
  expect([first!.exchange, first!.routing_key, first!.payload]).toEqual([`${name}.in`, "a.2", "m2"]);

  await visit(page, `queues/%2F/${name}`);
  await card.getByRole("textbox", { name: "Queue" }).fill(`${name}.nowhere`);
  await card.getByRole("button", { name: "Move" }).click();
  await expect(page.getByText("3 had no route or no room")).toBeVisible();
  expect(await ready(name)).toBe(3);
  await card.getByRole("textbox", { name: "Queue" }).fill(`${name}.other`);
  await card.getByLabel("Action").selectOption("copy");
  await card.getByRole("button", { name: "Copy" }).click();
  await expect(page.getByText("3 messages were copied")).toBeVisible();
  expect([await ready(name), await ready(`${name}.other`)]).toEqual([3, 5]);
  for (const end of ["", ".dead", ".other"]) await api("DELETE", `/queues/%2F/${name}${end}`);
  await api("DELETE", `/exchanges/%2F/${name}.in`);
});
