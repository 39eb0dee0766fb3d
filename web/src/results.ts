// The table and the charts of a comparison.

import { chart } from "../../crates/report/web/charts.js";
import type { ChartSpec, Series } from "../../crates/report/web/draw.js";
import type { ComparisonAnswer, ComparisonDocument, ElevatorRun } from "./types.js";

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

interface Column { head: string; title: string; value: (run: ElevatorRun) => string; number?: (run: ElevatorRun) => number; least?: boolean }

function columns(document: ComparisonDocument): Column[] {
  const share = (key: keyof ElevatorRun["drive_ns"]) => (run: ElevatorRun) => percent(run.drive_ns[key] / Math.max(run.runtime_ns, 1));
  const drive: [string, keyof ElevatorRun["drive_ns"]][] = document.rotational
    ? [["seek", "seek"], ["rotation", "rotation"], ["data", "transfer"], ["idle", "idle"]]
    : [["data", "transfer"], ["idle", "idle"]];
  return [
    { head: "MB/s", title: "bytes a second of all processes", value: (run) => mb(run.bytes_per_s), number: (run) => run.bytes_per_s },
    { head: "of one stream", title: "share of the bandwidth of one process of the first job alone", value: (run) => percent(run.of_single_stream) },
    { head: "slowest–fastest", title: "what processes get, in MB/s", value: (run) => `${mb(run.process_bytes_per_s.min)}–${mb(run.process_bytes_per_s.max)}`, number: (run) => run.process_bytes_per_s.min },
    { head: "Jain", title: "index of fairness: 1 when all processes are equal", value: (run) => (run.jain === null ? "–" : run.jain.toFixed(2)) },
    { head: "mean ms", title: "mean time of a request", value: (run) => msOf(run.latency_ns.mean), number: (run) => run.latency_ns.mean, least: true },
    { head: "p99 ms", title: "99 of 100 requests take at most", value: (run) => msOf(run.latency_ns.p99), number: (run) => run.latency_ns.p99, least: true },
    { head: "max ms", title: "the longest request", value: (run) => msOf(run.latency_ns.max), number: (run) => run.latency_ns.max, least: true },
    ...drive.map(([head, key]) => ({ head, title: "share of the drive's time", value: share(key) })),
  ];
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
  const all = columns(found);
  const fed = found.elevators.filter((run) => !run.starves);
  const isBest = (column: Column, run: ElevatorRun): boolean => {
    const { number } = column;
    if (!number || found.elevators.length < 2 || (run.starves && fed.length > 0)) return false;
    const values = (fed.length ? fed : found.elevators).map(number);
    return number(run) === (column.least ? Math.min(...values) : Math.max(...values));
  };
  const rows = found.elevators.map((run) => ({
    name: run.starves ? `${run.name} !` : run.name,
    cells: all.map((column) => column.value(run)),
    best: all.map((column) => isBest(column, run)),
  }));
  const parts: Node[] = [
    table("Elevators", [{ head: "elevator", title: "" }, ...all], rows),
    Object.assign(document.createElement("p"), { className: "note", textContent: answer.legend }),
  ];
  const jobs = found.elevators[0]?.jobs ?? [];
  if (jobs.length > 1) {
    const heads = found.elevators.map((run) => ({ head: `${run.name}: MB/s, p99 ms`, title: "" }));
    const jobRows = jobs.map((job, index) => ({
      name: job.processes > 1 ? `${job.name} × ${job.processes}` : job.name,
      cells: found.elevators.map((run) => {
        const of = run.jobs[index];
        return of ? `${mb(of.bytes_per_s)}, ${msOf(of.latency_ns.p99)}${of.starved ? " !" : ""}` : "–";
      }),
      best: [],
    }));
    parts.push(table("Jobs", [{ head: "job", title: "" }, ...heads], jobRows));
    parts.push(Object.assign(document.createElement("p"), { className: "note", textContent: answer.jobs_legend }));
  }
  for (const note of found.notes) parts.push(Object.assign(document.createElement("p"), { className: "note", textContent: `Note: ${note}` }));
  element.replaceChildren(...parts);
}

/** The specifications of the charts of a comparison. */
export function specs(answer: ComparisonAnswer, rotational: boolean): ChartSpec[] {
  const { processes, elevators } = answer.charts;
  const seconds = Math.max(...elevators.flatMap((run) => run.rates.flatMap((rates) => rates.map(([at]) => at))), 0.1);
  const time = { label: "time", unit: "s", range: [0, seconds] as const };
  const most = Math.max(...elevators.flatMap((run) => run.rates.flatMap((rates) => rates.map(([, rate]) => rate))), 1) / 1e6;
  const rates = elevators.map((run): ChartSpec => ({
    kind: "step",
    title: `${run.name}: throughput of each process`,
    x: time,
    y: { label: "throughput", unit: "MB/s", range: [0, most * 1.05] },
    height: 190,
    group: "time",
    legend: true,
    series: run.rates.slice(0, 16).map((points, index): Series => ({
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

/** Draws charts into an element; those of an earlier result are removed. */
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
  return nodes.map((node) => chart(node.place, node.spec));
}
