// Reads and writes the sections of a module of WebAssembly.

/** The ids of sections. */
const SECTION = { custom: 0, import: 2, code: 10 };
/** The kind of an imported function, and of the names of functions. */
const FUNCTION = 0;
const FUNCTION_NAMES = 1;
/** The magic number and the version. */
const HEADER = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);

/**
 * Reads an unsigned number in LEB128.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {[number, number]} the number and the position behind it
 */
function unsigned(bytes, at) {
  let value = 0;
  for (let factor = 1; ; factor *= 128) {
    const byte = bytes[at++];
    value += (byte & 127) * factor;
    if (byte < 128) return [value, at];
  }
}

/**
 * @param {number} value
 * @returns {number[]} the number in LEB128
 */
function leb(value) {
  const bytes = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  return [...bytes, value];
}

/** The sections of a module and the bodies of its functions. */
export class Module {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    /** @type {{ id: number, bytes: Uint8Array }[]} */
    this.sections = [];
    for (let at = HEADER.length; at < bytes.length; ) {
      const id = bytes[at];
      const [length, start] = unsigned(bytes, at + 1);
      this.sections.push({ id, bytes: bytes.subarray(start, start + length) });
      at = start + length;
    }
    /** The number of imported functions, whose indices come first. */
    this.imported = importedFunctions(this.#section(SECTION.import));
    /** The bodies of the other functions, without their lengths. */
    this.bodies = bodies(this.#section(SECTION.code));
  }

  /** @param {number} id */
  #section(id) {
    const section = this.sections.find((section) => section.id === id);
    if (section === undefined) throw new Error(`the module has no section ${id}`);
    return section.bytes;
  }

  /**
   * The module with these names of functions, by index, and without other custom sections.
   * @param {Map<number, string>} names
   */
  encode(names) {
    /** @type {Uint8Array[]} */
    const parts = [HEADER];
    /** @param {number} id @param {Uint8Array} content */
    const push = (id, content) => parts.push(Uint8Array.from([id, ...leb(content.length)]), content);
    for (const { id, bytes } of this.sections) if (id !== SECTION.custom) push(id, bytes);
    if (names.size > 0) {
      const text = new TextEncoder();
      const entries = [...names].flatMap(([index, name]) => [...leb(index), ...leb(name.length), ...text.encode(name)]);
      const map = [...leb(names.size), ...entries];
      push(SECTION.custom, Uint8Array.from([4, ...text.encode("name"), FUNCTION_NAMES, ...leb(map.length), ...map]));
    }
    return Buffer.concat(parts);
  }
}

/**
 * @param {Uint8Array} section
 * @returns {number} the number of imports, which are functions
 */
function importedFunctions(section) {
  const [imports, first] = unsigned(section, 0);
  let at = first;
  for (let count = 0; count < imports; count += 1) {
    // The names of the module and of the import.
    for (let name = 0; name < 2; name += 1) {
      const [length, start] = unsigned(section, at);
      at = start + length;
    }
    if (section[at] !== FUNCTION) throw new Error("the module imports something that is not a function");
    at = unsigned(section, at + 1)[1];
  }
  return imports;
}

/** @param {Uint8Array} section */
function bodies(section) {
  const [count, first] = unsigned(section, 0);
  let at = first;
  return Array.from({ length: count }, () => {
    const [length, start] = unsigned(section, at);
    at = start + length;
    return section.subarray(start, at);
  });
}
