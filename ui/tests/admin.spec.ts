// Users, virtual hosts, permissions, policies, limits, definitions, the node; and what somebody with few rights sees.
import { readFileSync } from "node:fs";
import { api, enc, expect, fresh, login, test, visit } from "./broker";

test("a user is made, given permissions in a virtual host that is made, and deleted with it", async ({ inside: page }) => {
  const [user, host] = [fresh("user <b>"), fresh("host/é")];
  await visit(page, "vhosts");
  await page.getByRole("button", { name: "New virtual host" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill(host);
  await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Virtual host ${host}`);

  await visit(page, "users");
  await page.getByRole("button", { name: "New user" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name").fill(user);
  await form.getByLabel("Password").fill("secret");
  await form.getByLabel(/management:/).check();
  await form.getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`User ${user}`);
  await expect(page.getByText("has access to no virtual host")).toBeVisible();
  await page.locator("summary", { hasText: "Set permissions" }).click();
  await page.locator("details.more").first().getByLabel("Virtual host").selectOption(host);
  await page.getByLabel("Write", { exact: true }).first().fill("^w");
  await page.getByRole("button", { name: "Set permissions" }).click();
  await expect(page.getByRole("cell", { name: "^w" })).toBeVisible();
  expect(await api("GET", `/permissions/${enc(host)}/${enc(user)}`)).toEqual({ user, vhost: host, configure: ".*", write: "^w", read: ".*" });

  await page.getByRole("button", { name: "Clear" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Clear" }).click();
  await expect(page.getByText("has access to no virtual host")).toBeVisible();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Users");
  await visit(page, `vhosts/${enc(host)}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Virtual hosts");
});

test("changing a password leaves the tags, changing tags the password", async ({ page }) => {
  const user = fresh("changed");
  await api("PUT", `/users/${user}`, { password: "one", tags: "administrator" });
  await page.goto(`/#/users/${user}`);
  await login(page, user, "one");
  await page.getByLabel(/monitoring:/).check();
  await page.getByRole("button", { name: "Update" }).click();
  await expect(page.getByText("The user was updated")).toBeVisible();
  await page.reload();
  await expect(page.getByLabel(/monitoring:/)).toBeChecked();
  expect((await api<{ tags: string[] }>("GET", `/users/${user}`)).tags.sort()).toEqual(["administrator", "monitoring"]);
  await api("DELETE", `/users/${user}`);
});

test("a policy shows what it would take hold of before it is saved, then holds", async ({ inside: page }) => {
  const name = fresh("policy");
  for (const end of ["a", "b", "other"]) await api("PUT", `/queues/%2F/${end === "other" ? "x." : ""}${name}.${end}`, { durable: false, auto_delete: false, arguments: {} });
  await visit(page, "policies");
  await page.getByRole("button", { name: "New policy" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Name", { exact: true }).fill(name);
  await form.getByLabel("Pattern").fill(`^${name.replace(/\./g, "\\.")}`);
  await form.getByLabel("Applies to").selectOption("queues");
  await form.getByLabel("Definition").fill("max-length = 5");
  await expect(form.getByRole("status")).toContainText("2 matches");
  await expect(form.getByRole("status")).toContainText(`${name}.a`);
  await form.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("cell", { name, exact: true })).toBeVisible();
  await visit(page, `queues/%2F/${name}.a`);
  await expect(page.getByText("at most 5 ready messages (policy)")).toBeVisible();
  await visit(page, "policies");
  await page.getByRole("row", { name }).getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.getByRole("cell", { name, exact: true })).toHaveCount(0);
  for (const queue of [`${name}.a`, `${name}.b`, `x.${name}.other`]) await api("DELETE", `/queues/%2F/${queue}`);
});

test("limits are set and lifted", async ({ inside: page }) => {
  const host = fresh("limited");
  test.skip((await api<{ error?: string }>("GET", "/vhost-limits/%2F")).error !== undefined, "the broker has no limits of virtual hosts yet");
  await api("PUT", `/vhosts/${host}`, {});
  await visit(page, `vhosts/${host}`);
  await page.locator("main").getByLabel(/^Limit/).selectOption("max-queues");
  await page.getByLabel("Maximum").fill("7");
  await page.getByRole("button", { name: "Set", exact: true }).click();
  await expect(page.getByText("queues: 7")).toBeVisible();
  await page.getByRole("button", { name: "Remove" }).click();
  await expect(page.getByText("queues: 7")).toHaveCount(0);
  await api("DELETE", `/vhosts/${host}`);
});

test("definitions go out, and in after a look at what is different", async ({ inside: page }) => {
  const name = fresh("definition");
  await visit(page, "definitions");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  const document = JSON.parse(readFileSync(await download.path(), "utf8"));
  expect(document.vhosts.map((host: { name: string }) => host.name)).toContain("/");
  document.queues = [{ vhost: "/", name, durable: true, auto_delete: false, arguments: {} }];
  const file = { name: "definitions.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(document)) };
  await page.getByLabel("File with definitions").setInputFiles(file);
  await expect(page.getByRole("cell", { name: `/ · ${name}` })).toBeVisible();
  expect(await api("GET", `/queues/%2F/${name}`)).toMatchObject({ error: "Object Not Found" });
  await page.getByRole("button", { name: "Import" }).click();
  await expect(page.getByText("The definitions were imported")).toBeVisible();
  expect(await api("GET", `/queues/%2F/${name}`)).toMatchObject({ name, durable: true });
  await page.getByLabel("File with definitions").setInputFiles({ ...file, buffer: Buffer.from("[1") });
  await expect(page.getByText("definitions.json is not JSON")).toBeVisible();
  await api("DELETE", `/queues/%2F/${name}`);
});

test("what a file of definitions has that is not supported is shown with the reason, and what can be done with it", async ({ inside: page }) => {
  const name = fresh("import");
  const queue = (end: string, type: string) => ({ name: `${name}.${end}`, vhost: "/", durable: true, auto_delete: false, arguments: { "x-queue-type": type } });
  const document = { queues: [queue("quorum", "quorum"), queue("plain", "classic"), queue("events", "zork")] };
  await visit(page, "definitions");
  await page.getByLabel("File with definitions").setInputFiles({ name: "definitions.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(document)) });
  const row = (end: string) => page.getByRole("row", { name: new RegExp(`${name}\\.${end}`) });
  await expect(row("quorum")).toContainText("new");
  await expect(row("events")).toContainText("refused");
  await expect(row("events")).toContainText("queues of type 'zork' are not part of this version");
  await expect(row("plain")).toContainText("new");
  await expect(page.getByRole("button", { name: "Import" })).toHaveCount(0);
  await expect(page.getByRole("alert")).toContainText("cannot be imported as it is");
  await page.getByLabel(/Leave it out/).check();
  await expect(row("events")).toContainText("left out");
  await page.getByLabel(/as durable classic queues/).check();
  await expect(row("quorum")).toContainText("converted");
  await expect(row("events")).toContainText("left out");
  await page.getByRole("button", { name: "Import" }).click();
  await expect(page.getByText("The definitions were imported")).toBeVisible();
  const made = await api<{ name: string; type: string }[]>("GET", "/queues/%2F?columns=name,type");
  expect(made.filter((it) => it.name.startsWith(name)).map((it) => `${it.name.slice(name.length + 1)} ${it.type}`).sort()).toEqual(["plain classic", "quorum classic"]);
  for (const end of ["quorum", "plain"]) await api("DELETE", `/queues/%2F/${name}.${end}`);
});

test("the node shows its budgets and its health", async ({ inside: page }) => {
  await visit(page, "node");
  await expect(page.getByRole("heading", { level: 1 })).toContainText("Node");
  const use = page.locator(".card", { hasText: "Memory by use" });
  await expect(use.getByText("Messages in queues")).toBeVisible();
  await expect(use.getByText("MiB").first()).toBeVisible();
  await expect(page.getByText("Ready to serve clients")).toBeVisible();
  await expect(page.locator(".facts .badge.good").first()).toHaveText("ok");
});

test("somebody with the tag management sees only what is permitted", async ({ page }) => {
  const [user, host, queue] = [fresh("little"), fresh("mine"), fresh("other")];
  await api("PUT", `/users/${user}`, { password: "x", tags: "management" });
  await api("PUT", `/vhosts/${host}`, {});
  await api("PUT", `/permissions/${host}/${user}`, { configure: "", write: "", read: ".*" });
  await api("PUT", `/queues/%2F/${queue}`, { durable: false, auto_delete: false, arguments: {} });
  await api("PUT", `/queues/${host}/${queue}`, { durable: false, auto_delete: false, arguments: {} });
  const thrown: string[] = [];
  page.on("pageerror", (error) => thrown.push(error.message));
  await page.goto("/");
  await login(page, user, "x");
  const pages = page.getByRole("navigation", { name: "Pages" });
  await expect(pages.getByRole("link", { name: "Queues" })).toBeVisible();
  for (const hidden of ["Users", "Definitions", "Node"]) await expect(pages.getByRole("link", { name: hidden })).toHaveCount(0);
  await pages.getByRole("link", { name: "Queues" }).click();
  await expect(page.getByRole("link", { name: queue })).toHaveCount(1);
  for (const [address, words] of [["users", "no permission"], ["node", "no permission"], [`queues/%2F/${queue}`, "There is no such queue"], ["definitions", "Definitions"], ["policies", "None."], ["limits", "Limits"]] as const) {
    await visit(page, address);
    await expect(page.locator("main")).toContainText(words);
  }
  await visit(page, `queues/${host}/${queue}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect(page.locator(".notice.bad")).toContainText(/refused/i);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${queue}`);
  expect(thrown).toEqual([]);
  await api("DELETE", `/vhosts/${host}`);
  await api("DELETE", `/users/${user}`);
  await api("DELETE", `/queues/%2F/${queue}`);
});

test("somebody without any of the tags is told so at the log-in", async ({ page }) => {
  const user = fresh("none");
  await api("PUT", `/users/${user}`, { password: "x", tags: "" });
  await page.goto("/");
  await login(page, user, "x");
  await expect(page.getByRole("alert")).toContainText("needs one of the tags");
  await api("DELETE", `/users/${user}`);
});
