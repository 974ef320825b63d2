"""Pages out of files: PDFs, pictures and TIFFs of many pages, opened within limits and made straight.

Every page becomes a picture. A PDF that was born digital also says which fonts its glyphs are of, which the
search for formulas takes into account. Pages are made one by one, so that a book needs no more memory than
its largest page.
"""

import ctypes
import io
import math
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError, require_extra
from i2l.images.open import MAX_FILE_BYTES, MAX_PIXELS, ImageError, NotAnImageError, open_image
from i2l.pages.find import GlyphHints, PageInk, find_ink, symbol_height

DPI: Final = 200.0  # at which the pages of a PDF are drawn
MAX_PDF_BYTES: Final = 2 << 30
MAX_PAGES: Final = 5_000
MAX_PAGE_PIXELS: Final = 25_000_000
MIN_DPI: Final = 60.0  # below it nothing can be read: such a page is refused
_POINTS_PER_INCH: Final = 72.0
_METRES_PER_POINT: Final = 0.0254 / 72
_MIN_GLYPHS, _MAX_GLYPHS = 20, 40_000  # of a page whose fonts are looked at
_MIN_MATH_LETTERS: Final = 1  # in fonts of formulas, for these to be believed

Homography = NDArray[np.floating[Any]]  # 3 x 3, of columns and rows


