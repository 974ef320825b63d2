// Small things that every module needs: elements by their id, new ones, and shares as percent.

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

export const percent = (share) => (share < 0.001 ? "< 0.1 %" : share >= 0.9995 ? "100 %"
  : `${(100 * share).toFixed(share > 0.0995 && share < 0.985 ? 0 : 1)} %`);
