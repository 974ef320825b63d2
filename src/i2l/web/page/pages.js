// A whole page: its formulas as rectangles to click, move, resize, draw and read; by mouse, finger and keyboard.
import { askPage, readImage } from "./api.js";
import { byId, icon, make, save } from "./dom.js";
import { copyText } from "./formats.js";
import { typeset } from "./preview.js";
import { verdictChip } from "./verdict.js";
import { say } from "./words.js";

const MIN_PX = 6; // of the page
const STEP = 1 / 200; // of the page, for an arrow key
const CLICK_PX = 4; // on the screen: who moves less has clicked
const AT_ONCE = 4; // readings on their way
const MARGIN = 4; // pixels of paper around a rectangle that is read
const HANDLES = ["nw", "ne", "se", "sw"];
const MUCH_UNREAD = 0.35; // of the ink, above which a picture may be a page ...
const SOME_UNREAD = 0.02; // ... and so may one that is many lines high, where some was not read
const MANY_LINES_PX = 600; // at the scale of the model
const DOUBTFUL = 0.5;

export const isPdf = (file) => file.type === "application/pdf" || /\.pdf$/i.test(file.name ?? "");

// Whether a picture is many lines high, so that it may be a page, however sure its reading is.
export const isHigh = ({ image_height: height, scale }) => height * scale > MANY_LINES_PX;

// Whether a reading leaves so much of its picture unread that it may be a page.
export const leavesMuch = (reading) => reading.unread > MUCH_UNREAD
  || (isHigh(reading) && (reading.unread > SOME_UNREAD || reading.confidence < DOUBTFUL));

export class PageView {
  #file = null;
  #page = 1;
  #about = null; // what the server said of the page
  #items = []; // { box, kind, number, latex, confidence, element, row }
  #grip = null;
  #stop = new AbortController();
  #on;

  // `on.open(blob)`: a part is to be shown by itself; `on.failed(error)`.
  constructor(on) {
    this.#on = on;
    this.element = make("section", { id: "pages", hidden: true, "aria-labelledby": "pages-title" });
    byId("main").append(this.element);
  }

  get shown() { return !this.element.hidden; }

  hide() {
    this.#stop.abort();
    this.element.hidden = true;
    this.element.replaceChildren();
    this.#items = [];
  }

