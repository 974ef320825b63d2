// The tokens that were read: how sure, where, and what else each might be.
import { byId, make, percent } from "./dom.js";

const END = "<eos>"; // of the formula: nothing to put in a token's place
const DOUBT = 0.9; // below this probability a token is worth a look

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
  const boxes = tokens.slice(first, last + 1).map((token) => token.box).filter(Boolean);
  return boxes.length ? [0, 1, 2, 3].map((side) => (side < 2 ? Math.min : Math.max)(...boxes.map((box) => box[side]))) : null;
};

export const isUnsure = (token) => token.probability < DOUBT;

export class TokenList {
  #list = byId("tokens");
  #choices = byId("choices");
  #tokens = [];
  #selected = 0;
  #open = null;
  #on;

  // `on.point(index or null)`: a token is pointed at; `on.exchange(index, text)`: another was chosen for it.
  constructor(on) {
    this.#on = on;
    this.#list.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("pointerleave", () => on.point(null));
    this.#list.addEventListener("focusout", () => { if (this.#open === null) on.point(null); });
    this.#choices.addEventListener("keydown", (event) => this.#choiceKey(event));
    document.addEventListener("pointerdown", (event) => {
      if (this.#open !== null && !this.#choices.contains(event.target)) this.close();
    });
  }

  show(tokens) {
    this.close();
    this.#tokens = tokens;
    this.#selected = 0;
    this.#list.replaceChildren(...tokens.map((token, index) => this.#chip(token, index)));
  }

  #chip(token, index) {
    const unsure = isUnsure(token) && token.alternatives.length;
    const chip = make("span", {
      className: `token${token.box ? "" : " structural"}${token.changed ? " changed" : ""}`, role: "option",
      textContent: token.text, tabIndex: index === this.#selected ? 0 : -1, "aria-selected": "false",
      "aria-label": `${token.text}, ${percent(token.probability)} sure${unsure ? ", has alternatives" : ""}`,
      title: `${percent(token.probability)} sure`,
    });
    chip.style.setProperty("--doubt", token.changed ? 0 : Math.min(1, 1.5 * (1 - token.probability)));
    chip.addEventListener("pointerenter", () => this.#on.point(index));
    chip.addEventListener("focus", () => this.#select(index));
    chip.addEventListener("click", () => { chip.focus(); this.choose(index); });
    return chip;
  }

  #select(index) {
    this.#chipAt(this.#selected)?.setAttribute("tabindex", "-1");
    this.#selected = index;
    this.#chipAt(index).tabIndex = 0;
    this.#on.point(index);
  }

  #chipAt(index) { return this.#list.children[index]; }

  // Lights up tokens, and no others.
  light(indices) {
    [...this.#list.children].forEach((chip, index) => chip.classList.toggle("lit", indices.includes(index)));
  }

  #key(event) {
    const last = this.#tokens.length - 1;
    const go = { ArrowLeft: Math.max(this.#selected - 1, 0), ArrowRight: Math.min(this.#selected + 1, last), Home: 0, End: last }[event.key];
    if (go !== undefined) this.#chipAt(go).focus();
    else if (event.key === "Enter" || event.key === " ") this.choose(this.#selected);
    else return;
    event.preventDefault();
  }

  // Opens the list of what else a token might be.
  choose(index) {
    this.close();
    const token = this.#tokens[index];
    const chip = this.#chipAt(index);
    if (!chip) return;
    chip.setAttribute("aria-selected", "true");
    const row = (text, share, chosen) => {
      const bar = make("span", { className: "bar" });
      bar.style.width = `${100 * share}%`;
      const button = make("button", { type: "button", role: "menuitemradio", "aria-checked": String(chosen) },
        make("span", { textContent: text }), make("span", {}, bar), make("span", { className: "share", textContent: percent(share) }));
      button.addEventListener("click", () => { this.close(true); if (!chosen) this.#on.exchange(index, text, share); });
      return button;
    };
    const others = token.alternatives.filter((other) => other.text !== END).map((other) => row(other.text, other.probability, false));
    const about = others.length ? "What else it might be" : "Nothing else was considered";
    this.#choices.replaceChildren(make("p", { textContent: about }), row(token.text, token.probability, true), ...others);
    this.#choices.hidden = false;
    const frame = chip.getBoundingClientRect();
    const left = Math.min(frame.left, document.documentElement.clientWidth - this.#choices.offsetWidth - 12);
    Object.assign(this.#choices.style, { left: `${Math.max(8, left) + scrollX}px`, top: `${frame.bottom + 6 + scrollY}px` });
    this.#open = index;
    this.#on.point(index);
    (this.#choices.querySelectorAll("button")[others.length ? 1 : 0]).focus();
  }

  close(refocus = false) {
    if (this.#open === null) return;
    const chip = this.#chipAt(this.#open);
    chip?.setAttribute("aria-selected", "false");
    this.#open = null;
    this.#choices.hidden = true;
    if (refocus) chip?.focus();
    else this.#on.point(null);
  }

  #choiceKey(event) {
    const buttons = [...this.#choices.querySelectorAll("button")];
    const place = buttons.indexOf(document.activeElement);
    if (event.key === "ArrowDown") buttons[(place + 1) % buttons.length].focus();
    else if (event.key === "ArrowUp") buttons[(place + buttons.length - 1) % buttons.length].focus();
    else if (event.key === "Escape" || event.key === "Tab") this.close(true);
    else return;
    event.preventDefault();
  }
}
