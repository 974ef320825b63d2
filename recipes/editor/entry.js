// What the page takes from CodeMirror; see build.sh.
export { Compartment, EditorSelection, EditorState, StateEffect, StateField } from "@codemirror/state";
export { Decoration, drawSelection, EditorView, keymap, placeholder } from "@codemirror/view";
export { defaultKeymap, history, historyKeymap, invertedEffects, isolateHistory, redo, redoDepth, undo, undoDepth } from "@codemirror/commands";
export { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { stexMath } from "@codemirror/legacy-modes/mode/stex";
export { tags } from "@lezer/highlight";
