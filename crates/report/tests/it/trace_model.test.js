// Tried by `node --test`: what the page of a trace makes of its numbers. The Rust test `trace_browser.rs` calls it where node is.
const test = require("node:test");
const assert = require("node:assert");
const M = require("../../templates/trace/model.js");
const Sums = require("../../templates/trace/sums.js");

const pack = (values) => Uint8Array.from(values.flatMap((value) => {
  const bytes = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return [...bytes, value];
}));
const sign = (step) => (step < 0 ? -step * 2 - 1 : step * 2);

test("numbers_of_seven_bits_a_byte_are_read_beyond_32_bits", () => {
  const numbers = new M.Numbers(pack([0, 127, 128, 2 ** 33 + 5, 2 ** 52]));
  assert.deepStrictEqual([...numbers.column(5)], [0, 127, 128, 2 ** 33 + 5, 2 ** 52]);
  assert.throws(() => numbers.get(), /too early/);
});

test("steps_go_forwards_and_backwards", () => {
  const numbers = new M.Numbers(pack([10, -7, 2 ** 40].map(sign)));
  assert.deepStrictEqual([...numbers.steps(3)], [10, 3, 3 + 2 ** 40]);
});

// Two requests: one with all steps and a bio merged in, one that has a submission alone; and one slice.
const chunkBytes = () => pack([
  2, 1, 1,
  0, 0, sign(7), sign(1), 65, 2, sign(100), sign(-50), 4096, 8192,
  0, 0, sign(1000), sign(500), 11, 0, 21, 0, 31, 0, 41, 0, 0, 0, 0, 0, 1, 0,
  sign(9), sign(1005), 3, sign(108), 4096 * 2 + 1,
  4, 0 * 8 + 3, sign(900), 300, 24, 64,
]);

test("a_chunk_is_read_column_by_column", () => {
  const chunk = M.readChunk(chunkBytes());
  assert.deepStrictEqual([...chunk.pid], [7, 8]);
  assert.deepStrictEqual([...chunk.sector], [100, 50]);
  assert.deepStrictEqual(chunk.steps.map((times) => times[0]), [1000, 1010, 1030, 1060, 1100]);
  assert.deepStrictEqual(chunk.steps.map((times) => times[1]), [1500, NaN, NaN, NaN, NaN]);
  assert.deepStrictEqual([...chunk.end], [1100, 1500]);
  assert.deepStrictEqual(Sums.mergedInto(chunk, 0), [{ pid: 9, queued: 1005, merged: 1008, sector: 108, bytes: 4096, front: true }]);
  const { spans } = chunk;
  assert.deepStrictEqual([spans.queue[0], spans.kind[0], spans.why[0], spans.start[0], spans.end[0], spans.served[0], spans.budget[0]], [4, 0, 3, 900, 1200, 24, 64]);
});

const detailOf = () => Sums.join([{ number: 0, data: M.readChunk(chunkBytes()) }], (device, pid) => pid - 7, 2, 2000);

test("joined_requests_keep_their_place_and_lie_in_the_lanes_of_their_processes", () => {
  const detail = detailOf();
  assert.deepStrictEqual([[...detail.lane], [...detail.at], [...detail.heights]], [[0, 1], [0, 1], [1, 1]]);
  const layers = [];
  Sums.eachLayer(detail, 0, (layer, a, b) => layers.push([layer, b - a]));
  assert.deepStrictEqual(layers, [[0, 10], [1, 20], [2, 30], [3, 40]]);
});

test("sums_of_single_requests_keep_every_nanosecond_and_byte", () => {
  const detail = detailOf();
  const series = Sums.fromRequests(detail, [0], 1000, 1200, 20);
  const spent = series.layers.map((depths) => Math.round(depths.reduce((sum, depth) => sum + depth * series.width, 0)));
  assert.deepStrictEqual(spent, [10, 20, 30, 40, 0]);
  assert.strictEqual(series.readBytes.reduce((a, b) => a + b), 4096);
  const [row] = Sums.tableFromRequests(detail, 2, 0, 2000);
  assert.deepStrictEqual([row.requests, row.readBytes, row.latency, row.p50, row.max], [1, 4096, 100, 100, 100]);
});

