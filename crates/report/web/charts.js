// @ts-check
// The charts of all pages: one function draws a chart into an element and handles pointer, touch and keyboard. Colours are
// custom properties of CSS (`--chart`, `--ink`, `--quiet`, `--grid`, `--rule`, `--link`, `--series-0` ... `--series-15`),
// which `style_sheet()` of the report crate writes, so that a change of the theme needs no script.
//
//   const handle = chart(element, { kind: "line", title: "Rate", x: { label: "time", unit: "s" }, y: { label: "rate", unit: "MB/s" },
//     series: [{ key: 0, name: "bfq", colour: 0, points: [[0, 1], [1, 3]] }] });
//   handle.update({ ...spec, series: [...] });
//
// Drag: zoom (Shift: move). Double click, Escape or 0: everything. Arrow keys: crosshair (Shift: move). + and -: zoom. Ctrl and
// the wheel, or two fingers: zoom.

import { figure, nearest, pairs, within } from "./scales.js";
import { add, axisTitle, cssColour, drawAxes, drawEndLabels, drawMarks, frameOf, hasEndLabels, resolved, rowHeight, scalesOf, segments, wholeRange } from "./draw.js";
import { Legend, make } from "./legend.js";

/** @typedef {import("./draw.js").Axis} Axis */
/** @typedef {import("./draw.js").ChartSpec} ChartSpec */
/** @typedef {import("./draw.js").Colour} Colour */
/** @typedef {import("./draw.js").Frame} Frame */
/** @typedef {import("./draw.js").Series} Series */

/**
 * A drawn chart.
 * @typedef {object} ChartHandle
 * @property {(spec: ChartSpec) => void} update draws other content; the zoom stays
 * @property {() => void} resize draws again at the size of the element
 * @property {() => void} destroy removes the chart
 * @property {(keys: Set<string | number>) => void} setHidden hides the series with these keys
 * @property {() => Set<string | number>} hidden the keys of hidden series
 * @property {(x: [number, number] | null) => void} zoom shows a range of x values, null everything; the group follows
 * @property {() => [number, number]} range the shown range of x values
 * @property {() => string} svg the chart as an SVG picture in the colours of the current theme
 * @property {() => ChartSpec} spec the content
 */

/** The most rows of the table of a chart. */
const TABLE_ROWS_MAX = 1000;
/** The most lines of the box beside the crosshair. */
const BOX_LINES_MAX = 10;

/** @type {Set<Chart>} */
const charts = new Set();
let ids = 0;

/**
 * Draws a chart into an element and returns its handle.
 * @param {HTMLElement} element
 * @param {ChartSpec} spec
 * @returns {ChartHandle}
 */
export function chart(element, spec) {
  const made = new Chart(element, spec);
  return {
    update: (next) => made.update(next),
    resize: () => made.draw(),
    destroy: () => made.destroy(),
    setHidden: (keys) => made.setHidden(keys),
    hidden: () => new Set(made.hidden),
    zoom: (x) => made.zoomTo(x && [made.frame.xScale.place(x[0]), made.frame.xScale.place(x[1])], null),
    range: () => [made.frame.xScale.value(made.frame.x[0]), made.frame.xScale.value(made.frame.x[1])],
    svg: () => made.picture(),
    spec: () => made.spec,
  };
}

