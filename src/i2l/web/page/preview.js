// LaTeX typeset by KaTeX; under the image at the image's own scale, so that differences show.
import { byId } from "./dom.js";

const OPTIONS = { displayMode: true, strict: false, trust: false, maxSize: 50, maxExpand: 500 };
const MIN_FONT_PX = 9;
const MAX_FONT_PX = 72;

export const typeset = (element, latex, options = {}) => {
  try {
    katex.render(latex, element, { ...OPTIONS, ...options });
    return null;
  } catch (error) {
    element.textContent = latex;
    return error.message.replace(/^KaTeX parse error: /, "");
  }
};

export const toMathml = (latex) => {
  const [math] = katex.renderToString(latex, { ...OPTIONS, output: "mathml" }).match(/<math[^]*<\/math>/);
  return math.replace(/<annotation[^]*<\/annotation>/, "").replace(/<\/?semantics>/g, "");
};

const extent = (element) => {
  const boxes = [...element.querySelectorAll(".katex-html > .katex-base")].map((base) => base.getBoundingClientRect());
  const side = (name, pick) => pick(...boxes.map((box) => box[name]));
  return boxes.length
    ? { width: side("right", Math.max) - side("left", Math.min), height: side("bottom", Math.max) - side("top", Math.min) }
    : { width: 0, height: 0 };
};

// The size of type at which the typeset formula is as wide as the ink. A reading that misses a part would come out
// too large: then the height decides, which is a little more than that of the ink since it counts empty room.
const fittingFont = (element, width, height) => {
  element.style.fontSize = "100px";
  const found = extent(element);
  if (!found.width || !width) return 24;
  const byWidth = 100 * width / found.width, byHeight = 100 * height / found.height;
  const size = byHeight > 0.7 * byWidth ? byWidth : 1.15 * byHeight;
  return Math.min(MAX_FONT_PX, Math.max(MIN_FONT_PX, size));
};

export class Preview {
  #element = byId("preview");
  #mistake = byId("mistake");

  // Typesets what was read, and keeps the scale for what is typed from then on. `ink` is in pixels of the screen.
  fit(latex, ink) {
    Object.assign(this.#element.style, { width: `${ink.paper}px`, paddingLeft: `${ink.left}px` });
    this.show(latex);
    const scale = () => { this.#element.style.fontSize = `${fittingFont(this.#element, ink.width, ink.height)}px`; };
    scale();
    if (document.fonts.status === "loading") document.fonts.ready.then(scale); // letters change their width
  }

  show(latex) {
    const mistake = latex.trim() ? typeset(this.#element, latex) : (this.#element.replaceChildren(), null);
    this.#mistake.textContent = mistake ?? "";
  }
}
