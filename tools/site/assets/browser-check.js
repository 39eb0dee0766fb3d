// Opens typical pages in frames of two widths and both themes, and checks: no sideways scrolling, no element outside of the
// window, code within its cell, diagrams as wide as the text, the theme switch, names of controls, contrast of text, the search
// by keyboard, and the rules of axe-core if it is there.
(async function () {
  const PAGES = ["index.html", "first-comparison.html", "elevators/cfq.html", "commands/hoistway-serve.html", "limitations.html", "job-files.html", "python/api.html", "architecture.html"];
  const failures = [];
  let checks = 0;
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const expect = (holds, text) => { checks += 1; if (!holds) failures.push(text); };

  async function open(address, width) {
    const frame = document.createElement("iframe");
    frame.style.cssText = `width:${width}px;height:844px;border:0`;
    frame.src = address;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    await pause(100);
    return frame;
  }

  const channels = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  function background(view, node) {
    for (let at = node; at; at = at.parentElement) {
      const colour = channels(view.getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  }
  function contrasts(page, view, says) {
    for (const node of page.querySelectorAll("h1, h2, p, li, td, th, a, summary, small, code, pre span, footer")) {
      if (!node.checkVisibility() || !node.textContent.trim()) continue;
      const ink = channels(view.getComputedStyle(node).color);
      const [a, b] = [luminance(ink), luminance(background(view, node))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      if (ratio < 4.5) { says(`"${node.textContent.trim().slice(0, 30)}" has a contrast of ${ratio.toFixed(2)}`); return; }
    }
    checks += 1;
  }

  async function axe(frame, says) {
    const { contentDocument: page, contentWindow: view } = frame;
    const script = page.createElement("script");
    script.src = "/axe.min.js";
    const loaded = new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; });
    page.head.append(script);
    await loaded;
    const { violations } = await view.axe.run(page, { resultTypes: ["violations"] });
    checks += 1;
    for (const { id, nodes } of violations) says(`axe: ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`);
  }

  async function inspect(address, width, theme) {
    const frame = await open(`/${address}?theme=${theme}`, width);
    const { contentDocument: page, contentWindow: view } = frame;
    const says = (text) => failures.push(`${address}, ${width} px, ${theme}: ${text}`);
    const wide = page.documentElement.scrollWidth;
    expect(wide <= width, `${address}, ${width} px: the page is ${wide} px wide`);
    expect(view.getComputedStyle(page.documentElement).colorScheme === theme, `${address}: the theme ${theme} is not set`);
    for (const node of page.querySelectorAll("button, select, input, summary")) {
      if (!node.checkVisibility()) continue;
      const { height } = node.getBoundingClientRect();
      expect(height >= 23.9, `${address}: the target "${node.textContent.trim() || node.id}" is ${height} px high`);
    }
    for (const code of page.querySelectorAll("td code")) {
      const over = code.getBoundingClientRect().right - code.closest("td").getBoundingClientRect().right;
      expect(over < 1, `${address}, ${width} px: "${code.textContent.slice(0, 40)}" is ${over} px beyond its cell`);
    }
    if (width > 1000) for (const code of page.querySelectorAll(".wide pre")) {
      expect(code.scrollWidth <= code.clientWidth, `${address}: "${code.textContent.slice(0, 40)}" is ${code.scrollWidth} px wide`);
    }
    contrasts(page, view, says);
    if (withAxe) await axe(frame, says);
    frame.remove();
  }

  async function search() {
    const frame = await open("/index.html", 1240);
    const { contentDocument: page, contentWindow: view } = frame;
    const key = (target, name) => target.dispatchEvent(new view.KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
    key(page.body, "/");
    const field = page.getElementById("site-search");
    expect(page.activeElement === field, "the key / does not lead to the search");
    field.value = "slice_idl";
    field.dispatchEvent(new view.Event("focus"));
    field.dispatchEvent(new view.Event("input"));
    const items = () => [...page.querySelectorAll("#site-results [data-address]")];
    for (let turn = 0; turn < 100 && items().length === 0; turn += 1) await pause(50);
    expect(items().some((item) => /elevators\/cfq/.test(item.dataset.address)), "the search for slice_idl does not find CFQ");
    field.value = "nbd protocol";
    field.dispatchEvent(new view.Event("input"));
    expect(/serve-protocol/.test(items()[0]?.dataset.address), `the first page for "nbd protocol" is ${items()[0]?.dataset.address}`);
    for (const [text, address] of [["elevator", /^elevators\.html/], ["starvation", /glossary/]]) {
      field.value = text;
      field.dispatchEvent(new view.Event("input"));
      const found = items().slice(0, 3).map((item) => item.dataset.address);
      expect(found.some((one) => address.test(one)), `the search for "${text}" finds ${found}`);
    }
    for (const [text, address] of [["p99", "glossary.html#p50-p99"], ["none", "glossary.html#none-noop"]]) {
      field.value = text;
      field.dispatchEvent(new view.Event("input"));
      expect(items()[0]?.dataset.address.endsWith(address), `the first result for "${text}" is ${items()[0]?.dataset.address}`);
    }
    field.value = "nbd protocol";
    field.dispatchEvent(new view.Event("input"));
    key(field, "ArrowDown");
    expect(items()[0]?.getAttribute("aria-selected") === "true", "the key ArrowDown does not select the first page");
    const left = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    page.getElementById("site-search-form").requestSubmit();
    await left;
    expect(/serve-protocol/.test(frame.contentWindow.location.pathname), "Enter does not open the selected page");
    frame.remove();
  }

  async function themes() {
    const frame = await open("/index.html", 1240);
    const { contentDocument: page, contentWindow: view } = frame;
    const paper = () => view.getComputedStyle(page.body).backgroundColor;
    const choice = page.getElementById("theme");
    const seen = new Set();
    for (const theme of ["light", "dark"]) {
      choice.value = theme;
      choice.dispatchEvent(new view.Event("change"));
      seen.add(paper());
    }
    expect(seen.size === 2, "the theme switch changes no colour");
    frame.remove();
  }

  async function menu() {
    const frame = await open("/limitations.html", 390);
    const page = frame.contentDocument;
    const [button, list] = [page.getElementById("site-menu"), page.getElementById("site-navigation")];
    expect(button.checkVisibility() && !list.checkVisibility(), "the menu is not closed on a phone");
    button.click();
    expect(list.checkVisibility() && button.getAttribute("aria-expanded") === "true", "the menu does not open on a phone");
    expect(page.documentElement.scrollWidth <= 390, "the open menu is too wide");
    frame.remove();
  }

  async function figures() {
    const frame = await open("/elevators/noop.html", 1240);
    const page = frame.contentDocument;
    const figure = page.querySelector("figure[data-hoistway-figure]");
    expect(figure && figure.querySelector("table"), "an elevator's page has no figure with a table");
    frame.remove();
  }

  addEventListener("load", async () => {
    try {
      for (const address of PAGES) for (const [width, theme] of [[390, "light"], [1240, "dark"]]) await inspect(address, width, theme);
      await search();
      await themes();
      await menu();
      await figures();
    } catch (error) { failures.push(String(error?.stack || error)); }
    const verdict = document.createElement("pre");
    verdict.id = "browser-check";
    verdict.textContent = failures.length ? `${failures.length} failures\n${failures.slice(0, 40).join("\n")}` : `PASSED ${checks} checks of ${PAGES.length} pages in the browser${withAxe ? ", with axe-core" : ""}`;
    document.body.replaceChildren(verdict);
  });
})();
