// The inner loops of the small NumPy and Pillow that stand in for the real ones in the browser (python/).
// Arrays lie in Python's own memory. A call is the address of 32-bit integers: which kernel, then its arguments.
// Strides in arguments count elements. int64 is kept in doubles, which hold every integer that a picture or a formula needs.

import { BEGIN, BYTES, makeLoops } from "./loops.js";

const BOOL = 0, INT64 = 6; // dtypes, as in python/numpy: bool uint8 int8 int16 uint16 int32 int64 float32 float64
const SHIFTS = [0, 0, 0, 1, 1, 2, 3, 2, 3];
const COPY = 0, TRUNC = 12, TRUTH = 13, ANY = 3; // numbers of operations in loops.js
const isFloat = (dtype) => dtype > INT64;

// Puts axes together that follow one another in all arrays, so that most arrays are one line. Arrays are { start, strides }.
const joined = (shape, arrays) => {
  const sizes = [], strides = arrays.map(() => []);
  shape.forEach((size, axis) => {
    if (size === 1) return;
    const last = sizes.length - 1;
    if (last >= 0 && arrays.every((array, k) => strides[k][last] === size * array.strides[axis])) {
      sizes[last] *= size;
      arrays.forEach((array, k) => { strides[k][last] = array.strides[axis]; });
    } else {
      sizes.push(size);
      arrays.forEach((array, k) => { strides[k].push(array.strides[axis]); });
    }
  });
  return [sizes, strides];
};

// Calls `inner(places, n, steps)` for every line along the last axis: where each of the arrays is there, and its stride.
const lines = (wholeShape, arrays, inner) => {
  const [shape, strides] = joined(wholeShape, arrays);
  const last = shape.length - 1, places = arrays.map(({ start }) => start), steps = strides.map((own) => own[last] ?? 0);
  if (wholeShape.includes(0)) return;
  if (last < 1) { inner(places, shape[0] ?? 1, steps); return; }
  const walk = (axis) => {
    for (let i = 0; i < shape[axis]; i++) {
      if (axis + 1 === last) inner(places, shape[last], steps);
      else walk(axis + 1);
      for (let k = 0; k < places.length; k++) places[k] += strides[k][axis];
    }
    for (let k = 0; k < places.length; k++) places[k] -= shape[axis] * strides[k][axis];
  };
  walk(0);
};

