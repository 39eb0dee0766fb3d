// The table and the charts of a comparison.

import { chart } from "../../crates/report/web/charts.js";
import { Legend } from "../../crates/report/web/legend.js";
import type { ChartSpec, Series } from "../../crates/report/web/draw.js";
import type { ComparisonAnswer, ComparisonDocument, ElevatorRun, Latency } from "./types.js";

type Handle = ReturnType<typeof chart>;

/** Three significant digits. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const rounded = Number(value.toPrecision(3));
  return rounded.toLocaleString("en", { minimumFractionDigits: Math.min(digits, 4), maximumFractionDigits: Math.min(digits, 4) });
}

const mb = (bytes: number) => figure(bytes / 1e6);
const msOf = (ns: number) => figure(ns / 1e6);
const percent = (part: number) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;

/** A latency of the syncs of the slowest job; not a number if no job completed one. */
function slowestSync(run: ElevatorRun, number: (sync: Latency) => number): number {
  const syncs = run.jobs.map((job) => job.sync_ns).filter((sync) => sync.n > 0);
  return syncs.length > 0 ? Math.max(...syncs.map(number)) : NaN;
}

interface Column { head: string; title: string; value: (run: ElevatorRun) => string; number: (run: ElevatorRun) => number; least?: boolean }

function columns(document: ComparisonDocument): Column[] {
  const drive: [string, keyof ElevatorRun["drive_ns"]][] = document.rotational
    ? [["seek", "seek"], ["rotation", "rotation"], ["data", "transfer"], ["idle", "idle"]]
    : [["data", "transfer"], ["idle", "idle"]];
  const syncs = document.elevators.some((run) => run.jobs.some((job) => job.sync_ns.n > 0));
  const latency = (head: string, title: string, number: (run: ElevatorRun) => number): Column => ({ head, title, value: (run) => msOf(number(run)), number, least: true });
  return [
    { head: "MB/s", title: "bytes a second of all processes", value: (run) => mb(run.bytes_per_s), number: (run) => run.bytes_per_s },
    { head: "of one stream", title: "share of the bandwidth of one process of the first job alone", value: (run) => percent(run.of_single_stream), number: (run) => run.of_single_stream },
    { head: "slowest–fastest", title: "what processes get, in MB/s", value: (run) => `${mb(run.process_bytes_per_s.min)}–${mb(run.process_bytes_per_s.max)}`, number: (run) => run.process_bytes_per_s.min },
    { head: "Jain", title: "index of fairness: 1 when all processes are equal", value: (run) => (run.jain === null ? "–" : run.jain.toFixed(3)), number: (run) => run.jain ?? NaN },
    latency("mean ms", "mean time of a request", (run) => run.latency_ns.mean),
    latency("p50 ms", "half of the requests take at most", (run) => run.latency_ns.p50),
    latency("p99 ms", "99 of 100 requests take at most", (run) => run.latency_ns.p99),
    latency("max ms", "the longest request", (run) => run.latency_ns.max),
    ...(syncs ? [
      latency("sync p99 ms", "99 of 100 fsyncs and fdatasyncs of the slowest job take at most", (run) => slowestSync(run, (sync) => sync.p99)),
      latency("sync max ms", "the longest fsync or fdatasync", (run) => slowestSync(run, (sync) => sync.max)),
    ] : []),
    ...drive.map(([head, key]): Column => {
      const number = (run: ElevatorRun) => run.drive_ns[key] / Math.max(run.runtime_ns, 1);
      return { head, title: "share of the drive's time", value: (run) => percent(number(run)), number, least: key !== "transfer" };
    }),
  ];
}

/** The run that is marked in a column: the best one, unless another shows the same figure or a job starves under it. */
function best(column: Column, runs: ElevatorRun[]): ElevatorRun | undefined {
  const found = runs.filter((run) => Number.isFinite(column.number(run)));
  const isBetter = (a: number, b: number) => (column.least ? a < b : a > b);
  const [first, ...others] = found;
  if (!first || runs.length < 2) return undefined;
  const most = others.reduce((a, b) => (isBetter(column.number(b), column.number(a)) ? b : a), first);
  const isTie = found.some((run) => run !== most && column.value(run) === column.value(most));
  return isTie || most.starves ? undefined : most;
}

/** The name, the figures and the marks of each row of the table of elevators. */
export function elevatorRows(found: ComparisonDocument): { name: string; cells: string[]; best: boolean[] }[] {
  const all = columns(found);
  const marked = all.map((column) => best(column, found.elevators));
  return found.elevators.map((run) => ({
    name: run.starves ? `${run.name} !` : run.name,
    cells: all.map((column) => column.value(run)),
    best: marked.map((one) => one === run),
  }));
}

function cell<Name extends "th" | "td">(name: Name, text: string, title?: string): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  node.textContent = text;
  if (title) node.title = title;
  return node;
}

