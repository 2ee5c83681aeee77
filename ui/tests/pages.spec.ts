// Log-in, lists and the frame of the pages.
import { api, enc, expect, fresh, login, test, visit } from "./broker";

test("the binary has the pages (make ui builds them) and a strict policy for what they may run", async ({ page }) => {
  const response = await page.goto("/");
  expect(response?.status(), "built without the web UI?").toBe(200);
  const policy = response?.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
});

test("a wrong password is refused, a right one opens the page that was asked for", async ({ page }) => {
  await page.goto("/#/exchanges");
  await login(page, "guest", "wrong");
  await expect(page.getByRole("alert")).toContainText("wrong");
  await login(page);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Exchanges");
  await expect(page.getByRole("link", { name: "amq.topic" }).first()).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Exchanges");
});

test("logging out forgets who was there", async ({ inside: page }) => {
  await page.locator("summary", { hasText: "guest" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await expect(page.getByLabel("Password")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel("Password")).toBeVisible();
});

test("a log-in that is no longer valid asks again and goes on where it was", async ({ page }) => {
  const name = fresh("late");
  await api("PUT", `/users/${name}`, { password: "one", tags: "administrator" });
  try {
    await page.goto("/#/vhosts");
    await login(page, name, "one");
    await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
    await page.goto("/#/queues");
    await api("PUT", `/users/${name}`, { password: "two", tags: "administrator" });
    await expect(page.getByRole("alert")).toContainText("no longer valid", { timeout: 15_000 });
    await login(page, name, "two");
    await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  } finally {
    await api("DELETE", `/users/${name}`);
  }
});

test("queues are made, listed, filtered, sorted and paged by the broker", async ({ inside: page }) => {
  const name = fresh("list");
  for (let at = 0; at < 25; at++) await api("PUT", `/queues/%2F/${name}.${String(at).padStart(2, "0")}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, `queues?name=${name}&size=20&sort=name&reverse=true`);
  const rows = page.locator("tbody tr");
  await expect(rows).toHaveCount(20);
  await expect(rows.first()).toContainText(`${name}.24`);
  await page.getByRole("button", { name: "Next" }).click();
  await expect(rows).toHaveCount(5);
  await page.getByRole("button", { name: "Name" }).click();
  await expect(rows.first()).toContainText(`${name}.00`);
  await page.getByRole("searchbox").fill(`${name}.1`);
  await expect(rows).toHaveCount(10);
  await page.goBack();
  for (let at = 0; at < 25; at++) await api("DELETE", `/queues/%2F/${name}.${String(at).padStart(2, "0")}`);
});

test("old addresses of RabbitMQ's pages lead to the right ones", async ({ inside: page }) => {
  const name = `${fresh("old")}/name`;
  await api("PUT", `/queues/%2F/${enc(name)}`, { durable: false, auto_delete: false, arguments: {} });
  const [node] = await api<{ name: string }[]>("GET", "/nodes?columns=name");
  const pages: [string, string][] = [
    ...["queues", "exchanges", "connections", "channels", "users", "policies", "limits"].map((list): [string, string] => [list, list[0]!.toUpperCase() + list.slice(1)]),
    ["vhosts", "Virtual hosts"],
    [`queues/%2F/${enc(name)}`, `Queue ${name}`],
    ["exchanges/%2F/amq.topic", "Exchange amq.topic"],
    ["exchanges/%2F/amq.default", "Exchange (AMQP default)"],
    ["users/guest", "User guest"],
    ["vhosts/%2F", "Virtual host /"],
    ["stream/connections", "Stream connections"],
    ["stream/super-streams", "Super streams"],
    ["policies/%2F/any", "Policies"],
    [`nodes/${node!.name}`, `Node ${node!.name}`],
    ["cluster-name", `Node ${node!.name}`],
    ["feature-flags", `Node ${node!.name}`],
    ["deprecated-features", `Node ${node!.name}`],
    ["traces", "Tracing"],
    ["import-succeeded", "Definitions"],
  ];
  for (const [old, title] of pages) {
    await page.goto("about:blank");
    await page.goto(`/#/${old}`);
    await expect(page.getByRole("heading", { level: 1 }), old).toHaveText(title);
  }
  await api("DELETE", `/queues/%2F/${enc(name)}`);
  await page.goto("/#/no/such/page");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("There is no such page");
});

test("names of queues are text and nothing else", async ({ inside: page }) => {
  const start = fresh("hostile");
  const names = [`${start}"><img src=x onerror=alert(1)>`, `${start}'&lt;`, `${start}/a/../b`, `${start} 🐇 é`, `${start}%2F%00?#`, start + "x".repeat(255 - start.length)];
  let alerts = 0;
  page.on("dialog", (dialog) => (alerts++, dialog.dismiss()));
  for (const name of names) await api("PUT", `/queues/%2F/${enc(name)}`, { durable: false, auto_delete: false, arguments: {} });
  try {
    await visit(page, `queues?name=${enc(start)}`);
    for (const name of names) await expect(page.getByRole("link", { name, exact: true })).toBeVisible();
    expect(alerts).toBe(0);
    await expect(page.locator("main img")).toHaveCount(0);
  } finally {
    for (const name of names) await api("DELETE", `/queues/%2F/${enc(name)}`);
  }
});
