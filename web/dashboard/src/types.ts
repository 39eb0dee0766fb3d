// What the page reads: the dashboard, and the answers that `cargo xtask check-monitoring` recorded.

import type { DataTransformerConfig, FieldConfigSource } from "@grafana/data";

export interface Dashboard {
  title: string;
  panels: Panel[];
}

export interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets: Target[];
  fieldConfig: FieldConfigSource;
  options: Record<string, any>;
  transformations?: DataTransformerConfig[];
}

export interface Target {
  refId: string;
  legendFormat: string;
  format?: string;
}

/** Times and the step of range queries are in milliseconds. */
export interface Recorded {
  from: number;
  to: number;
  step: number;
  answers: Answer[];
}

export interface Answer {
  panel: number;
  target: string;
  series: Series[];
}

/** A series as Prometheus answers it: seconds and a number as text. */
export interface Series {
  metric: Record<string, string>;
  value?: [number, string];
  values?: [number, string][];
}
