// What the page says, in the language of the person: one file of strings for each in words/.
export const LANGUAGES = { en: "English", zh: "中文", de: "Deutsch", fr: "Français", es: "Español" };

const KEY = "i2l-language";
let words = {};

const stored = () => { try { return localStorage.getItem(KEY); } catch { return null; } };

export const preferred = () => [stored(), ...navigator.languages.map((name) => name.slice(0, 2)), "en"].find((name) => name in LANGUAGES);

const ATTRIBUTES = { say: "textContent", sayTitle: "title", sayLabel: "aria-label", sayPlaceholder: "placeholder", sayAlt: "alt" };

// Gives a sentence, with values in the place of {names}. `say.has(key)` tells whether this language has one.
export const say = (key, values = {}) => (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name]);
say.has = (key) => key in words;

// Writes the words of this language into an element and all under it, wherever a data-say attribute names them.
const translate = (root) => {
  for (const [name, property] of Object.entries(ATTRIBUTES)) {
    const attribute = `data-${name.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
    for (const element of root.querySelectorAll(`[${attribute}]`)) {
      const text = say(element.dataset[name]);
      if (property === "aria-label") element.setAttribute(property, text);
      else element[property] = text;
      if (property === "title" && !element.querySelector("[data-say]")) element.setAttribute("aria-label", text);
    }
  }
};

export const speak = async (language, { keep = false } = {}) => {
  words = await (await fetch(`words/${language}.json`)).json();
  if (keep) { try { localStorage.setItem(KEY, language); } catch { /* it lasts as long as this page */ } }
  document.documentElement.lang = language;
  document.title = say("title");
  translate(document);
};
