// What the tests in a headless Chromium share: a server of files, pages with the problems that they had, axe.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const DEVICES = [["desktop", { width: 1240, height: 900 }], ["phone", { width: 390, height: 844 }]];

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml", ".png": "image/png" };
const axeSource = readFileSync(fileURLToPath(new URL("../node_modules/axe-core/axe.min.js", import.meta.url)), "utf8");
let server, browser;
let failures = 0;

/** Serves the files of a folder and some pages by their paths. The result opens a page of them, and collects its problems: errors in
 * scripts and in the console, requests to other hosts, and what the content security policy refused. */
export async function start(root, pages = {}) {
  server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    try {
      const body = pages[path] ?? readFileSync(`${root}${path === "/" ? "/index.html" : path}`);
      // The module is compiled once for all pages of a context.
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/html", "cache-control": "max-age=600" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `http://127.0.0.1:${server.address().port}/`;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  return async (path, options = {}) => {
    const context = await browser.newContext({ viewport: { width: 1240, height: 900 }, ...options });
    // All waits: a machine with other work takes long.
    context.setDefaultTimeout(240_000);
    const page = await context.newPage();
    const problems = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    page.on("request", (request) => !request.url().startsWith(address) && !/^(data|blob):/.test(request.url()) && problems.push(`a request to ${request.url()}`));
    // A page that is left gives up what it still waits for.
    const isLeft = (request) => request.failure()?.errorText === "net::ERR_ABORTED";
    page.on("requestfailed", (request) => !isLeft(request) && problems.push(`no answer for ${request.url()}`));
    await page.exposeFunction("noteViolation", (text) => problems.push(text));
    await page.addInitScript(() => addEventListener("securitypolicyviolation", (event) => window.noteViolation(`the policy refused ${event.violatedDirective} ${event.blockedURI}`)));
    const go = (to) => page.goto(`${address}${to}`);
    await go(path);
    return { page, problems, go, close: () => context.close() };
  };
}

export async function test(name, run) {
  const began = Date.now();
  try {
    await run();
    console.log(`ok      ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    failures += 1;
    console.log(`FAILED  ${name}: ${error instanceof Error ? error.stack : error}`);
  }
}

/** Requires that a page breaks no rule of axe-core. */
export async function axe(page) {
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  assert.deepEqual(violations.map((found) => `${found.id}: ${found.nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`), []);
}

/** Ends the process with the outcome of all tests. */
export async function finish(success) {
  await browser.close();
  server.close();
  console.log(failures ? `${failures} tests failed` : success);
  process.exit(failures ? 1 : 0);
}
