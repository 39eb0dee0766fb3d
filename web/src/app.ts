// The page of the playground.

import { Client, Replaced } from "./client.js";
import { drawCharts, drawTables, specs } from "./results.js";
import { Stage } from "./stage.js";
import { ELEVATORS_MAX, command, decode, encode, filmRequest, request, type State } from "./state.js";
import type { Catalogue, ComparisonAnswer, ComparisonDocument, Example, Film, Tunable } from "./types.js";

function part<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found as T;
}

const client = new Client(new URL("worker.js", document.baseURI));
const [form, job, problem, progress, live] = [part<HTMLFormElement>("choices"), part<HTMLTextAreaElement>("job"), part("problem"), part<HTMLProgressElement>("progress"), part("live")];
const stage = new Stage(part("stage"), { play: part("play"), speed: part("speed"), scrub: part("scrub"), time: part("film-time"), status: part("film-status") });

let catalogue: Catalogue;
let state: State;
let handles: ReturnType<typeof drawCharts> = [];
let timer: ReturnType<typeof setTimeout> | undefined;
let runs = 0;

const EMPTY: State = { job: "", name: "playground.fio", drive: "", elevators: [], set: [], kernel: "", seed: 1, runtime: "", scale: "", from: 0.5, length: 1 };

function ofExample(example: Example): State {
  return { ...EMPTY, job: example.text, name: example.name, drive: example.drive, elevators: [...example.elevators], runtime: example.runtime ?? "" };
}

function option(value: string, text: string): HTMLOptionElement {
  return new Option(text, value);
}

/** Fills the choices from the catalogue. */
function fill(): void {
  part<HTMLSelectElement>("example").replaceChildren(...catalogue.examples.map((example) => option(example.name, example.label)), option("", "Your own job"));
  const drives = part<HTMLSelectElement>("drive");
  drives.replaceChildren(...catalogue.drives.drives.map((drive) => option(drive.name, drive.name)));
  part("kernel").replaceChildren(option("", "chosen by the elevators"), ...catalogue.hosts.map((host) => option(host, host === "own" ? "each elevator in its own kernel" : `Linux ${host}`)));
  const list = part("elevators");
  list.replaceChildren(
    ...catalogue.elevators.elevators.map((elevator) => {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "elevator", value: elevator.name });
      label.append(box, ` ${elevator.name}`);
      label.title = elevator.headline;
      return label;
    }),
  );
  part("elevators-text").textContent = `Current kernels have ${catalogue.current.map((name) => (name === "noop" ? "noop (as none)" : name)).join(", ")}.`;
}

/** Shows the state in the controls. */
function show(): void {
  job.value = state.job;
  part<HTMLSelectElement>("example").value = catalogue.examples.some((example) => example.name === state.name && example.text === state.job) ? state.name : "";
  part<HTMLSelectElement>("drive").value = state.drive;
  part<HTMLSelectElement>("kernel").value = state.kernel;
  part<HTMLInputElement>("runtime").value = state.runtime;
  part<HTMLInputElement>("scale").value = state.scale;
  part<HTMLInputElement>("seed").value = String(state.seed);
  part<HTMLInputElement>("from").value = String(state.from);
  part<HTMLInputElement>("length").value = String(state.length);
  for (const box of boxes()) box.checked = state.elevators.includes(box.value);
  limit();
  showTunables();
  describe();
}

/** Texts that follow from the choices. */
function describe(): void {
  part("drive-text").textContent = catalogue.drives.drives.find((drive) => drive.name === state.drive)?.what ?? "";
  part("command").textContent = command(state);
}

const boxes = () => [...part("elevators").querySelectorAll<HTMLInputElement>("input")];

/** At most four elevators, at least one. */
function limit(): void {
  const chosen = boxes().filter((box) => box.checked).length;
  for (const box of boxes()) box.disabled = (!box.checked && chosen >= ELEVATORS_MAX) || (box.checked && chosen === 1);
}

