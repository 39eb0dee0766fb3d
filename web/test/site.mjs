// The live figures of the built site in a headless Chromium: every one is drawn, and one is looked at closely at two widths and in both
// themes.
// usage: SITE_DIR=DIR node test/site.mjs

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { DEVICES, axe, finish, start, test } from "./harness.mjs";

const root = process.env.SITE_DIR || fileURLToPath(new URL("../../target/site", import.meta.url));
const visit = await start(root);
const FIGURE = "figure[data-hoistway-figure]";
const pages = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".html") && /<figure[^>]* data-hoistway-figure=/.test(readFileSync(`${root}/${path}`, "utf8")))
  .sort();

const drawn = async (figure) => {
  await figure.scrollIntoViewIfNeeded();
  await figure.and(figure.page().locator("[data-state]")).waitFor();
  assert.equal(await figure.getAttribute("data-state"), "done", await figure.innerText());
};

/** The lines of the charts: of each chart, how many lines of a visible colour have an extent on the screen. */
const lines = (figure) => figure.evaluate((node) => [...node.querySelectorAll(".plot-area")].map((area) => {
  const paper = getComputedStyle(node).backgroundColor;
  const shown = [...area.querySelectorAll("svg path")].filter((path) => {
    const { stroke, strokeWidth, display } = getComputedStyle(path);
    const { width, height } = path.getBoundingClientRect();
    return display !== "none" && stroke !== "none" && stroke !== paper && parseFloat(strokeWidth) > 0 && width > 20 && height > 0;
  });
  return shown.length;
}));

for (const [device, viewport] of DEVICES) {
  for (const colorScheme of ["light", "dark"]) {
    await test(`${device}, ${colorScheme}: the figure of cfq runs, draws a line for each process, axe is clean`, async () => {
      const { page, problems, close } = await visit("elevators/cfq.html", { viewport, colorScheme, reducedMotion: "reduce" });
      const figure = page.locator(FIGURE);
      const { job, elevators } = JSON.parse(await figure.getAttribute("data-hoistway-figure"));
      const processes = Number(/numjobs=(\d+)/.exec(job)[1]);
      await drawn(figure);
      const charts = await lines(figure);
      assert.equal(charts.length, elevators.length, "a chart for each elevator");
      assert.ok(charts.every((count) => count >= processes), `${charts} lines for ${processes} processes`);
      for (const elevator of elevators) assert.ok((await figure.innerText()).includes(`${elevator}: throughput`), elevator);
      // The table for readers without scripts stays below the charts.
      const rows = await figure.locator("tbody th").allInnerTexts();
      assert.deepEqual(rows, elevators);
      assert.equal(await figure.locator("table").isVisible(), true);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page is wider than the screen");
      await axe(page);
      assert.deepEqual(problems, []);
      await close();
    });
  }
}

await test(`each of the ${pages.length} pages with a figure draws it`, async () => {
  assert.ok(pages.length >= 18, `only ${pages.length} pages have a figure`);
  const { page, problems, go, close } = await visit("index.html", { reducedMotion: "reduce" });
  for (const path of pages) {
    await go(path);
    for (const figure of await page.locator(FIGURE).all()) {
      await drawn(figure);
      const charts = await lines(figure);
      assert.ok(charts.length > 0 && charts.every((count) => count > 0), `${path}: ${charts} lines`);
    }
    assert.deepEqual(problems, [], path);
  }
  await close();
});

for (const [device, viewport] of DEVICES) {
  await test(`${device}: the playground leads back to the site, axe is clean`, async () => {
    const { page, problems, close } = await visit("playground/index.html", { viewport, reducedMotion: "reduce" });
    await page.waitForSelector("body[data-film=ready]");
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "the page is wider than the screen");
    await axe(page);
    await page.getByRole("link", { name: "Elevators" }).click();
    await page.waitForURL(/\/elevators\.html$/);
    assert.deepEqual(problems, []);
    await close();
  });
}

for (const [device, viewport] of DEVICES) {
  await test(`${device}: the charts of a figure have one legend, which hides a process in all of them`, async () => {
    const { page, problems, close } = await visit("elevators/cfq.html", { viewport, reducedMotion: "reduce" });
    const figure = page.locator(FIGURE);
    const { elevators } = JSON.parse(await figure.getAttribute("data-hoistway-figure"));
    await drawn(figure);
    const legend = figure.locator(".legend:visible");
    assert.ok(elevators.length > 1 && await legend.count() === 1, `${await legend.count()} legends`);
    const before = await lines(figure);
    const first = legend.getByRole("button").first();
    await first.click();
    assert.deepEqual(await lines(figure), before.map((count) => count - 1));
    assert.equal(await first.getAttribute("aria-pressed"), "false");
    await first.click();
    assert.deepEqual(await lines(figure), before);
    await legend.getByRole("button").last().dblclick();
    assert.equal(await legend.locator("[aria-pressed=true]").count(), 1, "a double click shows one process alone");
    assert.deepEqual(problems, []);
    await close();
  });
}

await test("a figure opens in the playground", async () => {
  const { page, close } = await visit("elevators/cfq.html", { reducedMotion: "reduce" });
  const figure = page.locator(FIGURE);
  await drawn(figure);
  await figure.getByRole("link").click();
  await page.waitForSelector("body[data-state=done]");
  assert.match(await page.locator("#title").innerText(), /^cfq, /);
  await close();
});

await test("a reader without scripts has the table", async () => {
  const { page, close } = await visit("elevators/cfq.html", { javaScriptEnabled: false });
  assert.equal(await page.locator(`${FIGURE} table`).isVisible(), true);
  assert.equal(await page.locator(`${FIGURE} svg`).count(), 0);
  await close();
});

await finish("all tests of the site's figures passed");
