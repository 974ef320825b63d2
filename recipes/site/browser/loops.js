// Loops over Python's memory, each compiled to WebAssembly when it is first needed, for one operation on arrays of
// certain kinds. JavaScript's own loops see all kinds of arrays in one place, and are ten times as slow.
// A loop takes for each array its address and the bytes from one element to the next, and then how many there are.

const I32 = 0x7f, F64 = 0x7c, LOCAL_GET = 0x20, LOCAL_SET = 0x21;
const get = (local) => [LOCAL_GET, local], set = (local) => [LOCAL_SET, local];

// By dtype: a load that gives a double, and a store that takes one.
const TO_DOUBLE_SIGNED = 0xb7, TO_DOUBLE = 0xb8, TO_INTEGER = [0xfc, 0x02];
const LOADS = [
  [0x2d, 0, 0, TO_DOUBLE], [0x2d, 0, 0, TO_DOUBLE], [0x2c, 0, 0, TO_DOUBLE_SIGNED], [0x2e, 0, 0, TO_DOUBLE_SIGNED], [0x2f, 0, 0, TO_DOUBLE],
  [0x28, 0, 0, TO_DOUBLE_SIGNED], [0x2b, 0, 0], [0x2a, 0, 0, 0xbb], [0x2b, 0, 0],
];
const BYTE = [...TO_INTEGER, 0x3a, 0, 0], SHORT = [...TO_INTEGER, 0x3b, 0, 0];
const STORES = [BYTE, BYTE, BYTE, SHORT, SHORT, [...TO_INTEGER, 0x36, 0, 0], [0x39, 0, 0], [0xb6, 0x38, 0, 0], [0x39, 0, 0]];
export const BYTES = [1, 1, 1, 2, 2, 4, 8, 4, 8];
const ALIKE = [1, 1, 2, 3, 4, 5, 8, 7, 8]; // by dtype: one that is kept the same way, for which there is a loop already

// Code that leaves one double; the operands are in locals.
const double = (value) => [0x44, ...new Uint8Array(Float64Array.of(value).buffer)];
const fromTruth = (...code) => [...code, TO_DOUBLE];
const bits = (code) => (x, y) => [...get(x), ...TO_INTEGER, ...get(y), ...TO_INTEGER, code, TO_DOUBLE_SIGNED];
const both = (code) => (x, y) => [...get(x), ...get(y), code];
const compared = (code) => (x, y) => fromTruth(...get(x), ...get(y), code);
const of = (...codes) => (x) => [...get(x), ...codes];
const isTrue = (x) => [...get(x), ...double(0), 0x62];
const FLOOR = 0x9c, TRUNC = 0x9d, NEAREST = 0x9e, SUB = 0xa1, MUL = 0xa2, DIV = 0xa3;

// What WebAssembly has no instruction for is called in JavaScript.
const IMPORTS = [Math.exp, Math.log, Math.log1p, Math.pow, Math.hypot, (a, b) => {
  const high = Math.max(a, b);
  return high === -Infinity ? high : high + Math.log1p(Math.exp(-Math.abs(a - b)));
}];
const NUM_TAKEN = [1, 1, 1, 2, 2, 2];
const called = (number) => (...locals) => [...locals.flatMap(get), 0x10, number];

export const UNARY = [
  of(), of(0x9a), (x) => fromTruth(...isTrue(x), 0x45), of(0x99), called(0), called(1), called(2), of(0x9f), (x) => [...get(x), ...get(x), MUL], of(NEAREST),
  (x) => fromTruth(...get(x), ...get(x), SUB, ...double(0), 0x61), // finite: x - x is 0
  (x) => [...get(x), ...double(0), ...get(x), ...get(x), SUB, ...double(0), 0x61, 0x1b], // what is not finite is 0
  of(TRUNC), (x) => fromTruth(...isTrue(x)), of(FLOOR),
];
export const BINARY = [
  both(0xa0), both(SUB), both(MUL), both(DIV), (x, y) => [...get(x), ...get(y), DIV, FLOOR],
  (x, y) => [...get(x), ...get(x), ...get(y), DIV, FLOOR, ...get(y), MUL, SUB], called(3), both(0xa5), both(0xa4), bits(0x71), bits(0x72), bits(0x73),
  compared(0x61), compared(0x62), compared(0x63), compared(0x65), compared(0x64), compared(0x66), called(4), called(5),
];
const CHOOSE = (c, x, y) => [...get(x), ...get(y), ...isTrue(c), 0x1b];
// Of what was found so far and one element more: the sum, the greatest, the least, whether any or all are true.
export const REDUCE = [
  both(0xa0), both(0xa5), both(0xa4), (x, y) => fromTruth(...isTrue(x), ...isTrue(y), 0x72), (x, y) => fromTruth(...isTrue(x), ...isTrue(y), 0x71),
];
export const BEGIN = [0, -Infinity, Infinity, 0, 1];

