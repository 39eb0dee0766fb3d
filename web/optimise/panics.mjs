// Removes what a module has for the messages of panics. No host of the module shows them: a panic ends the run with
// the instruction `unreachable`, before and after.

/** The functions that a panic enters, by parts of their mangled names. None of them returns. */
const ENTRIES = [
  /4core9panicking/,
  /4core6option\d+(expect|unwrap)_failed/,
  /4core6result\d+unwrap_failed/,
  /4core4cell\d+panic_already/,
  /4core5slice.*(_fail|_mismatch_fail)(17h|B|$)/,
  /4core3str\d+slice_error_fail/,
  /5alloc7raw_vec\d+(handle_error|capacity_overflow)/,
  /5alloc5alloc\d+handle_alloc_error/,
  // Not `panicking::panicking`, which locks call in every run.
  /3std9panicking.*(panic_handler|panic_with_hook|begin_panic)/,
];
/** A function without local variables whose only instruction is `unreachable`. */
const UNREACHABLE = Uint8Array.of(0, 0x00, 0x0b);

/** The bytes of a location: the address and the length of the path, the line, and the column. */
const LOCATION_BYTES = 16;
const PATH = /^[\w./@+-]+\.rs$/;
const PATH_MAX = 300;
const LINE_MAX = 1_000_000;
const COLUMN_MAX = 10_000;

/**
 * Replaces the functions that panics enter: their callers then pass nothing that is used.
 * @param {import("./module.mjs").Module} module
 * @returns {number} the number of replaced functions
 */
export function cutEntries(module) {
  let cut = 0;
  for (const [index, name] of module.names) {
    if (index >= module.imported && ENTRIES.some((entry) => entry.test(name))) {
      module.bodies[index - module.imported] = UNREACHABLE;
      cut += 1;
    }
  }
  return cut;
}

/**
 * Fills the locations of panics in the data, and the paths that only they have, with zeros.
 * @param {import("./module.mjs").Module} module
 * @returns {number} the number of locations
 */
export function clearLocations(module) {
  const paths = new Map();
  const locations = [];
  for (const { address, bytes } of module.data) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = (4 - (address % 4)) % 4; at + LOCATION_BYTES <= bytes.length; at += 4) {
      const [path, length, line, column] = [0, 4, 8, 12].map((field) => view.getUint32(at + field, true));
      const isPlace = line > 0 && line < LINE_MAX && column > 0 && column < COLUMN_MAX;
      const text = isPlace && length > 3 && length < PATH_MAX ? module.memory(path, length) : undefined;
      if (text !== undefined && PATH.test(new TextDecoder().decode(text))) {
        locations.push(bytes.subarray(at, at + LOCATION_BYTES));
        paths.set(path, text);
      }
    }
  }
  for (const place of [...locations, ...paths.values()]) place.fill(0);
  return locations.length;
}
