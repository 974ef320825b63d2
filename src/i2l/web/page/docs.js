// The API for people: what openapi.json says, with a line to type for each call.
import { byId, make } from "./dom.js";

const LINES = {
  "/api/read": ["curl -F file=@formula.png ORIGIN/api/read",
    "curl --data-binary @formula.png -H 'Content-Type: image/png' 'ORIGIN/api/read?n_best=3&formats=mathml'",
    "curl -H 'Content-Type: application/json' -d \"{\\\"src\\\": \\\"$(base64 -w0 formula.png)\\\"}\" ORIGIN/api/read"],
  "/api/read/batch": ["curl -F files=@one.png -F files=@two.png ORIGIN/api/read/batch"],
  "/api/strokes": ["curl -H 'Content-Type: application/json' -d '{\"strokes\": [[[10, 40], [60, 40]], [[35, 15], [35, 65]]]}' ORIGIN/api/strokes",
    "curl -H 'Content-Type: application/inkml+xml' --data-binary @formula.inkml ORIGIN/api/strokes"],
  "/api/latex": ["curl -H 'Content-Type: application/json' -d '{\"tokens\": [\"x\", \"^\", \"{\", \"2\", \"}\"]}' ORIGIN/api/latex"],
  "/api/convert": ["curl -H 'Content-Type: application/json' -d '{\"latex\": \"x^{2}\", \"formats\": [\"mathml\"]}' ORIGIN/api/convert"],
};

const table = (rows) => make("table", {}, make("tbody", {}, ...rows.map((cells) =>
  make("tr", {}, ...cells.map((text) => make("td", { textContent: text }))))));

const part = (title, ...content) => [make("h3", { textContent: title }), ...content];

const defaultOf = ({ default: value }) => (value === undefined || value === null ? "" : JSON.stringify(value));

const exampleOf = (schema, operation) => {
  const reference = operation.responses["200"]?.content?.["application/json"]?.schema?.$ref;
  return reference ? schema.components.schemas[reference.split("/").at(-1)].examples?.[0] : undefined;
};

// JSON with short lists on one line.
const shown = (value) => JSON.stringify(value, null, 1).replace(/\[[\s\d.,]+\]/g, (list) => list.replace(/\s+/g, " "));

const describe = (schema, path, method, operation) => {
  const lines = LINES[path] ?? [`curl ORIGIN${path}`];
  const options = (operation.parameters ?? []).map(({ name, description, schema: kind }) => [name, defaultOf(kind), description ?? ""]);
  const problems = Object.entries(operation.responses).filter(([status]) => status >= "400")
    .map(([status, { description }]) => [status, description]);
  const example = exampleOf(schema, operation);
  return make("section", { className: "operation", id: `${method}${path}`.replaceAll("/", "-") },
    make("h2", {}, make("b", { textContent: method.toUpperCase() }), path),
    make("p", { textContent: operation.description ?? operation.summary }),
    make("pre", { textContent: lines.join("\n").replaceAll("ORIGIN", location.origin) }),
    ...(options.length ? part("Options", table(options)) : []),
    ...(example ? part("Answer", make("pre", { textContent: shown(example) })) : []),
    ...(problems.length ? part("Problems, as application/problem+json", table(problems)) : []));
};

const schema = await (await fetch("/openapi.json")).json();
byId("operations").replaceChildren(...Object.entries(schema.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => describe(schema, path, method, operation)))
  .sort((a, b) => b.id.includes("-api-") - a.id.includes("-api-")));
