// @ts-check
// Drawing: the frame of a chart (margins, ticks, grid) and its marks, as SVG or, when there are many, on a canvas.

import { axisTicks, countOf, firstFrom, inkOnHex, pairs, pushedApart, scaleOf, visibleOf } from "./scales.js";

/** @typedef {import("./scales.js").Points} Points */
/** @typedef {import("./scales.js").Scale} Scale */
/** @typedef {import("./scales.js").ScaleKind} ScaleKind */
/** @typedef {import("./scales.js").Tick} Tick */

/**
 * An index of the palette (`--series-0` and so on), a CSS colour, or a colour for each theme.
 * @typedef {number | string | { light: string, dark: string }} Colour
 */

/**
 * One axis.
 * @typedef {object} Axis
 * @property {string} [label] what it shows, without the unit
 * @property {string} [unit] such as "MB/s"
 * @property {ScaleKind} [scale] "linear" unless given
 * @property {readonly [number, number]} [range] the ends in values; by default those of the shown series
 * @property {ReadonlyArray<Tick>} [ticks] ticks in place of the computed ones
 * @property {ReadonlyArray<string>} [categories] names of the rows 0, 1, ... of bars and spans, from the top
 * @property {"plain" | "prefix"} [format] labels of ticks: 1,500,000 or 1.5M
 * @property {number} [digits] significant digits of values beside the crosshair: 4 unless given
 */

/**
 * A set of marks with a name and a colour.
 * @typedef {object} Series
 * @property {string | number} key identifies it when hidden; several series may share one
 * @property {string} name the name in the legend, the crosshair and the table
 * @property {Colour} colour the colour of its marks
 * @property {number | "solid" | "dash" | "dot"} [dash] the pattern of its line: 0, 1, 2
 * @property {Points} [points] lines, steps and dots: (x, y), rising in x; bars: (length, row)
 * @property {ReadonlyArray<readonly [number, number, number]>} [spans] start, end and lane of each span
 * @property {ReadonlyArray<string>} [texts] the text of each point beside the crosshair in place of its x, or on each bar
 */

/**
 * The content of a chart.
 * @typedef {object} ChartSpec
 * @property {"line" | "step" | "scatter" | "bars" | "spans"} kind the form of the marks; bars are horizontal and stacked
 * @property {string} title the accessible name
 * @property {string} [description] a sentence for screen readers: what the chart shows
 * @property {Axis} x the horizontal axis
 * @property {Axis} y the vertical axis
 * @property {ReadonlyArray<Series>} series the marks, in the order in which they are drawn
 * @property {number} [height] in px; 260 unless given
 * @property {string} [group] charts of one group show the same x range
 * @property {boolean} [legend] true for a legend with buttons above the chart
 * @property {boolean} [endLabels] true for the name of each line at its end where there is room, else in a key below
 * @property {boolean} [markers] true for a dot at each point of a line
 * @property {ReadonlyArray<{ x: number, text: string }>} [marks] vertical lines with a text, such as the moment of a film
 * @property {(hidden: Set<string | number>) => void} [onHidden] called when the reader hides or shows series by the legend
 * @property {(x: [number, number] | null) => void} [onZoom] called when the reader changes the x range; null for the whole
 */

/**
 * Pixels of the parts of a chart, and the conversions of values to pixels.
 * @typedef {object} Frame
 * @property {number} width
 * @property {number} height
 * @property {number} left
 * @property {number} right the right end of the plot from the left
 * @property {number} top
 * @property {number} bottom the bottom of the plot from the top
 * @property {Scale} xScale
 * @property {Scale} yScale
 * @property {[number, number]} x the shown positions
 * @property {[number, number]} y the shown positions
 * @property {(value: number) => number} px
 * @property {(value: number) => number} py
 * @property {Tick[]} xTicks
 * @property {Tick[]} yTicks
 */

const SVG = "http://www.w3.org/2000/svg";
/** Above this many marks a canvas draws them. */
const SVG_MARKS_MAX = 3000;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif';
const LABEL_HEIGHT = 16;
/** The least width of a plot with labels at the ends of its lines. */
const LABELS_WIDTH = 560;

