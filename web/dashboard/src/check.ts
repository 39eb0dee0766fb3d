// Looks for panels that are not drawn, or drawn badly.

import { FieldType, type DataFrame, type Field } from "@grafana/data";
import type { Panel, Recorded } from "./types";

export interface Drawn {
  panel: Panel;
  frames: DataFrame[];
  /** What is wrong before it is drawn. */
  problems: string[];
}

export interface Found {
  /** The number of panels that have a value and are drawn. */
  drawn: number;
  /** The titles of panels without a value. */
  empty: string[];
  problems: string[];
}

/** Windows narrower than this have one panel a row. */
export const PHONE = 769;

/** The smallest text of a value in px. */
const FONT_MIN = 14;
/** The lines of values at the least of an axis extend so far below the plot. */
const EDGE = 3;

export function check(all: Drawn[], recorded: Recorded): Found {
  const found: Found = { drawn: 0, empty: [], problems: [] };
  for (const { panel, frames, problems: before } of all.filter(({ panel }) => panel.type !== "row")) {
    const node = document.querySelector<HTMLElement>(`[data-panel="${panel.id}"]`);
    const problems = [...before, ...(node ? problemsOf(node, panel, frames) : ["is not on the page"])];
    const isEmpty = !!node?.querySelector("[data-empty]");
    const hasValue = recorded.answers.some((answer) => answer.panel === panel.id && answer.series.length > 0);
    if (isEmpty && hasValue) problems.push("shows no data, but Prometheus has a value");
    if (isEmpty) found.empty.push(panel.title);
    else if (!problems.length) found.drawn += 1;
    found.problems.push(...problems.map((problem) => `${panel.title}: ${problem}`));
  }
  return found;
}

function problemsOf(node: HTMLElement, panel: Panel, frames: DataFrame[]): string[] {
  const problems = [...node.querySelectorAll("[data-problem]")].map((one) => one.textContent!);
  const title = node.querySelector("h2")!;
  if (title.scrollWidth > title.clientWidth) problems.push("the title is cut off");
  if (node.querySelector("[data-problem], [data-empty]")) return problems;
  return [...problems, ...(panel.type === "stat" ? ofValues(node) : ofPlot(node, panel, frames))];
}

function ofValues(node: HTMLElement): string[] {
  const texts = [...node.querySelectorAll<HTMLElement>("section span, section div")].filter((one) => one.childElementCount === 0 && one.textContent);
  const hasText = texts.length > 0 && !texts.some((one) => /No data|undefined|NaN/.test(one.textContent!));
  const isSmall = texts.some((one) => parseFloat(getComputedStyle(one).fontSize) < FONT_MIN);
  const isCut = texts.some((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0);
  return [...(hasText ? [] : ["no value"]), ...(isSmall ? ["the text is too small"] : []), ...(isCut ? ["the text is cut off"] : [])];
}

/** A plot needs something within its axes, and a legend an entry for each series. */
function ofPlot(node: HTMLElement, panel: Panel, frames: DataFrame[]): string[] {
  const canvas = node.querySelector("canvas");
  const area = node.querySelector(".u-over");
  if (!canvas || !area) return ["no plot"];
  const [outer, inner] = [canvas.getBoundingClientRect(), area.getBoundingClientRect()];
  const scale = canvas.width / outer.width;
  const { data } = canvas.getContext("2d")!.getImageData((inner.x - outer.x) * scale, (inner.y - outer.y) * scale, inner.width * scale, inner.height * scale + EDGE);
  const colours = new Set<number>();
  for (let at = 0; at < data.length; at += 4) {
    const [red, green, blue, alpha] = data.subarray(at, at + 4);
    // Lines and cells have a colour; the grid is grey.
    if (alpha > 128 && Math.max(red, green, blue) - Math.min(red, green, blue) > 40) colours.add((red << 16) | (green << 8) | blue);
  }
  const problems = colours.size ? [] : ["the plot is empty"];
  if (inner.height < 60) problems.push(`the plot is only ${Math.round(inner.height)} px tall`);
  if (panel.options.legend.showLegend) {
    const isListed = (field: Field) => field.type === FieldType.number && !field.config.custom?.hideFrom?.legend;
    const series = frames.flatMap((frame) => frame.fields).filter(isListed).length;
    const listed = node.querySelectorAll("[data-testid*='VizLegend series']");
    const entries = listed.length;
    if (entries !== series) problems.push(`${entries} entries in the legend for ${series} series`);
    // The list of a phone scrolls.
    const isCut = [...listed].some((entry) => entry.getBoundingClientRect().bottom > node.getBoundingClientRect().bottom);
    if (isCut && innerWidth >= PHONE) problems.push("the legend does not fit");
  }
  return problems;
}
