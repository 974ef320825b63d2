"""What NumPy and Pillow must give, and the small ones of the static site too: run by both, and compared.

Called with nothing that only one of them has. `results()` gives JSON values, a list an expression.
"""

import io
import math

import numpy as np
from PIL import Image, ImageChops, ImageFilter  # noqa: F401 - for what is evaluated

try:  # where it is the site's, by kernels
    from searching import log_softmax, top_k
except ImportError:
    from i2l.inference.decoding import NumpyArrays

    log_softmax, top_k = NumpyArrays().log_softmax, NumpyArrays().top_k


def numbers(count, top, seed=1):
    """Numbers that look random, the same everywhere."""
    found, state = [], seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        found.append(state // 65536 % top)
    return found


A = np.array(numbers(60, 256), np.uint8).reshape(6, 10)
B = np.array(numbers(60, 200, 2), np.int16).reshape(6, 10) - np.int16(100)
F = np.array(numbers(60, 1000, 3), np.float64).reshape(6, 10) / 250 - 2
S = F.astype(np.float32)
I = np.array(numbers(24, 6, 4), np.int64)  # noqa: E741
C = np.array(numbers(48, 9, 5), np.int64).reshape(2, 3, 8)
EMPTY = np.zeros((0, 4), np.int64)

EXPRESSIONS = r"""
log_softmax(S)
log_softmax(S[:, 2:5])
top_k(S, 3)[0]
top_k(S, 3)[1]
top_k(S.T, 6)[1]
top_k(np.where(S > 0, S, -np.inf), 9)[0]
A + B
A - np.uint8(200)
A * np.int32(255) // np.maximum(B, 1)
255 - A
A / 3
B // 7
B % 7
B ** 2
-B
~(A > 128)
(A > 10) & (B < 0) | (F > 1)
(A > 10) ^ (B > 10)
A == 7
S * 2.5
S + F
S + 1
np.abs(B)
np.exp(S)
np.log(F + 3)
np.log1p(F + 3)
np.rint(F * 2)
np.hypot(F, S)
np.clip(B, -20, 30)
B.clip(0, 50)
np.where(A > 100, A, 0)
np.where(F > 0, F, -np.inf)
np.minimum(F, 0.5)
np.maximum(A, B)
np.square(F)
F.sum()
A.sum(axis=0)
A.sum(axis=1, dtype=np.int64)
C.sum(axis=(0, 2))
C.max(axis=(0, 2))
S.max(axis=1, keepdims=True)
B.min()
EMPTY.max(initial=-1)
A.mean()
F.mean(axis=1)
(A > 250).any(axis=0)
(A > 250).any(axis=1)
(A > 250)[:, ::2].any(axis=0)
(A.T > 250).any(axis=1)
(C > 7).any(axis=(0, 2))
(C > 7).any(axis=1)
(A > 300).any()
(EMPTY > 0).any(axis=0)
(A >= 0).all()
A.std()
F.cumsum(1).cumsum(0)
(A > 100).cumsum(0)
np.cumsum(I)
F.argmin()
F.argmax(axis=1)
np.ptp(F, axis=0)
np.median(A, axis=0)
np.median(I)
np.percentile(F, 90)
np.corrcoef(A.ravel(), B.ravel())
np.diff(A.astype(np.int64), axis=1)
np.diff([1.0, 4.0, 2.5])
A[2]
A[1:4, ::2]
A[::-1, -3]
A[:, None, 3:5]
A[..., 1]
A.T[3]
A.T.reshape(-1)
F[I[:5]]
F[I[:5], I[5:10]]
C[:, I[:3] % 3]
C[1, I[:3] % 3, :4]
C[I[:2].reshape(-1, 1) % 2, I[:3] % 3]
F[F > 0]
C[:, C[0, :, 0] > 3]
F[[0, 2, 2]]
F[I > 3] if False else F[np.array([True, False, True, True, False, False])]
np.concatenate([A, B], axis=1)
np.stack([A[0], A[1]], axis=1)
np.stack([A, A], axis=2)
np.pad(A, 2)
np.pad(A, 2, mode="edge")
np.pad(A.astype(np.int8), ((0, 0), (1, 1)))
np.repeat(I, I)
np.moveaxis(C, 2, 0)
C.swapaxes(0, 1)
np.flatnonzero(A > 200)
np.nonzero(A > 200)
np.sort(F, axis=None)
np.sort(A, axis=0)
np.argsort(I, kind="stable")
np.argsort(F, axis=1)
np.sort(np.argpartition(F, 3, axis=1)[:, :4], axis=1)
np.partition(F, 3, axis=1)[:, 3]
np.take_along_axis(F, np.argsort(F, axis=1), axis=1)
np.searchsorted(np.sort(I), I, side="right")
np.searchsorted(np.sort(F, axis=None), 0.25)
np.bincount(I, minlength=10)
np.bincount(I, weights=I * 0.5)
np.unique(I, return_inverse=True)
np.unique(I)
np.setdiff1d(np.arange(10), I)
np.array_equal(A, A.copy())
np.interp(F[0], (-1.0, 0.0, 1.5), (0.0, 0.2, 1.0))
np.linspace(0, 7, 6)
np.triu_indices(4, 1)
np.logaddexp(-3.0, -4.5)
np.isfinite(np.log(F * 0 + 1))
np.full((2, 3), 7)
np.full((3, 4), 2.5, np.float32)
np.full((3, 4), 255, np.uint8)
np.ascontiguousarray(A) is A
np.ascontiguousarray(A[::2, 1:4])
np.argsort(A.T, axis=0, kind="stable")
np.array([[1, 2], [3, 4]]) * 1.5
np.array([True, False])
np.arange(3, 9)
np.count_nonzero(A > 99)
F[0] @ F[1]
np.lib.stride_tricks.sliding_window_view(A, 3, axis=1).max(axis=2)
changed(A, lambda x: x.__setitem__((slice(1, 3), slice(None, None, 2)), 9))
changed(F, lambda x: x.__setitem__(x > 0, -1.0))
changed(A, lambda x: x.__setitem__((slice(None), 3), 9))
changed(A, lambda x: x.__setitem__((2, slice(1, None)), 9))
changed(F, lambda x: x.sort(axis=1))
changed(A, lambda x: x.sort(axis=0))
changed(A, lambda x: x[:, 2:5].sort(axis=1))
changed(F, lambda x: x.__setitem__((I[:4], I[4:8]), F[0, :4]))
changed(F, lambda x: np.minimum(x[1:], x[:-1], out=x[1:]))
changed(I, lambda x: np.minimum.at(x, I[:6], np.array(numbers(6, 6, 9))))
changed(I, lambda x: np.maximum.at(x, I[:6], np.array(numbers(6, 6, 9))))
changed(F, lambda x: x.__iadd__(1))
"""

GREY = np.array(numbers(37 * 53, 256, 6), np.uint8).reshape(37, 53)
SMOOTH = (np.arange(53)[None, :] * 4 + np.arange(37)[:, None]).clip(0, 255).astype(np.uint8)
PICTURES = r"""
Image.fromarray(P).resize((80, 20), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((20, 70), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((50, 10), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((47, 26), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((54, 36), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((160, 120), Image.Resampling.BICUBIC)
Image.fromarray(P).resize((60, 30), Image.Resampling.BILINEAR, box=(0, 0, 51.5, 36.25))
Image.fromarray(P).resize((31, 19), Image.Resampling.BOX)
Image.fromarray(P).resize((200, 150), Image.Resampling.BILINEAR, box=(0, 0, 51.5, 36.25))
Image.fromarray(P).resize((53, 37), Image.Resampling.BICUBIC)
Image.fromarray(P).filter(ImageFilter.BoxBlur(1))
Image.fromarray(P).filter(ImageFilter.BoxBlur(4))
Image.fromarray(P[:3]).filter(ImageFilter.BoxBlur(4))
Image.fromarray(P).filter(ImageFilter.Kernel((3, 3), (1, 2, 1, 2, 4, 2, 1, 2, 1)))
Image.fromarray(P).reduce(2)
Image.fromarray(P).reduce(3)
Image.fromarray(P).reduce(7)
Image.fromarray(np.stack([P, P, 255 - P], axis=2)).reduce(5)
ImageChops.invert(Image.fromarray(P))
Image.fromarray(P).crop((3, 4, 20, 30))
"""


def changed(values, change):
    copy = values.copy()
    change(copy)
    return copy


def plain(value):
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    value = value if isinstance(value, (int, float)) else np.asarray(value).tolist()
    return value


def opened(data):
    """How a file was opened: its mode, its pixels, and as colours with alpha."""
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        wide = image.mode.startswith("I")
        coloured = None if wide else plain(np.asarray(image.convert("RGBA")))
        return [image.mode, list(image.size), plain(np.asarray(image)), coloured]


def results(files):
    """Evaluate everything; `files` are the bytes of PNG files."""
    names = {**globals(), "math": math}
    found = [plain(eval(line, names)) for line in EXPRESSIONS.strip().splitlines()]
    for picture in (GREY, SMOOTH):
        found += [plain(eval(line, {**names, "P": picture})) for line in PICTURES.strip().splitlines()]
    return found + [opened(data) for data in files]
