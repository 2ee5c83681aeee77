// The last lines of the log and of the audit trail, and the configuration in force.
import { api, expect, fresh, login, test, visit } from "./broker";

test("the audit trail says who changed what, as it happens", async ({ inside: page }) => {
  const name = fresh("audited");
  await visit(page, `audit?text=${name}`);
  await expect(page.getByText("Nothing that matches this filter was changed")).toBeVisible();
  await api("PUT", `/queues/%2F/${name}`, { durable: false, auto_delete: false, arguments: {} });
  await expect(page.getByRole("cell", { name: `PUT /api/queues/%2F/${name}` })).toBeVisible({ timeout: 6_000 });
  await page.getByRole("button", { name: "Pause" }).click();
  await api("DELETE", `/queues/%2F/${name}`);
  await page.getByRole("button", { name: "Resume" }).click();
  await expect(page.getByRole("cell", { name: `DELETE /api/queues/%2F/${name}` })).toBeVisible({ timeout: 6_000 });
});

test("the log is filtered by level, area and text, and shows names from outside as text", async ({ inside: page }) => {
  const name = `${fresh("nobody")}<b>x</b>`;
  const authorization = `Basic ${Buffer.from(`${name}:wrong`).toString("base64")}`;
  await fetch(`http://127.0.0.1:${process.env["HTTP_PORT"] ?? "15672"}/api/whoami`, { headers: { authorization } });
  await visit(page, "logs");
  await page.getByLabel("Search in lines").fill(name);
  await page.getByLabel("Level").selectOption("warning");
  const line = page.getByRole("cell", { name: "HTTP access denied" }).filter({ hasText: name });
  await expect(line).toBeVisible();
  await page.getByLabel("Area").selectOption("management");
  await expect(line).toBeVisible();
  await page.getByLabel("Level").selectOption("error");
  await expect(page.getByText("No line matches this filter")).toBeVisible();
  await expect(page).toHaveURL(/level=error/);
});

test("the log is for those who watch the node, the audit trail for administrators", async ({ page }) => {
  const user = fresh("watcher");
  await api("PUT", `/users/${user}`, { password: "one", tags: "monitoring" });
  await page.goto("/#/logs");
  await login(page, user, "one");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Log");
  await expect(page.getByRole("table")).toBeVisible();
  await expect(page.getByRole("link", { name: "Audit trail" })).toHaveCount(0);
  await visit(page, "audit");
  await expect(page.getByText("You have no permission to see audit trail.")).toBeVisible();
  await api("PUT", `/users/${user}`, { password: "one", tags: "management" });
  await visit(page, "logs");
  await expect(page.getByText("You have no permission to see log.")).toBeVisible();
  await api("DELETE", `/users/${user}`);
});

test("the configuration in force names what was set, where, and the defaults", async ({ inside: page }) => {
  await visit(page, "node");
  const card = page.locator("section.card", { hasText: "Effective configuration" });
  await expect(card.getByRole("row", { name: /management\.tcp\.port/ })).toContainText("15672");
  await expect(card.getByRole("row", { name: /heartbeat/ })).toHaveCount(0);
  await card.getByLabel("Search in the configuration").fill("heartbeat");
  await expect(card.getByRole("row", { name: /^heartbeat/ })).toContainText("default");
  await card.getByLabel("Search in the configuration").fill("pass");
  await expect(card.getByRole("row", { name: /default_pass/ })).toContainText("********");
});
