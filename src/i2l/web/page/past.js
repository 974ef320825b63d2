// What was read before, kept by the browser (IndexedDB) and nowhere else: all of it, until the person forgets it.

const MAX_IMAGE_BYTES = 400_000; // of a kept picture; larger ones are kept smaller

const asked = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

let opened = null;
const database = () => opened ??= new Promise((resolve, reject) => {
  const request = indexedDB.open("i2l", 1);
  request.onupgradeneeded = () => request.result.createObjectStore("readings", { keyPath: "id" }).createIndex("time", "time");
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const store = async (mode) => (await database()).transaction("readings", mode).objectStore("readings");

// Keeps a reading of a picture. `stage` shows it; places in the reading stay those of the picture as it was read.
export const keep = async (stage, reading, { name = "", latex } = {}) => {
  const { naturalWidth: width, naturalHeight: height } = stage.image;
  const all = [0, 0, width, height];
  let image = await stage.cut(all);
  for (let maxSide = 1600; image.size > MAX_IMAGE_BYTES && maxSide > 150; maxSide /= 1.5) {
    image = await stage.cut(all, { maxSide, type: "image/webp", quality: 0.85 });
  }
  return put({ image, width, name, reading, latex });
};

// Keeps a reading with its file as it is.
export const keepFile = (file, reading, { name = "", latex } = {}) => put({ image: file, width: reading.image_width, name, reading, latex });

const put = async ({ image, width, name, reading, latex }) => {
  const entry = { id: reading.request_id, time: Date.now(), name, image, width, reading, latex: latex ?? reading.latex };
  await asked((await store("readwrite")).put(entry));
};

// Changes the LaTeX of a reading that is kept.
export const amend = async (id, latex) => {
  const readings = await store("readwrite");
  const entry = await asked(readings.get(id));
  if (entry) await asked(readings.put({ ...entry, latex }));
};

export const get = async (id) => asked((await store("readonly")).get(id));
export const remove = async (id) => asked((await store("readwrite")).delete(id));
export const clear = async () => asked((await store("readwrite")).clear());
export const count = async () => asked((await store("readonly")).count());

// The newest readings whose LaTeX or name holds a text, at most so many.
export const list = async ({ text = "", most = Infinity } = {}) => {
  const wanted = text.toLowerCase().replace(/\s+/g, "");
  const request = (await store("readonly")).index("time").openCursor(null, "prev");
  const found = [];
  return new Promise((resolve, reject) => {
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor || found.length >= most) { resolve(found); return; }
      const { latex, name } = cursor.value;
      if (`${latex} ${name}`.toLowerCase().replace(/\s+/g, "").includes(wanted)) found.push(cursor.value);
      cursor.continue();
    };
  });
};
