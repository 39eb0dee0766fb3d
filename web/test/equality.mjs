// The module's answers are those of the native library, byte for byte: every elevator on every drive.
// usage: node test/equality.mjs hoistway.wasm native-answers

import { readFileSync } from "node:fs";

const [module, native] = process.argv.slice(2);
const { instance } = await WebAssembly.instantiate(readFileSync(module), { hoistway: { progress() {} } });
const x = instance.exports;

/** @param {Uint8Array} request */
function call(request) {
  const address = x.hoistway_alloc(request.length);
  new Uint8Array(x.memory.buffer).set(request, address);
  const answer = BigInt.asUintN(64, x.hoistway_call(address, request.length));
  x.hoistway_free(address, request.length);
  const [at, length] = [Number(answer >> 32n), Number(answer & 0xffffffffn)];
  const bytes = Buffer.from(new Uint8Array(x.memory.buffer, at, length).slice());
  x.hoistway_free(at, length);
  return bytes;
}

// The file has a request and its answer on alternate lines.
const lines = readFileSync(native, "utf8").trimEnd().split("\n");
let [compared, failed] = [0, 0];
for (let index = 0; index + 1 < lines.length; index += 2) {
  const found = call(Buffer.from(lines[index]));
  if (!found.equals(Buffer.from(lines[index + 1]))) {
    failed += 1;
    const [a, b] = [found.toString(), lines[index + 1]];
    let at = 0;
    while (at < a.length && a[at] === b[at]) at += 1;
    console.error(`${lines[index].slice(0, 200)}\n  wasm:   ${a.slice(Math.max(0, at - 60), at + 60)}\n  native: ${b.slice(Math.max(0, at - 60), at + 60)}`);
  }
  compared += 1;
}
console.log(`${compared} answers compared, ${failed} differ`);
if (failed > 0 || compared === 0) process.exit(1);
