// The image: regions light up on it, pointing at it finds tokens, dragging over it crops.
import { byId } from "./dom.js";

const MAX_ZOOM = 2;
const TALL_PX = 220; // on the screen: an image is not made larger than this, so that its LaTeX stays in sight
const DRAG_PX = 6; // on the screen: less is a click
const MIN_PART_PX = 8; // of the image
const NEAR_PX = 5; // on the screen: this far off a box still counts as on it

export class Stage {
  #paper = byId("paper");
  #image = byId("image");
  #marks = byId("marks");
  #selection = byId("selection");
  #crop = byId("crop");
  #tokens = [];
  #unsure = [];
  #own = null;
  #drag = null;
  #part = null; // [left, top, width, height] in pixels of the image
  #on;

  // `on.point(indices)`: tokens under the pointer, nearest first; `on.click(index)`; `on.crop(part)`.
  constructor(on) {
    this.#on = on;
    this.#paper.addEventListener("pointermove", (event) => this.#move(event));
    this.#paper.addEventListener("pointerdown", (event) => this.#down(event));
    this.#paper.addEventListener("pointerup", (event) => this.#up(event));
    this.#paper.addEventListener("pointercancel", () => this.cancelCrop());
    this.#paper.addEventListener("pointerleave", () => { if (!this.#drag) on.point([]); });
    this.#image.addEventListener("dragstart", (event) => event.preventDefault());
    this.#crop.addEventListener("click", () => (this.cropping ? this.cancelCrop() : this.startCrop()));
    this.#selection.addEventListener("keydown", (event) => this.#key(event));
    byId("boxes").addEventListener("change", () => this.#draw());
    addEventListener("resize", () => { if (this.shown) this.#resize(); });
  }

  get shown() { return this.#image.naturalWidth > 0 && !this.#paper.hidden; }
  get cropping() { return this.#paper.classList.contains("cropping"); }
  get image() { return this.#image; }

  // Shows an image by its address; says whether the browser could.
  async show(address) {
    this.cancelCrop();
    this.clear();
    this.#image.src = address;
    const visible = await this.#image.decode().then(() => true, () => false);
    this.#paper.hidden = this.#crop.hidden = !visible;
    byId("unseen").hidden = visible;
    if (visible) this.#resize();
  }

  #resize() {
    const { naturalWidth: width, naturalHeight: height } = this.#image;
    this.#marks.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#paper.style.width = "100%";
    const room = this.#paper.clientWidth;
    const zoom = Math.min(MAX_ZOOM, room / width, Math.max(1, TALL_PX / height));
    this.#paper.style.width = `${Math.round(width * zoom)}px`;
  }

  get zoom() { return this.#paper.clientWidth / this.#image.naturalWidth; }

  // Where the ink is on the screen, as the preview needs it.
  inkOnScreen([left, top, right, bottom]) {
    const zoom = this.shown ? this.zoom : 1;
    return { paper: this.shown ? this.#paper.clientWidth : 800, left: left * zoom, width: (right - left) * zoom, height: (bottom - top) * zoom };
  }

  clear() { this.tell([], []); }

  // Takes the tokens, and which of them are unsure.
  tell(tokens, unsure) {
    [this.#tokens, this.#unsure, this.#own] = [tokens, unsure, null];
    this.#draw();
  }

  light(region) {
    this.#own = region;
    this.#draw();
  }

  #draw() {
    const shape = ([left, top, right, bottom], name) => {
      const rectangle = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [key, value] of Object.entries({ class: name, x: left - 1, y: top - 1, width: right - left + 2, height: bottom - top + 2 })) {
        rectangle.setAttribute(key, value);
      }
      return rectangle;
    };
    const all = byId("boxes").checked ? this.#tokens.filter((token) => token.box).map((token) => shape(token.box, "box")) : [];
    const doubts = this.#unsure.map((index) => this.#tokens[index].box).filter(Boolean).map((box) => shape(box, "unsure"));
    this.#marks.replaceChildren(...all, ...doubts, ...(this.#own ? [shape(this.#own, "own")] : []));
  }

  #place(event) {
    const frame = this.#image.getBoundingClientRect();
    const inside = (value, size) => Math.min(Math.max(value, 0), size);
    return [
      inside((event.clientX - frame.left) / this.zoom, this.#image.naturalWidth),
      inside((event.clientY - frame.top) / this.zoom, this.#image.naturalHeight),
    ];
  }

  #tokensAt([x, y]) {
    const near = NEAR_PX / this.zoom;
    const found = [];
    this.#tokens.forEach(({ box }, index) => {
      if (!box) return;
      const off = Math.hypot(Math.max(box[0] - x, 0, x - box[2]), Math.max(box[1] - y, 0, y - box[3]));
      if (off <= near) found.push({ index, off, area: (box[2] - box[0]) * (box[3] - box[1]) });
    });
    return found.sort((a, b) => a.off - b.off || a.area - b.area).filter(({ off }, _, all) => off <= all[0].off).map(({ index }) => index);
  }

  #down(event) {
    if (event.button !== 0 || event.target === this.#selection && !this.cropping) return;
    if (event.pointerType !== "mouse" && !this.cropping) return; // a finger scrolls, unless Crop is on
    this.#drag = { from: this.#place(event), x: event.clientX, y: event.clientY, moved: false };
    this.#paper.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (!this.#drag) {
      if (!this.cropping) this.#on.point(this.#tokensAt(this.#place(event)));
      return;
    }
    this.#drag.moved ||= Math.hypot(event.clientX - this.#drag.x, event.clientY - this.#drag.y) > DRAG_PX;
    if (!this.#drag.moved) return;
    const [x, y] = this.#place(event), [fromX, fromY] = this.#drag.from;
    this.#select([Math.min(x, fromX), Math.min(y, fromY), Math.abs(x - fromX), Math.abs(y - fromY)]);
  }

  #up(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (drag?.moved) this.#finish();
    else if (!this.cropping) {
      const [first] = this.#tokensAt(this.#place(event));
      if (first !== undefined) this.#on.click(first);
    }
  }

  #select([left, top, width, height]) {
    this.#part = [left, top, width, height];
    this.#selection.hidden = false;
    const { naturalWidth, naturalHeight } = this.#image;
    Object.assign(this.#selection.style, {
      left: `${100 * left / naturalWidth}%`, top: `${100 * top / naturalHeight}%`,
      width: `${100 * width / naturalWidth}%`, height: `${100 * height / naturalHeight}%`,
    });
  }

  startCrop() {
    this.#paper.classList.add("cropping");
    this.#crop.setAttribute("aria-pressed", "true");
    const { naturalWidth: width, naturalHeight: height } = this.#image;
    this.#select([width / 4, height / 4, width / 2, height / 2]);
    this.#selection.focus({ preventScroll: true });
  }

  cancelCrop() {
    this.#drag = this.#part = null;
    this.#selection.hidden = true;
    this.#paper.classList.remove("cropping");
    this.#crop.setAttribute("aria-pressed", "false");
  }

  #finish() {
    const part = this.#part;
    this.cancelCrop();
    if (part && part[2] >= MIN_PART_PX && part[3] >= MIN_PART_PX) this.#on.crop(part.map(Math.round));
  }

