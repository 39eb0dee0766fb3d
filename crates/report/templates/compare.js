(function () {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const root = document.documentElement;
  const spec = JSON.parse(byId("hoistway-charts").textContent);
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  const palettes = Object.fromEntries(spec.legends.map((l) => [l.id, l.entries.map((e) => e.colour)]));
  const hidden = Object.fromEntries(spec.legends.map((l) => [l.id, new Set()]));
  const drawn = [];
  const font = getComputedStyle(document.body).fontFamily;

  // ---- Theme: the style sheet owns the colours, charts ask it for theirs.

  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const styled = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = () => root.dataset.theme || (darkness.matches ? "dark" : "light");
  const axesOf = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));

  function colours(figure, which) {
    return figure.keys.map((key) => palettes[figure.legend][key][which]);
  }

  function themedLayout(layout) {
    const [ink, quiet, grid, rule, paper] = ["--ink", "--quiet", "--grid", "--rule", "--chart"].map(styled);
    const change = {
      paper_bgcolor: paper, plot_bgcolor: paper, "font.color": ink,
      "hoverlabel.bgcolor": paper, "hoverlabel.bordercolor": rule, "hoverlabel.font.color": ink, "hoverlabel.font.family": font,
      "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": quiet, "modebar.activecolor": ink,
    };
    for (const axis of axesOf(layout)) {
      change[`${axis}.gridcolor`] = grid;
      change[`${axis}.linecolor`] = rule;
      change[`${axis}.tickfont.color`] = quiet;
      change[`${axis}.title.font.color`] = quiet;
    }
    return change;
  }

  // Black or white, whichever stands out more: their contrast with a colour is equal at a luminance of 0.179.
  function textOn(colour) {
    const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
    const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
  }

  function restyled(figure, which) {
    const wanted = colours(figure, which);
    if (figure.data[0].type === "bar") return { "marker.color": wanted, "insidetextfont.color": wanted.map(textOn) };
    return { "line.color": wanted, "marker.color": wanted };
  }

  function applyTheme() {
    const dark = theme() === "dark";
    byId("theme").setAttribute("aria-pressed", String(dark));
    return Promise.all(drawn.map((f) => Plotly.update(f.node, restyled(f, theme()), themedLayout(f.layout))));
  }

  byId("theme").addEventListener("click", () => {
    root.dataset.theme = theme() === "dark" ? "light" : "dark";
    applyTheme();
  });
  darkness.addEventListener("change", () => applyTheme());

  // ---- Drawing: one chart after the other, so that the page answers meanwhile.

  const pause = () => new Promise((resolve) => setTimeout(resolve));

  function set(object, path, value) {
    const names = path.split(".");
    const last = names.pop();
    names.reduce((at, name) => (at[name] = at[name] || {}), object)[last] = value;
  }

  function hasWebGl() {
    const canvas = document.createElement("canvas");
    const context = canvas.getContext("webgl");
    const ending = context && context.getExtension("WEBGL_lose_context");
    if (ending) ending.loseContext();
    return Boolean(context);
  }

  // Without WebGL a dot is an element of the page, of which a browser bears some twenty thousand.
  function withoutWebGl(figures) {
    const MOST = 20000;
    let shown = 0;
    let given = 0;
    const gl = figures.filter((f) => f.data.some((t) => t.type === "scattergl"));
    const points = gl.reduce((n, f) => n + f.data.reduce((m, t) => m + t.x.length, 0), 0);
    const step = Math.max(1, Math.ceil(points / MOST));
    for (const trace of gl.flatMap((f) => f.data)) {
      trace.type = "scatter";
      given += trace.x.length;
      if (step > 1) {
        trace.x = trace.x.filter((_, i) => i % step === 0);
        trace.y = trace.y.filter((_, i) => i % step === 0);
      }
      shown += trace.x.length;
    }
    if (!given) return;
    byId("no-webgl").hidden = false;
    byId("no-webgl").textContent = "This browser offers no WebGL: head positions are drawn without it" +
      (shown < given ? `, ${shown.toLocaleString("en")} of ${given.toLocaleString("en")} dots.` : ".");
  }

  // A span's ends say when it began and how long it lasted.
  function labelSpans(trace) {
    trace.text = trace.x.map((_, i) => {
      const start = i - (i % 3);
      if (i === start + 2) return "";
      return `${((trace.x[start + 1] - trace.x[start]) * 1000).toFixed(2)} ms from ${trace.x[start].toFixed(4)} s`;
    });
  }

  async function draw(figure) {
    const { layout } = figure;
    const wanted = colours(figure, theme());
    figure.node = byId(figure.id);
    if (figure.spans) figure.data.forEach(labelSpans);
    figure.data.forEach((trace, i) => {
      if (trace.line) trace.line.color = wanted[i];
      if (trace.marker) trace.marker.color = wanted[i];
      if (trace.type === "bar") trace.insidetextfont = { color: textOn(wanted[i]) };
      trace.visible = !hidden[figure.legend].has(figure.keys[i]);
    });
    layout.font = { family: font, size: 12 };
    for (const [path, value] of Object.entries(themedLayout(layout))) set(layout, path, value);
    for (const axis of axesOf(layout)) set(layout, `${axis}.title.standoff`, 6);
    // On a touch screen a finger that scrolls the page must not zoom the chart under it, and the chart's buttons always show.
    if (matchMedia("(hover: none)").matches) {
      layout.dragmode = false;
      layout.margin.t += 22;
    }
    figure.home = Object.fromEntries(axesOf(layout).map((a) => [a, layout[a].range && layout[a].range.slice()]));
    await Plotly.newPlot(figure.node, figure.data, layout, spec.config);
    drawn.push(figure);
    figure.node.on("plotly_relayout", (event) => followTime(figure, event));
    figure.node.addEventListener("keydown", (event) => onKey(figure, event));
  }

  // ---- Time: what one chart of time shows, all show.

  let following = 0;

  function timeRange(figure, event) {
    for (const [name, value] of Object.entries(event)) {
      if (/^xaxis\d*\.range$/.test(name)) return value.slice();
      if (/^xaxis\d*\.range\[0\]$/.test(name)) return [value, event[name.replace("[0]", "[1]")]];
      if (/^xaxis\d*\.autorange$/.test(name) && value) return figure.home.xaxis.slice();
    }
    return null;
  }

  async function followTime(figure, event) {
    const range = figure.time && !figure.led && timeRange(figure, event);
    if (!range) return;
    const turn = ++following;
    for (const other of drawn.filter((f) => f.time && f !== figure)) {
      await pause();
      if (turn !== following) return;
      await lead(other, range);
    }
  }

  async function lead(figure, range) {
    const axes = axesOf(figure.layout).filter((a) => a.startsWith("x"));
    figure.led = true;
    await Plotly.relayout(figure.node, Object.fromEntries(axes.map((a) => [`${a}.range`, range.slice()])));
    figure.led = false;
  }

  function onKey(figure, event) {
    if (event.target !== figure.node || event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = figure.node._fullLayout.xaxis.range;
    const width = to - from;
    const wanted = {
      "+": [from + width * 0.2, to - width * 0.2], "=": [from + width * 0.2, to - width * 0.2],
      "-": [from - width / 3, to + width / 3],
      ArrowLeft: [from - width * 0.2, to - width * 0.2], ArrowRight: [from + width * 0.2, to + width * 0.2],
      0: figure.home.xaxis, Home: figure.home.xaxis,
    }[event.key];
    if (!wanted) return;
    event.preventDefault();
    Plotly.relayout(figure.node, { "xaxis.range": wanted.slice() });
  }

  // ---- Legends: one state for all charts that share a legend.

  function showLegend(id) {
    for (const button of all(`[data-legend="${id}"] button[data-key]`)) {
      button.setAttribute("aria-pressed", String(!hidden[id].has(Number(button.dataset.key))));
    }
    for (const f of drawn.filter((f) => f.legend === id)) {
      Plotly.restyle(f.node, { visible: f.keys.map((key) => !hidden[id].has(key)) });
    }
  }

  function only(id, key) {
    spec.legends.find((l) => l.id === id).entries.forEach((_, k) => (k === key ? hidden[id].delete(k) : hidden[id].add(k)));
    showLegend(id);
  }

  for (const legend of all("[data-legend]")) {
    const id = legend.dataset.legend;
    legend.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const key = Number(button.dataset.key);
      if ("all" in button.dataset) hidden[id].clear();
      else if (event.shiftKey) return only(id, key);
      else if (!hidden[id].delete(key)) hidden[id].add(key);
      showLegend(id);
    });
    legend.addEventListener("dblclick", (event) => {
      const button = event.target.closest("button[data-key]");
      if (button) only(id, Number(button.dataset.key));
    });
    for (const button of all("button[data-key]", legend)) button.title = "Click: hide or show. Shift-click or double click: only this one.";
  }

  // ---- Table: a heading sorts; figures begin with the greatest, names with the first.

  function sort(button) {
    const heading = button.closest("th");
    const column = Number(button.dataset.column);
    const before = heading.getAttribute("aria-sort");
    const rising = before ? before === "descending" : "text" in button.dataset;
    const value = (row) => row.cells[column].dataset.value;
    const body = heading.closest("table").tBodies[0];
    const compare = (a, b) => ("text" in button.dataset ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b));
    const rows = Array.from(body.rows).sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return rising ? compare(x, y) : compare(y, x);
    });
    all("th[aria-sort]", heading.closest("thead")).forEach((th) => th.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
    body.append(...rows);
    byId("sorted").textContent = `Sorted by ${button.textContent}, ${rising ? "ascending" : "descending"}.`;
  }
  all("thead button").forEach((button) => button.addEventListener("click", () => sort(button)));

  // ---- Paper: light, and as wide as the style sheet says.

  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    root.classList.add("printing");
    for (const f of drawn) {
      const size = { width: f.node.clientWidth, height: f.node.clientHeight };
      Plotly.update(f.node, restyled(f, "light"), Object.assign(themedLayout(f.layout), size));
    }
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    applyTheme();
    for (const f of drawn) Plotly.relayout(f.node, { autosize: true, width: null, height: null });
  });

  byId("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([byId("hoistway-data").textContent], { type: "application/json" }));
    link.download = "hoistway-compare.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  async function drawAll() {
    if (!hasWebGl()) withoutWebGl(spec.figures);
    for (const figure of spec.figures) {
      await draw(figure);
      await pause();
    }
    byId("theme").setAttribute("aria-pressed", String(theme() === "dark"));
    root.dataset.ready = "true";
  }
  drawAll();
})();
