"use strict";
// The gallery: reads the pieces of JSON in this page when they are looked at, and draws a page of samples.
const index = JSON.parse(document.getElementById("gallery-index").textContent);
const ANY = "any"; // the last tab: all samples, at random, as a stranger would meet them
const keys = [...Object.keys(index.categories), ANY];
const PAGE = 10;
const pieces = new Map();
const byId = (id) => document.getElementById(id);
const state = { category: keys[0], order: "file", find: "", page: 0, matches: [] };

function sample(number) {
  const piece = Math.floor(number / index.piece);
  if (!pieces.has(piece)) pieces.set(piece, JSON.parse(byId(`gallery-${piece}`).textContent));
  return pieces.get(piece)[number % index.piece];
}

const ORDERS = {
  file: () => 0,
  worst: (a, b) => index.score[a] - index.score[b],
  best: (a, b) => index.score[b] - index.score[a],
  long: (a, b) => index.length[b] - index.length[a],
  short: (a, b) => index.length[a] - index.length[b],
  random: (a, b) => chance(a) - chance(b),
};
// The same order every time, and no pattern in it.
const chance = (number) => Math.imul(Math.imul(number + 1, 0x9e3779b1) ^ (number << 7), 0x85ebca6b) >>> 0;

function select() {
  const wanted = keys.indexOf(state.category);
  const words = state.find.split(/\s+/).filter(Boolean);
  const fits = (number) => {
    if (!words.length) return true;
    const { name, target, prediction } = sample(number);
    const tokens = new Set(`${target} ${prediction}`.split(" "));
    return words.every((word) => name === word || tokens.has(word));
  };
  state.matches = index.category
    .map((category, number) => (state.category === ANY || category === wanted ? number : -1))
    .filter((number) => number >= 0 && fits(number))
    .sort((a, b) => ORDERS[state.order](a, b) || a - b);
  state.page = 0;
  show();
}

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function picture(base64, kind = "png") {
  const image = new Image();
  image.src = `data:image/${kind};base64,${base64}`;
  return image;
}

// Target and prediction laid over each other, column by column, differing spans beside or over each other.
async function difference(item, canvas) {
  const images = [picture(item.targetImage), picture(item.predictionImage)];
  await Promise.all(images.map((image) => image.decode()));
  const tops = [Math.max(-item.shift, 0), Math.max(item.shift, 0)];
  const height = Math.max(...images.map((image, side) => image.height + tops[side]));
  const inks = images.map((image, side) => {
    const sheet = new OffscreenCanvas(image.width, height).getContext("2d");
    sheet.fillStyle = "#fff";
    sheet.fillRect(0, 0, image.width, height);
    sheet.drawImage(image, 0, tops[side]);
    const { data } = sheet.getImageData(0, 0, image.width, height);
    return (x, y) => x >= 0 && data[4 * (y * image.width + x)] < 128;
  });
  const columns = []; // pairs of a column of each side, -1 for none
  let [i, j] = [0, 0];
  for (const [from, to, , otherTo] of item.columns) {
    while (i < from) columns.push([i++, j++]);
    while (i < to || j < otherTo) columns.push([i < to ? i++ : -1, j < otherTo ? j++ : -1]);
  }
  while (i < images[0].width) columns.push([i++, j++]);
  canvas.width = columns.length;
  canvas.height = height;
  const context = canvas.getContext("2d");
  const drawn = context.createImageData(canvas.width, height);
  const COLOURS = [[255, 255, 255], [214, 32, 39], [20, 90, 220], [40, 40, 40]];
  columns.forEach(([left, right], x) => {
    for (let y = 0; y < height; y++) {
      const colour = COLOURS[(inks[0](left, y) ? 1 : 0) + (inks[1](right, y) ? 2 : 0)];
      drawn.data.set([...colour, 255], 4 * (y * canvas.width + x));
    }
  });
  context.putImageData(drawn, 0, 0);
}

function pictures(item) {
  const rows = element("div", "pictures");
  const add = (label, ...content) => rows.append(element("span", "", label), element("div", "paper", ...content));
  if (item.inputImage) add("Image", picture(item.inputImage, "webp"));
  add("Target", item.targetImage ? picture(item.targetImage) : "cannot be rendered");
  if (item.predictionImage) add("Prediction", picture(item.predictionImage));
  else add("Prediction", item.scores.strict_match ? "the same picture" : "no picture");
  if (item.columns) {
    const canvas = element("canvas");
    add("Difference", canvas);
    difference(item, canvas);
  }
  return rows;
}

function aligned(item) {
  const [target, prediction] = [item.target, item.prediction].map((text) => text.split(" ").filter(Boolean));
  const line = element("div", "aligned");
  let at = 0;
  for (const [from, to, otherFrom, otherTo] of item.blocks) {
    line.append(target.slice(at, from).join(" "), " ");
    line.append(element("span", "block",
      element("span", "missing", target.slice(from, to).join(" ") || "\u00a0"),
      element("span", "added", prediction.slice(otherFrom, otherTo).join(" ") || "\u00a0")), " ");
    at = to;
  }
  line.append(target.slice(at).join(" "));
  return line;
}

function card(number) {
  const item = sample(number);
  const facts = element("span", "", `${index.length[number]} tokens`);
  if (item.scores) {
    const verdict = (flag) => (flag ? "yes" : "no");
    facts.append(`, character F1 ${item.scores.character_f1}, same pixels: ${verdict(item.scores.strict_match)},`,
      ` tolerant: ${verdict(item.scores.tolerant_match)},`,
      ` im2markup: ${verdict(item.scores.im2markup_match_no_spaces)}`);
  }
  const made = element("section", "card", element("h3", "", item.name, facts));
  if (item.targetImage !== undefined) made.append(pictures(item));
  if (item.message) made.append(element("p", "message", item.message));
  made.append(aligned(item));
  return made;
}

function show() {
  const pages = Math.max(1, Math.ceil(state.matches.length / PAGE));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const numbers = state.matches.slice(state.page * PAGE, (state.page + 1) * PAGE);
  byId("cards").replaceChildren(...numbers.map(card));
  byId("where").textContent = `page ${state.page + 1} of ${pages}, ${state.matches.length} samples`;
  byId("previous").disabled = state.page === 0;
  byId("next").disabled = state.page === pages - 1;
  for (const tab of byId("tabs").children) tab.ariaSelected = String(tab.dataset.category === state.category);
}

function turn(step) {
  state.page += step;
  show();
  byId("gallery").scrollIntoView();
}

for (const [position, key] of keys.entries()) {
  const count = key === ANY ? index.category.length : index.category.filter((category) => category === position).length;
  const tab = element("button", "", `${index.categories[key] ?? "Any, at random"} (${count})`);
  tab.type = "button";
  tab.role = "tab";
  tab.dataset.category = key;
  tab.addEventListener("click", () => {
    state.category = key;
    state.order = byId("order").value = key === ANY ? "random" : state.order === "random" ? "file" : state.order;
    select();
  });
  byId("tabs").append(tab);
}
byId("order").addEventListener("change", (event) => { state.order = event.target.value; select(); });
byId("find").addEventListener("input", (event) => { state.find = event.target.value.trim(); select(); });
byId("previous").addEventListener("click", () => turn(-1));
byId("next").addEventListener("click", () => turn(1));
document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.target.tagName === "SELECT") return;
  if (event.key === "ArrowLeft" && !byId("previous").disabled) turn(-1);
  if (event.key === "ArrowRight" && !byId("next").disabled) turn(1);
});
state.category = keys.find((_, position) => index.category.includes(position)) || keys[0];
select();
