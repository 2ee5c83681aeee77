// The firehose: on, off, what passes, and nothing left behind.
import { api, expect, fresh, login, test, visit } from "./broker";
import { declare, publish } from "./messages";

const HOST = "/vhosts/%2F?columns=tracing";
const queues = async (): Promise<string[]> => (await api<{ name: string }[]>("GET", "/queues/%2F?columns=name")).map(({ name }) => name);

test("messages are seen as they pass, by exchange, queue, user and connection, and nothing is left when the page is closed", async ({ inside: page }) => {
  test.setTimeout(60_000);
  const name = fresh("traced");
  await declare(name);
  const before = await queues();
  try {
    await visit(page, "trace?vhost=%2F");
    await expect(page.getByText("tracing off", { exact: true })).toBeVisible();
    await page.getByRole("button", { name: "Start tracing" }).click();
    await expect(page.getByRole("dialog")).toContainText("more than double");
    await page.getByRole("dialog").getByRole("button", { name: "Start tracing" }).click();
    await expect(page.getByText("tracing on", { exact: true })).toBeVisible();
    expect(await api("GET", HOST)).toEqual({ tracing: true });

    await publish(name, '{"from": "<b>ada</b>"}', { headers: { tenant: "north" } });
    const passed = page.locator(".found > li", { hasText: name });
    await expect(passed).toHaveCount(1);
    await expect(passed).toContainText("(AMQP default)");
    await passed.locator("summary").click();
    await expect(passed).toContainText("Published by guest");
    await expect(passed).toContainText(`to ${name}`);
    await expect(passed).toContainText("north");
    await expect(passed.locator("pre")).toContainText("<b>ada</b>");

    await page.getByRole("combobox", { name: "Messages" }).selectOption("deliver");
    await page.getByLabel("Queue", { exact: true }).fill("no.such.queue");
    await expect(page).toHaveURL(/name=no\.such\.queue/);
    await expect(page.getByText("No messages since")).toBeVisible();
    await page.getByRole("combobox", { name: "Messages" }).selectOption("publish");
    await page.getByLabel("Exchange", { exact: true }).fill("");
    // The first turn of a new look says whether the virtual host is traced.
    const looks = (user: string) => page.waitForResponse((response) => response.url().includes(`user=${user}`));
    const somebody = looks("somebody");
    await page.getByLabel("User", { exact: true }).fill("somebody");
    await somebody;
    await expect(page.getByText("tracing on", { exact: true })).toBeVisible();
    await publish(name, "another");
    await expect(page.locator(".passed")).toContainText("1 messages seen, the last 0 are shown");
    await expect(passed).toHaveCount(0);

    const guest = looks("guest");
    await page.getByLabel("User", { exact: true }).fill("guest");
    await guest;
    await expect(page.getByText("tracing on", { exact: true })).toBeVisible();
    await publish(name, "mine");
    await expect(passed).toContainText("mine");
    await page.getByRole("button", { name: "Pause" }).click();
    await publish(name, "held");
    await page.getByRole("button", { name: "Stop tracing" }).click();
    await expect(page.getByText("tracing off", { exact: true })).toBeVisible();
    await expect(passed).toHaveCount(1);
    expect(await api("GET", HOST)).toEqual({ tracing: false });

    await page.goto("about:blank");
    await expect.poll(queues).toEqual(before);
  } finally {
    await api("DELETE", "/leveret/trace/%2F");
    await api("DELETE", `/queues/%2F/${name}`);
  }
});

test("the firehose is for administrators, and those who look are few and told their mistakes", async ({ page }) => {
  const user = fresh("monitor");
  const port = process.env["HTTP_PORT"] ?? "15672";
  const ask = (path: string, who: string, method = "GET", signal?: AbortSignal) =>
    fetch(`http://127.0.0.1:${port}/api/leveret/trace/${path}`, { method, headers: { authorization: `Basic ${Buffer.from(who).toString("base64")}` }, signal: signal ?? null });
  await api("PUT", `/users/${user}`, { password: "one", tags: "monitoring,policymaker" });
  await api("PUT", `/permissions/%2F/${user}`, { configure: ".*", write: ".*", read: ".*" });
  for (const method of ["GET", "PUT", "DELETE"]) expect((await ask("%2F", `${user}:one`, method)).status).toBe(401);
  expect((await ask("no-such-host", "guest:guest")).status).toBe(404);
  expect((await ask("%2F?truncate=50001", "guest:guest")).status).toBe(400);
  expect((await ask(`%2F?key=${"x".repeat(256)}`, "guest:guest")).status).toBe(400);

  const stop = new AbortController();
  const seats = await Promise.all(Array.from({ length: 8 }, () => ask("%2F", "guest:guest", "GET", stop.signal)));
  expect(seats.map(({ status }) => status)).toEqual(Array(8).fill(200));
  const turned = await ask("%2F", "guest:guest");
  expect(turned.status).toBe(503);
  stop.abort();
  await expect.poll(async () => (await api<{ name: string; exclusive: boolean }[]>("GET", "/queues/%2F?columns=name")).filter(({ name }) => name.startsWith("amq.gen-")).length).toBe(0);

  await page.goto("/#/trace");
  await login(page, user, "one");
  await expect(page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Users" })).toHaveCount(0);
  await expect(page.getByRole("link", { name: "Tracing" })).toHaveCount(0);
  await expect(page.getByText("Not administrator user")).toBeVisible();
  await api("DELETE", `/users/${user}`);
});
