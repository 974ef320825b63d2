// The package's own Python, with the networks beside it: what reads in a browser, and what the site is made with.
import { makeKernels } from "./kernels.js";

// What an instance has in its memory before anything runs: the data of its module.
export const firstMemory = (instance) => new Uint32Array(instance.exports.memory.buffer);

// Takes this data out of a saved memory, which has most of it again, and puts it back: done twice, all is as it was. Zeros are packed to nothing.
export const exceptData = (saved, data) => {
  const words = new Uint32Array(saved.buffer, saved.byteOffset, saved.byteLength >> 2), memory = words.subarray(words[1] >> 2); // behind what it says of itself
  for (let i = Math.min(data.length, memory.length); i--;) memory[i] ^= data[i];
};

// Starts Python. `settings` are Pyodide's; with `_loadSnapshot` everything is imported already.
export const startPython = async (loadPyodide, settings) => {
  const python = await loadPyodide(settings);
  return { python, memory: python._module.memory, kernels: makeKernels(python._module.memory) };
};

// Puts Python and the networks together; gives what can be asked.
export const connect = ({ python, memory, kernels }, networks) => {
  networks.python = memory;
  const desk = python.pyimport("desk");
  desk.attach(kernels, networks);
  return desk;
};
