// The LaTeX, in CodeMirror: coloured by doubt, linked to the tokens, every change undone and redone like any other.
import {
  bracketMatching, Decoration, defaultKeymap, drawSelection, EditorState, EditorView, HighlightStyle, history, historyKeymap,
  invertedEffects, isolateHistory, keymap, redo, redoDepth, StateEffect, StateField, stexMath, StreamLanguage, syntaxHighlighting, tags, undo,
  undoDepth,
} from "./codemirror/codemirror.min.js";
import { changesOf, regionsOf } from "./align.js";
import { mistakeIn } from "./preview.js";

const COLOURS = HighlightStyle.define([
  { tag: [tags.tagName, tags.keyword, tags.atom], color: "var(--code-command)" },
  { tag: [tags.bracket, tags.brace], color: "var(--code-bracket)" },
  { tag: tags.number, color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--dim)" },
]);

// Where tokens stand in the text: regions as `regionsOf` gives them, in places of the text as it is now, and which tokens were exchanged.
// A region that the person has written into is theirs, and leaves.
const setLinks = StateEffect.define();
const links = StateField.define({
  create: () => ({ regions: [], chosen: {} }),
  update(value, transaction) {
    if (transaction.docChanged) value = { ...value, regions: follow(value.regions, transaction.changes) };
    for (const effect of transaction.effects) if (effect.is(setLinks)) value = effect.value; // of several undone together the last is the oldest
    return value;
  },
});

const follow = (regions, changes) => {
  const touched = [];
  changes.iterChangedRanges((from, to) => touched.push([from, to]));
  return regions.filter((region) => !touched.some(([from, to]) => from < region.to && to > region.from))
    .map((region) => ({ ...region, from: changes.mapPos(region.from, 1), to: changes.mapPos(region.to, -1) }));
};

// The history keeps with each change where the tokens stood before it.
const linksInHistory = invertedEffects.of((transaction) => (
  transaction.docChanged ? [setLinks.of(transaction.startState.field(links))] : []));

// What is shown besides: tokens that are pointed at, and where TeX would stumble.
const setShown = StateEffect.define();
const shown = StateField.define({
  create: () => ({ lit: [], mistake: null }),
  update(value, transaction) {
    if (transaction.docChanged) value = { ...value, lit: [] };
    for (const effect of transaction.effects) if (effect.is(setShown)) value = { ...value, ...effect.value };
    return value;
  },
});

// Text typed over a selection is put in here: left to itself the browser would keep the look of what was selected by style attributes, which
// the Content-Security-Policy forbids.
const typeOver = (event, view) => {
  if (event.inputType !== "insertText" || !event.data || view.state.selection.main.empty) return false;
  view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
  event.preventDefault();
  return true;
};

export class Editor {
  #view;
  #tokens = [];
  #base = { latex: "", regions: [] };
  #doubts = new Map(); // from a token to "check" or "doubtful"
  #on;
  #pointed = null;

  // `on.change(text)`; `on.point(indices)`: tokens under the pointer; `on.ask(index, frame)`: what else might it be; `on.history()`.
  constructor(parent, label, on) {
    this.#on = on;
    this.#view = new EditorView({ parent, state: this.#stateOf("", label) });
    this.label = label;
  }

