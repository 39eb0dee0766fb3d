// Data frames from the answers of Prometheus: as Grafana's data source makes them, then with the dashboard's transformations and fields.

import {
  FieldType, applyFieldOverrides, cacheFieldDisplayNames, createDataFrame, transformDataFrame,
  type DataFrame, type GrafanaTheme2, type Labels,
} from "@grafana/data";
import { lastValueFrom } from "rxjs";
import { registry } from "./fields";
import type { Panel, Recorded, Series, Target } from "./types";

/** Variables are replaced before Prometheus is asked; names that Grafana's code sets itself are not. */
export const keep = (text: string): string => text;

export async function framesOf(panel: Panel, recorded: Recorded, theme: GrafanaTheme2): Promise<DataFrame[]> {
  const raw = panel.targets.flatMap((target) => {
    const series = recorded.answers.find((answer) => answer.panel === panel.id && answer.target === target.refId)?.series ?? [];
    return target.format === "heatmap" ? heatmap(target, series) : series.map((one) => frame(target, one, recorded.step));
  });
  const data = panel.transformations?.length ? await lastValueFrom(transformDataFrame(panel.transformations, raw)) : raw;
  const { fieldConfig } = panel;
  const frames = applyFieldOverrides({ data, fieldConfig, fieldConfigRegistry: registry, replaceVariables: keep, theme, timeZone: "utc" });
  // Colours by the names of series need the names.
  cacheFieldDisplayNames(frames);
  return frames;
}

/** The frame of a series: times and values, named by the legend of the target. */
function frame(target: Target, series: Series, step: number): DataFrame {
  const points = series.values ?? (series.value ? [series.value] : []);
  return createDataFrame({
    refId: target.refId,
    fields: [
      { name: "Time", type: FieldType.time, config: { interval: step }, values: points.map(([at]) => 1000 * at) },
      {
        name: "Value",
        type: FieldType.number,
        labels: series.metric as Labels,
        config: { displayNameFromDS: name(target.legendFormat, series.metric) },
        values: points.map(([, value]) => number(value)),
      },
    ],
  });
}

function number(text: string): number | null {
  return Number.isFinite(Number(text)) ? Number(text) : null;
}

function name(legend: string, labels: Record<string, string>): string {
  return legend.replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => labels[label] ?? "");
}

/** One frame with a field for each bucket, which counts what is not in the buckets below it. */
function heatmap(target: Target, series: Series[]): DataFrame[] {
  const bound = (one: Series) => (one.metric.le === "+Inf" ? Infinity : Number(one.metric.le));
  const sorted = [...series].sort((one, other) => bound(one) - bound(other));
  const times = [...new Set(sorted.flatMap((one) => (one.values ?? []).map(([at]) => at)))].sort((one, other) => one - other);
  if (!times.length) return [];
  let below = times.map(() => 0);
  const fields = sorted.map((one) => {
    const at = new Map(one.values?.map(([time, value]) => [time, Number(value)]));
    const here = times.map((time, index) => at.get(time) ?? below[index]);
    const values = here.map((value, index) => Math.max(0, value - below[index]));
    below = here;
    return { name: name(target.legendFormat, one.metric), type: FieldType.number, labels: one.metric, config: {}, values };
  });
  return [createDataFrame({ refId: target.refId, fields: [{ name: "Time", type: FieldType.time, values: times.map((at) => 1000 * at) }, ...fields] })];
}
