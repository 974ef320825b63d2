// Fetches and unpacks large files in a thread of its own, while the reader starts with those that are there. They are packed in the folder of
// the site, so that no server needs to do it. Takes names, in the order in which they are wanted; answers { name, content } for each, or { error }.

const NEWLINE = 10;

// A network: the first line says where matrices of floats are, from and to, of which all first bytes lie together, then all second ones...
const joinPlanes = (packed) => {
  const head = packed.indexOf(NEWLINE) + 1, content = packed.slice(head);
  for (const [start, end] of JSON.parse(new TextDecoder().decode(packed.subarray(0, head)))) {
    const count = (end - start) / 4, first = head + start, words = new Uint32Array(count);
    for (let i = 0, at = first; i < count; i++, at++) words[i] = packed[at] | packed[at + count] << 8 | packed[at + 2 * count] << 16 | packed[at + 3 * count] << 24;
    content.set(new Uint8Array(words.buffer), start);
  }
  return content;
};

const unpack = async (name, answer) => {
  if (!answer.ok) throw new Error(`${name} cannot be loaded (${answer.status})`);
  const isCode = name.endsWith(".wasm"), type = isCode ? "application/wasm" : "application/octet-stream";
  const response = new Response(answer.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": type } });
  if (isCode) return WebAssembly.compileStreaming(response);
  const content = new Uint8Array(await response.arrayBuffer());
  return name.endsWith(".onnx") ? joinPlanes(content) : content;
};

addEventListener("message", async ({ data: names }) => {
  try {
    const answers = names.map((name) => fetch(new URL(`${name}.gz`, import.meta.url)));
    for (const [place, name] of names.entries()) {
      const content = await unpack(name, await answers[place]);
      postMessage({ name, content }, content.buffer ? [content.buffer] : []);
    }
  } catch (error) {
    postMessage({ error: String(error.message ?? error) });
  }
});