const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...leb(value >> 7)]);
const section = (id, ...content) => [id, ...leb(content.length), ...content];
const name = (text) => [text.length, ...text].map((one) => (typeof one === "string" ? one.charCodeAt(0) : one));
const type = (taken, given) => [0x60, ...leb(taken.length), ...taken, given.length, ...given];

// Makes a module with one function `f` and Python's memory.
const compile = (memory, taken, given, locals, code) => {
  const body = [...leb(locals.length), ...locals.flatMap((kind) => [1, kind]), ...code, 0x0b];
  const bytes = Uint8Array.from([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, 3, ...type([F64], [F64]), ...type([F64, F64], [F64]), ...type(taken, given)),
    ...section(2, IMPORTS.length + 1, ...IMPORTS.flatMap((_, number) => [...name("m"), ...name(String(number)), 0, NUM_TAKEN[number] - 1]), ...name("m"), ...name("memory"), 2, 0, 0),
    ...section(3, 1, 2),
    ...section(7, 1, ...name("f"), 0, IMPORTS.length),
    ...section(10, 1, ...leb(body.length), ...body),
  ]);
  const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), { m: { memory, ...IMPORTS } });
  return instance.exports.f;
};

const ADD_I32 = 0x6a;
const onward = (address, stride) => [...get(address), ...get(stride), ADD_I32, ...set(address)];
// Repeats code as often as a local says, and counts that down.
const repeated = (count, code) => [0x02, 0x40, 0x03, 0x40, ...get(count), 0x45, 0x0d, 1, ...code, ...get(count), 0x41, 1, 0x6b, ...set(count), 0x0c, 0, 0x0b, 0x0b];

export const makeLoops = (memory) => {
  const made = new Map();
  const remembered = (key, make) => {
    if (!made.has(key)) made.set(key, make());
    return made.get(key);
  };
  // out = operation of the inputs; dtypes of the inputs, then that of what comes out.
  const elementwise = (key, operation, given, dtypes = given.map((dtype) => ALIKE[dtype])) => remembered(`${key},${dtypes}`, () => {
    const inputs = dtypes.length - 1, count = 2 * dtypes.length, first = count + 1;
    const loads = dtypes.slice(0, -1).flatMap((dtype, i) => [...get(2 * i), ...LOADS[dtype], ...set(first + i)]);
    const code = [...loads, ...get(2 * inputs), ...operation(...Array.from({ length: inputs }, (_, i) => first + i)), ...STORES[dtypes[inputs]],
      ...dtypes.flatMap((_, i) => onward(2 * i, 2 * i + 1))];
    return compile(memory, Array(count + 1).fill(I32), [], Array(inputs).fill(F64), repeated(count, code));
  });
  return {
    unary: (op, ...dtypes) => elementwise(`u${op}`, UNARY[op], dtypes),
    binary: (op, ...dtypes) => elementwise(`b${op}`, BINARY[op], dtypes),
    choose: (...dtypes) => elementwise("w", CHOOSE, dtypes),
    // (value so far, address, stride, count) => value
    reduce: (op, given, dtype = ALIKE[given]) => remembered(`r${op},${dtype}`, () => {
      const code = [...get(1), ...LOADS[dtype], ...set(4), ...REDUCE[op](0, 4), ...set(0), ...onward(1, 2)];
      return compile(memory, [F64, I32, I32, I32], [F64], [F64], [...repeated(3, code), ...get(0)]);
    }),
  };
};
