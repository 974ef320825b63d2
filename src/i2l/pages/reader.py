"""Pages to their formulas: made straight, found, read, and said where they stand; one page, or a file.

    reader = PageReader()
    for page in reader.read("paper.pdf", pages="1-3"):
        for formula in page.formulas:
            print(formula.kind, formula.box, formula.latex, formula.confidence, formula.number)

A page is opened (`i2l.pages.document`) and made straight, its formulas are found (`i2l.pages.find`), and each
is read by the `Reader` that reads single formulas, all of a page together. Many files at once, and runs that
go on where they were, are the job of `i2l.pages.output`.
"""

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError
from i2l.images.open import ImageSource, open_image
from i2l.images.prepare import ImageTooLargeError
from i2l.inference.reader import Reader
from i2l.inference.reading import Reading
from i2l.pages.document import MAX_PAGES, PageError, PageFile, PagePicture
from i2l.pages.find import DETECTOR_FOLDER, Detector, find_ink, reduce_page, symbol_height
from i2l.pages.gather import FoundPage, PageInk
from i2l.pages.order import Box

PICTURE, FONTS = "picture", "picture and fonts"  # the ways in which formulas are found
_MODEL_SYMBOL_PX: Final = 14.4  # height of small letters at the scale that a model knows, at 200 dpi
_REFERENCE_DPI: Final = 200.0
_MARGIN: Final = 0.6  # of paper around a formula, in heights of small letters
_MAX_FORMULAS: Final = 2_000  # of a page
_FORMAT: Final = "i2l-page-1"


class PageToken(NamedTuple):
    """A token of a formula, how sure the model was of it, and where it is on the page."""

    text: str
    probability: float
    box: tuple[float, float, float, float] | None


@dataclass(frozen=True)
class PageFormula:
    """A formula of a page. Boxes are left, top, right, bottom in pixels of the page as it was given."""

    kind: str  # displayed or inline
    box: tuple[float, float, float, float]
    score: float  # how sure the detector is that it is a formula
    latex: str  # empty if it could not be read, or was not to be read
    confidence: float  # that all of the LaTeX is right
    number: str | None = None  # of a display, as printed, such as "(3.14)"
    number_box: tuple[float, float, float, float] | None = None
    corners: tuple[tuple[float, float], ...] | None = None  # where the page lay askew
    tokens: tuple[PageToken, ...] = ()
    error: str | None = None  # why it could not be read


