// Reads and writes the sections of a module of WebAssembly.

/** The ids of sections. */
const SECTION = { custom: 0, import: 2, code: 10, data: 11 };
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
    /** The bodies of the other functions, without their lengths. They may be replaced. */
    this.bodies = bodies(this.#section(SECTION.code));
    /** The data that the memory has at the start, by address. Their bytes may be changed. */
    this.data = segments(this.#section(SECTION.data));
    /** The names of functions, by index. */
    this.names = functionNames(this.sections);
  }

  /**
   * The data at an address, if one segment has all of them.
   * @param {number} address
   * @param {number} length
   */
  memory(address, length) {
    const segment = this.data.find((one) => one.address <= address && address + length <= one.address + one.bytes.length);
    return segment?.bytes.subarray(address - segment.address, address - segment.address + length);
  }

  /** @param {number} id */
  #section(id) {
    const section = this.sections.find((section) => section.id === id);
    if (section === undefined) throw new Error(`the module has no section ${id}`);
    return section.bytes;
  }

  /** The section of the bodies. */
  #code() {
    const parts = this.bodies.flatMap((body) => [Uint8Array.from(leb(body.length)), body]);
    return Buffer.concat([Uint8Array.from(leb(this.bodies.length)), ...parts]);
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
    for (const { id, bytes } of this.sections) {
      if (id === SECTION.code) push(id, this.#code());
      else if (id !== SECTION.custom) push(id, bytes);
    }
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

/**
 * Reads the data of the memory. Each segment has a constant address, as without position-independent code.
 * @param {Uint8Array} section
 */
function segments(section) {
  const [count, first] = unsigned(section, 0);
  let at = first;
  return Array.from({ length: count }, () => {
    // The first memory, and the address: i32.const N, end.
    if (section[at] !== 0 || section[at + 1] !== 0x41) throw new Error("a segment of the data has no constant address");
    const [address, end] = signed(section, at + 2);
    const [length, start] = unsigned(section, end + 1);
    at = start + length;
    return { address, bytes: section.subarray(start, at) };
  });
}

/**
 * Reads a signed number in LEB128.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {[number, number]} the number and the position behind it
 */
function signed(bytes, at) {
  const [value, end] = unsigned(bytes, at);
  const range = 128 ** (end - at);
  return [value >= range / 2 ? value - range : value, end];
}

/**
 * @param {{ id: number, bytes: Uint8Array }[]} sections
 * @returns {Map<number, string>} the names of functions, by index; empty without names
 */
function functionNames(sections) {
  const text = new TextDecoder();
  /** @type {Map<number, string>} */
  const names = new Map();
  /** @param {Uint8Array} bytes @param {number} at @returns {[string, number]} */
  const string = (bytes, at) => {
    const [length, start] = unsigned(bytes, at);
    return [text.decode(bytes.subarray(start, start + length)), start + length];
  };
  for (const { id, bytes } of sections) {
    const [kind, first] = id === SECTION.custom ? string(bytes, 0) : ["", 0];
    if (kind !== "name") continue;
    for (let at = first; at < bytes.length; ) {
      const [length, start] = unsigned(bytes, at + 1);
      if (bytes[at] === FUNCTION_NAMES) {
        let [count, next] = unsigned(bytes, start);
        for (; count > 0; count -= 1) {
          const [index, name] = unsigned(bytes, next);
          const [value, end] = string(bytes, name);
          names.set(index, value);
          next = end;
        }
      }
      at = start + length;
    }
  }
  return names;
}
