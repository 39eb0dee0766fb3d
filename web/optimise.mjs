// Shrinks a module of WebAssembly: node optimise.mjs FROM TO
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const [from, to] = process.argv.slice(2);
const program = fileURLToPath(new URL("node_modules/binaryen/bin/wasm-opt", import.meta.url));
// The features that rustc assumes for wasm32-unknown-unknown.
const features = ["bulk-memory", "bulk-memory-opt", "call-indirect-overlong", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];
execFileSync(process.execPath, [program, "-Oz", "--strip-debug", "--strip-producers", ...features.map((name) => `--enable-${name}`), from, "-o", to], { stdio: "inherit" });
