// Streams: made, shown, published to, and who uses them. Super streams and their partitions.
import { api, enc, expect, fresh, test, visit } from "./broker";
import { STREAM_PORT, StreamClient } from "./stream";
import type { Page } from "@playwright/test";

const declare = (name: string, table: Record<string, unknown> = {}) => api("PUT", `/queues/%2F/${enc(name)}`, { durable: true, auto_delete: false, arguments: { "x-queue-type": "stream", ...table } });
const card = (page: Page, title: string | RegExp) => page.locator(".card", { has: page.getByRole("heading", { level: 2, name: title }) });

/** Answers in the broker's place below `/api/stream`, with 404 where nothing is given; what the broker itself would tell there is not heard. */
async function tells(page: Page, answers: Record<string, unknown>): Promise<void> {
  await page.route("**/api/leveret/events?**", (route) => route.abort());
  await page.route("**/api/stream/**", (route) => {
    const path = new URL(route.request().url()).pathname.replace(/^\/api/, "");
    const found = answers[path];
    return route.fulfill({ status: found === undefined ? 404 : 200, json: found ?? { error: "Object Not Found", reason: "Not Found" } });
  });
}

test("a stream is made by a form that offers what streams take and hides what they refuse", async ({ inside: page }) => {
  const name = fresh("stream");
  await visit(page, "queues");
  await page.getByRole("button", { name: "New queue" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill(name);
  await expect(form.getByLabel(/Auto-delete/)).toBeVisible();
  await form.getByLabel("Type").selectOption("stream");
  for (const refused of [/Auto-delete/, /Durable/]) await expect(form.getByLabel(refused)).toHaveCount(0);
  for (const refused of ["Message TTL", "Max length", "Dead letter exchange", "Single active consumer", "Maximum priority"]) await expect(form.getByRole("button", { name: refused, exact: true })).toHaveCount(0);
  for (const taken of ["Max length bytes", "Max age", "Max segment size bytes", "Filter size bytes", "Initial cluster size", "Leader locator"]) await form.getByRole("button", { name: taken, exact: true }).click();
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Stream ${name}`);
  const made = await api<{ type: string; durable: boolean; arguments: unknown }>("GET", `/queues/%2F/${name}`);
  expect(made).toMatchObject({
    type: "stream",
    durable: true,
    arguments: { "x-queue-type": "stream", "x-max-length-bytes": 20_000_000_000, "x-max-age": "7D", "x-stream-max-segment-size-bytes": 500_000_000, "x-stream-filter-size-bytes": 16, "x-initial-cluster-size": 3, "x-queue-leader-locator": "balanced" },
  });
  await expect(card(page, "Effective limits")).toContainText("above 18.6 GiB the oldest segments are deleted");
  await visit(page, `queues?name=${name}`);
  await expect(page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) }).locator(".badge", { hasText: /^stream$/ })).toBeVisible();
  await api("DELETE", `/queues/%2F/${name}`);
});

test("the page of a stream publishes to it, and has no buttons that would be refused", async ({ inside: page }) => {
  const name = fresh("stream");
  await declare(name);
  await visit(page, `queues/%2F/${name}`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Stream ${name}`);
  await expect(page.locator("main")).toContainText("No retention: everything is kept.");
  await page.getByLabel("Payload", { exact: true }).fill("kept");
  for (const many of ["1", "2"]) {
    await page.getByRole("button", { name: "Publish", exact: true }).click();
    await expect(page.locator(".figure", { hasText: "Messages" })).toContainText(many, { timeout: 12_000 });
  }
  // Its messages are there to be read: nobody has to come for them.
  await expect(card(page, "What holds it back")).toContainText("Nothing at the moment.");
  for (const refused of ["Purge", "Convert", "Get messages", "Move"]) await expect(page.getByRole("button", { name: refused, exact: true }), refused).toHaveCount(0);
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await expect(page.getByRole("dialog")).toContainText("The stream, its bindings and its 2 messages");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText(`Stream ${name} was deleted`)).toBeVisible();
  expect(await api("GET", `/queues/%2F/${name}`)).toMatchObject({ error: "Object Not Found" });
});

