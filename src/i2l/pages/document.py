"""Pages out of files: PDFs, pictures and TIFFs of many pages, opened within limits.

Every page becomes a picture. A PDF that was born digital also says which fonts its glyphs are of, which the
search for formulas takes into account. Pages are made one by one, so that a book needs no more memory than
its largest page. PDFs are drawn by a process of their own with a limit of time and memory: one that takes
for ever, or ends the process, costs its own page and nothing else.
"""

import atexit
import ctypes
import io
import math
import os
import pickle
import re
import stat
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError, require_extra
from i2l.images.open import MAX_FILE_BYTES, MAX_PIXELS, ImageError, NotAnImageError, open_image
from i2l.pages.gather import GlyphHints

DPI: Final = 200.0  # at which the pages of a PDF are drawn
MAX_PDF_BYTES: Final = 2 << 30
MAX_PAGES: Final = 5_000
MAX_PAGE_PIXELS: Final = 25_000_000
MIN_DPI: Final = 60.0  # below it nothing can be read: such a page is refused
MAX_DRAWING_S: Final = 30.0  # of a page of a PDF
MAX_DRAWING_BYTES: Final = 512 << 20  # of the process that draws
_POINTS_PER_INCH: Final = 72.0
_METRES_PER_POINT: Final = 0.0254 / 72
_MIN_GLYPHS, _MAX_GLYPHS = 20, 40_000  # of a page whose fonts are looked at
_MIN_MATH_LETTERS: Final = 1  # in fonts of formulas, for these to be believed
_IMAGE: Final = 3  # among the objects of a page, as pdfium counts them
_SCAN_SHARE: Final = 0.3  # of a page, that the picture of a scan covers


class PageError(I2LError):
    """A file or a page that cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class PagePicture:
    """A page as a picture."""

    image: Image.Image
    dpi: float | None = None  # of a PDF
    hints: GlyphHints | None = None  # of a PDF that was born digital


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
        self._drawer: _Drawer | None = None
        head = self._head()
        self.is_pdf = b"%PDF-" in head  # else it is a picture
        if self.is_pdf:
            require_extra("pypdfium2", "pages")
            self.num_pages = self._open_pdf()
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
        if self._drawer is not None:
            drawer, self._drawer = self._drawer, None
            drawer.give_back()

    def __del__(self) -> None:
        """Let go of the file, if nobody did."""
        self.close()

    def page(self, number: int) -> PagePicture:
        """Draw or open a page.

        Raises:
            PageError: if it cannot be drawn.
        """
        if not 1 <= number <= self.num_pages:
            raise PageError(f"{self.name} has no page {number}; it has {self.num_pages}.")
        return self._draw(number - 1) if self.is_pdf else PagePicture(self._frame(number - 1))

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

    def _open_pdf(self) -> int:
        """Have a process open the PDF; return how many pages it has."""
        self._drawer = _Drawer.take()
        try:
            num_pages: int = self._drawer.ask("open", self._source, self.name)
        except PageError:
            self.close()
            raise
        except _DrawerLostError as error:
            self.close()
            raise PageError(f"{self.name} {error.after('to open')}.") from error
        return num_pages

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
        if self._drawer is None:  # the last page was the end of it
            self._open_pdf()
        assert self._drawer is not None
        try:
            pixels, dpi, hints = self._drawer.ask("draw", index)
        except _DrawerLostError as error:
            self.close()
            raise PageError(f"Page {index + 1} of {self.name} {error.after('to draw')}.") from error
        return PagePicture(Image.fromarray(pixels), dpi, hints)


class _DrawerLostError(Exception):
    """A process that drew has ended: by itself, or since its time was over."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__()
        self._seconds = seconds  # that it was given, if these were over

    def after(self, doing: str) -> str:
        """Say what happened, as the end of a sentence."""
        if self._seconds is None:
            return f"needs more than {MAX_DRAWING_BYTES >> 20} MiB {doing}, or is damaged"
        return f"takes more than {self._seconds:g} s {doing}; save it as a picture first"


