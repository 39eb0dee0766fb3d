// The trace page, 3 of 6: drawing of the charts. Each function receives a canvas and the view.
const Draw = (function () {
  "use strict";
  const M = Model;
  const AXIS = 20;
  // Above these counts requests are drawn as areas and dots as an image, so that a view takes at most 100 ms.
  const BARS_MAX = 12000;
  const DOTS_MAX = 40000;
  const PATH_MAX = 600;
  // Largest height of a bar in px.
  const BAR_MAX = 26;

  function canvasOf(node, height) {
    const scale = Math.min(3, window.devicePixelRatio || 1);
    const width = node.clientWidth || 800;
    node.style.height = `${height}px`;
    if (node.width !== Math.round(width * scale)) node.width = Math.round(width * scale);
    if (node.height !== Math.round(height * scale)) node.height = Math.round(height * scale);
    const ctx = node.getContext("2d");
    ctx.setTransform(scale, 0, 0, scale, 0, 0);
    ctx.clearRect(0, 0, width, height);
    return { node, ctx, width, height };
  }

  const left = (width) => (width < 700 ? 74 : 138);
  const RIGHT = 8;

  // Conversion between time and x.
  function axis(view, width) {
    const [a, b] = [left(width), width - RIGHT];
    const scale = (b - a) / (view.to - view.from);
    return { a, b, scale, x: (ns) => a + (ns - view.from) * scale, ns: (x) => view.from + (x - a) / scale };
  }

  function timeAxis({ node, ctx, width, height }, view, t) {
    const at = axis(view, width);
    ctx.font = view.font;
    ctx.textBaseline = "alphabetic";
    ctx.textAlign = "center";
    const times = hoistwayScales.ticks(view.from / 1e9, view.to / 1e9, Math.max(2, (at.b - at.a) / (width < 700 ? 80 : 130)));
    const step = times.length > 1 ? times[1] - times[0] : 1;
    const [unit, factor] = step >= 0.1 ? ["s", 1] : step >= 1e-3 ? ["ms", 1e3] : step >= 1e-6 ? ["µs", 1e6] : ["ns", 1e9];
    const decimals = Math.max(0, Math.min(3, Math.ceil(-Math.log10(step * factor) - 1e-9)));
    for (const time of times) {
      const x = Math.round(at.x(time * 1e9)) + 0.5;
      ctx.fillStyle = t.grid;
      ctx.fillRect(x - 0.5, 0, 1, height - AXIS);
      ctx.fillStyle = t.quiet;
      const text = `${hoistwayScales.fixed(time * factor, decimals)} ${unit}`;
      const half = ctx.measureText(text).width / 2;
      if (x - half > at.a) ctx.fillText(text, Math.min(x, at.b + RIGHT - half), height - 6);
    }
    ctx.textAlign = "right";
    ctx.fillStyle = t.quiet;
    ctx.fillText("time", at.a - 8, height - 6);
    node.dataset.xTitle = "time";
    return at;
  }

  // The title of the y axis, from bottom to top along the left edge.
  function titleY({ node, ctx, height }, t, text) {
    ctx.save();
    ctx.translate(9, (height - AXIS) / 2);
    ctx.rotate(-Math.PI / 2);
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = t.quiet;
    ctx.fillText(text, 0, 0);
    ctx.restore();
    node.dataset.yTitle = text;
  }

  function clipped(chart, at, draw) {
    const { ctx, height } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(at.a, 0, at.b - at.a, height - AXIS);
    ctx.clip();
    draw(ctx);
    ctx.restore();
  }

  // Title, labels and grid lines of a linear axis from 0 to max.
  function valueAxis(chart, at, max, t, title, factor = 1) {
    const { ctx, height } = chart;
    titleY(chart, t, title);
    const bottom = height - AXIS;
    const y = (value) => bottom - (value / max) * (bottom - 12);
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const value of hoistwayScales.ticks(0, max, 4)) {
      ctx.fillStyle = t.grid;
      ctx.fillRect(at.a, Math.round(y(value)), at.b - at.a, 1);
      ctx.fillStyle = t.quiet;
      ctx.fillText(hoistwayScales.fixed(value * factor, 0, 3), at.a - 8, y(value));
    }
    return y;
  }

  // Stacked areas: `layers` are arrays with one value for each bin, `place` converts a value to y.
  function stackedAreas(ctx, at, series, layers, colours, place) {
    const base = new Float64Array(series.n);
    layers.forEach((values, k) => {
      if (!values.some((value) => value > 0)) return;
      ctx.beginPath();
      let open = false;
      for (let i = 0; i < series.n; i += 1) {
        const [x0, x1] = [at.x(series.from + i * series.width), at.x(series.from + (i + 1) * series.width)];
        if (x1 < at.a || x0 > at.b) continue;
        const y = place(base[i] + values[i]);
        if (open) ctx.lineTo(x0, y);
        else ctx.moveTo(x0, y);
        ctx.lineTo(x1, y);
        open = true;
      }
      for (let i = series.n - 1; i >= 0; i -= 1) {
        const [x0, x1] = [at.x(series.from + i * series.width), at.x(series.from + (i + 1) * series.width)];
        if (x1 < at.a || x0 > at.b) continue;
        const y = place(base[i]);
        ctx.lineTo(x1, y);
        ctx.lineTo(x0, y);
        base[i] += values[i];
      }
      ctx.fillStyle = colours[k];
      ctx.fill();
    });
  }

  const total = (layers, i) => layers.reduce((sum, values) => sum + values[i], 0);
  const highest = (series, layers) => {
    let max = 0;
    for (let i = 0; i < series.n; i += 1) max = Math.max(max, total(layers, i));
    return max;
  };

  function shorten(ctx, text, width) {
    if (ctx.measureText(text).width <= width) return text;
    let cut = text;
    while (cut.length > 1 && ctx.measureText(`${cut}…`).width > width) cut = cut.slice(0, -1);
    return `${cut}…`;
  }

  // ---- One lane for each process.

  // The positions of the lanes: selected lanes are higher than the others.
  function lanesLayout(view) {
    const shown = view.lanesShown;
    const chosen = shown.filter((at) => view.isChosen[at]);
    const others = shown.length - chosen.length;
    const room = Math.max(220, 460 - others * 14);
    const of = Math.max(20, Math.min(chosen.length === 1 && view.hasLayers ? 240 : 72, Math.floor(room / Math.max(1, chosen.length))));
    let y = 4;
    const places = shown.map((lane) => {
      const place = { lane, y, height: view.isChosen[lane] ? of : 14 };
      y += place.height + 3;
      return place;
    });
    return { places, height: y + AXIS };
  }

  function lanes(node, view, t) {
    const layout = lanesLayout(view);
    const chart = canvasOf(node, layout.height);
    const at = timeAxis(chart, view, t);
    const { ctx } = chart;
    const bars = view.detail && view.inView <= BARS_MAX;
    for (const { lane, y, height } of layout.places) {
      ctx.fillStyle = t.lanes[lane];
      ctx.fillRect(2, y + 2, 5, height - 4);
      ctx.fillStyle = view.isChosen[lane] ? t.ink : t.quiet;
      ctx.textAlign = "left";
      ctx.textBaseline = "middle";
      ctx.fillText(shorten(ctx, view.laneNames[lane], at.a - 16), 12, y + height / 2);
      ctx.fillStyle = t.grid;
      ctx.fillRect(at.a, y + height, at.b - at.a, 1);
    }
    clipped(chart, at, () => {
      if (bars) barsOf(ctx, at, view, t, layout);
      else for (const place of layout.places) areaOf(ctx, at, view, t, place);
    });
    view.lanesLayout = layout;
    view.bars = bars;
  }

  function areaOf(ctx, at, view, t, { lane, y, height }) {
    const series = view.laneSeries(lane);
    // A trace without layers shows only the arrival of requests.
    const [layers, colours] = view.hasLayers ? [series.layers, t.layers] : [[series.requests], [t.lanes[lane]]];
    const max = highest(series, layers);
    ctx.globalAlpha = view.isChosen[lane] ? 1 : 0.4;
    if (max > 0) stackedAreas(ctx, at, series, layers, colours, (value) => y + height - (value / max) * (height - 1));
    ctx.globalAlpha = 1;
    if (max > 0 && height >= 28) {
      const text = view.hasLayers ? `${M.figure(max)} at most` : `${M.figure((max / series.width) * 1e9)} a second at most`;
      ctx.textAlign = "right";
      ctx.textBaseline = "top";
      const width = ctx.measureText(text).width;
      ctx.fillStyle = t.veil;
      ctx.fillRect(at.b - width - 8, y + 1, width + 8, 15);
      ctx.fillStyle = t.quiet;
      ctx.fillText(text, at.b - 4, y + 3);
    }
  }

  function barsOf(ctx, at, view, t, layout) {
    const { detail } = view;
    const place = new Map(layout.places.map((p) => [p.lane, p]));
    const segments = M.LAYERS.map(() => []);
    for (let i = 0; i < detail.n; i += 1) {
      if (detail.end[i] < view.from || detail.start[i] > view.to) continue;
      const lane = place.get(detail.lane[i]);
      if (!lane) continue;
      const row = barPlace(lane, detail, i);
      Sums.eachLayer(detail, i, (layer, a, b) => segments[layer].push(at.x(a), row.y, at.x(b), row.height));
      if (detail.end[i] === detail.start[i]) segments[4].push(at.x(detail.start[i]), row.y, at.x(detail.start[i]), row.height);
    }
    segments.forEach((list, layer) => {
      ctx.fillStyle = t.layers[layer];
      for (let k = 0; k < list.length; k += 4) {
        const x = Math.max(at.a - 2, list[k]);
        ctx.fillRect(x, list[k + 1], Math.max(1, Math.min(at.b + 2, list[k + 2]) - x), list[k + 3]);
      }
    });
    mergedTicks(ctx, at, view, t, place);
    if (view.picked >= 0) outline(ctx, at, view, t, place);
    for (const p of layout.places.filter((p) => !view.isChosen[p.lane])) {
      ctx.fillStyle = t.veil;
      ctx.fillRect(at.a, p.y, at.b - at.a, p.height);
    }
  }

  // The position of a request in its lane.
  function barPlace(lane, detail, i) {
    const rows = Math.max(1, detail.heights[detail.lane[i]]);
    const height = Math.min(BAR_MAX, lane.height / rows);
    const top = lane.y + (lane.height - height * rows) / 2;
    return { y: top + detail.row[i] * height, height: Math.max(0.75, height - (height > 4 ? 1 : 0)) };
  }

  // A tick for each bio merged into a request, if there is space.
  function mergedTicks(ctx, at, view, t, place) {
    const { detail } = view;
    if (view.inView > PATH_MAX) return;
    ctx.fillStyle = t.ink;
    for (let i = 0; i < detail.n; i += 1) {
      const lane = place.get(detail.lane[i]);
      if (!lane || !detail.merged[i] || detail.end[i] < view.from || detail.start[i] > view.to) continue;
      const row = barPlace(lane, detail, i);
      for (const bio of Sums.mergedInto(detail.data.get(detail.chunk[i]), detail.at[i])) ctx.fillRect(at.x(bio.merged), row.y, 1, row.height / 2);
    }
  }

  function outline(ctx, at, view, t, place) {
    const { detail, picked } = view;
    const lane = place.get(detail.lane[picked]);
    if (!lane) return;
    const row = barPlace(lane, detail, picked);
    const x = at.x(detail.start[picked]);
    ctx.strokeStyle = t.ink;
    ctx.lineWidth = 2;
    ctx.strokeRect(x - 1.5, row.y - 1, Math.max(3, at.x(detail.end[picked]) - x) + 3, row.height + 2);
    ctx.lineWidth = 1;
  }

  // ---- Positions on the disk.

  function sectorAxis(chart, at, view, t) {
    const { ctx, height } = chart;
    titleY(chart, t, "sector");
    const bottom = height - AXIS;
    const [low, high] = view.sectors;
    const y = (sector) => bottom - 4 - ((sector - low) / (high - low)) * (bottom - 10);
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const sector of hoistwayScales.ticks(low, high, 5)) {
      ctx.fillStyle = t.grid;
      ctx.fillRect(at.a, Math.round(y(sector)), at.b - at.a, 1);
      ctx.fillStyle = t.quiet;
      ctx.fillText(sectorText(sector), at.a - 8, y(sector));
    }
    return y;
  }

  const sectorText = (sector) => (sector >= 1e6 ? `${M.figure(sector / 1e6)} M` : M.count(sector));

  function head(node, view, t) {
    const chart = canvasOf(node, 280);
    const at = timeAxis(chart, view, t);
    const y = sectorAxis(chart, at, view, t);
    const dots = view.detail && view.inView <= DOTS_MAX;
    clipped(chart, at, (ctx) => {
      if (dots) dotsOf(ctx, at, y, view, t);
      else {
        ctx.imageSmoothingEnabled = false;
        const { image, columnNs, first, row, rows } = view.places();
        ctx.drawImage(image, at.x(0), y(first + row * rows), image.width * columnNs * at.scale, y(first) - y(first + row * rows));
      }
    });
    view.headY = y;
    view.dots = dots;
  }

  function dotsOf(ctx, at, y, view, t) {
    const { detail } = view;
    const lanes = new Map();
    const path = [];
    for (let i = 0; i < detail.n; i += 1) {
      if (!view.isChosen[detail.lane[i]] || !detail.bytes[i] || detail.end[i] < view.from || detail.start[i] > view.to) continue;
      if (!lanes.has(detail.lane[i])) lanes.set(detail.lane[i], []);
      lanes.get(detail.lane[i]).push(i);
      path.push(i);
    }
    const few = path.length <= PATH_MAX;
    if (few) {
      // The path of the head: from the end of one request to the beginning of the next one dispatched.
      const device = (i) => view.laneDevices[detail.lane[i]];
      path.sort((a, b) => device(a) - device(b) || issued(detail, a) - issued(detail, b));
      ctx.strokeStyle = t.quiet;
      ctx.globalAlpha = 0.5;
      ctx.beginPath();
      path.forEach((i, k) => (k && device(i) === device(path[k - 1]) ? ctx.lineTo(at.x(issued(detail, i)), y(detail.sector[i])) : ctx.moveTo(at.x(issued(detail, i)), y(detail.sector[i]))));
      ctx.stroke();
      ctx.globalAlpha = 1;
    }
    const size = few ? 5 : path.length < 5000 ? 3 : 2;
    for (const [lane, list] of lanes) {
      ctx.fillStyle = t.lanes[lane];
      for (const i of list) {
        const x = at.x(issued(detail, i));
        const width = few && detail.end[i] > issued(detail, i) ? Math.max(size, (detail.end[i] - issued(detail, i)) * at.scale) : size;
        const top = y(detail.sector[i] + detail.bytes[i] / 512);
        const height = Math.max(size, y(detail.sector[i]) - top);
        if (few && width > size) {
          ctx.globalAlpha = 0.35;
          ctx.fillRect(x, top, width, height);
          ctx.globalAlpha = 1;
        }
        if (size === 2 || detail.op[i] & 2) ctx.fillRect(x - size / 2, top + (height - size) / 2, size, size);
        else {
          ctx.beginPath();
          ctx.arc(x, top + height / 2, size / 2 + 0.4, 0, 7);
          ctx.fill();
        }
      }
    }
    if (view.picked >= 0 && detail.bytes[view.picked]) ring(ctx, at.x(issued(detail, view.picked)), y(detail.sector[view.picked]), t);
  }

  function ring(ctx, x, y, t) {
    ctx.strokeStyle = t.ink;
    ctx.lineWidth = 2;
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 7);
    ctx.stroke();
    ctx.lineWidth = 1;
  }

  const issued = (detail, i) => (Number.isNaN(detail.steps[3][i]) ? detail.start[i] : detail.steps[3][i]);

  // ---- Throughput, latency, depth.

  function throughput(node, view, t) {
    const chart = canvasOf(node, 150);
    const at = timeAxis(chart, view, t);
    const series = view.rates;
    const perSecond = (values) => values.map((bytes) => (bytes / series.width) * 1e9);
    const layers = [perSecond(series.readBytes), perSecond(series.writeBytes)];
    const max = (highest(series, layers) || 1) * 1.05;
    const [unit, factor] = max >= 1e9 ? ["GB/s", 1e-9] : max >= 1e6 ? ["MB/s", 1e-6] : max >= 1e3 ? ["kB/s", 1e-3] : ["B/s", 1];
    const y = valueAxis(chart, at, max, t, `throughput, ${unit}`, factor);
    clipped(chart, at, (ctx) => stackedAreas(ctx, at, series, layers, [t.read, t.write], y));
  }

  function depth(node, view, t) {
    const chart = canvasOf(node, 150);
    const at = timeAxis(chart, view, t);
    const max = (highest(view.series, view.series.layers) || 1) * 1.05;
    const y = valueAxis(chart, at, max, t, "requests");
    clipped(chart, at, (ctx) => stackedAreas(ctx, at, view.series, view.series.layers, t.layers, y));
  }

  function latency(node, view, t) {
    const chart = canvasOf(node, 210);
    const at = timeAxis(chart, view, t);
    const [low, high] = view.latencyRows;
    const bottom = chart.height - AXIS;
    const y = (row) => bottom - 2 - ((row - low) / (high - low)) * (bottom - 8);
    const { ctx } = chart;
    titleY(chart, t, "latency");
    ctx.textAlign = "right";
    ctx.textBaseline = "middle";
    for (const ns of latencyTicks(low, high)) {
      const row = M.rowOfLatency(ns);
      ctx.fillStyle = t.grid;
      ctx.fillRect(at.a, Math.round(y(row)), at.b - at.a, 1);
      ctx.fillStyle = t.quiet;
      ctx.fillText(M.duration(ns).replace(/\.0+ /, " "), at.a - 8, y(row));
    }
    clipped(chart, at, () => {
      if (view.detail && view.inView <= DOTS_MAX) latencyDots(ctx, at, y, view, t);
      else latencyPicture(ctx, at, y, view, t);
    });
    view.latencyY = y;
  }

  // Powers of ten between two rows, and twice and five times each if there is space.
  function latencyTicks(low, high) {
    const found = [];
    for (let power = 3; power <= 11; power += 1) {
      for (const m of high - low < 32 ? [1, 2, 5] : [1]) {
        const row = M.rowOfLatency(m * 10 ** power);
        if (row >= low && row <= high) found.push(m * 10 ** power);
      }
    }
    return found;
  }

  function latencyDots(ctx, at, y, view, t) {
    const { detail } = view;
    const size = view.inView <= PATH_MAX ? 5 : view.inView < 5000 ? 3 : 2;
    for (const lane of view.chosen) {
      ctx.fillStyle = t.lanes[lane];
      for (const i of detail.lists[lane]) {
        const completed = detail.steps[4][i];
        if (!(completed >= view.from && completed <= view.to)) continue;
        ctx.fillRect(at.x(completed) - size / 2, y(M.rowOfLatency(completed - detail.start[i])) - size / 2, size, size);
      }
    }
    const { picked } = view;
    if (picked >= 0 && detail.steps[4][picked] >= 0) ring(ctx, at.x(detail.steps[4][picked]), y(M.rowOfLatency(detail.end[picked] - detail.start[picked])), t);
  }

  function latencyPicture(ctx, at, y, view, t) {
    const { image, columnNs, rows, p50, p99 } = view.latencies();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(image, at.x(0), y(rows), image.width * columnNs * at.scale, y(0) - y(rows));
    for (const [values, colour] of [[p50, t.ink], [p99, t.write]]) {
      ctx.strokeStyle = colour;
      ctx.lineWidth = 1.5;
      ctx.beginPath();
      let open = false;
      values.forEach((value, column) => {
        if (!Number.isFinite(value)) {
          open = false;
          return;
        }
        const place = [at.x((column + 0.5) * columnNs), y(M.rowOfLatency(value))];
        if (open) ctx.lineTo(...place);
        else ctx.moveTo(...place);
        open = true;
      });
      ctx.stroke();
      ctx.lineWidth = 1;
    }
  }

  // ---- The elevator's notes.

  const SLICE = 18;

  function scheduler(node, view, t) {
    const shown = view.queuesShown;
    const chart = canvasOf(node, Math.max(1, shown.length) * (SLICE + 3) + 6 + AXIS);
    const at = timeAxis(chart, view, t);
    const { ctx } = chart;
    const place = new Map(shown.map((queue, k) => [queue, 4 + k * (SLICE + 3)]));
    ctx.textAlign = "left";
    ctx.textBaseline = "middle";
    for (const [queue, y] of place) {
      ctx.fillStyle = t.ink;
      ctx.fillText(shorten(ctx, view.queueNames[queue], at.a - 12), 8, y + SLICE / 2);
      ctx.fillStyle = t.grid;
      ctx.fillRect(at.a, y + SLICE + 1, at.b - at.a, 1);
    }
    clipped(chart, at, () => {
      const spans = view.detail ? view.detail.spans.filter((span) => span.end >= view.from && span.start <= view.to) : null;
      if (spans && spans.length <= BARS_MAX) spansOf(ctx, at, spans, place, view, t);
      else for (const [queue, y] of place) sharesOf(ctx, at, view.queues[queue], y, view, t.queues[queue]);
    });
    view.queuePlaces = place;
  }

  function spansOf(ctx, at, spans, place, view, t) {
    for (const span of spans) {
      const y = place.get(span.queue);
      if (y === undefined) continue;
      const x = Math.max(at.a - 2, at.x(span.start));
      const width = Math.max(1, Math.min(at.b + 2, at.x(span.end)) - x);
      if (span.kind === 0) {
        ctx.fillStyle = t.queues[span.queue];
        ctx.fillRect(x, y, width, SLICE);
        sliceText(ctx, span, x, y, width, t);
      } else if (span.kind === 1) hatch(ctx, x, y, width, t);
    }
    ctx.fillStyle = t.ink;
    for (const span of spans) {
      const y = place.get(span.queue);
      if (span.kind < 2 || y === undefined) continue;
      const x = at.x(span.start);
      ctx.beginPath();
      if (span.kind === 2) {
        ctx.moveTo(x - 4, y - 2);
        ctx.lineTo(x + 4, y - 2);
        ctx.lineTo(x, y + 5);
      } else ctx.arc(x, y + SLICE / 2, 3, 0, 7);
      ctx.fill();
    }
  }

  function sliceText(ctx, span, x, y, width, t) {
    const text = span.budget ? `${M.count(span.served)} / ${M.count(span.budget)}` : span.served ? M.count(span.served) : "";
    if (!text || width < 46 || ctx.measureText(text).width > width - 6) return;
    ctx.fillStyle = t.onQueue[span.queue];
    ctx.textAlign = "left";
    ctx.fillText(text, x + 4, y + SLICE / 2 + 1);
  }

  function hatch(ctx, x, y, width, t) {
    ctx.fillStyle = t.veil;
    ctx.fillRect(x, y, width, SLICE);
    ctx.strokeStyle = t.quiet;
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, width, SLICE);
    ctx.clip();
    ctx.beginPath();
    for (let k = x - SLICE; k < x + width; k += 5) {
      ctx.moveTo(k, y + SLICE);
      ctx.lineTo(k + SLICE, y);
    }
    ctx.stroke();
    ctx.restore();
  }

  // Zoomed out: the share of each time bucket in which a queue was served, as a height.
  function sharesOf(ctx, at, queue, y, view, colour) {
    const { bucketNs } = view;
    const group = Math.max(1, Math.ceil(1 / (bucketNs * at.scale)));
    const first = Math.floor(view.from / bucketNs / group) * group;
    for (let i = first; i < queue.served.length && i * bucketNs < view.to; i += group) {
      let [served, idle, taken, n] = [0, 0, 0, 0];
      for (let k = i; k < Math.min(i + group, queue.served.length); k += 1, n += 1) {
        served += queue.served[k];
        idle += queue.idle[k];
        taken += queue.preemptions[k];
      }
      const [x, width] = [at.x(i * bucketNs), Math.max(1, group * bucketNs * at.scale)];
      const [full, part] = [SLICE * Math.min(1, served / n), SLICE * Math.min(1, idle / n)];
      ctx.fillStyle = colour;
      ctx.fillRect(x, y + SLICE - full, width, full);
      ctx.globalAlpha = 0.45;
      ctx.fillStyle = view.theme.veil;
      ctx.fillRect(x, y + SLICE - part, width, part);
      ctx.globalAlpha = 1;
      if (taken) {
        ctx.fillStyle = view.theme.ink;
        ctx.fillRect(x, y - 2, Math.max(1, width), 2);
      }
    }
  }

  // ---- The whole trace with the visible span.

  function map(node, view, whole, t) {
    const chart = canvasOf(node, 44);
    const { ctx, width, height } = chart;
    const scale = width / view.endNs;
    const at = { a: 0, b: width, scale, x: (ns) => ns * scale };
    const layers = [whole.readBytes, whole.writeBytes];
    const max = highest(whole, layers) || 1;
    stackedAreas(ctx, at, whole, layers, [t.read, t.write], (value) => height - 1 - (value / max) * (height - 6));
    const [a, b] = [view.from * scale, view.to * scale];
    ctx.fillStyle = t.veil;
    ctx.fillRect(0, 0, a, height);
    ctx.fillRect(b, 0, width - b, height);
    ctx.strokeStyle = t.link;
    ctx.lineWidth = 2;
    ctx.strokeRect(Math.min(a + 1, width - 4), 1, Math.max(3, b - a - 2), height - 2);
    ctx.lineWidth = 1;
  }

  return { AXIS, BARS_MAX, DOTS_MAX, axis, canvasOf, left, lanes, barPlace, head, issued, throughput, depth, latency, scheduler, map, sectorText, SLICE };
})();
