// Which piece of the LaTeX stands for which token, and the smallest change from one text to another.
//
// A person's LaTeX and the canonical tokens are nearly the same sequence: `\operatorname { s i n }` becomes `\sin`, spaces go. So both
// are compared piece by piece; what lies between two pieces that agree stands for the tokens between them.

const PIECE = /\\(?:left|right|middle|[bB]igg?[lrm]?)\s*(?:\\[A-Za-z]+|\\[^]|[^\s\\])|\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+\*?|\\[^]|\s+|[^]/gu;
const MAX_CELLS = 4_000_000; // of the table that compares; beyond it only the two ends are

export const piecesOf = (latex) => [...latex.matchAll(PIECE)].map((found) => ({ text: found[0], from: found.index, to: found.index + found[0].length }));

// Pairs of equal entries of two lists, in order, as many as there can be.
const pairsOf = (first, second) => {
  let start = 0;
  while (start < first.length && start < second.length && first[start] === second[start]) start++;
  let end = 0;
  while (end < Math.min(first.length, second.length) - start && first.at(-1 - end) === second.at(-1 - end)) end++;
  const [rows, columns] = [first.length - start - end, second.length - start - end];
  const pairs = Array.from({ length: start }, (_, index) => [index, index]);
  if (rows * columns && rows * columns < MAX_CELLS) {
    const width = columns + 1;
    const table = new Uint16Array((rows + 1) * width);
    for (let row = rows - 1; row >= 0; row--) {
      for (let column = columns - 1; column >= 0; column--) {
        table[row * width + column] = first[start + row] === second[start + column] ? table[(row + 1) * width + column + 1] + 1
          : Math.max(table[(row + 1) * width + column], table[row * width + column + 1]);
      }
    }
    for (let row = 0, column = 0; row < rows && column < columns;) {
      if (first[start + row] === second[start + column]) pairs.push([start + row++, start + column++]);
      else if (table[(row + 1) * width + column] >= table[row * width + column + 1]) row++;
      else column++;
    }
  }
  for (let index = end; index > 0; index--) pairs.push([first.length - index, second.length - index]);
  return pairs;
};

// Gives regions of the LaTeX, each { from, to, tokens }: the indices of the tokens it stands for.
export const regionsOf = (latex, tokens) => {
  const pieces = piecesOf(latex).filter(({ text }) => text.trim());
  const plain = (text) => text.replace(/\s+/g, "");
  const pairs = [...pairsOf(pieces.map(({ text }) => plain(text)), tokens.map(({ text }) => plain(text))), [pieces.length, tokens.length]];
  const regions = [];
  let [piece, token] = [0, 0];
  for (const [nextPiece, nextToken] of pairs) {
    if (nextPiece > piece && nextToken > token) {
      const indices = Array.from({ length: nextToken - token }, (_, index) => token + index);
      regions.push({ from: pieces[piece].from, to: pieces[nextPiece - 1].to, tokens: indices });
    }
    if (nextPiece < pieces.length) regions.push({ from: pieces[nextPiece].from, to: pieces[nextPiece].to, tokens: [nextToken] });
    [piece, token] = [nextPiece + 1, nextToken + 1];
  }
  return regions;
};

// Gives the changes that make one text of another, each { from, to, insert }: few, and none where they agree.
export const changesOf = (before, after) => {
  const [old, fresh] = [piecesOf(before), piecesOf(after)];
  const pairs = [...pairsOf(old.map(({ text }) => text), fresh.map(({ text }) => text)), [old.length, fresh.length]];
  const place = (pieces, index, length) => pieces[index]?.from ?? length;
  const changes = [];
  let [left, right] = [0, 0];
  for (const [nextLeft, nextRight] of pairs) {
    if (nextLeft > left || nextRight > right) {
      changes.push({
        from: place(old, left, before.length), to: place(old, nextLeft, before.length),
        insert: after.slice(place(fresh, right, after.length), place(fresh, nextRight, after.length)),
      });
    }
    [left, right] = [nextLeft + 1, nextRight + 1];
  }
  return changes;
};