function showTunables(): void {
  const open = new Set([...part("tunables").querySelectorAll("details")].filter((details) => details.open).map((details) => details.dataset.elevator));
  const chosen = catalogue.elevators.elevators.filter((elevator) => state.elevators.includes(elevator.name));
  part("tunables").replaceChildren(
    ...chosen.map((elevator) => {
      const details = document.createElement("details");
      details.dataset.elevator = elevator.name;
      details.open = open.has(elevator.name);
      const summary = document.createElement("summary");
      summary.textContent = elevator.name;
      const idea = Object.assign(document.createElement("p"), { className: "note", textContent: elevator.headline });
      details.append(summary, idea, ...elevator.tunables.map((tunable) => tunableRow(elevator.name, tunable)));
      if (elevator.tunables.length === 0) details.append("It has no tunables.");
      return details;
    }),
  );
}

function tunableRow(elevator: string, tunable: Tunable): HTMLElement {
  const path = `${elevator}.${tunable.name}`;
  const set = state.set.find((text) => text.startsWith(`${path}=`))?.slice(path.length + 1);
  const row = document.createElement("div");
  row.className = "tunable";
  const id = `tunable-${path}`;
  const label = Object.assign(document.createElement("label"), { htmlFor: id, textContent: tunable.name });
  const input = Object.assign(document.createElement("input"), { id, type: "number", value: set ?? String(tunable.default), min: String(tunable.min), max: String(tunable.max), step: "1" });
  const slider = Object.assign(document.createElement("input"), { type: "range", min: String(tunable.min), max: String(sliderMost(tunable)), step: "1", value: set ?? String(tunable.default) });
  slider.setAttribute("aria-label", `${tunable.name} of ${elevator}`);
  const unit = Object.assign(document.createElement("span"), { className: "unit", textContent: tunable.unit });
  const help = Object.assign(document.createElement("p"), { id: `${id}-help`, className: "note", textContent: `${tunable.meaning} ${tunable.trade_off} Range ${tunable.min} to ${tunable.max}, default ${tunable.default}.` });
  input.setAttribute("aria-describedby", help.id);
  const change = (value: string): void => {
    [input.value, slider.value] = [value, value];
    const others = state.set.filter((text) => !text.startsWith(`${path}=`));
    changed({ ...state, set: value === "" || Number(value) === tunable.default ? others : [...others, `${path}=${value}`] });
  };
  input.addEventListener("input", () => change(input.value));
  slider.addEventListener("input", () => change(slider.value));
  row.append(label, slider, input, unit, help);
  return row;
}

/** The most of a slider: ranges up to the greatest integer are of no use on a slider. */
function sliderMost(tunable: Tunable): number {
  return Math.min(tunable.max, Math.max(tunable.default * 8, tunable.min + 16));
}

function changed(next: State, delayMs = 350): void {
  state = next;
  describe();
  history.replaceState(null, "", `#${encode(state)}`);
  clearTimeout(timer);
  timer = setTimeout(() => void run(), delayMs);
}

function say(text: string): void {
  live.textContent = text;
}

/** Shows an error, or removes it. */
function fail(message: string, line?: number): void {
  problem.textContent = message;
  problem.hidden = message === "";
  job.setAttribute("aria-invalid", String(line !== undefined));
  if (message) say(`Error: ${message}`);
}

async function run(): Promise<void> {
  const turn = (runs += 1);
  client.stop();
  progress.hidden = false;
  progress.value = 0;
  part("state").textContent = "Simulating …";
  document.body.dataset.state = "running";
  const asked = state;
  try {
    const answer = await client.ask<ComparisonAnswer>(request(asked), (share) => (progress.value = share));
    if (turn !== runs) return;
    if (answer.error) {
      fail(answer.error.message, answer.error.line);
      part("state").textContent = document.body.dataset.firstMs ? "Not simulated. The results below are those before this change." : "Not simulated.";
      document.body.dataset.state = "error";
      return;
    }
    fail("");
    const found = JSON.parse(answer.ok.document) as ComparisonDocument;
    part("title").textContent = `${found.elevators.map((each) => each.name).join(", ")} on ${found.drive}`;
    part("verdict").textContent = found.decided_by;
    const settings = answer.ok.settings.length ? `, with ${answer.ok.settings.join(", ")}` : "";
    part("state").textContent = `${answer.ok.job} on ${found.drive}, ${answer.ok.host}, seed ${found.seed}${settings}`;
    drawTables(part("tables"), answer.ok, found);
    handles = drawCharts(part("charts"), specs(answer.ok, found), handles);
    part<HTMLAnchorElement>("download").href = URL.createObjectURL(new Blob([answer.ok.document], { type: "application/json" }));
    document.body.dataset.state = "done";
    document.body.dataset.firstMs ??= String(Math.round(performance.now()));
    say(`Done. ${found.decided_by}`);
    await films(asked, turn);
  } catch (error) {
    if (error instanceof Replaced || turn !== runs) return;
    fail(`The simulator stopped: ${error instanceof Error ? error.message : String(error)}`);
    document.body.dataset.state = "error";
  } finally {
    if (turn === runs) progress.hidden = true;
  }
}