class Chart {
  /**
   * @param {HTMLElement} element
   * @param {ChartSpec} spec
   */
  constructor(element, spec) {
    this.spec = spec;
    this.element = element;
    this.id = `chart-${(ids += 1)}`;
    /** @type {Set<string | number>} */
    this.hidden = new Set();
    /** @type {[number, number] | null} */
    this.x = null;
    /** @type {[number, number] | null} */
    this.y = null;
    /** @type {number | null} the position of the crosshair */
    this.cross = null;
    /** @type {Map<number, { x: number, y: number }>} */
    this.fingers = new Map();
    /** @type {{ x: number, y: number, moves: boolean, range: [number, number] } | null} */
    this.drag = null;
    this.root = make("div", "chart");
    this.names = make("div", "legend");
    this.legend = new Legend(this.names, (hidden) => {
      this.setHidden(hidden);
      if (this.spec.onHidden) this.spec.onHidden(hidden);
    });
    this.plot = make("div", "plot-area");
    this.canvas = make("canvas", "");
    this.svgNode = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    this.overlay = /** @type {SVGSVGElement} */ (document.createElementNS("http://www.w3.org/2000/svg", "svg"));
    this.overlay.classList.add("overlay");
    this.box = make("div", "box");
    this.box.hidden = true;
    this.live = make("p", "unseen");
    this.live.setAttribute("role", "status");
    this.key = make("p", "key");
    this.tools = make("div", "tools");
    this.table = make("div", "scroll data");
    this.table.hidden = true;
    this.plot.tabIndex = 0;
    this.plot.setAttribute("role", "application");
    this.plot.setAttribute("aria-roledescription", "chart");
    this.svgNode.setAttribute("aria-hidden", "true");
    this.overlay.setAttribute("aria-hidden", "true");
    this.plot.append(this.svgNode, this.canvas, this.overlay, this.box);
    this.root.append(this.names, this.plot, this.tools, this.key, this.live, this.table);
    element.replaceChildren(this.root);
    for (const other of charts) if (spec.group && other.spec.group === spec.group) this.x = other.x;
    charts.add(this);
    this.frame = this.layout();
    this.makeTools();
    this.listen();
    this.update(spec);
  }

  shown() {
    return this.spec.series.filter((series) => !this.hidden.has(series.key));
  }

  layout() {
    const shown = this.shown();
    const scales = scalesOf(this.spec);
    this.whole = { x: wholeRange(this.spec, shown, scales.x, 0), y: wholeRange(this.spec, shown, scales.y, 1) };
    const view = { x: this.x || this.whole.x, y: this.y || this.whole.y };
    return frameOf(this.spec, shown, view, Math.max(160, this.root.clientWidth || 600), this.spec.height || 260);
  }

  /** @param {ChartSpec} spec */
  update(spec) {
    this.spec = spec;
    this.plot.setAttribute("aria-label", [spec.title, spec.description].filter(Boolean).join(". "));
    this.showLegend();
    this.draw();
    if (!this.table.hidden) this.fillTable();
  }

  draw() {
    const { spec, svgNode } = this;
    const shown = this.shown();
    const frame = (this.frame = this.layout());
    this.plot.style.height = `${frame.height}px`;
    for (const svg of [svgNode, this.overlay]) {
      svg.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
      svg.setAttribute("width", String(frame.width));
      svg.setAttribute("height", String(frame.height));
    }
    svgNode.replaceChildren();
    const clip = add(svgNode, "clipPath", { id: `${this.id}-clip` });
    const [w, h] = [frame.right - frame.left, frame.bottom - frame.top];
    add(clip, "rect", { x: frame.left - 3, y: frame.top - 3, width: w + 6, height: h + 6 });
    drawAxes(svgNode, spec, frame);
    this.canvas.hidden = !drawMarks(svgNode, this.canvas, spec, shown, frame, `${this.id}-clip`);
    const labels = hasEndLabels(spec, shown, frame.width);
    if (labels) drawEndLabels(svgNode, shown, frame);
    this.key.hidden = !spec.endLabels || labels || Boolean(spec.legend);
    if (!this.key.hidden) {
      this.key.replaceChildren(...shown.map((series) => {
        const line = make("span", "");
        line.append(swatch(series.colour), series.name);
        return line;
      }));
    }
    this.root.classList.toggle("zoomed", Boolean(this.x || this.y));
    this.showCross();
  }

  showLegend() {
    this.names.hidden = !this.spec.legend;
    if (!this.spec.legend) return;
    this.legend.show(`Series of ${this.spec.title}`, this.spec.series, this.hidden);
  }

  /** @param {Set<string | number>} keys */
  setHidden(keys) {
    this.hidden = new Set(keys);
    this.showLegend();
    this.draw();
  }

  // ---- Zoom.

