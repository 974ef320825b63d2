// Runs library_cases.py with the small NumPy and Pillow of the static site:  node library_cases.mjs RECIPE CASES FILES > JSON
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

process.on("uncaughtException", (error) => { console.error(error.message); process.exit(1); });
const [recipe, cases, ...files] = process.argv.slice(2);
const load = (...names) => import(pathToFileURL(join(recipe, ...names)).href);
const { startPython } = await load("browser", "reader.js");
const { loadPyodide } = await load("node_modules", "pyodide", "pyodide.mjs");
const { python, kernels } = await startPython(loadPyodide, {});
python.FS.mkdirTree("/libraries");
python.FS.mount(python.FS.filesystems.NODEFS, { root: join(recipe, "python") }, "/libraries");
python.runPython("import sys; sys.dont_write_bytecode = True; sys.path.insert(0, '/libraries')");
python.pyimport("numpy").attach(kernels);
python.FS.writeFile("/home/pyodide/library_cases.py", readFileSync(cases));
python.globals.set("files", files.map((name) => new Uint8Array(readFileSync(name))));
process.stdout.write(python.runPython(`
import json, numpy.lib.stride_tricks, library_cases
json.dumps(library_cases.results([one.to_bytes() for one in files]))
`), () => process.exit(0));
