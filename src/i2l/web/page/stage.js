// The picture, trimmed to what was read: regions light up on it, pointing at it finds tokens, dragging over it crops.
import { byId, makeSvg } from "./dom.js";
import { CropFrame } from "./crop.js";
import { toneOf } from "./tone.js";

const MAX_ZOOM = 2;
const DRAG_PX = 6; // on the screen: less is a click
const NEAR_PX = 5; // on the screen: this far off a box still counts as on it
const MARGIN = 0.04; // around the ink, as a share of its longer side

export class Stage {
  #paper = byId("paper");
  #image = byId("image");
  #marks = byId("marks");
  #boxes = byId("boxes");
  #tokens = [];
  #doubts = new Map();
  #own = null;
  #drag = null;
  #view = [0, 0, 1, 1]; // the part that is shown: left, top, right, bottom in pixels of the image
  #zoom = 1;
  #frame;
  #on;

  // `on.point(indices)`: tokens under the pointer, nearest first; `on.click(index, frame)`; `on.crop(part)`; `on.cropping()`: it begins or ends.
  constructor(on) {
    this.#on = on;
    this.#frame = new CropFrame(this, on);
    this.#paper.addEventListener("pointermove", (event) => this.#move(event));
    this.#paper.addEventListener("pointerdown", (event) => this.#down(event));
    this.#paper.addEventListener("pointerup", (event) => this.#up(event));
    this.#paper.addEventListener("pointercancel", () => { this.#drag = null; });
    this.#paper.addEventListener("pointerleave", () => { if (!this.#drag) on.point([]); });
    this.#image.addEventListener("dragstart", (event) => event.preventDefault());
    this.#boxes.addEventListener("click", () => {
      this.#boxes.setAttribute("aria-pressed", String(this.#boxes.ariaPressed !== "true"));
      this.#draw();
    });
  }

  get shown() { return this.#image.naturalWidth > 0 && !this.#paper.hidden; }
  get image() { return this.#image; }
  get zoom() { return this.#zoom; }
  get view() { return this.#view; }
  get frame() { return this.#frame; }
  get whole() { return [0, 0, this.#image.naturalWidth, this.#image.naturalHeight]; }

  // Shows an image by its address; says whether the browser could.
  async show(address) {
    this.#frame.end();
    this.tell([], new Map());
    if (this.#image.src.startsWith("blob:")) URL.revokeObjectURL(this.#image.src);
    this.#image.src = address;
    const visible = await this.#image.decode().then(() => true, () => false);
    this.#paper.hidden = byId("crop").hidden = this.#boxes.hidden = !visible;
    byId("unseen").hidden = visible;
    if (!visible) return false;
    this.#view = this.whole;
    this.#image.dataset.tone = toneOf(this.#image);
    return true;
  }

  // Trims to the ink and a margin; null shows all.
  trim(ink) {
    const [, , width, height] = this.whole;
    if (!ink) { this.#view = this.whole; return; }
    const margin = Math.max(4, MARGIN * Math.max(ink[2] - ink[0], ink[3] - ink[1]));
    this.#view = [Math.max(0, ink[0] - margin), Math.max(0, ink[1] - margin), Math.min(width, ink[2] + margin), Math.min(height, ink[3] + margin)];
  }

  // Makes the part that is shown as large as fits into a room, or larger where `least` says so; gives the zoom.
  fit(room, { least = 0 } = {}) {
    const [left, top, right, bottom] = this.#view;
    const [width, height] = [right - left, bottom - top];
    this.#zoom = Math.max(least, Math.min(MAX_ZOOM, room.width / width, room.height / height));
    const px = (value) => `${value * this.#zoom}px`;
    Object.assign(this.#paper.style, { width: px(width), height: px(height) });
    Object.assign(this.#image.style, { width: px(this.#image.naturalWidth), left: px(-left), top: px(-top) });
    this.#marks.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
    this.#frame.draw();
    return this.#zoom;
  }

  // Takes the tokens, and from the doubtful ones to how doubtful they are.
  tell(tokens, doubts) {
    [this.#tokens, this.#doubts, this.#own] = [tokens, doubts, null];
    this.#draw();
  }

  // Lights up a region, and no other.
  light(region) {
    if (region === this.#own) return;
    this.#own = region;
    this.#marks.querySelector(".own")?.remove();
    if (region) this.#marks.append(this.#shape(region, "own"));
  }

  #shape([left, top, right, bottom], name) {
    return makeSvg("rect", { class: name, x: left - 1, y: top - 1, width: right - left + 2, height: bottom - top + 2, rx: 2 });
  }

  #draw() {
    const all = this.#boxes.ariaPressed === "true" ? this.#tokens.filter((token) => token.box).map((token) => this.#shape(token.box, "box")) : [];
    const doubts = [...this.#doubts].map(([index, name]) => [this.#tokens[index]?.box, name]).filter(([box]) => box)
      .map(([box, name]) => this.#shape(box, `doubt ${name}`));
    this.#marks.replaceChildren(...all, ...doubts, ...(this.#own ? [this.#shape(this.#own, "own")] : []));
  }

  // Where an event is, in pixels of the image.
  place(event) {
    const frame = this.#paper.getBoundingClientRect();
    const inside = (value, size) => Math.min(Math.max(value, 0), size);
    return [
      inside((event.clientX - frame.left) / this.#zoom + this.#view[0], this.#image.naturalWidth),
      inside((event.clientY - frame.top) / this.#zoom + this.#view[1], this.#image.naturalHeight),
    ];
  }

  #tokensAt([x, y]) {
    const near = NEAR_PX / this.#zoom;
    const found = [];
    this.#tokens.forEach(({ box }, index) => {
      if (!box) return;
      const off = Math.hypot(Math.max(box[0] - x, 0, x - box[2]), Math.max(box[1] - y, 0, y - box[3]));
      if (off <= near) found.push({ index, off, area: (box[2] - box[0]) * (box[3] - box[1]) });
    });
    return found.sort((a, b) => a.off - b.off || a.area - b.area).filter(({ off }, _, all) => off <= all[0].off).map(({ index }) => index);
  }

  #down(event) {
    if (event.button !== 0 || this.#frame.active) return;
    if (event.pointerType !== "mouse") return; // a finger scrolls; Crop is for it
    this.#drag = { from: this.place(event), x: event.clientX, y: event.clientY };
    this.#paper.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (this.#frame.active) return;
    if (!this.#drag) {
      this.#on.point(this.#tokensAt(this.place(event)));
      return;
    }
    if (Math.hypot(event.clientX - this.#drag.x, event.clientY - this.#drag.y) <= DRAG_PX) return;
    const { from } = this.#drag;
    this.#drag = null;
    this.#frame.pull(from, event); // from here on the frame follows the pointer
  }

  #up(event) {
    if (this.#frame.active || (event.pointerType === "mouse" && !this.#drag)) return;
    this.#drag = null;
    const [first] = this.#tokensAt(this.place(event));
    if (first !== undefined) this.#on.click(first, new DOMRect(event.clientX, event.clientY, 1, 1));
  }

  // Gives a part of the image, [left, top, width, height], as the bytes of a file; all of it made small if asked.
  async cut([left, top, width, height], { maxSide = Infinity, type = "image/png", quality } = {}) {
    const shrink = Math.min(1, maxSide / Math.max(width, height));
    const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * shrink)), Math.max(1, Math.round(height * shrink)));
    canvas.getContext("2d").drawImage(this.#image, left, top, width, height, 0, 0, canvas.width, canvas.height);
    return canvas.convertToBlob({ type, quality });
  }
}
