// Orders functions so that similar ones are near each other: gzip finds repetitions in the last 32 KiB only.

/** Bytes of the functions before, to which the next one should be similar. */
const WINDOW = 30_000;
/** Bytes of a sequence that is looked for in several functions, and the most functions that may have it. */
const SEQUENCE = 5;
const FUNCTIONS_MAX = 60;
/** The gain of a function is divided by this power of its length. */
const LENGTH_POWER = 0.75;
const LENGTH_BASE = 20;

/**
 * Orders functions one after the other: next comes the one that has the most sequences in common with those in the
 * window, for its length. Rare sequences count more.
 * @param {Uint8Array[]} bodies
 * @returns {number[]} the indices of the bodies
 */
export function bySimilarity(bodies) {
  /** @type {Map<number, number[]>} */
  const owners = new Map();
  const sequences = bodies.map((body, index) => {
    const own = new Set();
    for (let at = 0; at + SEQUENCE <= body.length; at += 1) {
      let number = 0;
      for (let offset = 0; offset < SEQUENCE; offset += 1) number = number * 256 + body[at + offset];
      own.add(number);
    }
    for (const number of own) {
      const list = owners.get(number);
      if (list === undefined) owners.set(number, [index]);
      else list.push(index);
    }
    return own;
  });
  const shared = sequences.map((own) =>
    [...own].filter((number) => {
      const { length } = owners.get(number) ?? [];
      return length > 1 && length <= FUNCTIONS_MAX;
    }),
  );

  const gains = new Float64Array(bodies.length);
  const costs = bodies.map((body) => (body.length + LENGTH_BASE) ** LENGTH_POWER);
  /** The number of functions in the window that have a sequence. @type {Map<number, number>} */
  const present = new Map();
  /** @param {number} index @param {1 | -1} step */
  const count = (index, step) => {
    for (const number of shared[index]) {
      const before = present.get(number) ?? 0;
      present.set(number, before + step);
      if (before + step === (step === 1 ? 1 : 0)) {
        const list = owners.get(number) ?? [];
        for (const other of list) gains[other] += step / Math.sqrt(list.length);
      }
    }
  };

  const left = new Set(bodies.keys());
  const order = [];
  const window = [];
  let bytes = 0;
  let next = [...left].reduce((most, index) => (bodies[index].length > bodies[most].length ? index : most), 0);
  while (left.delete(next)) {
    order.push(next);
    window.push(next);
    bytes += bodies[next].length;
    count(next, 1);
    while (bytes > WINDOW && window.length > 1) {
      const oldest = /** @type {number} */ (window.shift());
      bytes -= bodies[oldest].length;
      count(oldest, -1);
    }
    let best = -Infinity;
    for (const index of left) {
      const gain = gains[index] / costs[index];
      if (gain > best) [best, next] = [gain, index];
    }
  }
  return order;
}
