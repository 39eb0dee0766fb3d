// The stage: the queue of each elevator over the sectors of the drive, and the head below it, in slow motion.

import { resolved } from "../../crates/report/web/draw.js";
import { headAt, moment, reel, type Moment, type Reel } from "./film.js";
import type { Film } from "./types.js";

const LABELS = 112;
const ROW = 22;
const TRAIL = 74;
const TOP = 6;
/** Rows of one elevator; further processes share the last one. */
const ROWS_MAX = 8;

/** Milliseconds with the unit. */
const ms = (ns: number) => `${(ns / 1e6).toFixed(1)} ms`;

/** One elevator on the stage. */
class Scene {
  readonly root = document.createElement("div");
  private readonly caption = document.createElement("p");
  private readonly canvas = document.createElement("canvas");
  readonly pids: number[];
  /** The colours of the theme; undefined after a change of the theme. */
  colours: Colours | undefined;

  constructor(readonly reel: Reel) {
    this.root.className = "scene";
    this.caption.className = "scene-caption";
    this.canvas.setAttribute("role", "img");
    const others = reel.lives.map((life) => life.pid).filter((pid) => !reel.film.processes.some((process) => process.pid === pid));
    this.pids = [...reel.film.processes.map((process) => process.pid), ...(others.length ? [0] : [])];
    this.root.append(this.caption, this.canvas);
  }

  get rows(): number {
    return Math.min(this.pids.length, ROWS_MAX);
  }

  row(pid: number): number {
    const place = this.pids.indexOf(pid);
    return Math.min(place < 0 ? this.pids.length - 1 : place, ROWS_MAX - 1);
  }

  name(row: number): string {
    if (row === ROWS_MAX - 1 && this.pids.length > ROWS_MAX) return `${this.pids.length - ROWS_MAX + 1} others`;
    const processes = this.reel.film.processes;
    const process = processes[row];
    if (!process) return "write-back";
    const clones = processes.filter((other) => other.name === process.name);
    return clones.length > 1 ? `${process.name}.${clones.indexOf(process)}` : process.name;
  }

  /** The counts of all rows together; each row shows its own. */
  private counts(now: Moment): string {
    return `${now.waiting.length} waiting, ${now.inDrive.length} in the drive, ${now.done} done`;
  }

  /** The state in words. */
  words(now: Moment): string {
    const rows = Array.from({ length: this.rows }, (_, row) => [this.name(row), now.waiting.filter((life) => this.row(life.pid) === row).length] as const);
    const of = rows.filter(([, count]) => count > 0).map(([name, count]) => `${name} ${count}`).join(", ");
    return `${now.waiting.length} waiting${of ? ` (${of})` : ""}, ${now.inDrive.length} in the drive, ${now.done} complete`;
  }

  draw(atNs: number): string {
    const now = moment(this.reel, atNs);
    const words = this.words(now);
    this.caption.replaceChildren(Object.assign(document.createElement("b"), { textContent: this.reel.film.elevator }), ` ${this.counts(now)}`);
    this.canvas.setAttribute("aria-label", `${this.reel.film.elevator}: ${words}`);
    const width = this.root.clientWidth || 300;
    const height = TOP + this.rows * ROW + TRAIL + 32;
    const scale = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      [this.canvas.width, this.canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    if (!context) return words;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    this.paint(context, width, atNs, now);
    return words;
  }

  private paint(c: CanvasRenderingContext2D, width: number, atNs: number, now: Moment): void {
    const { ink, quiet, grid, series: all } = (this.colours ??= colours(this.root));
    const series = (row: number) => all[row % all.length] ?? ink;
    const labels = Math.min(LABELS, width * 0.28);
    const [low, high] = this.reel.range;
    const x = (sector: number) => labels + ((sector - low) / Math.max(high - low, 1)) * (width - labels - 10);
    c.font = "12px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (let row = 0; row < this.rows; row += 1) {
      const y = TOP + row * ROW + ROW / 2;
      c.strokeStyle = grid;
      line(c, labels, y, width - 10, y);
      const waiting = now.waiting.filter((life) => this.row(life.pid) === row);
      c.fillStyle = series(row);
      c.fillRect(0, y - 5, 10, 10);
      c.fillStyle = ink;
      c.fillText(fitted(c, this.name(row), labels - 50), 15, y);
      c.fillStyle = waiting.length ? ink : quiet;
      c.textAlign = "right";
      c.fillText(String(waiting.length), labels - 8, y);
      c.textAlign = "left";
      for (const life of waiting) {
        c.fillStyle = series(row);
        const wide = Math.max(3, x(life.sector + life.sectors) - x(life.sector));
        if (life.isWrite) c.fillRect(x(life.sector), y - 6, wide, 12);
        else disc(c, x(life.sector) + wide / 2, y, 4.5);
      }
    }
    const top = TOP + this.rows * ROW + 4;
    const disk = top + TRAIL - 14;
    c.fillStyle = quiet;
    c.fillText(fitted(c, this.reel.film.rotational ? "head" : "drive", labels - 16), 0, disk);
    c.fillStyle = grid;
    c.fillRect(labels, disk - 7, width - labels - 10, 14);
    // The way of the last completions, older ones higher and fainter.
    const past = Math.max(this.reel.film.until_ns - this.reel.film.from_ns, 1) / 8;
    for (const life of this.reel.lives) {
      if (life.endNs > atNs || life.endNs < atNs - past || life.issueNs >= life.endNs) continue;
      const age = (atNs - life.endNs) / past;
      c.globalAlpha = 1 - age * 0.85;
      c.fillStyle = series(this.row(life.pid));
      const wide = Math.max(2, x(life.sector + life.sectors) - x(life.sector));
      c.fillRect(x(life.sector), disk - 10 - age * (TRAIL - 26), wide, 2.5);
    }
    c.globalAlpha = 1;
    for (const life of now.inDrive) {
      c.fillStyle = series(this.row(life.pid));
      c.fillRect(x(life.sector), disk - 7, Math.max(4, x(life.sector + life.sectors) - x(life.sector)), 14);
    }
    const head = this.reel.film.rotational ? headAt(this.reel, atNs) : undefined;
    if (head !== undefined) {
      const at = x(Math.min(Math.max(head, low), high));
      c.fillStyle = ink;
      c.beginPath();
      c.moveTo(at, disk + 7);
      c.lineTo(at - 7, disk + 19);
      c.lineTo(at + 7, disk + 19);
      c.fill();
      c.strokeStyle = ink;
      line(c, at, disk - 10, at, disk + 8);
    }
    c.fillStyle = quiet;
    c.fillText(gib(low), labels, disk + 32);
    c.textAlign = "right";
    c.fillText(gib(high), width - 10, disk + 32);
    c.textAlign = "left";
  }
}

