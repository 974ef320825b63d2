// The page: pictures come in, go to the server, and their readings are shown. One by one, or many in a table.
import { Away, chooseModel, isBack, listExamples, listModels, readImage, Refusal, runsHere, setToken, settle } from "./api.js";
import { Batch } from "./batch.js";
import { startDemo } from "./demo.js";
import { byId, icon, make, pause } from "./dom.js";
import { exportAs } from "./exports.js";
import { loadFormats } from "./formats.js";
import { canCapture, canPaste, captureScreen, filesOf, hasFiles, pasteImage, picturesOf } from "./intake.js";
import { isHigh, isPdf, leavesMuch, PageView } from "./pages.js";
import * as past from "./past.js";
import { Result } from "./result.js";
import { tinted } from "./tone.js";
import { LANGUAGES, preferred, say, speak } from "./words.js";

const PART_HELPS = new Set(["not-a-formula", "too-large"]); // problems that a part of the picture may not have
const PAST_PAGE = 24; // readings shown at a time
const isMac = navigator.platform.startsWith("Mac");
const KEYS = isMac ? "⌘ V" : "Ctrl V";

let current = null; // { file, name, whole, id, row }
let running = null; // the AbortController of the reading that is on its way
let pastShown = PAST_PAGE;

await speak(preferred());
if (runsHere) { // what only a server has is not shown
  byId("api").hidden = true;
  byId("privacy").dataset.say = "privacyHere";
  byId("privacy").textContent = say("privacyHere");
}
const result = new Result({
  crop: async (part) => open(await result.stage.cut(part), { name: current.name, whole: current.whole ?? current.file }),
  edit: (latex) => {
    if (current.row) { current.row.latex = latex; batch.refresh(current.row); }
    if (current.id) past.amend(current.id, latex);
  },
  notify: (text) => notify(text),
});
const batch = new Batch({
  open: (row) => showRow(row),
  read: (row) => past.keepFile(row.file, row.reading, { name: row.name }).catch(() => {}), // a browser that keeps nothing still reads
  failed: (error) => notify(error.message),
});

const pages = new PageView({ open: (part) => open(part, { name: current?.name, whole: current?.whole ?? current?.file }), failed: (error) => explain(error) });

// Offers a picture that is too large, high, or mostly unread, as a page; gives whether there are formulas on it, and far apart if these alone count.
const offerPage = async (file, { always = false, scattered = false } = {}) => {
  const asked = current;
  try {
    if (!await pages.find(file) && !always) return false;
    if (scattered && !pages.isScattered) return false;
  } catch (error) {
    if (always && current === asked) explain(error);
    return false;
  }
  if (current !== asked) return true;
  result.wait(null);
  notify(null);
  view("pages");
  pages.show();
  return true;
};

const notify = (text, { retry = null, named = say("retry"), token = false } = {}) => {
  const notice = byId("notice");
  notice.hidden = !text;
  notice.querySelector("p").textContent = text ?? "";
  notice.querySelector("form").hidden = !token;
  byId("retry").hidden = !retry;
  byId("retry").textContent = named;
  byId("retry").onclick = retry;
  if (token) notice.querySelector("input").focus();
};

// Shows one of the page's faces: start, result or batch.
const view = (name) => {
  document.body.dataset.view = name;
  byId("start").hidden = name !== "start";
  byId("try").hidden = name !== "start" || !byId("examples").children.length;
  byId("result").hidden = name !== "result";
  byId("batch").hidden = name !== "batch";
  byId("to-table").hidden = !(name === "result" && batch.size);
  if (name !== "pages") pages.hide();
  byId("past").hidden = name === "batch" || name === "pages" || !byId("past").dataset.some;
};

// ---- pictures come in

const take = (files, options = {}) => {
  notify(null);
  if (!files.length) notify(say("noFiles"));
  else if (files.length === 1 && document.body.dataset.view !== "batch") open(files[0], { name: files[0].name, ...options });
  else {
    running?.abort();
    if (document.body.dataset.view !== "batch") batch.clear();
    view("batch");
    batch.add(files);
  }
};

// Shows a picture and reads it; with `crop` the person first chooses a part.
const open = async (file, { name = "", whole = null, crop = false } = {}) => {
  running?.abort();
  notify(null);
  current = { file, name, whole, id: null, row: null };
  if (!whole) batch.clear();
  if (isPdf(file)) { await offerPage(file, { always: true }); return; }
  view("result");
  byId("whole").hidden = !whole;
  const mine = current;
  await result.showPicture(URL.createObjectURL(file));
  if (current !== mine) return;
  if (crop) result.stage.frame.begin();
  else await read();
};

