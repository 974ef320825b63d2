// Shows for each token where the model looked, and for each place of the image which tokens looked there.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { grid, tokens } = data;
  const cells = grid.rows * grid.columns;
  const bytes = Uint8Array.from(atob(data.attention), (letter) => letter.charCodeAt(0));
  const element = (id) => document.getElementById(id);
  const [paper, heat, marks, here, list, detail] = ["paper", "heat", "marks", "here", "tokens", "detail"].map(element);
  const percent = (share) => `${(100 * share).toFixed(share > 0.0995 && share < 0.985 ? 0 : 1)} %`;
  let selected = 0;
  let timer = null;

  const attentionOf = (token, cell) => bytes[token * cells + cell] / 255;
  const cellBox = (cell, margin = 0) => {
    const column = cell % grid.columns, row = Math.floor(cell / grid.columns);
    const x = grid.left + column * grid.width, y = grid.top + row * grid.height;
    const dx = margin * (data.field.width - grid.width) / 2, dy = margin * (data.field.height - grid.height) / 2;
    return [x - dx, y - dy, x + grid.width + dx, y + grid.height + dy];
  };
  const peakOf = (token) => {
    const own = bytes.subarray(token * cells, (token + 1) * cells);
    return own.indexOf(Math.max(...own));
  };

  // The image at a size that can be looked at: small ones up to three times as large.
  const zoom = Math.min(3, Math.max(1, 960 / data.width));
  paper.style.maxWidth = `${data.width * zoom}px`;

  // Attention may lie beside the image, on the white that was added around it: show a little of that too.
  const margin = Math.ceil(18 / zoom);
  [heat.width, heat.height] = [data.width + 2 * margin, data.height + 2 * margin];
  Object.assign(heat.style, {
    left: `${-100 * margin / data.width}%`, width: `${100 * heat.width / data.width}%`,
    top: `${-100 * margin / data.height}%`, height: `${100 * heat.height / data.height}%`,
  });

  const small = document.createElement("canvas");
  [small.width, small.height] = [grid.columns, grid.rows];
  const drawHeat = (token) => {
    const context = heat.getContext("2d");
    context.clearRect(0, 0, heat.width, heat.height);
    const spread = element("spread").value;
    if (spread === "none") return;
    const picture = new ImageData(grid.columns, grid.rows);
    for (let cell = 0; cell < cells; cell++) {
      // Darkness grows with the root of attention, so that little of it can still be seen.
      picture.data.set([240, 110, 20, Math.round(225 * Math.sqrt(attentionOf(token, cell)))], 4 * cell);
    }
    small.getContext("2d").putImageData(picture, 0, 0);
    context.imageSmoothingEnabled = spread === "smooth";
    context.imageSmoothingQuality = "high";
    context.drawImage(small, grid.left + margin, grid.top + margin, grid.width * grid.columns, grid.height * grid.rows);
  };

  const drawMarks = (token) => {
    const rectangle = ([left, top, right, bottom], name) =>
      `<rect class="${name}" x="${left}" y="${top}" width="${right - left}" height="${bottom - top}"/>`;
    const parts = element("boxes").checked
      ? tokens.filter((other) => other.box).map((other) => rectangle(other.box, "box")) : [];
    if (element("field").checked) parts.push(rectangle(cellBox(peakOf(token), 1), "field"));
    if (tokens[token].box) parts.push(rectangle(tokens[token].box, "own"));
    marks.innerHTML = parts.join("");
  };

  const row = (text, share, chosen) => {
    const line = document.createElement("tr");
    if (chosen) line.className = "chosen";
    line.innerHTML = `<th scope="row"></th><td><span class="bar" style="width:${100 * share}%"></span></td><td>${percent(share)}</td>`;
    line.firstChild.textContent = text;
    return line;
  };
  const drawDetail = (index) => {
    const token = tokens[index];
    const peak = peakOf(index);
    const heading = document.createElement("h2");
    heading.textContent = token.text;
    const about = document.createElement("div");
    const line = (text) => about.appendChild(document.createElement("p")).textContent = text;
    about.append(heading);
    line(`Token ${index + 1} of ${tokens.length}${token.end ? ": the end of the formula" : token.visible ? "" : ": draws nothing itself"}`);
    line(`Looked most at row ${Math.floor(peak / grid.columns) + 1} of ${grid.rows}, column ${peak % grid.columns + 1} of ${grid.columns}`);
    line(token.cells === 1 ? "One cell holds 90 % of attention" : `${token.cells} cells hold 90 % of attention`);
    if (token.box) line(`Box: ${token.box.map(Math.round).join(", ")} (left, top, right, bottom)`);
    const table = document.createElement("table");
    table.createCaption().textContent = token.alternatives.length ? "Probability, and what else it might be" : "Probability";
    const body = table.createTBody();
    body.append(row(token.text, token.probability, true));
    for (const [text, share] of token.alternatives) body.append(row(text, share, false));
    detail.replaceChildren(about, table);
  };

  const show = (index) => { drawHeat(index); drawMarks(index); drawDetail(index); };
  const select = (index) => {
    selected = Math.min(Math.max(index, 0), tokens.length - 1);
    const focused = list.contains(document.activeElement);
    [...list.children].forEach((option, number) => {
      option.setAttribute("aria-selected", String(number === selected));
      option.tabIndex = number === selected ? 0 : -1;
    });
    if (focused) list.children[selected].focus();
    list.children[selected].scrollIntoView({ block: "nearest" });
    show(selected);
  };

  const pause = () => {
    clearTimeout(timer);
    timer = null;
    element("play").textContent = "Play";
    element("play").setAttribute("aria-pressed", "false");
    detail.setAttribute("aria-live", "polite");
  };
  const tick = () => {
    if (selected >= tokens.length - 1) return pause();
    select(selected + 1);
    timer = setTimeout(tick, 1600 / element("pace").value);
  };
  const play = () => {
    element("play").textContent = "Pause";
    element("play").setAttribute("aria-pressed", "true");
    detail.setAttribute("aria-live", "off");  // a screen reader cannot keep up with a scan
    if (selected >= tokens.length - 1) select(0);
    timer = setTimeout(tick, 1600 / element("pace").value);
  };
  const step = (to) => { pause(); select(to); };

  // Tokens at a place: first those whose box is there, the smallest before others; then by attention.
  const tokensAt = (x, y) => {
    const column = Math.floor((x - grid.left) / grid.width), line = Math.floor((y - grid.top) / grid.height);
    const inside = column >= 0 && column < grid.columns && line >= 0 && line < grid.rows;
    const found = tokens.map((token, index) => {
      const box = token.box;
      const boxed = box && box[0] <= x && x < box[2] && box[1] <= y && y < box[3];
      const area = boxed ? (box[2] - box[0]) * (box[3] - box[1]) : Infinity;
      return { index, area, share: inside ? attentionOf(index, line * grid.columns + column) : 0 };
    }).filter(({ area, share }) => area < Infinity || share >= 0.1);
    return found.sort((a, b) => (b.share - a.share) + 0.5 * ((b.area < Infinity) - (a.area < Infinity)) || a.area - b.area);
  };
  const place = (event) => {
    const frame = paper.getBoundingClientRect();
    return [(event.clientX - frame.left) / frame.width * data.width, (event.clientY - frame.top) / frame.height * data.height];
  };
  const leave = () => {
    here.textContent = "Point at the image to see what was read there.";
    [...list.children].forEach((option) => option.style.removeProperty("--here"));
    show(selected);
  };
  paper.addEventListener("pointermove", (event) => {
    const found = tokensAt(...place(event));
    [...list.children].forEach((option) => option.style.removeProperty("--here"));
    found.forEach(({ index, share }) => list.children[index].style.setProperty("--here", Math.max(0.45, share)));
    if (!found.length) return leave();
    here.replaceChildren(...found.slice(0, 6).map(({ index, share }) => {
      const item = document.createElement("span");
      item.innerHTML = `<b></b>${percent(share)}`;
      item.firstChild.textContent = tokens[index].text;
      return item;
    }));
    if (timer === null) show(found[0].index);
  });
  paper.addEventListener("pointerleave", leave);
  paper.addEventListener("click", (event) => {
    const [first] = tokensAt(...place(event));
    if (first) step(first.index);
  });

  tokens.forEach((token, index) => {
    const option = document.createElement("span");
    option.className = `token${token.visible ? "" : " structural"}${token.end ? " end" : ""}`;
    option.setAttribute("role", "option");
    option.setAttribute("aria-label", `${token.text}, ${percent(token.probability)}`);
    option.style.setProperty("--doubt", Math.min(1, 1.5 * (1 - token.probability)));
    option.textContent = token.text;
    option.addEventListener("pointerenter", () => { if (timer === null) show(index); });
    option.addEventListener("click", () => { option.focus(); step(index); });
    list.append(option);
  });
  list.addEventListener("pointerleave", () => show(selected));

  element("previous").addEventListener("click", () => step(selected - 1));
  element("next").addEventListener("click", () => step(selected + 1));
  element("play").addEventListener("click", () => (timer === null ? play() : pause()));
  for (const id of ["spread", "field", "boxes"]) element(id).addEventListener("change", () => show(selected));
  element("copy").addEventListener("click", async () => {
    const text = element("latex").textContent;
    try {
      await navigator.clipboard.writeText(text);
      element("copy").textContent = "Copied";
    } catch {  // pages opened from a file may not reach the clipboard: leave it to the person
      getSelection().selectAllChildren(element("latex"));
      element("copy").textContent = "Selected";
    }
    setTimeout(() => { element("copy").textContent = "Copy"; }, 1500);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    const go = { ArrowLeft: selected - 1, ArrowRight: selected + 1, Home: 0, End: tokens.length - 1 }[event.key];
    if (go !== undefined) {
      event.preventDefault();
      step(go);
    } else if (event.key === " " && !event.target.closest("button")) {
      event.preventDefault();
      timer === null ? play() : pause();
    }
  });
  leave();
  select(0);
})();
