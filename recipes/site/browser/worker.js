// Reads in a thread of its own, so that the page stays awake. A message { id, call, values } is answered with { id, answer },
// { id, failure } or { id, error }; { started } comes once, when everything is there.

const NETWORKS = ["encoder.onnx", "step.onnx"];
const PYODIDE = "pyodide.asm.wasm", SNAPSHOT = "snapshot.bin", ORT = "ort-wasm-simd-threaded.wasm";
const PNG = [0x89, 0x50, 0x4e, 0x47];
const MAX_PIXELS = 50_000_000; // as in i2l.images.open

// Another thread fetches and unpacks, beside this one, in the order in which the files are needed. By name: a compiled module, or bytes.
const unpacked = (names) => {
  const thread = new Worker(new URL("./unpack.js", import.meta.url), { type: "module" }), waiting = new Map();
  const promises = Object.fromEntries(names.map((name) => [name, new Promise((resolve, reject) => waiting.set(name, { resolve, reject }))]));
  const fail = (message) => {
    thread.terminate();
    waiting.forEach(({ reject }) => reject(new Error(message)));
  };
  thread.addEventListener("message", ({ data: { name, content, error } }) => {
    if (error) { fail(error); return; }
    performance.mark(`unpacked ${name}`);
    waiting.get(name).resolve(content);
    waiting.delete(name);
    if (!waiting.size) thread.terminate();
  });
  thread.addEventListener("error", ({ message }) => fail(message || "unpack.js cannot be loaded"));
  thread.postMessage(names);
  return promises;
};

const startNetworks = async (files) => {
  const [{ default: factory }, { Networks }, module] = await Promise.all([import("./ort-wasm-simd-threaded.mjs"), import("./networks.js"), files[ORT]]);
  const networks = await Networks.start(factory, {
    numThreads: self.crossOriginIsolated ? Math.min(4, navigator.hardwareConcurrency || 1) : 1,
    instantiateWasm: (imports, done) => {
      WebAssembly.instantiate(module, imports).then((instance) => done(instance, module));
      return {};
    },
  });
  performance.mark("onnxruntime");
  for (const name of NETWORKS) {
    networks.load(name, await files[name]);
    performance.mark(name);
  }
  return networks;
};

// Pyodide fetches its WebAssembly by itself, and compiles it: it is given the module that is there already. It gets no library, as
// all of it is in the snapshot.
const startInterpreter = async (files) => {
  const here = new URL("./", import.meta.url).href, ownFetch = self.fetch;
  self.fetch = (address, options) => (String(address).endsWith(PYODIDE) ? files[PYODIDE] : ownFetch(address, options));
  const [{ loadPyodide }, { exceptData, firstMemory, startPython }] = await Promise.all([import("./pyodide.mjs"), import("./reader.js"), import("./pyodide.asm.mjs")]);
  WebAssembly.instantiateStreaming = async (given, imports) => {
    const module = await given, saved = await files[SNAPSHOT], instance = await WebAssembly.instantiate(module, imports);
    exceptData(saved, firstMemory(instance)); // which Pyodide then takes
    return { module, instance };
  };
  const python = await startPython(loadPyodide, {
    indexURL: here, packageBaseUrl: here, stdLibURL: `${here}library.zip`, _loadSnapshot: files[SNAPSHOT],
    lockFileContents: { info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_5_0_3", python: "3.14.2", version: "314.0.7" }, packages: {} },
  });
  performance.mark("python");
  return python;
};

// Modules are asked for behind the large files, which take longest.
const start = async () => {
  const files = { ...unpacked([PYODIDE, SNAPSHOT]), ...unpacked([ORT, ...NETWORKS]) };
  const [python, networks, { connect }] = await Promise.all([startInterpreter(files), startNetworks(files), import("./reader.js")]);
  return connect(python, networks);
};

// What Python has no decoder for, the browser decodes: upright, and with the colours as they are in the file.
const decoded = async (image) => {
  const bitmap = await createImageBitmap(image, { colorSpaceConversion: "none", premultiplyAlpha: "none" });
  const { width, height } = bitmap;
  if (width * height > MAX_PIXELS) return null;
  const context = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  return { width, height, pixels: new Uint8Array(context.getImageData(0, 0, width, height).data.buffer) };
};

const CALLS = {
  read: async (desk, image) => {
    const data = new Uint8Array(await image.arrayBuffer());
    if (PNG.every((byte, place) => data[place] === byte)) return desk.read(data);
    let picture;
    try {
      picture = await decoded(image);
    } catch {
      return desk.read(data); // which says what is wrong with it
    }
    if (!picture) return JSON.stringify({ failure: { kind: "too-large", detail: "The image has too many pixels. Crop the formula out of it." } });
    return desk.read(picture.pixels, picture.width, picture.height);
  },
  latex: (desk, tokens) => desk.latex(JSON.stringify(tokens)),
  convert: (desk, latex, name) => desk.convert(latex, name),
};

const desk = start();
desk.then(() => postMessage({ started: true }), (error) => postMessage({ started: false, error: String(error.message ?? error) }));

const cancelled = new Set();
let before = desk; // one after the other, in their order
addEventListener("message", ({ data: { id, call, values } }) => {
  if (call === "cancel") { cancelled.add(id); return; }
  before = before.catch(() => {}).then(async () => {
    if (cancelled.delete(id)) return;
    try {
      const begun = performance.now(), found = JSON.parse(await CALLS[call](await desk, ...values));
      if (found.reading) found.reading.seconds = (performance.now() - begun) / 1000;
      postMessage({ id, ...found });
    } catch (error) {
      postMessage({ id, error: String(error.message ?? error) });
    }
    await new Promise((resolve) => setTimeout(resolve)); // messages that came meanwhile are heard, such as to cancel
  });
});
