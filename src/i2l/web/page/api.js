// Talks to the server. Every failure is a Refusal with a sentence for the person, or the server is Away.

export class Away extends Error {}

export class Refusal extends Error {
  constructor(problem, retryAfter) {
    super(problem.detail || problem.title);
    this.kind = (problem.type || "").split("#")[1] || "";
    this.status = problem.status;
    this.retryAfter = retryAfter;
  }
}

export const runsHere = false; // but on a server; the static site has an api.js of its own, for which this is true
export const settle = async () => {}; // nothing is to be done for a page that a server gives

const TOKEN = "i2l-token";
const BUSY_ATTEMPTS = 5;
const PATIENT_ATTEMPTS = 100; // for one of many pictures, which nobody waits for

// The command opens the page with the token behind #, which no server sees.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem(TOKEN, given);
  history.replaceState(null, "", location.pathname);
}
export const setToken = (token) => sessionStorage.setItem(TOKEN, token);

let chosen = ""; // the model that reads; by default the server chooses
export const chooseModel = (name) => { chosen = name; };
const byModel = () => chosen ? `&model=${encodeURIComponent(chosen)}` : "";

const ask = async (path, options) => (await fetchFrom(path, options)).json();

const fetchFrom = async (path, options = {}) => {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Away();
  }
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({ status: answer.status, title: `Error ${answer.status}` }));
  throw new Refusal(problem, Number(answer.headers.get("Retry-After")));
};

const pause = (seconds, signal) => new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, 1000 * seconds);
  signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
});

// Reads an image; waits and asks again while the server is busy.
export const readImage = async (image, { signal, onBusy = () => {}, patient = false }) => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(`api/read?n_best=2${byModel()}`, { // two: a sure reading comes with others too
        method: "POST", body: image, signal, headers: { "Content-Type": "application/octet-stream" },
      });
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 503 || attempt === (patient ? PATIENT_ATTEMPTS : BUSY_ATTEMPTS)) throw error;
      onBusy();
      await pause(error.retryAfter || 1, signal);
    }
  }
};

// Finds the formulas of a page; a PDF comes with the page as it was drawn.
export const askPage = (file, { page = 1, read = true, signal }) => ask(`api/page?page=${page}&read=${read}${byModel()}`, {
  method: "POST", body: file, signal, headers: { "Content-Type": "application/octet-stream" },
});

// Reads what was written by hand; `note` of the answer says what the model was taught.
export const readStrokes = (strokes, { signal }) => ask(`api/strokes?n_best=2${byModel()}`, {
  method: "POST", body: JSON.stringify({ strokes }), signal, headers: { "Content-Type": "application/json" },
});

export const latexOf = async (tokens) => (await ask("api/latex", {
  method: "POST", body: JSON.stringify({ tokens }), headers: { "Content-Type": "application/json" },
})).latex;

// Writes LaTeX, as it was edited, in a format of the server, and gives it as a file. What is no text comes in base64.
export const convert = async (latex, { name, media_type: type, text }) => {
  const { data: [{ value, error }] } = await ask("api/convert", {
    method: "POST", body: JSON.stringify({ latex, formats: [name] }), headers: { "Content-Type": "application/json" },
  });
  if (value === null) throw new Refusal({ detail: error });
  return new Blob([text ? value : Uint8Array.from(atob(value), (letter) => letter.charCodeAt(0))], { type });
};

export const listFormats = async () => (await ask("api/formats")).formats;

export const listExamples = () => ask("api/examples");

export const listModels = async () => (await ask("api/models")).models;

export const isBack = async () => {
  try {
    return (await fetch("ready")).ok;
  } catch {
    return false;
  }
};
