// @ts-check
// Scales, ticks and number formats: pure functions, independent of the browser.

/**
 * The form of an axis. "percentile" gives each nine of a percentile (90, 99, 99.9) equal space.
 * @typedef {"linear" | "log" | "percentile"} ScaleKind
 */

/**
 * Conversion between values and positions of an axis before it is stretched to pixels.
 * @typedef {object} Scale
 * @property {ScaleKind} kind the form
 * @property {(value: number) => number} place the position of a value
 * @property {(place: number) => number} value the value at a position
 */

/**
 * A tick: a value with its label.
 * @typedef {{ at: number, text: string }} Tick
 */

/**
 * Points as x, y, x, y, ... or as pairs.
 * @typedef {Float64Array | ReadonlyArray<readonly [number, number]>} Points
 */

/**
 * Makes the scale of an axis. On a scale of percentiles 100 is at infinity; it stands one nine
 * above `top`, the highest other percentile.
 * @param {ScaleKind} kind
 * @param {number} [top]
 * @returns {Scale}
 */
export function scaleOf(kind, top = 99) {
  if (kind === "log") return { kind, place: (v) => Math.log10(v > 0 ? v : Number.MIN_VALUE), value: (p) => 10 ** p };
  if (kind === "percentile") {
    const end = Math.max(1, Math.log10(100 / (100 - Math.min(top, 99.9999999)))) + 1;
    return {
      kind,
      place: (v) => (v >= 100 ? end : Math.min(end, Math.log10(100 / (100 - v)))),
      value: (p) => (p >= end - 1e-9 ? 100 : 100 - 100 / 10 ** p),
    };
  }
  return { kind: "linear", place: (v) => v, value: (p) => p };
}

/**
 * The step of round ticks (1, 2 or 5 times a power of ten) of which at most about `count` fit a span.
 * @param {number} span
 * @param {number} count
 */
export function tickStep(span, count) {
  if (!(span > 0) || !Number.isFinite(span)) return 1;
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const digit = rough / power;
  return (digit <= 1.000001 ? 1 : digit <= 2.000001 ? 2 : digit <= 5.000001 ? 5 : 10) * power;
}

/**
 * Round values between two ends.
 * @param {number} from
 * @param {number} to
 * @param {number} count
 * @returns {number[]}
 */
export function ticks(from, to, count) {
  if (!(to > from)) return [];
  const step = tickStep(to - from, count);
  const list = [];
  // A multiple of the step, so that no error adds up; the check ends a loop beyond the precision of numbers.
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9 && list.length < 1000; n += 1) list.push(n * step || 0);
  return list;
}

/**
 * Values with 1, 2 or 5 as their only digit, or round values within less than a decade.
 * @param {number} from
 * @param {number} to
 * @param {number} count
 * @returns {number[]}
 */
export function logTicks(from, to, count) {
  if (!(from > 0) || !(to > from)) return [];
  const decades = Math.log10(to / from);
  if (decades < 0.9) return ticks(from, to, count);
  const digits = decades * 3 <= count * 1.2 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(decades / Math.max(1, count)));
  const list = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); power += 1) {
    if (power % every !== 0) continue;
    for (const digit of digits) {
      const at = Number(`${digit}e${power}`);
      if (at >= from * (1 - 1e-9) && at <= to * (1 + 1e-9)) list.push(at);
    }
  }
  return list;
}

/**
 * The percentiles 50, 90, 99, 99.9 and so on, then "max" for 100.
 * @param {Scale} scale
 * @param {number} from position of the left end
 * @param {number} to position of the right end
 * @returns {Tick[]}
 */
export function percentileTicks(scale, from, to) {
  const list = [];
  const end = scale.place(100);
  for (const at of [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999]) {
    const place = scale.place(at);
    if (place >= from - 1e-9 && place <= to + 1e-9 && place < end - 0.7) list.push({ at, text: String(at) });
  }
  if (end >= from && end <= to + 1e-9) list.push({ at: 100, text: "max" });
  return list;
}

/**
 * Number of decimals that tell multiples of a step apart.
 * @param {number} step
 */
export function decimalsOf(step) {
  return step > 0 && step < 1 ? Math.min(12, Math.ceil(-Math.log10(step) - 1e-9)) : 0;
}

/** @type {Map<string, Intl.NumberFormat>} */
const formats = new Map();

/**
 * A number with separators of thousands, and with the decimals given.
 * @param {number} value
 * @param {number} least
 * @param {number} [most]
 */
export function fixed(value, least, most = least) {
  const key = `${least},${most}`;
  let format = formats.get(key);
  if (!format) {
    format = new Intl.NumberFormat("en", { minimumFractionDigits: least, maximumFractionDigits: most });
    formats.set(key, format);
  }
  return format.format(value);
}

/**
 * A figure with three significant digits: 12,345; 12.3; 0.00123.
 * @param {number} value
 * @param {number} [digits]
 */
export function figure(value, digits = 3) {
  if (!Number.isFinite(value)) return "";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 1e-6) return value.toExponential(digits - 1);
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size) + 1e-12));
  return fixed(value, 0, Math.min(12, decimals));
}

