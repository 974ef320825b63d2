// The page: an image comes in, goes to the server, and its reading is shown.
import { Away, isBack, latexOf, listExamples, readImage, Refusal, setToken } from "./api.js";
import { canPaste, copyText, fileOf, FORMS, pasteImage } from "./clipboard.js";
import { byId, make, percent } from "./dom.js";
import * as past from "./past.js";
import { Preview, typeset } from "./preview.js";
import { Stage } from "./stage.js";
import { isUnsure, regionOf, TokenList } from "./tokens.js";

const result = byId("result");
const latex = byId("latex");
const outcome = byId("outcome");
const SURE = 0.8;
const MUCH = 0.02; // of the ink; as in i2l.inference.unread
const PART_HELPS = new Set(["not-a-formula", "too-large"]); // problems that a part of the picture may not have

let current = null; // { file, whole, reading, tokens }
let running = null; // the AbortController of the reading that is on its way

const preview = new Preview();
const stage = new Stage({
  point(indices) {
    tokenList.light(indices);
    point(indices[0] ?? null);
  },
  click: (index) => tokenList.choose(index),
  crop: async (part) => open(await stage.cut(part), { whole: current.whole ?? current.file }),
});
const tokenList = new TokenList({
  point(index) {
    tokenList.light([]);
    point(index);
  },
  async exchange(index, text, probability) {
    const tokens = current.tokens.map((token) => ({ ...token }));
    const alternatives = [{ text: tokens[index].text, probability: tokens[index].probability },
      ...tokens[index].alternatives.filter((other) => other.text !== text)];
    tokens[index] = { ...tokens[index], text, probability, alternatives, changed: true };
    const texts = tokens.map((token) => token.text);
    const written = await latexOf(texts).catch(() => texts.join(" "));
    showTokens(tokens);
    byId("tokens").children[index]?.focus();
    setLatex(written);
  },
});

// Shows where a token was read, and how sure it is.
const point = (index) => {
  const token = index === null ? null : current.tokens[index];
  stage.light(token ? regionOf(current.tokens, index) : null);
  byId("here").replaceChildren(...(token ? [make("b", { textContent: token.text }), `${percent(token.probability)} sure`] : []));
};

const notify = (text, { retry = null, token = false } = {}) => {
  const notice = byId("notice");
  notice.hidden = !text;
  notice.querySelector("p").textContent = text ?? "";
  notice.querySelector("form").hidden = !token;
  byId("retry").hidden = !retry;
  byId("retry").onclick = retry;
  if (token) notice.querySelector("input").focus();
};

// ---- an image comes in

const open = async (file, { whole = null } = {}) => {
  notify(null);
  document.body.classList.add("occupied");
  byId("try").hidden = true;
  result.hidden = false;
  byId("whole").hidden = !whole;
  current = { file, whole, reading: null, tokens: [] };
  latex.value = "";
  preview.show("");
  showTokens([]);
  byId("readings").replaceChildren();
  await stage.show(URL.createObjectURL(file));
  await read();
};

const read = async () => {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const image = current;
  notify(null);
  result.classList.remove("unread");
  wait("Reading …");
  try {
    const reading = await readImage(image.file, { signal, onBusy: () => wait("The server is busy, waiting …") });
    if (signal.aborted) return;
    wait(null);
    show(reading);
    if (stage.shown) await past.keep(stage, reading);
    showPast();
  } catch (error) {
    if (signal.aborted) return;
    wait(null);
    result.classList.add("unread");
    explain(error);
  }
};

const wait = (text) => {
  byId("waiting").hidden = !text;
  result.classList.toggle("waiting", Boolean(text));
  result.setAttribute("aria-busy", String(Boolean(text)));
  outcome.classList.remove("doubtful");
  outcome.textContent = text ?? "";
};

