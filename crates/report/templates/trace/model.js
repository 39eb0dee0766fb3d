// The trace page, 1 of 6: unpacking, number formats and the URL fragment. It is independent of the browser, so that
// `node --test` can run it.
const Model = (function () {
  "use strict";
  const LAYERS = ["wait for a request", "plugged, merging", "in the elevator", "at the drive", "not separated"];
  const LAYER_LETTERS = ["Q2G", "G2I", "I2D", "D2C", "Q2C"];
  const LAYER_SPANS = [
    "from submission to the allocation of a request", "from the allocation to the insertion into the elevator",
    "from the insertion to the dispatch to the drive", "from the dispatch to completion",
    "from submission to completion, for requests whose steps the trace does not have",
  ];
  const STEPS = ["queued", "allocated", "scheduled", "dispatched", "completed"];
  const STEP_LETTERS = ["Q", "G", "I", "D", "C"];
  const DEPTH_UNITS = 4096;
  const WHY = ["", "too idle", "its time was over", "its budget was used up", "no more requests", "preempted", "its request came"];
  const KINDS = ["slice", "idling", "takes the disk from another", "weight raised", "shares another's queue", "has its own queue again", "let in"];

  // Numbers with seven bits a byte, lowest first.
  class Numbers {
    constructor(bytes) {
      this.bytes = bytes;
      this.at = 0;
    }

    get() {
      let value = 0;
      let weight = 1;
      for (;;) {
        if (this.at >= this.bytes.length) throw new Error("the packed numbers end too early");
        const byte = this.bytes[this.at++];
        value += (byte & 127) * weight;
        if (byte < 128) return value;
        weight *= 128;
      }
    }

    column(count, Kind) {
      const values = new (Kind || Float64Array)(count);
      for (let i = 0; i < count; i += 1) values[i] = this.get();
      return values;
    }

    // Each number is a difference to the previous one; the lowest bit is the sign.
    steps(count, Kind) {
      const values = new (Kind || Float64Array)(count);
      let value = 0;
      for (let i = 0; i < count; i += 1) {
        const step = this.get();
        value += step % 2 ? -(step + 1) / 2 : step / 2;
        values[i] = value;
      }
      return values;
    }
  }

  function readCells(numbers) {
    const count = numbers.get();
    return { cell: numbers.steps(count, Uint32Array), count: numbers.column(count, Uint32Array) };
  }

  // All sums: completions, depths and pictures of each lane; slices of each queue of the elevator.
  function readSums(head, bytes) {
    const numbers = new Numbers(bytes);
    const lanes = head.lanes.map((lane) => {
      const n = lane.stretches;
      const names = ["reads", "writes", "others", "readBytes", "writeBytes", "latency", "latencyMax", "drive"];
      const sums = Object.fromEntries(names.map((name) => [name, numbers.column(n)]));
      sums.layers = LAYERS.map(() => numbers.column(n, Float32Array).map((units) => units / DEPTH_UNITS));
      sums.readCells = readCells(numbers);
      sums.writeCells = readCells(numbers);
      sums.latencyCells = readCells(numbers);
      return sums;
    });
    const queues = head.queues.map(() => {
      const n = numbers.get();
      const share = () => numbers.column(n, Float32Array).map((units) => units / DEPTH_UNITS);
      return { slices: numbers.column(n), preemptions: numbers.column(n), served: share(), idle: share() };
    });
    return { lanes, queues };
  }

  // Requests and notes of a part of the trace. An unknown step is NaN.
  function readChunk(bytes) {
    const numbers = new Numbers(bytes);
    const [n, bios, notes] = [numbers.get(), numbers.get(), numbers.get()];
    const chunk = {
      n,
      device: numbers.column(n, Uint16Array),
      pid: numbers.steps(n, Uint32Array),
      op: numbers.column(n, Uint16Array),
      sector: numbers.steps(n),
      bytes: numbers.column(n, Uint32Array),
    };
    const first = numbers.column(n, Uint8Array);
    const begun = numbers.steps(n);
    chunk.steps = STEPS.map(() => new Float64Array(n).fill(NaN));
    chunk.start = begun;
    chunk.end = Float64Array.from(begun);
    for (let i = 0; i < n; i += 1) chunk.steps[first[i]][i] = begun[i];
    for (let step = 1; step < STEPS.length; step += 1) {
      for (let i = 0; i < n; i += 1) {
        const later = numbers.get();
        if (later) chunk.steps[step][i] = chunk.end[i] += later - 1;
      }
    }
    chunk.requeues = numbers.column(n, Uint32Array);
    chunk.error = numbers.column(n, Uint16Array);
    chunk.mergedCount = numbers.column(n, Uint32Array);
    const merged = { pid: numbers.steps(bios, Uint32Array), queued: numbers.steps(bios) };
    merged.merged = numbers.column(bios).map((later, i) => later + merged.queued[i]);
    merged.sector = numbers.steps(bios);
    const lengths = numbers.column(bios);
    merged.bytes = lengths.map((length) => Math.floor(length / 2));
    merged.front = lengths.map((length) => length % 2);
    chunk.merged = merged;
    const spans = { n: notes, queue: numbers.column(notes, Uint16Array) };
    const kinds = numbers.column(notes, Uint8Array);
    spans.kind = kinds.map((kind) => kind >> 3);
    spans.why = kinds.map((kind) => kind & 7);
    spans.start = numbers.steps(notes);
    spans.end = numbers.column(notes).map((length, i) => length + spans.start[i]);
    spans.served = numbers.column(notes);
    spans.budget = numbers.column(notes);
    chunk.spans = spans;
    return chunk;
  }

  // ---- Words and figures.

  const OPS = [
    [8, "F", "flush before"], [1, "R", "read"], [2, "W", "write"], [4, "D", "discard"], [256, "N", "no data"], [16, "F", "durable (FUA)"],
    [32, "A", "read-ahead"], [64, "S", "sync"], [128, "M", "metadata"], [512, "", "passed through"],
  ];
  const letters = (op) => OPS.filter(([bit]) => op & bit).map(([, letter]) => letter).join("");
  const words = (op) => {
    const found = OPS.filter(([bit]) => op & bit && bit !== 256).map(([, , word]) => word);
    return found.length ? found.join(", ") : "unknown";
  };

  function figure(value) {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    const decimals = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : 4;
    return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  }

  function duration(ns) {
    if (!Number.isFinite(ns)) return "–";
    if (ns === 0) return "0 s";
    if (ns < 1e3) return `${figure(ns)} ns`;
    if (ns < 1e6) return `${figure(ns / 1e3)} µs`;
    if (ns < 1e9) return `${figure(ns / 1e6)} ms`;
    return `${figure(ns / 1e9)} s`;
  }

  function bytesText(bytes) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let at = 0;
    while (bytes >= 999.5 && at + 1 < units.length) {
      bytes /= 1000;
      at += 1;
    }
    return `${at === 0 ? bytes.toFixed(0) : figure(bytes)} ${units[at]}`;
  }

  const count = (value) => Math.round(value).toLocaleString("en");

  // A time with the digits that the width of the view resolves.
  function moment(ns, widthNs) {
    const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(widthNs, 1) / 1e9)) + 3));
    return `${(ns / 1e9).toFixed(decimals)} s`;
  }

  // ---- Latencies: the rows of the pictures, and percentiles from counts.

  const LATENCY_LOG2 = 10;
  // The start of a row in ns: quarters of octaves, linear within an octave.
  const latencyOfRow = (row) => 2 ** (LATENCY_LOG2 + Math.floor(row / 4)) * (1 + (row % 4) / 4);
  const rowOfLatency = (ns) => {
    if (ns < 2 ** LATENCY_LOG2) return 0;
    const octave = Math.floor(Math.log2(ns));
    return (octave - LATENCY_LOG2) * 4 + (ns / 2 ** octave - 1) * 4;
  };

  // The latency at a percentile of counted requests: the middle of its row, accurate to an eighth.
  function percentile(counts, share) {
    let all = 0;
    for (let row = 0; row < counts.length; row += 1) all += counts[row];
    if (!all) return NaN;
    const wanted = Math.max(1, Math.ceil(all * share));
    let seen = 0;
    for (let row = 0; row < counts.length; row += 1) {
      seen += counts[row];
      if (seen >= wanted) return row === 0 ? 1024 : (latencyOfRow(row) + latencyOfRow(row + 1)) / 2;
    }
    return NaN;
  }

  function exactPercentile(sorted, share) {
    if (!sorted.length) return NaN;
    return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
  }

  // ---- Rows of a lane: requests that overlap are in different rows. `order` lists them by start.

  function stack(order, start, end) {
    const rows = new Uint16Array(order.length);
    const free = [];
    for (let k = 0; k < order.length; k += 1) {
      const i = order[k];
      let row = free.findIndex((from) => from <= start[i]);
      if (row < 0) row = free.length < 512 ? free.length : k % 512;
      free[row] = Math.max(end[i], start[i] + 1);
      rows[k] = row;
    }
    return { rows, height: free.length };
  }

  // ---- The URL fragment: t=1.2-1.4 (seconds), pid=124,125, device=8,0, request=3.17, theme is in the ?.

  function readAddress(hash, endNs) {
    const asked = new URLSearchParams(hash.replace(/^#/, ""));
    const state = { from: 0, to: endNs, pids: null, device: null, request: null, film: null };
    const span = /^([\d.]+)-([\d.]+)$/.exec(asked.get("t") || "");
    if (span && Number(span[2]) > Number(span[1])) {
      state.from = Math.min(Number(span[1]) * 1e9, endNs);
      state.to = Math.min(Number(span[2]) * 1e9, endNs);
      if (state.to <= state.from) [state.from, state.to] = [0, endNs];
    }
    if (asked.get("pid")) state.pids = asked.get("pid").split(",").filter((pid) => /^(\d+|others)$/.test(pid));
    if (asked.get("device")) state.device = asked.get("device");
    const request = /^(\d+)\.(\d+)$/.exec(asked.get("request") || "");
    if (request) state.request = { chunk: Number(request[1]), at: Number(request[2]) };
    if (/^[\d.]+$/.test(asked.get("film") || "")) state.film = Number(asked.get("film")) * 1e9;
    return state;
  }

  function writeAddress(state, endNs) {
    const parts = [];
    const seconds = (ns) => String(Number((ns / 1e9).toFixed(9)));
    if (state.from > 0 || state.to < endNs) parts.push(`t=${seconds(state.from)}-${seconds(state.to)}`);
    if (state.pids && state.pids.length) parts.push(`pid=${state.pids.join(",")}`);
    if (state.device) parts.push(`device=${state.device}`);
    if (state.request) parts.push(`request=${state.request.chunk}.${state.request.at}`);
    return parts.length ? `#${parts.join("&")}` : "";
  }

  return {
    LAYERS, LAYER_LETTERS, LAYER_SPANS, STEPS, STEP_LETTERS, WHY, KINDS, Numbers, readSums, readChunk, letters, words, figure, duration, bytesText, count, moment,
    latencyOfRow, rowOfLatency, percentile, exactPercentile, stack, readAddress, writeAddress,
  };
})();
if (typeof module !== "undefined") module.exports = Model;