  /**
   * @param {[number, number] | null} x positions
   * @param {[number, number] | null} y positions
   */
  zoomTo(x, y) {
    const outer = this.whole ? this.whole.x : this.frame.x;
    const wanted = x && within(x, outer);
    this.x = wanted && wanted[1] - wanted[0] < (outer[1] - outer[0]) * (1 - 1e-9) ? wanted : null;
    this.y = y;
    this.draw();
    for (const other of charts) {
      if (other === this || !this.spec.group || other.spec.group !== this.spec.group) continue;
      other.x = this.x;
      other.draw();
    }
    const values = /** @type {[number, number] | null} */ (this.x && this.x.map(this.frame.xScale.value));
    if (this.spec.onZoom) this.spec.onZoom(values);
  }

  /**
   * Shows `factor` times the range, with the point at `at` in place.
   * @param {number} factor
   * @param {number} [at] a position
   */
  scaleBy(factor, at) {
    const [from, to] = this.frame.x;
    const fixed = at === undefined ? (from + to) / 2 : at;
    this.zoomTo([fixed - (fixed - from) * factor, fixed + (to - fixed) * factor], this.y);
  }

  /** @param {number} part */
  moveBy(part) {
    const [from, to] = this.frame.x;
    this.zoomTo([from + part * (to - from), to + part * (to - from)], this.y);
  }

  /** @param {number} px */
  placeAt(px) {
    const { x, left, right } = this.frame;
    return x[0] + ((px - left) / (right - left)) * (x[1] - x[0]);
  }

