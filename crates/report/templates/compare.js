(function () {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const root = document.documentElement;
  const spec = JSON.parse(byId("hoistway-charts").textContent);
  const palettes = Object.fromEntries(spec.legends.map((l) => [l.id, l.entries.map((e) => e.colour)]));
  const hidden = Object.fromEntries(spec.legends.map((l) => [l.id, new Set()]));
  const drawn = [];
  const names = spec.legends.find((l) => l.id === "elevator").entries.map((e) => e.name);
  const font = getComputedStyle(document.body).fontFamily;

  // ---- Theme: the style sheet owns the colours, charts read them from it.

  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const styled = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = hoistwayTheme.name;
  const axesOf = (layout) => Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));

  // The entry of the legend that gives a line its colour and pattern: of several with equal results the first that is shown.
  function leading(figure, i) {
    const members = figure.members.length ? figure.members[i] : [figure.keys[i]];
    return members.find((key) => !hidden[figure.legend].has(key)) ?? members[0];
  }

  const colours = (figure, which) => figure.keys.map((_, i) => palettes[figure.legend][leading(figure, i)][which]);
  const dashes = (figure) => figure.keys.map((_, i) => spec.legends.find((l) => l.id === figure.legend).entries[leading(figure, i)].dash);

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

  // Black or white, whichever has more contrast. The contrasts are equal at a luminance of 0.179.
  function textOn(colour) {
    const channels = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
    const [r, g, b] = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
  }

  function restyled(figure, which) {
    const wanted = colours(figure, which);
    if (figure.data[0].type === "bar") return { "marker.color": wanted, "insidetextfont.color": wanted.map(textOn) };
    return { "line.color": wanted, "line.dash": figure.spans ? "solid" : dashes(figure), "marker.color": wanted };
  }

  function applyTheme() {
    return Promise.all(drawn.map((f) => Plotly.update(f.node, restyled(f, theme()), themedLayout(f.layout)).then(() => labelEnds(f))));
  }
  document.addEventListener("themechange", applyTheme);

  // ---- Drawing: one chart after the other, so that the page stays responsive.

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

  // A browser has about sixteen WebGL contexts for a page, and a figure needs two. Without one a dot is a DOM element,
  // of which a browser handles about twenty thousand.
  const GL_FIGURES_MAX = 7;
  const webGl = hasWebGl();
  const plainly = { figures: 0, shown: 0, given: 0 };

  function withoutWebGl(figure) {
    const MOST = webGl ? 2500 : 20000 / Math.max(1, spec.figures.filter((f) => f.data.some((t) => t.type === "scattergl")).length);
    const points = figure.data.reduce((n, t) => n + t.x.length, 0);
    const step = Math.max(1, Math.ceil(points / MOST));
    for (const trace of figure.data) {
      trace.type = "scatter";
      plainly.given += trace.x.length;
      if (step > 1) {
        trace.x = trace.x.filter((_, i) => i % step === 0);
        trace.y = trace.y.filter((_, i) => i % step === 0);
      }
      plainly.shown += trace.x.length;
    }
    plainly.figures += 1;
    const why = webGl ? `A browser draws ${GL_FIGURES_MAX} charts of head positions at full speed: ${plainly.figures} more are drawn plainly`
      : "This browser offers no WebGL: head positions are drawn without it";
    const { shown, given } = plainly;
    byId("no-webgl").hidden = false;
    byId("no-webgl").textContent = why +
      (shown < given ? `, ${shown.toLocaleString("en")} of ${given.toLocaleString("en")} dots.` : ".");
  }

  // The ends of a span show its start and its duration.
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
    if (figure.data.some((t) => t.type === "scattergl")) {
      const busy = drawn.filter((f) => f.data.some((t) => t.type === "scattergl")).length;
      if (!webGl || busy >= GL_FIGURES_MAX) withoutWebGl(figure);
    }
    if (figure.rows) figure.whole = figure.data.map((t) => ({ ...t }));
    if (figure.spans) figure.data.forEach(labelSpans);
    const patterns = dashes(figure);
    figure.data.forEach((trace, i) => {
      if (trace.line) Object.assign(trace.line, { color: wanted[i], dash: figure.spans ? "solid" : patterns[i] });
      if (trace.marker) trace.marker.color = wanted[i];
      if (trace.type === "bar") trace.insidetextfont = { color: textOn(wanted[i]) };
      trace.visible = isShown(figure, i);
    });
    if (figure.rows) keepPickedRows(figure);
    if (figure.shares_y) layout.yaxis.range = [0, sharedTop()];
    layout.font = { family: font, size: 12 };
    for (const [path, value] of Object.entries(themedLayout(layout))) set(layout, path, value);
    for (const axis of axesOf(layout)) set(layout, `${axis}.title.standoff`, 6);
    // On a touch screen a finger that scrolls the page must not zoom the chart under it, and the chart's buttons always show.
    if (matchMedia("(hover: none)").matches) {
      layout.dragmode = false;
      layout.margin.t += 22;
    }
    figure.home = Object.fromEntries(axesOf(layout).map((a) => [a, layout[a].range && layout[a].range.slice()]));
    drawn.push(figure);
    await Plotly.newPlot(figure.node, figure.data, layout, spec.config);
    if (timeShown && figure.time) await lead(figure, timeShown);
    await labelEnds(figure);
    figure.node.on("plotly_relayout", (event) => {
      followTime(figure, event);
      if (!figure.labelling) labelEnds(figure);
    });
    figure.node.addEventListener("keydown", (event) => onKey(figure, event));
  }

  // A line of several elevators with equal results is shown as long as one of them is.
  function isShown(figure, i) {
    const members = figure.members.length ? figure.members[i] : [figure.keys[i]];
    return members.some((key) => !hidden[figure.legend].has(key));
  }

  // ---- The shared y axis: from 0 to above the highest point that is shown.

  function sharedTop() {
    let most = 0;
    for (const figure of spec.figures.filter((f) => f.shares_y && !byId(f.id).closest("figure").hidden)) {
      figure.data.forEach((trace, i) => isShown(figure, i) && trace.y.forEach((y) => (most = Math.max(most, y))));
    }
    return most > 0 ? most * 1.06 : 1;
  }

  async function shareY() {
    const top = sharedTop();
    for (const figure of drawn.filter((f) => f.shares_y && !f.node.closest("figure").hidden)) {
      const axis = figure.node._fullLayout.yaxis;
      // The double click that resets a chart restores the first range.
      axis._rangeInitial1 = top;
      figure.home.yaxis = [0, top];
      if (axis.range[1] !== top) await Plotly.relayout(figure.node, { "yaxis.range": [0, top] });
    }
  }

  // ---- Labels: the name of each line at its end, pushed apart where ends are close. A narrow chart has a key below instead.

  const LABEL = { height: 16, letter: 6.6, letters: 28, chart: 560 };

  // One change at a time: a change that comes meanwhile is made afterwards.
  async function labelEnds(figure) {
    if (!figure.labelled) return;
    figure.labelsWanted = true;
    if (figure.labelling) return;
    figure.labelling = true;
    while (figure.labelsWanted) {
      figure.labelsWanted = false;
      await placeLabels(figure);
    }
    figure.labelling = false;
  }

  // The ticks of a logarithmic axis: each power of ten; 1, 2 and 5 times each; or what suits a span below one decade.
  const decadeTicks = (decades) => (decades > 3 ? 1 : decades > 0.9 ? "D2" : null);

  async function placeLabels(figure) {
    const shown = figure.data.map((trace, i) => ({ trace, i })).filter(({ i }) => isShown(figure, i));
    const isWide = figure.node.clientWidth >= LABEL.chart && shown.length > 1;
    const short = (name) => (name.length > LABEL.letters ? `${name.slice(0, LABEL.letters - 1)}…` : name);
    const longest = Math.max(0, ...shown.map(({ trace }) => short(trace.name).length));
    const [low, high] = figure.node._fullLayout.yaxis.range;
    await Plotly.relayout(figure.node, { "margin.r": isWide ? 40 + LABEL.letter * longest : 12, "yaxis.dtick": decadeTicks(high - low) });
    const { yaxis, xaxis } = figure.node._fullLayout;
    const ends = shown.map(({ trace, i }) => ({ name: short(trace.name), i, at: yaxis.d2p(trace.y[trace.y.length - 1]) }));
    ends.sort((a, b) => a.at - b.at);
    ends.forEach((end, n) => (end.at = Math.max(end.at, n ? ends[n - 1].at + LABEL.height : 0)));
    ends.reverse().forEach((end, n) => (end.at = Math.min(end.at, n ? ends[n - 1].at - LABEL.height : yaxis._length)));
    const wanted = colours(figure, theme());
    showKey(figure, shown.map(({ trace, i }) => ({ name: trace.name, i })), isWide);
    const place = (end) => 1 - end.at / yaxis._length;
    const label = (end) => ({
      xref: "paper", x: 1, xanchor: "left", xshift: 22, yref: "paper", y: place(end), yanchor: "middle", showarrow: false,
      text: end.name, font: { size: 12, color: styled("--ink") },
    });
    const key = (end) => ({
      type: "line", xref: "paper", yref: "paper", y0: place(end), y1: place(end), x0: 1 + 4 / xaxis._length, x1: 1 + 20 / xaxis._length,
      line: { color: wanted[end.i], width: 3, dash: figure.data[end.i].line.dash },
    });
    await Plotly.relayout(figure.node, { annotations: isWide ? ends.map(label) : [], shapes: isWide ? ends.map(key) : [] });
  }

  // The names of the lines below a chart without labels.
  function showKey(figure, lines, isWide) {
    if (!figure.key) {
      figure.key = Object.assign(document.createElement("p"), { className: "key" });
      figure.node.after(figure.key);
    }
    figure.key.hidden = isWide;
    const plain = (text) => new DOMParser().parseFromString(text, "text/html").documentElement.textContent;
    figure.key.replaceChildren(...lines.map(({ name, i }) => {
      const [line, swatch] = [document.createElement("span"), document.createElement("i")];
      const colour = palettes[figure.legend][leading(figure, i)];
      swatch.style.cssText = `--l:${colour.light};--d:${colour.dark}`;
      line.append(swatch, plain(name));
      return line;
    }));
  }

  // ---- Time: all time charts show the same span.

  let following = 0;
  let timeShown = null;

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
    timeShown = range;
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
      Plotly.restyle(f.node, { visible: f.keys.map((_, i) => isShown(f, i)) });
    }
    shareY();
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

  // ---- Elevators: selected ones have charts; pinned ones come first. This is the legend of elevators.

  const picker = byId("picker");
  const pinned = new Set();
  const picked = new Set(spec.picked);
  const rowsInOrder = all("#table tbody tr[data-elevator]");

  const order = () => names.map((_, i) => i).sort((a, b) => pinned.has(b) - pinned.has(a) || a - b);

  // One row of bars for each selected elevator, pinned ones first.
  function keepPickedRows(figure) {
    const [FRAME, ROW] = [70, 34];
    const rows = order().filter((i) => picked.has(i));
    const only = (list) => (Array.isArray(list) ? rows.map((i) => list[i]) : list);
    figure.data.forEach((trace, t) => {
      const from = figure.whole[t];
      Object.assign(trace, { x: only(from.x), y: rows.map((_, place) => place), text: only(from.text), hovertext: only(from.hovertext) });
    });
    figure.labels = figure.labels || figure.layout.yaxis.ticktext;
    Object.assign(figure.layout.yaxis, {
      tickvals: rows.map((_, place) => place), ticktext: rows.map((i) => figure.labels[i]), range: [rows.length - 0.5, -0.5],
    });
    figure.node.style.height = `${FRAME + ROW * Math.max(rows.length, 1)}px`;
  }

  function readAddress() {
    const asked = new URLSearchParams(location.search);
    const those = (key) => (asked.get(key) || "").split(",").map((name) => names.indexOf(name)).filter((i) => i >= 0);
    those("pin").forEach((i) => pinned.add(i));
    const show = those("show").concat(those("pin"));
    if (!show.length) return;
    picked.clear();
    show.forEach((i) => picked.add(i));
  }

  // A link shows the view of its sender. A page opened from a file may not be allowed to change it.
  function writeAddress() {
    const list = (set) => Array.from(set).map((i) => names[i]).join(",");
    const asked = new URLSearchParams(location.search);
    asked.set("show", list(picked));
    if (pinned.size) asked.set("pin", list(pinned));
    else asked.delete("pin");
    try {
      history.replaceState(null, "", `?${asked}${location.hash}`);
    } catch (refused) {
      // The page works without it.
    }
  }

  let picking = Promise.resolve();

  async function showPicked() {
    if (picker) {
      for (const chip of all(".chip", picker)) {
        const i = Number(chip.dataset.elevator);
        chip.querySelector(".show").setAttribute("aria-pressed", String(picked.has(i)));
        chip.querySelector(".pin").setAttribute("aria-pressed", String(pinned.has(i)));
      }
      byId("picked").textContent = `${picked.size} of ${names.length} elevators are shown.`;
    }
    hidden.elevator = new Set(names.map((_, i) => i).filter((i) => !picked.has(i)));
    for (const row of rowsInOrder) {
      const i = Number(row.dataset.elevator);
      row.classList.toggle("unpicked", !picked.has(i));
      row.classList.toggle("pinned", pinned.has(i));
    }
    orderRows();
    for (const charts of all(".charts")) pinnedFirst(charts);
    for (const node of all("figure[data-elevator], .answer [data-elevator]")) node.hidden = !picked.has(Number(node.dataset.elevator));
    for (const figure of spec.figures) {
      const node = byId(figure.id).closest("figure");
      if (node.hidden) continue;
      if (!drawn.includes(figure)) {
        await draw(figure);
        await pause();
      } else if (figure.rows) {
        keepPickedRows(figure);
        await Plotly.react(figure.node, figure.data, figure.layout, spec.config);
        await Plotly.Plots.resize(figure.node);
      } else if (figure.legend === "elevator") {
        await Plotly.restyle(figure.node, { visible: figure.keys.map((_, i) => isShown(figure, i)), ...restyled(figure, theme()) });
        await labelEnds(figure);
      }
      // A chart may have become narrower or wider beside others.
      if (figure.node.clientWidth !== figure.node._fullLayout.width) await Plotly.Plots.resize(figure.node);
    }
    await shareY();
  }

  // Elements of pinned elevators come first; the others keep their order.
  function pinnedFirst(parent) {
    const mine = Array.from(parent.children).filter((node) => node.dataset.elevator !== undefined);
    mine.sort((a, b) => a.dataset.elevator - b.dataset.elevator);
    const first = mine.filter((node) => pinned.has(Number(node.dataset.elevator)));
    const rest = mine.filter((node) => !first.includes(node));
    const others = Array.from(parent.children).filter((node) => !mine.includes(node));
    parent.append(...first, ...rest, ...others);
  }

  function pick() {
    writeAddress();
    picking = picking.then(showPicked);
    return picking;
  }

  function onPick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    const chip = button.closest(".chip");
    if (button.dataset.set) {
      const sets = { all: names.map((_, i) => i), best: spec.picked, pinned: Array.from(pinned) };
      const wanted = sets[button.dataset.set];
      if (!wanted.length) return;
      picked.clear();
      wanted.forEach((i) => picked.add(i));
    } else {
      const i = Number(chip.dataset.elevator);
      if (button.classList.contains("pin")) {
        if (!pinned.delete(i)) pinned.add(i);
        if (pinned.has(i)) picked.add(i);
      } else if (event.shiftKey) {
        picked.clear();
        picked.add(i);
      } else if (!picked.delete(i)) picked.add(i);
    }
    pick();
  }

  if (picker) {
    picker.addEventListener("click", onPick);
    for (const chip of all(".chip", picker)) {
      const colour = palettes.elevator[Number(chip.dataset.elevator)];
      chip.style.setProperty("--l", colour.light);
      chip.style.setProperty("--d", colour.dark);
    }
  }

  // ---- Table: a heading sorts; figures from the largest, names from the first.

  let sorting = null;

  function sort(button) {
    const heading = button.closest("th");
    const before = heading.getAttribute("aria-sort");
    const rising = before ? before === "descending" : "text" in button.dataset;
    sorting = { column: Number(button.dataset.column), text: "text" in button.dataset, rising };
    orderRows();
    all("th[aria-sort]", heading.closest("thead")).forEach((th) => th.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", rising ? "ascending" : "descending");
    byId("sorted").textContent = `Sorted by ${button.textContent}, ${rising ? "ascending" : "descending"}.`;
  }

  // Pinned rows first, each part sorted; unsorted in the given order.
  function orderRows() {
    const body = byId("table").querySelector("tbody");
    const value = (row) => row.cells[sorting.column].dataset.value;
    const compare = (a, b) => (sorting.text ? a.localeCompare(b, "en", { numeric: true }) : Number(a) - Number(b));
    const rows = rowsInOrder.slice().sort((a, b) => {
      const first = pinned.has(Number(b.dataset.elevator)) - pinned.has(Number(a.dataset.elevator));
      if (first || !sorting) return first;
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return sorting.rising ? compare(x, y) : compare(y, x);
    });
    body.append(...rows);
  }
  all("#table thead button").forEach((button) => button.addEventListener("click", () => sort(button)));

  // ---- Print: light theme, with the width of the style sheet.

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
    readAddress();
    await (picking = picking.then(showPicked));
    root.dataset.ready = "true";
  }
  drawAll();
})();
