// Stands in for the page's api.js where there is no server: asks the reader in this browser. Every failure is a Refusal with a
// sentence for the person.
import { say } from "./words.js";

export class Away extends Error {}

export class Refusal extends Error {
  constructor({ kind = "", detail, status = 422 }) {
    super(detail);
    [this.kind, this.status] = [kind, status];
  }
}

export const runsHere = true; // in the browser alone
export const setToken = () => {};
export const isBack = async () => true;

const scripts = globalThis.trustedTypes?.createPolicy("i2l", {
  createScriptURL: (name) => {
    if (!["reader/worker.js", "service-worker.js"].includes(name)) throw new TypeError(name);
    return new URL(name, document.baseURI).href;
  },
}) ?? { createScriptURL: (name) => name };

// ---- the reader

let worker = null, number = 0;
const waiting = new Map(); // by number: { resolve, reject }
let started = false;
const tellStarted = new Set(); // what to call when it is there

const listen = ({ data }) => {
  if ("started" in data) {
    started = data.started;
    document.body.dataset.reader = started ? "ready" : "failed";
    for (const tell of tellStarted) tell();
    tellStarted.clear();
    if (!started) fail(new Refusal({ kind: "reader-failed", detail: say("notStarted", { message: data.error }), status: 500 }));
    return;
  }
  const { resolve, reject } = waiting.get(data.id) ?? {};
  waiting.delete(data.id);
  if (data.error) reject?.(new Refusal({ kind: "reader-failed", detail: data.error, status: 500 }));
  else if (data.failure) reject?.(new Refusal({ ...data.failure, status: data.failure.kind === "reader-failed" ? 500 : 422 }));
  else resolve?.(data.reading ?? data.answer);
};

// The reader is gone: what waits for it is told so, and the next picture starts another.
const fail = (error) => {
  worker?.terminate();
  [worker, started] = [null, false];
  for (const { reject } of waiting.values()) reject(error);
  waiting.clear();
};

const startReader = () => {
  worker = new Worker(scripts.createScriptURL("reader/worker.js"), { type: "module" });
  worker.addEventListener("message", listen);
  worker.addEventListener("error", (event) => fail(new Refusal({ kind: "reader-failed", detail: say("notStarted", { message: event.message ?? "" }), status: 500 })));
};

startReader(); // the page loads this module before all others: the reader takes longer to start than the page

const ask = (call, values, signal) => new Promise((resolve, reject) => {
  if (!worker) startReader();
  const id = ++number;
  waiting.set(id, { resolve, reject });
  signal?.addEventListener("abort", () => {
    if (waiting.delete(id)) worker?.postMessage({ id, call: "cancel" });
    reject(signal.reason);
  }, { once: true });
  worker.postMessage({ id, call, values });
});

// What only the server reads: strokes, whole pages, and pictures that neither the browser nor the reader decodes. The pad is not shown here, and
// no picture is offered as a page.
const onlyOnServer = async () => { throw new Refusal({ kind: "invalid-request", detail: say("needsServer") }); };
export const readStrokes = onlyOnServer;
export const listModels = async () => []; // but the one that reads here
export const chooseModel = () => {};
export const askPage = onlyOnServer;
const TIFF = ["II*\0", "MM\0*"];

export const readImage = async (image, { signal, onBusy = () => {} }) => {
  if (TIFF.includes(await image.slice(0, 4).text())) return onlyOnServer();
  if (!started) {
    onBusy("starting");
    tellStarted.add(() => { if (!signal?.aborted) onBusy("readingNow"); });
  }
  return { ...await ask("read", [image], signal), request_id: crypto.randomUUID?.() ?? String(Math.random()) };
};

export const latexOf = (tokens) => ask("latex", [tokens]);

export const convert = async (latex, { name, media_type: type, text }) => {
  const { value, error } = await ask("convert", [latex, name]);
  if (value === null) throw new Refusal({ detail: error });
  return new Blob([text ? value : Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0))], { type });
};

const list = async (name) => (await fetch(name)).json();
export const listFormats = () => list("formats.json");
export const listExamples = () => list("examples.json");

// ---- what only an installed page has: it works offline, says when there is a newer one, and takes shared pictures

const SHARED = "shared-picture";
const QUIET_MS = 1000;

// Waits until the reader has started and nothing is being read: keeping thirty megabytes takes a processor for seconds.
const quiet = async () => {
  if (!started) await new Promise((resolve) => tellStarted.add(resolve));
  do await new Promise((resolve) => setTimeout(resolve, QUIET_MS)); while (waiting.size);
};

export const settle = async ({ take, offer }) => {
  if (!navigator.serviceWorker) return;
  const shared = new URLSearchParams(location.search).has("shared") && await caches.match(SHARED);
  if (shared) {
    history.replaceState(null, "", location.pathname);
    const image = await shared.blob();
    await Promise.all((await caches.keys()).map(async (name) => (await caches.open(name)).delete(SHARED)));
    take([new File([image], shared.headers.get("X-Name") ?? "", { type: image.type })]);
  }
  await quiet();
  const registration = await navigator.serviceWorker.register(scripts.createScriptURL("service-worker.js")).catch(() => null);
  if (!registration) return; // without https, or where nothing may be kept: the page reads all the same
  const tell = () => {
    if (!registration.waiting || !navigator.serviceWorker.controller) return;
    offer(say("update"), say("updateNow"), () => {
      navigator.serviceWorker.addEventListener("controllerchange", () => location.reload(), { once: true });
      registration.waiting?.postMessage("take over");
    });
  };
  tell();
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", tell));
};