test("messages of a stream are looked at from an offset, a time and its end, and stay", async ({ inside: page }) => {
  const name = fresh("looked");
  await declare(name);
  for (let number = 0; number < 12; number++) await api("POST", "/exchanges/%2F/amq.default/publish", { properties: { headers: { region: "emea" } }, routing_key: name, payload: `order ${number}`, payload_encoding: "string" });
  await visit(page, `queues/%2F/${name}`);
  const browse = card(page, "Browse messages");
  const shown = browse.getByRole("article");
  const look = async (start: string, label = "", place = "") => {
    await browse.getByLabel("Start").selectOption(start);
    if (label !== "") await browse.getByRole("textbox", { name: label }).fill(place);
    await browse.getByRole("button", { name: "Browse" }).click();
  };
  await look("first");
  await expect(shown).toContainText(["order 0", "order 1", "order 2", "order 3", "order 4"]);
  await expect(browse.getByRole("article", { name: "Offset 3" })).toContainText("header regionemea");
  await expect(browse).toContainText("7 come after these");
  await browse.getByLabel("How many").fill("4");
  await browse.getByRole("button", { name: "Next" }).click();
  await expect(shown).toContainText(["order 5", "order 6", "order 7", "order 8"]);
  await look("offset", "Offset", "10");
  await expect(shown).toContainText(["order 10", "order 11"]);
  await expect(browse.getByRole("button", { name: "Next" })).toBeDisabled();
  await look("time", "Time", "1h");
  await expect(shown).toContainText(["order 0", "order 1", "order 2", "order 3"]);
  await look("time", "Time", "2001-03-01 12:30");
  await expect(shown.first()).toContainText("order 0");
  await look("time", "Time", "2100-01-01 00:00");
  await expect(browse).toContainText("There is no message from there on.");
  await look("last");
  await expect(shown).toContainText(["order 11"]);
  await look("offset", "Offset", "ten");
  await expect(page.locator(".notice.bad").last()).toContainText("An offset is a number");
  expect(await api("GET", `/queues/%2F/${name}`)).toMatchObject({ messages: 12, consumers: 0 });
  await api("DELETE", `/queues/%2F/${name}`);
});

test("a policy for streams is made with the keys of streams, and counts more than an argument", async ({ inside: page }) => {
  const name = fresh("ruled");
  await declare(name, { "x-max-age": "1h", "x-max-length-bytes": 1_000_000 });
  await visit(page, "policies");
  await page.getByRole("button", { name: "New policy" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByLabel("Pattern").fill(`^${name}$`);
  await form.getByLabel("Applies to").selectOption("streams");
  await expect(form.getByRole("status")).toContainText("1 match");
  await expect(form.getByRole("button", { name: "Message TTL" })).toHaveCount(0);
  await form.getByRole("button", { name: "Max age" }).click();
  await form.getByRole("button", { name: "Max segment size bytes" }).click();
  await form.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText(`Policy ${name} was saved`)).toBeVisible();
  await visit(page, `queues/%2F/${name}`);
  const limits = card(page, "Effective limits");
  await expect(limits).toContainText("what is older than 7D is deleted, a whole segment at a time (policy)");
  await expect(limits).toContainText("a segment is closed once it has 477 MiB (policy)");
  await expect(limits).toContainText("above 977 KiB the oldest segments are deleted");
  await api("DELETE", `/policies/%2F/${name}`);
  await api("DELETE", `/queues/%2F/${name}`);
});

test("the page of a stream shows who publishes to it and reads it, and what they have stored", async ({ inside: page }) => {
  const name = fresh("used");
  await declare(name);
  const [queue, connection_details] = [{ name, vhost: "/" }, { name: "10.0.0.7:4711 -> 10.0.0.1:5552", user: "guest", node: "n", peer_host: "10.0.0.7", peer_port: 4711 }];
  const consumer = { queue, connection_details, subscription_id: 3, credits: 17, consumed: 4_100, offset: 4_099, offset_lag: 901, active: false, activity_status: "waiting", properties: { name: "invoices", "single-active-consumer": "true" } };
  await tells(page, {
    [`/stream/consumers/%2F/${name}`]: [consumer],
    [`/stream/publishers/%2F/${name}`]: [{ queue, connection_details, publisher_id: 5, reference: "shop-1", published: 5_000, confirmed: 4_990, errored: 2 }],
    [`/stream/%2F/${name}/tracking`]: { offsets: { invoices: 4_000 }, writers: { "shop-1": 77 } },
  });
  await page.route(`**/api/queues/%2F/${name}?**`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), leader: "n1", members: ["n1", "n2"], online: ["n1"], committed_offset: 5_000, segments: 4, readers: { n1: 2 } } });
  });
  await visit(page, `queues/%2F/${name}`);
  await expect(card(page, "Consumers by the stream protocol (1)").getByRole("row").last()).toContainText(/10\.0\.0\.7.*3waiting174,1004,099901name invoices/);
  await expect(card(page, "Publishers by the stream protocol (1)").getByRole("row").last()).toContainText(/10\.0\.0\.7.*5shop-15,0004,9902/);
  await expect(card(page, "Tracking").getByRole("row", { name: "invoices" })).toContainText("4,000");
  await expect(card(page, "Tracking").getByRole("row", { name: "shop-1" })).toContainText("77");
  const contents = card(page, "Contents");
  for (const fact of ["Leadern1", "Membersn1, n2", "Members onlinen1", "Committed offset5,000", "Segments4", "Readers2 on n1"]) await expect(contents).toContainText(fact);
  await card(page, /^Publishers/).getByRole("link").click();
  await expect(page).toHaveURL(new RegExp(`#/stream/connections/%2F/${enc(connection_details.name)}$`));
  await api("DELETE", `/queues/%2F/${name}`);
});

