// The formula in every format that the server knows, to copy or to download. The server lists them; nothing here names one but LaTeX.
import { convert, listFormats } from "./api.js";
import { make, save } from "./dom.js";
import { menuRow, openMenu } from "./menu.js";
import { say } from "./words.js";

const label = ({ name }) => (say.has(`format.${name}`) ? say(`format.${name}`) : name);
const canCopy = (format) => format.text || (format.media_type === "image/png" && Boolean(globalThis.ClipboardItem));

let formats = [];
export const loadFormats = async () => { formats = await listFormats(); };

export const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard without https or localhost: the old way still works there
    const area = make("textarea", { value: text, className: "offscreen" });
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error(say("noCopy"));
  }
};

const copyFormula = async (format, latex) => {
  if (format.text) await copyText(await (await convert(latex, format)).text());
  else await navigator.clipboard.write([new ClipboardItem({ [format.media_type]: convert(latex, format) })]);
};

// Opens the menu of formats under a button. `on.done(format)` after it was copied; `on.failed(error)`.
export const showFormats = (button, kind, latex, on) => {
  const work = kind === "copy"
    ? copyFormula
    : async (format, text) => save(await convert(text, format), `formula.${format.extension}`);
  const rows = formats.filter((format) => kind === "save" || canCopy(format)).map((format) => menuRow(
    () => work(format, latex).then(() => on.done(format), on.failed), { className: "format" },
    make("span", { textContent: label(format) }), make("span", { className: "share", textContent: kind === "save" ? `.${format.extension}` : "" })));
  openMenu({ element: button, title: say(kind === "copy" ? "copyAs" : "saveAs"), rows });
};
