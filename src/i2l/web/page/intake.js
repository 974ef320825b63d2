// Ways in for pictures: paste, drop, files and folders, the camera, the screen.

const PICTURE = /\.(png|jpe?g|gif|webp|bmp|tiff?|avif)$/i;
const isPicture = (file) => file.type.startsWith("image/") || PICTURE.test(file.name);

const entriesOf = (folder) => new Promise((resolve, reject) => {
  const reader = folder.createReader(), found = [];
  const more = () => reader.readEntries((some) => { // gives them by the hundred
    found.push(...some);
    if (some.length) more();
    else resolve(found);
  }, reject);
  more();
});

const fileOf = (entry) => new Promise((resolve, reject) => entry.file(resolve, reject));

const walk = async (entry) => {
  if (entry.isFile) return [await fileOf(entry)].filter(isPicture);
  const inside = (await entriesOf(entry)).sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
  return (await Promise.all(inside.map(walk))).flat();
};

// The files of a paste or a drop, those in folders too. Of a folder only pictures; of files given one by one all: the server says what is wrong with one.
export const filesOf = async (transfer) => {
  const plain = [...(transfer?.files ?? [])];
  const entries = [...(transfer?.items ?? [])].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry?.());
  const folders = entries.filter((entry) => entry?.isDirectory);
  if (!folders.length) return plain;
  const loose = plain.filter((file) => !folders.some((folder) => folder.name === file.name && !file.type));
  return [...loose, ...(await Promise.all(folders.map(walk))).flat()];
};

export const hasFiles = (transfer) => [...(transfer?.items ?? [])].some((item) => item.kind === "file") || Boolean(transfer?.files?.length);

// The pictures of a chosen folder, in the order of their names.
export const picturesOf = (files) => [...files].filter(isPicture)
  .sort((a, b) => a.webkitRelativePath.localeCompare(b.webkitRelativePath, undefined, { numeric: true }));

export const canPaste = () => Boolean(navigator.clipboard?.read);

export const pasteImage = async () => {
  for (const item of await navigator.clipboard.read()) {
    const type = item.types.find((name) => name.startsWith("image/"));
    if (type) return item.getType(type);
  }
  return null;
};

export const canCapture = () => Boolean(navigator.mediaDevices?.getDisplayMedia) && !matchMedia("(pointer: coarse)").matches;

// One picture of a screen or window that the person chooses; null if they choose none.
export const captureScreen = async () => {
  let stream;
  try {
    stream = await navigator.mediaDevices.getDisplayMedia({ video: { cursor: "never" }, audio: false });
  } catch (error) {
    if (error.name === "NotAllowedError") return null;
    throw error;
  }
  const video = document.createElement("video");
  try {
    video.srcObject = stream;
    video.muted = true;
    await video.play();
    await new Promise((resolve) => setTimeout(resolve, 250)); // the window that asked is gone by then
    const canvas = new OffscreenCanvas(video.videoWidth, video.videoHeight);
    canvas.getContext("2d").drawImage(video, 0, 0);
    return await canvas.convertToBlob();
  } finally {
    stream.getTracks().forEach((track) => track.stop());
  }
};