  #key(event) {
    const { naturalWidth, naturalHeight } = this.#image;
    const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (event.key === "Enter") this.#finish();
    else if (event.key === "Escape") { this.cancelCrop(); this.#crop.focus(); }
    else if (dx || dy) {
      let [left, top, width, height] = this.#part;
      const [stepX, stepY] = [dx * naturalWidth / 40, dy * naturalHeight / 40];
      if (event.shiftKey) {
        width = Math.min(Math.max(width + stepX, MIN_PART_PX), naturalWidth - left);
        height = Math.min(Math.max(height + stepY, MIN_PART_PX), naturalHeight - top);
      } else {
        left = Math.min(Math.max(left + stepX, 0), naturalWidth - width);
        top = Math.min(Math.max(top + stepY, 0), naturalHeight - height);
      }
      this.#select([left, top, width, height]);
    } else return;
    event.preventDefault();
  }

  // Gives a part of the image, or all of it made small, as the bytes of a file.
  async cut([left, top, width, height], { maxSide = Infinity, type = "image/png", quality } = {}) {
    const shrink = Math.min(1, maxSide / Math.max(width, height));
    const canvas = new OffscreenCanvas(Math.max(1, Math.round(width * shrink)), Math.max(1, Math.round(height * shrink)));
    const context = canvas.getContext("2d");
    context.drawImage(this.#image, left, top, width, height, 0, 0, canvas.width, canvas.height);
    return canvas.convertToBlob({ type, quality });
  }
}