@dataclass(frozen=True)
class PageReading:
    """A page, read: its formulas in reading order."""

    file: str
    page: int  # from 1
    width: int  # in pixels, of the page as it was given, or drawn from a PDF
    height: int
    dpi: float | None  # at which a PDF was drawn; None for pictures
    method: str  # how formulas were found: "picture", or "picture and fonts" of a PDF that was born digital
    straightened: bool
    formulas: tuple[PageFormula, ...]
    seconds: float
    error: str | None = None  # why the page could not be read

    def to_dict(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {"format": _FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "PageReading":
        """Build the page from decoded JSON.

        Raises:
            PageError: if this is no such page.
        """
        try:
            given = dict(fields)
            if given.pop("format") != _FORMAT:
                raise KeyError("format")
            formulas = [
                PageFormula(**{**formula, "tokens": tuple(PageToken(*token) for token in formula["tokens"])})
                for formula in given.pop("formulas")
            ]
            return cls(**given, formulas=tuple(formulas))
        except (KeyError, TypeError) as error:
            raise PageError(f"This is not a page that was read here: {error}.") from error


class PageReader:
    """Reads whole pages. It keeps no state between calls: threads may share one."""

    def __init__(
        self,
        reader: Reader | None = None,
        *,
        model: str | Path | None = None,
        detector: Path = DETECTOR_FOLDER,
        threads: int | None = None,
        tokens: bool = True,
    ) -> None:
        """Load the model that finds formulas and the one that reads them.

        Args:
            reader: that reads each formula; one is made if None.
            model: of that reader, as in `Reader`.
            detector: folder of the model that finds formulas.
            threads: of one call; all processors if None.
            tokens: say where each token of a formula is.

        Raises:
            I2LError: if a model is not there or damaged.
        """
        reader = reader or Reader(model, threads=threads)
        # That these are formulas has been decided, and what finds them was taught print.
        self._reader = reader.with_options(check=False, handwriting=False)
        self._detector = Detector(detector, threads=threads)
        self._tokens = tokens

    def read(self, source: Path | str | bytes, *, pages: str | None = None) -> Iterator[PageReading]:
        """Read the pages of a file one by one: a PDF, a picture, or a TIFF of many pages.

        Args:
            source: path of the file, or its content.
            pages: which of them, such as "1-5,8"; all if None.

        Raises:
            PageError: if the file cannot be opened. A page that cannot be read has its error with it.
        """
        given = source if isinstance(source, bytes) else Path(source)
        with PageFile(given) as file:
            for number in choose_pages(pages, file.num_pages, file.name):
                yield self.read_page_of(file, number)

    def read_page_of(self, file: PageFile, number: int, *, read: bool = True) -> PageReading:
        """Read one page of an open file; what is wrong with it is said in the result."""
        started = time.perf_counter()
        try:
            return self._read(file.page(number), file.name, number, started, read)
        except PageError as error:
            return PageReading(
                *(file.name, number, 0, 0, None, PICTURE, False, (), time.perf_counter() - started),
                error=str(error),
            )

    def read_page(self, source: ImageSource, *, read: bool = True) -> PageReading:
        """Read the picture of a page: a path, a file or its bytes, an array, or an open image.

        Args:
            source: the picture.
            read: read the formulas too; else they are only found.

        Raises:
            ImageError: if there is no picture in it.
        """
        started = time.perf_counter()
        return self._read(PagePicture(open_image(source)), "picture", 1, started, read)

    def _read(self, picture: PagePicture, name: str, number: int, started: float, read: bool) -> PageReading:
        image = picture.image
        method, straight = FONTS, StraightPage(image)
        if picture.hints is None:  # a scan, in a PDF too, may lie askew
            method, straight = PICTURE, straighten(image)
        page = PageReading(
            *(name, number, *image.size, picture.dpi, method, straight.to_given is not None, (), 0.0)
        )
        ink, hints, reduced = reduce_page(straight.image, picture.hints)
        if ink is not None:
            found = self._detector.find_in(ink, hints)
            placed = _Placed(straight.to_given, image.size, reduced)
            page = replace(page, formulas=self._formulas(placed, ink, found, read))
        return replace(page, seconds=time.perf_counter() - started)

    def _formulas(
        self, placed: "_Placed", ink: PageInk, found: FoundPage, read: bool
    ) -> tuple[PageFormula, ...]:
        formulas = found.formulas[:_MAX_FORMULAS]
        numbers = [
            (formula, number.box)
            for number, formula in zip(found.numbers, found.number_of, strict=True)
            if 0 <= formula < len(formulas)
        ]
        boxes = [formula.box for formula in formulas]
        readings = self._read_boxes(ink, [*boxes, *(box for _, box in numbers)]) if read else []
        labels: dict[int, list[tuple[str, Box]]] = {}
        for (owner, box), reading in zip(numbers, readings[len(boxes) :], strict=False):
            labels.setdefault(owner, []).append((_label(reading), box))
        result: list[PageFormula] = []
        for index, formula in enumerate(formulas):
            label = labels.get(index, [])
            one = PageFormula(
                formula.kind,
                placed.box(formula.box),
                round(formula.score, 4),
                latex="",
                confidence=0.0,
                number=", ".join(text for text, _ in label if text) or None,
                number_box=placed.box(label[0][1]) if label else None,
                corners=placed.corners(formula.box),
            )
            result.append(self._with_reading(one, readings[index], formula.box, ink, placed) if read else one)
        return tuple(result)

    def _with_reading(
        self, formula: PageFormula, reading: Reading | I2LError, box: Box, ink: PageInk, placed: "_Placed"
    ) -> PageFormula:
        if isinstance(reading, ImageTooLargeError):
            return self._by_rows(formula, box, ink, reading)
        if isinstance(reading, I2LError):
            return replace(formula, error=str(reading))
        tokens: list[PageToken] = []
        if self._tokens:
            margin = _margin_px(ink)
            for text, probability, own in zip(
                reading.tokens, reading.token_probabilities, reading.boxes, strict=True
            ):
                on_page = None
                if own is not None:
                    left, top = box[0] - margin, box[1] - margin
                    on_page = placed.box((own[0] + left, own[1] + top, own[2] + left, own[3] + top))
                tokens.append(PageToken(text, round(float(probability), 4), on_page))
        return replace(
            formula, latex=reading.latex, confidence=round(float(reading.confidence), 4), tokens=tuple(tokens)
        )

    def _by_rows(
        self, formula: PageFormula, box: Box, ink: PageInk, error: ImageTooLargeError
    ) -> PageFormula:
        """Read a display that is too large for the model in parts: its lines, several at a time."""
        parts = _split_rows(ink, box)
        if len(parts) < 2:
            return replace(formula, error=str(error))
        readings = self._read_boxes(ink, parts)
        if any(isinstance(reading, I2LError) for reading in readings):
            return replace(formula, error=str(error))
        lines = [reading.latex for reading in readings if isinstance(reading, Reading)]
        confidence = math.prod(reading.confidence for reading in readings if isinstance(reading, Reading))
        joined = r" \\ ".join(
            re.sub(r"^\\begin\{\w+\}|\\end\{\w+\}$", "", line).replace("&", "") for line in lines
        )
        return replace(
            formula, latex=rf"\begin{{gathered}} {joined} \end{{gathered}}", confidence=round(confidence, 4)
        )

    def _read_boxes(self, ink: PageInk, boxes: Sequence[Box]) -> list[Reading | I2LError]:
        """Read boxes of a page together, at the scale of the type of the page."""
        if not boxes:
            return []
        margin = _margin_px(ink)
        scale = _MODEL_SYMBOL_PX / ink.symbol_px * self._reader.model.limits.dpi / _REFERENCE_DPI
        crops = [_crop(ink.ink, box, margin) for box in boxes]
        return self._reader.read_many(crops, scale=scale, errors="return")


class _Placed:
    """Where boxes of the straight page lie on the given one."""

    def __init__(self, to_given: "Homography | None", size_px: tuple[int, int], reduced: int) -> None:
        self._matrix, self._size, self._reduced = to_given, size_px, reduced

    def box(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """Return the box around a box, within the page."""
        left, top, right, bottom = (side * self._reduced for side in box)
        if self._matrix is not None:
            points = corners_on(self._matrix, (left, top, right, bottom))  # type: ignore[arg-type]
            left, right = min(x for x, _ in points), max(x for x, _ in points)
            top, bottom = min(y for _, y in points), max(y for _, y in points)
        width, height = self._size
        left, right = (min(max(x, 0.0), float(width)) for x in (left, right))
        top, bottom = (min(max(y, 0.0), float(height)) for y in (top, bottom))
        return round(left, 1), round(top, 1), round(right, 1), round(bottom, 1)

    def corners(self, box: Box) -> tuple[tuple[float, float], ...] | None:
        """Return the corners of a box on a page that lay askew."""
        if self._matrix is None:
            return None
        scaled = tuple(side * self._reduced for side in box)
        return tuple((round(x, 1), round(y, 1)) for x, y in corners_on(self._matrix, scaled))  # type: ignore[arg-type]


def _margin_px(ink: PageInk) -> int:
    return max(2, round(_MARGIN * ink.symbol_px))


def _crop(ink: NDArray[np.uint8], box: Box, margin: int) -> NDArray[np.uint8]:
    """Cut a formula out of ink, as dark on white with some paper around it."""
    left, top, right, bottom = box
    crop = np.full((bottom - top + 2 * margin, right - left + 2 * margin), 255, np.uint8)
    crop[margin:-margin, margin:-margin] = 255 - ink[top:bottom, left:right]
    return crop


def _split_rows(ink: PageInk, box: Box) -> list[Box]:
    """Cut a display into its lines, at rows without ink that are high enough."""
    left, top, right, bottom = box
    filled = (ink.ink[top:bottom, left:right] > 60).any(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], filled, [False]]).astype(np.int8)))
    runs = [[int(edges[place]), int(edges[place + 1])] for place in range(0, len(edges), 2)]
    lines: list[list[int]] = []
    for run in runs:
        if lines and run[0] - lines[-1][1] < 0.7 * ink.symbol_px:
            lines[-1][1] = run[1]
        else:
            lines.append(run)
    return [(left, top + first, right, top + last) for first, last in lines]