test("where the broker does not tell who uses a stream, the pages say so", async ({ inside: page }) => {
  const name = fresh("untold");
  await declare(name);
  await tells(page, {});
  await visit(page, `queues/%2F/${name}`);
  for (const title of [/^Consumers by the stream/, /^Publishers by the stream/, "Tracking"]) await expect(card(page, title)).toContainText("There is nothing to show");
  await visit(page, "stream/connections");
  await expect(page.locator("main")).toContainText("There is nothing to show");
  await page.locator("main").getByRole("link", { name: "connections" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Connections");
  await api("DELETE", `/queues/%2F/${name}`);
});

test("a connection of the stream protocol is listed, shows what it writes and reads, and is closed", async ({ inside: page }) => {
  test.skip(!STREAM_PORT, "a stream is on one node of a cluster");
  const name = fresh("client");
  await declare(name);
  const client = await StreamClient.open(name);
  try {
    await client.publish(name, "shop-1", 100);
    await client.read(name);
    client.storeOffset(name, "invoices", 42);
    const all = await api<{ name: string; user_provided_name: string }[]>("GET", "/connections");
    const connection = all.find((one) => one.user_provided_name === name)!;
    const [queue, path] = [{ name, vhost: "/" }, `/stream/connections/%2F/${enc(connection.name)}`];
    await tells(page, {
      "/stream/connections": { items: [connection], page: 1, page_count: 1, filtered_count: 1, total_count: 1 },
      [`${path}/publishers`]: [{ queue, publisher_id: 0, reference: "shop-1", published: 100, confirmed: 100, errored: 0 }],
      [`${path}/consumers`]: [{ queue, subscription_id: 0, credits: 9, consumed: 100, offset: 99, offset_lag: 0, active: true, activity_status: "up", properties: {} }],
    });
    await visit(page, "stream/connections");
    await expect(page.getByRole("link", { name: "Stream connections" })).toHaveAttribute("aria-current", "page");
    await page.getByRole("link", { name, exact: true }).click();
    await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Stream connection ${name}`);
    await expect(card(page, "Publishers (1)").getByRole("row").last()).toContainText("shop-1");
    await expect(card(page, "Consumers (1)").getByRole("link", { name })).toHaveAttribute("href", `#/queues/%2F/${name}`);
    await expect(page.getByRole("heading", { name: "Channels" })).toHaveCount(0);
    // The same page has the address that it has among all connections.
    await visit(page, `connections/${enc(connection.name)}`);
    await expect(card(page, "Consumers (1)")).toBeVisible();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Close the connection" }).click();
    await client.closed;
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Stream connections");
  } finally {
    client.close();
    await api("DELETE", `/queues/%2F/${name}`);
  }
});

test("a super stream is made by number, shown with its partitions, published to and deleted", async ({ inside: page }) => {
  const name = fresh("super");
  const other = `${name}.bound`;
  await api("PUT", `/queues/%2F/${other}`, { durable: true, arguments: { "x-queue-type": "classic" } });
  await visit(page, "stream/super-streams");
  await page.getByRole("button", { name: "New super stream" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByRole("textbox", { name: "How many" }).fill("11");
  await form.getByRole("button", { name: "Max age" }).click();
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Super stream ${name}`);
  const rows = card(page, "Partitions (11)").locator("tbody tr");
  await expect(rows).toHaveCount(11);
  // By their order, not by the letters of their names.
  for (const at of [0, 2, 10]) await expect(rows.nth(at).getByRole("link")).toHaveText(`${name}-${at}`);
  expect(await api("GET", `/exchanges/%2F/${name}`)).toMatchObject({ type: "direct", durable: true, arguments: { "x-super-stream": true } });
  expect(await api("GET", `/queues/%2F/${name}-10`)).toMatchObject({ type: "stream", arguments: { "x-max-age": "7D" } });
  expect(await api("GET", `/bindings/%2F/e/${name}/q/${name}-10`)).toMatchObject([{ routing_key: "10", arguments: { "x-stream-partition-order": 10 } }]);
  await page.getByLabel("Routing key").fill("2");
  await page.getByLabel("Payload", { exact: true }).fill("for the third");
  await page.getByRole("button", { name: "Publish" }).click();
  await expect(page.getByText("The message was published and routed")).toBeVisible();
  await expect(rows.nth(2)).toContainText(/2running1/, { timeout: 12_000 });
  await expect(page.locator(".figure", { hasText: "Messages" })).toHaveText("1Messages");

  await page.locator("main").getByRole("link", { name, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Exchange ${name}`);
  await card(page, "Details").getByRole("link", { name, exact: true }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Super stream ${name}`);
  await visit(page, "stream/super-streams");
  const row = page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });
  await expect(row.getByRole("cell", { name: "11", exact: true })).toBeVisible();
  await row.getByRole("link", { name, exact: true }).click();
  // Somebody else's queue that is bound as well is no partition to be deleted; a stream is, and is named. Two keys make no second stream.
  await api("POST", `/bindings/%2F/e/${name}/q/${other}`, { routing_key: "x", arguments: {} });
  await declare(`${name}-more`);
  await api("POST", `/bindings/%2F/e/${name}/q/${name}-more`, { routing_key: "more", arguments: {} });
  await api("POST", `/bindings/%2F/e/${name}/q/${name}-10`, { routing_key: "ten", arguments: { "x-stream-partition-order": 10 } });
  await page.reload();
  await expect(card(page, "Partitions (14)").locator("tbody tr")).toHaveCount(14);
  await page.getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("dialog")).toContainText(`The exchange and its 12 streams, with 1 messages, will be deleted, also what is bound without a place among the partitions: ${name}-more.`);
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByText(`Super stream ${name} was deleted`)).toBeVisible();
  for (const path of [`/exchanges/%2F/${name}`, `/queues/%2F/${name}-0`, `/queues/%2F/${name}-10`]) expect(await api("GET", path)).toMatchObject({ error: "Object Not Found" });
  expect(await api("GET", `/queues/%2F/${other}`)).toMatchObject({ type: "classic" });
  await api("DELETE", `/queues/%2F/${other}`);
});

test("a super stream is made by keys, and nothing of one is left that is refused", async ({ inside: page }) => {
  const name = fresh("keyed");
  await declare(`${name}-amer`);
  await visit(page, "stream/super-streams");
  await page.getByRole("button", { name: "New super stream" }).click();
  const form = page.getByRole("dialog");
  const refused = async (words: string | RegExp) => {
    await form.getByRole("button", { name: "Create" }).click();
    await expect(page.locator(".notice.bad").last()).toContainText(words);
    expect(await api("GET", `/exchanges/%2F/${name}`)).toMatchObject({ error: "Object Not Found" });
    expect(await api("GET", `/queues/%2F/${name}-emea`)).toMatchObject({ error: "Object Not Found" });
  };
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByRole("textbox", { name: "How many" }).fill("1001");
  await refused("A super stream has 1 to 1000 partitions");
  await form.getByRole("combobox", { name: "Partitions" }).selectOption("keys");
  await form.getByRole("textbox", { name: "Binding keys" }).fill("emea, emea");
  await refused("Two partitions have the same key");
  await form.getByRole("textbox", { name: "Binding keys" }).fill("emea, amer\napac");
  await refused(`There is already a queue named ${name}-amer`);
  await api("DELETE", `/queues/%2F/${name}-amer`);
  // The exchange is there by then, and goes again.
  await form.getByLabel("Arguments of each stream").fill("x-max-age = soon");
  await refused(/x-max-age/);
  await form.getByLabel("Arguments of each stream").fill("");
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Super stream ${name}`);
  await expect(card(page, "Partitions (3)").locator("tbody tr")).toContainText(["emea", "amer", "apac"]);
  expect(await api("GET", `/bindings/%2F/e/${name}/q/${name}-apac`)).toMatchObject([{ routing_key: "apac", arguments: { "x-stream-partition-order": 2 } }]);
  for (const key of ["emea", "amer", "apac"]) await api("DELETE", `/queues/%2F/${name}-${key}`);
  await api("DELETE", `/exchanges/%2F/${name}`);
});

test("what a super stream's page is asked for and is none is said to be an exchange", async ({ inside: page }) => {
  await visit(page, "stream/super-streams/%2F/amq.topic");
  await expect(page.locator("main")).toContainText("This is no super stream");
  await page.locator("main").getByRole("link", { name: "exchange" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Exchange amq.topic");
});
