// Starts Python with the package in Node, shows it some formulas, and saves its memory: the browser then goes on from
// there, in a fraction of a second. Called by recipes/site.py:  node snapshot.mjs SOURCE FORMULAS OUT
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadPyodide } from "pyodide";
import { connect, exceptData, firstMemory, startPython } from "./browser/reader.js";

process.on("uncaughtException", (error) => { // without Pyodide's source, which is one line of a million letters
  console.error(error.message);
  process.exit(1);
});
const [source, formulas, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

let data;
const instantiate = WebAssembly.instantiate;
WebAssembly.instantiate = async (...given) => {
  const made = await instantiate(...given);
  if ((made.instance ?? made).exports.PyObject_Call) data = firstMemory(made.instance ?? made).slice(); // of Python, not of the modules that call JavaScript
  return made;
};
const started = await startPython(loadPyodide, { _makeSnapshot: true, env: { PYTHONOPTIMIZE: "2", HOME: "/home/pyodide" } }); // 2: without docstrings
const { python } = started;
for (const [folder, root] of Object.entries({ "/libraries": join(here, "python"), "/source": source })) {
  python.FS.mkdirTree(folder);
  python.FS.mount(python.FS.filesystems.NODEFS, { root }, folder);
}
python.runPython(`
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ["/libraries", "/source"]
import types
# What is imported and never used here, with much behind it: HTTP by xml.sax, processes by the reader of many pictures.
class Nothing(Exception):
    pass
for name in ("urllib.request", "concurrent.futures.process", "multiprocessing"):
    if name not in sys.modules:
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].ProcessPoolExecutor = sys.modules[name].BrokenProcessPool = Nothing
import numpy
`);
python.pyimport("numpy").attach(started.kernels); // modules make arrays when they are imported
const desk = connect(started, {});

desk.warm(readFileSync(formulas, "utf8"));
desk.attach();
desk.destroy();
python.runPython(`
import gc
gc.collect()
sys.path[:] = [path for path in sys.path if path not in ("/libraries", "/source")]
sys.path_importer_cache.clear()
`);
for (const folder of ["/libraries", "/source"]) python.FS.unmount(folder);

// What was freed keeps what was in it. All of it is asked for once more, as long as that takes no new memory, and made zeros,
// which are packed to nothing.
const { _malloc, _free, _sbrk } = python._module;
python.runPython("held = [bytes(size) for size in range(16, 512, 16) for _ in range(400)]; del held; gc.collect()");
const end = _sbrk(0), held = [];
for (const size of [1 << 20, 1 << 17, 1 << 14, 1 << 11, 1 << 8, 1 << 6]) {
  for (;;) {
    const place = _malloc(size);
    held.push(place);
    if (place + size > end) break;
    python._module.HEAPU8.fill(0, place, place + size);
  }
}
held.forEach((place) => _free(place));
const saved = python.makeMemorySnapshot();
exceptData(saved, data); // the module brings it along
writeFileSync(out, saved);
process.exit(0);
