// The networks, run by the WebAssembly of onnxruntime-web without its front: that answers with promises, and Python
// cannot wait for one in the middle of a search. What is called here is what its wasm-core-impl.ts calls.

const INT64 = 7, BYTES = { 1: 4, 2: 1, 3: 1, 5: 2, 6: 4, 7: 8, 9: 1, 11: 8 }; // ONNX's numbers of types
const WARNING = 2, ERROR = 3;
const NO_OPTIMIZATIONS = 0; // recipes/site.py has done them: here they took a second of the processors at every start

export class Networks {
  #ort;
  python = null; // Python's memory
  #sessions = new Map();
  #outputs = [];

  constructor(ort) {
    this.#ort = ort;
  }

  // Starts onnxruntime; `factory` is the module that comes with its WebAssembly.
  static async start(factory, settings) {
    const ort = await factory({ ...settings });
    if (ort._OrtInit(settings.numThreads, WARNING)) throw new Error("onnxruntime does not start");
    return new Networks(ort);
  }

  #fail(what) {
    const ort = this.#ort, stack = ort.stackSave(), place = ort.stackAlloc(8);
    ort._OrtGetLastError(place, place + 4);
    const message = ort.UTF8ToString(ort.getValue(place + 4, "*"));
    ort.stackRestore(stack);
    throw new Error(`${what}: ${message}`);
  }

  #text(text) {
    const ort = this.#ort, length = ort.lengthBytesUTF8(text) + 1, place = ort._malloc(length);
    ort.stringToUTF8(text, place, length);
    return place;
  }

  load(name, model) {
    const ort = this.#ort, data = ort._malloc(model.length), logId = this.#text(name);
    ort.HEAPU8.set(model, data);
    // Without plans of memory: they are made for shapes, and every step has others.
    const options = ort._OrtCreateSessionOptions(NO_OPTIMIZATIONS, true, false, 0, false, 0, logId, ERROR, 0, 0);
    const handle = options && ort._OrtCreateSession(data, model.length, options);
    if (!handle) this.#fail(`${name} cannot be loaded`);
    ort._OrtReleaseSessionOptions(options);
    ort._free(data);
    this.#sessions.set(name, { handle, names: new Map(), inputs: new Map() });
  }

  #nameIn(session, name) {
    if (!session.names.has(name)) session.names.set(name, this.#text(name));
    return session.names.get(name);
  }

  // Takes an input of a network out of Python's memory, where int64 is kept as doubles. It stays until another is given for it.
  give(network, name, type, address, size, ...shape) {
    const ort = this.#ort, bytes = size * BYTES[type], memory = this.python.buffer, { inputs } = this.#sessions.get(network);
    if (inputs.has(name)) { ort._OrtReleaseTensor(inputs.get(name).tensor); ort._free(inputs.get(name).data); }
    const data = ort._malloc(Math.max(bytes, 8));
    if (type === INT64) {
      const from = new Float64Array(memory, address, size), to = new BigInt64Array(ort.HEAPU8.buffer, data, size);
      for (let i = 0; i < size; i++) to[i] = BigInt(from[i]);
    } else ort.HEAPU8.set(new Uint8Array(memory, address, bytes), data);
    const stack = ort.stackSave(), sizes = ort.stackAlloc(4 * shape.length + 4);
    shape.forEach((one, axis) => ort.setValue(sizes + 4 * axis, one, "i32"));
    const tensor = ort._OrtCreateTensor(type, data, bytes, sizes, shape.length, 1);
    ort.stackRestore(stack);
    if (!tensor) this.#fail(`the input ${name} cannot be made`);
    inputs.set(name, { tensor, data });
  }

  // Runs a network on what was given; says of each output its type and shape.
  run(network, wanted) {
    const ort = this.#ort, session = this.#sessions.get(network), names = wanted.split("\n"), inputs = [...session.inputs];
    const stack = ort.stackSave(), places = (count) => ort.stackAlloc(4 * count);
    const [inputNames, inputValues, outputNames, outputValues] = [places(inputs.length), places(inputs.length), places(names.length), places(names.length)];
    inputs.forEach(([name, { tensor }], i) => {
      ort.setValue(inputNames + 4 * i, this.#nameIn(session, name), "*");
      ort.setValue(inputValues + 4 * i, tensor, "*");
    });
    names.forEach((name, i) => {
      ort.setValue(outputNames + 4 * i, this.#nameIn(session, name), "*");
      ort.setValue(outputValues + 4 * i, 0, "*");
    });
    const failed = ort._OrtRun(session.handle, inputNames, inputValues, inputs.length, outputNames, names.length, outputValues, 0);
    this.#outputs = names.map((_, i) => Number(ort.getValue(outputValues + 4 * i, "*")));
    ort.stackRestore(stack);
    if (failed) this.#fail(`${network} cannot be run`);
    this.#outputs = this.#outputs.map((tensor) => this.#described(tensor));
    return this.#outputs.map(({ type, shape }) => [type, ...shape].join(",")).join(";");
  }

  #described(tensor) {
    const ort = this.#ort, stack = ort.stackSave(), place = ort.stackAlloc(16);
    if (ort._OrtGetTensorData(tensor, place, place + 4, place + 8, place + 12)) this.#fail("an output cannot be read");
    const [type, data, sizes, axes] = [0, 4, 8, 12].map((offset) => Number(ort.getValue(place + offset, "*")));
    const shape = Array.from({ length: axes }, (_, axis) => Number(ort.getValue(sizes + 4 * axis, "i32")));
    ort._OrtFree(sizes);
    ort.stackRestore(stack);
    return { tensor, type, data, shape, size: shape.reduce((a, b) => a * b, 1) };
  }

  // Puts an output into Python's memory.
  take(index, address) {
    const ort = this.#ort, { tensor, type, data, size } = this.#outputs[index], memory = this.python.buffer;
    if (type === INT64) new Float64Array(memory, address, size).set(Array.from(new BigInt64Array(ort.HEAPU8.buffer, data, size), Number));
    else new Uint8Array(memory, address, size * BYTES[type]).set(new Uint8Array(ort.HEAPU8.buffer, data, size * BYTES[type]));
    ort._OrtReleaseTensor(tensor);
  }
}