function table(caption: string, heads: { head: string; title: string }[], rows: { name: string; cells: string[]; best: boolean[] }[]): HTMLElement {
  const made = document.createElement("table");
  const text = made.createCaption();
  text.textContent = caption;
  const head = made.createTHead().insertRow();
  for (const { head: name, title } of heads) head.append(Object.assign(cell("th", name, title), { scope: "col" }));
  const body = made.createTBody();
  for (const { name, cells, best } of rows) {
    const row = body.insertRow();
    row.append(Object.assign(cell("th", name), { scope: "row" }));
    cells.forEach((value, index) => {
      const td = cell("td", best[index] ? `${value} *` : value);
      if (best[index]) td.className = "best";
      row.append(td);
    });
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", caption);
  scroll.append(made);
  return scroll;
}

/** Draws the tables into an element. */
export function drawTables(element: HTMLElement, answer: ComparisonAnswer, found: ComparisonDocument): void {
  const parts: Node[] = [
    table("Elevators", [{ head: "elevator", title: "" }, ...columns(found)], elevatorRows(found)),
    Object.assign(document.createElement("p"), { className: "note", textContent: answer.legend }),
  ];
  const jobs = found.elevators[0]?.jobs ?? [];
  if (jobs.length > 1) {
    const heads = found.elevators.map((run) => ({ head: `${run.name}: MB/s, p99 ms`, title: "" }));
    const jobRows = jobs.map((job, index) => ({
      name: job.processes > 1 ? `${job.name} × ${job.processes}` : job.name,
      cells: found.elevators.map((run) => {
        const of = run.jobs[index];
        const sync = of && of.sync_ns.n > 0 ? `, sync p99 ${msOf(of.sync_ns.p99)}` : "";
        return of ? `${mb(of.bytes_per_s)}, ${msOf(of.latency_ns.p99)}${sync}${of.starved ? " !" : ""}` : "–";
      }),
      best: [],
    }));
    parts.push(table("Jobs", [{ head: "job", title: "" }, ...heads], jobRows));
    parts.push(Object.assign(document.createElement("p"), { className: "note", textContent: answer.jobs_legend }));
  }
  for (const note of found.notes) parts.push(Object.assign(document.createElement("p"), { className: "note", textContent: `Note: ${note}` }));
  element.replaceChildren(...parts);
}

/** The rates of a process up to the end of its last window: each point is the begin of a window. */
export function closed(points: [number, number][]): [number, number][] {
  const [last, before] = [points.at(-1), points.at(-2)];
  return last && before ? [...points, [2 * last[0] - before[0], last[1]]] : points;
}

/** The specifications of the charts of a comparison. */
export function specs(answer: ComparisonAnswer, found: ComparisonDocument): ChartSpec[] {
  const { processes, elevators } = answer.charts;
  const rotational = found.rotational;
  const shown = elevators.map((run) => run.rates.map(closed));
  const seconds = Math.max(...shown.flat(2).map(([at]) => at), ...elevators.flatMap((run) => run.head.map(([at]) => at)), 0.1);
  const time = { label: "time", unit: "s", range: [0, seconds] as const };
  const most = Math.max(...elevators.flatMap((run) => run.rates.flatMap((rates) => rates.map(([, rate]) => rate))), 1) / 1e6;
  const rates = elevators.map((run, place): ChartSpec => ({
    kind: "step",
    title: `${run.name}: throughput of each process`,
    x: time,
    y: { label: "throughput", unit: "MB/s", range: [0, most * 1.05] },
    height: 190,
    group: "time",
    series: (shown[place] ?? []).slice(0, 16).map((points, index): Series => ({
      key: index,
      name: processes[index]?.[1] ?? `process ${index}`,
      colour: index,
      points: points.map(([at, rate]) => [at, rate / 1e6] as const),
    })),
  }));
  const latency: ChartSpec = {
    kind: "line",
    title: "Latency by percentile",
    x: { label: "percent of requests", unit: "%", scale: "percentile" },
    y: { label: "latency at most", unit: "ms", scale: "log" },
    height: 260,
    legend: true,
    series: elevators.map((run, index): Series => ({
      key: run.name,
      name: run.name,
      colour: index,
      dash: index % 3,
      points: run.percentiles.filter(([, ns]) => ns > 0).map(([percentile, ns]) => [percentile, ns / 1e6] as const),
    })),
  };
  const heads = elevators.map((run): ChartSpec => ({
    kind: "scatter",
    title: `${run.name}: ${rotational ? "head positions" : "sectors of requests"}`,
    x: time,
    y: { label: "position", unit: "GiB" },
    height: 190,
    group: "time",
    series: [...processes.map(([, name], index) => ({ name, index })), { name: "write-back", index: -1 }]
      .map(({ name, index }): Series => ({
        key: index,
        name,
        colour: index < 0 ? "var(--quiet)" : index,
        points: run.head.filter(([, , process]) => process === index).map(([at, sector]) => [at, (sector * 512) / 2 ** 30] as const),
      }))
      .filter((series) => (series.points?.length ?? 0) > 0),
  }));
  return [...rates, latency, ...heads];
}

/** Draws charts into an element; those of an earlier result are removed. The charts of processes share one legend. */
export function drawCharts(element: HTMLElement, list: ChartSpec[], before: Handle[], title: "h3" | "p" = "h3"): Handle[] {
  for (const handle of before) handle.destroy();
  const nodes = list.map((spec) => {
    const section = document.createElement("div");
    section.className = "chart-card";
    const place = document.createElement("div");
    section.append(Object.assign(document.createElement(title), { className: "chart-title", textContent: spec.title }), place);
    return { section, place, spec };
  });
  element.replaceChildren(...nodes.map((node) => node.section));
  const handles = nodes.map((node) => chart(node.place, node.spec));
  const first = nodes.find((node) => node.spec.group === "time");
  if (first) first.section.before(sharedLegend(handles.filter((handle) => handle.spec().group === "time")));
  return handles;
}

/** The legend of charts that show the same processes. */
function sharedLegend(handles: Handle[]): HTMLElement {
  // The style of a legend is that within a chart.
  const root = Object.assign(document.createElement("div"), { className: "chart shared-legend" });
  const place = root.appendChild(document.createElement("div"));
  const processes = handles.flatMap((handle) => handle.spec().series);
  const show = (hidden: ReadonlySet<string | number>) => legend.show("Processes of the charts", processes, hidden);
  const legend = new Legend(place, (hidden) => {
    for (const handle of handles) handle.setHidden(hidden);
    show(hidden);
  });
  show(new Set());
  return root;
}
