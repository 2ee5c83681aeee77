// How lists look: one line a row, names instead of addresses, columns that somebody chose.
import { Client } from "./amqp";
import { api, expect, fresh, test, visit } from "./broker";

test("a connection is one line of the list, however long its name; its channel and its consumer go by that name", async ({ inside: page }) => {
  const name = `${fresh("long")}-${"deployment-".repeat(8)}internal`;
  const queue = fresh("consumed");
  await api("PUT", `/queues/%2F/${queue}`, { durable: false, auto_delete: false, arguments: {} });
  const client = await Client.open(name);
  const short = await Client.open(queue);
  try {
    await client.hold(queue, 7);
    for (const [list, text] of [["connections", name], ["channels", `${name} (1)`]] as const) {
      await visit(page, `${list}?size=500`);
      const link = page.getByRole("link", { name: text, exact: true });
      await expect(link).toBeVisible();
      const height = await page.getByRole("row").filter({ has: link }).evaluate((row) => row.getBoundingClientRect().height);
      const other = page.getByRole("row").filter({ has: page.getByRole("link", { name: list === "connections" ? queue : `${queue} (1)`, exact: true }) });
      expect(Math.abs(height - (await other.evaluate((row) => row.getBoundingClientRect().height)))).toBeLessThan(3);
    }
    await visit(page, "consumers?size=500");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: queue, exact: true }) });
    await expect(row.getByRole("link", { name: `${name} (1)`, exact: true })).toBeVisible();
    await expect(row).toContainText("7");
    await row.getByRole("link", { name: queue, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${queue}`);
    await expect(page.getByRole("link", { name: `${name} (1)`, exact: true })).toBeVisible();
  } finally {
    client.close();
    short.close();
    await api("DELETE", `/queues/%2F/${queue}`);
  }
});

test("the lists fit a window of 1,280 points, with all columns that they have there", async ({ inside: page }) => {
  const name = `${fresh("wide")}.customer-relationship-management.incoming.synchronisation`;
  await api("PUT", `/queues/%2F/${name}`, { durable: true, auto_delete: false, arguments: { "x-max-length": 5, "x-message-ttl": 60000, "x-dead-letter-exchange": "d", "x-max-priority": 3 } });
  const client = await Client.open(name);
  try {
    for (const list of ["queues", "exchanges", "connections", "channels", "consumers", "users", "vhosts"]) {
      await visit(page, list);
      // A dash stands where there is no list: there may be no consumers.
      const region = page.locator(".listing .scroll");
      await expect(page.locator(".listing .scroll, .listing .empty")).toBeVisible();
      if ((await region.count()) > 0) expect(await region.evaluate((area) => area.scrollWidth - area.clientWidth), list).toBeLessThanOrEqual(0);
    }
  } finally {
    client.close();
    await api("DELETE", `/queues/%2F/${name}`);
  }
});

test("columns are chosen, kept in the browser, and given back", async ({ inside: page }) => {
  const heads = page.getByRole("columnheader");
  await visit(page, "exchanges");
  await expect(heads.filter({ hasText: "Type" })).toBeVisible();
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("checkbox", { name: "Type" }).uncheck();
  await expect(heads.filter({ hasText: "Type" })).toHaveCount(0);
  await visit(page, "queues");
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("checkbox", { name: "Memory" }).check();
  await page.reload();
  await expect(page.getByRole("columnheader", { name: "Memory" }).or(page.getByText("There are no queues"))).toBeVisible();
  await visit(page, "exchanges");
  await expect(heads.filter({ hasText: "Name" })).toBeVisible();
  await expect(heads.filter({ hasText: "Type" })).toHaveCount(0);
  await page.locator("summary", { hasText: "Columns" }).click();
  await page.getByRole("button", { name: "As many as fit" }).click();
  await expect(heads.filter({ hasText: "Type" })).toBeVisible();
});

test("users are listed with the virtual hosts that they can access", async ({ inside: page }) => {
  const [user, lonely, host] = [fresh("can"), fresh("cannot"), fresh("host")];
  await api("PUT", `/vhosts/${host}`, {});
  for (const name of [user, lonely]) await api("PUT", `/users/${name}`, { password: "x", tags: "" });
  for (const vhost of ["%2F", host]) await api("PUT", `/permissions/${vhost}/${user}`, { configure: "", write: "", read: "" });
  try {
    await visit(page, "users?size=500");
    await expect(page.getByRole("row", { name: new RegExp(`^${user}`) })).toContainText(`/, ${host}`);
    await expect(page.getByRole("row", { name: new RegExp(`^${lonely}`) })).toContainText("no access");
  } finally {
    for (const name of [user, lonely]) await api("DELETE", `/users/${name}`);
    await api("DELETE", `/vhosts/${host}`);
  }
});

test("arguments are added by buttons, and those that the type takes", async ({ inside: page }) => {
  const name = fresh("buttons");
  await visit(page, "queues");
  await page.getByRole("button", { name: "New queue" }).click();
  const form = page.getByRole("dialog");
  await expect(form.getByLabel("Type").getByRole("option")).toHaveText(["default of the virtual host", "classic", "quorum", "stream"]);
  await form.getByLabel("Type").selectOption("quorum");
  await expect(form.getByRole("button", { name: "Maximum priority" })).toHaveCount(0);
  await form.getByLabel("Type").selectOption("classic");
  await expect(form.getByRole("button", { name: "Maximum priority" })).toBeVisible();
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByRole("button", { name: "Max length", exact: true }).click();
  // What is selected is written over, as soon as the page has it.
  await expect(form.getByLabel("Arguments", { exact: true })).toBeFocused();
  await page.keyboard.type("12");
  await form.getByRole("button", { name: "Single active consumer" }).click();
  await form.getByRole("button", { name: "Max length", exact: true }).click();
  await expect(form.getByLabel("Arguments", { exact: true })).toHaveValue("x-max-length = 12\nx-single-active-consumer = true");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  expect((await api<{ arguments: unknown }>("GET", `/queues/%2F/${name}`)).arguments).toMatchObject({ "x-max-length": 12, "x-single-active-consumer": true });
  await api("DELETE", `/queues/%2F/${name}`);
  await visit(page, "policies");
  await page.getByRole("button", { name: "New policy" }).click();
  await expect(form.getByLabel("Applies to").getByRole("option")).toHaveText(["all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams"]);
  await form.getByRole("button", { name: "Alternate exchange" }).click();
  await expect(form.getByLabel("Definition", { exact: true })).toHaveValue("alternate-exchange = unrouted");
});

test("the page of a queue says what holds it back before its charts", async ({ inside: page }) => {
  const name = fresh("cause");
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: name, properties: {}, payload: "x", payload_encoding: "string" });
  await visit(page, `queues/%2F/${name}`);
  const cause = page.locator(".card", { has: page.getByRole("heading", { name: "What holds it back" }) });
  await expect(cause).toContainText("no consumers", { timeout: 12_000 });
  const chart = page.getByRole("heading", { name: "Queued messages" });
  expect((await cause.boundingBox())!.y).toBeLessThan((await chart.boundingBox())!.y);
  await api("DELETE", `/queues/%2F/${name}`);
});