  // Asks where the formulas of a file are, and shows them; gives how many there are.
  async find(file, page = 1) {
    this.#stop.abort();
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const about = await askPage(file, { page, read: false, signal });
    if (signal.aborted) return 0;
    [this.#file, this.#page, this.#about] = [file, page, about];
    const address = about.picture ?? URL.createObjectURL(file);
    this.image = make("img", { src: address, alt: say("pageAlt", { page }) });
    await this.image.decode().catch(() => {});
    return about.formulas.length;
  }

  // Whether what was found lies further apart than the lines of one formula do: with more paper between two of them than both are high.
  get isScattered() {
    const boxes = this.#about.formulas.map(({ box }) => box).sort((one, other) => one[1] - other[1]);
    let above = null;
    return boxes.some((box) => {
      const apart = above && box[1] - above[3] > above[3] - above[1] + box[3] - box[1];
      if (!above || box[3] > above[3]) above = box;
      return apart;
    });
  }

  show() {
    const { formulas, num_pages: all } = this.#about;
    this.element.replaceChildren(this.#head(all), this.#stage(), make("ol", { id: "page-list", "aria-label": say("pageList") }));
    this.element.hidden = false;
    this.#items = [];
    for (const { box, kind, number } of formulas) this.#add({ box: [...box], kind, number });
    this.#count();
    this.#items[0]?.element.focus({ preventScroll: true });
  }

  #head(all) {
    const button = (id, word, name, act) => {
      const made = make("button", { id, type: "button" }, icon(name), make("span", { textContent: say(word) }));
      made.addEventListener("click", () => act(made));
      return made;
    };
    const turn = (by) => async () => { await this.find(this.#file, this.#page + by).then(() => this.show()).catch(this.#on.failed); };
    const buttons = make("div", { className: "buttons small" },
      button("page-read-all", "pageReadAll", "table", () => this.readAll()),
      button("page-copy-all", "copyAll", "copy", (made) => copyText(this.#markdown()).then(() => this.#flash(made), this.#on.failed)),
      button("page-save", "pageSave", "download", () => save(new Blob([this.#markdown()], { type: "text/markdown" }), "formulas.md")));
    if (all > 1) {
      const before = button("page-before", "pageBefore", "undo", turn(-1)), next = button("page-next", "pageNext", "redo", turn(1));
      before.disabled = this.#page === 1;
      next.disabled = this.#page === all;
      buttons.prepend(before, make("span", { textContent: say("pageOf", { page: this.#page, all }) }), next);
    }
    return make("div", { className: "head" }, make("h2", { id: "pages-title", textContent: say("looksLikePage") }), make("span", { id: "page-count", role: "status" }), buttons);
  }

  #stage() {
    this.paper = make("div", { id: "page-paper" }, this.image);
    this.paper.addEventListener("pointerdown", (event) => this.#down(event));
    this.paper.addEventListener("pointermove", (event) => this.#move(event));
    this.paper.addEventListener("pointerup", (event) => this.#drop(event));
    this.paper.addEventListener("pointercancel", () => { this.#grip = null; });
    return make("div", {}, make("p", { className: "hint", textContent: say("pageKeys") }), this.paper);
  }

  #add({ box, kind = "displayed", number = null }) {
    const item = { box, kind, number, latex: "", confidence: 0 };
    item.element = make("div", { className: `formula-box ${kind}`, tabIndex: 0, role: "button" }, ...HANDLES.map((side) => make("i", { className: `handle ${side}` })));
    item.element.item = item;
    item.element.addEventListener("keydown", (event) => this.#key(event, item));
    this.paper.append(item.element);
    this.#items.push(item);
    this.#place(item);
    return item;
  }

  #place(item) {
    const [left, top, right, bottom] = item.box;
    const { width, height } = this.#about;
    const share = (value, of) => `${(100 * value) / of}%`;
    Object.assign(item.element.style, { left: share(left, width), top: share(top, height), width: share(right - left, width), height: share(bottom - top, height) });
    item.element.setAttribute("aria-label", item.latex || say("pageBox", { number: this.#items.indexOf(item) + 1 }));
  }

  // Where a pointer is, in pixels of the page.
  #at(event) {
    const frame = this.paper.getBoundingClientRect();
    return [((event.clientX - frame.left) / frame.width) * this.#about.width, ((event.clientY - frame.top) / frame.height) * this.#about.height];
  }

  #down(event) {
    if (event.button !== 0) return;
    const at = this.#at(event);
    const element = event.target.closest(".formula-box");
    const side = HANDLES.find((name) => event.target.classList.contains(name));
    if (!element && event.pointerType === "touch") return; // a finger on paper scrolls
    this.#grip = { item: element?.item ?? null, side, start: at, box: element && [...element.item.box], screen: [event.clientX, event.clientY], moved: false };
    this.paper.setPointerCapture(event.pointerId);
    element?.focus({ preventScroll: true });
    event.preventDefault();
  }

  #move(event) {
    const grip = this.#grip;
    if (!grip) return;
    if (!grip.moved && Math.hypot(event.clientX - grip.screen[0], event.clientY - grip.screen[1]) < CLICK_PX) return;
    grip.moved = true;
    const [x, y] = this.#at(event);
    if (!grip.item) { // drawn on empty paper
      grip.item = this.#add({ box: [...grip.start, ...grip.start] });
      [grip.side, grip.box] = ["se", [...grip.item.box]];
    }
    const [dx, dy] = [x - grip.start[0], y - grip.start[1]];
    this.#change(grip.item, grip.side, grip.box, dx, dy);
  }

  // Moves a rectangle, or one of its corners, without leaving the page.
  #change(item, side, [left, top, right, bottom], dx, dy) {
    const { width, height } = this.#about;
    const keep = (value, most) => Math.min(Math.max(value, 0), most);
    if (!side) {
      dx = Math.min(Math.max(dx, -left), width - right);
      dy = Math.min(Math.max(dy, -top), height - bottom);
      item.box = [left + dx, top + dy, right + dx, bottom + dy];
    } else {
      const x = keep((side.includes("w") ? left : right) + dx, width), y = keep((side.includes("n") ? top : bottom) + dy, height);
      const [x0, x1] = side.includes("w") ? [Math.min(x, right - MIN_PX), right] : [left, Math.max(x, left + MIN_PX)];
      const [y0, y1] = side.includes("n") ? [Math.min(y, bottom - MIN_PX), bottom] : [top, Math.max(y, top + MIN_PX)];
      item.box = [x0, y0, x1, y1];
    }
    this.#forget(item);
    this.#place(item);
  }

  #drop() {
    const grip = this.#grip;
    this.#grip = null;
    if (!grip?.item) return;
    grip.item.element.focus({ preventScroll: true });
    if (!grip.moved) this.#read(grip.item).catch(this.#on.failed);
    this.#count();
  }

  #key(event, item) {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (event.key === "Enter" || event.key === " ") this.#read(item).catch(this.#on.failed);
    else if (event.key === "Delete") this.#remove(item);
    else if (dx || dy) this.#change(item, event.shiftKey ? "se" : null, item.box, dx * this.#about.width * STEP, dy * this.#about.height * STEP);
    else return;
    event.preventDefault();
  }

  #remove(item) {
    const place = this.#items.indexOf(item);
    this.#items.splice(place, 1);
    item.element.remove();
    item.row?.remove();
    (this.#items[place] ?? this.#items.at(-1))?.element.focus();
    this.#count();
  }

  // A rectangle that was changed has to be read again.
  #forget(item) {
    if (!item.latex) return;
    item.latex = "";
    item.row?.remove();
    item.row = null;
    item.element.classList.remove("read");
  }

  async #cut(item) {
    const { width } = this.#about;
    const zoom = this.image.naturalWidth / width;
    const [left, top, right, bottom] = item.box.map((side) => side * zoom);
    const [x, y] = [Math.max(0, Math.floor(left - MARGIN)), Math.max(0, Math.floor(top - MARGIN))];
    const [w, h] = [Math.min(this.image.naturalWidth, Math.ceil(right + MARGIN)) - x, Math.min(this.image.naturalHeight, Math.ceil(bottom + MARGIN)) - y];
    const canvas = new OffscreenCanvas(w, h);
    canvas.getContext("2d").drawImage(this.image, x, y, w, h, 0, 0, w, h);
    return canvas.convertToBlob();
  }

  async #read(item) {
    if (item.latex) { item.row?.querySelector("button")?.focus(); return; }
    item.element.classList.add("waiting");
    try {
      const reading = await readImage(await this.#cut(item), { signal: this.#stop.signal, patient: true });
      Object.assign(item, { latex: reading.latex, confidence: reading.confidence });
      item.element.classList.add("read");
      this.#list(item);
    } finally {
      item.element.classList.remove("waiting");
      this.#place(item);
      this.#count();
    }
  }

  async readAll() {
    const left = this.#items.filter((item) => !item.latex);
    const { signal } = this.#stop;
    let failed = null;
    const work = async () => {
      while (left.length && !signal.aborted) await this.#read(left.shift()).catch((error) => { failed = error; });
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (failed && !signal.aborted && !this.#items.some((item) => item.latex)) this.#on.failed(failed);
  }

  // Shows a reading in the list, in the order of the page.
  #list(item) {
    const shown = make("span", { className: "formula" });
    const copy = make("button", { type: "button", className: "icon", title: say("copy"), "aria-label": say("copyNamed", { name: item.latex }) }, icon("copy"));
    copy.addEventListener("click", () => copyText(item.latex).then(() => this.#flash(copy), this.#on.failed));
    const open = make("button", { type: "button", textContent: say("pageOpen") });
    open.addEventListener("click", async () => this.#on.open(await this.#cut(item)));
    item.row = make("li", {}, shown, make("code", { textContent: item.latex }), verdictChip(item.confidence), copy, open);
    typeset(shown, item.latex, { displayMode: item.kind === "displayed" });
    const after = this.#items.slice(this.#items.indexOf(item) + 1).find((other) => other.row);
    byId("page-list").insertBefore(item.row, after?.row ?? null);
  }

  #count() {
    const read = this.#items.filter((item) => item.latex).length;
    byId("page-count").textContent = say("pageCount", { read, all: this.#items.length });
    for (const id of ["page-copy-all", "page-save"]) byId(id).disabled = !read;
    byId("page-read-all").disabled = !this.#items.length;
  }

  #markdown() {
    const lines = this.#items.filter((item) => item.latex).map(({ kind, latex }) => (kind === "inline" ? `$${latex}$` : `$$\n${latex}\n$$`));
    return `${lines.join("\n\n")}\n`;
  }

  #flash(button) {
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1200);
  }
}
