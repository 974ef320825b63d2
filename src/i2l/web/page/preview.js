// LaTeX typeset by KaTeX; under the image at the image's own scale, so that differences show.
import { byId } from "./dom.js";

const OPTIONS = { displayMode: true, strict: false, trust: false, maxSize: 50, maxExpand: 500 };
const MAX_FONT_PX = 72;
export const MIN_FONT_PX = 8; // what would be typeset smaller is shown larger, and scrolls

// KaTeX writes style attributes, which the Content-Security-Policy forbids; set in this way the same styles are allowed.
for (const { prototype } of [SVGElement, globalThis.MathMLElement].filter(Boolean)) {
  prototype.setAttribute = function setAttribute(name, value) {
    if (name === "style") this.style.cssText = value;
    else Element.prototype.setAttribute.call(this, name, value);
  };
}

// What KaTeX says against a formula, { message, from, to }; null if nothing.
export const mistakeIn = (latex) => {
  try {
    katex.renderToString(latex, OPTIONS);
    return null;
  } catch (error) {
    const from = error.position ?? latex.length;
    return {
      message: error.message.replace(/^KaTeX parse error: /, "").replace(/ at (position \d+|end of input):[^]*$/, ""),
      from, to: from + latex.slice(from, from + (error.length ?? 1)).trimEnd().length,
    };
  }
};

export const typeset = (element, latex, options = {}) => {
  try {
    katex.render(latex, element, { ...OPTIONS, ...options });
  } catch {
    element.textContent = latex;
  }
};

// Width of a typeset formula, and its height from the lowest to the highest sign.
const extent = (element) => {
  const boxes = [...element.querySelectorAll(".katex-html > .katex-base")].map((base) => base.getBoundingClientRect());
  const struts = [...element.querySelectorAll(".katex-html > .katex-base > .katex-strut")].map((strut) => strut.getBoundingClientRect().height);
  return boxes.length
    ? { width: Math.max(...boxes.map((box) => box.right)) - Math.min(...boxes.map((box) => box.left)), height: Math.max(...struts) }
    : { width: 0, height: 0 };
};

// What a formula looks like: every character with its place, so that two spellings of one picture compare equal.
export const lookOf = (latex) => {
  const element = byId("measure");
  typeset(element, latex);
  const origin = element.querySelector(".katex-html")?.getBoundingClientRect();
  if (!origin) return latex;
  const walker = document.createTreeWalker(element.querySelector(".katex-html"), NodeFilter.SHOW_TEXT);
  const range = document.createRange();
  const marks = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    range.selectNodeContents(node);
    const { left, top } = range.getBoundingClientRect();
    const { fontSize, fontFamily } = getComputedStyle(node.parentElement);
    if (node.data.trim() && node.data !== "\u200b") marks.push(`${node.data}@${Math.round((left - origin.left) / 4)},${Math.round((top - origin.top) / 4)},${fontSize},${fontFamily}`);
  }
  element.replaceChildren();
  return marks.join(" ");
};

// Pixels of type for one pixel of the image at which a formula is as wide as the ink. A reading that misses a part would come out too large:
// then the height decides. Null where nothing can be typeset.
export const fontFor = (latex, { width, height }) => {
  const element = byId("measure");
  typeset(element, latex);
  element.style.fontSize = "100px";
  const found = extent(element);
  element.style.fontSize = "";
  element.replaceChildren();
  if (!found.width || !width) return null;
  const byWidth = 100 * width / found.width, byHeight = 100 * height / found.height;
  return byHeight > 0.7 * byWidth ? byWidth : byHeight;
};

export class Preview {
  #element = byId("preview");
  #latex = null;
  #font = 24;

  // Typesets LaTeX; what cannot be typeset leaves the last picture there, dimmed. Gives the mistake, or null.
  show(latex) {
    if (latex === this.#latex) return null;
    this.#latex = null;
    const mistake = latex.trim() ? mistakeIn(latex) : null;
    this.#element.classList.toggle("stale", Boolean(mistake));
    if (mistake) return mistake;
    if (latex.trim()) katex.render(latex, this.#element, OPTIONS);
    else this.#element.replaceChildren();
    this.#latex = latex;
    this.#fit();
    return null;
  }

  // Sets the size of type, in pixels, at which the formula has the scale of the picture.
  set font(px) {
    this.#font = Math.min(MAX_FONT_PX, px);
    this.#fit();
  }

  // Makes a formula that the person has made longer small enough for the sheet.
  #fit() {
    this.#element.style.fontSize = `${this.#font}px`;
    const sheet = this.#element.parentElement.getBoundingClientRect();
    const room = sheet.right - 16 - this.#element.getBoundingClientRect().left - parseFloat(this.#element.style.paddingLeft || 0);
    const { width } = extent(this.#element);
    if (width > room && room > 0) this.#element.style.fontSize = `${Math.max(MIN_FONT_PX, this.#font * room / width)}px`;
  }
}