  listen() {
    const at = (/** @type {MouseEvent} */ event) => {
      const box = this.plot.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    const { plot } = this;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      const point = at(event);
      this.fingers.set(event.pointerId, point);
      if (event.pointerType === "mouse") {
        this.drag = { ...point, moves: event.shiftKey, range: this.frame.x };
        plot.setPointerCapture(event.pointerId);
      } else this.point(point.x, point.y);
    });
    plot.addEventListener("pointermove", (event) => {
      const point = at(event);
      const before = this.fingers.get(event.pointerId);
      if (before && this.fingers.size === 2) {
        const other = Array.from(this.fingers.entries()).find(([id]) => id !== event.pointerId);
        if (other) this.pinch(before.x, point.x, other[1].x);
      }
      if (before) this.fingers.set(event.pointerId, point);
      if (this.drag && this.drag.moves) {
        const { x, range } = this.drag;
        const by = ((x - point.x) / (this.frame.right - this.frame.left)) * (range[1] - range[0]);
        this.zoomTo([range[0] + by, range[1] + by], this.y);
      } else if (this.drag) this.showDrag(point);
      else this.point(point.x, point.y);
    });
    const end = (/** @type {PointerEvent} */ event) => {
      this.fingers.delete(event.pointerId);
      const { drag } = this;
      this.drag = null;
      if (!drag || drag.moves || event.type === "pointercancel") return;
      this.finishDrag(drag, at(event));
    };
    plot.addEventListener("pointerup", end);
    plot.addEventListener("pointercancel", end);
    // A finger that was lifted leaves the values in view.
    plot.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && this.leave());
    plot.addEventListener("blur", () => this.leave());
    plot.addEventListener("dblclick", () => this.zoomTo(null, null));
    plot.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.scaleBy(event.deltaY > 0 ? 1.25 : 0.8, this.placeAt(at(event).x));
    }, { passive: false });
    plot.addEventListener("keydown", (event) => this.onKey(event));
    this.sizes = new ResizeObserver(() => {
      const width = this.root.clientWidth;
      if (width && Math.abs(width - this.frame.width) >= 1) this.draw();
    });
    this.sizes.observe(this.root);
    this.themes = () => this.canvas.hidden || this.draw();
    document.addEventListener("themechange", this.themes);
    this.printing = () => this.draw();
    addEventListener("beforeprint", this.printing);
  }

  destroy() {
    charts.delete(this);
    if (this.sizes) this.sizes.disconnect();
    if (this.themes) document.removeEventListener("themechange", this.themes);
    if (this.printing) removeEventListener("beforeprint", this.printing);
    this.root.remove();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
    if (event.key === "+" || event.key === "=") this.scaleBy(0.6, this.cross ?? undefined);
    else if (event.key === "-") this.scaleBy(1 / 0.6, this.cross ?? undefined);
    else if (event.key === "0" || event.key === "Home") this.zoomTo(null, null);
    else if (event.key === "Escape") {
      if (this.cross !== null) this.leave();
      this.zoomTo(null, null);
    } else if (step && event.shiftKey) this.moveBy(0.2 * step);
    else if (step) this.stepCross(step);
    else return;
    event.preventDefault();
  }

  /**
   * @param {number} before
   * @param {number} now
   * @param {number} other
   */
  pinch(before, now, other) {
    const factor = Math.abs(before - other) / Math.max(10, Math.abs(now - other));
    this.scaleBy(Math.min(2, Math.max(0.5, factor)), this.placeAt(other));
  }

  /**
   * The part of a drag that zooms: both axes, or only the longer direction of a flat or steep one.
   * @param {{ x: number, y: number }} from
   * @param {{ x: number, y: number }} to
   */
  dragged(from, to) {
    const { left, right, top, bottom } = this.frame;
    const inX = (/** @type {number} */ v) => Math.min(right, Math.max(left, v));
    const inY = (/** @type {number} */ v) => Math.min(bottom, Math.max(top, v));
    const [x0, x1] = [inX(Math.min(from.x, to.x)), inX(Math.max(from.x, to.x))];
    const [y0, y1] = [inY(Math.min(from.y, to.y)), inY(Math.max(from.y, to.y))];
    const isRows = this.spec.kind === "bars" || this.spec.kind === "spans";
    const tall = y1 - y0 >= 24 && !isRows;
    const broad = x1 - x0 >= 8;
    return { x0: broad ? x0 : left, x1: broad ? x1 : right, y0: tall ? y0 : top, y1: tall ? y1 : bottom, tall, broad };
  }

  /** @param {{ x: number, y: number }} to */
  showDrag(to) {
    if (!this.drag) return;
    const { x0, x1, y0, y1, tall, broad } = this.dragged(this.drag, to);
    this.overlay.replaceChildren();
    this.box.hidden = true;
    if (tall || broad) add(this.overlay, "rect", { class: "drag", x: x0, y: y0, width: x1 - x0, height: y1 - y0 });
  }

  /**
   * @param {{ x: number, y: number }} from
   * @param {{ x: number, y: number }} to
   */
  finishDrag(from, to) {
    this.overlay.replaceChildren();
    const { x0, x1, y0, y1, tall, broad } = this.dragged(from, to);
    if (!tall && !broad) return this.point(to.x, to.y);
    const { y, top, bottom } = this.frame;
    const level = (/** @type {number} */ px) => y[0] + ((bottom - px) / (bottom - top)) * (y[1] - y[0]);
    this.zoomTo(broad ? [this.placeAt(x0), this.placeAt(x1)] : this.x, tall ? [level(y1), level(y0)] : this.y);
  }

  // ---- The crosshair and the box with the values at it.

  leave() {
    this.cross = null;
    this.overlay.replaceChildren();
    this.box.hidden = true;
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  point(x, y) {
    const { left, right, top, bottom } = this.frame;
    if (x < left - 4 || x > right + 4 || y < top - 4 || y > bottom + 4) return this.leave();
    this.cross = this.placeAt(Math.min(right, Math.max(left, x)));
    this.showCross(y);
  }

  /** @param {number} step */
  stepCross(step) {
    const [from, to] = this.frame.x;
    const fine = (to - from) / 100;
    let next = this.cross === null ? (from + to) / 2 : this.cross + step * fine;
    // From point to point where they are further apart than a step.
    if ((this.spec.kind === "line" || this.spec.kind === "step") && this.cross !== null) {
      const { place, value } = this.frame.xScale;
      const places = this.shown().flatMap((series) => {
        const flat = pairs(series.points);
        const i = nearest(flat, value(/** @type {number} */ (this.cross)));
        return [i - 1, i, i + 1].filter((k) => k >= 0 && 2 * k < flat.length).map((k) => place(flat[2 * k]));
      });
      const beyond = places.filter((p) => (p - /** @type {number} */ (this.cross)) * step > fine);
      const held = places.some((p) => Math.abs(p - /** @type {number} */ (this.cross)) < fine * 0.01);
      if (beyond.length && (held || step)) next = step > 0 ? Math.min(...beyond) : Math.max(...beyond);
    }
    this.cross = Math.min(to, Math.max(from, next));
    this.showCross();
    this.live.textContent = (this.box.textContent || "").trim();
  }

  /** @param {number} [y] the pointer in px; none with the keyboard */
  showCross(y) {
    this.overlay.replaceChildren();
    this.box.hidden = true;
    if (this.cross === null) return;
    const { frame, spec } = this;
    const x = frame.xScale.value(this.cross);
    const px = frame.px(x);
    if (px < frame.left - 1 || px > frame.right + 1) return;
    const rows = this.valuesAt(x, px, y);
    if (spec.kind !== "bars") add(this.overlay, "path", { class: "cross", d: `M${(rows.px ?? px).toFixed(1)},${frame.top}V${frame.bottom}` });
    for (const row of rows.list) {
      if (row.py === undefined || row.py < frame.top - 2 || row.py > frame.bottom + 2) continue;
      add(this.overlay, "circle", { class: "at", cx: row.px ?? px, cy: row.py, r: 4 }).style.fill = cssColour(row.colour);
    }
    if (!rows.list.length) return;
    const lines = rows.list.slice(0, BOX_LINES_MAX).map((row) => {
      const line = make("div", "");
      line.append(swatch(row.colour), make("span", "", row.name), " ", make("b", "", row.text), " ");
      return line;
    });
    if (rows.list.length > BOX_LINES_MAX) lines.push(make("div", "", `and ${rows.list.length - BOX_LINES_MAX} more`));
    this.box.replaceChildren(make("div", "head", `${rows.head} `), ...lines);
    this.box.hidden = false;
    const at = rows.px ?? px;
    const width = this.box.offsetWidth;
    const place = at + 14 + width <= frame.width ? at + 14 : Math.max(2, at - 14 - width);
    this.box.style.left = `${Math.min(place, Math.max(2, frame.width - width - 2))}px`;
    this.box.style.top = `${Math.max(frame.top, Math.min((y ?? frame.top) - 12, frame.bottom - this.box.offsetHeight))}px`;
  }

  /**
   * The values at the crosshair.
   * @param {number} x
   * @param {number} px
   * @param {number | undefined} y the pointer in px
   * @returns {{ head: string, px?: number, list: { name: string, text: string, colour: Colour, px?: number, py?: number }[] }}
   */
  valuesAt(x, px, y) {
    const { spec, frame } = this;
    const shown = this.shown();
    const value = (/** @type {Axis} */ axis, /** @type {number} */ v) => [figure(v, axis.digits || 4), axis.unit].filter(Boolean).join(" ");
    const head = [spec.x.label, value(spec.x, x)].filter(Boolean).join(" ");
    if (spec.kind === "bars") {
      const rows = segments(shown);
      const wanted = y === undefined ? 0 : Math.round(frame.y[0] + (y - frame.top) / rowHeight(frame));
      const list = rows.filter((s) => s.row === wanted && s.to > s.from).map((s) => {
        const share = s.series.texts ? `, ${s.series.texts[s.index]}` : "";
        return { name: s.series.name, text: value(spec.x, s.to - s.from) + share, colour: s.series.colour };
      });
      return { head: (spec.y.categories || [])[wanted] || "", list };
    }
    if (spec.kind === "spans") {
      const wanted = y === undefined ? null : Math.round(frame.y[0] + (y - frame.top) / rowHeight(frame));
      const reach = (frame.xScale.value(frame.x[1]) - frame.xScale.value(frame.x[0])) / Math.max(1, frame.right - frame.left);
      const list = shown.flatMap((series) => (series.spans || [])
        .filter(([from, to, lane]) => from - reach <= x && x <= to + reach && (wanted === null || lane === wanted)).slice(0, 1)
        .map(([from, to]) => ({ name: series.name, text: `${value(spec.x, to - from)} from ${value(spec.x, from)}`, colour: series.colour })));
      return { head, list };
    }
    const found = [];
    for (const series of shown) {
      const flat = pairs(series.points);
      let i = nearest(flat, x);
      if (i < 0) continue;
      if (spec.kind === "step" && i > 0 && flat[2 * i] > x) i -= 1;
      let away = 0;
      if (spec.kind === "scatter") [i, away] = this.nearestDot(flat, i, px, y);
      const [at, level] = [flat[2 * i], flat[2 * i + 1]];
      if (!Number.isFinite(level)) continue;
      found.push({ name: series.name, text: value(spec.y, level), colour: series.colour, px: frame.px(at), py: frame.py(level), at, away, label: series.texts && series.texts[i] });
    }
    if (!found.length) return { head, list: [] };
    if (spec.kind === "scatter") {
      const best = found.reduce((a, b) => (b.away < a.away ? b : a));
      if (best.away > 40) return { head, list: [] };
      return { head: [spec.x.label, value(spec.x, best.at)].filter(Boolean).join(" "), px: best.px, list: [best] };
    }
    // The points nearest to the crosshair; lines that have none there are left out.
    const best = found.reduce((a, b) => (Math.abs(b.px - px) < Math.abs(a.px - px) ? b : a));
    const list = spec.kind === "step" ? found : found.filter((row) => Math.abs(row.px - best.px) < 8);
    list.sort((a, b) => (y === undefined ? a.py - b.py : Math.abs(a.py - y) - Math.abs(b.py - y)));
    const near = list.slice(0, BOX_LINES_MAX).sort((a, b) => a.py - b.py).concat(list.slice(BOX_LINES_MAX));
    return { head: best.label || [spec.x.label, value(spec.x, spec.kind === "step" ? x : best.at)].filter(Boolean).join(" "), px: spec.kind === "step" ? px : best.px, list: near };
  }

  /**
   * The dot nearest to a pixel, among those within 40 px of it in x.
   * @param {Float64Array} flat
   * @param {number} start
   * @param {number} px
   * @param {number | undefined} y
   * @returns {[number, number]}
   */
  nearestDot(flat, start, px, y) {
    const away = (/** @type {number} */ i) => Math.hypot(this.frame.px(flat[2 * i]) - px, y === undefined ? 0 : this.frame.py(flat[2 * i + 1]) - y);
    let [best, least] = [start, away(start)];
    for (const step of [-1, 1]) {
      for (let i = start + step; i >= 0 && 2 * i < flat.length && Math.abs(this.frame.px(flat[2 * i]) - px) <= Math.min(40, least); i += step) {
        if (away(i) < least) [best, least] = [i, away(i)];
      }
    }
    return [best, least];
  }

  // ---- Tools: zoom, table, picture.

  makeTools() {
    /** @type {[string, string, () => void][]} */
    const tools = [
      ["−", "Zoom out", () => this.scaleBy(1 / 0.6)],
      ["+", "Zoom in", () => this.scaleBy(0.6)],
      ["all", "Show everything", () => this.zoomTo(null, null)],
      ["table", "Show the figures as a table", () => this.toggleTable()],
      ["SVG", "Save as an SVG picture", () => this.save("svg")],
      ["PNG", "Save as a PNG picture", () => this.save("png")],
    ];
    this.tools.setAttribute("role", "group");
    this.tools.setAttribute("aria-label", "Chart tools");
    for (const [text, title, act] of tools) {
      const button = make("button", "", text);
      button.type = "button";
      button.title = title;
      button.setAttribute("aria-label", `${title}: ${this.spec.title}`);
      button.addEventListener("click", act);
      this.tools.append(button);
    }
  }

  toggleTable() {
    this.table.hidden = !this.table.hidden;
    if (!this.table.hidden) this.fillTable();
  }

  fillTable() {
    const { spec } = this;
    const isSpans = spec.kind === "spans";
    const isBars = spec.kind === "bars";
    const heads = isSpans ? ["series", "start", "end"] : isBars ? [axisTitle(spec.y), "part", axisTitle(spec.x)] : ["series", axisTitle(spec.x), axisTitle(spec.y)];
    const table = make("table", "");
    const head = table.createTHead().insertRow();
    for (const text of heads) head.append(Object.assign(make("th", "", text), { scope: "col" }));
    const body = table.createTBody();
    let all = 0;
    const row = (/** @type {string[]} */ cells) => {
      all += 1;
      if (all > TABLE_ROWS_MAX) return;
      const line = body.insertRow();
      cells.forEach((cell, i) => line.append(i ? make("td", "", cell) : Object.assign(make("th", "", cell), { scope: "row" })));
    };
    const number = (/** @type {number} */ v) => figure(v, 7);
    for (const series of this.shown()) {
      for (const span of series.spans || []) row([series.name, number(span[0]), number(span[1])]);
      const flat = pairs(series.points);
      for (let i = 0; i < flat.length; i += 2) {
        if (isBars) row([(spec.y.categories || [])[flat[i + 1]] || "", series.name, number(flat[i])]);
        else row([series.name, (series.texts && series.texts[i / 2]) || number(flat[i]), number(flat[i + 1])]);
      }
    }
    table.createCaption().textContent = all > TABLE_ROWS_MAX ? `${spec.title}: the first ${TABLE_ROWS_MAX} of ${all} rows` : spec.title;
    this.table.tabIndex = 0;
    this.table.setAttribute("role", "region");
    this.table.setAttribute("aria-label", `Figures of ${spec.title}`);
    this.table.replaceChildren(table);
  }

  /** The chart as an SVG picture with its title and the names of its series. */
  picture() {
    const { frame, svgNode, spec } = this;
    const copy = /** @type {SVGSVGElement} */ (svgNode.cloneNode(true));
    const from = svgNode.querySelectorAll("*");
    copy.querySelectorAll("*").forEach((node, i) => {
      const style = getComputedStyle(from[i]);
      const parts = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size"].map((name) => `${name}:${style.getPropertyValue(name)}`);
      node.setAttribute("style", parts.join(";"));
    });
    const [ink, paper] = [resolved(this.root, "var(--ink)"), resolved(this.root, "var(--chart)")];
    const shown = this.shown();
    const rows = spec.kind === "spans" || shown.length < 2 || shown.length > 40 ? 0 : Math.ceil(shown.length / Math.max(1, Math.floor(frame.width / 190)));
    const top = 30 + 18 * rows;
    const font = getComputedStyle(this.root).fontFamily.replace(/"/g, "'");
    const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    whole.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height + top}`);
    whole.setAttribute("width", String(frame.width));
    whole.setAttribute("height", String(frame.height + top));
    whole.setAttribute("font-family", font);
    whole.setAttribute("font-size", "12");
    add(whole, "rect", { width: frame.width, height: frame.height + top, fill: paper });
    add(whole, "text", { x: 12, y: 20, fill: ink, "font-size": 15, "font-weight": 600 }, spec.title);
    shown.slice(0, rows ? 40 : 0).forEach((series, i) => {
      const column = Math.max(1, Math.floor(frame.width / 190));
      const [x, y] = [12 + (i % column) * 190, 30 + 18 * Math.floor(i / column)];
      add(whole, "rect", { x, y: y + 2, width: 11, height: 11, rx: 3, fill: resolved(this.root, cssColour(series.colour)) });
      add(whole, "text", { x: x + 17, y: y + 12, fill: ink }, series.name.slice(0, 24));
    });
    const inner = add(whole, "g", { transform: `translate(0 ${top})` });
    inner.append(...copy.childNodes);
    if (!this.canvas.hidden) add(inner, "image", { href: this.canvas.toDataURL(), width: frame.width, height: frame.height });
    return new XMLSerializer().serializeToString(whole);
  }

  /** @param {"svg" | "png"} form */
  async save(form) {
    const name = this.spec.title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "chart";
    const picture = new Blob([this.picture()], { type: "image/svg+xml" });
    const address = URL.createObjectURL(picture);
    if (form === "svg") download(address, `${name}.svg`);
    else {
      const image = new Image();
      image.src = address;
      await image.decode();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [image.width * 2, image.height * 2];
      const context = canvas.getContext("2d");
      if (context) context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => {
        if (!blob) return;
        const png = URL.createObjectURL(blob);
        download(png, `${name}.png`);
        setTimeout(() => URL.revokeObjectURL(png), 10000);
      });
    }
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }
}

/**
 * A square of a series' colour.
 * @param {Colour} colour
 */
function swatch(colour) {
  const node = make("i", "");
  node.style.background = cssColour(colour);
  node.setAttribute("aria-hidden", "true");
  return node;
}

/**
 * @param {string} address
 * @param {string} name
 */
function download(address, name) {
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
}
