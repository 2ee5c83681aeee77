// Single sign-on against a small provider: the code flow with PKCE, its end, and what a provider's own page sends.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, expect, type Page } from "@playwright/test";
import { Provider } from "./provider";

const binary = process.env["LEVERET_BINARY"];
test.skip(!binary, "brokers of its own need the binary");

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

/** A broker that takes the provider's tokens. */
class Broker {
  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
    readonly address: string,
  ) {}

  static async start(provider: Provider, more: Record<string, string> = {}): Promise<Broker> {
    const [folder, amqp, http] = [mkdtempSync(join(tmpdir(), "signon-")), await freePort(), await freePort()];
    const settings = {
      "auth_backends.1": "oauth2",
      "auth_backends.2": "internal",
      "auth_oauth2.resource_server_id": "rabbitmq",
      "auth_oauth2.issuer": provider.address,
      "management.oauth_enabled": "true",
      "management.oauth_client_id": "pages",
      "management.tcp.ip": "127.0.0.1",
      "management.tcp.port": `${http}`,
      "listeners.tcp.default": `127.0.0.1:${amqp}`,
      "prometheus.listener": "none",
      data_dir: join(folder, "data"),
      ...more,
    };
    const file = join(folder, "rabbitmq.conf");
    writeFileSync(file, Object.entries(settings).map(([key, value]) => `${key} = ${value}\n`).join(""));
    const child = spawn(binary ?? "", ["server", "--config", file], { stdio: "ignore" });
    const broker = new Broker(child, folder, `http://127.0.0.1:${http}`);
    await expect.poll(() => fetch(`${broker.address}/api/auth`).then(({ ok }) => ok, () => false), { timeout: 20_000 }).toBe(true);
    return broker;
  }

  async stop(): Promise<void> {
    this.process.kill("SIGKILL");
    if (this.process.exitCode === null) await once(this.process, "exit");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Runs with a provider and a broker of its own; whatever the page complains about fails the test. */
async function guarded(page: Page, settings: (provider: Provider) => Record<string, string>, look: (broker: Broker, provider: Provider) => Promise<void>): Promise<void> {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`thrown: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && !message.text().startsWith("Failed to load resource") && complaints.push(message.text()));
  const provider = await new Provider().open();
  try {
    const broker = await Broker.start(provider, settings(provider));
    try {
      await look(broker, provider);
    } finally {
      await broker.stop();
    }
  } finally {
    provider.close();
  }
  expect(complaints).toEqual([]);
}

const inside = (page: Page) => expect(page.getByRole("navigation", { name: "Pages" })).toBeAttached();

test("a log-in at the provider leads back to the page where it began, lasts over a reload and ends at the provider", async ({ page }) => {
  await guarded(page, () => ({}), async (broker, provider) => {
    await page.goto(`${broker.address}/#/exchanges`);
    await expect(page.getByLabel("Password")).toHaveCount(0);
    await page.getByRole("button", { name: "Log in with single sign-on" }).click();
    await inside(page);
    await expect(page).toHaveURL(`${broker.address}/#/exchanges`);
    await expect(page.getByRole("link", { name: "amq.topic" }).first()).toBeVisible();
    await expect(page.locator("summary", { hasText: "jane" })).toBeVisible();
    await page.reload();
    await inside(page);
    await page.locator("summary", { hasText: "jane" }).click();
    await page.getByRole("button", { name: "Log out" }).click();
    await expect(page.getByRole("button", { name: "Log in with single sign-on" })).toBeVisible();
    expect(provider.asked).toContain("GET /logout");
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage, ...localStorage }))).not.toContain("eyJ");
  });
});

test("a form stands beside the button where passwords are allowed, and each resource server has its own button", async ({ page }) => {
  const more = {
    "management.oauth_disable_basic_auth": "false",
    "management.oauth_resource_servers.rabbitmq.label": "Production",
    "auth_oauth2.resource_servers.dev.id": "dev",
  };
  await guarded(page, () => more, async (broker) => {
    await page.goto(broker.address);
    await expect(page.getByRole("button", { name: "Log in with dev" })).toBeVisible();
    await expect(page.getByRole("button", { name: "Log in with Production" })).toBeVisible();
    await page.getByLabel("User").fill("guest");
    await page.getByLabel("Password").fill("guest");
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    await inside(page);
  });
});

test("a token without a tag is refused with the reason, and so is an answer that was not asked for", async ({ page }) => {
  await guarded(page, () => ({}), async (broker, provider) => {
    provider.claims = { scope: "rabbitmq.read:*/*" };
    await page.goto(broker.address);
    await page.getByRole("button", { name: "Log in with single sign-on" }).click();
    await expect(page.getByRole("alert")).toContainText("needs one of the tags");
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(`${broker.address}/js/oidc-oauth/login-callback.html?code=MA&state=forged`);
    await expect(page.getByRole("alert")).toContainText("not begun in this tab");
  });
});

test("a provider's own page logs in: at once where that was asked for here, and otherwise once somebody agrees", async ({ page }) => {
  const elsewhere = (provider: Provider) => ({ "management.oauth_initiated_logon_type": "idp_initiated", "management.oauth_provider_url": `${provider.address}/portal` });
  await guarded(page, elsewhere, async (broker, provider) => {
    const portal = `${provider.address}/portal?${new URLSearchParams({ to: `${broker.address}/login` })}`;
    await page.goto(portal);
    await page.getByRole("button", { name: "Open" }).click();
    await page.getByRole("button", { name: "Continue" }).click();
    await inside(page);
    expect(page.url()).not.toContain("eyJ");
    await page.locator("summary", { hasText: "jane" }).click();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByRole("button", { name: "Log in with single sign-on" }).click();
    await expect(page).toHaveURL(`${provider.address}/portal`);
    await page.goto(portal);
    await page.getByRole("button", { name: "Open" }).click();
    await inside(page);
  });
});