interface Colours { ink: string; quiet: string; grid: string; series: string[] }

/** The colours of the theme, for a canvas. */
function colours(within: HTMLElement): Colours {
  const of = (name: string) => resolved(within, `var(--${name})`);
  return { ink: of("ink"), quiet: of("quiet"), grid: of("grid"), series: Array.from({ length: 16 }, (_, index) => of(`series-${index}`)) };
}

const gib = (sector: number) => `${((sector * 512) / 2 ** 30).toFixed(1)} GiB`;

function line(c: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

function disc(c: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  c.beginPath();
  c.arc(x, y, radius, 0, 2 * Math.PI);
  c.fill();
}

function fitted(c: CanvasRenderingContext2D, text: string, width: number): string {
  let fit = text;
  while (fit.length > 2 && c.measureText(fit).width > width) fit = `${fit.slice(0, -2)}…`;
  return fit;
}

export interface Controls {
  play: HTMLButtonElement;
  speed: HTMLSelectElement;
  scrub: HTMLInputElement;
  time: HTMLElement;
  status: HTMLElement;
}

/** Films of one moment of all elevators, with play, pause, speed and scrubbing. */
export class Stage {
  private scenes: Scene[] = [];
  private fromNs = 0;
  private untilNs = 1;
  private atNs = 0;
  private playing = false;
  private lastMs = 0;

  constructor(private readonly element: HTMLElement, private readonly controls: Controls) {
    controls.play.addEventListener("click", () => (this.playing ? this.pause() : this.start()));
    controls.scrub.addEventListener("input", () => {
      this.pause();
      this.seek(this.fromNs + (Number(controls.scrub.value) / 1000) * (this.untilNs - this.fromNs));
    });
    element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(element);
    document.addEventListener("themechange", () => {
      for (const scene of this.scenes) scene.colours = undefined;
      this.draw();
    });
  }

  /** Shows films; begins to play unless the reader wants little motion. */
  show(films: Film[]): void {
    this.scenes = films.map((film) => new Scene(reel(film)));
    this.fromNs = Math.min(...films.map((film) => film.from_ns));
    this.untilNs = Math.max(...films.map((film) => film.until_ns), this.fromNs + 1);
    this.element.replaceChildren(...this.scenes.map((scene) => scene.root));
    this.seek(this.fromNs);
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) this.start();
  }

  get position(): number {
    return this.atNs;
  }

  private key(event: KeyboardEvent): void {
    const step = (this.untilNs - this.fromNs) / (event.shiftKey ? 20 : 200);
    if (event.key === " ") this.controls.play.click();
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      this.pause();
      this.seek(this.atNs + (event.key === "ArrowRight" ? step : -step));
    } else if (event.key === "Home") this.seek(this.fromNs);
    else if (event.key === "End") this.seek(this.untilNs);
    else return;
    event.preventDefault();
  }

  private seek(atNs: number): void {
    this.atNs = Math.min(Math.max(atNs, this.fromNs), this.untilNs);
    this.draw();
    if (!this.playing) this.describe();
  }

  private start(): void {
    if (this.atNs >= this.untilNs) this.atNs = this.fromNs;
    this.playing = true;
    this.label();
    this.lastMs = performance.now();
    requestAnimationFrame((now) => this.frame(now));
  }

  pause(): void {
    if (!this.playing) return;
    this.playing = false;
    this.label();
    this.describe();
  }

  private label(): void {
    this.controls.play.textContent = this.playing ? "Pause" : "Play";
  }

  private frame(nowMs: number): void {
    if (!this.playing) return;
    this.atNs += Math.max(nowMs - this.lastMs, 0) * 1e6 * Number(this.controls.speed.value);
    this.lastMs = nowMs;
    if (this.atNs >= this.untilNs) {
      this.atNs = this.untilNs;
      this.pause();
    }
    this.draw();
    requestAnimationFrame((next) => this.frame(next));
  }

  private draw(): void {
    for (const scene of this.scenes) scene.draw(this.atNs);
    this.controls.time.textContent = `${ms(this.atNs - this.fromNs)} of ${ms(this.untilNs - this.fromNs)}`;
    this.controls.scrub.value = String(((this.atNs - this.fromNs) / (this.untilNs - this.fromNs)) * 1000);
    this.controls.scrub.setAttribute("aria-valuetext", `${ms(this.atNs - this.fromNs)} after the start of the film`);
  }

  private describe(): void {
    const words = this.scenes.map((scene) => `${scene.reel.film.elevator}: ${scene.words(moment(scene.reel, this.atNs))}`);
    this.controls.status.textContent = words.join(". ");
  }
}
