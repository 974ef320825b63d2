// Small things that every module needs: elements by their id, new ones, icons, shares as percent, files to save.

export const byId = (id) => document.getElementById(id);

export const make = (name, properties = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children);
  return element;
};

export const makeSvg = (name, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

export const icon = (name) => makeSvg("svg", { "aria-hidden": "true" }, makeSvg("use", { href: `icons.svg#${name}` }));

export const percent = (share) => (share < 0.001 ? "< 0.1 %" : share >= 0.9995 ? "100 %"
  : `${(100 * share).toFixed(share > 0.0995 && share < 0.985 ? 0 : 1)} %`);

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Saves a Blob as a file of the person.
export const save = (blob, name) => {
  const address = URL.createObjectURL(blob);
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
};

// Puts a small window beside an element, inside the screen: under it, or above it where there is more room.
export const placeBeside = (popup, frame) => {
  const { clientWidth, clientHeight } = document.documentElement;
  const [below, above] = [clientHeight - frame.bottom - 14, frame.top - 14];
  const isUnder = below >= Math.min(popup.offsetHeight, above);
  const height = Math.min(popup.offsetHeight, isUnder ? below : above);
  const left = Math.max(8, Math.min(frame.left, clientWidth - popup.offsetWidth - 8));
  Object.assign(popup.style, { left: `${left}px`, top: `${isUnder ? frame.bottom + 6 : frame.top - 6 - height}px`, maxHeight: `${Math.max(100, height)}px` });
};