def _label(reading: Reading | I2LError) -> str:
    """Write an equation number as it is printed."""
    if isinstance(reading, I2LError):
        return ""
    return re.sub(r"\\[A-Za-z]+|[\s{}~\\]", "", reading.latex)


def choose_pages(wanted: str | None, num_pages: int, name: str = "the file") -> list[int]:
    """Turn a choice such as "1-5,8" into numbers of pages, in rising order; all if None.

    Raises:
        PageError: if this is no choice of pages, or none of them is there.
    """
    if wanted is None:
        return list(range(1, num_pages + 1))
    chosen: set[int] = set()
    for part in wanted.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})?\s*(-)?\s*(\d{1,9})?\s*", part)
        if match is None or not (match[1] or match[3]) or (match[2] is None and match[3]):
            raise PageError(f"Pages are given as 1-5 or 1,3,7-; {wanted!r} is neither.")
        first = int(match[1] or 1)
        last = int(match[3]) if match[3] else num_pages if match[2] else first
        chosen |= set(range(max(1, first), min(last, num_pages, MAX_PAGES) + 1))
    if not chosen:
        raise PageError(f"{name} has {num_pages} pages, and none of those that were asked for ({wanted}).")
    return sorted(chosen)


# Making a page straight.
_MAX_ANGLE_DEG: Final = 12.0
_LEAST_ANGLE_DEG: Final = 0.12
_LEAST_GAIN: Final = 1.08  # in how sharply lines stand out, for a turn to be believed
_QUARTER_GAIN: Final = 1.5
_MANY_LETTERS: Final = 200  # of fewer, lines stand out along some angle by chance
_HEAD_GAIN: Final = 0.4  # in the share of ascenders, for a page to stand on its head; text has .43 or more
_KEYSTONE_DEG: Final = 0.3  # by which lines at the top and at the foot differ, to be worth a transformation
_MIN_LINES_PIECES: Final = 40
_LOOKED_AT_PX: Final = 1600  # the longer side where lines are measured


