"""Many of them: two hundred random sequences of edits, and two hundred files at once."""

import json

import pytest

from tests.web.conftest import png
from tests.web.visiting import FORMULA, LATEX, answer, answer_with, expect_latex, token, transfer, visiting

pytestmark = pytest.mark.slow

SEQUENCES = 200
STEPS = 12
FILES = 200

# A reading with what an edit can meet: words that become commands, scripts, fractions, other readings.
TEXT = r"\alpha _ { 1 } + \frac { x ^ { 2 } } { \operatorname { s i n } \beta y } - \sqrt { z } \leq 3"
READING = r"\alpha_{1} + \frac{x^{2}}{\sin\beta y} - \sqrt{z} \leq 3"
ALTERNATIVES = {
    r"\alpha": {"a": 0.2, r"\gamma": 0.1},
    "x": {r"\times": 0.05, r"\chi": 0.3},
    "2": {r"\prime": 0.2, "Z": 0.1},
    "i": {"l": 0.15},
    r"\beta": {"B": 0.3},
    "^": {"_": 0.1},
    "y": {"v": 0.2, r"\gamma": 0.1},
    r"\leq": {"<": 0.3},
    "+": {"-": 0.1},
}
OTHERS = [(r"a_{1} + \frac{x^{2}}{\sin\beta y} - \sqrt{z} < 3", 0.2), (r"\alpha_{1} + \frac{x}{y}", 0.1)]

# Runs in the page. Every change is a step of its own in a history that is kept beside; the person's marks are
# unique.
SEQUENCE = r"""async ([seed, steps]) => {
  const { EditorView, isolateHistory } = await import("/codemirror/codemirror.min.js");
  const view = EditorView.findFromDOM(document.querySelector("#latex .cm-editor"));
  let state = seed * 2654435761 % 4294967296;
  const random = (below) => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return Math.floor(state / 4294967296 * below);
  };
  const text = () => view.state.doc.toString();
  const pause = () => new Promise((resolve) => setTimeout(resolve, 0));
  const parses = (latex) => {
    try {
      katex.renderToString(latex, { displayMode: true, strict: false });
      return true;
    } catch {
      return false;
    }
  };
  const settle = async (before) => {
    for (let turn = 0; turn < 40 && text() === before && document.getElementById("notice").hidden; turn++) {
      await pause();
    }
  };
  document.getElementById("revert").click();
  const past = [text()], future = [], done = [];
  const fail = (why) => {
    throw new Error(`${why} after ${JSON.stringify({ done, before: past.at(-1), now: text() })}`);
  };
  const kinds = ["type", "exchange", "exchange", "reading", "revert", "undo", "undo", "redo"];
  let marks = 0, exchanged = 0;
  for (let step = 0; step < steps; step++) {
    const before = text(), kind = kinds[random(kinds.length)];
    done.push(kind);
    document.getElementById("notice").hidden = true;
    if (kind === "type") {
      // beside whatever stands outside of all braces, so that what was a formula still is one
      const outside = /(?<=^[^{}]*(?:\{(?:[^{}]|\{[^{}]*\})*\}[^{}]*)*) [-+=] /g;
      const places = [...before.matchAll(outside)].map(({ index }) => index);
      const place = random(3) && places.length ? places[random(places.length)] : before.length;
      const mark = ` + q_{${seed}.${marks++}}`;
      view.dispatch({ changes: { from: place, insert: mark }, annotations: isolateHistory.of("full") });
    } else if (kind === "exchange") {
      const chips = [...document.querySelectorAll("#tokens .token[aria-label*=alternatives]")];
      chips[random(chips.length)].click();
      const rows = [...document.querySelectorAll("#menu button")];
      const hand = before.match(/q_\{\d+\.\d+\}/g) ?? [];
      rows[random(rows.length)].click();
      await settle(before);
      const after = text();
      exchanged += after !== before;
      if (parses(before) && !parses(after)) fail("ill-formed");
      for (const mark of hand) if (!after.includes(mark)) fail(`lost ${mark}`);
    } else if (kind === "reading") {
      const rows = [...document.querySelectorAll("#readings .reading")], row = rows[random(rows.length)];
      row.click();
      if (text() !== row.dataset.latex) fail("another reading");
    } else if (kind === "revert") {
      document.getElementById("revert").click();
      if (text() !== document.querySelector("#readings .reading").dataset.latex) fail("not the reading");
    } else if (kind === "undo" && past.length > 1) {
      future.push(past.pop());
      document.getElementById("undo").click();
      if (text() !== past.at(-1)) fail("undo");
      continue;
    } else if (kind === "redo" && future.length) {
      past.push(future.pop());
      document.getElementById("redo").click();
      if (text() !== past.at(-1)) fail("redo");
      continue;
    }
    if (text() !== before) { past.push(text()); future.length = 0; }
  }
  const last = text();
  for (let back = past.length - 2; back >= 0; back--) {
    document.getElementById("undo").click();
    if (text() !== past[back]) fail("undone to the start");
  }
  for (let on = 1; on < past.length; on++) document.getElementById("redo").click();
  if (text() !== last) fail("redone to the end");
  return exchanged;
}"""


@pytest.fixture
def visit(browser, server):
    with visiting(browser, server) as visit_page:
        yield visit_page


def test_edits_alternatives_and_undo_in_random_sequences(visit):
    page = visit()
    tokens = [token(text, 0.6, **ALTERNATIVES.get(text, {})) for text in TEXT.split(" ")]
    answer(page, answer_with(*tokens, latex=READING, alternatives=OTHERS, confidence=0.5))
    transfer(page, "paste", png(FORMULA), target="document")
    expect_latex(page, READING)
    page.locator("#inspect summary").click()
    exchanged = [page.evaluate(SEQUENCE, [seed, STEPS]) for seed in range(1, SEQUENCES + 1)]
    print(json.dumps({"sequences": len(exchanged), "exchanged": sum(exchanged)}))
    assert sum(exchanged) > SEQUENCES, "tokens really are exchanged"


def test_two_hundred_files_at_once(visit):
    page = visit()
    page.evaluate(
        """() => {
          window.longest = 0;
          new PerformanceObserver((list) => {
            for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
          }).observe({ type: "longtask" });
        }"""
    )
    transfer(page, "drop", png(FORMULA), count=FILES)
    page.locator("#rows tr").first.wait_for()
    assert page.locator("#rows tr").count() == FILES
    page.locator("#theme").click()  # it answers meanwhile
    page.get_by_text(f"{FILES} of {FILES} read").wait_for(timeout=240_000)
    texts = page.locator("#rows code").all_text_contents()
    assert texts == [LATEX] * FILES
    names = page.locator("#rows .thumbnail span").all_text_contents()
    assert names == [f"{n}-formula.png" for n in range(FILES)]
    page.wait_for_function(
        """(files) => new Promise((resolve) => {
          indexedDB.open("i2l").onsuccess = ({ target: { result } }) => {
            const count = result.transaction("readings").objectStore("readings").count();
            count.onsuccess = () => { result.close(); resolve(count.result === files); };
          };
        })""",
        arg=FILES,
    )
    longest = page.evaluate("window.longest")
    print(json.dumps({"longest_task_ms": longest}))
    assert longest < 3000, "the page answers while it reads"
