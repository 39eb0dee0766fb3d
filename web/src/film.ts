// The state of queue and drive at any moment of a film.

import type { Film } from "./types.js";

/** One request of a film: from when it waits, when the drive takes it, when it is complete. Times in ns. */
export interface Life { pid: number; sector: number; sectors: number; isWrite: boolean; insertNs: number; issueNs: number; endNs: number }

/** A film as the lives of its requests, and the way of the head. */
export interface Reel {
  film: Film;
  lives: Life[];
  /** Positions of the head: time in ns, sector. */
  head: [number, number][];
  /** The sectors that the film shows. */
  range: [number, number];
}

export interface Moment { waiting: Life[]; inDrive: Life[]; done: number }

/** Reads the steps of a film. */
export function reel(film: Film): Reel {
  const lives: Life[] = [];
  const open = new Map<number, Life>();
  for (const step of film.steps) {
    let life = open.get(step.request);
    if (step.kind === "complete" || step.kind === "join") {
      if (life) life.endNs = step.at_ns;
      if (life && step.kind === "join") life.issueNs = step.at_ns;
      open.delete(step.request);
      continue;
    }
    if (!life) {
      // A scheduler that is passed by has no insertion: the request goes to the drive at once.
      life = { pid: step.pid, sector: step.sector, sectors: step.sectors, isWrite: step.is_write, insertNs: step.at_ns, issueNs: Infinity, endNs: Infinity };
      lives.push(life);
      open.set(step.request, life);
    }
    if (step.kind === "merge") {
      const end = Math.max(life.sector + life.sectors, step.sector + step.sectors);
      life.sector = Math.min(life.sector, step.sector);
      life.sectors = end - life.sector;
    }
    if (step.kind === "issue") [life.issueNs, life.sector, life.sectors] = [step.at_ns, step.sector, step.sectors];
    if (step.kind === "requeue") life.issueNs = Infinity;
  }
  const issued = lives.filter((life) => life.issueNs < Infinity && life.sectors > 0).sort((a, b) => a.issueNs - b.issueNs);
  const head: [number, number][] = [];
  for (const life of issued) {
    const end = Math.min(life.endNs, film.until_ns);
    if (end > (head.at(-1)?.[0] ?? -1)) head.push([end, life.sector + life.sectors]);
  }
  const sectors = lives.filter((life) => life.sectors > 0);
  const low = sectors.reduce((least, life) => Math.min(least, life.sector), Infinity);
  const high = sectors.reduce((most, life) => Math.max(most, life.sector + life.sectors), 0);
  const margin = Math.max((high - low) * 0.02, 8);
  const range: [number, number] = sectors.length ? [Math.max(0, low - margin), Math.min(film.capacity_sectors, high + margin)] : [0, film.capacity_sectors];
  return { film, lives, head, range };
}

/** The requests that wait and that the drive has at a time. */
export function moment(of: Reel, atNs: number): Moment {
  const now: Moment = { waiting: [], inDrive: [], done: 0 };
  for (const life of of.lives) {
    if (life.insertNs > atNs) continue;
    if (atNs < Math.min(life.issueNs, life.endNs)) now.waiting.push(life);
    else if (atNs < life.endNs) now.inDrive.push(life);
    else if (life.endNs >= of.film.from_ns) now.done += 1;
  }
  return now;
}

/** The position of the head at a time: on its way to the end of the request that completes next. */
export function headAt(of: Reel, atNs: number): number | undefined {
  const next = of.head.findIndex(([ns]) => ns >= atNs);
  if (next < 0) return of.head.at(-1)?.[1];
  const [ns, sector] = of.head[next]!;
  const before = of.head[next - 1];
  if (!before) return sector;
  const share = (atNs - before[0]) / Math.max(ns - before[0], 1);
  return before[1] + (sector - before[1]) * share;
}
