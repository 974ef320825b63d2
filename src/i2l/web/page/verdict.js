// How sure a reading is, in a word; the number is behind it.
import { make, percent } from "./dom.js";
import { say } from "./words.js";

const SURE = 0.8;
const CHECK = 0.4;

export const verdictOf = (confidence) => (confidence >= SURE ? "sure" : confidence >= CHECK ? "check" : "doubtful");

// Makes an element show it.
export const showVerdict = (element, confidence) => {
  const verdict = verdictOf(confidence);
  const share = percent(confidence);
  element.className = `verdict ${verdict}`;
  element.textContent = say(verdict);
  element.title = say("verdictHint", { share });
  element.setAttribute("aria-label", `${say(verdict)}, ${say("verdictHint", { share })}`);
};

export const verdictChip = (confidence) => {
  const chip = make("span", { role: "img" });
  showVerdict(chip, confidence);
  return chip;
};
