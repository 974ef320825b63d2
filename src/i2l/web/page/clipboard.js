// Images from the clipboard and files from a drop; formulas to the clipboard, in four forms.
import { toMathml } from "./preview.js";

export const FORMS = {
  latex: (latex) => latex,
  display: (latex) => `$$${latex}$$`,
  inline: (latex) => `$${latex}$`,
  mathml: toMathml,
};

// The first image in a paste or a drop, or whatever file there is: the server says what is wrong with it.
export const fileOf = (transfer) => {
  const files = [...(transfer?.files ?? [])];
  return files.find((file) => file.type.startsWith("image/")) ?? files[0] ?? null;
};

export const canPaste = () => Boolean(navigator.clipboard?.read);

export const pasteImage = async () => {
  for (const item of await navigator.clipboard.read()) {
    const type = item.types.find((name) => name.startsWith("image/"));
    if (type) return item.getType(type);
  }
  return null;
};

export const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard without https or localhost: the old way still works there
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "offscreen";
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    if (!copied) throw new Error("The browser does not allow copying.");
  }
};
