// Shrinks a module of WebAssembly with Binaryen: node optimise.mjs FROM TO
import binaryen from "binaryen";
import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const module = binaryen.readBinary(readFileSync(from));
// Those that rustc assumes for wasm32-unknown-unknown.
const { Features } = binaryen;
module.setFeatures(Features.MutableGlobals | Features.SignExt | Features.BulkMemory | Features.NontrappingFPToInt | Features.ReferenceTypes | Features.Multivalue);
binaryen.setOptimizeLevel(2);
binaryen.setShrinkLevel(2);
module.optimize();
writeFileSync(to, module.emitBinary());