class _Drawer:
    """A process that opens PDFs and draws their pages, one document at a time; one that is idle is kept."""

    _idle: "tuple[int, _Drawer] | None" = None  # and the process that it belongs to
    _keeping = threading.Lock()

    def __init__(self) -> None:
        root = str(Path(__file__).parents[2])
        code = (
            f"import sys; sys.path.insert(0, {root!r}); from i2l.pages import document; document.draw_for()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )

    @classmethod
    def take(cls) -> "_Drawer":
        """Return the idle one, or start one."""
        with cls._keeping:
            idle, cls._idle = cls._idle, None
        if idle is not None and idle[0] == os.getpid() and idle[1]._process.poll() is None:
            return idle[1]
        return cls()

    def give_back(self) -> None:
        """Close the document, and keep the process for the next one."""
        if self._process.poll() is not None:
            return
        try:
            self.ask("close")
        except (PageError, _DrawerLostError):
            return
        with _Drawer._keeping:
            kept, _Drawer._idle = _Drawer._idle, (os.getpid(), self)
        if kept is not None and kept[0] == os.getpid():
            kept[1].end()

    def end(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def ask(self, *request: Any) -> Any:  # noqa: ANN401 - of the kind that was asked for
        """Have the process do something.

        Raises:
            PageError: what it says is wrong.
            _DrawerLostError: if it ended meanwhile, which it does when its time is over.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        limit_s, over = MAX_DRAWING_S, threading.Event()

        def stop() -> None:
            over.set()
            self._process.kill()

        timer = threading.Timer(limit_s, stop)
        try:
            timer.start()
            pickle.dump(request, self._process.stdin)
            self._process.stdin.flush()
            error, answer = pickle.load(self._process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError) as lost:
            with suppress(OSError):
                self.end()
            raise _DrawerLostError(limit_s if over.is_set() else None) from lost
        finally:
            timer.cancel()
        if error is not None:
            raise PageError(error)
        return answer

    @classmethod
    def end_idle(cls) -> None:
        """End the idle one."""
        if cls._idle is not None and cls._idle[0] == os.getpid():
            cls._idle[1].end()


atexit.register(_Drawer.end_idle)


def draw_for() -> None:
    """Open PDFs and draw pages as the process at the other end of the pipes asks, in limited memory."""
    with suppress(ImportError, ValueError, OSError):  # where there are no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_DRAWING_BYTES, MAX_DRAWING_BYTES))
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no answer
    pdf = _Pdf()
    while True:
        try:
            name, *given = pickle.load(requests)
        except EOFError:
            return
        answer: tuple[str | None, Any]
        try:
            answer = None, getattr(pdf, name)(*given)
        except Exception as error:
            answer = str(error) if isinstance(error, I2LError) else f"{pdf.name} is damaged ({error}).", None
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


class _Pdf:
    """A PDF in the process that draws it."""

    def __init__(self) -> None:
        self.name = "the file"
        self._document: Any = None
        self._pdfium = require_extra("pypdfium2", "pages")

    def open(self, source: Path | bytes, name: str) -> int:
        """Open a document; return how many pages it has.

        Raises:
            PageError: if it cannot be opened.
        """
        self.name = name
        try:
            self._document = self._pdfium.PdfDocument(source)
        except self._pdfium.PdfiumError as error:
            if "password" in str(error).lower():
                raise PageError(f"{name} is encrypted; save it without a password first.") from error
            raise PageError(f"{name} is damaged: no PDF reader could open it.") from error
        return len(self._document)

    def close(self) -> None:
        """Close the document."""
        if self._document is not None:
            self._document.close()
            self._document = None

    def draw(self, index: int) -> tuple[NDArray[np.uint8], float, GlyphHints | None]:
        """Draw a page, counted from 0; return its pixels, their resolution, and what its fonts say.

        Raises:
            PageError: if it cannot be drawn.
        """
        pdfium = self._pdfium
        try:
            page = self._document[index]
        except pdfium.PdfiumError as error:
            raise PageError(f"Page {index + 1} of {self.name} is damaged.") from error
        try:
            width, height = page.get_size()
            dpi = self._dpi_for(index, width, height)
            bitmap = page.render(scale=dpi / _POINTS_PER_INCH, grayscale=True, may_draw_forms=False)
            pixels = np.asarray(bitmap.to_numpy()).copy()
            bitmap.close()
            return pixels, dpi, _read_hints(page, pixels.shape[::-1])
        except (pdfium.PdfiumError, ValueError, MemoryError) as error:
            raise PageError(f"Page {index + 1} of {self.name} cannot be drawn ({error}).") from error
        finally:
            page.close()

    def _dpi_for(self, index: int, width: float, height: float) -> float:
        """Return the resolution to draw a page at.

        Raises:
            PageError: if the page is so large that nothing on it could be read.
        """
        if not (width > 0 and height > 0):
            raise PageError(f"Page {index + 1} of {self.name} has no size.")
        dpi = min(DPI, math.sqrt(MAX_PAGE_PIXELS / (width * height)) * _POINTS_PER_INCH)
        if dpi < MIN_DPI or max(width, height) / _POINTS_PER_INCH * dpi > 60_000:
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
    r"CMMI|CMSY|CMEX|CMBRMI|CMBRSY|CMBSY|CMMIB|MSAM|MSBM|EUFM|EUSM|EURM|EUEX|RSFS|LMMath|lmmi|lmsy|lmex|Math|MathJax|"
    r"KaTeX_(?:Size|AMS|Cali|Frak|Script)|^Symbol|txmi|txsy|txex|pxmi|pxsy|pxex|NewTXMI|NTXM|zpzcm|"
    r"pplri7m|ptmri7m|futmi|fourier-m|esint|wasy|stmary|BBOLD|dsrom|MdSymbol|Euler|mathdes|Kp--M|-M-|anttm",
    re.IGNORECASE,
)
_LEANING_FONTS: Final = re.compile(r"Ital|Obliq|Slant|CMTI|CMSL|SL\d|-It\b", re.IGNORECASE)
_BOLD_FONTS: Final = re.compile(r"Bold|CMBX|CMB\d|CMSSBX|Medi(?:um)?\b|Black|-Bd", re.IGNORECASE)
_LEANING_FLAG: Final = 1 << 6  # of a font in a PDF
_FONT_NAME_BYTES: Final = 128
# Beside a letter of a formula these belong to it too, though they are set in the font of the text.
_SIGNS: Final = frozenset("0123456789()[]{}=+-<>|/!'\u2032\u00b7\u25e6")
_PAUSES: Final = frozenset(",;:.")
_ACCENTS: Final = frozenset("\u00af\u02c6\u02c7\u02c9\u02d8\u02d9\u02da\u02dc\u00a8\u00b4\u20d7^~")
_FUNCTIONS: Final = re.compile(
    "(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|ln|lim|max|min|sup|inf|exp|det|dim|ker|deg|gcd|Pr|mod|[Tt]r|rank|Re|Im|im|id|arg|sgn|"
    "ord|span|coker|[Hh]om|Aut|End|Gal|Spec|Stab|Res|diag|curl|div|grad|vol|supp|lcm|char|erf"
)
_SHORT_WORDS: Final = re.compile(
    "a[lnst]?|be|by|do|e[gt]|go|he|i[efnst]|m[ey]|no|o[fnr]|so|to|u[ps]|we|[AIO]|[AIO][fnst]|We"
)
_NO_LETTERS: Final = re.compile(r"i\.e|e\.g|[\u2019'][st]")
_WORD_GAP: Final = 0.75  # of the height of the type: wider gaps end a formula
_STACKED_GAP, _STACKED_RISE = 0.4, 0.3  # to what stands beside, over or under a formula
_BESIDE_GAP: Final = 0.4  # between a formula and a digit or a bracket that goes with it
_LETTER_GAP: Final = 0.18  # between letters of one word
_SIGN_GAP: Final = 1.1  # on either side of a sign, which a formula neither begins nor ends with
_SCRIPT_SIZE: Final = 0.85  # of the type beside it, at most
_TOUCHING_GAP: Final = 0.15  # between a name and its bracket
_NAME_GAP: Final = 0.25  # between a letter and what it belongs to
_FUNCTION_GAP: Final = 0.32  # between the name of a function and what it belongs to
_PAUSE_GAP: Final = 0.4  # after a comma within a formula
_COLON_GAP: Final = 0.9  # after a colon, as in f: X -> Y
_MAX_PAUSES: Final = 12  # glyphs between two parts of one formula
_BULLETS: Final = frozenset("\u2022\u2023\u25a0\u25a1\u25aa\u25b6\u25b7\u25b8\u25cb\u25e6\u2013")
_NUMBER: Final = re.compile(r"(?:[A-Z]\.?)?\d{1,3}(?:[.\-]\d{1,3}){0,3}[a-z]?'?")
_NUMBER_GAP: Final = 1.5  # around an equation number
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_BRACKETS: Final = frozenset("()[]{}")


class _Glyph(NamedTuple):
    """A glyph of a PDF: what it says, the size of its type, and where it is on the picture."""

    text: str
    size_px: float
    box: tuple[int, int, int, int]
    mathematical: bool
    bold: bool
    leaning: bool = False

    @property
    def letter(self) -> bool:
        """Whether it is a letter; an accent counts as one in Unicode, but not here."""
        return self.text.isalpha() and self.text not in _ACCENTS

    @property
    def sign(self) -> bool:
        """Whether it is a sign between two terms, such as = or +."""
        return self.text == "-" or (self.text != "|" and unicodedata.category(self.text or " ") == "Sm")


def _read_hints(page: Any, size_px: tuple[int, int]) -> GlyphHints | None:  # noqa: ANN401 - of pdfium
    """Read where the glyphs of a page are, and which of them are parts of formulas by their fonts.

    Returns:
        None if the page has no text of its own, or may be a scan with words behind it.
    """
    glyphs = _with_leaning_letters(_read_glyphs(page, size_px))
    letters = sum(glyph.mathematical and glyph.text.isalpha() for glyph in glyphs)
    if not glyphs or (letters < _MIN_MATH_LETTERS and _is_scan(page)):
        return None
    boxes = np.array([glyph.box for glyph in glyphs], np.float64).reshape(-1, 4)
    mathematical = np.array([glyph.mathematical for glyph in glyphs])
    return GlyphHints(boxes, mathematical, tuple(_runs(glyphs)), tuple(_numbers(glyphs)))


def _is_scan(page: Any) -> bool:  # noqa: ANN401 - of pdfium
    """Tell whether a picture covers much of a page; the text that a search finds may then be a machine's."""
    width, height = page.get_size()
    pictures = [item for item in page.get_objects(max_depth=2) if item.type == _IMAGE]
    boxes = [item.get_bounds() if hasattr(item, "get_bounds") else item.get_pos() for item in pictures]
    return any((box[2] - box[0]) * (box[3] - box[1]) > _SCAN_SHARE * width * height for box in boxes)


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
        known: dict[bytes, tuple[bool, bool, bool]] = {}
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
                mathematical, bold, leaning = (
                    bool(fonts.search(plain)) for fonts in (_MATH_FONTS, _BOLD_FONTS, _LEANING_FONTS)
                )
                leaning = leaning or bool(flags.value & _LEANING_FLAG)
                known[name] = mathematical, bold, leaning and not mathematical
            x0, y0 = on_picture(left.value, top.value)
            x1, y1 = on_picture(right.value, bottom.value)
            box = min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)
            code = raw.FPDFText_GetUnicode(text, index)
            said = chr(code) if 32 < code < 0x110000 else ""
            if 0xD800 <= code < 0xF900:  # half of a letter for formulas, or one that the font has no name for
                said = "x"
            size = raw.FPDFText_GetFontSize(text, index) * scale
            glyph = _Glyph(said, max(size, 1.0), box, *known[name])
            glyphs.append(glyph._replace(mathematical=True) if _is_sign_of_formulas(said) else glyph)
    finally:
        raw.FPDFText_ClosePage(text)
    return glyphs


def _is_sign_of_formulas(said: str) -> bool:
    """Tell what stands in formulas only, whatever its font is: a Greek letter, or a sign that no word has."""
    return "\u0391" <= said <= "\u03f5" or (said > "\x7f" and unicodedata.category(said) == "Sm")


def _with_leaning_letters(glyphs: list[_Glyph]) -> list[_Glyph]:
    """Count italic letters that stand alone as those of formulas, where these have no italics of their own.

    So it is with Times, Utopia and others, whose italics serve for words and for formulas. Letters of an
    italic phrase are told by their neighbours: there only those that are no words count.
    """
    words = _words(glyphs, [glyph.leaning for glyph in glyphs])
    lengths = {start: end - start for start, end in words} | {end - 1: end - start for start, end in words}
    chosen: list[int] = []
    for start, end in words:
        sizes = [glyph.size_px for glyph in glyphs[start : end + 1]]  # a script may follow that is no letter
        large = sum(size >= _SCRIPT_SIZE * max(sizes) for size in sizes[: end - start])
        in_phrase = lengths.get(start - 1, 0) > 2 or lengths.get(end, 0) > 2
        word = "".join(glyph.text for glyph in glyphs[start:end])
        scripts = large <= 2 and min(sizes) < _SCRIPT_SIZE * sizes[0]
        alone = len(word) == 1 and not in_phrase
        around = "".join(glyph.text for glyph in glyphs[max(0, start - 2) : end + 2])
        if scripts or alone or (not _SHORT_WORDS.fullmatch(word) and len(word) <= (1 if in_phrase else 2)):
            chosen += range(start, end) if not _NO_LETTERS.search(around) else ()
    own = sum(glyph.mathematical and "a" <= glyph.text <= "z" for glyph in glyphs)
    if own <= sum("a" <= glyphs[index].text <= "z" for index in chosen):
        for index in chosen:
            glyphs[index] = glyphs[index]._replace(mathematical=True)
    return glyphs


def _runs(glyphs: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Find runs of glyphs that are formulas: letters in their fonts, with signs and digits beside them."""
    taken = [glyph.mathematical for glyph in glyphs]
    _take_words(glyphs, taken)
    scripts: set[int] = set()  # in the font of the text
    for order in (range(1, len(glyphs)), range(len(glyphs) - 2, -1, -1)):
        step = 1 if order.step > 0 else -1
        for index in order:
            beside, glyph = index - step, glyphs[index]
            if taken[index] or not taken[beside]:
                continue
            if glyph.text in _ACCENTS:
                taken[index] = _are_neighbours(glyphs, index, beside, 0.0)
            elif glyph.text and glyph.text in _SIGNS:
                most = _gap(glyphs, index, beside, _BESIDE_GAP)
                taken[index] = _are_neighbours(glyphs, index, beside, most)
            elif step > 0 and (
                glyph.size_px < _SCRIPT_SIZE * glyphs[beside].size_px
                or (beside in scripts and glyph.size_px == glyphs[beside].size_px)
            ):
                taken[index] = _are_neighbours(glyphs, index, beside, _LETTER_GAP)
                scripts.add(index)
    _take_pauses(glyphs, taken)
    run: list[_Glyph] = []
    for index, glyph in enumerate(glyphs):
        if run and not (taken[index] and _goes_on(run, glyphs, index)):
            yield from _trimmed(run)
            run = []
        if taken[index]:
            run.append(glyph)
    yield from _trimmed(run)


def _goes_on(run: list[_Glyph], glyphs: list[_Glyph], index: int) -> bool:
    """Tell whether a glyph stands beside the last one of a formula, or over, under or beside all of it."""
    (left, top, right, bottom), box = _hull(run), glyphs[index].box
    size = max(glyph.size_px for glyph in run)
    gap, rise = max(left, box[0]) - min(right, box[2]), max(top, box[1]) - min(bottom, box[3])
    stacked = gap <= _STACKED_GAP * size and rise <= _STACKED_RISE * size
    return stacked or _are_neighbours(glyphs, index - 1, index, _gap(glyphs, index - 1, index, _WORD_GAP))


def _hull(run: list[_Glyph]) -> tuple[int, int, int, int]:
    left, top, right, bottom = zip(*(glyph.box for glyph in run), strict=True)
    return min(left), min(top), max(right), max(bottom)


def _take_pauses(glyphs: list[_Glyph], taken: list[bool]) -> None:
    """Count commas, dots and numbers between two parts of one formula, as in 1, 2, ..., n, as part of it."""
    last = -1  # the last glyph that is part of a formula, with nothing but pauses and signs since
    for index, glyph in enumerate(glyphs):
        if not taken[index]:
            if not glyph.text or glyph.text not in _PAUSES | _SIGNS:
                last = -1
            continue
        if 0 <= last < index - 1:
            stretch = range(last, index)
            gaps = [(place, _pause_gap(glyphs, place)) for place in stretch[: _MAX_PAUSES + 1]]
            narrow = all(_are_neighbours(glyphs, place, place + 1, most) for place, most in gaps)
            if narrow and index - last <= _MAX_PAUSES:
                taken[last:index] = [True] * (index - last)
        last = index


def _pause_gap(glyphs: list[_Glyph], place: int) -> float:
    """Return how wide a gap after a glyph between two parts of a formula may be; a full stop parts them."""
    if glyphs[place].text == "." and not {glyphs[place - 1].text, glyphs[place + 1].text} & {".", ","}:
        return _LETTER_GAP
    return _COLON_GAP if ":" in (glyphs[place].text, glyphs[place + 1].text) else _PAUSE_GAP


def _gap(glyphs: list[_Glyph], first: int, second: int, most: float) -> float:
    """Return how wide a gap between two glyphs of one formula may be: around signs TeX stretches it."""
    if ":" in (glyphs[first].text, glyphs[second].text):
        return _COLON_GAP
    return _SIGN_GAP if glyphs[first].sign or glyphs[second].sign else most


def _numbers(glyphs: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Find what looks like an equation number: a short one in brackets, far from all else in its row."""
    start = 0
    for index, glyph in enumerate(glyphs):
        if index == 0 or not _are_neighbours(glyphs, index - 1, index, _LETTER_GAP * 2):
            start = index
        if glyph.text != ")" or glyphs[start].text != "(":
            continue
        if not _NUMBER.fullmatch("".join(one.text for one in glyphs[start + 1 : index])):
            continue
        sides = [(a, a + 1) for a in (start - 1, index) if 0 <= a < len(glyphs) - 1]
        if not any(_are_neighbours(glyphs, first, second, _NUMBER_GAP) for first, second in sides):
            yield _hull(glyphs[start : index + 1])


def _are_neighbours(glyphs: list[_Glyph], first: int, second: int, most: float) -> bool:
    """Tell whether two glyphs stand beside each other in one line, with at most so wide a gap."""
    a, b = glyphs[first].box, glyphs[second].box
    size = max(glyphs[first].size_px, glyphs[second].size_px)
    gap = max(a[0], b[0]) - min(a[2], b[2])
    rise = max(a[1], b[1]) - min(a[3], b[3])
    return gap <= most * size and rise <= 0.7 * size and abs(a[1] + a[3] - b[1] - b[3]) < 2.2 * size


def _take_words(glyphs: list[_Glyph], taken: list[bool]) -> None:
    """Count as part of formulas what stands in the font of the text, but is no word of it.

    That is a name such as sin right beside a letter of a formula, a single letter beside one, any name right
    before a bracket or a script of a formula, and a single bold letter that is not part of a bold phrase, as
    vectors are set.
    """
    words = _words(glyphs, [not glyph.mathematical for glyph in glyphs])
    for place, (start, end) in enumerate(words):
        word = "".join(glyph.text for glyph in glyphs[start:end])
        named = bool(_FUNCTIONS.fullmatch(word))
        most = _FUNCTION_GAP if named else _NAME_GAP
        before = start > 0 and taken[start - 1] and _are_neighbours(glyphs, start - 1, start, most)
        after = end < len(glyphs) and (taken[end] or glyphs[end].text == "(")
        after = after and _are_neighbours(glyphs, end - 1, end, most)
        single = end - start == 1
        vector = single and glyphs[start].bold and not _in_bold_phrase(glyphs, words, place)
        if vector or ((before or after) and (single or named)) or _is_applied(glyphs, end, taken):
            taken[start:end] = [True] * (end - start)


def _words(glyphs: list[_Glyph], wanted: list[bool]) -> list[tuple[int, int]]:
    """Return where words begin and end: wanted letters, side by side."""
    words: list[tuple[int, int]] = []
    for index, glyph in enumerate(glyphs):
        if not glyph.letter or not wanted[index]:
            continue
        if words and words[-1][1] == index and _are_neighbours(glyphs, index - 1, index, _LETTER_GAP):
            words[-1] = words[-1][0], index + 1
        else:
            words.append((index, index + 1))
    return words


def _in_bold_phrase(glyphs: list[_Glyph], words: list[tuple[int, int]], place: int) -> bool:
    """Tell whether the word before or after a letter is a bold one too."""
    first, last = words[place]
    near = [(a, b) for a, b in words[max(0, place - 1) : place + 2] if a - last <= 1 and first - b <= 1]
    return any(end - start > 1 and glyphs[start].bold for start, end in near)


def _is_applied(glyphs: list[_Glyph], end: int, taken: list[bool]) -> bool:
    """Tell whether a bracket with a formula in it, or a script, stands right after a word."""
    if end >= len(glyphs) or not _are_neighbours(glyphs, end - 1, end, _TOUCHING_GAP):
        return False
    if glyphs[end].text == "(":
        return end + 1 < len(glyphs) and taken[end + 1]
    return glyphs[end].mathematical and glyphs[end].size_px < _SCRIPT_SIZE * glyphs[end - 1].size_px


def _trimmed(run: list[_Glyph]) -> Iterator[tuple[int, int, int, int]]:
    """Take brackets without their partners, and a pair around all of it, off a run; give its box."""
    while run:
        open_at: list[int] = []
        closes: dict[int, int] = {}
        for index, glyph in enumerate(run):
            if glyph.text in _PAIRS.values():
                open_at.append(index)
            elif open_at and run[open_at[-1]].text == _PAIRS.get(glyph.text):
                closes[open_at.pop()] = index
        brackets = {index for index, glyph in enumerate(run) if glyph.text in _BRACKETS}
        alone = brackets - {*closes.keys(), *closes.values()}
        last = len(run) - 1
        wrapped = closes.get(0) == last and not run[0].mathematical
        wrapped = wrapped and not any(glyph.text == "," or glyph.sign for glyph in run[1:last])
        hyphens = [glyph.text == "-" and not glyph.mathematical for glyph in (run[0], run[-1])]
        if 0 in alone or (wrapped and run[0].text == "(") or hyphens[0]:
            run = run[1:]
        elif last in alone or run[-1].text in _PAUSES or hyphens[1]:
            run = run[:-1]
        else:
            break
    said = {glyph.text for glyph in run}
    if any(glyph.mathematical or glyph.bold for glyph in run) and not said <= _BULLETS:
        yield _hull(run)