const read = async () => {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const asked = current;
  notify(null);
  result.wait(say("readingNow"));
  try {
    const reading = await readImage(asked.file, { signal, onBusy: (why = "busy") => result.wait(say(why)) });
    if (signal.aborted) return;
    const much = leavesMuch(reading);
    if ((much || isHigh(reading)) && !asked.whole && await offerPage(asked.file, { scattered: !much })) return;
    result.show(reading);
    notify(reading.note ? say("pad.print") : null);
    asked.id = reading.request_id;
    keepFocus();
    if (result.stage.shown) await past.keep(result.stage, reading, { name: asked.name }).catch(() => {});
    await showPast();
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof Refusal && PART_HELPS.has(error.kind) && !asked.whole && await offerPage(asked.file)) return;
    result.showNothing();
    explain(error);
  }
};

// What had the focus may be gone with the start screen: then Enter copies.
const keepFocus = () => {
  const { activeElement } = document;
  if (!activeElement || activeElement === document.body || !activeElement.checkVisibility()) byId("copy").focus({ preventScroll: true });
};

const explain = (error) => {
  if (error instanceof Away) {
    notify(say("away"), { retry: again });
    waitForServer();
  } else if (error instanceof Refusal && error.status === 401) {
    notify(say("askToken"), { token: true });
  } else if (error instanceof Refusal) {
    const told = say.has(`problem.${error.kind}`) ? say(`problem.${error.kind}`) : error.message;
    const hint = PART_HELPS.has(error.kind) && result.stage.shown ? ` ${say("partHelps")}` : "";
    notify(`${told}${hint}`, { retry: error.status >= 500 ? read : null });
    if (!result.stage.shown && document.body.dataset.view === "result") { current = null; view("start"); }
  } else {
    notify(say("bug", { message: error.message }));
    throw error;
  }
};

const waitForServer = async () => {
  const waitingFor = current;
  while (!await isBack()) await pause(1500);
  if (!byId("retry").hidden && current === waitingFor) await again();
};

// What was asked last, once more: a reading, or at the very start what the page needs.
const again = () => {
  notify(null);
  return current ? read() : begin();
};

// Shows what was written on the pad, with its reading.
const showWritten = async (file, reading) => {
  running?.abort();
  current = { file, name: "", whole: null, id: reading.request_id, row: null };
  view("result");
  byId("whole").hidden = true;
  const mine = current;
  await result.showPicture(URL.createObjectURL(file));
  if (current !== mine) return;
  result.show(reading);
  notify(reading.note && say("pad.print"));
};
byId("write").addEventListener("click", async () => (await import("./pad.js")).showPad({ read: showWritten, failed: explain }));

// ---- what was read before, and rows of the table

const restore = async (entry, { row = null } = {}) => {
  running?.abort();
  notify(null);
  current = { file: entry.image, name: entry.name, whole: null, id: entry.id, row };
  view("result");
  byId("whole").hidden = true;
  result.wait(null);
  const mine = current;
  await result.showPicture(URL.createObjectURL(entry.image));
  if (current !== mine) return;
  const factor = result.stage.shown ? result.stage.image.naturalWidth / entry.width : 1;
  result.show(scaled(entry.reading, factor), entry.latex);
  keepFocus();
  scrollTo({ top: 0 });
};

const showRow = (row) => restore({ image: row.file, name: row.name, id: row.reading.request_id, width: row.reading.image_width, reading: row.reading, latex: row.latex }, { row });

// The reading of a picture that is kept smaller than it was.
const scaled = (reading, factor) => factor === 1 ? reading : {
  ...reading,
  ink: reading.ink.map((side) => side * factor),
  tokens: reading.tokens.map((token) => ({ ...token, box: token.box && token.box.map((side) => side * factor) })),
};

const card = (address, text, title, onClick) => {
  const button = make("button", { type: "button", className: "card", title },
    make("span", { className: "picture" }, tinted(make("img", { src: address, alt: "", loading: "lazy" }))), make("span", { className: "name", textContent: text }));
  button.addEventListener("click", onClick);
  return button;
};

const pastCard = (entry) => {
  const address = URL.createObjectURL(entry.image);
  const shown = card(address, entry.latex, say("pastHint"), () => past.get(entry.id).then((now) => restore(now ?? entry)));
  const forget = make("button", { type: "button", className: "icon remove", title: say("removeOne"), "aria-label": say("removeOne") }, icon("close"));
  forget.addEventListener("click", async () => { await past.remove(entry.id); await showPast(); byId("search").focus(); });
  return Object.assign(make("div", { className: "past-card" }, shown, forget), { address });
};

const showPast = async () => {
  const text = byId("search").value.trim();
  const [all, found] = await Promise.all([past.count(), past.list({ text, most: pastShown + 1 })]).catch(() => [0, []]);
  byId("past").dataset.some = all ? "yes" : "";
  byId("past").hidden = !all || document.body.dataset.view === "batch";
  byId("past-none").hidden = found.length > 0;
  byId("past-more").hidden = found.length <= pastShown;
  for (const { address } of byId("history").children) URL.revokeObjectURL(address);
  byId("history").replaceChildren(...found.slice(0, pastShown).map(pastCard));
};

