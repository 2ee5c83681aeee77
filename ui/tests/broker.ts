// What the tests of pages share: the broker's API to prepare and look at objects, and a page that is logged in.
import { test as base, expect, type Page } from "@playwright/test";

const port = process.env["HTTP_PORT"] ?? "15672";
const guest = `Basic ${Buffer.from("guest:guest").toString("base64")}`;

/** Asks the API as guest; answers with its body. */
export async function api<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}/api${path}`, {
    method,
    headers: { authorization: guest, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok && response.status !== 404) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

export const enc = encodeURIComponent;

/** Logs in by the form. */
export async function login(page: Page, name = "guest", password = "guest"): Promise<void> {
  await page.getByLabel("User").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Log in" }).click();
}

/** A page behind the log-in that fails its test if it logs an error or breaks its own policy. */
export const test = base.extend<{ inside: Page }>({
  inside: async ({ page }, use) => {
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
    page.on("console", (message) => {
      // The browser itself notes each answer that is an error; what the page makes of those the tests look at.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
    });
    await page.goto("/");
    await login(page);
    await expect(page.getByRole("navigation", { name: "Pages" })).toBeAttached();
    await use(page);
    expect(complaints).toEqual([]);
  },
});

export { expect };

/** Goes to a page by its address, as somebody does who has a bookmark. */
export async function visit(page: Page, address: string): Promise<void> {
  await page.goto(`/#/${address}`);
}

/** A name that only this run uses. */
export const fresh = (what: string): string => `ui.${what}.${Date.now().toString(36)}`;