const explain = (error) => {
  if (error instanceof Away) {
    notify("The server does not answer. Is “i2l serve” still running? This page goes on as soon as it is back.", { retry: again });
    waitForServer();
  } else if (error instanceof Refusal && error.status === 401) {
    notify("This server asks for a token.", { token: true });
  } else if (error instanceof Refusal) {
    const hint = PART_HELPS.has(error.kind) && stage.shown ? " To read only a part of it, drag over the image or press Crop." : "";
    notify(`${error.message}${hint}`, { retry: error.status >= 500 ? read : null });
    if (!stage.shown) leave();
  } else {
    notify(`Something went wrong in this page: ${error.message}`);
    throw error;
  }
};

// Back to the start, where there is nothing to show.
const leave = () => {
  document.body.classList.remove("occupied");
  result.hidden = true;
  byId("try").hidden = !byId("examples").children.length;
};

const waitForServer = async () => {
  const waitingFor = current;
  while (!await isBack()) await new Promise((resolve) => setTimeout(resolve, 1500));
  if (!byId("retry").hidden && current === waitingFor) await again();
};

// What was asked last, once more: a reading, or at the very start the examples.
const again = () => {
  notify(null);
  return current ? read() : showExamples();
};

// ---- a reading is shown

const show = (reading) => {
  current.reading = reading;
  showTokens(reading.tokens);
  fit(reading.latex);
  setLatex(reading.latex, { keep: false });
  const lost = reading.finished ? "" : " · cut off: too long";
  const missed = reading.unread >= MUCH ? ` · ${percent(reading.unread)} of the ink not read` : "";
  outcome.replaceChildren(make("b", { textContent: `${percent(reading.confidence)} sure` }),
    ` · ${reading.seconds.toFixed(2)} s${lost}${missed}`);
  outcome.classList.toggle("doubtful", reading.confidence < SURE);
  showReadings(reading);
};

const fit = (text) => {
  preview.fit(text, stage.inkOnScreen(current.reading.ink));
};

const showTokens = (tokens) => {
  current.tokens = tokens;
  const unsure = tokens.map((token, index) => (isUnsure(token) && !token.changed ? index : -1)).filter((index) => index >= 0);
  stage.tell(tokens, unsure);
  tokenList.show(tokens);
  byId("legend").hidden = !tokens.length;
};

const setLatex = (text, { keep = true } = {}) => {
  latex.value = text;
  changed(keep);
};

const changed = (keep = true) => {
  preview.show(latex.value);
  for (const button of byId("readings").children) {
    const chosen = button.dataset.latex === latex.value;
    button.setAttribute("aria-checked", String(chosen));
  }
  if (keep && current?.reading) past.amend(current.reading.request_id, latex.value);
};

// Where a reading differs from the best one: most look alike when typeset.
const difference = (bestLatex, otherLatex) => {
  const [best, other] = [bestLatex, otherLatex].map((text) => text.match(/\\[A-Za-z]+|[^]/g) ?? []);
  let [first, last] = [0, 0];
  while (first < other.length && other[first] === best[first]) first++;
  const most = Math.min(other.length, best.length) - first;
  while (last < most && other.at(-1 - last) === best.at(-1 - last)) last++;
  const end = other.length - last;
  const text = (from, to) => other.slice(Math.max(0, from), to).join("");
  return make("code", {}, `… ${text(first - 8, first)}`, make("mark", { textContent: text(first, end) || "∅" }), `${text(end, end + 8)} …`);
};

const showReadings = (reading) => {
  const all = [{ latex: reading.latex, confidence: reading.confidence }, ...reading.alternatives];
  byId("readings").replaceChildren(...all.map((one, index) => {
    const formula = make("span", { className: "formula" });
    typeset(formula, one.latex, { displayMode: false });
    const words = make("span", {}, formula, ...(index ? [difference(reading.latex, one.latex)] : []));
    const button = make("button", { type: "button", className: "reading", role: "radio", "aria-checked": String(index === 0),
      "aria-label": `${one.latex}, ${percent(one.confidence)} sure` },
      words, make("span", { className: "share", textContent: percent(one.confidence) }));
    button.dataset.latex = one.latex;
    button.addEventListener("click", () => setLatex(one.latex));
    return button;
  }));
};

// ---- examples and what was read before

