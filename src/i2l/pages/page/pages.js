"use strict";
// A click on an outline copies the LaTeX of its formula; a line at the top says so.
document.addEventListener("click", async (event) => {
  const outline = event.target.closest("button[data-latex]");
  if (!outline) return;
  const said = document.getElementById("said");
  const latex = outline.dataset.latex;
  if (!latex) {
    said.textContent = "This formula was not read.";
    return;
  }
  try {
    await navigator.clipboard.writeText(latex);
    said.textContent = `Copied: ${latex}`;
  } catch {
    said.textContent = latex; // a page from the disk may not use the clipboard everywhere
  }
});
