import { defineConfig } from "@playwright/test";

// Debian's Chromium drives the pages of a broker that runs: HTTP_PORT says where.
const port = process.env["HTTP_PORT"] ?? "15672";

export default defineConfig({
  testDir: "tests",
  testIgnore: [...(process.env["SHOTS"] ? [] : ["shots.spec.ts"]), ...(process.env["SCALE"] ? [] : ["scale.spec.ts"])],
  workers: 1,
  timeout: 30_000,
  expect: { timeout: 8_000 },
  reporter: "./tests/reporter.ts",
  outputDir: "test-results",
  use: {
    baseURL: `http://127.0.0.1:${port}`,
    browserName: "chromium",
    viewport: { width: 1280, height: 800 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    },
  },
});
