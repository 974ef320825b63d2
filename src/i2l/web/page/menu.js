// A small menu beside what opened it; by mouse, finger and keyboard.
import { byId, make, placeBeside } from "./dom.js";

const menu = byId("menu");
let opener = null; // { element, onClose }

export const isOpen = () => !menu.hidden;

export const closeMenu = ({ refocus = false } = {}) => {
  if (menu.hidden) return;
  menu.hidden = true;
  const { element, onClose } = opener;
  opener = null;
  if (element?.ariaHasPopup) element.setAttribute("aria-expanded", "false");
  if (refocus) element?.focus?.();
  onClose?.();
};

// Opens it: `rows` are elements with a role, each done on a click; `title` stands above them.
export const openMenu = ({ element, frame, title, rows, onClose }) => {
  closeMenu();
  opener = { element, onClose };
  menu.setAttribute("aria-label", title);
  menu.replaceChildren(...(title ? [make("p", { textContent: title, "aria-hidden": "true" })] : []), ...rows);
  menu.hidden = false;
  menu.style.maxHeight = "";
  placeBeside(menu, frame ?? element.getBoundingClientRect());
  if (element?.ariaHasPopup) element.setAttribute("aria-expanded", "true");
  (menu.querySelector("[data-first]") ?? menu.querySelector("button"))?.focus({ preventScroll: true });
};

export const menuRow = (onClick, properties, ...content) => {
  const row = make("button", { type: "button", role: "menuitem", tabIndex: -1, ...properties }, ...content);
  row.addEventListener("click", () => { closeMenu({ refocus: true }); onClick(); });
  return row;
};

menu.addEventListener("keydown", (event) => {
  const rows = [...menu.querySelectorAll("button")];
  const place = rows.indexOf(document.activeElement);
  const go = { ArrowDown: (place + 1) % rows.length, ArrowUp: (place + rows.length - 1) % rows.length, Home: 0, End: rows.length - 1 }[event.key];
  if (go !== undefined) rows[go].focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu({ refocus: true });
  else return;
  event.preventDefault();
});
document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target) && !opener?.element?.contains?.(event.target)) closeMenu(); });
addEventListener("resize", () => closeMenu());
addEventListener("scroll", () => closeMenu(), { passive: true });
