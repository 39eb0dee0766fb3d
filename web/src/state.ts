// What the visitor chose, as a request, as the fragment of a link, and as a command line.

export interface State {
  /** The text of the job file, and its name. */
  job: string;
  name: string;
  drive: string;
  elevators: string[];
  /** Tunables that differ from their defaults: `bfq.slice_idle=0`. */
  set: string[];
  kernel: string;
  seed: number;
  runtime: string;
  scale: string;
  /** The window of the film in seconds. */
  from: number;
  length: number;
}

/** The most elevators of one comparison. */
export const ELEVATORS_MAX = 4;

const TEXTS = ["job", "name", "drive", "kernel", "runtime", "scale"] as const;
const NUMBERS = ["seed", "from", "length"] as const;

/** The request of a comparison. */
export function request(state: State): Record<string, unknown> {
  const scale = Number.parseFloat(state.scale);
  return {
    kind: "compare",
    job: state.job,
    name: state.name,
    drive: state.drive,
    elevators: state.elevators,
    set: settings(state),
    seed: state.seed,
    ...(state.kernel ? { kernel: state.kernel } : {}),
    ...(state.runtime ? { runtime: state.runtime } : {}),
    ...(Number.isFinite(scale) ? { scale } : {}),
  };
}

/** The settings of elevators that are compared: others are kept until their elevator comes back. */
export function settings(state: State): string[] {
  return state.set.filter((text) => state.elevators.includes(text.split(".")[0] ?? ""));
}

/** The request of the film of one elevator. */
export function filmRequest(state: State, elevator: string): Record<string, unknown> {
  const set = settings(state).filter((text) => text.startsWith(`${elevator}.`));
  return {
    ...request({ ...state, elevators: [elevator], set }),
    kind: "film",
    film: { from_s: state.from, length_s: state.length },
    // A film runs on the host of the whole comparison.
    ...(state.kernel ? {} : hostOf(state)),
  };
}

/** The host of the default choice depends on all elevators: the same rule as `default_host` of the crate compare. */
function hostOf(state: State): { kernel?: string } {
  const current = ["noop", "none", "mq-deadline", "kyber", "bfq"];
  return state.elevators.every((name) => current.includes(name)) ? {} : { kernel: "own" };
}

/** The state as the fragment of a link. */
export function encode(state: State): string {
  const bytes = new TextEncoder().encode(JSON.stringify(state));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return `1.${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** The state of a fragment; undefined if it is none. Missing parts come from `base`. */
export function decode(fragment: string, base: State): State | undefined {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith("1.")) return undefined;
  try {
    const binary = atob(text.slice(2).replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
    const found: unknown = JSON.parse(new TextDecoder().decode(bytes));
    return typeof found === "object" && found !== null ? checked(found as Record<string, unknown>, base) : undefined;
  } catch {
    return undefined;
  }
}

function checked(found: Record<string, unknown>, base: State): State {
  const state = { ...base };
  for (const key of TEXTS) if (typeof found[key] === "string") state[key] = found[key];
  for (const key of NUMBERS) {
    const value = found[key];
    if (typeof value === "number" && Number.isFinite(value) && value >= 0) state[key] = value;
  }
  const texts = (value: unknown): string[] | undefined =>
    Array.isArray(value) && value.every((text) => typeof text === "string") ? value : undefined;
  state.elevators = (texts(found.elevators) ?? base.elevators).slice(0, ELEVATORS_MAX);
  state.set = texts(found.set) ?? base.set;
  return state;
}

/** The comparison as commands of a shell: the job file, and `hoistway compare`. */
export function command(state: State): string {
  const file = state.name.split("/").pop() || "playground.fio";
  let end = "EOF";
  while (state.job.split("\n").includes(end)) end += "_";
  const words = ["hoistway", "compare", file, "--drive", state.drive, "--elevators", state.elevators.join(",")];
  for (const text of settings(state)) words.push("--set", text);
  if (state.kernel) words.push("--kernel", state.kernel);
  if (state.runtime) words.push("--runtime", state.runtime);
  if (state.scale) words.push("--scale", state.scale);
  if (state.seed !== 1) words.push("--seed", String(state.seed));
  const job = state.job.endsWith("\n") ? state.job : `${state.job}\n`;
  return `cat > ${quoted(file)} <<'${end}'\n${job}${end}\n${words.map(quoted).join(" ")}\n`;
}

function quoted(word: string): string {
  return /^[\w./:=,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
