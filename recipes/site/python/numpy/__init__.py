"""As much of NumPy as reading a formula takes, for the browser: arrays here, inner loops in kernels.js.

There is no NumPy for Pyodide among the packages that can be had by name, and the real one would be three times
as large as all else that is loaded for Python. What a call here gives is what NumPy gives, up to the last bits of sums
and of exp and log; what is missing raises AttributeError, and `make site` reads pictures, so it is noticed there.

The elements of an array lie in a bytes object, which nobody else sees, at an address that the kernels are told.
Strides count elements, not bytes. int64 is kept as doubles. A single element is a number of Python.
"""

import array as _array
import builtins
import math
from functools import lru_cache
from itertools import product
from struct import Struct

_HEAD = bytes.__basicsize__ - 1  # of a bytes object, before its elements
_run = None  # of kernels.js; see `attach`
_structs = [Struct(f"{count}i") for count in range(160)]

(_UNARY, _BINARY, _WHERE, _REDUCE, _ARGUMENT, _CUMSUM, _FANCY, _NONZERO, _SORT, _ARGSORT) = range(10)
(_LEAST, _SEARCHSORTED, _BINCOUNT, _REPEAT, _UNIQUE) = range(10, 15)

inf, nan, newaxis = math.inf, math.nan, None


def attach(run):
    """Take the kernels; None takes them away, before Python's memory is saved."""
    global _run
    _run = run


def call_kernel(*arguments):
    """Run a kernel."""
    packed = _structs[len(arguments)].pack(*arguments)
    return _run(id(packed) + _HEAD)


class dtype:
    """A kind of elements; called, it makes a number of this kind, which counts as an array in arithmetic."""

    def __init__(self, code, name, kind, itemsize, letter):
        self.code, self.name, self.kind, self.itemsize, self.letter = code, name, kind, itemsize, letter

    def __call__(self, value=0):
        return (
            asarray(value, self).copy()
            if isinstance(value, ndarray)
            else _from_list([value], self).reshape(())
        )

    def __repr__(self):
        return self.name


bool_ = dtype(0, "bool", "b", 1, "B")
uint8 = dtype(1, "uint8", "u", 1, "B")
int8 = dtype(2, "int8", "i", 1, "b")
int16 = dtype(3, "int16", "i", 2, "h")
uint16 = dtype(4, "uint16", "u", 2, "H")
int32 = dtype(5, "int32", "i", 4, "i")
int64 = dtype(6, "int64", "i", 8, "d")
float32 = dtype(7, "float32", "f", 4, "f")
float64 = dtype(8, "float64", "f", 8, "d")
bool = bool_
_BY_TYPE = {builtins.bool: bool_, int: int64, float: float64}


class floating:
    """Names a kind of elements in annotations."""


class generic(floating):
    """Names any kind of elements in annotations."""


class integer(generic):
    """Names whole elements in annotations."""


def _kind(wanted):
    return _BY_TYPE.get(wanted, wanted)


def _promoted(first, second):
    """Find the kind that holds both."""
    if first is second:
        return first
    low, high = (first, second) if first.code < second.code else (second, first)
    if high is float32 and low.itemsize >= 4:
        return float64
    if high.kind != "f" and low.kind != "b":
        if high is int8:  # with uint8
            return int16
        if high is uint16 and low.kind == "i":
            return int32
    return high


class iinfo:
    """The limits of a whole kind."""

    def __init__(self, kind):
        self.max = 2**53 if kind is int64 else 2 ** (8 * kind.itemsize - (kind.kind == "i")) - 1
        self.min = -self.max - 1 if kind.kind == "i" else 0


