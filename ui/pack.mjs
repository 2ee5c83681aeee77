// Takes the bundle that Vite made, holds it against the budget, and lays it into dist/ in the forms that browsers accept:
// as it is, gzip, brotli. The broker's build embeds dist/.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

/** What all pages together may weigh when they go over the wire with gzip, in bytes. */
const BUDGET = 150 * 1024;

const here = dirname(fileURLToPath(import.meta.url));
const [from, to] = [join(here, "bundle"), join(here, "dist")];

for (const name of readdirSync(to)) {
  if (name !== ".gitignore") rmSync(join(to, name), { recursive: true });
}
let total = 0;
for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const source = join(entry.parentPath, entry.name);
  const target = join(to, source.slice(from.length + 1));
  const bytes = readFileSync(source);
  mkdirSync(dirname(target), { recursive: true });
  const gzip = gzipSync(bytes, { level: 9 });
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  total += gzip.length;
  writeFileSync(target, bytes);
  writeFileSync(`${target}.gz`, gzip);
  writeFileSync(`${target}.br`, brotli);
}
console.log(`web UI: ${(total / 1024).toFixed(1)} KiB compressed, of ${BUDGET / 1024} KiB allowed`);
if (total > BUDGET) {
  console.error("web UI: over its budget");
  process.exit(1);
}
