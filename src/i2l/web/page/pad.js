// A pad to write a formula on: pen, finger or mouse; it is read when the hand rests. Its strokes are in pixels of the picture it makes.
import { readStrokes } from "./api.js";
import { byId, icon, make } from "./dom.js";
import { say } from "./words.js";

const REST_MS = 900; // without a new stroke: then it is read
const WIDTH_PX = 3;
const ERASER_PX = 12;
const MARGIN_PX = 12; // around the ink, in the picture

const words = (key) => ({ textContent: say(key), "data-say": key });
const button = (id, drawn, key, properties = {}) => make("button", { type: "button", id, ...properties }, icon(drawn), make("span", words(key)));

class Pad {
  #canvas = make("canvas", { id: "pad-sheet", role: "img", "aria-label": say("pad.title"), "data-say-label": "pad.title" });
  #strokes = []; // of points [x, y]
  #before = []; // what the strokes were, for undo
  #stroke = null;
  #erasing = false;
  #penSeen = false; // then fingers are the palm of the hand that writes
  #timer = 0;
  #asked = null;
  #on;

  // `on.read(file, reading)`: what was written, as a picture and as it was read; `on.failed(error)`.
  constructor(on) {
    this.#on = on;
    const tools = {
      undo: button("pad-undo", "undo", "pad.undo"), erase: button("pad-erase", "eraser", "pad.erase", { "aria-pressed": "false" }),
      clear: button("pad-clear", "bin", "pad.clear"), close: button("pad-close", "close", "pad.close"),
    };
    tools.undo.addEventListener("click", () => this.#back());
    tools.clear.addEventListener("click", () => this.#change([]));
    tools.close.addEventListener("click", () => this.hide());
    tools.erase.addEventListener("click", () => {
      this.#erasing = !this.#erasing;
      tools.erase.setAttribute("aria-pressed", String(this.#erasing));
    });
    this.section = make("section", { id: "pad", hidden: true, "aria-label": say("pad.title"), "data-say-label": "pad.title" },
      make("link", { rel: "stylesheet", href: "pad.css" }),
      make("div", { className: "buttons" }, ...Object.values(tools)), this.#canvas, make("p", { className: "hint", ...words("pad.hint") }));
    this.#canvas.addEventListener("pointerdown", (event) => this.#down(event));
    this.#canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const name of ["pointerup", "pointercancel"]) this.#canvas.addEventListener(name, () => this.#up());
    addEventListener("resize", () => { if (!this.section.hidden) this.#draw(); });
  }

  show() {
    this.section.hidden = false;
    this.#draw();
    this.section.scrollIntoView({ block: "nearest" });
  }

  hide() {
    this.#quiet();
    this.section.hidden = true;
  }

  #place(event) {
    const frame = this.#canvas.getBoundingClientRect();
    return [event.clientX - frame.left, event.clientY - frame.top].map((value) => Math.round(10 * value) / 10);
  }

  #down(event) {
    if (event.button !== 0 || (this.#penSeen && event.pointerType === "touch")) return;
    this.#penSeen ||= event.pointerType === "pen";
    this.#quiet();
    this.#canvas.setPointerCapture(event.pointerId);
    this.#stroke = [this.#place(event)];
    if (this.#erasing || event.buttons === 32) this.#erase(this.#stroke[0]);
    this.#draw();
  }

  #move(event) {
    if (!this.#stroke) return;
    for (const part of event.getCoalescedEvents?.() ?? [event]) {
      const place = this.#place(part);
      if (this.#erasing) this.#erase(place);
      else this.#stroke.push(place);
    }
    this.#draw();
  }

  #up() {
    if (!this.#stroke) return;
    const stroke = this.#stroke;
    this.#stroke = null;
    if (this.#erasing) this.#rest();
    else this.#change([...this.#strokes, stroke]);
  }

  #erase([x, y]) {
    const left = this.#strokes.filter((stroke) => stroke.every((point) => Math.hypot(point[0] - x, point[1] - y) > ERASER_PX));
    if (left.length < this.#strokes.length) { this.#before.push(this.#strokes); this.#strokes = left; }
  }

  #change(strokes) {
    this.#before.push(this.#strokes);
    this.#strokes = strokes;
    this.#draw();
    this.#rest();
  }

  #back() {
    this.#strokes = this.#before.pop() ?? this.#strokes;
    this.#draw();
    this.#rest();
  }

  #quiet() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
  }

  #rest() {
    this.#quiet();
    if (this.#strokes.length) this.#timer = setTimeout(() => this.#read(), REST_MS);
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const fine = devicePixelRatio || 1;
    Object.assign(this.#canvas, { width: width * fine, height: height * fine });
    const context = this.#canvas.getContext("2d");
    context.scale(fine, fine);
    const drawn = this.#stroke && !this.#erasing ? [...this.#strokes, this.#stroke] : this.#strokes;
    trace(context, drawn, getComputedStyle(this.#canvas).color);
  }

  async #read() {
    const points = this.#strokes.flat();
    const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
    const [left, top] = [Math.min(...xs) - MARGIN_PX, Math.min(...ys) - MARGIN_PX];
    const strokes = this.#strokes.map((stroke) => stroke.map(([x, y]) => [x - left, y - top]));
    const picture = new OffscreenCanvas(Math.ceil(Math.max(...xs) - left + MARGIN_PX), Math.ceil(Math.max(...ys) - top + MARGIN_PX));
    const context = picture.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, picture.width, picture.height);
    trace(context, strokes, "black");
    this.#asked = new AbortController();
    const { signal } = this.#asked;
    try {
      const reading = await readStrokes(strokes, { signal });
      const file = await picture.convertToBlob();
      if (!signal.aborted) this.#on.read(file, reading);
    } catch (error) {
      if (!signal.aborted) this.#on.failed(error);
    }
  }
}

const trace = (context, strokes, colour) => {
  Object.assign(context, { lineWidth: WIDTH_PX, lineCap: "round", lineJoin: "round", strokeStyle: colour });
  for (const [first, ...others] of strokes) {
    context.beginPath();
    context.moveTo(...first);
    for (const point of others.length ? others : [first]) context.lineTo(...point);
    context.stroke();
  }
};

let pad = null;

// Shows the pad, which is made when it is first wanted.
export const showPad = (on) => {
  if (!pad) {
    pad = new Pad(on);
    byId("result").before(pad.section);
    byId("new").addEventListener("click", () => pad.hide());
  }
  pad.show();
};
