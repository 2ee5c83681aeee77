// The window that converts a queue: what it says before, what it does, what it says meanwhile, and what the broker refuses.
import type { Page } from "@playwright/test";
import { api, expect, fresh, test, visit } from "./broker";
import { ready } from "./messages";

interface Declared {
  type: string;
  arguments: Record<string, unknown>;
}

const declared = async (name: string) => {
  const { type, arguments: table } = await api<Declared>("GET", `/queues/%2F/${name}`);
  return [type, table];
};

const declare = (name: string, table: Record<string, unknown>, durable = true) => api("PUT", `/queues/%2F/${name}`, { durable, auto_delete: false, arguments: { "x-queue-type": "classic", ...table } });

/** Opens the window of the queue's page. */
async function ask(page: Page) {
  await page.getByRole("button", { name: "Convert", exact: true }).click();
  return page.getByRole("dialog");
}

test("a queue is converted and back with all that it has, once its window has said what changes", async ({ inside: page }) => {
  const name = fresh("convert");
  await declare(name, { "x-max-length": 50, "x-queue-mode": "lazy" });
  for (let at = 0; at < 3; at++) await api("POST", "/exchanges/%2F/amq.default/publish", { routing_key: name, properties: { delivery_mode: 2 }, payload: `m${at}`, payload_encoding: "string" });
  const classic = await declared(name);
  await visit(page, `queues/%2F/${name}`);
  const type = page.locator(".facts > div", { has: page.getByText("Type", { exact: true }) });
  await expect(type).toContainText("classic");

  const dialog = await ask(page);
  await expect(dialog.getByRole("heading", { level: 2 })).toHaveText(`Convert ${name} to a quorum queue`);
  await expect(dialog.getByRole("listitem").filter({ hasText: "its argument x-queue-mode (lazy) goes" })).toBeVisible();
  await expect(dialog.getByRole("listitem").filter({ hasText: "transient messages are kept" })).toBeVisible();
  await expect(dialog.getByText("Lost:")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await expect(dialog).toHaveCount(0);
  expect(await declared(name), "what the window says it does not do").toEqual(classic);

  await (await ask(page)).getByRole("button", { name: "Convert" }).click();
  await expect(page.getByText(`Queue ${name} is a quorum queue`)).toBeVisible();
  await expect(dialog).toHaveCount(0);
  await expect(type).toContainText("quorum");
  expect(await declared(name)).toEqual(["quorum", { "x-queue-type": "quorum", "x-max-length": 50 }]);
  await expect.poll(() => ready(name)).toBe(3);

  await ask(page);
  await expect(dialog.getByRole("heading", { level: 2 })).toHaveText(`Convert ${name} to a classic queue`);
  await expect(dialog.getByRole("listitem").filter({ hasText: "it has the argument x-queue-mode (lazy) again" })).toBeVisible();
  await dialog.getByRole("button", { name: "Convert" }).click();
  await expect(page.getByText(`Queue ${name} is a classic queue`)).toBeVisible();
  await expect(type).toContainText("classic");
  expect(await declared(name)).toEqual(classic);
  await expect.poll(() => ready(name)).toBe(3);
  await api("DELETE", `/queues/%2F/${name}`);
});

test("a queue that would lose something is converted only by a button that says so", async ({ inside: page }) => {
  const name = fresh("sorted");
  await declare(name, { "x-max-priority": 5 });
  await visit(page, `queues/%2F/${name}`);
  const dialog = await ask(page);
  await expect(dialog.locator(".refused")).toHaveText("Lost: x-max-priority. This argument has an effect now that a quorum queue does not have.");
  await expect(dialog.getByRole("button", { name: "Convert", exact: true })).toHaveCount(0);
  await dialog.getByRole("button", { name: "Convert anyway" }).click();
  await expect(page.getByText(`Queue ${name} is a quorum queue`)).toBeVisible();
  expect(await declared(name)).toEqual(["quorum", { "x-queue-type": "quorum" }]);
  await api("DELETE", `/queues/%2F/${name}`);
});

test("what cannot be converted has its reason in the window, and nothing to press", async ({ inside: page }) => {
  const name = fresh("passing");
  await declare(name, {}, false);
  await visit(page, `queues/%2F/${name}`);
  const dialog = await ask(page);
  await expect(dialog.getByRole("alert")).toHaveText(`queue '${name}' in vhost '/' cannot be converted: it is not durable, and no quorum queue is`);
  await expect(dialog.getByRole("button")).toHaveText(["Close"]);
  await dialog.getByRole("button", { name: "Close" }).click();
  await expect(dialog).toHaveCount(0);
  expect((await declared(name))[0]).toBe("classic");
  await api("DELETE", `/queues/%2F/${name}`);
});

test("while copies are made the window shows how far they are, asks without converting again, and closes by itself", async ({ inside: page }) => {
  const name = fresh("moving");
  await declare(name, {});
  // As on a cluster: whoever has the queue says that it is not where it is to be yet.
  const asked: { dry_run?: boolean }[] = [];
  let inPlace = false;
  let gone = false;
  await page.route("**/convert", async (route) => {
    const body = route.request().postDataJSON() as { dry_run?: boolean };
    asked.push(body);
    if (gone) return route.fulfill({ status: 503, json: { error: "service_unavailable", reason: "nobody leads" } });
    const response = await route.fetch();
    const told = (await response.json()) as Record<string, unknown>;
    if (told["in_place"] !== undefined) told["in_place"] = inPlace;
    return route.fulfill({ status: response.status(), json: told });
  });
  // What the broker tells by itself would be of one node.
  await page.route("**/leveret/events*", (route) => route.abort());
  await page.route("**/status", (route) =>
    route.fulfill({
      json: [
        { "Node Name": "rabbit@b", "Raft State": "leader", Membership: "voter" },
        { "Node Name": "rabbit@a", "Raft State": "follower", Membership: "non_voter", transfer: { phase: "messages", percent: 63, bytes: 4096, messages_left: 700 } },
      ],
    }),
  );
  await visit(page, `queues/%2F/${name}`);
  const dialog = await ask(page);
  await dialog.getByRole("button", { name: "Convert" }).click();
  const status = dialog.getByRole("status");
  await expect(status).toContainText("It is a quorum queue now");
  await expect(status).toContainText(/rabbit@a.*copies messages, 63 %, 700 left.*rabbit@b.*leader/s);
  await expect(dialog.getByRole("heading", { level: 2 }), "also when the page knows its new type").toHaveText(`Convert ${name} to a quorum queue`);
  const converting = asked.findIndex((body) => !body.dry_run);
  await expect.poll(() => asked.length).toBeGreaterThan(converting + 2);
  expect(asked.slice(converting + 1).every((body) => body.dry_run)).toBe(true);

  gone = true;
  const before = asked.length;
  await expect.poll(() => asked.length).toBeGreaterThan(before + 1);
  await expect(status, "who cannot be reached for a moment is asked again").toBeVisible();
  [gone, inPlace] = [false, true];
  await expect(page.getByText(`Queue ${name} is a quorum queue`)).toBeVisible();
  await expect(dialog).toHaveCount(0);
  await api("DELETE", `/queues/%2F/${name}`);
});