const showExamples = async () => {
  const examples = await listExamples();
  byId("examples").replaceChildren(...examples.map(({ name, url }) => card(url, name, say("exampleHint", { name }), async () => {
    try {
      open(await (await fetch(url)).blob(), { name });
    } catch {
      explain(new Away());
    }
  })));
  view(document.body.dataset.view);
};

// Where there are several models the person may choose one. A model for print reads handwriting wrong: there is no pad for it.
const offerModels = async () => {
  const models = await listModels();
  byId("write").hidden = !models.some((model) => model.handwriting);
  byId("models").hidden = models.length < 2;
  byId("model").replaceChildren(byId("model").options[0], ...models.map(({ name }) => make("option", { value: name, textContent: name })));
};
byId("model").addEventListener("change", ({ target }) => {
  chooseModel(target.value);
  if (document.body.dataset.view === "result" && current?.file) read();
});

// ---- what the person does

byId("choose").addEventListener("click", () => byId("file").click());
byId("photo").addEventListener("click", () => byId("camera").click());
byId("folder").addEventListener("click", () => byId("tree").click());
for (const id of ["file", "camera", "tree"]) {
  byId(id).addEventListener("change", ({ target }) => {
    const files = id === "tree" ? picturesOf(target.files) : [...target.files];
    target.value = "";
    take(files);
  });
}
const ownPaste = (target) => target.closest?.(".cm-editor, input");
document.addEventListener("paste", async (event) => {
  if (hasFiles(event.clipboardData)) {
    event.preventDefault();
    take(await filesOf(event.clipboardData));
  } else if (!ownPaste(event.target)) notify(say("noImage"));
}, { capture: true }); // before the editor takes it for text
document.addEventListener("copy", (event) => {
  if (document.body.dataset.view === "result" && result.latex && !ownPaste(event.target) && getSelection().isCollapsed) result.copyInto(event);
});
byId("paste").hidden = !canPaste();
byId("paste").addEventListener("click", async () => {
  try {
    const image = await pasteImage();
    image ? take([image]) : notify(say("noImage"));
  } catch {
    notify(say("noClipboard", { keys: KEYS }));
  }
});
byId("capture").hidden = !canCapture();
byId("capture").addEventListener("click", async () => {
  try {
    const image = await captureScreen();
    if (image) take([image], { crop: true });
  } catch {
    notify(say("noCapture"));
  }
});
byId("paste-keys").textContent = KEYS;

let depth = 0; // of elements that the dragged file is over
const dragged = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragenter", (event) => { if (dragged(event)) { depth++; byId("drop").hidden = false; } });
addEventListener("dragleave", () => { depth = Math.max(0, depth - 1); byId("drop").hidden = depth === 0; });
addEventListener("dragover", (event) => { if (dragged(event)) event.preventDefault(); });
addEventListener("drop", async (event) => {
  depth = 0;
  byId("drop").hidden = true;
  if (!hasFiles(event.dataTransfer)) return;
  event.preventDefault();
  take(await filesOf(event.dataTransfer));
}, { capture: true });

byId("new").addEventListener("click", () => {
  running?.abort();
  notify(null);
  current = null;
  batch.clear();
  view("start");
  scrollTo({ top: 0 });
  byId("choose").focus({ preventScroll: true });
});
byId("to-table").addEventListener("click", () => { running?.abort(); view("batch"); });
byId("whole").addEventListener("click", () => open(current.whole, { name: current.name }));
byId("search").addEventListener("input", () => { pastShown = PAST_PAGE; showPast(); });
byId("past-more").addEventListener("click", () => { pastShown += PAST_PAGE; showPast(); });
for (const button of document.querySelectorAll("[data-past]")) {
  button.addEventListener("click", async () => exportAs(button.dataset.past, await past.list({ text: byId("search").value.trim() }), "readings"));
}
byId("forget").addEventListener("click", async () => {
  if (!confirm(say("forgetSure", { count: await past.count() }))) return;
  await past.clear();
  byId("search").value = "";
  await showPast();
});
byId("dismiss").addEventListener("click", () => notify(null));
byId("notice").querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(event.target.querySelector("input").value);
  again();
});
byId("language").append(...Object.entries(LANGUAGES).map(([value, textContent]) => make("option", { value, textContent })));
byId("language").value = preferred();
byId("language").addEventListener("change", async ({ target }) => {
  await speak(target.value, { keep: true });
  result.tell();
  batch.progress();
  await showPast();
});

const begin = async () => {
  try {
    await Promise.all([showExamples(), loadFormats(), offerModels()]);
  } catch (error) {
    explain(error);
  }
};

document.body.dataset.ready = "yes"; // everything answers from here on
settle({ take, offer: (text, named, retry) => notify(text, { named, retry }) });
await Promise.all([begin(), showPast(), startDemo()]);
