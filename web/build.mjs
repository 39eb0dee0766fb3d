// Bundles the page, the worker and the live figures, or the unit tests: node build.mjs [--tests] DIRECTORY

import { build } from "esbuild";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const tests = process.argv.includes("--tests");
const directory = process.argv.slice(2).find((argument) => !argument.startsWith("--"));
if (directory === undefined) throw new Error("usage: node build.mjs [--tests] DIRECTORY");
const outdir = resolve(directory);
mkdirSync(outdir, { recursive: true });
const entries = tests
  ? readdirSync(`${root}web/test`).filter((name) => name.endsWith(".test.ts")).map((name) => `${root}web/test/${name}`)
  : ["app", "worker", "live-figure"].map((name) => `${root}web/src/${name}.ts`);
await build({
  entryPoints: entries,
  outdir,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: !tests,
  platform: tests ? "node" : "browser",
  outExtension: tests ? { ".js": ".mjs" } : {},
  legalComments: "none",
});
if (!tests) {
  copyFileSync(`${root}web/src/index.html`, `${outdir}/index.html`);
  copyFileSync(`${root}crates/report/templates/theme.js`, `${outdir}/theme.js`);
}
