// Many pictures: a table with a row for each, read a few at a time.
import { readImage } from "./api.js";
import { byId, icon, make } from "./dom.js";
import { exportAs } from "./exports.js";
import { copyText } from "./formats.js";
import { typeset } from "./preview.js";
import { tinted } from "./tone.js";
import { verdictChip } from "./verdict.js";
import { say } from "./words.js";

const AT_ONCE = 6; // requests on their way; the server reads together what waits together

export class Batch {
  #rows = []; // { file, name, reading, latex, error, element, id }
  #next = 0;
  #running = 0;
  #stop = new AbortController();
  #on;
  #seen;

  // `on.open(row)`: a row is to be shown; `on.read(row)`: one was read; `on.failed(error)`.
  constructor(on) {
    this.#on = on;
    this.#seen = new IntersectionObserver((entries) => this.#appear(entries), { rootMargin: "200px" });
    byId("batch-stop").addEventListener("click", () => this.stop());
    byId("batch-copy").addEventListener("click", () => {
      copyText(this.#rows.filter((row) => row.latex).map((row) => row.latex).join("\n")).then(() => this.#flash(byId("batch-copy")), on.failed);
    });
    for (const button of document.querySelectorAll("[data-export]")) {
      button.addEventListener("click", () => exportAs(button.dataset.export, this.#rows.map((row) => ({ ...row, image: row.file })), "formulas").catch(on.failed));
    }
  }

  get size() { return this.#rows.length; }
  get done() { return this.#rows.filter((row) => row.reading || row.error).length; }

  // Begins a table with files, or adds them to it.
  add(files) {
    const rows = files.map((file) => ({ file, name: file.webkitRelativePath || file.name || "", reading: null, latex: "", error: null }));
    rows.forEach((row, index) => { row.name ||= `formula-${this.#rows.length + index + 1}.png`; });
    this.#rows.push(...rows);
    byId("rows").append(...rows.map((row) => this.#makeRow(row)));
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
    while (this.#running < AT_ONCE && this.#next < this.#rows.length) this.#work(this.#stop.signal);
    this.progress();
  }

  // Ends what is on its way and empties the table.
  clear() {
    this.stop();
    for (const row of this.#rows) URL.revokeObjectURL(row.address);
    [this.#rows, this.#next] = [[], 0];
    byId("rows").replaceChildren();
  }

  stop() {
    this.#stop.abort();
    this.#next = this.#rows.length;
    this.progress();
  }

  async #work(signal) {
    this.#running++;
    while (!signal.aborted && this.#next < this.#rows.length) {
      const row = this.#rows[this.#next++];
      try {
        row.reading = await readImage(row.file, { signal, patient: true });
        row.latex = row.reading.latex;
        this.#on.read(row);
      } catch (error) {
        if (signal.aborted) break;
        row.error = error.message || say("away");
      }
      this.refresh(row);
      this.progress();
    }
    this.#running--;
    this.progress();
  }

  progress() {
    const failed = this.#rows.filter((row) => row.error).length;
    byId("batch-progress").textContent = say("batchDone", { done: this.done, all: this.#rows.length }) + (failed ? ` · ${say("batchFailed", { count: failed })}` : "");
    byId("batch-bar").value = this.#rows.length ? this.done / this.#rows.length : 0;
    byId("batch-bar").hidden = byId("batch-stop").hidden = !this.#running;
  }

  #makeRow(row) {
    row.address = URL.createObjectURL(row.file);
    row.element = make("tr", {});
    row.element.row = row;
    this.refresh(row);
    this.#seen.observe(row.element);
    return row.element;
  }

  // Shows what a row is now; what it looks like typeset comes when it is seen.
  refresh(row) {
    const cell = (name, ...content) => make("td", { className: name }, ...content);
    const open = make("button", { type: "button", className: "thumbnail", title: row.name, "aria-label": say("openOne", { name: row.name }), disabled: !row.reading },
      tinted(make("img", { src: row.address, alt: "", loading: "lazy", decoding: "async" })), make("span", { textContent: row.name }));
    open.addEventListener("click", () => this.#on.open(row));
    const copy = make("button", { type: "button", className: "icon", title: say("copyNamed", { name: row.name }), "aria-label": say("copyNamed", { name: row.name }), disabled: !row.latex }, icon("copy"));
    copy.addEventListener("click", () => copyText(row.latex).then(() => this.#flash(copy), this.#on.failed));
    const latex = row.error ? make("span", { className: "error", textContent: row.error }) : row.latex ? make("code", { textContent: row.latex, title: row.latex })
      : make("span", { className: "hint", textContent: say("waitingRow") });
    row.element.replaceChildren(cell("c-picture", open), cell("c-typeset"), cell("c-latex", latex), cell("c-verdict", ...(row.reading ? [verdictChip(row.reading.confidence)] : [])), cell("c-copy", copy));
    row.element.classList.toggle("waiting", !row.reading && !row.error);
    if (row.visible) this.#typeset(row);
  }

  #appear(entries) {
    for (const { target, isIntersecting } of entries) {
      target.row.visible = isIntersecting;
      if (isIntersecting) this.#typeset(target.row);
    }
  }

  #typeset(row) {
    const cell = row.element.querySelector(".c-typeset");
    if (row.latex && !cell.children.length) {
      const formula = make("span", { className: "formula" });
      cell.append(formula);
      typeset(formula, row.latex, { displayMode: false });
    }
  }

  #flash(button) {
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1200);
  }
}
