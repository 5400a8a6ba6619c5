// usage: node --no-warnings explorer/run_wasi.mjs program.wasm [argument]...     runs a WASI program
import {readFile} from "node:fs/promises";
import {env} from "node:process";
import {WASI} from "node:wasi";

const args = process.argv.slice(2);
const wasi = new WASI({version: "preview1", args, env, returnOnExit: true});
const {instance} = await WebAssembly.instantiate(await readFile(args[0]), wasi.getImportObject());
process.exitCode = wasi.start(instance);
