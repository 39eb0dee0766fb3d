// The answers of the simulator that the page reads.

export interface Tunable { name: string; unit: string; default: number; min: number; max: number; meaning: string; trade_off: string }
export interface Elevator { name: string; kernel: string; in_linux: string; headline: string; idea: string; suits: string; tunables: Tunable[] }
export interface Drive { name: string; what: string; rpm: number | null }
export interface Example { name: string; label: string; drive: string; elevators: string[]; runtime: string | null; text: string }
export interface Catalogue {
  version: string;
  drives: { drives: Drive[] };
  elevators: { elevators: Elevator[] };
  current: string[];
  hosts: string[];
  examples: Example[];
}

export interface Latency { n: number; mean: number; p50: number; p99: number; max: number }
export interface JobRun {
  name: string; processes: number; bytes_per_s: number; process_bytes_per_s: { min: number; max: number };
  latency_ns: Latency; sync_ns: Latency; starved: object | null;
}
export interface ElevatorRun {
  name: string; bytes_per_s: number; of_single_stream: number; process_bytes_per_s: { min: number; max: number };
  jain: number | null; latency_ns: Latency; runtime_ns: number; starves: boolean; jobs: JobRun[];
  drive_ns: { overhead: number; seek: number; rotation: number; transfer: number; idle: number };
}
export interface ComparisonDocument {
  drive: string; rotational: boolean; host: string; seed: number; decided_by: string; notes: string[]; elevators: ElevatorRun[];
}
export interface ElevatorCharts {
  name: string; percentiles: [number, number][]; rates: [number, number][][];
  head: [number, number, number][]; slices: [number, number, number][];
}
export interface ComparisonAnswer {
  document: string; job: string; host: string; settings: string[]; legend: string; jobs_legend: string;
  charts: { processes: [number, string][]; elevators: ElevatorCharts[] };
}

export type StepKind = "insert" | "merge" | "join" | "issue" | "requeue" | "complete";
export interface Step { at_ns: number; kind: StepKind; request: number; pid: number; sector: number; sectors: number; is_write: boolean }
export interface Film {
  elevator: string; capacity_sectors: number; rotational: boolean; from_ns: number; until_ns: number; is_cut: boolean;
  processes: { pid: number; name: string }[]; steps: Step[]; slices: { pid: number; start_ns: number; end_ns: number; kind: string }[];
}