class PageError(I2LError):
    """A file or a page that cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class PagePicture:
    """A page as a picture, made straight, and how it lies on the picture that was given."""

    image: Image.Image
    size_px: tuple[int, int]  # width and height of the page as it was given, or drawn
    dpi: float | None = None  # of a PDF
    hints: GlyphHints | None = None
    to_given: Homography | None = None  # from the straight picture to the given one; None if it was straight
    given: Image.Image | None = None  # the picture before it was made straight; None if it was straight


class PageFile:
    """A file with pages: a context, since a PDF stays open meanwhile. Pages count from 1."""

    def __init__(self, source: Path | bytes, name: str | None = None) -> None:
        """Open a file.

        Args:
            source: its path, or its content.
            name: how messages call it.

        Raises:
            PageError: if there are no pages in it, or it is beyond the limits.
            MissingDependencyError: for a PDF, if pypdfium2 is not installed.
        """
        self.name = name or (source.name if isinstance(source, Path) else "the file")
        self._source = source
        self._pdf: Any = None
        head = self._head()
        if b"%PDF-" in head:
            self._pdf = self._open_pdf()
            self.num_pages = len(self._pdf)
        else:
            self.num_pages = self._count_frames()
        if self.num_pages < 1:
            self.close()
            raise PageError(f"{self.name} has no pages.")
        if self.num_pages > MAX_PAGES:
            self.close()
            raise PageError(
                f"{self.name} has {self.num_pages:,} pages; the limit is {MAX_PAGES:,}. Split the file first."
            )

    def __enter__(self) -> "PageFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._pdf is not None:
            self._pdf.close()
            self._pdf = None

    @property
    def is_pdf(self) -> bool:
        """Whether the pages come from a PDF."""
        return self._pdf is not None

    def page(self, number: int) -> PagePicture:
        """Draw or open a page, and make it straight.

        Raises:
            PageError: if it cannot be drawn.
        """
        if not 1 <= number <= self.num_pages:
            raise PageError(f"{self.name} has no page {number}; it has {self.num_pages}.")
        if self._pdf is None:
            return straighten(self._frame(number - 1))
        return self._draw(number - 1)

    def _head(self) -> bytes:
        if isinstance(self._source, bytes):
            if not self._source:
                raise PageError(f"{self.name} is empty.")
            return self._source[:1024]
        try:
            status = self._source.stat()
            if not stat.S_ISREG(status.st_mode):
                raise PageError(f"{self._source} is not a file.")
            with self._source.open("rb") as file:
                head = file.read(1024)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PageError(f"Cannot open {self._source}: {reason}.") from error
        if not head:
            raise PageError(f"{self.name} is empty.")
        limit = MAX_PDF_BYTES if b"%PDF-" in head else MAX_FILE_BYTES
        if status.st_size > limit:
            raise PageError(
                f"{self.name} has {status.st_size / 1e6:,.0f} MB; the limit is {limit / 1e6:,.0f} MB. "
                "Split it first."
            )
        return head

    def _open_pdf(self) -> Any:  # noqa: ANN401 - of pdfium
        pdfium = require_extra("pypdfium2", "pages")
        try:
            return pdfium.PdfDocument(self._source)
        except pdfium.PdfiumError as error:
            if "password" in str(error).lower():
                raise PageError(f"{self.name} is encrypted; save it without a password first.") from error
            raise PageError(f"{self.name} is damaged: no PDF reader could open it.") from error

    def _count_frames(self) -> int:
        if isinstance(self._source, bytes):
            with _as_page_error(self.name):
                open_image(self._source)  # says what is wrong with it, if anything
        try:
            with self._opened() as image:
                return int(getattr(image, "n_frames", 1)) if image.format == "TIFF" else 1
        except Exception:  # what is wrong is said when the first page is opened
            return 1

    @contextmanager
    def _opened(self) -> Iterator[Image.Image]:
        source = io.BytesIO(self._source) if isinstance(self._source, bytes) else self._source
        with Image.open(source) as image:
            yield image

    def _frame(self, index: int) -> Image.Image:
        if index == 0:
            with _as_page_error(self.name):
                return open_image(self._source)
        with _as_page_error(self.name):
            try:
                with self._opened() as image:
                    image.seek(index)
                    if image.width * image.height > MAX_PIXELS:
                        raise NotAnImageError(
                            f"page {index + 1} has {image.width:,} x {image.height:,} pixels"
                        )
                    image.load()
                    return image.copy()
            except ImageError:
                raise
            except Exception as error:  # each of Pillow's decoders fails in its own way on a damaged file
                raise NotAnImageError(f"page {index + 1} is damaged ({type(error).__name__})") from error

    def _draw(self, index: int) -> PagePicture:
        pdfium = require_extra("pypdfium2", "pages")
        try:
            page = self._pdf[index]
        except pdfium.PdfiumError as error:
            raise PageError(f"Page {index + 1} of {self.name} is damaged.") from error
        try:
            width, height = page.get_size()
            dpi = self._dpi_for(index, width, height)
            bitmap = page.render(scale=dpi / _POINTS_PER_INCH, grayscale=True, may_draw_forms=False)
            image = Image.fromarray(np.asarray(bitmap.to_numpy()).copy())
            bitmap.close()
            hints = _read_hints(page, image.size)
        except (pdfium.PdfiumError, ValueError, MemoryError) as error:
            raise PageError(f"Page {index + 1} of {self.name} cannot be drawn ({error}).") from error
        finally:
            page.close()
        if hints is None:  # a scan in a PDF may lie askew
            straight = straighten(image)
            return PagePicture(straight.image, image.size, dpi, None, straight.to_given, straight.given)
        return PagePicture(image, image.size, dpi, hints)

    def _dpi_for(self, index: int, width: float, height: float) -> float:
        """Return the resolution to draw a page at.

        Raises:
            PageError: if the page is so large that nothing on it could be read.
        """
        if not (width > 0 and height > 0):
            raise PageError(f"Page {index + 1} of {self.name} has no size.")
        inches = width * height / _POINTS_PER_INCH**2
        dpi = min(DPI, math.sqrt(MAX_PAGE_PIXELS / inches))
        longest = max(width, height)
        if dpi < MIN_DPI or longest / _POINTS_PER_INCH * dpi > 60_000:
            raise PageError(
                f"Page {index + 1} of {self.name} is {width * _METRES_PER_POINT:.1f} x "
                f"{height * _METRES_PER_POINT:.1f} m; cut out the part with the formulas."
            )
        return dpi


@contextmanager
def _as_page_error(name: str) -> Iterator[None]:
    try:
        yield
    except ImageError as error:
        said = str(error)
        raise PageError(said if name in said else f"{name}: {said}") from error


# Fonts that hardly anything but formulas is set in: those of TeX, of MathML, of Word and of web pages.
_MATH_FONTS: Final = re.compile(
    r"CMMI|CMSY|CMEX|CMBSY|CMMIB|MSAM|MSBM|EUFM|EUSM|EURM|EUEX|RSFS|LMMath|lmmi|lmsy|lmex|Math|MathJax|"
    r"KaTeX_(?:Size|AMS|Cali|Frak|Script)|^Symbol|txmi|txsy|txex|pxmi|pxsy|pxex|NewTXMI|NTXM|zpzcm|"
    r"pplri7m|ptmri7m|futmi|fourier-m|esint|wasy|stmary|BBOLD|dsrom|MdSymbol|Euler|mathdes|Kp--M|-M-|anttm",
    re.IGNORECASE,
)
_BOLD_FONTS: Final = re.compile(r"Bold|CMBX|LMRoman\d+-Bold|Black|-Bd", re.IGNORECASE)
_FONT_NAME_BYTES: Final = 128
# Beside a letter of a formula these belong to it too, though they are set in the font of the text.
_SIGNS: Final = frozenset("0123456789()[]{}=+-<>|/!'\u2032\u2212\u00b1\u00d7\u00b7\u2264\u2265")
_PAUSES: Final = frozenset(",;:.")
_FUNCTIONS: Final = re.compile(
    "(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|ln|lim|max|min|sup|inf|exp|det|dim|ker|deg|gcd|Pr|mod|tr|rank"
)
_WORD_GAP: Final = 0.5  # of the height of the type: wider gaps end a formula
_LETTER_GAP: Final = 0.12  # between letters of one word
_NAME_GAP: Final = 0.25  # between a name or letter and what it belongs to
_PAUSE_GAP: Final = 0.26  # after a comma within a formula
_NUMBER: Final = re.compile(r"(?:[A-Z]\.?)?\d{1,3}(?:[.\-]\d{1,3}){0,3}[a-z]?'?")
_NUMBER_GAP: Final = 1.5  # around an equation number
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}


class _Glyph(NamedTuple):
    """A glyph of a PDF: what it says, the size of its type, and where it is on the picture."""

    text: str
    size_px: float
    box: tuple[int, int, int, int]
    mathematical: bool
    bold: bool


def _read_hints(page: Any, size_px: tuple[int, int]) -> GlyphHints | None:  # noqa: ANN401 - of pdfium
    """Read where the glyphs of a page are, and which of them are parts of formulas by their fonts.

    Returns:
        None if the page has no text of its own, as a scan has not, or no letters in fonts of formulas.
    """
    glyphs = _read_glyphs(page, size_px)
    if sum(glyph.mathematical and glyph.text.isalpha() for glyph in glyphs) < _MIN_MATH_LETTERS:
        return None
    boxes = np.array([glyph.box for glyph in glyphs], np.float64).reshape(-1, 4)
    mathematical = np.array([glyph.mathematical for glyph in glyphs])
    return GlyphHints(boxes, mathematical, tuple(_runs(glyphs)), tuple(_numbers(glyphs)))


def _read_glyphs(page: Any, size_px: tuple[int, int]) -> list[_Glyph]:  # noqa: ANN401 - of pdfium
    raw = require_extra("pypdfium2.raw", "pages")
    text = raw.FPDFText_LoadPage(page)
    glyphs: list[_Glyph] = []
    try:
        count = raw.FPDFText_CountChars(text)
        if not _MIN_GLYPHS <= count <= _MAX_GLYPHS:
            return []
        left, right, bottom, top = (ctypes.c_double() for _ in range(4))
        column, row = ctypes.c_int(), ctypes.c_int()
        buffer, flags = ctypes.create_string_buffer(_FONT_NAME_BYTES), ctypes.c_int()
        known: dict[bytes, tuple[bool, bool]] = {}
        scale = size_px[1] / max(raw.FPDF_GetPageHeightF(page), 1.0)

        def on_picture(x: float, y: float) -> tuple[int, int]:
            raw.FPDF_PageToDevice(page, 0, 0, *size_px, 0, x, y, ctypes.byref(column), ctypes.byref(row))
            return column.value, row.value

        for index in range(count):
            if raw.FPDFText_IsGenerated(text, index) == 1:
                continue
            if not raw.FPDFText_GetCharBox(text, index, *map(ctypes.byref, (left, right, bottom, top))):
                continue
            raw.FPDFText_GetFontInfo(text, index, buffer, _FONT_NAME_BYTES, ctypes.byref(flags))
            name = buffer.value
            if name not in known:
                plain = name.decode("utf-8", "replace").rpartition("+")[2]
                known[name] = bool(_MATH_FONTS.search(plain)), bool(_BOLD_FONTS.search(plain))
            x0, y0 = on_picture(left.value, top.value)
            x1, y1 = on_picture(right.value, bottom.value)
            box = min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
            code = raw.FPDFText_GetUnicode(text, index)
            said = chr(code) if 32 < code < 0x110000 else ""
            size = raw.FPDFText_GetFontSize(text, index) * scale
            glyphs.append(_Glyph(said, max(size, 1.0), box, *known[name]))
    finally:
        raw.FPDFText_ClosePage(text)
    return glyphs


def _runs(glyphs: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Find runs of glyphs that are formulas: letters in their fonts, with signs and digits beside them."""
    taken = [glyph.mathematical for glyph in glyphs]
    _take_words(glyphs, taken)
    for order in (range(1, len(glyphs)), range(len(glyphs) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for index in order:
            beside, glyph = index - step, glyphs[index]
            if not taken[index] and taken[beside] and glyph.text in _SIGNS and glyph.text:
                taken[index] = _are_neighbours(glyphs, index, beside, _WORD_GAP)
    for index in range(1, len(glyphs) - 1):  # a comma between two parts of one formula
        if glyphs[index].text in _PAUSES and taken[index - 1] and taken[index + 1] and not taken[index]:
            taken[index] = _are_neighbours(glyphs, index, index + 1, _PAUSE_GAP)
    run: list[_Glyph] = []
    for index, glyph in enumerate(glyphs):
        if run and not (taken[index] and _are_neighbours(glyphs, index - 1, index, _WORD_GAP)):
            yield from _trimmed(run)
            run = []
        if taken[index]:
            run.append(glyph)
    yield from _trimmed(run)


def _numbers(glyphs: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Find what looks like an equation number: a short one in brackets, far from all else in its row."""
    start = 0
    for index, glyph in enumerate(glyphs):
        if index == 0 or not _are_neighbours(glyphs, index - 1, index, _LETTER_GAP * 2):
            start = index
        if glyph.text != ")" or glyphs[start].text != "(":
            continue
        inside = "".join(one.text for one in glyphs[start + 1 : index])
        if not _NUMBER.fullmatch(inside):
            continue
        before = start == 0 or not _are_neighbours(glyphs, start - 1, start, _NUMBER_GAP)
        after = index + 1 == len(glyphs) or not _are_neighbours(glyphs, index, index + 1, _NUMBER_GAP)
        if before and after:
            sides = list(zip(*(one.box for one in glyphs[start : index + 1]), strict=True))
            yield min(sides[0]), min(sides[1]), max(sides[2]), max(sides[3])


def _are_neighbours(glyphs: list[_Glyph], first: int, second: int, most: float) -> bool:
    """Tell whether two glyphs stand beside each other in one line, with at most so wide a gap."""
    a, b = glyphs[first].box, glyphs[second].box
    size = max(glyphs[first].size_px, glyphs[second].size_px)
    gap = max(a[0], b[0]) - min(a[2], b[2])
    rise = max(a[1], b[1]) - min(a[3], b[3])
    return gap <= most * size and rise <= 0.5 * size and abs(a[1] + a[3] - b[1] - b[3]) < 2.2 * size


def _take_words(glyphs: list[_Glyph], taken: list[bool]) -> None:
    """Count as part of formulas what stands in the font of the text, but is no word of it.

    That is a name such as sin right beside a letter of a formula, a single letter beside one, and a single
    bold letter among others that are not bold, as vectors are set.
    """
    start = 0
    while start < len(glyphs):
        end = start
        while end < len(glyphs) and glyphs[end].text.isalpha() and not glyphs[end].mathematical:
            if end > start and not _are_neighbours(glyphs, end - 1, end, _LETTER_GAP):
                break
            end += 1
        if end > start:
            word = "".join(glyph.text for glyph in glyphs[start:end])
            before = start > 0 and taken[start - 1] and _are_neighbours(glyphs, start - 1, start, _NAME_GAP)
            after = end < len(glyphs) and (taken[end] or glyphs[end].text == "(")
            after = after and _are_neighbours(glyphs, end - 1, end, _NAME_GAP)
            single = end - start == 1
            around = [glyph.bold for glyph in (*glyphs[max(0, start - 2) : start], *glyphs[end : end + 2])]
            vector = single and glyphs[start].bold and not any(around)
            if vector or ((before or after) and (single or _FUNCTIONS.fullmatch(word))):
                taken[start:end] = [True] * (end - start)
        start = max(end, start + 1)


def _trimmed(run: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Take brackets without their partners, and a pair around all of it, off a run; give its box."""
    while run:
        open_at: list[int] = []
        alone: list[int] = []
        closes: dict[int, int] = {}
        for index, glyph in enumerate(run):
            if glyph.text in _PAIRS.values():
                open_at.append(index)
            elif glyph.text in _PAIRS:
                if open_at and run[open_at[-1]].text == _PAIRS[glyph.text]:
                    closes[open_at.pop()] = index
                else:
                    alone.append(index)
        alone += open_at
        last = len(run) - 1
        wrapped = closes.get(0) == last and not any(glyph.text in ",=+-" for glyph in run[1:last])
        if 0 in alone or (wrapped and run[0].text == "("):
            run = run[1:]
        elif last in alone or run[-1].text in _PAUSES:
            run = run[:-1]
        else:
            break
    if any(glyph.mathematical or glyph.bold for glyph in run):
        sides = list(zip(*(glyph.box for glyph in run), strict=True))
        yield min(sides[0]), min(sides[1]), max(sides[2]), max(sides[3])


# Making a page straight.
_MAX_ANGLE_DEG: Final = 12.0
_LEAST_ANGLE_DEG: Final = 0.12
_LEAST_GAIN: Final = 1.08  # in how sharply lines stand out, for a turn to be believed
_QUARTER_GAIN: Final = 1.5
_KEYSTONE_DEG: Final = 0.3  # by which lines at the top and at the foot differ, to be worth a transformation
_MIN_LINES_PIECES: Final = 40
_LOOKED_AT_PX: Final = 1600  # the longer side where lines are measured


def straighten(image: Image.Image) -> PagePicture:
    """Turn a page upright and its lines level; one that is straight stays as it is."""
    factor = max(1, round(max(image.size) / _LOOKED_AT_PX))
    small = image.reduce(factor) if factor > 1 and image.mode in ("L", "RGB", "RGBA") else image
    if small is image:
        factor = 1
    ink = find_ink(small)
    if ink is None or len(ink.pieces) < _MIN_LINES_PIECES:
        return PagePicture(image, image.size)
    quarter = _quarter_turn(ink)
    size = np.array(small.size[::-1] if quarter % 2 else small.size, np.float64)
    turn = _quarter_matrix(quarter, small.size)
    upright = _turned_boxes(ink.pieces, turn)
    symbol_px = symbol_height(upright) or ink.symbol_px
    points = _line_points(upright, symbol_px)
    angle, gain = _slope(points, symbol_px, 0.0, _MAX_ANGLE_DEG)
    if gain < _LEAST_GAIN or abs(angle) < _LEAST_ANGLE_DEG:
        angle = 0.0
    level = _rotation(math.radians(angle), size / 2)
    keystone = _keystone(project(np.linalg.inv(level), points), size, symbol_px)
    if not quarter and not angle and keystone is None:
        return PagePicture(image, image.size)
    to_small = turn @ level @ (keystone if keystone is not None else np.eye(3))
    scaling = np.diag([float(factor), float(factor), 1.0])
    to_given: Homography = scaling @ to_small @ np.linalg.inv(scaling)
    to_given /= to_given[2, 2]
    flat = image if image.mode in ("L", "RGB") else image.convert("RGB")
    width, height = (round(side * factor) for side in size)
    paper = tuple(
        int(value) for value in np.median(np.asarray(flat.resize((64, 64))).reshape(64 * 64, -1), axis=0)
    )
    straight = flat.transform(
        (width, height),
        Image.Transform.PERSPECTIVE,
        tuple(to_given.ravel()[:8]),
        Image.Resampling.BICUBIC,
        fillcolor=paper if len(paper) > 1 else paper[0],
    )
    return PagePicture(straight, image.size, to_given=to_given, given=image)


def _line_points(boxes: NDArray[np.float64], symbol_px: float) -> NDArray[np.float64]:
    """Return the feet of letters, which stand on lines: (N, 2)."""
    heights = boxes[:, 3] - boxes[:, 1]
    widths = boxes[:, 2] - boxes[:, 0]
    letters = (heights > 0.6 * symbol_px) & (heights < 1.9 * symbol_px) & (widths < 6 * symbol_px)
    return np.stack([(boxes[letters, 0] + boxes[letters, 2]) / 2, boxes[letters, 3]], axis=1)


def _sharpness(points: NDArray[np.float64], angle_deg: float, symbol_px: float) -> float:
    """Say how sharply lines stand out when looked at along an angle."""
    heights = points[:, 1] - points[:, 0] * math.tan(math.radians(angle_deg))
    counts = np.bincount(((heights - heights.min()) / (symbol_px / 3)).astype(np.int64))
    return float((counts.astype(np.float64) ** 2).sum())


def _slope(
    points: NDArray[np.float64], symbol_px: float, middle_deg: float, reach_deg: float
) -> tuple[float, float]:
    """Return the angle along which lines stand out most, and by how much more than along the middle one."""
    if len(points) < _MIN_LINES_PIECES // 2:
        return middle_deg, 1.0
    best = middle_deg
    step = 0.4
    angles = np.arange(middle_deg - reach_deg, middle_deg + reach_deg + step, step)
    while step > 0.02:
        scores = [_sharpness(points, angle, symbol_px) for angle in angles]
        best = float(angles[int(np.argmax(scores))])
        angles = np.linspace(best - step, best + step, 9)
        step /= 4
    gain = _sharpness(points, best, symbol_px) / max(_sharpness(points, middle_deg, symbol_px), 1.0)
    return best, gain


def _quarter_turn(ink: PageInk) -> int:
    """Return how many quarter turns, clockwise, the page lies away from being upright."""
    boxes = ink.pieces.astype(np.float64)
    swapped = boxes[:, [1, 0, 3, 2]]

    def lines(given: NDArray[np.float64]) -> float:
        symbol_px = symbol_height(given) or ink.symbol_px
        points = _line_points(given, symbol_px)
        if not len(points):
            return 0.0
        angle, _ = _slope(points, symbol_px, 0.0, _MAX_ANGLE_DEG)
        # Sharpness grows with the share of all letters that a row has, and falls with the number of rows.
        return (
            _sharpness(points, angle, symbol_px) / len(points) ** 2 * float(np.ptp(points[:, 1])) / symbol_px
        )

    quarters = (1, 3) if lines(swapped) > _QUARTER_GAIN * lines(boxes) else (0, 2)
    height, width = ink.ink.shape
    shares = []
    for turn in quarters:
        upright = _turned_boxes(ink.pieces, _quarter_matrix(turn, (width, height)))
        shares.append(_ascender_share(upright, symbol_height(upright) or ink.symbol_px))
    # Text on its head has more letters that hang below the line than such as stand above it.
    return quarters[1] if shares[1] > shares[0] + 0.2 else quarters[0]


def _ascender_share(boxes: NDArray[np.float64], symbol_px: float) -> float:
    """Return the share of ascenders among letters that stick out of the height of small ones."""
    heights = boxes[:, 3] - boxes[:, 1]
    small = boxes[np.abs(heights / symbol_px - 1) < 0.12]
    tall = boxes[
        (heights > 1.3 * symbol_px)
        & (heights < 1.75 * symbol_px)
        & (boxes[:, 2] - boxes[:, 0] < 2 * symbol_px)
    ]
    if len(small) < 20 or len(tall) < 20:
        return 0.5
    small = small[np.argsort(small[:, 0])]
    above = below = 0
    for left, top, right, bottom in tall[:400]:
        first, last = np.searchsorted(small[:, 0], [left - 4 * symbol_px, right + 4 * symbol_px])
        near = small[first:last]
        near = near[(near[:, 1] > top - 2) & (near[:, 3] < bottom + 2)]
        if len(near):
            rise, fall = np.median(near[:, 1]) - top, bottom - np.median(near[:, 3])
            above += bool(rise > 0.2 * symbol_px and fall < 0.12 * symbol_px)
            below += bool(fall > 0.2 * symbol_px and rise < 0.12 * symbol_px)
    return above / (above + below) if above + below >= 15 else 0.5


def _keystone(points: NDArray[np.float64], size: NDArray[np.float64], symbol_px: float) -> Homography | None:
    """Return what makes lines level that lean one way at the top and another at the foot; None if none do."""
    height = size[1]
    ends: list[tuple[float, float]] = []
    for low, high in ((0.0, 0.45), (0.55, 1.0)):
        part = points[(points[:, 1] >= low * height) & (points[:, 1] < high * height)]
        if len(part) < 2 * _MIN_LINES_PIECES:
            return None
        angle, _ = _slope(part, symbol_px, 0.0, 3.0)
        ends.append((float(np.median(part[:, 1])), math.tan(math.radians(angle))))
    (upper, first), (lower, last) = ends
    if abs(math.degrees(first - last)) < _KEYSTONE_DEG or lower - upper < 0.2 * height:
        return None
    middle, width = size[0] / 2, size[0]
    level = [(0.0, upper), (width, upper), (width, lower), (0.0, lower)]
    leaning = [
        (0.0, upper - middle * first), (width, upper + middle * first),
        (width, lower + middle * last), (0.0, lower - middle * last),
    ]  # fmt: skip
    return homography(level, leaning)


def homography(given: list[tuple[float, float]], wanted: list[tuple[float, float]]) -> Homography:
    """Return the projection that takes four points to four others."""
    rows, values = [], []
    for (x, y), (u, v) in zip(given, wanted, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
        values += [u, v]
    solved = np.linalg.solve(np.array(rows, np.float64), np.array(values, np.float64))
    return np.append(solved, 1.0).reshape(3, 3)


def _rotation(angle: float, middle: NDArray[np.float64]) -> Homography:
    """Return what takes points of a level page to one that leans by an angle, around its middle."""
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = middle
    return np.array([[cos, -sin, x - cos * x + sin * y], [sin, cos, y - sin * x - cos * y], [0, 0, 1]])


def _quarter_matrix(quarters: int, size: tuple[int, int]) -> Homography:
    """Return what takes points of the upright page to one turned clockwise by quarters, of this size."""
    width, height = size
    return {
        0: np.eye(3),
        1: np.array([[0.0, -1.0, width], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        2: np.array([[-1.0, 0.0, width], [0.0, -1.0, height], [0.0, 0.0, 1.0]]),
        3: np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, height], [0.0, 0.0, 1.0]]),
    }[quarters]


def _turned_boxes(boxes: NDArray[np.int64], turn: Homography) -> NDArray[np.float64]:
    """Return boxes of the given page on the upright one, for whole quarter turns."""
    back = np.linalg.inv(turn)
    first, second = (
        project(back, boxes[:, :2].astype(np.float64)),
        project(back, boxes[:, 2:].astype(np.float64)),
    )
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def project(matrix: Homography, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return where points, (N, 2), lie after a projection."""
    projected = np.concatenate([points, np.ones((len(points), 1))], axis=1) @ matrix.T
    flat: NDArray[np.float64] = projected[:, :2] / projected[:, 2:]
    return flat


def corners_on(matrix: Homography, box: tuple[int, int, int, int]) -> list[tuple[float, float]]:
    """Return where the corners of a box lie after a projection, clockwise from the upper left."""
    left, top, right, bottom = box
    points = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)
    return [(float(x), float(y)) for x, y in project(matrix, points)]
