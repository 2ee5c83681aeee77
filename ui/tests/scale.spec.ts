// What pages take beside 100,000 queues and 5,000 connections (crowd.mjs makes them): SCALE=pid of the broker. No test otherwise.
import { readFileSync } from "node:fs";
import { expect, login, test } from "./broker";
import type { Page } from "@playwright/test";

const pid = process.env["SCALE"];
/** How long the broker is watched, in seconds. */
const WATCHED = Number(process.env["WATCHED"] ?? "20");
/** A clock tick of the system, in milliseconds. */
const TICK = 10;

const PAGES = ["", "queues", "queues?sort=message_stats.publish_details.rate&reverse=true", "queues?sort=latency.publish_to_deliver.p99_ms&reverse=true", "queues?name=99&sort=name", "queues/%2F/scale.050000", "connections", "connections?sort=recv_oct_details.rate&reverse=true", "channels", "exchanges", "node", "logs", "policies"];
const WATCHING = ["", "queues?sort=message_stats.publish_details.rate&reverse=true", "connections"];
const LONGEST_MS = 1000;

/** How long the broker computed so far, in milliseconds. */
function computed(): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK;
}

/** The part of one processor that the broker takes, in per cent. */
async function share(page: Page): Promise<number> {
  const [from, since] = [computed(), Date.now()];
  await page.waitForTimeout(WATCHED * 1000);
  return ((computed() - from) / (Date.now() - since)) * 100;
}

async function open(page: Page, address: string): Promise<number> {
  await page.goto("about:blank");
  const since = Date.now();
  await page.goto(`/#/${address}`);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  await expect(page.locator("main [aria-busy]")).toHaveCount(0);
  if (/^(queues|connections|channels|exchanges)(\?|$)/.test(address)) await expect(page.locator("tbody tr").first()).toBeVisible();
  return Date.now() - since;
}

test("pages open within a second beside 100,000 queues and 5,000 connections, and three of them take little of the broker", async ({ browser, page }) => {
  test.skip(!pid, "nobody named the broker");
  test.setTimeout(300_000);
  await page.goto("/");
  await login(page);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  const slow: string[] = [];
  for (const address of PAGES) {
    const times = [await open(page, address), await open(page, address), await open(page, address)].sort((a, b) => a - b);
    console.log(`ok   ${String(times[1]).padStart(5)} ms  (${times[0]} to ${times[2]})  /#/${address}`);
    if (times[1]! > LONGEST_MS) slow.push(`${address}: ${times[1]} ms`);
  }
  await page.goto("about:blank");
  const alone = await share(page);
  const watching = await Promise.all(
    WATCHING.map(async (address) => {
      const own = await (await browser.newContext()).newPage();
      await own.goto(`/#/${address}`);
      await login(own);
      await expect(own.getByRole("heading", { level: 1 })).toBeVisible();
      return own;
    }),
  );
  await page.waitForTimeout(2000);
  const watched = await share(page);
  console.log(`ok   the broker takes ${alone.toFixed(2)} % of a processor by itself, ${watched.toFixed(2)} % with three pages open: ${(watched - alone).toFixed(2)} % more`);
  await Promise.all(watching.map((own) => own.context().close()));
  expect(slow).toEqual([]);
  expect(watched - alone).toBeLessThan(5);
});
