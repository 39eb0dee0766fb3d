// The heat map. Grafana publishes no component for it, so the cells are painted here, into Grafana's plot with Grafana's axes.

import { FieldType, formattedValueToString, getValueFormat, type DataFrame } from "@grafana/data";
import { AxisPlacement, ScaleDirection, ScaleOrientation } from "@grafana/schema";
import { UPlotChart, UPlotConfigBuilder, VizLayout, useTheme2 } from "@grafana/ui";
import * as schemes from "d3-scale-chromatic";
import { useMemo, type ReactElement } from "react";
import type uPlot from "uplot";
import { timeRange, type Props } from "./panels";

/** The legend: a strip of colours between the least and the largest count. */
function Scale({ colours, most }: { colours: string[]; most: number }): ReactElement {
  const style = { width: 120, height: 10, background: `linear-gradient(to right, ${colours.join(", ")})` };
  return <div style={{ display: "flex", gap: 8, alignItems: "center", fontSize: 12 }}><span>0</span><span style={style} /><span>{most.toPrecision(2)}</span></div>;
}

/** The colours of a scheme, from few to many: on a dark ground from dark to bright. */
function scheme(name: string, steps: number, isDark: boolean): string[] {
  const interpolate = (schemes as unknown as Record<string, (at: number) => string>)[`interpolate${name}`];
  if (!interpolate) throw new Error(`the scheme of colours ${name} is not known`);
  const at = (step: number) => step / (steps - 1);
  return Array.from({ length: steps }, (_, step) => interpolate(isDark ? 1 - at(step) : at(step)));
}

export function HeatMap({ panel, frames, recorded, width, height }: Props): ReactElement {
  const theme = useTheme2();
  const { color, yAxis, cellGap } = panel.options;
  const colours = useMemo(() => scheme(color.scheme, color.steps, theme.isDark), [theme]);
  const frame = frames[0];
  const rows = frame.fields.filter((field) => field.type === FieldType.number);
  const times: number[] = frame.fields[0].values;
  const most = Math.max(...rows.flatMap((field) => field.values as number[]));
  const config = useMemo(() => {
    const builder = new UPlotConfigBuilder("utc");
    const range = timeRange(recorded);
    const unit = getValueFormat(yAxis.unit);
    const label = (name: string) => (name === "+Inf" ? name : formattedValueToString(unit(Number(name))));
    builder.addScale({ scaleKey: "x", isTime: true, orientation: ScaleOrientation.Horizontal, direction: ScaleDirection.Right, range: () => [range.from.valueOf(), range.to.valueOf()] });
    builder.addScale({ scaleKey: "y", orientation: ScaleOrientation.Vertical, direction: ScaleDirection.Up, range: [0, rows.length] });
    builder.addAxis({ scaleKey: "x", isTime: true, placement: AxisPlacement.Bottom, timeZone: "utc", theme });
    // The upper bound of a bucket stands at its upper edge.
    builder.addAxis({
      scaleKey: "y", placement: AxisPlacement.Left, theme, grid: { show: false }, splits: rows.map((_, row) => row + 1),
      values: rows.map((field, row) => (row % 3 === 2 ? label(field.name) : "")),
    });
    builder.addSeries({ scaleKey: "y", theme, pathBuilder: () => null, pointsBuilder: () => undefined, lineColor: "transparent" } as never);
    builder.addHook("draw", (plot: uPlot) => paint(plot, frame, (count) => colours[Math.min(colours.length - 1, Math.floor((count / most) ** color.exponent * colours.length))], recorded.step, cellGap));
    return builder;
  }, [frame, theme]);
  const legend = panel.options.legend.show ? <VizLayout.Legend placement="bottom"><Scale colours={colours} most={most} /></VizLayout.Legend> : null;
  return (
    <VizLayout width={width} height={height} legend={legend}>
      {(inner, tall) => <UPlotChart config={config} data={[times, times.map(() => 0)]} width={inner} height={tall} />}
    </VizLayout>
  );
}

/** Paints a rectangle for each count that is not zero. */
function paint(plot: uPlot, frame: DataFrame, colour: (count: number) => string, step: number, gap: number): void {
  const { ctx } = plot;
  const [x, y] = [(time: number) => plot.valToPos(time, "x", true), (row: number) => plot.valToPos(row, "y", true)];
  ctx.save();
  ctx.beginPath();
  ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
  ctx.clip();
  frame.fields.filter((field) => field.type === FieldType.number).forEach((field, row) => {
    frame.fields[0].values.forEach((time: number, index: number) => {
      if (!(field.values[index] > 0)) return;
      ctx.fillStyle = colour(field.values[index]);
      ctx.fillRect(x(time - step) + gap, y(row + 1) + gap, x(time) - x(time - step) - gap, y(row) - y(row + 1) - gap);
    });
  });
  ctx.restore();
}
