// The tokens that were read, for who wants to look closely: how sure, where, and what else each might be.
import { byId, make, percent } from "./dom.js";
import { menuRow, openMenu } from "./menu.js";
import { say } from "./words.js";

const CHECK = 0.1; // from this chance on that another token would be right and draw another picture, one is worth a look
const DOUBTFUL = 0.35;

// How doubtful a token is, by what else it might be: only others that draw another picture come from the server.
export const doubtOf = (token) => {
  const others = token.alternatives.reduce((sum, other) => sum + other.probability, 0);
  return others >= DOUBTFUL ? "doubtful" : others >= CHECK ? "check" : null;
};

export const doubtsOf = (tokens) => new Map(tokens.map((token, index) => [index, doubtOf(token)]).filter(([, doubt]) => doubt));

// What a token stands for on the image: its own box, or for one that draws nothing those of its group.
export const regionOf = (tokens, index) => {
  if (tokens[index].box) return tokens[index].box;
  const text = (place) => tokens[place]?.text ?? "";
  const opens = (token) => token === "{" || token.startsWith("\\begin") || token.startsWith("\\left");
  const closes = (token) => token === "}" || token.startsWith("\\end") || token.startsWith("\\right");
  let [first, last] = [index, index];
  if (closes(text(index))) {
    for (let depth = 1; depth && first > 0;) depth += closes(text(--first)) - opens(text(first));
  } else {
    if (!opens(text(index))) last = first = index + 1;
    for (let depth = Number(opens(text(last))); depth > 0 && last < tokens.length - 1;) {
      depth += opens(text(++last)) - closes(text(last));
    }
  }
  return unionOf(tokens.slice(first, last + 1));
};

export const unionOf = (tokens) => {
  const boxes = tokens.map((token) => token.box).filter(Boolean);
  return boxes.length ? [0, 1, 2, 3].map((side) => (side < 2 ? Math.min : Math.max)(...boxes.map((box) => box[side]))) : null;
};

// Shows what else a token might be; `onChoose(text)` when the person takes one.
export const showChoices = ({ token, chosen, element, frame, onChoose, onClose }) => {
  const all = [{ text: token.text, probability: token.probability }, ...token.alternatives];
  const now = chosen ?? token.text;
  const rows = all.map(({ text, probability }, place) => {
    const bar = make("span", { className: "bar" });
    bar.style.width = `${100 * probability}%`;
    return menuRow(() => { if (text !== now) onChoose(text); },
      { className: "choice", role: "menuitemradio", "aria-checked": String(text === now), ...(place === Math.min(1, all.length - 1) ? { "data-first": "" } : {}) },
      make("code", { textContent: text }), make("span", { className: "track" }, bar), make("span", { className: "share", textContent: percent(probability) }));
  });
  openMenu({ element, frame, title: say(token.alternatives.length ? "might" : "mightNot"), rows, onClose });
};

export class TokenList {
  #list = byId("tokens");
  #tokens = [];
  #chosen = {};
  #selected = 0;
  #lit = [];
  #on;

  // `on.point(indices)`: a token is pointed at; `on.ask(index, chip)`: what else might it be.
  constructor(on) {
    this.#on = on;
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("pointerover", (event) => { const index = this.#indexOf(event.target); if (index >= 0) on.point([index]); });
    this.#list.addEventListener("pointerleave", () => on.point([]));
    this.#list.addEventListener("focusin", (event) => this.#select(this.#indexOf(event.target)));
    this.#list.addEventListener("focusout", () => on.point([]));
    this.#list.addEventListener("click", (event) => { const index = this.#indexOf(event.target); if (index >= 0) this.#ask(index); });
  }

  #indexOf(element) { return Number(element.dataset?.index ?? -1); }

  show(tokens, chosen = {}) {
    const same = tokens === this.#tokens;
    [this.#tokens, this.#chosen] = [tokens, chosen];
    if (!same) this.#selected = 0;
    this.#lit = [];
    this.#list.replaceChildren(...tokens.map((token, index) => this.#chip(token, index)));
  }

  #chip(token, index) {
    const doubt = index in this.#chosen ? null : doubtOf(token);
    const text = this.#chosen[index] ?? token.text;
    const sure = say("tokenSure", { share: percent(token.probability) });
    const chip = make("span", {
      className: `token${token.box ? "" : " structural"}${doubt ? ` doubt ${doubt}` : ""}${index in this.#chosen ? " changed" : ""}`, role: "option",
      textContent: text, tabIndex: index === this.#selected ? 0 : -1, "aria-selected": "false", title: sure,
      "aria-label": `${text}, ${sure}${token.alternatives.length ? `, ${say("tokenHas")}` : ""}`,
    });
    chip.dataset.index = index;
    return chip;
  }

  #select(index) {
    if (index < 0) return;
    this.#chipAt(this.#selected)?.setAttribute("tabindex", "-1");
    this.#selected = index;
    this.#chipAt(index).tabIndex = 0;
    this.#on.point([index]);
  }

  #chipAt(index) { return this.#list.children[index]; }

  #ask(index) {
    this.#chipAt(index).focus();
    this.#on.ask(index, this.#chipAt(index));
  }

  // Lights up tokens, and no others.
  light(indices) {
    for (const index of this.#lit) this.#chipAt(index)?.classList.remove("lit");
    for (const index of indices) this.#chipAt(index)?.classList.add("lit");
    this.#lit = indices;
  }

  #key(event) {
    const last = this.#tokens.length - 1;
    const go = { ArrowLeft: Math.max(this.#selected - 1, 0), ArrowRight: Math.min(this.#selected + 1, last), Home: 0, End: last }[event.key];
    if (go !== undefined) this.#chipAt(go).focus();
    else if (event.key === "Enter" || event.key === " ") this.#ask(this.#selected);
    else return;
    event.preventDefault();
  }
}
