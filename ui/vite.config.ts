import { defineConfig } from "vite";

// The bundle goes to a folder of its own; pack.mjs compresses it, holds it against the budget and lays it where the
// broker's build looks for it. In development the API of a running broker stands behind the pages: LEVERET_API=http://host:port.
export default defineConfig({
  // Addresses are relative: `management.path_prefix` may stand before all of them.
  base: "./",
  build: {
    outDir: "bundle",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: { input: ["index.html", "js/oidc-oauth/login-callback.html"] },
  },
  server: { proxy: { "/api": process.env["LEVERET_API"] ?? "http://127.0.0.1:15672" } },
});