const card = (address, text, title, onClick) => {
  const button = make("button", { type: "button", className: "card", title },
    make("span", { className: "picture" }, make("img", { src: address, alt: "", loading: "lazy" })), make("span", { textContent: text }));
  button.addEventListener("click", onClick);
  return button;
};

const showExamples = async () => {
  try {
    const examples = await listExamples();
    byId("examples").replaceChildren(...examples.map(({ name, url }) => card(url, name, `Read the example: ${name}`, async () => {
      try {
        open(await (await fetch(url)).blob());
      } catch {
        explain(new Away());
      }
    })));
    byId("try").hidden = !examples.length || document.body.classList.contains("occupied");
  } catch (error) {
    explain(error);
  }
};

const showPast = () => {
  const entries = past.list();
  byId("past").hidden = !entries.length;
  byId("history").replaceChildren(...entries.map((entry) => {
    const text = entry.latex ?? entry.reading.latex;
    return card(entry.image, text, "Show this reading again", () => restore(entry));
  }));
};

const restore = async (entry) => {
  running?.abort();
  result.classList.remove("unread");
  wait(null);
  notify(null);
  document.body.classList.add("occupied");
  byId("try").hidden = true;
  result.hidden = false;
  byId("whole").hidden = true;
  current = { file: null, whole: null, reading: entry.reading, tokens: [] };
  await stage.show(entry.image);
  const { naturalWidth, naturalHeight } = stage.image;
  current.file = await stage.cut([0, 0, naturalWidth, naturalHeight]);
  show(scaled(entry.reading, naturalWidth / entry.width));
  setLatex(entry.latex ?? entry.reading.latex, { keep: false });
  scrollTo({ top: 0, behavior: "smooth" });
};

// The reading of an image that is kept smaller than it was.
const scaled = (reading, factor) => factor === 1 ? reading : {
  ...reading,
  ink: reading.ink.map((side) => side * factor),
  tokens: reading.tokens.map((token) => ({ ...token, box: token.box && token.box.map((side) => side * factor) })),
};

// ---- what the person does

byId("choose").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", ({ target }) => {
  if (target.files[0]) open(target.files[0]);
  target.value = "";
});
document.addEventListener("paste", (event) => {
  const file = fileOf(event.clipboardData);
  if (file) {
    event.preventDefault();
    open(file);
  } else if (!event.target.closest?.("textarea, input:not([type=checkbox])")) {
    notify("There is no image on the clipboard. Take a screenshot of the formula first.");
  }
});
byId("paste").hidden = !canPaste();
byId("paste").addEventListener("click", async () => {
  try {
    const image = await pasteImage();
    image ? open(image) : notify("There is no image on the clipboard. Take a screenshot of the formula first.");
  } catch {
    notify("The browser does not let this page read the clipboard. Press Ctrl V instead.");
  }
});
if (navigator.platform.startsWith("Mac")) byId("paste-keys").textContent = "⌘ V";

let depth = 0; // of elements that the dragged file is over
const dragged = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragenter", (event) => { if (dragged(event)) { depth++; byId("drop").hidden = false; } });
addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); byId("drop").hidden = depth === 0; });
addEventListener("dragover", (event) => { if (dragged(event)) event.preventDefault(); });
addEventListener("drop", (event) => {
  depth = 0;
  byId("drop").hidden = true;
  const file = fileOf(event.dataTransfer);
  if (!file) return;
  event.preventDefault();
  open(file);
});

byId("whole").addEventListener("click", () => open(current.whole));
latex.addEventListener("input", () => changed());
addEventListener("resize", () => { if (current?.reading && stage.shown) fit(latex.value); });
for (const button of document.querySelectorAll("[data-copy]")) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await copyText(FORMS[button.dataset.copy](latex.value));
      button.textContent = "Copied";
    } catch (error) {
      notify(`Cannot copy: ${error.message}`);
    }
    setTimeout(() => { button.textContent = label; }, 1300);
  });
}
byId("forget").addEventListener("click", () => { past.clear(); showPast(); });
byId("dismiss").addEventListener("click", () => notify(null));
byId("notice").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(event.target.querySelector("input").value);
  again();
});

showExamples();
showPast();