async function films(asked: State, turn: number): Promise<void> {
  const shown: Film[] = [];
  for (const elevator of asked.elevators) {
    const answer = await client.ask<Film>(filmRequest(asked, elevator));
    if (turn !== runs) return;
    if (answer.error) return fail(answer.error.message);
    shown.push(answer.ok);
  }
  stage.show(shown);
  const cut = shown.filter((film) => film.is_cut).map((film) => film.elevator);
  part("film-note").textContent = cut.length ? `Cut at 20,000 steps: ${cut.join(", ")}. A shorter film shows all.` : "";
  document.body.dataset.film = "ready";
}

/** Copies a text. `otherwise` says where it is for a browser that does not allow copying. */
async function copy(text: string, what: string, otherwise: string): Promise<void> {
  let outcome = `${what} copied.`;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    outcome = `The browser does not allow copying. ${otherwise}`;
  }
  part("copied").textContent = outcome;
  say(outcome);
}

function listen(): void {
  form.addEventListener("submit", (event) => event.preventDefault());
  part<HTMLSelectElement>("example").addEventListener("change", (event) => {
    const chosen = catalogue.examples.find((example) => example.name === (event.target as HTMLSelectElement).value);
    if (!chosen) {
      part<HTMLDetailsElement>("job-part").open = true;
      return job.focus();
    }
    changed(ofExample(chosen), 0);
    show();
  });
  job.addEventListener("input", () => {
    const own = catalogue.examples.some((example) => example.name === state.name);
    changed({ ...state, job: job.value, name: own ? "playground.fio" : state.name }, 800);
    part<HTMLSelectElement>("example").value = "";
  });
  const text = (id: "drive" | "kernel" | "runtime" | "scale") =>
    part<HTMLInputElement>(id).addEventListener("change", (event) => changed({ ...state, [id]: (event.target as HTMLInputElement).value.trim() }));
  (["drive", "kernel", "runtime", "scale"] as const).forEach(text);
  const number = (id: "seed" | "from" | "length") =>
    part<HTMLInputElement>(id).addEventListener("change", (event) => {
      const value = Number((event.target as HTMLInputElement).value);
      if (Number.isFinite(value) && value >= 0) changed({ ...state, [id]: value });
    });
  (["seed", "from", "length"] as const).forEach(number);
  part("elevators").addEventListener("change", () => {
    changed({ ...state, elevators: boxes().filter((box) => box.checked).map((box) => box.value) });
    limit();
    showTunables();
  });
  part("copy-link").addEventListener("click", () => {
    history.replaceState(null, "", `#${encode(state)}`);
    void copy(location.href, "Link", "The address of this page is the link.");
  });
  part("copy-command").addEventListener("click", () => void copy(command(state), "Command", "The command is at the end of this page."));
  addEventListener("hashchange", () => {
    const next = decode(location.hash, state);
    if (!next || encode(next) === encode(state)) return;
    changed(next, 0);
    show();
  });
}

async function begin(): Promise<void> {
  const answer = await client.ask<Catalogue>({ kind: "catalogue" });
  if (answer.error) return fail(answer.error.message);
  catalogue = answer.ok;
  const first = catalogue.examples[0];
  if (!first) return fail("the simulator has no examples");
  state = decode(location.hash, ofExample(first)) ?? ofExample(first);
  fill();
  show();
  listen();
  await run();
}

begin().catch((error: unknown) => fail(`The simulator could not be started: ${error instanceof Error ? error.message : String(error)}`));