Homography = NDArray[np.floating[Any]]  # 3 x 3, of columns and rows


class StraightPage(NamedTuple):
    """A page with level lines, and how it lies on the picture that was given."""

    image: Image.Image
    to_given: Homography | None = None  # from here to the given picture; None if that was straight


def straighten(image: Image.Image) -> StraightPage:
    """Turn a page upright and its lines level; one that is straight stays as it is."""
    factor = max(1, round(max(image.size) / _LOOKED_AT_PX))
    small = image.reduce(factor) if factor > 1 and image.mode in ("L", "RGB", "RGBA") else image
    if small is image:
        factor = 1
    ink = find_ink(small)
    if ink is None or len(ink.pieces) < _MIN_LINES_PIECES:
        return StraightPage(image)
    quarter = _quarter_turn(ink)
    size = np.array(small.size[::-1] if quarter % 2 else small.size, np.float64)
    turn = _quarter_matrix(quarter, small.size)
    upright = _turned_boxes(ink.pieces, turn)
    symbol_px = symbol_height(upright) or ink.symbol_px
    points = _line_points(upright, symbol_px)
    angle, gain = _slope(points, symbol_px, 0.0, _MAX_ANGLE_DEG)
    if gain < _believed(_LEAST_GAIN, len(points)) or abs(angle) < _LEAST_ANGLE_DEG:
        angle = 0.0
    level = _rotation(math.radians(angle), size / 2)
    keystone = _keystone(project(np.linalg.inv(level), points), size, symbol_px)
    if not quarter and not angle and keystone is None:
        return StraightPage(image)
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
    return StraightPage(straight, to_given)


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


def _believed(gain: float, num_letters: int) -> float:
    """Return by how much lines must stand out for a turn to be believed: by more where letters are few."""
    return 1 + (gain - 1) * max(1.0, _MANY_LETTERS / max(num_letters, 1))


def _quarter_turn(ink: PageInk) -> int:
    """Return how many quarter turns, clockwise, the page lies away from being upright."""
    boxes = ink.pieces.astype(np.float64)
    swapped = boxes[:, [1, 0, 3, 2]]

    def lines(given: NDArray[np.float64]) -> tuple[float, int]:
        symbol_px = symbol_height(given) or ink.symbol_px
        points = _line_points(given, symbol_px)
        if not len(points):
            return 0.0, 0
        angle, _ = _slope(points, symbol_px, 0.0, _MAX_ANGLE_DEG)
        # Sharpness grows with the share of all letters that a row has, and falls with the number of rows.
        sharpness = _sharpness(points, angle, symbol_px) / len(points) ** 2
        return sharpness * float(np.ptp(points[:, 1])) / symbol_px, len(points)

    (across, num_across), (along, num_along) = lines(swapped), lines(boxes)
    aside = across > _believed(_QUARTER_GAIN, min(num_across, num_along)) * along
    quarters = (1, 3) if aside else (0, 2)
    height, width = ink.ink.shape
    shares = []
    for turn in quarters:
        upright = _turned_boxes(ink.pieces, _quarter_matrix(turn, (width, height)))
        shares.append(_ascender_share(upright, symbol_height(upright) or ink.symbol_px))
    # Text on its head has more letters that hang below the line than such as stand above it.
    return quarters[1] if shares[1] > shares[0] + _HEAD_GAIN else quarters[0]


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
