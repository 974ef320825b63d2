// The last readings, kept by the browser and nowhere else.

const KEY = "i2l-history";
const MOST = 12;
const MAX_IMAGE_BYTES = 150_000;

const toAddress = (blob) => new Promise((resolve) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.readAsDataURL(blob);
});

export const list = () => {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? [];
  } catch {
    return [];
  }
};

const save = (entries) => {
  for (let count = entries.length; count > 0; count--) {
    try {
      localStorage.setItem(KEY, JSON.stringify(entries.slice(0, count)));
      return;
    } catch { // full: the oldest goes
    }
  }
};

export const clear = () => localStorage.removeItem(KEY);

// Keeps a reading with its image, made smaller if it is large; places in the reading stay those of the image read.
export const keep = async (stage, reading) => {
  const { naturalWidth, naturalHeight } = stage.image;
  const all = [0, 0, naturalWidth, naturalHeight];
  let image = await stage.cut(all);
  for (let maxSide = 1200; image.size > MAX_IMAGE_BYTES && maxSide > 150; maxSide /= 1.5) {
    image = await stage.cut(all, { maxSide, type: "image/webp", quality: 0.8 });
  }
  const entry = { id: reading.request_id, image: await toAddress(image), width: naturalWidth, reading };
  save([entry, ...list().filter(({ id }) => id !== entry.id)].slice(0, MOST));
};

// Changes the LaTeX of a reading that is kept.
export const amend = (id, latex) => {
  save(list().map((entry) => (entry.id === id ? { ...entry, latex } : entry)));
};
