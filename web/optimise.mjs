// Shrinks a module of WebAssembly: node optimise.mjs FROM TO
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { Module } from "./optimise/module.mjs";
import { bySimilarity } from "./optimise/order.mjs";
import { clearLocations, cutEntries } from "./optimise/panics.mjs";

const [from, to] = process.argv.slice(2);
const program = fileURLToPath(new URL("node_modules/binaryen/bin/wasm-opt", import.meta.url));
// The features that rustc assumes for wasm32-unknown-unknown.
const features = ["bulk-memory", "bulk-memory-opt", "call-indirect-overlong", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];
const scratch = `${to}.scratch`;

/**
 * Passes a module through wasm-opt.
 * @param {string} input
 * @param {...string} passes
 */
function optimise(input, ...passes) {
  const options = features.map((name) => `--enable-${name}`);
  execFileSync(process.execPath, [program, ...passes, ...options, input, "-o", scratch], { stdio: "inherit" });
  return new Module(readFileSync(scratch));
}

const built = new Module(readFileSync(from));
if (cutEntries(built) === 0 || clearLocations(built) === 0) throw new Error(`${from}: no panics are found, by names of functions and by paths of sources`);
writeFileSync(scratch, built.encode(new Map()));
const small = optimise(scratch, "--gufa-optimizing", "-Oz");
// wasm-opt orders functions by name: each gets its place as its name.
/** @type {Map<number, string>} */
const names = new Map();
for (const [place, index] of bySimilarity(small.bodies).entries()) {
  names.set(small.imported + index, String(place).padStart(6, "0"));
}
writeFileSync(scratch, small.encode(names));
const ordered = optimise(scratch, "-g", "-Oz", "--skip-pass=reorder-functions", "--reorder-functions-by-name");
writeFileSync(to, ordered.encode(new Map()));
rmSync(scratch);
