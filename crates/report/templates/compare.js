(function () {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const root = document.documentElement;
  const spec = JSON.parse(byId("hoistway-charts").textContent);
  const page = JSON.parse(byId("hoistway-data").textContent);
  const { common } = spec;
  const entries = Object.fromEntries(spec.legends.map((l) => [l.id, l.entries]));
  const hidden = Object.fromEntries(spec.legends.map((l) => [l.id, new Set()]));
  const names = entries.elevator.map((e) => e.name);
  const pause = () => new Promise((resolve) => setTimeout(resolve));

  // ---- The content of each kind of chart, from the figures of the page.

  const time = { label: "time", unit: "s", range: common.time, digits: 5 };
  const styleOf = (legend, key) => ({ key, name: entries[legend][key].name, colour: entries[legend][key].colour, dash: entries[legend][key].dash });

  // x, y, x, y, ... from a count and two functions of the index.
  function points(count, x, y) {
    const flat = new Float64Array(count * 2);
    for (let i = 0; i < count; i += 1) [flat[2 * i], flat[2 * i + 1]] = [x(i), y(i)];
    return flat;
  }

  function bandwidth(elevator) {
    const window = page.window_ns / 1e9;
    const series = elevator.bandwidth.map((of) => ({
      ...styleOf("process", of.process),
      points: points(of.bytes_per_s.length, (i) => (i + 0.5) * window, (i) => of.bytes_per_s[i] / 1e6),
    }));
    return { kind: "line", group: "time", x: time, y: { label: "throughput", unit: "MB/s", range: [0, sharedTop()] }, series };
  }

  // Elevators with equal percentiles share a line in the colour of the first that is shown.
  function latency() {
    const curves = new Map();
    page.elevators.forEach((elevator, i) => {
      const curve = JSON.stringify(elevator.percentiles);
      if (elevator.percentiles.length && !hidden.elevator.has(i)) curves.set(curve, (curves.get(curve) || []).concat(i));
    });
    const series = Array.from(curves.values(), (members) => {
      const of = page.elevators[members[0]].percentiles;
      return {
        ...styleOf("elevator", members[0]),
        name: members.map((i) => names[i]).join(", "),
        texts: of.map((p) => (p.percentile === 100 ? "longest" : `p${p.percentile}`)),
        points: points(of.length, (i) => of[i].percentile, (i) => of[i].latency_ns * common.latency_scale),
      };
    });
    return {
      kind: "line", markers: true, endLabels: true, series,
      x: { label: "percentile of requests", scale: "percentile" }, y: { label: "latency", unit: common.latency_unit, scale: "log" },
    };
  }

  // One row of bars for each selected elevator, pinned ones first.
  function drive() {
    const rows = order().filter((i) => picked.has(i));
    const times = rows.map((i) => page.elevators[i].drive);
    const whole = times.map((of) => common.drive_parts.reduce((sum, part) => sum + of[part], 0) || 1);
    const series = common.drive_parts.map((part, key) => ({ part, key })).filter(({ key }) => entries.drive[key].used).map(({ part, key }) => ({
      ...styleOf("drive", key),
      texts: times.map((of, row) => `${Math.round((100 * of[part]) / whole[row])} %`),
      points: points(rows.length, (row) => times[row][part] / 1e9, (row) => row),
    }));
    const height = 60 + 34 * Math.max(rows.length, 1);
    return { kind: "bars", height, x: { label: "time", unit: "s" }, y: { label: "elevator", categories: rows.map((i) => names[i]) }, series };
  }

  function head(elevator) {
    const series = elevator.head.map((track) => ({
      ...styleOf("process", track.process),
      points: points(track.time_ns.length, (i) => track.time_ns[i] / 1e9, (i) => track.sector[i]),
    }));
    return { kind: "scatter", group: "time", x: time, y: { label: "sector", range: common.sectors, format: "prefix", digits: 12 }, series };
  }

  function slices(elevator) {
    const lanes = page.processes.map(() => []);
    for (const { process, start_ns: start, end_ns: end } of elevator.slices) lanes[process].push([start / 1e9, end / 1e9, process]);
    const series = lanes.map((spans, key) => ({ ...styleOf("process", key), spans })).filter(({ spans }) => spans.length);
    return { kind: "spans", group: "time", x: time, y: { label: "process", categories: page.processes, range: [-0.6, lanes.length - 0.4] }, series };
  }

  const KINDS = { bandwidth, latency, drive, head, slices };
  const legendOf = { bandwidth: "process", latency: "elevator", drive: "drive", head: "process", slices: "process" };

  function contentOf(figure) {
    const title = [byId(figure.id).closest("section").querySelector("h2").textContent, figure.caption].filter(Boolean).join(": ");
    return { title, description: figure.label, height: figure.height, ...KINDS[figure.kind](page.elevators[figure.elevator]) };
  }

  function show(figure) {
    const node = byId(figure.id);
    if (node.chart) node.chart.update(contentOf(figure));
    else node.chart = hoistwayCharts.chart(node, contentOf(figure));
    node.style.minHeight = "";
    const shown = legendOf[figure.kind];
    if (shown !== "elevator" && hidden[shown].size) node.chart.setHidden(hidden[shown]);
  }

  const drawn = () => spec.figures.filter((figure) => byId(figure.id).chart);

  // ---- The shared y axis: from 0 to above the highest point that is shown.

  function sharedTop() {
    let most = 0;
    for (const i of picked) {
      for (const of of page.elevators[i].bandwidth) if (!hidden.process.has(of.process)) of.bytes_per_s.forEach((rate) => (most = Math.max(most, rate / 1e6)));
    }
    return most > 0 ? most * 1.06 : 1;
  }

  function shareY() {
    const top = sharedTop();
    for (const figure of drawn().filter((f) => f.kind === "bandwidth" && picked.has(f.elevator))) {
      const { chart } = byId(figure.id);
      const before = chart.spec();
      if (before.y.range[1] !== top) chart.update({ ...before, y: { ...before.y, range: [0, top] } });
    }
  }

  // ---- Legends: one state for all charts that share a legend.

  const legends = all("[data-legend]").map((node) => {
    const id = node.dataset.legend;
    const onHidden = (keys) => {
      hidden[id] = keys;
      showLegend(id);
    };
    return { id, title: node.getAttribute("aria-label"), legend: new hoistwayCharts.Legend(node, onHidden, true) };
  });

  function fillLegends(id) {
    const used = entries[id].map((entry, key) => ({ ...entry, key })).filter((entry) => entry.used);
    for (const of of legends) if (of.id === id) of.legend.show(of.title, used, hidden[id]);
  }

  function showLegend(id) {
    fillLegends(id);
    for (const figure of drawn().filter((f) => legendOf[f.kind] === id)) byId(figure.id).chart.setHidden(hidden[id]);
    shareY();
  }

  Object.keys(hidden).forEach(fillLegends);

  // ---- Elevators: selected ones have charts; pinned ones come first. This is the legend of elevators.

  const picker = byId("picker");
  const pinned = new Set();
  const picked = new Set(spec.picked);
  const rowsInOrder = all("#table tbody tr[data-elevator]");

  const order = () => names.map((_, i) => i).sort((a, b) => pinned.has(b) - pinned.has(a) || a - b);

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
      const isNew = !byId(figure.id).chart;
      if (isNew || figure.elevator === null) show(figure);
      // One chart after the other, so that the page stays responsive.
      if (isNew) await pause();
    }
    shareY();
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
      const colour = entries.elevator[Number(chip.dataset.elevator)].colour;
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
    drawn().forEach((figure) => byId(figure.id).chart.resize());
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    drawn().forEach((figure) => byId(figure.id).chart.resize());
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
