// One reading: the picture, the same typeset, the LaTeX to edit, what else it might be, and copies in every format.
import { latexOf } from "./api.js";
import { byId, icon, make, percent } from "./dom.js";
import { Editor } from "./editor.js";
import { copyText, showFormats } from "./formats.js";
import { fontFor, lookOf, MIN_FONT_PX, Preview, typeset } from "./preview.js";
import { Stage } from "./stage.js";
import { doubtsOf, regionOf, showChoices, TokenList, unionOf } from "./tokens.js";
import { showVerdict } from "./verdict.js";
import { say } from "./words.js";

const MUCH = 0.02; // of the ink; as in i2l.inference.unread
const WORTH = 0.01; // another reading that is less probable is not shown
const TWO_COLUMNS_PX = 900;
const FIRST_SIGHT_PX = 600; // picture, LaTeX and Copy stand above this line
const WIDE_PX = 80; // height of a picture that has the whole width
const LONG = 40; // signs of a difference that are shown
const TALL = 1.3; // less than so many times as wide as high: typeset beside, not under

export class Result {
  #section = byId("result");
  #outcome = byId("outcome");
  #preview = new Preview();
  #reading = null;
  #looks = [];
  #on;

  // `on.crop(part)`; `on.edit(latex)`: the person changed it; `on.notify(text)`.
  constructor(on) {
    this.#on = on;
    this.stage = new Stage({
      point: (indices) => this.#point(indices),
      click: (index, frame) => this.#ask(index, { frame }),
      crop: (part) => on.crop(part),
      cropping: () => this.arrange(),
    });
    this.tokenList = new TokenList({ point: (indices) => this.#point(indices), ask: (index, element) => this.#ask(index, { element }) });
    this.editor = new Editor(byId("latex"), say("editorHint"), {
      change: (text) => this.#changed(text),
      point: (indices) => this.#point(indices),
      ask: (index, frame) => this.#ask(index, { frame: frame && new DOMRect(frame.left, frame.top, 1, frame.bottom - frame.top), fromEditor: true }),
      history: () => this.#showHistory(),
    });
    byId("undo").addEventListener("click", () => this.editor.undo());
    byId("redo").addEventListener("click", () => this.editor.redo());
    byId("revert").addEventListener("click", () => { this.editor.replace(this.#reading.latex); this.editor.focus(); });
    byId("copy").addEventListener("click", () => this.#copy());
    const done = () => this.#flash();
    const failed = (error) => on.notify(error.message);
    byId("copy-as").addEventListener("click", (event) => showFormats(event.currentTarget, "copy", this.editor.text, { done, failed }));
    byId("save-as").addEventListener("click", (event) => showFormats(event.currentTarget, "save", this.editor.text, { done: () => {}, failed }));
    byId("inspect").addEventListener("toggle", () => this.#showTokens());
    addEventListener("resize", () => this.arrange());
    document.fonts.addEventListener("loadingdone", () => this.arrange()); // letters change their width
  }

  get latex() { return this.editor.text; }
  get visible() { return !this.#section.hidden; }

  // ---- a picture, and then its reading

  // Shows a picture that is not read yet; says whether the browser could.
  async showPicture(address) {
    this.#reading = null;
    this.editor.open("", [], new Map());
    this.#preview.show("");
    this.#section.classList.remove("unread");
    this.#showTokens();
    byId("others").hidden = byId("verdict").hidden = true;
    this.#section.hidden = false;
    const visible = await this.stage.show(address);
    this.arrange();
    return visible;
  }

  wait(text) {
    byId("waiting").hidden = !text;
    this.#section.classList.toggle("waiting", Boolean(text));
    this.#section.setAttribute("aria-busy", String(Boolean(text)));
    this.#outcome.textContent = text ?? "";
  }

  // Nothing could be read: the picture stays, to choose a part of it.
  showNothing() {
    this.wait(null);
    this.#section.classList.add("unread");
    this.arrange();
  }

  // Shows a reading. `latex` is what the person made of it, if they did.
  show(reading, latex = reading.latex) {
    this.wait(null);
    this.#section.classList.remove("unread");
    this.#reading = reading;
    const doubts = doubtsOf(reading.tokens);
    this.stage.tell(reading.tokens, doubts);
    this.editor.open(reading.latex, reading.tokens, doubts);
    this.editor.replace(latex);
    this.arrange();
    this.#check(this.latex);
    this.tell();
    this.#showHistory();
  }

  // Says what there is to say of the reading, in the language of now.
  tell() {
    const reading = this.#reading;
    if (!reading) return;
    showVerdict(byId("verdict"), reading.confidence);
    byId("verdict").hidden = false;
    const remarks = [
      ...(reading.finished ? [] : [say("cutOff")]),
      ...(reading.unread >= MUCH ? [say("inkLeft", { share: percent(reading.unread) })] : []),
    ];
    this.#outcome.textContent = remarks.join(" · ");
    this.#outcome.classList.toggle("remark", remarks.length > 0);
    this.#outcome.title = say("seconds", { seconds: reading.seconds.toFixed(2) });
    byId("inspect-count").textContent = `(${reading.tokens.length})`;
    this.#showReadings();
    this.#showTokens();
  }

  // ---- where everything goes

  // Gives picture and typeset formula one scale, and as much room as leaves the LaTeX in sight.
  arrange() {
    const { stage } = this;
    if (!this.visible) return;
    const reading = stage.frame.active ? null : this.#reading;
    const alone = !reading && (stage.frame.active || this.#section.classList.contains("unread"));
    const ink = reading?.ink ?? [0, 0, 1, 1];
    const size = { width: ink[2] - ink[0], height: ink[3] - ink[1] };
    const twoColumns = innerWidth >= TWO_COLUMNS_PX;
    const aspect = size.width / size.height;
    this.#section.classList.toggle("wide", twoColumns && Boolean(reading) && stage.shown && this.#isWide(size));
    this.#section.classList.toggle("alone", alone);
    const beside = Boolean(reading) && aspect < TALL && stage.shown;
    byId("sheet").classList.toggle("beside", beside);
    if (!stage.shown) { this.#preview.font = 24; return; }
    stage.trim(reading?.ink ?? null);
    const sheet = getComputedStyle(byId("sheet"));
    const width = byId("sheet").clientWidth - parseFloat(sheet.paddingLeft) - parseFloat(sheet.paddingRight);
    const type = reading && fontFor(reading.latex, size);
    const zoom = stage.fit({ width: beside ? width / 2 - 16 : width, height: this.#height({ twoColumns, alone, beside }) }, { least: type ? MIN_FONT_PX / type : 0 });
    byId("preview").style.paddingLeft = beside ? "" : `${(ink[0] - stage.view[0]) * zoom}px`;
    byId("preview").style.width = beside ? "" : byId("paper").style.width;
    this.#preview.font = type ? type * zoom : 24;
    this.#preview.show(this.latex);
  }

  // Whether a formula would be much smaller in one of two columns than it could be over both.
  #isWide({ width, height }) {
    const room = this.#section.clientWidth;
    return Math.min(room / 2 - 60, 1.5 * width) / width < 0.75 * Math.min((room - 80) / width, 1.5, WIDE_PX / height);
  }

  #height({ twoColumns, alone, beside }) {
    if (alone) return Math.max(200, innerHeight - (twoColumns ? 230 : 280));
    if (!twoColumns) return beside ? 0.3 * innerHeight : Math.max(56, 0.17 * innerHeight);
    if (this.#section.classList.contains("wide")) return WIDE_PX;
    const room = Math.min(innerHeight, FIRST_SIGHT_PX) - 180;
    return beside ? room : (room - 30) / 2;
  }

  // ---- pointing

  // Shows where tokens were read, on the picture, in the LaTeX and among the tokens.
  #point(indices) {
    const tokens = this.#reading?.tokens ?? [];
    const region = indices.length === 1 ? regionOf(tokens, indices[0]) : unionOf(indices.map((index) => tokens[index]));
    this.stage.light(indices.length ? region : null);
    this.tokenList.light(indices);
    this.editor.light(indices);
    const here = indices.length === 1 ? tokens[indices[0]] : null;
    byId("here").replaceChildren(...(here ? [make("b", { textContent: here.text }), say("tokenSure", { share: percent(here.probability) })] : []));
  }

  // Shows what else a token might be, beside what was clicked.
  #ask(index, { element = null, frame = null, fromEditor = false }) {
    const token = this.#reading?.tokens[index];
    if (!token) return;
    const beside = element ? null : frame ?? byId("latex").getBoundingClientRect();
    this.#point([index]);
    showChoices({
      token, chosen: this.editor.chosen[index], element: element ?? (fromEditor ? { focus: () => this.editor.focus() } : null), frame: beside,
      onChoose: async (text) => {
        if (!await this.editor.exchange(index, text, latexOf)) this.#on.notify(say("cannotPut", { text }));
        if (element) byId("tokens").children[index]?.focus();
      },
      onClose: () => this.#point([]),
    });
  }

  // ---- the text changes

  #changed(text) {
    if (!this.#reading) return;
    this.#check(text);
    for (const button of byId("readings").children) button.setAttribute("aria-checked", String(button.dataset.latex === text));
    this.#on.edit(text);
  }

  #check(text) {
    const mistake = this.#preview.show(text);
    byId("mistake").textContent = mistake?.message ?? "";
    queueMicrotask(() => this.editor.blame(mistake && { from: mistake.from, to: mistake.to })); // not while it is changing
  }

  #showHistory() {
    byId("undo").disabled = !this.editor?.canUndo;
    byId("redo").disabled = !this.editor?.canRedo;
    byId("revert").disabled = !this.#reading || this.editor.isReading;
    if (this.#reading && this.#shownChoice !== this.editor.chosen) this.#showTokens();
  }

  #shownChoice = null;

  // The tokens are drawn only while their drawer is open.
  #showTokens() {
    this.#shownChoice = this.editor?.chosen ?? null;
    this.tokenList.show(byId("inspect").open ? this.#reading?.tokens ?? [] : [], this.#shownChoice ?? {});
  }

  // ---- other readings

  // Those that draw another picture: spellings of one picture are no choice.
  #showReadings() {
    const reading = this.#reading;
    this.#looks = [lookOf(reading.latex)];
    const others = reading.alternatives.filter((one) => {
      const look = one.confidence >= WORTH && lookOf(one.latex);
      return look && !this.#looks.includes(look) && this.#looks.push(look);
    });
    byId("others").hidden = !others.length;
    byId("readings").replaceChildren(...(others.length ? [{ latex: reading.latex, confidence: reading.confidence }, ...others] : []).map((one, index) => this.#choice(one, index)));
    for (const formula of byId("readings").querySelectorAll(".formula")) shrink(formula);
  }

  #choice(one, index) {
    const formula = make("span", { className: "formula" });
    typeset(formula, one.latex, { displayMode: false });
    const words = make("span", { className: "words" }, formula, ...(index ? [difference(this.#reading.latex, one.latex)] : []));
    const button = make("button", { type: "button", className: "reading", role: "radio", "aria-checked": String(one.latex === this.latex),
      "aria-label": `${index ? "" : `${say("readingFirst")}: `}${one.latex}, ${percent(one.confidence)}` }, words, make("span", { className: "share", textContent: percent(one.confidence) }));
    button.dataset.latex = one.latex;
    button.addEventListener("click", () => this.editor.replace(one.latex));
    return button;
  }

  // ---- copies

  async #copy() {
    try {
      await copyText(this.latex);
      this.#flash();
    } catch (error) {
      this.#on.notify(error.message);
    }
  }

  // The button says that it is done.
  #flash() {
    const button = byId("copy");
    button.replaceChildren(icon("check"), make("span", { textContent: say("copied") }));
    clearTimeout(this.flashing);
    this.flashing = setTimeout(() => button.replaceChildren(icon("copy"), make("span", { textContent: say("copy") })), 1300);
  }

  // Copies by the keys of the system, where nothing is selected.
  copyInto(event) {
    event.clipboardData.setData("text/plain", this.latex);
    event.preventDefault();
    this.#flash();
  }
}

// Makes a typeset formula small enough for its place.
const shrink = (formula) => {
  const ratio = formula.clientWidth / formula.scrollWidth;
  if (ratio < 1) formula.style.fontSize = `${Math.max(0.4, ratio)}em`;
};

// Where a reading differs from the first: most look alike when typeset.
const difference = (firstLatex, otherLatex) => {
  const [best, other] = [firstLatex, otherLatex].map((text) => text.match(/\\[A-Za-z]+|[^]/g) ?? []);
  let [start, last] = [0, 0];
  while (start < other.length && other[start] === best[start]) start++;
  const most = Math.min(other.length, best.length) - start;
  while (last < most && other.at(-1 - last) === best.at(-1 - last)) last++;
  const end = other.length - last;
  const text = (from, to) => other.slice(Math.max(0, from), to).join("");
  const middle = end - start > LONG ? `${text(start, start + LONG)} …` : text(start, end) || "∅";
  return make("code", {}, `… ${text(start - 8, start)}`, make("mark", { textContent: middle }), `${text(end, end + 8)} …`);
};
