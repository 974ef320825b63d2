// The package's own Python, with the networks beside it: what reads in a browser, and what the site is made with.
import { makeKernels } from "./kernels.js";

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