test("the_line_of_all_lanes_has_their_sums_and_the_percentiles_of_all_their_latencies", () => {
  const detail = detailOf();
  const rows = Sums.tableFromRequests(detail, 2, 0, 2000);
  const all = Sums.totalOf(rows);
  assert.deepStrictEqual([all.requests, all.readBytes], [rows[0].requests + rows[1].requests, rows[0].readBytes + rows[1].readBytes]);
  assert.strictEqual(all.latencies.length, rows[0].latencies.length + rows[1].latencies.length);
  assert.strictEqual(all.max, Math.max(rows[0].max, rows[1].max));
  // Two lanes of counted latencies: 3 ms three times in one, 90 ms once in the other; their median is the one, the highest is the other.
  const cells = (ns, count) => ({ cell: [Math.floor(M.rowOfLatency(ns))], count: [count] });
  const of = () => new Float64Array(1);
  const lane = (ns, count) => ({
    reads: of().fill(count), writes: of(), others: of(), readBytes: of(), writeBytes: of(), latency: of(), latencyMax: of().fill(ns), layers: M.LAYERS.map(of), latencyCells: cells(ns, count),
  });
  const head = { bucket_ns: 1024, latency_rows: 112, latency_column_ns: 2048 };
  const both = Sums.totalOf(Sums.tableFromStretches(head, [lane(3e6, 3), lane(9e7, 1)], 0, 1024));
  assert.ok(Math.abs(both.p50 / 3e6 - 1) < 0.125 && Math.abs(both.p99 / 9e7 - 1) < 0.125, `${both.p50} ${both.p99}`);
  assert.deepStrictEqual([both.requests, both.max], [4, 9e7]);
  assert.ok(Number.isNaN(Sums.totalOf([]).p50));
});

test("lanes_and_bins_add_up", () => {
  const detail = detailOf();
  const [one, other] = [0, 1].map((lane) => Sums.fromRequests(detail, [lane], 1000, 2000, 10));
  const both = Sums.fromRequests(detail, [0, 1], 1000, 2000, 10);
  const sum = Sums.together([one, other], both);
  assert.deepStrictEqual(sum.requests, both.requests);
  assert.deepStrictEqual(sum.layers, both.layers);
  const wide = Sums.wider(both, 4);
  assert.deepStrictEqual([wide.n, wide.width, [...wide.requests]], [3, 400, [1, 1, 0]]);
});

test("sums_of_stretches_are_grouped_until_they_fit", () => {
  const n = 10;
  const of = (value) => new Float64Array(n).fill(value);
  const lane = { reads: of(1), writes: of(0), others: of(0), readBytes: of(512), writeBytes: of(0), latency: of(7), latencyMax: of(3), layers: M.LAYERS.map(() => of(0.5)) };
  const head = { bucket_ns: 1024, lanes: [{ stretches: n }] };
  const series = Sums.fromStretches(head, [lane], [0], 0, n * 1024, 3);
  assert.deepStrictEqual([series.n, series.width, [...series.requests], series.layers[0][0]], [3, 4096, [4, 4, 2], 0.5]);
});

test("overlapping_requests_lie_below_each_other", () => {
  const { rows, height } = M.stack([0, 1, 2, 3], [0, 5, 10, 12], [10, 20, 11, 13]);
  assert.deepStrictEqual([[...rows], height], [[0, 1, 0, 0], 2]);
});

test("percentiles_of_counted_latencies_are_within_an_eighth", () => {
  const counts = new Float64Array(112);
  for (const ns of [3e6, 3e6, 3e6, 9e7]) counts[Math.floor(M.rowOfLatency(ns))] += 1;
  for (const [share, truth] of [[0.5, 3e6], [0.99, 9e7]]) {
    const found = M.percentile(counts, share);
    assert.ok(Math.abs(found / truth - 1) < 0.125, `${found} of ${truth}`);
  }
  assert.strictEqual(M.exactPercentile([1, 2, 3, 4], 0.5), 2);
});

test("rows_of_latencies_and_their_beginnings_agree", () => {
  for (let row = 0; row < 112; row += 1) assert.strictEqual(M.rowOfLatency(M.latencyOfRow(row)), row);
});

test("the_address_says_what_is_shown_and_is_read_again", () => {
  const state = { from: 1.2e9, to: 1.4e9, pids: ["124", "others"], device: "8,0", request: { chunk: 3, at: 17 } };
  const hash = M.writeAddress(state, 2e9);
  assert.strictEqual(hash, "#t=1.2-1.4&pid=124,others&device=8,0&request=3.17");
  const read = M.readAddress(hash, 2e9);
  for (const name of ["from", "to", "pids", "device", "request"]) assert.deepStrictEqual(read[name], state[name], name);
});

test("an_address_that_makes_no_sense_shows_the_whole", () => {
  for (const hash of ["", "#t=9-3", "#t=x", "#t=5-9&pid=<b>&request=1"]) {
    const read = M.readAddress(hash, 2e9);
    assert.deepStrictEqual([read.from, read.to, read.request], [0, 2e9, null], hash);
  }
});

test("figures_are_told_as_in_the_other_pages", () => {
  assert.deepStrictEqual([0, 250, 12400, 8e6, 6e10].map(M.duration), ["0 s", "250 ns", "12.4 µs", "8.00 ms", "60.0 s"]);
  assert.deepStrictEqual([M.bytesText(512), M.bytesText(4096), M.letters(1 | 64), M.words(2 | 16)], ["512 B", "4.10 kB", "RS", "write, durable (FUA)"]);
});
