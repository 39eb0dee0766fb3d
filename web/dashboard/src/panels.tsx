// The contents of a panel, with the component that Grafana has for its type.

import {
  VizOrientation, dateTime, getDisplayValueAlignmentFactors, getFieldDisplayValues,
  type DataFrame, type FieldDisplay, type TimeRange,
} from "@grafana/data";
import { BigValue, TimeSeries, VizRepeater, useTheme2 } from "@grafana/ui";
import type { ReactElement } from "react";
import { keep } from "./frames";
import { HeatMap } from "./heatmap";
import type { Panel, Recorded } from "./types";

export interface Props {
  panel: Panel;
  frames: DataFrame[];
  recorded: Recorded;
  width: number;
  height: number;
}

export const TYPES: Record<string, (props: Props) => ReactElement> = { heatmap: HeatMap, stat: Stat, timeseries: Lines };

export function timeRange({ from, to }: Recorded): TimeRange {
  const [start, end] = [dateTime(from), dateTime(to)];
  return { from: start, to: end, raw: { from: start, to: end } };
}

/** The legend of a panel as Grafana completes it. */
function legend(panel: Panel) {
  return { calcs: [], ...panel.options.legend };
}

function Lines({ panel, frames, recorded, width, height }: Props): ReactElement {
  return (
    <TimeSeries
      frames={frames} structureRev={1} timeRange={timeRange(recorded)} timeZone="utc" legend={legend(panel)} options={panel.options}
      width={width} height={height}
    />
  );
}

function Stat({ panel, frames, width, height }: Props): ReactElement {
  const theme = useTheme2();
  const { options, fieldConfig } = panel;
  const values = getFieldDisplayValues({
    fieldConfig, reduceOptions: options.reduceOptions, replaceVariables: keep, sparkline: options.graphMode !== "none", data: frames,
    theme, timeZone: "utc",
  });
  return (
    <VizRepeater<FieldDisplay, ReturnType<typeof getDisplayValueAlignmentFactors>>
      getValues={() => values} getAlignmentFactors={getDisplayValueAlignmentFactors} source={frames} renderCounter={0} autoGrid
      orientation={options.orientation as VizOrientation} width={width} height={height}
      renderValue={({ value, width, height, alignmentFactors, count }) => (
        <BigValue
          value={value.display} sparkline={value.sparkline} count={count} alignmentFactors={alignmentFactors} theme={theme}
          colorMode={options.colorMode} graphMode={options.graphMode} justifyMode={options.justifyMode} textMode={options.textMode}
          text={options.text} width={width} height={height}
        />
      )}
    />
  );
}
