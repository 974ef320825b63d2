// Readings as files: CSV, JSON Lines, or a ZIP with the pictures and a .tex file for each.
import { save } from "./dom.js";
import { zipOf } from "./zip.js";

// A cell that begins like a formula of a spreadsheet is one there: a blank keeps it text.
const cell = (value) => {
  const text = String(value ?? "").replace(/^(?=[=+\-@\t\r])/, " ");
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const csvOf = (entries) => `\ufeff${[["name", "latex", "confidence", "error"],
  ...entries.map(({ name, latex, reading, error }) => [name, latex, reading?.confidence, error])].map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;

const jsonlOf = (entries) => entries.map(({ name, latex, reading, error }) => `${JSON.stringify({ name, latex, ...(error ? { error } : { reading }) })}\n`).join("");

const stem = (name) => name.replace(/\.[^./]*$/, "").replace(/[^\p{L}\p{N}._/-]+/gu, "_").replace(/(^|\/)\.+(?=\/|$)/g, "$1_") || "formula";
const ending = (blob, name) => name.match(/\.\w+$/)?.[0] ?? `.${blob.type.split("/")[1]?.replace("+xml", "") || "png"}`;

// Saves entries, each { name, latex, reading, error, image }, in a format: csv, jsonl or zip.
export const exportAs = async (format, entries, title) => {
  const named = entries.map((entry, index) => ({ ...entry, name: entry.name || `formula-${index + 1}` }));
  if (format === "csv") save(new Blob([csvOf(named)], { type: "text/csv" }), `${title}.csv`);
  if (format === "jsonl") save(new Blob([jsonlOf(named)], { type: "application/jsonl" }), `${title}.jsonl`);
  if (format === "zip") {
    save(await zipOf([
      { name: "readings.csv", content: csvOf(named) }, { name: "readings.jsonl", content: jsonlOf(named) },
      ...named.flatMap(({ name, latex, image }) => [
        ...(image ? [{ name: `pictures/${stem(name)}${ending(image, name)}`, content: image }] : []),
        ...(latex ? [{ name: `latex/${stem(name)}.tex`, content: `${latex}\n` }] : []),
      ]),
    ]), `${title}.zip`);
  }
};
