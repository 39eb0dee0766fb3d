// Draws the dashboard with Grafana's components: a page and pictures of it. Fails if a panel is not drawn well.
// usage: node render.mjs DASHBOARD.json ANSWERS.json DIRECTORY

import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { finish, start, test } from "../test/harness.mjs";

const [dashboard, answers, directory] = process.argv.slice(2);
const source = (name) => fileURLToPath(new URL(`src/${name}`, import.meta.url));

// Grafana's program serves its fonts; the page contains them.
const fonts = {
  name: "fonts",
  setup: ({ onLoad }) => onLoad({ filter: /GlobalStyles[/\\]fonts\.mjs$/ }, () => ({ contents: "export const getFontStyles = () => ({});" })),
};
const { outputFiles } = await build({
  entryPoints: [source("main.tsx")],
  outdir: directory,
  write: false,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"', global: "globalThis" },
  loader: { ".svg": "text", ".woff2": "dataurl", ".woff": "empty" },
  plugins: [fonts],
  // The editor of texts, which no panel loads.
  external: ["monaco-editor"],
  logLevel: "error",
});
const built = (suffix) => outputFiles.find((file) => file.path.endsWith(suffix)).text;
const parts = {
  STYLE: built(".css"),
  SCRIPT: built(".js").replaceAll("</script", "<\\/script"),
  DASHBOARD: readFileSync(dashboard, "utf8").replaceAll("<", "\\u003c"),
  ANSWERS: readFileSync(answers, "utf8").replaceAll("<", "\\u003c"),
};
const page = readFileSync(source("page.html"), "utf8").replace(/\/\*([A-Z]+)\*\//g, (_, name) => parts[name]);
writeFileSync(`${directory}/dashboard.html`, page);

/** The part for documents: what is above the fourth row. */
async function top(page) {
  const height = await page.evaluate(() => document.querySelectorAll(".heading")[3].getBoundingClientRect().top + scrollY);
  return { x: 0, y: 0, width: page.viewportSize().width, height };
}

const visit = await start(directory);
for (const [name, theme, width] of [["light", "light", 1400], ["dark", "dark", 1400], ["phone", "light", 400]]) {
  await test(`dashboard-${name}.png`, async () => {
    const { page, problems, close } = await visit(`dashboard.html?theme=${theme}`, { viewport: { width, height: 900 } });
    await page.waitForFunction(() => window.check && document.querySelector("[data-panel]"), null, { timeout: 30_000 })
      .catch(() => { throw new Error(`the page shows no panels: ${problems.join("\n")}`); });
    // Plots are painted, and icons appear, in the frames after.
    await page.waitForTimeout(500);
    await page.waitForFunction(() => !window.check().problems.length, null, { timeout: 10_000, polling: 500 }).catch(() => undefined);
    const found = await page.evaluate(() => window.check());
    await page.screenshot({ path: `${directory}/dashboard-${name}.png`, fullPage: true });
    if (name === "light") await page.screenshot({ path: `${directory}/dashboard-top.png`, fullPage: true, clip: await top(page) });
    await close();
    console.log(`        ${found.drawn} panels are drawn; without a value: ${found.empty.join(", ") || "none"}`);
    const all = [...found.problems, ...problems];
    if (all.length) throw new Error(`\n${all.join("\n")}`);
  });
}
await finish(`wrote ${directory}/dashboard.html and the pictures`);
