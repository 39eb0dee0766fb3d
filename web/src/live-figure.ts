// Live figures of other pages: `<figure data-hoistway-figure='{"job": "...", "drive": "...", "elevators": ["bfq"]}'>` runs a small
// comparison in the browser when it is scrolled into view. "show" is "rates" (the default), "latency", "head" or "film".

import { Client } from "./client.js";
import { drawCharts, specs } from "./results.js";
import { Stage } from "./stage.js";
import { encode, filmRequest, request, type State } from "./state.js";
import type { ComparisonAnswer, ComparisonDocument, Film } from "./types.js";

interface Figure extends Partial<State> { show?: "rates" | "latency" | "head" | "film" }

const BASE: State = { job: "", name: "figure.fio", drive: "sata-7200-2006", elevators: ["bfq"], set: [], kernel: "", seed: 1, runtime: "", scale: "", from: 0, length: 1 };
let client: Client | undefined;

/** Prepares all figures below an element. `base` is the address of worker.js, hoistway.wasm and the page of the playground: that of this
 * module by default. */
export function liveFigures(root: ParentNode = document, base: string | URL = import.meta.url): void {
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      client ??= new Client(new URL("worker.js", base));
      draw(target as HTMLElement, client, base).catch((error: unknown) => note(target as HTMLElement, String(error)));
    }
  }, { rootMargin: "100px" });
  for (const figure of root.querySelectorAll<HTMLElement>("figure[data-hoistway-figure]")) watcher.observe(figure);
}

async function draw(figure: HTMLElement, simulator: Client, base: string | URL): Promise<void> {
  const { show = "rates", ...choices } = JSON.parse(figure.dataset.hoistwayFigure ?? "{}") as Figure;
  const state: State = { ...BASE, ...choices };
  const place = document.createElement("div");
  figure.prepend(place);
  const link = Object.assign(document.createElement("a"), { href: `${new URL("index.html", base)}#${encode(state)}`, textContent: "Change it in the playground" });
  const line = document.createElement("p");
  line.append(link);
  figure.append(line);
  if (show === "film") return film(place, state, simulator, figure);
  const answer = await simulator.ask<ComparisonAnswer>(request(state));
  if (answer.error) return note(figure, answer.error.message);
  const all = specs(answer.ok, JSON.parse(answer.ok.document) as ComparisonDocument);
  const count = state.elevators.length;
  const parts = { rates: all.slice(0, count), latency: all.slice(count, count + 1), head: all.slice(count + 1) };
  // No headings: the level of those around the figure is not known.
  drawCharts(place, parts[show], [], "p");
  figure.dataset.state = "done";
}

async function film(place: HTMLElement, state: State, simulator: Client, figure: HTMLElement): Promise<void> {
  const films: Film[] = [];
  for (const elevator of state.elevators) {
    const answer = await simulator.ask<Film>(filmRequest(state, elevator));
    if (answer.error) return note(figure, answer.error.message);
    films.push(answer.ok);
  }
  const scenes = Object.assign(document.createElement("div"), { className: "stage", tabIndex: 0 });
  scenes.setAttribute("role", "group");
  scenes.setAttribute("aria-label", "Queue and drive in slow motion");
  const play = Object.assign(document.createElement("button"), { type: "button", textContent: "Play" });
  const scrub = Object.assign(document.createElement("input"), { type: "range", min: "0", max: "1000", step: "any", value: "0" });
  scrub.setAttribute("aria-label", "Time in the film");
  const speed = document.createElement("select");
  speed.setAttribute("aria-label", "Speed");
  for (const part of [200, 50, 20, 5]) speed.add(new Option(`1/${part}`, String(1 / part), part === 20, part === 20));
  const [time, status] = [document.createElement("span"), document.createElement("p")];
  status.className = "unseen";
  status.setAttribute("role", "status");
  const bar = Object.assign(document.createElement("div"), { className: "film-bar" });
  bar.append(play, scrub, speed, time);
  place.append(scenes, bar, status);
  new Stage(scenes, { play, scrub, speed, time, status }).show(films);
  figure.dataset.state = "done";
}

function note(figure: HTMLElement, text: string): void {
  figure.append(Object.assign(document.createElement("p"), { className: "note", textContent: `The figure could not be drawn: ${text}` }));
  figure.dataset.state = "error";
}

if (document.currentScript === null) liveFigures();
