// The frame around the part to read: it moves and changes its size by mouse, finger and keyboard.
import { byId, make } from "./dom.js";

const MIN_PX = 8; // of the image
const STEP = 1 / 40; // of the image, for an arrow key
const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];

export class CropFrame {
  #paper = byId("paper");
  #element = byId("selection");
  #button = byId("crop");
  #part = null; // left, top, right, bottom in pixels of the image
  #grip = null; // what is being dragged: which sides follow the pointer, from where
  #stage;
  #on;

  constructor(stage, on) {
    this.#stage = stage;
    this.#on = on;
    this.#element.append(...HANDLES.map((side) => make("i", { className: `handle ${side}` })));
    this.#element.addEventListener("keydown", (event) => this.#key(event));
    this.#paper.addEventListener("pointerdown", (event) => this.#down(event));
    this.#paper.addEventListener("pointermove", (event) => this.#move(event));
    this.#paper.addEventListener("pointerup", () => this.#drop());
    this.#paper.addEventListener("pointercancel", () => this.#drop());
    this.#button.addEventListener("click", () => (this.active ? this.end() : this.begin()));
    byId("read-part").addEventListener("click", () => this.#finish());
    byId("cancel-crop").addEventListener("click", () => { this.end(); this.#button.focus(); });
  }

  get active() { return this.#part !== null; }

  // Begins with a frame around a part, by itself around most of the picture.
  begin(part = null) {
    const [, , width, height] = this.#stage.whole;
    this.#set(part ?? [0.1 * width, 0.1 * height, 0.9 * width, 0.9 * height]);
    this.#open();
    this.#element.focus({ preventScroll: true });
  }

  // Begins under the pointer, which has dragged from a place to where it is now.
  pull([x, y], event) {
    this.#set([x, y, x, y]);
    this.#open();
    this.#grip = { anchor: [x, y] };
    this.#move(event);
  }

  #open() {
    this.#stage.trim(null);
    this.#element.hidden = byId("crop-bar").hidden = false;
    this.#paper.classList.add("cropping");
    this.#button.setAttribute("aria-pressed", "true");
    this.#on.cropping();
  }

  end() {
    const was = this.active;
    this.#part = this.#grip = null;
    this.#element.hidden = byId("crop-bar").hidden = true;
    this.#paper.classList.remove("cropping");
    this.#button.setAttribute("aria-pressed", "false");
    if (was) this.#on.cropping();
  }

  #finish() {
    const [left, top, right, bottom] = this.#part.map(Math.round);
    this.end();
    this.#on.crop([left, top, right - left, bottom - top]);
  }

  draw() {
    if (!this.active) return;
    const [left, top, right, bottom] = this.#part;
    const px = (value) => `${value * this.#stage.zoom}px`;
    Object.assign(this.#element.style, { left: px(left), top: px(top), width: px(right - left), height: px(bottom - top) });
  }

  #set([left, top, right, bottom]) {
    const [, , width, height] = this.#stage.whole;
    const keep = (value, least, most) => Math.min(Math.max(value, least), most);
    this.#part = [keep(left, 0, width - MIN_PX), keep(top, 0, height - MIN_PX), keep(right, MIN_PX, width), keep(bottom, MIN_PX, height)];
    if (this.#part[2] - this.#part[0] < MIN_PX) this.#part[2] = this.#part[0] + MIN_PX;
    if (this.#part[3] - this.#part[1] < MIN_PX) this.#part[3] = this.#part[1] + MIN_PX;
    this.draw();
  }

  // Moves without leaving the picture.
  #shift(dx, dy) {
    const [left, top, right, bottom] = this.#part;
    const [, , width, height] = this.#stage.whole;
    const [x, y] = [Math.min(Math.max(dx, -left), width - right), Math.min(Math.max(dy, -top), height - bottom)];
    this.#set([left + x, top + y, right + x, bottom + y]);
  }

  #down(event) {
    if (!this.active || event.button !== 0) return;
    const at = this.#stage.place(event);
    const side = HANDLES.find((name) => event.target.classList.contains(name));
    if (side) this.#grip = { side, part: [...this.#part], start: at };
    else if (event.target === this.#element) this.#grip = { last: at };
    else this.#grip = { anchor: at };
    this.#paper.setPointerCapture(event.pointerId);
    event.preventDefault();
    this.#element.focus({ preventScroll: true });
  }

  #move(event) {
    if (!this.#grip) return;
    const [x, y] = this.#stage.place(event);
    const { side, part, start, last, anchor } = this.#grip;
    if (anchor) this.#set([Math.min(x, anchor[0]), Math.min(y, anchor[1]), Math.max(x, anchor[0]), Math.max(y, anchor[1])]);
    else if (last) {
      this.#shift(x - last[0], y - last[1]);
      this.#grip.last = [x, y];
    } else {
      const [left, top, right, bottom] = part;
      const [dx, dy] = [x - start[0], y - start[1]];
      this.#set([
        side.includes("w") ? Math.min(left + dx, right - MIN_PX) : left, side.includes("n") ? Math.min(top + dy, bottom - MIN_PX) : top,
        side.includes("e") ? Math.max(right + dx, left + MIN_PX) : right, side.includes("s") ? Math.max(bottom + dy, top + MIN_PX) : bottom,
      ]);
    }
  }

  #drop() {
    if (!this.#grip) return;
    this.#grip = null;
    this.#element.focus({ preventScroll: true });
  }

  #key(event) {
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    const [, , width, height] = this.#stage.whole;
    const [x, y] = [dx * width * STEP, dy * height * STEP];
    if (event.key === "Enter") this.#finish();
    else if (event.key === "Escape") { this.end(); this.#button.focus(); }
    else if (dx || dy) {
      const [left, top, right, bottom] = this.#part;
      if (event.shiftKey) this.#set([left, top, Math.max(right + x, left + MIN_PX), Math.max(bottom + y, top + MIN_PX)]);
      else this.#shift(x, y);
    } else return;
    event.preventDefault();
  }
}
