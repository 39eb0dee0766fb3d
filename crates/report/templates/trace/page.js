// The trace page, 6 of 6: state of the view and input.
const Page = (function () {
  "use strict";
  const M = Model;
  const byId = (id) => document.getElementById(id);
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector));
  const root = document.documentElement;
  const head = JSON.parse(byId("hoistway-head").textContent);
  const END = Math.max(1, head.end_ns);
  // With more visible requests than these, sums are drawn. Single requests are joined within tens of ms.
  const JOINED_MAX = 40000;
  const CHUNKS_KEPT = 48;
  // The narrowest span: 100 ns.
  const NARROWEST = 100;
  const BIN_PX = 2;
  const state = { from: 0, to: END, pids: null, device: null, request: null };
  const before = [];
  let sums = null;
  let theme = null;
  let view = null;
  let detail = null;
  let joined = "";
  let whole = null;
  let player = null;
  let pictures = {};

  // ---- Theme: the style sheet owns the colours, the charts read them from it.

  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const styled = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };

  function readTheme() {
    const which = hoistwayTheme.name();
    const of = (pair) => pair[which];
    const { lanes, layers, read, write } = head.colours;
    theme = { ink: styled("--ink"), quiet: styled("--quiet"), grid: styled("--grid"), rule: styled("--rule"), paper: styled("--chart"), link: styled("--link") };
    theme.veil = which === "dark" ? "rgba(21,24,30,.72)" : "rgba(255,255,255,.72)";
    theme.lanes = lanes.map(of);
    theme.layers = layers.map(of);
    theme.read = of(read);
    theme.write = of(write);
    theme.queues = head.queues.map((queue) => {
      const lane = head.lanes.findIndex((l) => l.pid !== null && l.pid === queue.pid);
      return lane >= 0 ? theme.lanes[lane] : theme.layers[4];
    });
    theme.onQueue = theme.queues.map(hoistwayScales.inkOnHex);
    pictures = {};
  }

  document.addEventListener("themechange", () => {
    readTheme();
    ask();
  });

  // ---- Packed numbers: deflated, as text.

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // ---- Single requests: chunks from the page, from files beside it, or from its server.

  const chunks = new Map();
  const wanted = new Map();
  let missing = "";

  window.hoistwayChunk = async (number, text) => {
    const data = M.readChunk(await inflate(text));
    chunks.set(number, { number, data });
    const resume = wanted.get(number);
    wanted.delete(number);
    if (resume) resume();
    while (chunks.size > CHUNKS_KEPT) {
      const oldest = [...chunks.keys()].find((key) => !view || !view.chunks.includes(key));
      if (oldest === undefined) break;
      chunks.delete(oldest);
    }
    ask();
  };

  function load(number) {
    if (chunks.has(number) || wanted.has(number)) return;
    wanted.set(number, null);
    const embedded = byId(`hoistway-chunk-${number}`);
    if (embedded) {
      window.hoistwayChunk(number, embedded.textContent);
      return;
    }
    if (!head.prefix) return;
    const script = document.createElement("script");
    script.src = `${head.prefix}/${number}.js`;
    script.onload = () => script.remove();
    script.onerror = () => {
      missing = `${head.prefix}/${number}.js cannot be loaded: it must be in the directory of this page`;
      ask();
    };
    document.head.append(script);
  }

  const overlapping = (from, to) => head.chunks.map((_, number) => number).filter((number) => head.chunks[number][0] <= to && head.chunks[number][1] >= from);

  const laneOfPid = new Map();
  head.lanes.forEach((lane, at) => lane.pid !== null && laneOfPid.set(`${lane.device}:${lane.pid}`, at));
  const othersLane = head.lanes.findIndex((lane) => lane.pid === null);
  const laneOf = (device, pid) => {
    const at = laneOfPid.get(`${device}:${pid}`);
    return at === undefined ? Math.max(0, othersLane) : at;
  };

  // Joins the visible chunks if all are loaded, and requests missing ones.
  function findDetail() {
    const numbers = overlapping(state.from, state.to);
    const requests = numbers.reduce((sum, number) => sum + head.chunks[number][2], 0);
    view.chunks = numbers;
    view.overlapping = requests;
    if (!head.chunks.length || requests > JOINED_MAX) {
      detail = null;
      joined = "";
      return;
    }
    numbers.forEach(load);
    if (!numbers.every((number) => chunks.has(number))) {
      detail = null;
      joined = "";
      return;
    }
    const key = numbers.join();
    if (key !== joined || !detail) detail = Sums.join(numbers.map((number) => chunks.get(number)), laneOf, head.lanes.length, END);
    joined = key;
  }

  // ---- The view: the input of the charts.

  const several = head.devices.length > 1;
  const laneName = (lane) => {
    const name = lane.pid === null ? lane.name || "others" : lane.name && lane.pid ? `${lane.name} ${lane.pid}` : lane.name || (lane.pid ? `pid ${lane.pid}` : "all requests");
    return several ? `${name} · ${head.devices[lane.device]}` : name;
  };
  const laneNames = head.lanes.map(laneName);
  const laneDevices = head.lanes.map((lane) => lane.device);
  const queueNames = head.queues.map((queue) => queue.name || "queue");
  const pidOf = (lane) => (lane.pid === null ? "others" : String(lane.pid));

  // Formats with submissions alone have no layers and no latencies.
  let layersUsed = [];

  function makeView() {
    const isShown = head.lanes.map((lane) => state.device === null || head.devices[lane.device] === state.device);
    const isChosen = Uint8Array.from(head.lanes, (lane, at) => isShown[at] && (!state.pids || state.pids.includes(pidOf(lane))));
    const chosen = head.lanes.map((_, at) => at).filter((at) => isChosen[at]);
    view = {
      from: state.from, to: state.to, endNs: END, isChosen, chosen, laneNames, laneDevices, queueNames, theme, queues: sums.queues, bucketNs: head.bucket_ns,
      lanesShown: head.lanes.map((_, at) => at).filter((at) => isShown[at]),
      queuesShown: head.queues.map((_, at) => at).filter((at) => {
        const queue = head.queues[at];
        return (state.device === null || head.devices[queue.device] === state.device) && (!state.pids || queue.pid === null || state.pids.includes(String(queue.pid)));
      }),
      hasLayers: layersUsed.some(Boolean), sectors: sectorRange(), latencyRows: latencyRange(), font: `12px ${getComputedStyle(document.body).fontFamily}`, picked: -1,
    };
    findDetail();
    view.detail = detail;
    view.inView = detail ? countInView() : Infinity;
    const width = byId("map").clientWidth || 800;
    const pixels = Math.max(50, Math.floor((width - Draw.left(width)) / BIN_PX));
    // Sums of whole time buckets are exact and fast. Single requests are more precise when a bucket is several pixels wide.
    const fine = detail && (state.to - state.from) / head.bucket_ns < pixels;
    view.fine = fine;
    const kept = new Map();
    view.laneSeries = (lane) => {
      if (!kept.has(lane)) kept.set(lane, fine ? Sums.fromRequests(detail, [lane], state.from, state.to, pixels) : Sums.fromStretches(head, sums.lanes, [lane], state.from, state.to, pixels));
      return kept.get(lane);
    };
    view.series = Sums.together(chosen.map(view.laneSeries), Sums.fromStretches(head, sums.lanes, [], state.from, state.to, pixels));
    // A rate needs several requests in each bin, or it shows only single completions.
    const completions = view.series.requests.reduce((sum, n) => sum + n, 0);
    const wanted = Math.max(40, Math.min(view.series.n, completions / 4));
    view.rates = Sums.wider(view.series, Math.max(1, Math.round(view.series.n / wanted)));
    const key = `${chosen.join()}|${hoistwayTheme.name()}`;
    if (pictures.key !== key) pictures = { key };
    view.places = () => (pictures.places = pictures.places || placesPicture(chosen));
    view.latencies = () => (pictures.latencies = pictures.latencies || latencyPicture(chosen));
    if (state.request && detail) view.picked = findRequest(state.request);
  }

  function countInView() {
    let count = 0;
    for (let i = 0; i < detail.n; i += 1) if (detail.end[i] >= state.from && detail.start[i] <= state.to) count += 1;
    return count;
  }

  function sectorRange() {
    const [low, high] = head.sectors || [0, 1];
    const room = Math.max(8, (high - low) * 0.02);
    return [low - room, high + room];
  }

  // The non-empty rows of latencies of all lanes, so that the axis does not depend on the selection.
  let latencyRowsSeen = null;
  function latencyRange() {
    if (latencyRowsSeen) return latencyRowsSeen;
    let [low, high] = [Infinity, 0];
    for (const lane of sums.lanes) {
      for (const cell of lane.latencyCells.cell) {
        const row = cell % head.latency_rows;
        low = Math.min(low, row);
        high = Math.max(high, row + 1);
      }
    }
    latencyRowsSeen = low < high ? [Math.max(0, low - 1), high + 1] : [0, 8];
    return latencyRowsSeen;
  }

  function imageOf(picture, colourAt) {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.columns, picture.rows];
    const ctx = canvas.getContext("2d");
    const image = ctx.createImageData(picture.columns, picture.rows);
    for (let column = 0; column < picture.columns; column += 1) {
      for (let row = 0; row < picture.rows; row += 1) {
        const cell = column * picture.rows + row;
        if (!picture.counts[cell]) continue;
        const to = ((picture.rows - 1 - row) * picture.columns + column) * 4;
        image.data.set(colourAt(cell), to);
      }
    }
    ctx.putImageData(image, 0, 0);
    return canvas;
  }

  const rgb = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

  // Each cell has the colour of its most frequent process; more requests are more opaque.
  function placesPicture(chosen) {
    const picture = Sums.picture(head, sums.lanes, chosen, ["readCells", "writeCells"], head.sector_rows, head.place_column_ns);
    const most = Math.log2(1 + picture.counts.reduce((max, count) => Math.max(max, count), 1));
    const colours = theme.lanes.map(rgb);
    picture.image = imageOf(picture, (cell) => [...colours[picture.whose[cell]], 90 + 165 * (Math.log2(1 + picture.counts[cell]) / most)]);
    return Object.assign(picture, { first: head.first_sector, row: head.row_sectors });
  }

  function latencyPicture(chosen) {
    const picture = Sums.picture(head, sums.lanes, chosen, ["latencyCells"], head.latency_rows, head.latency_column_ns);
    const most = Math.log2(1 + picture.counts.reduce((max, count) => Math.max(max, count), 1));
    const colour = rgb(theme.lanes[chosen.length === 1 ? chosen[0] : 0] || "#235fea");
    picture.image = imageOf(picture, (cell) => [...colour, 30 + 190 * (Math.log2(1 + picture.counts[cell]) / most)]);
    const column = (at, share) => M.percentile(picture.counts.subarray(at * picture.rows, (at + 1) * picture.rows), share);
    picture.p50 = Array.from({ length: picture.columns }, (_, at) => column(at, 0.5));
    picture.p99 = Array.from({ length: picture.columns }, (_, at) => column(at, 0.99));
    return picture;
  }

  // ---- Drawing, once a frame at most.

  const canvases = Object.fromEntries(all("canvas[data-chart]").map((node) => [node.dataset.chart, node]));
  let asked = false;

  function ask() {
    if (asked || !sums) return;
    asked = true;
    root.dataset.ready = "false";
    Film.soon(draw);
  }

  function draw() {
    asked = false;
    const began = performance.now();
    makeView();
    Draw.map(byId("map"), view, wholeSeries(), theme);
    for (const name of ["lanes", "head", "throughput", "latency", "depth", "scheduler"]) if (canvases[name]) Draw[name](canvases[name], view, theme);
    player.notify();
    words();
    table();
    card();
    root.dataset.drawMs = (performance.now() - began).toFixed(1);
    root.dataset.waits = String(wanted.size);
    root.dataset.ready = String(!asked);
  }

  function wholeSeries() {
    const pixels = byId("map").clientWidth || 800;
    if (!whole || whole.pixels !== pixels || whole.key !== view.chosen.join()) {
      whole = { pixels, key: view.chosen.join(), series: Sums.fromStretches(head, sums.lanes, view.chosen, 0, END, pixels) };
    }
    return whole.series;
  }

  function words() {
    const width = state.to - state.from;
    byId("span").textContent = `${M.moment(state.from, width)} – ${M.moment(state.to, width)} (${M.duration(width)})`;
    byId("single").textContent = single();
    byId("lanes-intro").textContent = view.bars
      ? view.hasLayers ? "One bar for each request: the time that it spent in each layer. A tick is a bio that was merged into it." : "One tick for each request, when it was submitted."
      : !view.hasLayers ? "When requests were submitted, each lane to its own scale." : "How many of each process's requests are in each layer, each lane to its own scale. Zoom in to see single requests.";
    const [one, many] = layersUsed[3] ? ["when the drive took it", "when the drive took them"] : ["when it was submitted", "when they were submitted"];
    byId("head-intro").textContent = view.dots
      ? `The position of each request and ${one}: ● reads, ■ writes, in the colour of the process.`
      : `The positions of requests and ${many}, in the colour of the most frequent process.`;
    byId("latency-intro").textContent = view.detail && view.inView <= Draw.DOTS_MAX
      ? "From submission to completion: one dot for each request, at its completion."
      : "From submission to completion: how many requests (darker: more), their median (dark line) and 99th percentile (coloured line).";
    const what = `Requests that ${view.hasLayers ? "completed" : "were submitted"} within the span shown`;
    byId("table-intro").textContent = (view.fine ? `${what}, from single requests.` : `${what}, in steps of ${M.duration(head.bucket_ns)}; percentiles within an eighth.`)
      + " A row picks its process.";
    for (const [go, off] of [["back", !before.length], ["whole", state.from <= 0 && state.to >= END], ["out", state.from <= 0 && state.to >= END]]) {
      document.querySelector(`[data-go="${go}"]`).disabled = off;
    }
    const noSingle = !view.detail;
    for (const go of ["previous", "next"]) document.querySelector(`[data-go="${go}"]`).disabled = noSingle;
  }

  function single() {
    if (missing) return missing;
    if (!head.chunks.length) return "This page holds sums only: make it with --detail or look at it with --serve to see single requests.";
    if (view.detail) return `${M.count(view.inView)} requests in the span`;
    if (view.overlapping > JOINED_MAX) return "Zoom in for single requests.";
    return "Single requests are being loaded.";
  }

  // ---- The table.

  function table() {
    const rows = view.fine ? Sums.tableFromRequests(detail, head.lanes.length, state.from, state.to) : Sums.tableFromStretches(head, sums.lanes, state.from, state.to);
    Tables.figures(byId("figures"), rows, view, head.colours.lanes);
  }

  byId("figures").addEventListener("click", (event) => {
    const line = event.target.closest("tr[data-lane]");
    if (line) pick(pidOf(head.lanes[Number(line.dataset.lane)]), event.shiftKey);
  });

  // ---- One request.

  function findRequest({ chunk, at }) {
    for (let i = 0; i < detail.n; i += 1) if (detail.chunk[i] === chunk && detail.at[i] === at) return i;
    return -1;
  }

  function card() {
    const node = byId("card");
    node.hidden = view.picked < 0;
    const shown = `${joined}|${view.picked}`;
    if (view.picked < 0 || node.dataset.request === shown) return;
    node.dataset.request = shown;
    Tables.card(node, view.picked, view, head, () => choose(null));
  }

  function choose(i) {
    state.request = i === null ? null : { chunk: detail.chunk[i], at: detail.at[i] };
    if (i !== null && (detail.start[i] > state.to || detail.end[i] < state.from)) {
      const width = state.to - state.from;
      const middle = (detail.start[i] + detail.end[i]) / 2;
      return show(middle - width / 2, middle + width / 2);
    }
    writeAddress();
    ask();
  }

  // The next request of the selected processes by start.
  function step(by) {
    if (!detail) return;
    let i = view.picked;
    if (i < 0) {
      for (i = 0; i < detail.n && !(detail.start[i] >= state.from && view.isChosen[detail.lane[i]]); i += 1);
      if (i < detail.n) choose(i);
      return;
    }
    for (i += by; i >= 0 && i < detail.n; i += by) {
      if (view.isChosen[detail.lane[i]]) {
        choose(i);
        return;
      }
    }
  }

  // ---- The visible span.

  function show(from, to, keep) {
    let width = Math.max(NARROWEST, Math.min(END, to - from));
    let start = Math.max(0, Math.min(END - width, from));
    if (END < NARROWEST) [start, width] = [0, END];
    if (start === state.from && start + width === state.to) return ask();
    if (!keep) before.push([state.from, state.to]);
    if (before.length > 200) before.shift();
    [state.from, state.to] = [start, start + width];
    writeAddress();
    ask();
  }

  function zoom(factor, at) {
    const width = state.to - state.from;
    const middle = at === undefined ? (state.from + state.to) / 2 : at;
    const wide = Math.min(END, Math.max(NARROWEST, width * factor));
    const share = (middle - state.from) / width;
    // The wheel makes small steps: only the first of a series enters the history.
    show(middle - share * wide, middle + (1 - share) * wide, at !== undefined && Date.now() - zoomed < 800);
    if (at !== undefined) zoomed = Date.now();
  }
  let zoomed = 0;

  const go = {
    whole: () => show(0, END),
    back: () => {
      const last = before.pop();
      if (last) show(last[0], last[1], true);
    },
    in: () => zoom(0.5),
    out: () => zoom(2),
    left: () => show(state.from - (state.to - state.from) * 0.25, state.to - (state.to - state.from) * 0.25),
    right: () => show(state.from + (state.to - state.from) * 0.25, state.to + (state.to - state.from) * 0.25),
    previous: () => step(-1),
    next: () => step(1),
  };
  for (const button of all("[data-go]")) button.addEventListener("click", () => go[button.dataset.go]());

  const KEYS = { "+": "in", "=": "in", "-": "out", ArrowLeft: "left", ArrowRight: "right", 0: "whole", Home: "whole", Backspace: "back", n: "next", p: "previous" };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "Escape") choose(null);
    else if (event.key === "f") player.toggle();
    else if (KEYS[event.key]) {
      event.preventDefault();
      go[KEYS[event.key]]();
    }
  });

  // ---- The URL: a link shows the view of its sender. A page opened from a file may not be allowed to change it.

  let written = location.hash;

  function writeAddress() {
    const hash = M.writeAddress(state, END);
    written = hash;
    try {
      history.replaceState(null, "", hash || `${location.pathname}${location.search}`);
    } catch (refused) {
      // The page works without it.
    }
  }

  function readAddress() {
    const read = M.readAddress(location.hash, END);
    Object.assign(state, { from: read.from, to: read.to, pids: read.pids, device: read.device, request: read.request });
    if (read.film !== null) player.moment = read.film;
    marks();
  }
  addEventListener("hashchange", () => {
    if (location.hash !== written) {
      readAddress();
      ask();
    }
  });

  // ---- Processes and devices.

  function pick(pid, more) {
    const pids = new Set(state.pids || []);
    if (more) {
      if (!pids.delete(pid)) pids.add(pid);
      state.pids = pids.size ? [...pids] : null;
    } else state.pids = pids.size === 1 && pids.has(pid) ? null : [pid];
    marks();
    writeAddress();
    ask();
  }

  const { make } = Tables;

  function chip(within, text, title, pair) {
    const button = make("button", undefined, within);
    button.type = "button";
    button.title = title;
    if (pair) {
      const swatch = make("i", undefined, button);
      swatch.style.setProperty("--l", pair.light);
      swatch.style.setProperty("--d", pair.dark);
    }
    button.append(text);
    return button;
  }

  function makeChips() {
    head.lanes.forEach((lane, at) => {
      const button = chip(byId("processes"), laneNames[at], "Click: only this one, and all again. Shift-click: one more.", head.colours.lanes[at]);
      button.dataset.pid = pidOf(lane);
      button.addEventListener("click", (event) => pick(pidOf(lane), event.shiftKey));
    });
    byId("devices").hidden = !several;
    for (const name of several ? [null, ...head.devices] : []) {
      const button = chip(byId("devices"), name === null ? "all devices" : name, "Show this device");
      button.dataset.device = name === null ? "" : name;
      button.addEventListener("click", () => {
        state.device = name;
        marks();
        writeAddress();
        ask();
      });
    }
    const key = (id, entries) => entries.forEach(([text, pair]) => {
      const span = make("span", undefined, byId(id));
      const swatch = make("i", undefined, span);
      swatch.style.setProperty("--l", pair.light);
      swatch.style.setProperty("--d", pair.dark);
      span.append(text);
    });
    key("layers", M.LAYERS.map((name, layer) => [`${name} (${M.LAYER_LETTERS[layer]})`, head.colours.layers[layer]]).filter((_, layer) => layersUsed[layer]));
    key("directions", [["reads", head.colours.read], ["writes", head.colours.write]]);
  }

  function marks() {
    for (const button of all("[data-pid]")) button.setAttribute("aria-pressed", String(!state.pids || state.pids.includes(button.dataset.pid)));
    for (const button of all("[data-device]")) button.setAttribute("aria-pressed", String(state.device === null || state.device === button.dataset.device));
  }

  // ---- The pointer: a drag selects a span, a click a request.

  const shade = document.body.appendChild(document.createElement("div"));
  shade.style.cssText = "position:absolute;z-index:4;pointer-events:none;background:color-mix(in srgb, var(--link) 22%, transparent);display:none";

  function pointer(node) {
    let from = null;
    const axis = () => Draw.axis(view, node.clientWidth);
    const place = (event) => event.clientX - node.getBoundingClientRect().left;
    const clamp = (x) => Math.max(axis().a, Math.min(axis().b, x));
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || !view) return;
      from = { x: place(event), shift: event.shiftKey, view: [state.from, state.to], moved: false };
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", (event) => {
      if (!view) return;
      const x = place(event);
      if (!from) return readout(node, event);
      if (Math.abs(x - from.x) > 4) from.moved = true;
      if (!from.moved) return;
      if (from.shift) {
        const by = (from.x - x) / axis().scale;
        show(from.view[0] + by, from.view[1] + by, true);
        return;
      }
      const box = node.getBoundingClientRect();
      const [a, b] = [clamp(Math.min(from.x, x)), clamp(Math.max(from.x, x))];
      Object.assign(shade.style, { display: "block", left: `${box.left + scrollX + a}px`, top: `${box.top + scrollY}px`, width: `${b - a}px`, height: `${box.height}px` });
    });
    const end = (event, done) => {
      shade.style.display = "none";
      const was = from;
      from = null;
      if (!was || !done) return;
      const x = place(event);
      if (!was.moved) return click(node, was.x, event);
      if (!was.shift) show(axis().ns(clamp(Math.min(was.x, x))), axis().ns(clamp(Math.max(was.x, x))));
    };
    node.addEventListener("pointerup", (event) => end(event, true));
    node.addEventListener("pointercancel", (event) => end(event, false));
    node.addEventListener("dblclick", () => go.back());
    node.addEventListener("wheel", (event) => {
      if (!view || place(event) < axis().a) return;
      event.preventDefault();
      const width = state.to - state.from;
      const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
      if (sideways) show(state.from + (width * sideways) / 900, state.to + (width * sideways) / 900, true);
      else zoom(1.0016 ** event.deltaY, axis().ns(place(event)));
    }, { passive: false });
  }

  function click(node, x, event) {
    const y = event.clientY - node.getBoundingClientRect().top;
    if (node.dataset.chart === "lanes") {
      const lane = view.lanesLayout.places.find((place) => y >= place.y - 1 && y < place.y + place.height + 2);
      if (lane && x < Draw.axis(view, node.clientWidth).a) return pick(pidOf(head.lanes[lane.lane]), event.shiftKey);
    }
    if (!view.detail) return;
    const found = nearest(node, x, y);
    choose(found >= 0 ? found : null);
  }

  // The request under the pointer, or the nearest within 9 px.
  function nearest(node, x, y) {
    const at = Draw.axis(view, node.clientWidth);
    let [best, least] = [-1, 9];
    for (let i = 0; i < detail.n; i += 1) {
      if (detail.end[i] < state.from || detail.start[i] > state.to) continue;
      const away = distance(node.dataset.chart, at, i, x, y);
      if (away < least) [best, least] = [i, away];
    }
    return best;
  }

  function distance(chart, at, i, x, y) {
    if (chart === "lanes") {
      const lane = view.bars && view.lanesLayout.places.find((place) => place.lane === detail.lane[i]);
      if (!lane) return Infinity;
      const row = Draw.barPlace(lane, detail, i);
      const aside = Math.max(at.x(detail.start[i]) - x, 0, x - at.x(detail.end[i]));
      return Math.hypot(aside, Math.max(row.y - y, 0, y - row.y - row.height));
    }
    if (!view.isChosen[detail.lane[i]]) return Infinity;
    if (chart === "head" && view.dots) return Math.hypot(at.x(Draw.issued(detail, i)) - x, view.headY(detail.sector[i]) - y);
    const done = detail.steps[4][i];
    if (chart === "latency" && done >= 0) return Math.hypot(at.x(done) - x, view.latencyY(M.rowOfLatency(done - detail.start[i])) - y);
    return Infinity;
  }

  // The values of the chart at the pointer.
  function readout(node, event) {
    const out = document.querySelector(`[data-readout="${node.dataset.chart}"]`);
    if (!out) return;
    const at = Draw.axis(view, node.clientWidth);
    const x = event.clientX - node.getBoundingClientRect().left;
    const y = event.clientY - node.getBoundingClientRect().top;
    if (x < at.a || x > at.b) {
      out.textContent = "";
      return;
    }
    out.textContent = `${M.moment(at.ns(x), state.to - state.from)}  ${said(node.dataset.chart, at.ns(x), y)}`;
  }

  function said(chart, ns, y) {
    const series = chart === "throughput" || chart === "latency" ? view.rates : view.series;
    const bin = Math.floor((ns - series.from) / series.width);
    if (!(bin >= 0 && bin < series.n)) return "";
    if (chart === "throughput") {
      const rate = (bytes) => `${M.bytesText((bytes[bin] / series.width) * 1e9)}/s`;
      return `reads ${rate(series.readBytes)}, writes ${rate(series.writeBytes)}, ${M.count(series.requests[bin])} requests`;
    }
    if (chart === "latency") {
      const n = series.requests[bin];
      return n ? `${M.count(n)} requests, mean ${M.duration(series.latency[bin] / n)}, longest ${M.duration(series.latencyMax[bin])}` : "nothing completed";
    }
    if (chart === "depth") return series.layers.map((depths, layer) => [layer, depths[bin]]).filter(([, depth]) => depth > 0).map(([layer, depth]) => `${M.LAYERS[layer]} ${M.figure(depth)}`).join(", ");
    if (chart === "scheduler") return sliceAt(ns, y);
    return "";
  }

  function sliceAt(ns, y) {
    const queue = [...(view.queuePlaces || [])].find(([, top]) => y >= top && y < top + Draw.SLICE + 3);
    if (!queue) return "";
    const near = (state.to - state.from) / 300;
    const spans = view.detail ? view.detail.spans.filter((s) => s.queue === queue[0] && s.start <= ns + (s.kind > 1 ? near : 0) && s.end >= ns - (s.kind > 1 ? near : 0)) : [];
    return `${queueNames[queue[0]]}${spans.map((s) => `: ${M.KINDS[s.kind]}${s.kind < 2 ? ` of ${M.duration(s.end - s.start)}` : ""}${s.budget ? `, ${M.count(s.served)} of ${M.count(s.budget)} sectors` : ""}${s.why ? `, ended: ${M.WHY[s.why]}` : ""}`).join("")}`;
  }

  // The overview of the whole trace: a drag selects a span, a click moves the visible span.
  function mapPointer(node) {
    let from = null;
    const ns = (event) => {
      const box = node.getBoundingClientRect();
      return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * END;
    };
    node.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      const at = ns(event);
      const inside = at > state.from && at < state.to && state.to - state.from < END * 0.98;
      from = { at, inside, view: [state.from, state.to], moved: false };
      node.setPointerCapture(event.pointerId);
    });
    node.addEventListener("pointermove", (event) => {
      if (!from) return;
      const at = ns(event);
      if (Math.abs(at - from.at) > END / 400) {
        if (!from.moved) before.push(from.view);
        from.moved = true;
      }
      if (!from.moved) return;
      if (from.inside) show(from.view[0] + at - from.at, from.view[1] + at - from.at, true);
      else show(Math.min(at, from.at), Math.max(at, from.at), true);
    });
    node.addEventListener("pointerup", (event) => {
      const was = from;
      from = null;
      if (!was || was.moved) return;
      const width = state.to - state.from;
      if (width < END) show(ns(event) - width / 2, ns(event) + width / 2);
    });
    node.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(1.0016 ** event.deltaY, ns(event));
    }, { passive: false });
  }

  // ---- Start.

  async function begin() {
    try {
      sums = M.readSums(head, await inflate(byId("hoistway-sums").textContent));
    } catch (error) {
      byId("failed").hidden = false;
      byId("failed").textContent = `This page cannot be read: ${error.message}. It needs a browser of 2023 or later (DecompressionStream, light-dark).`;
      return;
    }
    const nodes = { play: byId("play"), speed: byId("speed"), scrub: byId("scrub"), time: byId("film-time") };
    layersUsed = M.LAYERS.map((_, layer) => sums.lanes.some((lane) => lane.layers[layer].some((depth) => depth > 0)));
    // Charts without data are hidden.
    for (const [chart, isTold] of [["depth", layersUsed.some(Boolean)], ["latency", sums.lanes.some((lane) => lane.latencyCells.cell.length > 0)]]) {
      if (head.lanes.length && !isTold) {
        canvases[chart].closest("section").hidden = true;
        delete canvases[chart];
      }
    }
    readTheme();
    makeChips();
    player = new Film.Player(nodes, () => state, (moment) => view && Film.draw(canvases.film, view, theme, moment));
    readAddress();
    for (const [name, node] of Object.entries(canvases)) {
      if (name === "film") continue;
      pointer(node);
      node.addEventListener("pointerleave", () => {
        const out = document.querySelector(`[data-readout="${name}"]`);
        if (out) out.textContent = "";
      });
    }
    mapPointer(byId("map"));
    new ResizeObserver(ask).observe(byId("map"));
    ask();
  }
  begin();

  return { state, show, view: () => view, pick };
})();
