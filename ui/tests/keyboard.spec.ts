// One whole task with no mouse: a queue is made, a message published, looked at and moved. Each element is reached by the key that people use.
import { api, enc, expect, fresh, test, visit } from "./broker";
import { acting, declare, looking, ready } from "./messages";
import type { Locator, Page } from "@playwright/test";

/** So many times Tab is pressed at the most on the way to an element. */
const STEPS = 120;

/** Presses Tab until an element has the focus, as somebody does who sees where it is. */
async function reach(page: Page, element: Locator): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    if (await element.evaluate((it) => it === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${element} is out of reach of the keyboard`);
}

async function write(page: Page, element: Locator, text: string): Promise<void> {
  await reach(page, element);
  await page.keyboard.type(text);
}

async function press(page: Page, element: Locator): Promise<void> {
  await reach(page, element);
  const outline = await element.evaluate((it) => getComputedStyle(it).outlineStyle);
  expect(outline, "what has the focus is seen").not.toBe("none");
  await page.keyboard.press("Enter");
}

test("a queue is made, published to, looked at and emptied into another one by keyboard alone", async ({ inside: page }) => {
  test.setTimeout(90_000);
  const name = fresh("keys");
  await declare(`${name}.other`);
  await page.reload();
  await expect(page.getByRole("navigation", { name: "Pages" })).toBeVisible();
  await press(page, page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Queues", exact: true }));
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  await expect(page.locator("main")).toBeFocused();

  await press(page, page.getByRole("button", { name: "New queue" }));
  const form = page.getByRole("dialog");
  await write(page, form.getByLabel("Name"), name);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await expect(page.locator("main")).toBeFocused();

  await write(page, page.getByLabel("Payload", { exact: true }), '{"by": "keyboard"}');
  await press(page, page.getByRole("button", { name: "Publish" }));
  await expect(page.getByText("The message is in the queue")).toBeVisible();

  await visit(page, "queues");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Queues");
  await write(page, page.getByRole("searchbox"), name);
  await expect(page.locator("tbody tr")).toHaveCount(2);
  await press(page, page.getByRole("link", { name, exact: true }));
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(`Queue ${name}`);
  await press(page, looking(page).getByRole("button", { name: "Browse", exact: true }));
  const found = looking(page).locator(".found > li");
  await expect(found).toHaveCount(1);
  await press(page, found.locator("summary"));
  await expect(found.locator("pre")).toContainText('"by": "keyboard"');

  await write(page, acting(page).getByRole("textbox", { name: "Queue" }), `${name}.other`);
  await press(page, acting(page).getByRole("button", { name: "Move" }));
  await expect(page.getByText("1 message was moved")).toBeVisible();
  await expect.poll(async () => [await ready(name), await ready(`${name}.other`)]).toEqual([0, 1]);
  for (const queue of [name, `${name}.other`]) await api("DELETE", `/queues/%2F/${enc(queue)}`);
});