/** @type {CanvasRenderingContext2D | null | undefined} */
let ruler;

/**
 * The width of a text in px.
 * @param {string} text
 */
export function widthOf(text) {
  if (ruler === undefined) {
    ruler = document.createElement("canvas").getContext("2d");
    if (ruler) ruler.font = FONT;
  }
  return ruler ? ruler.measureText(text).width : text.length * 6.6;
}

/**
 * A text of at most `most` characters.
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  const letters = Array.from(text);
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/**
 * The CSS colour of a series.
 * @param {Colour} colour
 */
export function cssColour(colour) {
  if (typeof colour === "number") return `var(--series-${colour % 16})`;
  return typeof colour === "string" ? colour : `light-dark(${colour.light}, ${colour.dark})`;
}

/**
 * The pattern of a line for `stroke-dasharray`.
 * @param {Series["dash"]} dash
 */
export function dashOf(dash) {
  if (dash === 1 || dash === "dash") return "7 4";
  return dash === 2 || dash === "dot" ? "2 3" : "";
}

/**
 * Adds an SVG element.
 * @param {Element} parent
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {string} [text]
 * @returns {SVGElement}
 */
export function add(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

/**
 * The label of an axis with its unit.
 * @param {Axis} axis
 */
export const axisTitle = (axis) => [axis.label, axis.unit].filter(Boolean).join(", ");

/**
 * The lowest and highest values of shown series.
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {0 | 1} which 0 for x, 1 for y
 * @returns {[number, number] | null}
 */
function extent(spec, shown, which) {
  let [low, high] = [Infinity, -Infinity];
  const take = (/** @type {number} */ v) => {
    if (v < low) low = v;
    if (v > high) high = v;
  };
  const isLog = (which ? spec.y : spec.x).scale === "log";
  if (spec.kind === "bars") {
    if (which) return [-0.5, Math.max(0.5, (spec.y.categories || []).length - 0.5)];
    /** @type {number[]} */
    const sums = [];
    for (const series of shown) {
      const flat = pairs(series.points);
      for (let i = 0; i < flat.length; i += 2) sums[flat[i + 1]] = (sums[flat[i + 1]] || 0) + flat[i];
    }
    return [0, Math.max(0, ...sums.filter((v) => v > 0)) || 1];
  }
  for (const series of shown) {
    for (const span of series.spans || []) {
      if (which) take(span[2]);
      else [span[0], span[1]].forEach(take);
    }
    const flat = pairs(series.points);
    for (let i = which; i < flat.length; i += 2) if (!isLog || flat[i] > 0) take(flat[i]);
  }
  return low <= high ? [low, high] : null;
}

/**
 * The whole range of an axis as positions.
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {Scale} scale
 * @param {0 | 1} which 0 for x, 1 for y
 * @returns {[number, number]}
 */
export function wholeRange(spec, shown, scale, which) {
  const axis = which ? spec.y : spec.x;
  if (axis.range) return [scale.place(axis.range[0]), scale.place(axis.range[1])];
  if (which && spec.kind === "spans") {
    const found = extent(spec, shown, 1);
    return [-0.6, Math.max((axis.categories || []).length, found ? found[1] + 1 : 1) - 0.4];
  }
  const values = extent(spec, shown, which) || (scale.kind === "log" ? [1, 10] : [0, 1]);
  let [low, high] = [scale.place(values[0]), scale.place(values[1])];
  if (spec.kind === "bars") return which ? [low, high] : [low, high * 1.005];
  // Rates and latencies begin at 0; positions do not.
  if (which && scale.kind === "linear" && spec.kind !== "scatter") [low, high] = [Math.min(0, low), high > 0 ? high * 1.06 : high];
  else {
    const room = (high - low) * (which ? 0.04 : 0.01) || Math.abs(high) * 0.01 || 0.5;
    [low, high] = [low - room, high + room];
  }
  return high > low ? [low, high] : [low, low + 1];
}

/**
 * The scales of a chart.
 * @param {ChartSpec} spec
 * @returns {{ x: Scale, y: Scale }}
 */
export function scalesOf(spec) {
  let top = 0;
  if (spec.x.scale === "percentile") {
    for (const series of spec.series) {
      const flat = pairs(series.points);
      for (let i = 0; i < flat.length; i += 2) if (flat[i] < 100) top = Math.max(top, flat[i]);
    }
  }
  return { x: scaleOf(spec.x.scale || "linear", top), y: scaleOf(spec.y.scale || "linear") };
}

/**
 * Lays out a chart.
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {{ x: [number, number], y: [number, number] }} view the shown positions
 * @param {number} width
 * @param {number} height
 * @returns {Frame}
 */
export function frameOf(spec, shown, view, width, height) {
  const { x: xScale, y: yScale } = scalesOf(spec);
  const isRows = spec.kind === "bars" || spec.kind === "spans";
  const top = spec.marks && spec.marks.length ? 22 : 10;
  const bottom = Math.max(top + 20, height - 40);
  /** @type {Tick[]} */
  let yTicks;
  if (spec.y.ticks) yTicks = spec.y.ticks.slice();
  else if (isRows) {
    const names = spec.y.categories || [];
    const most = width < 500 ? 14 : 22;
    const every = Math.ceil((names.length * 13) / (bottom - top));
    yTicks = names.map((name, at) => ({ at, text: shortened(name, most) })).filter((tick) => tick.at % every === 0);
  } else yTicks = axisTicks(yScale, view.y[0], view.y[1], Math.max(2, (bottom - top) / 38), spec.y.format);
  const inside = (/** @type {Scale} */ scale, /** @type {[number, number]} */ range) => (/** @type {Tick} */ t) => {
    const place = scale.place(t.at);
    return place >= range[0] - 1e-9 && place <= range[1] + 1e-9;
  };
  yTicks = yTicks.filter(inside(yScale, view.y));
  const left = Math.ceil(Math.max(18, ...yTicks.map((t) => widthOf(t.text)))) + (axisTitle(spec.y) ? 28 : 12);
  const labels = hasEndLabels(spec, shown, width);
  const longest = labels ? Math.max(...shown.map((s) => widthOf(shortened(s.name, 28)))) : 0;
  const right = Math.max(left + 40, width - (labels ? 34 + longest : 14));
  const scaled = (/** @type {[number, number]} */ r, /** @type {number} */ a, /** @type {number} */ b) => (b - a) / (r[1] - r[0]);
  const xFactor = scaled(view.x, left, right);
  const yFactor = scaled(view.y, top, bottom);
  const px = (/** @type {number} */ v) => left + (xScale.place(v) - view.x[0]) * xFactor;
  const py = (/** @type {number} */ v) => (isRows ? top + (v - view.y[0]) * yFactor : bottom - (yScale.place(v) - view.y[0]) * yFactor);
  /** @type {Tick[]} */
  let xTicks = [];
  if (spec.x.ticks) xTicks = spec.x.ticks.slice();
  else {
    // As many ticks as have room for their labels.
    for (let count = Math.max(2, (right - left) / 60); count >= 1; count -= 1) {
      xTicks = axisTicks(xScale, view.x[0], view.x[1], count, spec.x.format);
      const needed = Math.max(0, ...xTicks.map((t) => widthOf(t.text))) + 14;
      if (xTicks.length < 3 || (right - left) / (xTicks.length - 1) >= needed) break;
    }
  }
  xTicks = xTicks.filter(inside(xScale, view.x));
  return { width, height, left, right, top, bottom, xScale, yScale, x: view.x, y: view.y, px, py, xTicks, yTicks };
}

/**
 * True if names stand at the ends of lines.
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {number} width
 */
export function hasEndLabels(spec, shown, width) {
  return Boolean(spec.endLabels) && shown.length > 1 && shown.length <= 24 && width >= LABELS_WIDTH;
}

/**
 * Draws grid, ticks and titles.
 * @param {SVGElement} svg
 * @param {ChartSpec} spec
 * @param {Frame} frame
 */
export function drawAxes(svg, spec, frame) {
  const { left, right, top, bottom, height } = frame;
  const isRows = spec.kind === "bars" || spec.kind === "spans";
  const grid = add(svg, "path", { class: "grid" });
  const lines = frame.xTicks.map((t) => `M${Math.round(frame.px(t.at)) + 0.5},${top}V${bottom}`);
  if (!isRows) lines.push(...frame.yTicks.map((t) => `M${left},${Math.round(frame.py(t.at)) + 0.5}H${right}`));
  grid.setAttribute("d", lines.join(""));
  add(svg, "path", { class: "axis", d: `M${left},${bottom + 0.5}H${right}` });
  const labels = add(svg, "g", { class: "ticks" });
  for (const t of frame.xTicks) {
    const half = widthOf(t.text) / 2;
    const x = Math.min(Math.max(frame.px(t.at), half), frame.width - half);
    add(labels, "text", { x: x.toFixed(1), y: bottom + 16, "text-anchor": "middle" }, t.text);
  }
  for (const t of frame.yTicks) add(labels, "text", { x: left - 7, y: (frame.py(t.at) + 4).toFixed(1), "text-anchor": "end" }, t.text);
  const middle = ((left + right) / 2).toFixed(1);
  if (axisTitle(spec.x)) add(svg, "text", { class: "title x", x: middle, y: height - 6, "text-anchor": "middle" }, axisTitle(spec.x));
  if (axisTitle(spec.y)) {
    const y = (top + bottom) / 2;
    const size = Math.min(12, (12 * (bottom - top + 24)) / Math.max(1, widthOf(axisTitle(spec.y))));
    const node = add(svg, "text", { class: "title y", x: 13, y, "text-anchor": "middle", transform: `rotate(-90 13 ${y})` }, axisTitle(spec.y));
    if (size < 12) node.style.fontSize = `${size.toFixed(1)}px`;
  }
  for (const mark of spec.marks || []) {
    const x = frame.px(mark.x);
    if (x < left || x > right) continue;
    add(svg, "path", { class: "mark", d: `M${x.toFixed(1)},${top - 6}V${bottom}` });
    add(svg, "text", { class: "marked", x: x.toFixed(1), y: top - 9, "text-anchor": x > (left + right) / 2 ? "end" : "start" }, mark.text);
  }
}

/**
 * The points of a line in px, those just outside the view included.
 * @param {Series} series
 * @param {Frame} frame
 * @returns {Float64Array}
 */
function linePixels(series, frame) {
  const flat = pairs(series.points);
  const n = flat.length >> 1;
  const from = Math.max(0, firstFrom(flat, frame.xScale.value(frame.x[0])) - 1);
  const to = Math.min(n, firstFrom(flat, frame.xScale.value(frame.x[1])) + 1);
  const pixels = new Float64Array(Math.max(0, to - from) * 2);
  for (let i = from; i < to; i += 1) {
    pixels[2 * (i - from)] = frame.px(flat[2 * i]);
    pixels[2 * (i - from) + 1] = frame.py(flat[2 * i + 1]);
  }
  return pixels;
}

/**
 * The path of a line.
 * @param {Float64Array} pixels
 * @param {boolean} isStep
 */
function linePath(pixels, isStep) {
  const kept = pixels.length > 4000 ? visibleOf(pixels) : Array.from({ length: pixels.length >> 1 }, (_, i) => i);
  let path = "";
  let isOpen = false;
  for (const i of kept) {
    const [x, y] = [pixels[2 * i], pixels[2 * i + 1]];
    if (!Number.isFinite(y)) {
      isOpen = false;
      continue;
    }
    const [tx, ty] = [x.toFixed(1), y.toFixed(1)];
    path += isOpen ? (isStep ? `H${tx}V${ty}` : `L${tx},${ty}`) : `M${tx},${ty}`;
    isOpen = true;
  }
  return path;
}

/**
 * The height of a lane or bar in px.
 * @param {Frame} frame
 */
export const rowHeight = (frame) => (frame.bottom - frame.top) / Math.max(1e-9, frame.y[1] - frame.y[0]);

/**
 * The path of spans that are in view, each at least a pixel wide.
 * @param {Series} series
 * @param {Frame} frame
 */
function spansPath(series, frame) {
  const half = Math.max(1, rowHeight(frame) * 0.31);
  let path = "";
  for (const [from, to, lane] of series.spans || []) {
    const [a, b] = [Math.max(frame.left, frame.px(from)), Math.min(frame.right, frame.px(to))];
    if (b < frame.left || a > frame.right) continue;
    const y = frame.py(lane);
    path += `M${a.toFixed(1)},${(y - half).toFixed(1)}H${Math.max(b, a + 1).toFixed(1)}V${(y + half).toFixed(1)}H${a.toFixed(1)}z`;
  }
  return path;
}

/**
 * A segment of a bar with its row.
 * @typedef {{ series: Series, row: number, index: number, from: number, to: number }} Segment
 */

/**
 * The segments of stacked bars.
 * @param {ReadonlyArray<Series>} shown
 * @returns {Segment[]}
 */
export function segments(shown) {
  /** @type {number[]} */
  const ends = [];
  /** @type {Segment[]} */
  const list = [];
  for (const series of shown) {
    const flat = pairs(series.points);
    for (let i = 0; i < flat.length; i += 2) {
      const row = flat[i + 1];
      const from = ends[row] || 0;
      ends[row] = from + Math.max(0, flat[i]);
      list.push({ series, row, index: i / 2, from, to: ends[row] });
    }
  }
  return list;
}

/**
 * Draws the marks.
 * @param {SVGElement} svg
 * @param {HTMLCanvasElement} canvas
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {Frame} frame
 * @param {string} clip the id of the clip path
 * @returns {boolean} true if the canvas holds the marks
 */
export function drawMarks(svg, canvas, spec, shown, frame, clip) {
  const count = shown.reduce((n, s) => n + (s.spans ? s.spans.length : spec.kind === "scatter" ? countOf(s.points || []) : 0), 0);
  if (count > SVG_MARKS_MAX) {
    drawOnCanvas(canvas, spec, shown, frame, count);
    return true;
  }
  const marks = add(svg, "g", { class: "marks", "clip-path": `url(#${clip})` });
  if (spec.kind === "bars") {
    drawBars(marks, shown, frame);
    return false;
  }
  for (const series of shown) {
    const colour = cssColour(series.colour);
    if (spec.kind === "line" || spec.kind === "step") {
      const pixels = linePixels(series, frame);
      const line = add(marks, "path", { class: "line", d: linePath(pixels, spec.kind === "step"), "data-key": series.key });
      line.style.stroke = colour;
      line.style.strokeDasharray = dashOf(series.dash);
      if (spec.markers || pixels.length === 2) add(marks, "path", { class: "dots", d: dotsPath(pixels, 2.4) }).style.fill = colour;
    } else {
      const path = spec.kind === "spans" ? spansPath(series, frame) : dotsPath(linePixels(series, frame), 1.6);
      add(marks, "path", { class: spec.kind, d: path, "data-key": series.key }).style.fill = colour;
    }
  }
  return false;
}

/**
 * @param {Float64Array} pixels
 * @param {number} r
 */
function dotsPath(pixels, r) {
  let path = "";
  for (let i = 0; i < pixels.length; i += 2) {
    if (Number.isFinite(pixels[i + 1])) path += `M${(pixels[i] - r).toFixed(1)},${pixels[i + 1].toFixed(1)}a${r},${r} 0 1 0 ${2 * r},0a${r},${r} 0 1 0 ${-2 * r},0`;
  }
  return path;
}

/**
 * @param {SVGElement} marks
 * @param {ReadonlyArray<Series>} shown
 * @param {Frame} frame
 */
function drawBars(marks, shown, frame) {
  const half = rowHeight(frame) * 0.33;
  for (const { series, row, index, from, to } of segments(shown)) {
    const [a, b] = [frame.px(from), frame.px(to)];
    if (!(b > a)) continue;
    const y = frame.py(row);
    const colour = cssColour(series.colour);
    const place = { x: a.toFixed(1), y: (y - half).toFixed(1), width: (b - a).toFixed(1), height: (2 * half).toFixed(1) };
    add(marks, "rect", { class: "bar", "data-key": series.key, ...place }).style.fill = colour;
    const text = series.texts && series.texts[index];
    if (!text || widthOf(text) + 6 > b - a) continue;
    const label = add(marks, "text", { class: "inside", x: ((a + b) / 2).toFixed(1), y: (y + 4).toFixed(1), "text-anchor": "middle" }, text);
    label.style.fill = inkOn(series.colour);
  }
}

/**
 * Black or white, whichever has more contrast with a colour, in each theme.
 * @param {Colour} colour
 */
export function inkOn(colour) {
  if (typeof colour === "number") return `var(--on-series-${colour % 16})`;
  if (typeof colour === "string") return /^#[0-9a-f]{6}$/i.test(colour) ? inkOnHex(colour) : "var(--ink)";
  return `light-dark(${inkOnHex(colour.light)}, ${inkOnHex(colour.dark)})`;
}

/**
 * The colour that a CSS colour has within an element now, for a canvas.
 * @param {HTMLElement} within
 * @param {string} colour
 */
export function resolved(within, colour) {
  const before = within.style.color;
  within.style.color = colour;
  const found = getComputedStyle(within).color;
  within.style.color = before;
  return found;
}

/**
 * Marks as squares and bars on the canvas. It is as sharp as the screen.
 * @param {HTMLCanvasElement} canvas
 * @param {ChartSpec} spec
 * @param {ReadonlyArray<Series>} shown
 * @param {Frame} frame
 * @param {number} count
 */
function drawOnCanvas(canvas, spec, shown, frame, count) {
  const sharp = Math.min(3, Math.max(1, window.devicePixelRatio || 1));
  canvas.width = Math.round(frame.width * sharp);
  canvas.height = Math.round(frame.height * sharp);
  const ctx = canvas.getContext("2d");
  if (!ctx) return;
  ctx.scale(sharp, sharp);
  ctx.beginPath();
  ctx.rect(frame.left, frame.top - 2, frame.right - frame.left, frame.bottom - frame.top + 4);
  ctx.clip();
  const size = count > 8000 ? 2 : 3;
  for (const series of shown) {
    ctx.fillStyle = resolved(canvas, cssColour(series.colour));
    if (spec.kind === "spans") {
      ctx.fill(new Path2D(spansPath(series, frame)));
      continue;
    }
    const pixels = linePixels(series, frame);
    for (let i = 0; i < pixels.length; i += 2) ctx.fillRect(pixels[i] - size / 2, pixels[i + 1] - size / 2, size, size);
  }
}

/**
 * Draws the name of each line at its end, moved apart where ends are close.
 * @param {SVGElement} svg
 * @param {ReadonlyArray<Series>} shown
 * @param {Frame} frame
 */
export function drawEndLabels(svg, shown, frame) {
  const last = (/** @type {Series} */ s) => {
    const flat = pairs(s.points);
    return flat.length ? frame.py(flat[flat.length - 1]) : frame.bottom;
  };
  const ends = pushedApart(shown.map((s) => Math.min(frame.bottom, Math.max(frame.top, last(s)))), LABEL_HEIGHT, frame.top, frame.bottom);
  const labels = add(svg, "g", { class: "ends" });
  shown.forEach((series, i) => {
    const y = ends[i];
    const key = add(labels, "path", { class: "line", d: `M${frame.right + 5},${y.toFixed(1)}h18` });
    key.style.stroke = cssColour(series.colour);
    key.style.strokeDasharray = dashOf(series.dash);
    key.style.strokeWidth = "3px";
    add(labels, "text", { x: frame.right + 28, y: (y + 4).toFixed(1) }, shortened(series.name, 28));
  });
}
