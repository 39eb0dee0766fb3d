// The trace page, 5 of 6: the table of the visible span, and the card of a request.
const Tables = (function () {
  "use strict";
  const M = Model;
  const LATENCIES = [["mean", "mean"], ["p50", "median"], ["p99", "99th percentile"], ["max", "longest"]];
  // The name of each column, and what it means if the name does not say so.
  const COLUMNS = [
    ...["Process", "requests", "reads %", "MB", "MB/s"].map((name) => [name, ""]),
    ...LATENCIES.map(([name, meaning]) => [name, `Latency of requests, from submission to completion: ${meaning}`]),
    ...M.LAYERS.map((layer, i) => [`${M.LAYER_LETTERS[i]} %`, `${layer}: share of the requests' time, ${M.LAYER_SPANS[i]}`]),
  ];

  function make(name, text, within) {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (within) within.append(node);
    return node;
  }

  const coloured = (node, pair) => {
    node.style.setProperty("--l", pair.light);
    node.style.setProperty("--d", pair.dark);
    return node;
  };

  // ---- The figures of the span: one line for each process, and one for all selected ones.

  function figures(node, rows, view, colours) {
    if (!node.tHead.rows.length) {
      const line = node.tHead.insertRow();
      for (const [name, meaning] of COLUMNS) {
        const head = make("th", name, line);
        head.scope = "col";
        if (meaning) head.title = meaning;
      }
    }
    const body = document.createElement("tbody");
    for (const at of view.lanesShown) {
      const line = body.insertRow();
      line.dataset.lane = String(at);
      line.classList.toggle("unchosen", !view.isChosen[at]);
      const name = make("th", undefined, line);
      name.scope = "row";
      coloured(make("i", undefined, name), colours[at]);
      name.append(view.laneNames[at]);
      cells(line, rows[at], view);
    }
    node.tBodies[0].replaceWith(body);
    node.tFoot.replaceChildren();
    if (view.lanesShown.length < 2) return;
    const line = node.tFoot.insertRow();
    const all = view.chosen.length === view.lanesShown.length;
    make("th", all ? "all" : `all ${view.chosen.length} picked`, line).scope = "row";
    cells(line, Sums.totalOf(view.chosen.map((at) => rows[at])), view);
  }

  function cells(line, row, view) {
    const bytes = row.readBytes + row.writeBytes;
    const layers = row.layers.reduce((sum, ns) => sum + ns, 0);
    // Without completions there are no latencies.
    const known = Number.isFinite(row.p50);
    const texts = [
      M.count(row.requests), row.requests ? M.figure((row.reads / row.requests) * 100) : "–", M.figure(bytes / 1e6), M.figure((bytes / (view.to - view.from)) * 1e3),
      known ? M.duration(row.latency / row.requests) : "–", M.duration(row.p50), M.duration(row.p99), known ? M.duration(row.max) : "–",
      ...row.layers.map((ns) => (layers ? M.figure((ns / layers) * 100) : "–")),
    ];
    for (const text of texts) line.insertCell().textContent = text;
  }

  // ---- The card of request `i`.

  function card(node, i, view, head, close) {
    const { detail } = view;
    node.replaceChildren();
    const chunk = detail.data.get(detail.chunk[i]);
    const at = detail.at[i];
    const note = (text) => (make("p", text, node).className = "note");
    make("h2", `${view.laneNames[detail.lane[i]]}: ${M.words(detail.op[i])}`, node);
    const button = make("button", "×", node);
    button.className = "close";
    button.type = "button";
    button.setAttribute("aria-label", "Close");
    button.addEventListener("click", close);
    const where = detail.bytes[i] ? `sector ${M.count(detail.sector[i])} + ${M.count(detail.bytes[i] / 512)} (${M.bytesText(detail.bytes[i])}), ` : "";
    note(`${where}${M.letters(detail.op[i])}, device ${head.devices[chunk.device[at]]}, process ${detail.pid[i]}`);
    phases(node, i, detail, head);
    const { requeues, error } = chunk;
    if (requeues[at]) note(`The driver requeued the request ${M.count(requeues[at])} times.`);
    if (error[at]) note(`The request completed with error ${error[at]}.`);
    const from = headBefore(i, detail);
    if (from !== null) note(`The head came from sector ${M.count(from)}: ${M.count(Math.abs(detail.sector[i] - from))} sectors ${detail.sector[i] < from ? "back" : "on"}.`);
    mergedList(node, chunk, at);
  }

  function phases(node, i, detail, head) {
    const bar = make("div", undefined, node);
    bar.className = "phases";
    const body = make("table", undefined, node).createTBody();
    const line = (layer, name, text, more) => {
      const row = body.insertRow();
      const title = make("th", undefined, row);
      title.scope = "row";
      if (layer !== null) coloured(make("i", undefined, title), head.colours.layers[layer]);
      title.append(` ${name}`);
      row.insertCell().textContent = text;
      row.insertCell().textContent = more;
      return row;
    };
    const begun = detail.start[i];
    line(null, "began", M.moment(begun, 1e4), "");
    Sums.eachLayer(detail, i, (layer, a, b) => {
      const part = coloured(make("span", undefined, bar), head.colours.layers[layer]);
      part.style.flex = String(Math.max(b - a, 0));
      part.title = M.LAYERS[layer];
      line(layer, `${M.LAYER_LETTERS[layer]} ${M.LAYERS[layer]}`, M.duration(b - a), `to +${M.duration(b - begun)}`);
    });
    const done = detail.steps[4][i];
    line(null, Number.isNaN(done) ? "not completed in this trace" : "Q2C all of it", M.duration((Number.isNaN(done) ? detail.last : done) - begun), "").className = "total";
  }

  function mergedList(node, chunk, at) {
    const merged = Sums.mergedInto(chunk, at);
    if (!merged.length) return;
    make("p", merged.length === 1 ? "1 bio was merged into the request:" : `${M.count(merged.length)} bios were merged into the request:`, node).className = "note";
    const body = make("table", undefined, node).createTBody();
    for (const bio of merged.slice(0, 40)) {
      const row = body.insertRow();
      make("th", `${M.count(bio.sector)} + ${M.count(bio.bytes / 512)}${bio.front ? " (front)" : ""}`, row);
      row.insertCell().textContent = `pid ${bio.pid}`;
      row.insertCell().textContent = `after ${M.duration(bio.merged - chunk.start[at])}`;
    }
    if (merged.length > 40) make("p", `and ${M.count(merged.length - 40)} more`, node).className = "note";
  }

  // The end sector of the previous request at the drive, on the same device.
  function headBefore(i, detail) {
    const mine = detail.steps[3][i];
    const device = (k) => detail.data.get(detail.chunk[k]).device[detail.at[k]];
    if (Number.isNaN(mine) || !detail.bytes[i]) return null;
    let best = -1;
    for (let k = 0; k < detail.n; k += 1) {
      const time = detail.steps[3][k];
      if (k !== i && time <= mine && detail.bytes[k] && (best < 0 || time > detail.steps[3][best]) && device(k) === device(i)) best = k;
    }
    return best < 0 ? null : detail.sector[best] + detail.bytes[best] / 512;
  }

  return { make, figures, card };
})();
