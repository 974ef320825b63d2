// The start shows what this does: symbol after symbol lights up on a picture and in its LaTeX. A real reading, kept in demo.json by recipes/pictures.py.
import { piecesOf, regionsOf } from "./align.js";
import { byId, make } from "./dom.js";
import { regionOf } from "./tokens.js";
import { tinted } from "./tone.js";

const STEP_MS = 420;

export const startDemo = async () => {
  const { url, latex, tokens } = await (await fetch("demo.json")).json();
  const image = byId("demo-image");
  tinted(image).src = url;
  await image.decode();
  const regions = regionsOf(latex, tokens).filter(({ tokens: indices }) => indices.some((index) => tokens[index].box));
  const spans = piecesOf(latex).map(({ text, from }) => Object.assign(make("span", { textContent: text }), { from }));
  byId("demo-latex").replaceChildren(...spans);
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const box = byId("demo-box");
  const show = (region) => {
    const place = regionOf(tokens, region.tokens.find((index) => tokens[index].box));
    const { naturalWidth, naturalHeight } = image;
    Object.assign(box.style, {
      left: `${100 * place[0] / naturalWidth}%`, top: `${100 * place[1] / naturalHeight}%`,
      width: `${100 * (place[2] - place[0]) / naturalWidth}%`, height: `${100 * (place[3] - place[1]) / naturalHeight}%`,
    });
    for (const span of spans) span.classList.toggle("lit", span.from >= region.from && span.from < region.to);
  };
  let step = 0;
  const timer = setInterval(() => {
    if (document.body.dataset.view !== "start") { clearInterval(timer); return; }
    if (document.hidden) return;
    box.classList.add("on");
    show(regions[step++ % regions.length]);
  }, STEP_MS);
};
