// Keeps the whole site in the browser: from the second visit on nothing is asked of a server, but whether this file has changed.
// VERSION and FILES are written by recipes/site.py. The headers that it adds let the reader use several threads.

const VERSION = "@VERSION@";
const FILES = new Set(["@FILES@"]);
const PREFIX = `i2l ${registration.scope} `, CACHE = PREFIX + VERSION;
const HEADERS = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp", "Cross-Origin-Resource-Policy": "same-origin" };

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll([...FILES].map((name) => new Request(name || "./", { cache: "no-cache" })))));
});

addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
    await Promise.all(old.map((name) => caches.delete(name)));
    await clients.claim();
  })());
});

addEventListener("message", ({ data }) => { if (data === "take over") skipWaiting(); });

const withHeaders = async (answer) => {
  const headers = new Headers(answer.headers);
  for (const [name, value] of Object.entries(HEADERS)) headers.set(name, value);
  return new Response(answer.body, { status: answer.status, statusText: answer.statusText, headers });
};

// A picture that was shared with the installed page comes as a form. It is kept until the page takes it.
const takeShared = async (request) => {
  const file = (await request.formData()).get("picture");
  if (file?.size) await (await caches.open(CACHE)).put("shared-picture", new Response(file, { headers: { "Content-Type": file.type, "X-Name": encodeURIComponent(file.name) } }));
  return Response.redirect("./?shared", 303);
};

addEventListener("fetch", (event) => {
  const { request } = event, address = new URL(request.url), name = address.href.slice(registration.scope.length).replace(/[?#].*/, "");
  if (!address.href.startsWith(registration.scope)) return;
  if (request.method === "POST" && name === "share") event.respondWith(takeShared(request));
  else if (request.method === "GET" && FILES.has(name === "index.html" ? "" : name)) {
    event.respondWith((async () => {
      const kept = await (await caches.open(CACHE)).match(name === "index.html" ? "./" : new URL(name || "./", registration.scope).href);
      return withHeaders(kept ?? await fetch(request));
    })());
  }
});