@lru_cache(4096)
def _strides_of(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _new(shape, kind):
    """Make an array of zeros."""
    data = builtins.bytes(math.prod(shape) * kind.itemsize + 8)
    return ndarray(data, id(data) + _HEAD, kind, shape, _strides_of(shape))


def _from_list(values, kind):
    if kind.kind != "f":
        values = [float(int(value)) for value in values] if kind is int64 else map(int, values)
        if kind is bool_:
            values = [value != 0 for value in values]
    data = _array.array(kind.letter, values).tobytes() + builtins.bytes(8)
    count = (len(data) - 8) // kind.itemsize
    return ndarray(data, id(data) + _HEAD, kind, (count,), (1,))


class ndarray:
    """An array: where its elements are, of what kind, and how far apart along each axis."""

    __slots__ = ("address", "data", "dtype", "shape", "strides")
    __hash__ = None

    def __init__(self, data, address, kind, shape, strides):
        self.data, self.address, self.dtype, self.shape, self.strides = data, address, kind, shape, strides

    # ---- what it is

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def T(self):
        return self._view(self.shape[::-1], self.strides[::-1])

    @property
    def flat(self):
        return self.ravel()

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        return iter(self.tolist()) if self.ndim == 1 else (self[index] for index in range(len(self)))

    def __repr__(self):
        return f"array({self.tolist()}, dtype={self.dtype})"

    def _view(self, shape, strides, start=0):
        return ndarray(self.data, self.address + start * self.dtype.itemsize, self.dtype, shape, strides)

    @property
    def _whole(self):
        return self.strides == _strides_of(self.shape) or self.size == 0

    def _described(self):
        return (self.address, self.dtype.code, *self.strides)

    def tolist(self):
        whole = self if self._whole else self.copy()
        start = whole.address - id(whole.data) - _HEAD
        part = memoryview(whole.data)[start : start + whole.size * whole.dtype.itemsize]
        values = part.cast(self.dtype.letter).tolist()
        if self.dtype is int64:
            values = list(map(int, values))
        elif self.dtype is bool_:
            values = list(map(builtins.bool, values))
        for size in reversed(self.shape[1:]):
            count = len(values) // size if size else 0
            values = [values[index * size : (index + 1) * size] for index in range(count)]
        return values if self.shape else values[0]

    def tobytes(self):
        whole = self if self._whole else self.copy()
        start = whole.address - id(whole.data) - _HEAD
        return whole.data[start : start + whole.size * whole.dtype.itemsize]

    def item(self):
        return self.reshape(-1).tolist()[0]

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __bool__(self):
        return builtins.bool(self.item())

    __index__ = __int__

    # ---- other forms of it

    def astype(self, kind, copy=True):
        return _unary(0, self, _kind(kind))

    def copy(self):
        return _unary(0, self, self.dtype)

    def reshape(self, *shape):
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        if -1 in shape:
            known = -math.prod(shape)
            shape = tuple(self.size // known if size == -1 else size for size in shape)
        if math.prod(shape) != self.size:
            raise ValueError(f"cannot reshape {self.shape} into {shape}")
        whole = self if self._whole else self.copy()
        return whole._view(shape, _strides_of(shape))

    def ravel(self):
        return self.reshape(-1)

    def swapaxes(self, first, second):
        order = list(range(self.ndim))
        order[first], order[second] = order[second], order[first]
        return self.transpose(order)

    def transpose(self, order):
        return self._view(
            tuple(self.shape[axis] for axis in order), tuple(self.strides[axis] for axis in order)
        )

    # ---- parts of it

    def _basic(self, key):
        """Take a part by numbers, slices and new axes; give shape, strides and start."""
        shape, strides, start, axis = [], [], 0, 0
        for one in key:
            if one is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if type(one) is slice:
                first, last, step = one.indices(size)
                shape.append(len(range(first, last, step)))
                strides.append(stride * step)
                start += first * stride if shape[-1] else 0
            else:
                index = int(one)
                if not -size <= index < size:
                    raise IndexError(f"index {index} is out of bounds for axis of size {size}")
                start += (index + size if index < 0 else index) * stride
        return shape + list(self.shape[axis:]), strides + list(self.strides[axis:]), start

    def _key(self, key):
        """Write a key as a tuple, with a slice for each axis that an ellipsis leaves out."""
        key = key if type(key) is tuple else (key,)
        for place, one in enumerate(key):
            if one is Ellipsis:
                missing = self.ndim - len([other for other in key if other is not None]) + 1
                return key[:place] + (slice(None),) * missing + key[place + 1 :]
        return key

    def _fancy(self, key):
        """Take apart a key with arrays: its indices with their axes, and the view of all other axes."""
        indices, others, axis = [], [], 0
        first = None
        if all(
            type(one) is ndarray and one.dtype is not bool_ for one in key
        ):  # the most usual kind, taken quickly
            num = len(key)
            rest = self._view(self.shape[num:], self.strides[num:])
            return list(enumerate(key)), broadcast_shapes(*(one.shape for one in key)), rest, 0
        for given in key:
            one = given
            if isinstance(given, list):
                one = array(given) if given else array(given, int64)
            if isinstance(one, ndarray) and one.dtype is bool_ and one.ndim:
                for part in nonzero(one):
                    indices.append((axis, part))
                    axis += 1
                first = len(others) if first is None else first
            elif isinstance(one, ndarray) or (not isinstance(one, slice) and one is not None):
                indices.append((axis, one if isinstance(one, ndarray) else int64(one)))
                first = len(others) if first is None else first
                axis += 1
            else:
                others.append((axis, one))
                axis += one is not None
        rest = [(axis, one) for axis, one in others] + [
            (left, slice(None)) for left in range(axis, self.ndim)
        ]
        taken = [axis for axis, _ in indices]
        kept = self._view(
            tuple(size for axis, size in enumerate(self.shape) if axis not in taken),
            tuple(stride for axis, stride in enumerate(self.strides) if axis not in taken),
        )
        shape, strides, start = kept._basic([one for _, one in rest])
        shape_of_indices = broadcast_shapes(*(one.shape for _, one in indices))
        return indices, shape_of_indices, kept._view(tuple(shape), tuple(strides), start), first or 0

    def _is_fancy(self, key):
        for one in key:
            kind = type(one)
            if kind is list or (kind is ndarray and one.shape):
                return True
        return False

    def _move(self, mode, key, values=None):
        """Read or write the places that arrays of indices name; see `fancy` in kernels.js."""
        indices, outer, rest, first = self._fancy(key)
        whole = outer + rest.shape
        # Axes of slices before those of arrays stay before them.
        order = [
            *range(len(outer), len(outer) + first),
            *range(len(outer)),
            *range(len(outer) + first, len(whole)),
        ]
        if mode == 0:
            values = _new(whole, self.dtype)
        elif not first:
            values = broadcast_to(asarray(values), whole)
            values = values if values.dtype is self.dtype else values.astype(self.dtype)
        else:
            wanted = tuple(whole[axis] for axis in order)
            back = [order.index(axis) for axis in range(len(whole))]
            values = broadcast_to(asarray(values), wanted).transpose(back)
            values = values if values.dtype is self.dtype else values.astype(self.dtype)
        described = []
        for axis, index in indices:
            described += [self.shape[axis], self.strides[axis], *broadcast_to(index, outer)._described()]
        inside = call_kernel(
            *(_FANCY, mode, len(outer), *outer, len(indices), *described),
            *(len(rest.shape), *rest.shape, *rest._described(), *values._described()),
        )
        if not inside:
            raise IndexError("an index is out of bounds")
        return values.transpose(order) if first else values

    def __getitem__(self, key):
        key = self._key(key)
        if self._is_fancy(key):
            return self._move(0, key)
        shape, strides, start = self._basic(key)
        part = self._view(tuple(shape), tuple(strides), start)
        return part if shape else part.tolist()

    def __setitem__(self, key, values):
        key = self._key(key)
        if self._is_fancy(key):
            self._move(1, key, values)
            return
        shape, strides, start = self._basic(key)
        _unary(
            0,
            broadcast_to(asarray(values), tuple(shape)),
            out=self._view(tuple(shape), tuple(strides), start),
        )

    # ---- arithmetic

    def __add__(self, other):
        return _binary(0, self, other)

    def __radd__(self, other):
        return _binary(0, other, self)

    def __sub__(self, other):
        return _binary(1, self, other)

    def __rsub__(self, other):
        return _binary(1, other, self)

    def __mul__(self, other):
        return _binary(2, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other):
        return _binary(3, self, other, divides=True)

    def __rtruediv__(self, other):
        return _binary(3, other, self, divides=True)

    def __floordiv__(self, other):
        return _binary(4, self, other)

    def __mod__(self, other):
        return _binary(5, self, other)

    def __pow__(self, other):
        return _binary(6, self, other)

    def __and__(self, other):
        return _binary(9, self, other)

    __rand__ = __and__

    def __or__(self, other):
        return _binary(10, self, other)

    def __xor__(self, other):
        return _binary(11, self, other)

    def __eq__(self, other):
        return _binary(12, self, other, kind=bool_)

    def __ne__(self, other):
        return _binary(13, self, other, kind=bool_)

    def __lt__(self, other):
        return _binary(14, self, other, kind=bool_)

    def __le__(self, other):
        return _binary(15, self, other, kind=bool_)

    def __gt__(self, other):
        return _binary(16, self, other, kind=bool_)

    def __ge__(self, other):
        return _binary(17, self, other, kind=bool_)

    def __matmul__(self, other):
        return (self * other).sum()

    def __iadd__(self, other):
        return _binary(0, self, other, out=self)

    def __isub__(self, other):
        return _binary(1, self, other, out=self)

    def __imul__(self, other):
        return _binary(2, self, other, out=self)

    def __neg__(self):
        return _unary(1, self)

    def __abs__(self):
        return _unary(3, self)

    def __invert__(self):
        return _unary(2, self) if self.dtype is bool_ else -self - 1

    # ---- over its axes

    def _reduce(self, op, axis, kind, keepdims=False, initial=None):
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        axes = [one % self.ndim for one in axes]
        kept = [one for one in range(self.ndim) if one not in axes]
        if op in (1, 2) and initial is None and not math.prod(self.shape[one] for one in axes):
            raise ValueError("zero-size array to reduction operation which has no identity")
        ordered = self.transpose([*kept, *axes])
        out = _new(tuple(self.shape[one] for one in kept), kind)
        call_kernel(
            *(_REDUCE, op, self.ndim, *ordered.shape, len(axes), *ordered._described(), *out._described())
        )
        if initial is not None:
            out = _binary(7 if op == 1 else 8, out, initial) if self.size else full(out.shape, initial, kind)
        if keepdims:
            return out.reshape(tuple(1 if one in axes else size for one, size in enumerate(self.shape)))
        return out if out.shape else out.tolist()

    @property
    def _summed(self):
        return self.dtype if self.dtype.kind == "f" else int64

    def sum(self, axis=None, dtype=None, keepdims=False):
        return self._reduce(0, axis, _kind(dtype) or self._summed, keepdims)

    def max(self, axis=None, initial=None, keepdims=False):
        return self._reduce(1, axis, self.dtype, keepdims, initial)

    def min(self, axis=None, initial=None, keepdims=False):
        return self._reduce(2, axis, self.dtype, keepdims, initial)

    def any(self, axis=None):
        return self._reduce(3, axis, bool_)

    def all(self, axis=None):
        return self._reduce(4, axis, bool_)

    def mean(self, axis=None):
        axes = range(self.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
        count = math.prod(self.shape[one] for one in axes)
        return self._reduce(0, axis, self.dtype if self.dtype.kind == "f" else float64) / count

    def std(self):
        apart = self.astype(float64) - self.mean()
        return math.sqrt((apart * apart).mean())

    def cumsum(self, axis=None):
        whole = self.ravel() if axis is None else self
        axis = 0 if axis is None else axis
        source = moveaxis(whole, axis, -1)
        out = _new(source.shape, self._summed)
        call_kernel(_CUMSUM, out.ndim, *out.shape, *source._described(), *out._described())
        return moveaxis(out, -1, axis)

    def _argument(self, op, axis):
        lines = moveaxis(self, axis, -1) if axis is not None else self.ravel()
        out = _new(lines.shape[:-1], int64)
        call_kernel(_ARGUMENT, op, lines.ndim, *lines.shape, *lines._described(), *out._described())
        return out if out.shape else out.tolist()

    def argmax(self, axis=None):
        return self._argument(0, axis)

    def argmin(self, axis=None):
        return self._argument(1, axis)

    def clip(self, low, high):
        return clip(self, low, high)

    def sort(self, axis=-1):
        if self._whole and axis % self.ndim == self.ndim - 1:
            rows = math.prod(self.shape[:-1])
            call_kernel(_SORT, self.address, self.dtype.code, rows, self.shape[-1])
        else:
            self[...] = sort(self, axis)


# ---- making arrays


def array(values, dtype=None):
    """Make an array of numbers, lists or arrays."""
    found = asarray(values, dtype)
    return found.copy() if found is values else found


def asarray(values, dtype=None):
    """Give an array as it is, or make one."""
    kind = _kind(dtype)
    if not isinstance(values, ndarray):
        values = values._array() if hasattr(values, "_array") else _from_nested(values, kind)
    return values if kind is None or values.dtype is kind else values.astype(kind)


def _from_nested(values, kind):
    if isinstance(values, (int, float)):
        return _from_list([values], kind or _BY_TYPE[type(values)]).reshape(())
    values = list(values)
    if any(isinstance(one, (ndarray, list, tuple)) for one in values):
        return stack([asarray(one, kind) for one in values])
    if kind is None:
        kinds = {type(value) for value in values}
        kind = float64 if float in kinds or not kinds else int64 if int in kinds else bool_
    return _from_list(values, kind)


def ascontiguousarray(values):
    """Give an array without gaps: itself, if it has none."""
    values = asarray(values)
    return values if values._whole else values.copy()


def _shape(shape):
    return (shape,) if isinstance(shape, int) else tuple(map(int, shape))


def zeros(shape, dtype=float64):
    return _new(_shape(shape), _kind(dtype))


empty = zeros


def zeros_like(values):
    return _new(values.shape, values.dtype)


def full(shape, value, dtype=None):
    out = _new(_shape(shape), _kind(dtype) or asarray(value).dtype)
    out[...] = value
    return out


def ones(shape, dtype=float64):
    return full(shape, 1, dtype)


def arange(start, stop=None):
    start, stop = (0, start) if stop is None else (start, stop)
    return _from_list(range(int(start), int(stop)), int64)


def linspace(start, stop, num):
    step = (stop - start) / (num - 1)
    return _from_list([*(start + step * index for index in range(num - 1)), stop], float64)


def frombytes(data, shape, kind):
    """Make an array of elements that lie in bytes."""
    data = data + builtins.bytes(8)
    return ndarray(data, id(data) + _HEAD, kind, shape, _strides_of(shape))


def triu_indices(size, above):
    first = [row for row in range(size) for _ in range(row + above, size)]
    second = [column for row in range(size) for column in range(row + above, size)]
    return _from_list(first, int64), _from_list(second, int64)


# ---- element by element


@lru_cache(4096)
def broadcast_shapes(*shapes):
    """Find the shape that all of these can be repeated to."""
    ndim = builtins.max(map(len, shapes))
    sizes = []
    for places in zip(*((1,) * (ndim - len(shape)) + shape for shape in shapes), strict=True):
        others = {size for size in places if size != 1}
        if len(others) > 1:
            raise ValueError(f"shapes {shapes} do not fit together")
        sizes.append(others.pop() if others else 1)
    return tuple(sizes)


def broadcast_to(values, shape):
    """Repeat an array along axes where it has one element, without copying."""
    if values.shape == shape:
        return values
    added = len(shape) - values.ndim
    if added < 0:  # axes of one element before all others
        return broadcast_to(values.reshape(values.shape[-added:]), shape)
    if any(own not in (1, size) for own, size in zip(values.shape, shape[added:], strict=True)):
        raise ValueError(f"shape {values.shape} cannot be repeated to {shape}")
    strides = [0 if own == 1 else stride for own, stride in zip(values.shape, values.strides, strict=True)]
    return values._view(shape, (0,) * added + tuple(strides))


def _unary(op, values, kind=None, out=None):
    if out is None:
        out = _new(values.shape, kind or values.dtype)
    call_kernel(_UNARY, op, len(out.shape), *out.shape, *values._described(), *out._described())
    return out


def _operands(first, second):
    """Bring two operands to arrays, and find the kind of what comes of them; a number of Python decides least."""
    if isinstance(first, ndarray) and isinstance(second, ndarray):
        return (
            first,
            second,
            first.dtype if first.dtype is second.dtype else _promoted(first.dtype, second.dtype),
        )
    if isinstance(first, ndarray) and isinstance(second, (int, float)):
        kind = _with_number(first.dtype, second)
        return first, _number(second, kind), kind
    if isinstance(second, ndarray) and isinstance(first, (int, float)):
        kind = _with_number(second.dtype, first)
        return _number(first, kind), second, kind
    first, second = asarray(first), asarray(second)
    return first, second, _promoted(first.dtype, second.dtype)


@lru_cache(1024, typed=True)  # nobody writes into it
def _number(value, kind):
    wide = float64 if kind.kind == "f" else int64
    return _from_list([value], wide).reshape(())


def _with_number(kind, number):
    if isinstance(number, float):
        return kind if kind.kind == "f" else float64
    return int64 if kind is bool_ and not isinstance(number, builtins.bool) else kind


def _binary(op, first, second, *, kind=None, divides=False, out=None):
    first, second, found = _operands(first, second)
    if divides and found.kind != "f":
        found = float64
    shape = first.shape if first.shape == second.shape else broadcast_shapes(first.shape, second.shape)
    target = _new(shape, kind or found) if out is None else out
    if out is not None:  # what is written must not be read after that
        first, second = (
            one.copy() if one.data is out.data and one.address != out.address else one
            for one in (first, second)
        )
    call_kernel(
        *(_BINARY, op, len(shape), *shape, *broadcast_to(first, shape)._described()),
        *(*broadcast_to(second, shape)._described(), *target._described()),
    )
    return target


class ufunc:
    """A function of two arrays, with its form that gathers by index."""

    def __init__(self, op, mode=None):
        self._op, self._mode = op, mode

    def __call__(self, first, second, out=None):
        found = _binary(self._op, first, second, out=out)
        return found if found.shape or out is not None else found.tolist()

    def at(self, target, index, values):
        target._move(self._mode, (index,), values)


maximum, minimum = ufunc(7, 3), ufunc(8, 2)


def _of_floats(op):
    def function(values):
        if isinstance(values, (int, float)):
            return _unary(op, asarray(float(values))).tolist()
        values = asarray(values)
        return _unary(op, values if values.dtype.kind == "f" else values.astype(float64))

    return function


exp, log, log1p, sqrt = _of_floats(4), _of_floats(5), _of_floats(6), _of_floats(7)


def hypot(first, second):
    first, second = asarray(first), asarray(second)
    return _or_number(_binary(18, first.astype(float64), second.astype(float64)))


def logaddexp(first, second):
    return _or_number(_binary(19, asarray(float(first)), asarray(float(second))))


def _or_number(values):
    return values if values.shape else values.tolist()


def square(values):
    return _unary(8, asarray(values))


def rint(values):
    return _unary(9, values)


def isfinite(values):
    return _unary(10, values, bool_)


def nan_to_num(values, posinf=0.0, neginf=0.0):
    return _unary(11, values)


def abs(values):
    return _or_number(_unary(3, asarray(values)))


absolute = abs


def clip(values, low, high):
    if isinstance(values, (int, float)):
        return builtins.min(builtins.max(values, low), high)
    values = asarray(values)
    return minimum(maximum(values, low), high)


def where(condition, values, others):
    values, others, kind = _operands(values, others)
    condition = asarray(condition)
    shape = broadcast_shapes(condition.shape, values.shape, others.shape)
    out = _new(shape, kind)
    parts = [broadcast_to(part, shape)._described() for part in (condition, values, others)]
    call_kernel(_WHERE, len(shape), *shape, *(number for part in parts for number in part), *out._described())
    return out


# ---- over axes, as functions


def max(values, axis=None):
    return values.max(axis)


def min(values, axis=None):
    return values.min(axis)


def any(values, axis=None):
    if isinstance(values, ndarray):
        return values.any(axis)
    return builtins.any(values)


def sum(values, axis=None):
    return values.sum(axis) if isinstance(values, ndarray) else builtins.sum(values)


def cumsum(values):
    return values.cumsum()


def ptp(values, axis=None):
    values = asarray(values)
    return values.max(axis) - values.min(axis)


def count_nonzero(values):
    return int(values.astype(bool_).sum())


def median(values, axis=None):
    if axis is None:
        return percentile(values, 50)
    return stack([asarray(percentile(line, 50)) for line in moveaxis(asarray(values), axis, -1)])


def percentile(values, share):
    ordered = sort(asarray(values).ravel()).astype(float64)
    place = (len(ordered) - 1) * (share / 100)
    low = math.floor(place)
    first, second = ordered[low], ordered[builtins.min(low + 1, len(ordered) - 1)]
    rest = place - low
    return second - (second - first) * (1 - rest) if rest >= 0.5 else first + (second - first) * rest


def corrcoef(first, second):
    first, second = (one.astype(float64) - one.mean() for one in (first, second))
    share = (first @ second) / math.sqrt((first @ first) * (second @ second))
    return array([[1.0, share], [share, 1.0]])


def diff(values, axis=-1):
    values = asarray(values)
    line = moveaxis(values, axis, -1)
    return moveaxis(line[..., 1:] - line[..., :-1], -1, axis)


# ---- forms


def moveaxis(values, source, target):
    order = list(range(values.ndim))
    axis = order.pop(source)
    order.insert(target % values.ndim, axis)
    return values.transpose(order)


def concatenate(parts, axis=0):
    parts = [asarray(part) for part in parts]
    kind = parts[0].dtype
    for part in parts[1:]:
        kind = _promoted(kind, part.dtype)
    axis %= parts[0].ndim
    shape = list(parts[0].shape)
    shape[axis] = builtins.sum(part.shape[axis] for part in parts)
    out = _new(tuple(shape), kind)
    start = 0
    for part in parts:
        end = start + part.shape[axis]
        out[(slice(None),) * axis + (slice(start, end),)] = part
        start = end
    return out


def stack(parts, axis=0):
    parts = [asarray(part) for part in parts]
    key = (slice(None),) * axis + (None,)
    return concatenate([part[key] if part.shape else part.reshape((1,)) for part in parts], axis)


def pad(values, width, mode="constant"):
    widths = [(width, width)] * values.ndim if isinstance(width, int) else width
    out = zeros([size + sum(around) for size, around in zip(values.shape, widths, strict=True)], values.dtype)
    inside = tuple(
        slice(before, before + size) for size, (before, _) in zip(values.shape, widths, strict=True)
    )
    if mode == "constant":
        out[inside] = values
        return out
    for places in product(range(3), repeat=values.ndim):  # before, inside and after, along each axis
        target, source = [], []
        for place, part, size in zip(places, inside, values.shape, strict=True):
            target.append((slice(0, part.start), part, slice(part.stop, None))[place])
            source.append((slice(0, 1), slice(None), slice(size - 1, size))[place])
        out[tuple(target)] = values[tuple(source)]
    return out


def repeat(values, counts):
    counts = asarray(counts)
    values = asarray(values)
    out = zeros(int(counts.sum()), values.dtype)
    call_kernel(
        *(_REPEAT, values.address, values.dtype.code, len(values), counts.address, counts.dtype.code),
        *(out.address, out.dtype.code),
    )
    return out


def array_split(values, parts):
    size, larger = divmod(len(values), parts)
    edges = [0]
    for part in range(parts):
        edges.append(edges[-1] + size + (part < larger))
    return [values[edges[part] : edges[part + 1]] for part in range(parts)]


# ---- looking for things


def nonzero(values):
    whole = values if values._whole else values.copy()
    size, kind = whole.size, whole.dtype.code
    found = zeros(call_kernel(_NONZERO, whole.address, kind, size, 0), int64)
    call_kernel(_NONZERO, whole.address, kind, size, found.address)
    places = []
    for size in reversed(values.shape[1:]):
        places.append(found % size)
        found = found // size
    return (found, *reversed(places))


def flatnonzero(values):
    return nonzero(asarray(values).ravel())[0]


def sort(values, axis=-1):
    values = asarray(values)
    if axis is None:
        values, axis = values.ravel(), 0
    out = moveaxis(values, axis, -1).copy()
    rows = math.prod(out.shape[:-1])
    call_kernel(_SORT, out.address, out.dtype.code, rows, out.shape[-1])
    return moveaxis(out, -1, axis)


def argsort(values, axis=-1, kind=None):
    lines = ascontiguousarray(moveaxis(asarray(values), axis, -1))
    out = _new(lines.shape, int64)
    rows = math.prod(lines.shape[:-1])
    call_kernel(_ARGSORT, lines.address, lines.dtype.code, rows, lines.shape[-1], out.address)
    return moveaxis(out, -1, axis)


def partition(values, place, axis=-1):
    return sort(values, axis)


def argpartition(values, place, axis=-1):
    """Give the places of the least of each row, and only these: whoever asks takes no others."""
    if axis % values.ndim != values.ndim - 1:
        raise NotImplementedError("argpartition along the last axis alone")
    lines = values if values._whole else values.copy()
    out = _new((*lines.shape[:-1], place + 1), int64)
    rows = math.prod(lines.shape[:-1])
    call_kernel(_LEAST, lines.address, lines.dtype.code, rows, lines.shape[-1], place + 1, out.address)
    return out


def take_along_axis(values, places, axis):
    if values.ndim != 2 or axis != 1:
        raise NotImplementedError("take_along_axis in rows alone")
    return values[arange(len(values))[:, None], places]


def searchsorted(values, wanted, side="left"):
    values, asked = asarray(values).ravel(), asarray(wanted)
    line = asked.ravel()
    out = _new(line.shape, int64)
    call_kernel(
        *(_SEARCHSORTED, values.address, values.dtype.code, len(values)),
        *(line.address, line.dtype.code, len(line), side == "right", out.address),
    )
    return _or_number(out.reshape(asked.shape))


def bincount(values, weights=None, minlength=0):
    values = asarray(values).ravel()
    longest = builtins.max(int(values.max(initial=-1)) + 1, minlength)
    out = zeros(longest, int64 if weights is None else float64)
    weights = None if weights is None else asarray(weights).ravel()
    call_kernel(
        *(_BINCOUNT, values.address, values.dtype.code, len(values)),
        *((0, 0) if weights is None else (weights.address, weights.dtype.code)),
        *(out.address, out.dtype.code),
    )
    return out


def unique(values, return_inverse=False):
    found = asarray(values).ravel().copy()
    numbers = _new(found.shape, int64)
    count = call_kernel(_UNIQUE, found.address, found.dtype.code, len(found), numbers.address)
    return (found[:count], numbers) if return_inverse else found[:count]


def setdiff1d(values, others):
    left = set(others.tolist())
    return _from_list(sorted({value for value in values.tolist() if value not in left}), values.dtype)


def array_equal(first, second):
    return first.shape == second.shape and builtins.bool((first == second).all())


def interp(values, given, wanted):
    values = asarray(values)
    return _from_list([_between(value, given, wanted) for value in values.ravel().tolist()], float64).reshape(
        values.shape
    )


def _between(value, given, wanted):
    if value >= given[-1]:
        return wanted[-1]
    if value < given[0]:
        return wanted[0]
    place = builtins.max(index for index, one in enumerate(given) if one <= value)
    slope = (wanted[place + 1] - wanted[place]) / (given[place + 1] - given[place])
    return slope * (value - given[place]) + wanted[place]
