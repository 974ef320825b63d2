// Files in one ZIP, stored as they are: pictures are small already.

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit++) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});

const crcOf = (bytes) => {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
};

// Numbers of two and four bytes, as [[value, bytes], ...].
const pack = (fields) => {
  const bytes = new Uint8Array(fields.reduce((sum, [, size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let place = 0;
  for (const [value, size] of fields) {
    if (size === 2) view.setUint16(place, value, true);
    else view.setUint32(place, value, true);
    place += size;
  }
  return bytes;
};

const UTF8 = 0x0800;
const DATE = (1 << 5) | 1; // 1 January 1980: the same files give the same bytes

// Gives a ZIP of files, each { name, content: Blob or text }; of two with one name the second gets a number.
export const zipOf = async (files) => {
  const parts = [], directory = [], names = new Set();
  let offset = 0;
  for (const { name, content } of files) {
    let unique = name;
    for (let number = 2; names.has(unique); number++) unique = name.replace(/(\.[^./]*)?$/, `-${number}$1`);
    names.add(unique);
    const path = new TextEncoder().encode(unique);
    const blob = new Blob([content]);
    const crc = crcOf(new Uint8Array(await blob.arrayBuffer()));
    const common = [[20, 2], [UTF8, 2], [0, 2], [0, 2], [DATE, 2], [crc, 4], [blob.size, 4], [blob.size, 4], [path.length, 2], [0, 2]];
    directory.push(pack([[0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]]), path);
    const head = pack([[0x04034b50, 4], ...common]);
    parts.push(head, path, blob);
    offset += head.length + path.length + blob.size;
  }
  const size = directory.reduce((sum, bytes) => sum + bytes.length, 0);
  const end = pack([[0x06054b50, 4], [0, 2], [0, 2], [names.size, 2], [names.size, 2], [size, 4], [offset, 4], [0, 2]]);
  return new Blob([...parts, ...directory, end], { type: "application/zip" });
};
