// The trace page, 2 of 6: totals of a time span and lanes, from the sums of the trace or from single requests.
const Sums = (function () {
  "use strict";
  const M = typeof require === "function" ? require("./model.js") : Model;

  const emptySeries = (n, from, width) => ({
    n, from, width, requests: new Float64Array(n), readBytes: new Float64Array(n), writeBytes: new Float64Array(n), latency: new Float64Array(n),
    latencyMax: new Float64Array(n), layers: M.LAYERS.map(() => new Float64Array(n)),
  });

  // Bins of whole time buckets, at most one for each pixel. Bytes and counts are sums of a bin, depths are means.
  function fromStretches(head, lanes, chosen, from, to, pixels) {
    const stretch = head.bucket_ns;
    const last = Math.max(0, ...head.lanes.map((lane) => lane.stretches)) - 1;
    const first = Math.max(0, Math.floor(from / stretch));
    const end = Math.min(last, Math.floor(Math.max(from, to - 1) / stretch));
    let group = 1;
    while ((end - first + 1) / group > pixels) group *= 2;
    const start = Math.floor(first / group) * group;
    const n = Math.max(1, Math.floor((end - start) / group) + 1);
    const series = emptySeries(n, start * stretch, group * stretch);
    for (const at of chosen) {
      const lane = lanes[at];
      const until = Math.min(lane.reads.length, start + n * group);
      for (let i = start; i < until; i += 1) {
        const bin = Math.floor((i - start) / group);
        series.requests[bin] += lane.reads[i] + lane.writes[i] + lane.others[i];
        series.readBytes[bin] += lane.readBytes[i];
        series.writeBytes[bin] += lane.writeBytes[i];
        series.latency[bin] += lane.latency[i];
        if (lane.latencyMax[i] > series.latencyMax[bin]) series.latencyMax[bin] = lane.latencyMax[i];
        for (let layer = 0; layer < series.layers.length; layer += 1) series.layers[layer][bin] += lane.layers[layer][i] / group;
      }
    }
    return series;
  }

  // Adds the duration of a span within each bin; `whole` records the fully covered bins as steps up and down.
  function cover(sums, whole, from, to, start, width) {
    const n = sums.length;
    const a = Math.max(from, start);
    const b = Math.min(to, start + n * width);
    if (!(b > a)) return;
    const first = Math.floor((a - start) / width);
    const last = Math.min(n - 1, Math.floor((b - start) / width));
    if (first === last) {
      sums[first] += b - a;
      return;
    }
    sums[first] += start + (first + 1) * width - a;
    sums[last] += b - (start + last * width);
    whole[first + 1] += 1;
    whole[last] -= 1;
  }

  // The layer between two consecutive steps.
  const layerBetween = (from, to) => (to === 1 ? 0 : to === 2 ? 1 : to === 3 ? 2 : from === 3 ? 3 : 4);

  // The same from single requests of lanes, in `pixels` bins from the start of the view.
  function fromRequests(detail, chosen, from, to, pixels) {
    const n = Math.max(1, pixels);
    const width = (to - from) / n;
    const series = emptySeries(n, from, width);
    const whole = M.LAYERS.map(() => new Float64Array(n + 2));
    const spent = (layer, a, b) => cover(series.layers[layer], whole[layer], a, b, from, width);
    for (const lane of chosen) {
      for (const i of detail.lists[lane]) {
        if (detail.start[i] > to) break;
        if (detail.end[i] < from) continue;
        eachLayer(detail, i, spent);
        countRequest(detail, i, series, to);
      }
    }
    for (let layer = 0; layer < whole.length; layer += 1) {
      let running = 0;
      for (let bin = 0; bin < n; bin += 1) {
        running += whole[layer][bin];
        series.layers[layer][bin] = (series.layers[layer][bin] + running * width) / width;
      }
    }
    return series;
  }

  // A request counts at its completion, or at its submission if the trace has no other step.
  function countRequest(detail, i, series, to) {
    const completed = detail.steps[4][i];
    const counted = Number.isNaN(completed) && Number.isNaN(detail.steps[3][i]) ? detail.end[i] : completed;
    if (!(counted >= series.from && counted <= to)) return;
    const bin = Math.min(series.n - 1, Math.floor((counted - series.from) / series.width));
    series.requests[bin] += 1;
    if (!(detail.op[i] & 4)) {
      if (detail.op[i] & 2) series.writeBytes[bin] += detail.bytes[i];
      else if (detail.op[i] & 1) series.readBytes[bin] += detail.bytes[i];
    }
    const latency = completed - detail.start[i];
    if (!(latency >= 0)) return;
    series.latency[bin] += latency;
    if (latency > series.latencyMax[bin]) series.latencyMax[bin] = latency;
  }

  const SUMMED = ["requests", "readBytes", "writeBytes", "latency"];

  // Adds the series of several lanes with equal bins.
  function together(all, empty) {
    if (!all.length) return empty;
    const sum = emptySeries(all[0].n, all[0].from, all[0].width);
    for (const series of all) {
      for (const name of SUMMED) for (let bin = 0; bin < sum.n; bin += 1) sum[name][bin] += series[name][bin];
      for (let bin = 0; bin < sum.n; bin += 1) sum.latencyMax[bin] = Math.max(sum.latencyMax[bin], series.latencyMax[bin]);
      sum.layers.forEach((depths, layer) => {
        for (let bin = 0; bin < sum.n; bin += 1) depths[bin] += series.layers[layer][bin];
      });
    }
    return sum;
  }

  // Joins each `by` bins to one.
  function wider(series, by) {
    const wide = emptySeries(Math.ceil(series.n / by), series.from, series.width * by);
    for (let bin = 0; bin < series.n; bin += 1) {
      const to = Math.floor(bin / by);
      for (const name of SUMMED) wide[name][to] += series[name][bin];
      wide.latencyMax[to] = Math.max(wide.latencyMax[to], series.latencyMax[bin]);
      wide.layers.forEach((depths, layer) => (depths[to] += series.layers[layer][bin] / by));
    }
    return wide;
  }

  // Calls `visit` with each layer of a request and its span. A request that never completed is in its last layer until the end of the trace. A request of which only the
  // submission is known has no layers.
  function eachLayer(detail, i, visit) {
    let before = -1;
    for (let step = 0; step < detail.steps.length; step += 1) {
      const time = detail.steps[step][i];
      if (Number.isNaN(time)) continue;
      if (before >= 0) visit(layerBetween(before, step), detail.steps[before][i], time);
      before = step;
    }
    if (before > 0 && before < 4 && detail.last > detail.steps[before][i]) visit(layerBetween(before, before + 1), detail.steps[before][i], detail.last);
  }

  // One line of figures for each lane.
  function tableFromStretches(head, lanes, from, to) {
    const stretch = head.bucket_ns;
    return lanes.map((lane) => {
      const row = emptyRow();
      const until = Math.min(lane.reads.length, Math.ceil(to / stretch));
      for (let i = Math.floor(from / stretch); i < until; i += 1) {
        row.requests += lane.reads[i] + lane.writes[i] + lane.others[i];
        row.reads += lane.reads[i];
        row.readBytes += lane.readBytes[i];
        row.writeBytes += lane.writeBytes[i];
        row.latency += lane.latency[i];
        row.max = Math.max(row.max, lane.latencyMax[i]);
        for (let layer = 0; layer < row.layers.length; layer += 1) row.layers[layer] += lane.layers[layer][i] * stretch;
      }
      row.counts = latencyCounts(head, lane.latencyCells, from, to);
      return withPercentiles(row);
    });
  }

  // A line has either `counts`, latencies by row, or `latencies`, single values.
  const emptyRow = () => ({ requests: 0, reads: 0, readBytes: 0, writeBytes: 0, latency: 0, max: 0, p50: NaN, p99: NaN, layers: M.LAYERS.map(() => 0), counts: null, latencies: [] });

  function withPercentiles(row) {
    const sorted = row.counts ? null : Float64Array.from(row.latencies).sort();
    const at = (share) => (row.counts ? M.percentile(row.counts, share) : M.exactPercentile(sorted, share));
    [row.p50, row.p99] = [at(0.5), at(0.99)];
    return row;
  }

  // Adds several lines.
  function totalOf(rows) {
    const sum = emptyRow();
    for (const row of rows) {
      for (const name of ["requests", "reads", "readBytes", "writeBytes", "latency"]) sum[name] += row[name];
      sum.max = Math.max(sum.max, row.max);
      row.layers.forEach((ns, layer) => (sum.layers[layer] += ns));
      if (row.counts) sum.counts = sum.counts ? sum.counts.map((count, at) => count + row.counts[at]) : row.counts;
      else for (const latency of row.latencies) sum.latencies.push(latency);
    }
    return withPercentiles(sum);
  }

  function latencyCounts(head, cells, from, to) {
    const counts = new Float64Array(head.latency_rows);
    const first = Math.floor(from / head.latency_column_ns) * head.latency_rows;
    const end = Math.ceil(to / head.latency_column_ns) * head.latency_rows;
    for (let k = lowerBound(cells.cell, first); k < cells.cell.length && cells.cell[k] < end; k += 1) {
      counts[cells.cell[k] % head.latency_rows] += cells.count[k];
    }
    return counts;
  }

  function tableFromRequests(detail, laneCount, from, to) {
    const rows = Array.from({ length: laneCount }, emptyRow);
    for (let i = 0; i < detail.n; i += 1) {
      if (detail.end[i] < from || detail.start[i] > to) continue;
      const row = rows[detail.lane[i]];
      eachLayer(detail, i, (layer, a, b) => (row.layers[layer] += Math.max(0, Math.min(b, to) - Math.max(a, from))));
      const completed = detail.steps[4][i];
      const counted = Number.isNaN(completed) && Number.isNaN(detail.steps[3][i]) ? detail.end[i] : completed;
      if (!(counted >= from && counted <= to)) continue;
      row.requests += 1;
      if (detail.op[i] & 1) row.reads += 1;
      if (detail.op[i] & 2) row.writeBytes += detail.bytes[i];
      else if (detail.op[i] & 1) row.readBytes += detail.bytes[i];
      if (Number.isNaN(completed)) continue;
      const latency = completed - detail.start[i];
      row.latency += latency;
      row.max = Math.max(row.max, latency);
      row.latencies.push(latency);
    }
    return rows.map(withPercentiles);
  }

  function lowerBound(sorted, value) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // A picture of cells: the number of requests of the selected lanes, and the most frequent lane.
  function picture(head, lanes, chosen, which, rows, columnNs) {
    const columns = Math.max(1, Math.floor(head.end_ns / columnNs) + 1);
    const counts = new Float32Array(columns * rows);
    const most = new Float32Array(columns * rows);
    const whose = new Uint16Array(columns * rows);
    for (const at of chosen) {
      const own = new Map();
      for (const name of which) {
        const cells = lanes[at][name];
        for (let k = 0; k < cells.cell.length; k += 1) {
          const cell = cells.cell[k];
          if (cell >= counts.length) continue;
          counts[cell] += cells.count[k];
          // Reads and writes of one lane may share a cell.
          const mine = which.length > 1 ? (own.get(cell) || 0) + cells.count[k] : cells.count[k];
          if (which.length > 1) own.set(cell, mine);
          if (mine > most[cell]) {
            most[cell] = mine;
            whose[cell] = at;
          }
        }
      }
    }
    return { columns, rows, columnNs, counts, whose };
  }

  // Joins the requests of several chunks by start, with the row of each within its lane.
  function join(chunks, laneOf, laneCount, lastNs) {
    const all = chunks.reduce((n, chunk) => n + chunk.data.n, 0);
    const order = new Uint32Array(all).map((_, i) => i);
    const from = { chunk: new Uint32Array(all), at: new Uint32Array(all), start: new Float64Array(all) };
    let next = 0;
    for (const { number, data } of chunks) {
      for (let i = 0; i < data.n; i += 1, next += 1) {
        from.chunk[next] = number;
        from.at[next] = i;
        from.start[next] = data.start[i];
      }
    }
    order.sort((a, b) => from.start[a] - from.start[b]);
    const data = new Map(chunks.map((chunk) => [chunk.number, chunk.data]));
    const detail = {
      n: all, last: lastNs, chunk: new Uint32Array(all), at: new Uint32Array(all), lane: new Uint16Array(all), pid: new Uint32Array(all), op: new Uint16Array(all),
      sector: new Float64Array(all), bytes: new Uint32Array(all), start: new Float64Array(all), end: new Float64Array(all), merged: new Uint32Array(all),
      steps: M.STEPS.map(() => new Float64Array(all)), row: new Uint16Array(all), heights: new Uint16Array(laneCount), lists: [], spans: [], data,
    };
    order.forEach((k, i) => {
      const chunk = data.get(from.chunk[k]);
      const at = from.at[k];
      detail.chunk[i] = from.chunk[k];
      detail.at[i] = at;
      detail.lane[i] = laneOf(chunk.device[at], chunk.pid[at]);
      for (const name of ["pid", "op", "sector", "bytes", "start", "end"]) detail[name][i] = chunk[name][at];
      detail.merged[i] = chunk.mergedCount[at];
      for (let step = 0; step < M.STEPS.length; step += 1) detail.steps[step][i] = chunk.steps[step][at];
      if (Number.isNaN(chunk.steps[4][at]) && !Number.isNaN(chunk.steps[3][at])) detail.end[i] = lastNs;
    });
    // The requests of each lane by start.
    detail.lists = Array.from({ length: laneCount }, () => []);
    for (let i = 0; i < all; i += 1) detail.lists[detail.lane[i]].push(i);
    for (let lane = 0; lane < laneCount; lane += 1) {
      const mine = detail.lists[lane];
      const { rows, height } = M.stack(mine, detail.start, detail.end);
      mine.forEach((i, k) => (detail.row[i] = rows[k]));
      detail.heights[lane] = height;
    }
    for (const { data: chunk } of chunks) {
      const { spans } = chunk;
      for (let i = 0; i < spans.n; i += 1) {
        detail.spans.push({
          queue: spans.queue[i], kind: spans.kind[i], why: spans.why[i], start: spans.start[i], end: spans.end[i], served: spans.served[i], budget: spans.budget[i],
        });
      }
    }
    return detail;
  }

  // The bios merged into a request.
  function mergedInto(chunk, at) {
    let first = 0;
    for (let i = 0; i < at; i += 1) first += chunk.mergedCount[i];
    const { merged } = chunk;
    return Array.from({ length: chunk.mergedCount[at] }, (_, k) => ({
      pid: merged.pid[first + k], queued: merged.queued[first + k], merged: merged.merged[first + k], sector: merged.sector[first + k],
      bytes: merged.bytes[first + k], front: merged.front[first + k] === 1,
    }));
  }

  return { fromStretches, fromRequests, together, wider, eachLayer, tableFromStretches, tableFromRequests, totalOf, picture, join, mergedInto, lowerBound };
})();
if (typeof module !== "undefined") module.exports = Sums;