  #stateOf(doc, label) {
    return EditorState.create({ doc, extensions: [
      history({ newGroupDelay: 400 }), links, linksInHistory, shown, drawSelection(), bracketMatching(), EditorView.lineWrapping,
      StreamLanguage.define(stexMath), syntaxHighlighting(COLOURS),
      keymap.of([{ key: "Mod-.", run: () => this.#askAtCursor() }, ...historyKeymap, ...defaultKeymap]),
      EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0", spellcheck: "false", autocapitalize: "off", autocorrect: "off", autocomplete: "off" }),
      EditorView.decorations.compute([links], (state) => this.#doubtMarks(state)),
      EditorView.decorations.compute([links, shown], (state) => this.#shownMarks(state)),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) this.#on.change(this.text);
        if (update.transactions.length) this.#on.history();
      }),
      EditorView.domEventHandlers({
        mousemove: (event) => this.#hover(event), mouseleave: () => this.#point(null), click: (event) => this.#click(event),
        beforeinput: (event, view) => typeOver(event, view),
      }),
    ] });
  }

  // ---- the text and its changes

  get text() { return this.#view.state.doc.toString(); }
  get canUndo() { return undoDepth(this.#view.state) > 0; }
  get canRedo() { return redoDepth(this.#view.state) > 0; }
  get isReading() { return this.text === this.#base.latex; }
  get chosen() { return this.#view.state.field(links).chosen; }
  undo() { undo(this.#view); }
  redo() { redo(this.#view); }
  focus() { this.#view.focus(); }

  // Begins with a reading: its LaTeX, its tokens, and how doubtful these are. What was before cannot be come back to.
  open(latex, tokens, doubts) {
    this.#tokens = tokens;
    this.#doubts = doubts;
    this.#base = { latex, regions: regionsOf(latex, tokens) };
    this.#view.setState(this.#stateOf(latex, this.label));
    this.#view.dispatch({ effects: setLinks.of({ regions: this.#base.regions, chosen: {} }) });
  }

  // Makes the text another one, by changing what differs; tokens elsewhere keep their places.
  replace(text) {
    if (text === this.text) return;
    const changes = this.#view.state.changes(changesOf(this.text, text));
    const { regions, chosen } = this.#view.state.field(links);
    const after = text === this.#base.latex ? { regions: this.#base.regions, chosen: {} } : { regions: follow(regions, changes), chosen };
    this.#view.dispatch({ changes, effects: setLinks.of(after), annotations: isolateHistory.of("full"), userEvent: "input.replace" });
  }

  // Puts another token in the place of one. `write` gives the LaTeX of tokens. Says whether it could: only where the token still stands,
  // and where a formula is left.
  async exchange(index, text, write) {
    const before = this.#view.state;
    const { regions, chosen } = before.field(links);
    const place = regions.findIndex(({ tokens }) => tokens.includes(index));
    if (place < 0) return false;
    const region = regions[place];
    const written = region.tokens.length === 1 ? text : await this.#rewritten(region, { ...chosen, [index]: text }, write);
    if (written === null || this.#view.state !== before) return false;
    const [head, tail] = [before.sliceDoc(Math.max(0, region.from - 40), region.from), before.sliceDoc(region.to, region.to + 1)];
    const lead = /\\[A-Za-z]+$/.test(head) && /^[A-Za-z]/.test(written) ? " " : "";
    const trail = /\\[A-Za-z]+$/.test(written) && /^[A-Za-z]/.test(tail) ? " " : "";
    const changes = before.changes({ from: region.from, to: region.to, insert: lead + written + trail });
    const after = changes.apply(before.doc).toString();
    if (!mistakeIn(before.doc.toString()) && mistakeIn(after)) return false;
    const from = region.from + lead.length;
    const others = follow(regions.filter((_, other) => other !== place), changes);
    this.#view.dispatch({
      changes, annotations: isolateHistory.of("full"), userEvent: "input.exchange",
      effects: setLinks.of({ regions: [...others, { ...region, from, to: from + written.length }], chosen: { ...chosen, [index]: text } }),
    });
    return true;
  }

  // The LaTeX of a region that stands for several tokens, some of them exchanged; null if more than the region would change.
  async #rewritten(region, chosen, write) {
    const { latex, regions } = this.#base;
    const { from, to } = regions.find(({ tokens }) => tokens[0] === region.tokens[0]);
    const texts = this.#tokens.map((token, index) => (region.tokens.includes(index) ? chosen[index] ?? token.text : token.text));
    const fresh = await write(texts).catch(() => null);
    const tail = latex.slice(to).trimStart(); // a word may need a blank behind it where another needs none
    const same = fresh?.startsWith(latex.slice(0, from)) && fresh.endsWith(tail) && fresh.length >= from + tail.length;
    return same ? fresh.slice(from, fresh.length - tail.length).trimEnd() : null;
  }

  // ---- what is shown

  // Lights up what stands for tokens.
  light(indices) { this.#show({ lit: indices }); }

  // Marks where TeX would stumble: { from, to }, or null.
  blame(mistake) { this.#show({ mistake }); }

  #show(change) {
    const now = this.#view.state.field(shown);
    if (Object.entries(change).some(([key, value]) => JSON.stringify(now[key]) !== JSON.stringify(value))) {
      this.#view.dispatch({ effects: setShown.of(change) });
    }
  }

  #doubtMarks(state) {
    const { regions, chosen } = state.field(links);
    const marks = [];
    for (const { from, to, tokens } of regions) {
      const doubts = tokens.filter((index) => !(index in chosen)).map((index) => this.#doubts.get(index));
      const name = doubts.includes("doubtful") ? "doubtful" : doubts.includes("check") ? "check" : null;
      if (name) marks.push(Decoration.mark({ class: `doubt ${name}` }).range(from, to));
    }
    return Decoration.set(marks, true);
  }

  #shownMarks(state) {
    const { lit, mistake } = state.field(shown);
    const marks = lit.length ? state.field(links).regions.filter(({ tokens }) => lit.some((index) => tokens.includes(index)))
      .map(({ from, to }) => Decoration.mark({ class: "lit" }).range(from, to)) : [];
    if (mistake && state.doc.length) { // at the end of the text the last character stands for what is missing
      const from = Math.min(mistake.from, state.doc.length - 1);
      marks.push(Decoration.mark({ class: "mistake" }).range(from, Math.min(state.doc.length, Math.max(mistake.to, from + 1))));
    }
    return Decoration.set(marks, true);
  }

  // ---- what the person does

  #regionAt(position) {
    return position === null ? undefined : this.#view.state.field(links).regions.find(({ from, to }) => from <= position && position < to)
      ?? this.#view.state.field(links).regions.find(({ to }) => to === position);
  }

  #point(region) {
    if (region?.from === this.#pointed?.from && region?.to === this.#pointed?.to) return;
    this.#pointed = region;
    this.#on.point(region?.tokens ?? []);
  }

  #hover(event) {
    const onText = event.target.closest?.(".cm-line");
    this.#point(onText ? this.#regionAt(this.#view.posAtCoords({ x: event.clientX, y: event.clientY })) ?? null : null);
  }

  #click(event) {
    if (!event.target.closest?.(".doubt") || !this.#view.state.selection.main.empty) return;
    const region = this.#regionAt(this.#view.posAtCoords({ x: event.clientX, y: event.clientY }));
    if (region) this.#ask(region);
  }

  #askAtCursor() {
    const region = this.#regionAt(this.#view.state.selection.main.head);
    if (region) this.#ask(region);
    return true;
  }

  #ask(region) {
    const worst = [...region.tokens].sort((a, b) => this.#tokens[b].alternatives.length - this.#tokens[a].alternatives.length)[0];
    this.#on.ask(worst, this.frameOf(worst));
  }

  // Where a token stands on the screen; null if it stands nowhere.
  frameOf(index) {
    const region = this.#view.state.field(links).regions.find(({ tokens }) => tokens.includes(index));
    return region ? this.#view.coordsAtPos(region.from, 1) : null;
  }
}
