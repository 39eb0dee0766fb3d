import assert from "node:assert/strict";
import { test } from "node:test";

import { headAt, moment, reel } from "../src/film.js";
import { closed, elevatorRows, figure } from "../src/results.js";
import { command, decode, encode, filmRequest, request, type State } from "../src/state.js";
import type { ComparisonDocument, ElevatorRun, Film, Latency, Step, StepKind } from "../src/types.js";

const state: State = {
  job: "[a]\nrw=read # ü ✓\nsize=1m\n", name: "mine.fio", drive: "sata-7200-2006", elevators: ["bfq", "cfq-v3"], set: ["bfq.slice_idle=0", "noop.x=1"],
  kernel: "", seed: 7, runtime: "3s", scale: "0.5", from: 0.5, length: 2,
};

test("a link carries the whole state", () => {
  const other: State = { ...state, job: "", name: "", drive: "", elevators: [], set: [], seed: 1, runtime: "", scale: "", from: 0, length: 1 };
  assert.deepEqual(decode(`#${encode(state)}`, other), state);
});

test("a damaged link is no state, and a wrong field keeps that of the page", () => {
  assert.equal(decode("#1.%%", state), undefined);
  assert.equal(decode("#results", state), undefined);
  const wrong = `1.${btoa(JSON.stringify({ seed: "x", elevators: "bfq", drive: 3, runtime: "9s" }))}`;
  assert.deepEqual(decode(wrong, state), { ...state, runtime: "9s" });
});

test("settings of elevators that are not compared are not sent", () => {
  assert.deepEqual(request(state).set, ["bfq.slice_idle=0"]);
  assert.deepEqual(filmRequest(state, "cfq-v3").set, []);
  assert.equal(filmRequest(state, "cfq-v3").kernel, "own");
  assert.equal(filmRequest({ ...state, elevators: ["bfq", "noop"] }, "bfq").kernel, undefined);
});

test("the command holds the job and the options, quoted", () => {
  const text = command({ ...state, job: "[a]\nEOF\nsize=1m" });
  assert.match(text, /^cat > mine\.fio <<'EOF_'\n\[a\]\nEOF\nsize=1m\nEOF_\n/);
  assert.match(text, /--elevators bfq,cfq-v3 --set bfq\.slice_idle=0 --runtime 3s --scale 0\.5 --seed 7\n$/);
  assert.match(command({ ...state, name: "it's.fio" }), /'it'\\''s\.fio'/);
});

test("figures have three digits", () => {
  assert.deepEqual([0, 0.02891, 4.994, 57.16, 1234.5].map(figure), ["0", "0.0289", "4.99", "57.2", "1,230"]);
});

const step = (at_ns: number, request_: number, kind: StepKind, sector = 0): Step => ({ at_ns, kind, request: request_, pid: 1, sector, sectors: 8, is_write: false });
const film = (steps: Step[]): Film => ({
  elevator: "x", capacity_sectors: 1000, rotational: true, from_ns: 0, until_ns: 100, is_cut: false, processes: [{ pid: 1, name: "a" }], steps, slices: [],
});

test("a request waits, is in the drive, and is complete", () => {
  const found = reel(film([step(10, 1, "insert", 100), step(12, 1, "merge", 108), step(20, 1, "issue", 100), step(40, 1, "complete", 100), step(50, 1, "insert", 500), step(60, 1, "issue", 500), step(80, 1, "complete", 500)]));
  const counts = [5, 15, 30, 45, 55, 90].map((at) => { const now = moment(found, at); return [now.waiting.length, now.inDrive.length, now.done]; });
  assert.deepEqual(counts, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 2]]);
  assert.equal(headAt(found, 40), 108);
  assert.equal(headAt(found, 60), 108 + 400 / 2);
  assert.equal(headAt(found, 99), 508);
});

test("a request without an insertion goes to the drive at once", () => {
  const now = moment(reel(film([step(10, 1, "issue"), step(20, 1, "complete")])), 15);
  assert.deepEqual([now.waiting.length, now.inDrive.length], [0, 1]);
});

function run(name: string, bytes_per_s: number, starves = false): ElevatorRun {
  const latency_ns = { n: 1, mean: 1e6, p50: 1e6, p99: 2e6, max: 3e6 };
  const drive_ns = { overhead: 0, seek: 0, rotation: 0, transfer: 5e8, idle: 5e8 };
  return { name, bytes_per_s, of_single_stream: bytes_per_s / 1e8, process_bytes_per_s: { min: 1e6, max: 2e6 }, jain: 1, latency_ns, runtime_ns: 1e9, starves, jobs: [], drive_ns };
}

function marked(...elevators: ElevatorRun[]): string[] {
  const found: ComparisonDocument = { drive: "d", rotational: false, host: "", seed: 1, decided_by: "", notes: [], elevators };
  return elevatorRows(found).flatMap(({ name, cells, best }) => cells.filter((_, index) => best[index]).map((cell) => `${name} ${cell}`));
}

test("the table marks the best of a column as the command does", () => {
  assert.deepEqual(marked(run("a", 50e6), run("b", 60e6)), ["b 60.0", "b 60 %"]);
  assert.deepEqual(marked(run("a", 60.01e6), run("b", 60e6)), [], "equal figures have no mark");
  assert.deepEqual(marked(run("a", 50e6), run("b", 60e6, true)), [], "an elevator under which a job starves has no mark");
  assert.deepEqual(marked(run("a", 50e6)), []);
});

test("the latencies of syncs are columns if a job syncs", () => {
  const job = (sync_ns: Latency) => ({ name: "log", processes: 1, bytes_per_s: 1e6, process_bytes_per_s: { min: 1e6, max: 1e6 }, latency_ns: sync_ns, sync_ns, starved: null });
  const sync = (n: number, p99: number, max: number) => job({ n, mean: p99, p50: p99, p99, max });
  const syncing = { ...run("a", 50e6), jobs: [sync(9, 28e6, 144e6), sync(9, 99e6, 120e6), sync(0, 0, 0)] };
  assert.deepEqual(marked(syncing, { ...run("b", 50e6), jobs: [sync(9, 98e6, 98e6)] }), ["b 98.0", "b 98.0"]);
  assert.deepEqual(marked(syncing, { ...run("b", 50e6), jobs: [sync(0, 0, 0)] }), ["a 99.0", "a 144"], "no sync is not a short one");
});

test("the rates of a process end with its last window", () => {
  assert.deepEqual(closed([[0, 3], [0.5, 4]]), [[0, 3], [0.5, 4], [1, 4]]);
  assert.deepEqual(closed([[0, 3]]), [[0, 3]]);
});