export const makeKernels = (memory) => {
  const loops = makeLoops(memory);
  let buffer = null, V, I; // views of Python's memory by dtype, and the arguments
  const look = () => {
    if (memory.buffer === buffer) return;
    buffer = memory.buffer;
    const [u8, i8, i16, u16, i32, f32, f64] = [Uint8Array, Int8Array, Int16Array, Uint16Array, Int32Array, Float32Array, Float64Array].map((Kind) => new Kind(buffer));
    [V, I] = [[u8, u8, i8, i16, u16, i32, f64, f32, f64], i32];
  };
  let at = 0; // the argument that is read next
  const next = () => I[at++];
  const some = (count) => { const found = Array.from(I.subarray(at, at + count)); at += count; return found; };
  // An array by address, dtype and strides, all in bytes.
  const array = (nd) => {
    const start = next(), dtype = next(), bytes = BYTES[dtype];
    return { start, dtype, strides: some(nd).map((stride) => stride * bytes) };
  };

  const unary = () => {
    const op = next(), nd = next(), shape = some(nd), a = array(nd), o = array(nd), bytes = BYTES[o.dtype];
    const kind = op !== COPY ? op : o.dtype === INT64 && isFloat(a.dtype) ? TRUNC : o.dtype === BOOL && a.dtype !== BOOL ? TRUTH : COPY;
    const same = kind === COPY && a.dtype === o.dtype;
    const loop = loops.unary(kind, a.dtype, o.dtype);
    lines(shape, [a, o], ([x, y], n, [sx, sy]) => {
      if (same && sy === bytes && sx === bytes) V[1].copyWithin(y, x, x + n * bytes);
      else if (!sx && sy === bytes && n > 1) { // the same everywhere
        const first = y >> SHIFTS[o.dtype];
        loop(x, sx, y, sy, 1);
        V[o.dtype].fill(V[o.dtype][first], first + 1, first + n);
      } else loop(x, sx, y, sy, n);
    });
  };

  const binary = () => {
    const op = next(), nd = next(), shape = some(nd), a = array(nd), b = array(nd), o = array(nd);
    const loop = loops.binary(op, a.dtype, b.dtype, o.dtype);
    lines(shape, [a, b, o], ([x, y, z], n, [sx, sy, sz]) => loop(x, sx, y, sy, z, sz, n));
  };

  const where = () => {
    const nd = next(), shape = some(nd), c = array(nd), a = array(nd), b = array(nd), o = array(nd);
    const loop = loops.choose(c.dtype, a.dtype, b.dtype, o.dtype);
    lines(shape, [c, a, b, o], ([w, x, y, z], n, [sw, sx, sy, sz]) => loop(w, sw, x, sx, y, sy, z, sz, n));
  };

  // Tells for each of `n` lines whether any of its `count` truths is: in the order in which they lie, as they may be a whole canvas.
  const anyTrue = (x, y, n, sx, sy, count, step) => {
    const U = V[BOOL];
    if (step === 1) for (let i = 0; i < n; i++) U[y + i * sy] = U.subarray(x + i * sx, x + i * sx + count).includes(1) ? 1 : 0;
    else for (let k = 0; k < count; k++) for (let i = 0, from = x + k * step; i < n; i++) if (U[from + i]) U[y + i] = 1; // a new array is zeros
  };

  // Reduces the last `inner` axes; the first ones stay.
  const reduce = () => {
    const op = next(), nd = next(), shape = some(nd), inner = next(), a = array(nd), o = array(nd - inner), kept = nd - inner;
    const loop = loops.reduce(op, a.dtype), O = V[o.dtype], shift = SHIFTS[o.dtype];
    const [innerShape, [innerStrides]] = joined(shape.slice(kept), [{ strides: a.strides.slice(kept) }]);
    const part = { start: 0, strides: innerStrides }, truths = op === ANY && a.dtype === BOOL && innerShape.length === 1;
    lines(shape.slice(0, kept), [{ ...a, strides: a.strides.slice(0, kept) }, o], ([x, y], n, [sx, sy]) => {
      if (truths && (innerStrides[0] === 1 || (sx === 1 && sy === 1))) { anyTrue(x, y, n, sx, sy, innerShape[0], innerStrides[0]); return; }
      for (let i = 0; i < n; i++) {
        let value = BEGIN[op];
        part.start = x + i * sx;
        if (innerShape.length === 1) value = loop(value, part.start, innerStrides[0], innerShape[0]);
        else lines(innerShape, [part], ([z], count, [sz]) => { value = loop(value, z, sz, count); });
        O[(y + i * sy) >> shift] = value;
      }
    });
  };

  // Where the greatest (0) or least (1) of each line is; the first of equals.
  const argument = () => {
    const op = next(), nd = next(), shape = some(nd), a = array(nd), o = array(nd - 1), sign = op ? -1 : 1;
    const A = V[a.dtype], shift = SHIFTS[a.dtype], size = shape.pop(), step = a.strides.pop() >> shift;
    lines(shape, [a, o], ([x, y], n, [sx, sy]) => {
      for (let i = 0; i < n; i++) {
        const first = (x + i * sx) >> shift;
        let best = 0;
        for (let k = 1; k < size; k++) if (sign * A[first + k * step] > sign * A[first + best * step]) best = k;
        V[INT64][(y + i * sy) >> 3] = best;
      }
    });
  };

  const cumsum = () => {
    const nd = next(), shape = some(nd), a = array(nd), o = array(nd), size = shape.pop();
    const A = V[a.dtype], O = V[o.dtype], from = SHIFTS[a.dtype], to = SHIFTS[o.dtype], sa = a.strides.pop() >> from, so = o.strides.pop() >> to;
    lines(shape, [a, o], ([x, y], n, [sx, sy]) => {
      for (let i = 0; i < n; i++) {
        let sum = 0;
        const first = (x + i * sx) >> from, target = (y + i * sy) >> to;
        for (let k = 0; k < size; k++) { sum += A[first + k * sa]; O[target + k * so] = sum; }
      }
    });
  };

  // Reads (0) or writes (1, least 2, greatest 3) the places that arrays of indices name. Gives false for one that is outside.
  const fancy = () => {
    const mode = next(), nd = next(), shape = some(nd), num = next();
    const indices = Array.from({ length: num }, () => {
      const size = next(), stride = next(), index = array(nd);
      return { size, stride, view: V[index.dtype], shift: SHIFTS[index.dtype], ...index };
    });
    const rest = next(), restShape = some(rest), whole = array(rest), values = array(nd + rest), bytes = BYTES[whole.dtype];
    const kept = { start: 0, strides: whole.strides }, given = { start: 0, strides: values.strides.slice(nd) };
    const [innerShape, [keptStrides, givenStrides]] = joined(restShape, [kept, given]);
    const U = V[1], op = mode === 2 ? 8 : 7;
    const copy = loops.unary(COPY, whole.dtype, whole.dtype), choose = mode > 1 && loops.binary(op, whole.dtype, whole.dtype, whole.dtype);
    const move = (w, v, n, sw, sv) => {
      if (mode > 1) choose(w, sw, v, sv, w, sw, n);
      else if (sw === bytes && sv === bytes) mode ? U.copyWithin(w, v, v + n * bytes) : U.copyWithin(v, w, w + n * bytes);
      else mode ? copy(v, sv, w, sw, n) : copy(w, sw, v, sv, n);
    };
    let inside = !restShape.includes(0) || !shape.includes(0);
    if (restShape.includes(0)) return true;
    lines(shape, [...indices, { start: values.start, strides: values.strides.slice(0, nd) }], (places, n, steps) => {
      for (let i = 0; i < n; i++) {
        let place = whole.start;
        for (let k = 0; k < num; k++) {
          const { view, size, stride, shift } = indices[k];
          let index = view[(places[k] + i * steps[k]) >> shift];
          if (index < 0) index += size;
          if (!(index >= 0 && index < size)) { inside = false; return; }
          place += index * stride * bytes;
        }
        const value = places[num] + i * steps[num];
        if (innerShape.length < 2) move(place, value, innerShape[0] ?? 1, keptStrides[0] ?? bytes, givenStrides[0] ?? bytes);
        else lines(innerShape, [{ start: place, strides: keptStrides }, { start: value, strides: givenStrides }], ([w, v], count, [sw, sv]) => move(w, v, count, sw, sv));
      }
    });
    return inside;
  };

  // ---- on whole arrays without gaps

  const line = () => { const address = next(), dtype = next(), shift = SHIFTS[dtype]; return { view: V[dtype], start: address >> shift, shift }; };
  const part = ({ view, start }, from, count) => view.subarray(start + from, start + from + count);

  const nonzero = () => { // with nowhere to write to, only counts
    const { view, start } = line(), n = next(), out = next() >> 3;
    let found = 0;
    for (let i = 0; i < n; i++) if (view[start + i]) { if (out) V[INT64][out + found] = i; found++; }
    return found;
  };

  const sort = () => { const a = line(), rows = next(), n = next(); for (let row = 0; row < rows; row++) part(a, row * n, n).sort(); };

  const argsort = () => {
    const a = line(), rows = next(), n = next(), out = next() >> 3;
    for (let row = 0; row < rows; row++) {
      const values = part(a, row * n, n), order = Array.from({ length: n }, (_, i) => i).sort((x, y) => values[x] - values[y] || x - y);
      for (let i = 0; i < n; i++) V[INT64][out + row * n + i] = order[i];
    }
  };

  // The places of the `k` first of each row, in order, where `before` says of two values which comes first; of equals the first one.
  const choose = (values, k, at, before) => {
    const O = V[INT64];
    let filled = 0;
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (filled === k && !before(value, values[O[at + k - 1]])) continue;
      let place = filled < k ? filled++ : k - 1;
      for (; place > 0 && before(value, values[O[at + place - 1]]); place--) O[at + place] = O[at + place - 1];
      O[at + place] = i;
    }
  };
  const isLess = (a, b) => a < b, isGreater = (a, b) => a > b;

  const least = () => {
    const a = line(), rows = next(), n = next(), k = next(), out = next() >> 3;
    for (let row = 0; row < rows; row++) choose(part(a, row * n, n), k, out + row * k, isLess);
  };

  // ---- what a search asks for at every step, on rows of floats

  const logSoftmax = () => {
    const from = next() >> 2, rows = next(), n = next(), to = next() >> 2, F = V[7], { fround } = Math;
    for (let row = 0; row < rows; row++) {
      const values = F.subarray(from + row * n, from + (row + 1) * n), out = F.subarray(to + row * n, to + (row + 1) * n);
      let greatest = -Infinity, sum = 0;
      for (let i = 0; i < n; i++) greatest = Math.max(greatest, values[i]);
      for (let i = 0; i < n; i++) { out[i] = values[i] - greatest; sum += fround(Math.exp(out[i])); }
      const log = fround(Math.log(fround(sum)));
      for (let i = 0; i < n; i++) out[i] -= log;
    }
  };

  const greatest = () => { // their values, and their places
    const a = line(), rows = next(), n = next(), k = next(), found = next() >> a.shift, places = next() >> 3;
    for (let row = 0; row < rows; row++) {
      const values = part(a, row * n, n);
      choose(values, k, places + row * k, isGreater);
      for (let i = row * k; i < (row + 1) * k; i++) a.view[found + i] = values[V[INT64][places + i]];
    }
  };

  const searchsorted = () => {
    const a = line(), n = next(), v = line(), m = next(), right = next(), out = next() >> 3;
    for (let i = 0; i < m; i++) {
      const value = v.view[v.start + i];
      let low = 0, high = n;
      while (low < high) {
        const middle = (low + high) >> 1, there = a.view[a.start + middle];
        if (there < value || (right && there === value)) low = middle + 1; else high = middle;
      }
      V[INT64][out + i] = low;
    }
  };

  const bincount = () => {
    const a = line(), n = next(), weights = line(), out = line();
    for (let i = 0; i < n; i++) out.view[out.start + a.view[a.start + i]] += weights.start ? weights.view[weights.start + i] : 1;
  };

  const repeat = () => {
    const a = line(), n = next(), counts = line(), out = line();
    for (let i = 0, o = out.start; i < n; i++) for (let k = counts.view[counts.start + i]; k > 0; k--) out.view[o++] = a.view[a.start + i];
  };

  // Writes the different values in their order over the array itself, and for each what it was the number of.
  const unique = () => {
    const a = line(), n = next(), numbers = next() >> 3, values = part(a, 0, n), order = Array.from(values).sort((x, y) => x - y);
    const number = new Map();
    for (const value of order) if (!number.has(value)) number.set(value, number.size);
    for (let i = 0; i < n; i++) V[INT64][numbers + i] = number.get(values[i]);
    let found = 0;
    for (const value of number.keys()) values[found++] = value;
    return found;
  };

  // ---- pictures of bytes, as Pillow computes them

  const FILTERS = { // reach, and weight at a distance
    2: [1, (x) => Math.max(0, 1 - Math.abs(x))],
    3: [2, (x) => { const d = Math.abs(x); return d < 1 ? (1.5 * d - 2.5) * d * d + 1 : d < 2 ? (((d - 5) * d + 8) * d - 4) * -0.5 : 0; }],
    4: [0.5, (x) => (x > -0.5 && x <= 0.5 ? 1 : 0)],
  };
  const BITS = 22; // of the fractions in which Pillow weighs
  const weigh = (filter, from, to, size, wanted) => {
    const [reach, weight] = FILTERS[filter], scale = (to - from) / wanted, wide = Math.max(scale, 1), support = reach * wide;
    return Array.from({ length: wanted }, (_, place) => {
      const centre = from + (place + 0.5) * scale;
      const first = Math.max(0, Math.trunc(centre - support + 0.5)), count = Math.min(size, Math.trunc(centre + support + 0.5)) - first;
      const weights = Array.from({ length: count }, (_, i) => weight((i + first - centre + 0.5) * (1 / wide)));
      const sum = weights.reduce((a, b) => a + b, 0);
      return { first, weights: Int32Array.from(weights, (one) => { const share = sum ? one / sum : one; return Math.trunc(share * 2 ** BITS + (share < 0 ? -0.5 : 0.5)); }) };
    });
  };
  const weighed = (source, start, stride, { first, weights }) => {
    let sum = 1 << (BITS - 1);
    for (let i = 0; i < weights.length; i++) sum += source[start + (first + i) * stride] * weights[i];
    return Math.min(255, Math.max(0, sum >> BITS));
  };
  const resize = () => {
    const from = next(), width = next(), height = next(), to = next(), newWidth = next(), newHeight = next(), filter = next();
    const [left, top, right, bottom] = V[8].subarray(next() >> 3);
    let source = V[1].slice(from, from + width * height), across = width, down = height;
    const alongRows = () => {
      if (newWidth === width && !left && right === newWidth) return;
      const columns = weigh(filter, left, right, width, newWidth), out = new Uint8Array(newWidth * down);
      for (let y = 0; y < down; y++) for (let x = 0; x < newWidth; x++) out[y * newWidth + x] = weighed(source, y * width, 1, columns[x]);
      [source, across] = [out, newWidth];
    };
    const alongColumns = () => {
      if (newHeight === height && !top && bottom === newHeight) return;
      const rows = weigh(filter, top, bottom, height, newHeight), out = new Uint8Array(across * newHeight);
      for (let y = 0; y < newHeight; y++) for (let x = 0; x < across; x++) out[y * across + x] = weighed(source, x, across, rows[y]);
      [source, down] = [out, newHeight];
    };
    // Pillow 13 takes the columns first where a picture loses more than twice as many rows as columns.
    if (newHeight < height && height - newHeight > 2 * (width - newWidth)) { alongColumns(); alongRows(); } else { alongRows(); alongColumns(); }
    V[1].set(source, to);
  };

  const blurLines = (source, length, count, along, across, radius) => {
    const wide = Math.floor(2 ** 24 / (2 * radius + 1)), far = Math.floor((2 ** 24 - (2 * radius + 1) * wide) / 2), out = new Uint8Array(source.length);
    const clamp = (i) => (i < 0 ? 0 : i >= length ? length - 1 : i);
    for (let row = 0; row < count; row++) {
      const get = (i) => source[row * across + clamp(i) * along];
      let sum = 0;
      for (let i = -radius - 1; i < radius; i++) sum += get(i);
      for (let i = 0; i < length; i++) {
        sum += get(i + radius) - get(i - radius - 1);
        out[row * across + i * along] = Math.floor((sum * wide + (get(i - radius - 1) + get(i + radius + 1)) * far + 2 ** 23) / 2 ** 24);
      }
    }
    return out;
  };
  const boxBlur = () => {
    const from = next(), width = next(), height = next(), radius = next(), to = next();
    const lines = blurLines(V[1].slice(from, from + width * height), width, height, 1, width, radius);
    V[1].set(blurLines(lines, height, width, width, 1, radius), to);
  };

  const convolve = () => { // 3 x 3; the rim stays as it is
    const from = next(), width = next(), height = next(), weights = V[7].subarray(next() >> 2), to = next(), S = V[1];
    S.copyWithin(to, from, from + width * height);
    for (let y = 1; y < height - 1; y++) {
      for (let x = 1; x < width - 1; x++) {
        let sum = 0.5;
        for (let j = 0; j < 3; j++) for (let i = 0; i < 3; i++) sum += S[from + (y + 1 - j) * width + x - 1 + i] * weights[3 * j + i];
        S[to + y * width + x] = Math.min(255, Math.max(0, Math.trunc(sum)));
      }
    }
  };

  const shrink = () => { // by a whole factor, the mean of each square
    const from = next(), width = next(), height = next(), channels = next(), factor = next(), to = next(), S = V[1];
    const newWidth = Math.ceil(width / factor), newHeight = Math.ceil(height / factor);
    for (let y = 0; y < newHeight; y++) {
      const rows = Math.min(factor, height - y * factor);
      for (let x = 0; x < newWidth; x++) {
        const columns = Math.min(factor, width - x * factor), area = rows * columns, share = Math.trunc(Math.fround(2 ** 32 / (256 * area)));
        for (let c = 0; c < channels; c++) {
          let sum = Math.trunc(area / 2);
          for (let j = 0; j < rows; j++) for (let i = 0; i < columns; i++) sum += S[from + ((y * factor + j) * width + x * factor + i) * channels + c];
          S[to + (y * newWidth + x) * channels + c] = Math.floor(sum * share / 2 ** 24);
        }
      }
    }
  };

  // The lines of a PNG, each with the number of its filter before it, become bytes.
  const unfilter = () => {
    const from = next(), rowBytes = next(), rows = next(), pixelBytes = next(), to = next(), S = V[1];
    for (let row = 0; row < rows; row++) {
      const source = from + row * (rowBytes + 1) + 1, out = to + row * rowBytes, filter = S[source - 1];
      if (filter > 4) return false;
      for (let i = 0; i < rowBytes; i++) {
        const left = i < pixelBytes ? 0 : S[out + i - pixelBytes], above = row ? S[out + i - rowBytes] : 0;
        const corner = row && i >= pixelBytes ? S[out + i - rowBytes - pixelBytes] : 0;
        let guess = filter === 1 ? left : filter === 2 ? above : filter === 3 ? (left + above) >> 1 : 0;
        if (filter === 4) {
          const estimate = left + above - corner, a = Math.abs(estimate - left), b = Math.abs(estimate - above), c = Math.abs(estimate - corner);
          guess = a <= b && a <= c ? left : b <= c ? above : corner;
        }
        S[out + i] = S[source + i] + guess;
      }
    }
    return true;
  };

  const ALL = [unary, binary, where, reduce, argument, cumsum, fancy, nonzero, sort, argsort, least, searchsorted, bincount, repeat, unique, resize, boxBlur, convolve, shrink, unfilter, logSoftmax, greatest];
  return (address) => {
    look();
    at = (address >> 2) + 1;
    return ALL[I[address >> 2]]();
  };
};
