// Run by `node --test`: scales, ticks and number formats of the charts. The Rust test `charts_scales.rs` calls it if node is installed.
import test from "node:test";
import assert from "node:assert";
import { readFileSync } from "node:fs";

// The folder of the modules has no package.json, and node takes a file .js for a module only with one.
const source = readFileSync(new URL("../../web/scales.js", import.meta.url), "utf8");
const S = await import(`data:text/javascript,${encodeURIComponent(source)}`);
const texts = (...of) => S.axisTicks(...of).map((tick) => tick.text);

test("ticks_are_round_and_within_the_ends", () => {
  assert.deepStrictEqual(S.ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepStrictEqual(S.ticks(-0.3, 0.3, 6).map((v) => v.toFixed(1)), ["-0.3", "-0.2", "-0.1", "0.0", "0.1", "0.2", "0.3"]);
  assert.deepStrictEqual(S.ticks(5, 5, 4), []);
  assert.ok(S.ticks(-0.4, 1, 3).every((tick) => !Object.is(tick, -0)));
  for (const [from, to, count] of [[0, 1e-9, 4], [1e15, 1e15 + 4, 3], [-7, 1e6, 9], [0.123, 0.124, 5]]) {
    const found = S.ticks(from, to, count);
    assert.ok(found.length >= 2 && found.length <= count + 1.5, `${found} of ${from} to ${to}`);
    assert.ok(found.every((v, i) => v >= from - 1e-12 && v <= to + 1e-9 && (i === 0 || v > found[i - 1])));
  }
});

test("logarithmic_ticks_follow_the_span", () => {
  assert.deepStrictEqual(S.logTicks(1, 1e6, 7), [1, 10, 100, 1000, 1e4, 1e5, 1e6]);
  assert.deepStrictEqual(S.logTicks(0.9, 110, 8), [1, 2, 5, 10, 20, 50, 100]);
  assert.deepStrictEqual(S.logTicks(20, 60, 4), [20, 30, 40, 50, 60].filter((v) => v % 10 === 0));
  assert.deepStrictEqual(S.logTicks(0, 10, 4), []);
});

test("each_nine_of_a_percentile_has_equal_space_and_the_maximum_one_more", () => {
  const scale = S.scaleOf("percentile", 99.9);
  const places = [0, 90, 99, 99.9, 100].map((v) => Math.round(scale.place(v) * 1e6) / 1e6);
  assert.deepStrictEqual(places, [0, 1, 2, 3, 4]);
  for (const value of [0, 12.5, 99.9, 100]) assert.ok(Math.abs(scale.value(scale.place(value)) - value) < 1e-9);
  assert.deepStrictEqual(texts(scale, 0, 4, 9), ["0", "50", "90", "99", "99.9", "max"]);
});

test("labels_have_the_digits_that_their_step_needs", () => {
  const linear = S.scaleOf("linear");
  assert.deepStrictEqual(texts(linear, 0, 1, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
  assert.deepStrictEqual(texts(linear, 0, 4000, 4), ["0", "1,000", "2,000", "3,000", "4,000"]);
  assert.deepStrictEqual(texts(linear, 0, 3e6, 3, "prefix"), ["0", "1M", "2M", "3M"]);
  assert.deepStrictEqual(texts(linear, 1e6, 1.5e6, 5, "prefix"), ["1M", "1.1M", "1.2M", "1.3M", "1.4M", "1.5M"]);
  assert.deepStrictEqual(texts(S.scaleOf("log"), -2, 3, 6), ["0.01", "0.1", "1", "10", "100", "1,000"]);
  assert.deepStrictEqual([0, 0.00123456, 12.345, 12345.6, NaN].map((v) => S.figure(v)), ["0", "0.00123", "12.3", "12,346", ""]);
});

test("the_nearest_point_is_found_by_halving", () => {
  const flat = S.pairs([[0, 5], [1, 6], [4, 7]]);
  assert.deepStrictEqual([-1, 0.4, 0.6, 2.4, 2.6, 9].map((x) => S.nearest(flat, x)), [0, 0, 1, 1, 2, 2]);
  assert.strictEqual(S.nearest(S.pairs([]), 1), -1);
  assert.strictEqual(S.pairs(flat), flat);
});

test("labels_are_pushed_apart_within_their_bounds", () => {
  assert.deepStrictEqual(S.pushedApart([5, 50, 6], 10, 0, 100), [5, 50, 15]);
  assert.deepStrictEqual(S.pushedApart([98, 99], 10, 0, 100), [90, 100]);
});

test("a_thinned_line_keeps_its_ends_and_outliers", () => {
  const flat = new Float64Array(20000);
  for (let i = 0; i < 10000; i += 1) [flat[2 * i], flat[2 * i + 1]] = [i / 100, i === 5555 ? -9 : i % 7];
  const kept = S.visibleOf(flat);
  assert.ok(kept.length <= 400 && kept.includes(0) && kept.includes(9999) && kept.includes(5555), `${kept.length}`);
  assert.ok(kept.every((v, i) => i === 0 || v > kept[i - 1]));
});

test("a_view_stays_within_the_whole", () => {
  assert.deepStrictEqual(S.within([-5, 5], [0, 100]), [0, 10]);
  assert.deepStrictEqual(S.within([95, 115], [0, 100]), [80, 100]);
  assert.deepStrictEqual(S.within([-50, 500], [0, 100]), [0, 100]);
  const [from, to] = S.within([50, 50], [0, 100]);
  assert.ok(to - from > 9e-6);
});