/**
 * A number with a prefix of powers of 1000: 1.5M, 20k.
 * @param {number} value
 * @param {number} [step] the distance of neighbours, from which the number of digits follows
 */
export function prefixed(value, step = Math.abs(value) / 1000) {
  const size = Math.max(Math.abs(value), 1e-300);
  const power = Math.max(0, Math.min(4, Math.floor(Math.log10(size) / 3 + 1e-12)));
  const unit = 1000 ** power;
  return fixed(value / unit, 0, Math.min(6, decimalsOf(step / unit))) + ["", "k", "M", "G", "T"][power];
}

/**
 * Ticks of an axis with their labels.
 * @param {Scale} scale
 * @param {number} from position of one end
 * @param {number} to position of the other
 * @param {number} count about the largest number of ticks
 * @param {"plain" | "prefix"} [format]
 * @returns {Tick[]}
 */
export function axisTicks(scale, from, to, count, format = "plain") {
  if (scale.kind === "percentile") return percentileTicks(scale, from, to);
  const [a, b] = [scale.value(from), scale.value(to)];
  const isLog = scale.kind === "log" && Math.log10(b / a) >= 0.9;
  const values = scale.kind === "log" ? logTicks(a, b, count) : ticks(a, b, count);
  const step = values.length > 1 ? values[1] - values[0] : tickStep(b - a, count);
  const text = (/** @type {number} */ v) => {
    if (format === "prefix") return prefixed(v, isLog ? undefined : step);
    return isLog ? figure(v) : fixed(v, decimalsOf(step));
  };
  return values.map((at) => ({ at, text: text(at) }));
}

/**
 * Number of points.
 * @param {Points} points
 */
export function countOf(points) {
  return points instanceof Float64Array ? points.length >> 1 : points.length;
}

/**
 * Points as x, y, x, y, ...
 * @param {Points | undefined} points
 * @returns {Float64Array}
 */
export function pairs(points) {
  if (points instanceof Float64Array) return points;
  const flat = new Float64Array(points ? points.length * 2 : 0);
  if (points) for (let i = 0; i < points.length; i += 1) [flat[2 * i], flat[2 * i + 1]] = points[i];
  return flat;
}

/**
 * The index of the point whose x is nearest, in points that rise in x; -1 without points.
 * @param {Float64Array} flat
 * @param {number} x
 */
export function nearest(flat, x) {
  const n = flat.length >> 1;
  if (n === 0) return -1;
  const at = firstFrom(flat, x);
  if (at === 0) return 0;
  if (at === n) return n - 1;
  return x - flat[2 * at - 2] <= flat[2 * at] - x ? at - 1 : at;
}

/**
 * The index of the first point at or after x, in points that rise in x.
 * @param {Float64Array} flat
 * @param {number} x
 */
export function firstFrom(flat, x) {
  let [low, high] = [0, flat.length >> 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (flat[2 * middle] < x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Moves positions apart, in the order of their values, so that neighbours have at least `distance`
 * and all are within `low` and `high` if there is room.
 * @param {number[]} positions
 * @param {number} distance
 * @param {number} low
 * @param {number} high
 * @returns {number[]}
 */
export function pushedApart(positions, distance, low, high) {
  const order = positions.map((_, i) => i).sort((a, b) => positions[a] - positions[b]);
  const moved = positions.slice();
  let least = low;
  for (const i of order) {
    moved[i] = Math.max(moved[i], least);
    least = moved[i] + distance;
  }
  let most = high;
  for (const i of order.reverse()) {
    moved[i] = Math.min(moved[i], most);
    most = moved[i] - distance;
  }
  return moved;
}

/**
 * The indices of points that a line needs to look the same: the first, last, lowest and highest of
 * each pixel column. Points are in px and rise in x.
 * @param {Float64Array} flat
 * @returns {number[]}
 */
export function visibleOf(flat) {
  const n = flat.length >> 1;
  const list = [];
  for (let i = 0; i < n; ) {
    const column = Math.floor(flat[2 * i]);
    let [low, high, last] = [i, i, i];
    for (; last < n && Math.floor(flat[2 * last]) === column; last += 1) {
      if (flat[2 * last + 1] < flat[2 * low + 1]) low = last;
      if (flat[2 * last + 1] > flat[2 * high + 1]) high = last;
    }
    list.push(...new Set([i, Math.min(low, high), Math.max(low, high), last - 1]));
    i = last;
  }
  return list;
}

/**
 * A range moved and limited so that it stays within the outer range and keeps at least a
 * ten-millionth of it.
 * @param {readonly [number, number]} wanted
 * @param {readonly [number, number]} outer
 * @returns {[number, number]}
 */
export function within(wanted, outer) {
  const whole = outer[1] - outer[0];
  const width = Math.min(whole, Math.max(wanted[1] - wanted[0], whole * 1e-7));
  const from = Math.min(Math.max(wanted[0], outer[0]), outer[1] - width);
  return [from, from + width];
}

/**
 * Black or white on a colour "#rrggbb". The contrasts are equal at a luminance of 0.179.
 * @param {string} hex
 */
export function inkOnHex(hex) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
