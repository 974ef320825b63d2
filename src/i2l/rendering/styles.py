"""How a formula looks: the `Style` of a sample, random ones, and the `Photo` that a camera took of it.

`i2l.rendering.camera` turns a `Photo` into pixels. The sheet is bent, tilted and turned before the camera.
Points are columns and rows of the drawn page, and go from there to the photograph and back; both ways are
exact, so pixels and boxes move alike.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from i2l.errors import I2LError

TOP, BOTTOM, LEFT, RIGHT = 1, 2, 4, 8  # sides of the picture, as bits


@dataclass(frozen=True)
class Photo:
    """All that turns a drawn page into a photograph of it; the defaults change nothing.

    Lengths in em are in sizes of the type, strengths are in grey levels of black ink on white paper.
    """

    seed: int = 0  # of the textures and of where things lie
    # what else is on the sheet
    cut_top_em: float = 0.0  # how far lines above and below and words beside the formula reach into ...
    cut_bottom_em: float = 0.0
    cut_left_em: float = 0.0
    cut_right_em: float = 0.0
    gap_em: float = 0.5  # ... the picture, and how far they stay away from the formula
    frame_sides: int = 0  # of a table or a box around: 1 top, 2 bottom, 4 left, 8 right
    ruling_mm: float = 0.0  # distance of the lines of squared or ruled paper
    ruling: int = 0  # how dark they are
    squared: bool = True
    back: int = 0  # how dark the back side shows through
    # where the camera stood, and how the sheet is bent
    rotation_deg: float = 0.0  # counter-clockwise
    tilt_x_deg: float = 0.0
    tilt_y_deg: float = 0.0
    bend_em: float = 0.0  # height of the arc that a straight line becomes
    bend_middle: float = 0.0  # where the arc is flat: -1 at the left end, 1 at the right one
    # light, in shares of full light that are lost
    gradient: float = 0.0
    gradient_deg: float = 0.0
    shadow: float = 0.0
    shadow_deg: float = 0.0
    shadow_place: float = 0.0  # of its edge: -1 to 1 across the picture
    shadow_soft: float = 0.1  # width of its edge in widths of the picture
    vignette: float = 0.0
    # the surface
    grain: float = 0.0  # standard deviation in grey levels
    fibres: float = 0.0
    moire: float = 0.0  # amplitude in grey levels
    moire_px: float = 8.0  # distance of its stripes
    moire_deg: float = 0.0
    # lens and sensor
    defocus_px: float = 0.0  # radius of the disc that a point becomes
    motion_px: float = 0.0
    motion_deg: float = 0.0
    sharpen: int = 0  # percent
    colour_noise: float = 0.0  # standard deviation; coloured specks, as they look in grey


@dataclass(frozen=True)
class Tones:
    """The greys of full ink and of the bare surface."""

    ink: int
    paper: int


PAPER_KIND, BOARD_KIND, SCREEN_KIND = "paper", "board", "screen"
_CUT_SHARE: Final = 0.15  # of photographs have neighbours of the formula in them
_FRAME_SHARE: Final = 0.04


def draw_photo(source: random.Random, *, seed: int, em_px: float) -> tuple[Photo, Tones]:
    """Draw a photograph of paper, a board or a screen, for type of the given size."""
    draw = _Chance(source)
    kind = draw.kind()
    tones = draw.tones(kind)
    contrast = abs(tones.paper - tones.ink) / 200  # what is on the paper is lit as its ink is
    cut = draw.happens(_CUT_SHARE)
    steady = 0.25 if cut else 1.0  # who cuts a line out of a page holds the camera straight
    cuts = [draw.sometimes(share, 0.15, 0.55) if cut else 0.0 for share in (0.6, 0.6, 0.2, 0.2)]
    framed = draw.happens(_FRAME_SHARE)
    sides = draw.pick((TOP, BOTTOM, LEFT, RIGHT, BOTTOM + LEFT, BOTTOM + RIGHT, TOP + LEFT))
    on_paper, on_board, on_screen = (kind == one for one in (PAPER_KIND, BOARD_KIND, SCREEN_KIND))
    ruling_mm = draw.sometimes(0.16 if on_paper else 0.25, 4.0, 8.0) if not on_screen else 0.0
    squared = draw.happens(0.65)
    if ruling_mm:
        ruling_mm = 5.0 if squared and on_paper else round(ruling_mm, 1)
    grain = draw.sometimes(0.15 if on_screen else 0.7, 0.5, 9 if on_board else 7, power=1.5)
    photo = Photo(
        seed=seed,
        cut_top_em=cuts[0],
        cut_bottom_em=cuts[1],
        cut_left_em=cuts[2],
        cut_right_em=cuts[3],
        gap_em=draw.between(0.35, 1.0),
        frame_sides=sides if framed else 0,
        ruling_mm=ruling_mm,
        ruling=int(draw.between(15, 75)) if ruling_mm else 0,
        squared=squared,
        back=int(draw.sometimes(0.15, 8, 36)) if on_paper else 0,
        rotation_deg=steady * draw.sometimes(0.7, -4, 4, power=1.7),
        tilt_x_deg=steady * draw.sometimes(0.6, -8, 8),
        tilt_y_deg=steady * draw.sometimes(0.6, -8, 8),
        bend_em=steady * draw.sometimes(0.3, -0.48, 0.48) if on_paper else 0.0,
        bend_middle=draw.between(-1, 1),
        gradient=draw.sometimes(0.6, 0.05, 0.45),
        gradient_deg=round(draw.between(0, 360)),
        shadow=draw.sometimes(0.22, 0.1, 0.5),
        shadow_deg=round(draw.between(0, 360)),
        shadow_place=draw.between(-1, 1),
        shadow_soft=draw.between(0.02, 0.3),
        vignette=draw.sometimes(0.3, 0.05, 0.4),
        grain=round(contrast * grain, 2),
        fibres=round(contrast * draw.sometimes(0.15, 2, 12), 2) if on_paper else 0.0,
        moire=round(contrast * draw.sometimes(0.65, 2, 14), 2) if on_screen else 0.0,
        moire_px=draw.between(2.2, 14),
        moire_deg=round(draw.between(0, 180)),
        defocus_px=round(em_px * draw.sometimes(0.65, 0.01, 0.075), 2),
        motion_px=round(em_px * draw.sometimes(0.15, 0.03, 0.12), 2),
        motion_deg=round(draw.between(0, 180)),
        sharpen=int(draw.sometimes(0.25, 40, 160)),
        colour_noise=draw.sometimes(0.3, 0.5, 3.5),
    )
    return photo, tones


class _Chance:
    """Choices from a random stream; each takes as many values from it whatever comes out."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def happens(self, share: float) -> bool:
        return self._source.random() < share

    def between(self, low: float, high: float) -> float:
        return round(low + (high - low) * self._source.random(), 2)

    def sometimes(self, share: float, low: float, high: float, *, power: float = 1.0) -> float:
        """Draw a value of the range with that chance, else 0; a power over 1 favours small values."""
        happens, part = self.happens(share), self._source.random()
        if low < 0:
            part = 0.5 + 0.5 * (1 if part > 0.5 else -1) * abs(2 * part - 1) ** power
        else:
            part **= power
        return round(low + (high - low) * part, 2) if happens else 0.0

    def pick(self, values: tuple[int, ...]) -> int:
        return values[int(self._source.random() * len(values))]

    def kind(self) -> str:
        part = self._source.random()
        return PAPER_KIND if part < 0.74 else BOARD_KIND if part < 0.84 else SCREEN_KIND

    def tones(self, kind: str) -> Tones:
        dark = self.happens(0.4)
        light = 1 - self._source.random() ** 1.6  # of what is lighter, mostly well lit
        depth = self._source.random() ** 1.5  # of what is darker: coloured ink is lighter than black
        bright = int(120 + 135 * light)
        if kind == BOARD_KIND or (kind == SCREEN_KIND and dark):
            return Tones(ink=bright, paper=int(bright * (0.05 + 0.4 * depth)))
        return Tones(ink=int(bright * (0.08 + 0.5 * depth)), paper=bright)


Points = NDArray[np.float64]  # (N, 2): column, row
Box = tuple[int, int, int, int]

_DISTANCE = 1.5  # of the camera, in widths of the formula
_MIN_WIDTH_EM = 25.0  # nobody takes a photograph of a single letter from an inch away
_FLAT_PX = 96  # perspective is straight over this distance, within half a pixel ...
_BENT_PX = 24  # ... and so is a bent sheet over this one
_SAMPLES = 9  # points along the side of a box
_ALONG = np.arange(_SAMPLES) / (_SAMPLES - 1)


@dataclass(frozen=True)
class Warp:
    """The way from a drawn page of one size to a photograph of it, and back."""

    forward: NDArray[np.float64]  # (3, 3), of the sheet made flat, around the middle of the page
    middle: tuple[float, float]
    bend_px: float
    bend_middle: float
    half_width: float
    left: int = 0  # where the photograph starts
    top: int = 0

    def to_photo(self, points: Points) -> Points:
        """Return where points of the page come to lie on the photograph."""
        x, y = (points - self.middle).T
        return self._project(self.forward, x, y + self._arc(x)) - (self.left, self.top)

    def to_page(self, points: Points) -> Points:
        """Return the points of the page that lie at points of the photograph."""
        columns, rows = (points + np.array([self.left, self.top])).T
        x, y = self._project(np.linalg.inv(self.forward).astype(np.float64), columns, rows).T
        return np.stack([x, y - self._arc(x)], axis=1) + self.middle

    def box(self, box: Box) -> Box:
        """Return the box on the photograph around what was in a box of the page."""
        points = self.to_photo(outline(*box))
        left, top = np.floor(points.min(axis=0) + 0.01)
        right, bottom = np.ceil(points.max(axis=0) - 0.01)
        return int(left), int(top), int(right), int(bottom)

    def apply(self, image: Image.Image, origin: tuple[int, int], size: tuple[int, int]) -> Image.Image:
        """Take the photograph, width and height given, of a sheet whose corner has a place on the page."""
        columns = _edges(size[0], _BENT_PX if self.bend_px else _FLAT_PX)
        rows = _edges(size[1], _FLAT_PX)
        ends = np.stack(np.meshgrid(columns, rows), axis=2).reshape(-1, 2).astype(np.float64)
        places = (self.to_page(ends) - origin).reshape(len(rows), len(columns), 2).tolist()
        cells = []
        for row, (top, bottom) in enumerate(pairwise(rows)):
            for column, (left, right) in enumerate(pairwise(columns)):
                corners = ((row, column), (row + 1, column), (row + 1, column + 1), (row, column + 1))
                quad = tuple(value for i, j in corners for value in places[i][j])
                cells.append(((left, top, right, bottom), quad))
        return image.transform(size, Image.Transform.MESH, cells, Image.Resampling.BILINEAR, fillcolor=255)

    def _arc(self, x: Points) -> Points:
        part = (x / self.half_width - self.bend_middle) / (1 + abs(self.bend_middle))
        return self.bend_px * part * part

    @staticmethod
    def _project(matrix: NDArray[np.float64], x: Points, y: Points) -> Points:
        across, down, depth = matrix @ np.stack([x, y, np.ones_like(x)])
        return np.stack([across / depth, down / depth], axis=1)


def _edges(length: int, step: int) -> list[int]:
    """Cut a length into equal parts of about a step."""
    parts = max(1, round(length / step))
    return [round(length * part / parts) for part in range(parts + 1)]


def make_warp(photo: Photo, *, width: int, height: int, em_px: float) -> Warp:
    """Say how a photograph moves the points of a page of that size."""
    turn, tilt_x, tilt_y = (
        math.radians(angle) for angle in (-photo.rotation_deg, photo.tilt_x_deg, photo.tilt_y_deg)
    )
    distance = _DISTANCE * max(width, _MIN_WIDTH_EM * em_px)
    (cos_x, sin_x), (cos_y, sin_y) = ((math.cos(angle), math.sin(angle)) for angle in (tilt_x, tilt_y))
    tilted = np.array(
        [
            [cos_y, sin_x * sin_y, 0],
            [0, cos_x, 0],
            [-sin_y / distance, sin_x * cos_y / distance, 1],
        ]
    )
    turned = np.array([[math.cos(turn), -math.sin(turn), 0], [math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    return Warp(
        forward=turned @ tilted,
        middle=(width / 2, height / 2),
        bend_px=photo.bend_em * em_px,
        bend_middle=photo.bend_middle,
        half_width=max(width / 2, 6 * em_px),  # a short formula sees a short part of the arc
    )


def outline(left: float, top: float, right: float, bottom: float) -> Points:
    """Return points all along the sides of a box."""
    points = np.empty((4, _SAMPLES, 2))
    points[:2, :, 0] = left + (right - left) * _ALONG
    points[0, :, 1], points[1, :, 1] = top, bottom
    points[2, :, 0], points[3, :, 0] = left, right
    points[2:, :, 1] = top + (bottom - top) * _ALONG
    return points.reshape(-1, 2)


T = TypeVar("T")

# The packages of each font set, and its share of the world's formulas in percent. The first four need only
# texlive-fonts-recommended and lmodern, the others texlive-fonts-extra and texlive-plain-generic. Left out:
# iwona and kurier have no \|; garamond is not free; concrete is not in Debian; libertine, cochineal and
# erewhon with newtxmath print a bold \mathfrak as roman.
#
# Words in T1 without a sans serif or a typewriter of their own would take bitmaps, which end pdfTeX where no
# package brings them; the outlines of Latin Modern take their place.
_LATIN_MODERN_WORDS: Final = r"\renewcommand\sfdefault{lmss}\renewcommand\ttdefault{lmtt}"
_FONTS: Final = (
    ("computer-modern", 32, r"\usepackage{amssymb}"),
    ("latin-modern", 8, r"\usepackage{amssymb,lmodern}"),
    ("times", 8, r"\usepackage{amssymb,mathptmx}"),
    ("palatino", 4, r"\usepackage{amssymb,mathpazo}"),
    ("newtx", 6, r"\usepackage{newtxtext,newtxmath}"),
    ("newpx", 3, rf"\usepackage{{newpxtext}}{_LATIN_MODERN_WORDS}\usepackage{{newpxmath}}"),
    ("stix2", 6, rf"\usepackage{{stix2}}{_LATIN_MODERN_WORDS}"),
    ("utopia", 4, rf"\usepackage{{amssymb,fourier}}{_LATIN_MODERN_WORDS}"),
    ("libertinus", 4, r"\usepackage{amssymb,libertinus-type1,libertinust1math}"),
    ("euler", 3, r"\usepackage{amssymb,eulervm}"),
    ("kpfonts", 3, r"\usepackage{kpfonts}"),
    ("charter", 3, rf"\usepackage[charter]{{mathdesign}}{_LATIN_MODERN_WORDS}"),
    ("xcharter", 2, rf"\usepackage{{XCharter}}{_LATIN_MODERN_WORDS}\usepackage[charter]{{newtxmath}}"),
    ("century", 2, rf"\usepackage{{amssymb,fouriernc}}{_LATIN_MODERN_WORDS}"),
    (
        "baskerville",
        2,
        rf"\usepackage{{baskervillef}}{_LATIN_MODERN_WORDS}\usepackage[baskerville]{{newtxmath}}",
    ),
    ("antykwa", 2, r"\usepackage{amssymb}\usepackage[math]{anttor}"),
    ("mlmodern", 2, r"\usepackage{amssymb,mlmodern}"),
    ("bright", 2, r"\usepackage{amssymb,cmbright}"),
    ("arev", 2, r"\usepackage{amssymb,arev}"),
    ("noto", 2, r"\usepackage{notomath}"),
)
FONTS: Final = {name: packages for name, _, packages in _FONTS}
_FONT_SHARES: Final = [name for name, share, _ in _FONTS for _ in range(share)]
_USUAL_FONTS: Final = ("computer-modern", "times", "palatino", "stix2")
_CLEAN_SHARES: Final = [name for name in FONTS for _ in range(4 if name in _USUAL_FONTS else 1)]
# OpenType fonts of mathematics, which LuaLaTeX sets with unicode-math: as they are in documents that are made
# by XeLaTeX and LuaLaTeX, in training pictures of other projects, and nearly so in word processors. Each has
# its share, the file of its signs, and the family of its words; without one, words are in Latin Modern. They
# need texlive-luatex, fonts-texgyre-math and fonts-oflb-asana-math beside what the others need.
_UNICODE_FONTS: Final = (
    ("unicode-latin-modern", 10, "latinmodern-math", ""),
    ("unicode-newcm", 4, "NewCMMath-Regular", ""),
    ("unicode-termes", 8, "texgyretermes-math", ""),
    ("unicode-pagella", 5, "texgyrepagella-math", ""),
    ("unicode-bonum", 4, "texgyrebonum-math", ""),
    ("unicode-schola", 4, "texgyreschola-math", ""),
    ("unicode-dejavu", 6, "texgyredejavu-math", ""),
    ("unicode-xits", 6, "XITSMath-Regular", ""),
    ("unicode-xits-words", 5, "XITSMath-Regular", "XITS"),
    ("unicode-stix2", 5, "STIXTwoMath-Regular", "STIXTwoText"),
    ("unicode-asana", 8, "Asana-Math", ""),
    ("unicode-neohellenic", 6, "GFSNeohellenicMath", ""),
    ("unicode-fira", 5, "FiraMath-Regular", ""),
    ("unicode-fira-words", 4, "FiraMath-Regular", "FiraSans"),
    ("unicode-libertinus", 4, "LibertinusMath-Regular", "LibertinusSerif"),
    ("unicode-erewhon", 3, "Erewhon-Math", ""),
    ("unicode-euler", 2, "Euler-Math", ""),
    ("unicode-garamond", 3, "Garamond-Math", ""),
    ("unicode-kp", 2, "KpMath-Regular", ""),
    ("unicode-kp-sans", 3, "KpMath-Sans", ""),
    ("unicode-xcharter", 3, "XCharter-Math", ""),
)
UNICODE_FONTS: Final = {name: (signs, words) for name, _, signs, words in _UNICODE_FONTS}
UNICODE_FONT_FILES: Final = tuple(
    dict.fromkeys(
        file
        for signs, words in UNICODE_FONTS.values()
        for file in (
            f"{signs}.otf",
            *(f"{words}-{face}.otf" for face in ("Regular", "Italic", "Bold") if words),
        )
    )
)
_UNICODE_SHARES: Final = [name for name, share, *_ in _UNICODE_FONTS for _ in range(share)]
# mathtools draws braces over and under a little further off than amsmath does, so these stay as they were.
_MATH_PACKAGES: Final = (
    r"\usepackage{amsmath}\let\itlover\overbrace \let\itlunder\underbrace"
    r"\usepackage{mathtools,cancel}\let\overbrace\itlover \let\underbrace\itlunder"
)
# Fonts are named by their files, so that no list of the machine's fonts is made. What such fonts cannot show
# is left without a meaning: they have one script alphabet, the calligraphic one, and no bold signs.
_UNICODE_PACKAGES: Final = (
    r"\usepackage{unicode-math}\setmathfont{@SIGNS@.otf}"
    r"\AtBeginDocument{\let\mathscr\undefined\let\boldsymbol\undefined\let\pmb\undefined}"
)
_MAIN_FONT: Final = (
    r"\setmainfont{@FAMILY@}[Extension=.otf,UprightFont=*-Regular,ItalicFont=*-Italic,BoldFont=*-Bold]"
)
# bm asks for families of its own, of which these sets leave too few.
_FEW_FAMILIES: Final = r"\newcommand\bmmax{0}\newcommand\hmmax{0}"
PDFLATEX, LUALATEX = "pdflatex", "lualatex"
SIZES_PT: Final = (9, 10, 11, 12, 14)
_STANDARD_SIZES_PT: Final = (10, 11, 12)  # of the article class; extarticle has the others


@dataclass(frozen=True)
class Style:
    """Everything that turns a formula into one certain picture. Plain values only: it is stored as JSON."""

    # what TeX does
    font: str = "computer-modern"
    size_pt: int = 12
    display: bool = True  # else as in a line of text
    bold: bool = False
    # how the page becomes pixels
    dpi: int = 200
    rotation_deg: float = 0.0  # counter-clockwise
    # what happens to the pixels, in this order
    margin_left_px: int = 0
    margin_top_px: int = 0
    margin_right_px: int = 0
    margin_bottom_px: int = 0
    ink: int = 0  # grey of full ink and of bare paper
    paper: int = 255
    blur_px: float = 0.0  # standard deviation
    noise: float = 0.0  # standard deviation in grey levels
    noise_seed: int = 0
    jpeg_quality: int = 0  # 0: no JPEG
    photo: Photo | None = None  # what a camera does, in place of the blur; shades, noise and JPEG come after

    def tex_part(self) -> "Style":
        """Return the style without all that TeX does not see: formulas of equal parts can share a process."""
        return Style(font=self.font, size_pt=self.size_pt, display=self.display, bold=self.bold)

    @property
    def engine(self) -> str:
        """The program that sets it."""
        return LUALATEX if self.font in UNICODE_FONTS else PDFLATEX


PAPER: Final = Style()

# Seeds of one block share what TeX does, so that their formulas can share a process.
SEEDS_PER_BLOCK: Final = 512
UNICODE_SEEDS_PER_BLOCK: Final = 4096  # LuaLaTeX takes seconds to start


def world_style(seed: int) -> Style:
    """Draw a style as the world might have printed, scanned or sent it; a seed gives the same everywhere.

    About a third of the styles are clean (no blur, noise, JPEG or rotation), as screenshots are. All are
    drawn as displays: in a line of text the same formula looks otherwise, and its label would have to say so.
    """
    tex = random.Random(f"tex {seed // SEEDS_PER_BLOCK}")
    pixels = random.Random(f"pixels {seed}")
    font, size_pt = _pick(tex, _FONT_SHARES), _pick(tex, SIZES_PT)
    lowest_dpi = max(70, 770 / size_pt)  # nobody can read 9 pt at 70 dpi
    dpi = round(lowest_dpi * (300 / lowest_dpi) ** pixels.random())  # as many below 145 as above
    scanned = pixels.random() < 0.65
    faded = pixels.random() < 0.4
    margin_px = dpi * 0.2 * pixels.random()
    left, top, right, bottom = (int(margin_px * pixels.random()) for _ in range(4))
    noise = round(_sometimes(pixels, scanned, 0.4, 1, 9), 1)
    return Style(
        font=font,
        size_pt=size_pt,
        bold=tex.random() < 0.08,
        dpi=dpi,
        rotation_deg=round(_sometimes(pixels, scanned, 0.4, -2, 2), 2),
        margin_left_px=left,
        margin_top_px=top,
        margin_right_px=right,
        margin_bottom_px=bottom,
        ink=int(_sometimes(pixels, faded, 1, 0, 100)),
        paper=int(_sometimes(pixels, faded, 0.7, 200, 256, otherwise=255)),
        blur_px=round(_sometimes(pixels, scanned, 0.5, 0.3, 0.3 + dpi / 200), 2),
        noise=noise,
        noise_seed=seed if noise else 0,
        jpeg_quality=int(_sometimes(pixels, scanned, 0.5, 25, 96)),
    )


def photo_style(seed: int) -> Style:
    """Draw a style as a phone might have photographed it; for TeX it is the world style of the seed."""
    look = world_style(seed).tex_part()
    source = random.Random(f"photo {seed}")
    lowest_dpi = max(70, 770 / look.size_pt)
    dpi = round(lowest_dpi * (300 / lowest_dpi) ** (source.random() ** 0.7))  # most are sharper than screens
    margins = [int(dpi * 0.22 * source.random() ** 2) for _ in range(4)]
    noise = _sometimes(source, True, 0.7, 0.5, 7)
    jpeg_quality = int(_sometimes(source, True, 0.85, 35, 96))
    photo, tones = draw_photo(source, seed=seed, em_px=dpi * look.size_pt / 72)
    noise = round(min(noise, abs(tones.paper - tones.ink) / 14), 1)  # nobody sends what nobody can read
    return replace(
        look,
        dpi=dpi,
        margin_left_px=margins[0],
        margin_top_px=margins[1],
        margin_right_px=margins[2],
        margin_bottom_px=margins[3],
        ink=tones.ink,
        paper=tones.paper,
        noise=noise,
        noise_seed=seed if noise else 0,
        jpeg_quality=jpeg_quality,
        photo=photo,
    )


def unicode_style(seed: int) -> Style:
    """Draw a style as the world style of the seed, as large in pixels, but in an OpenType font."""
    source = random.Random(f"unicode {seed // UNICODE_SEEDS_PER_BLOCK}")
    font, size_pt, look = _pick(source, _UNICODE_SHARES), _pick(source, SIZES_PT), world_style(seed)
    return replace(look, font=font, size_pt=size_pt, bold=False, dpi=round(look.dpi * look.size_pt / size_pt))


def clean_style(seed: int) -> Style:
    """Draw a style as a file or a screen shows it, black on white without a blemish, small or large.

    The font sets that most documents are in have half of the styles, and all others the other half.
    """
    source = random.Random(f"clean {seed // SEEDS_PER_BLOCK}")
    font, size_pt, look = _pick(source, _CLEAN_SHARES), _pick(source, SIZES_PT), world_style(seed)
    return Style(font=font, size_pt=size_pt, dpi=round(look.dpi * look.size_pt / size_pt))


def _pick(source: random.Random, values: Sequence[T]) -> T:
    return values[int(source.random() * len(values))]


def _sometimes(
    source: random.Random, allowed: bool, chance: float, low: float, high: float, *, otherwise: float = 0
) -> float:
    # Both numbers are always drawn, so that one choice does not shift the others.
    happens, value = source.random() < chance, low + (high - low) * source.random()
    return value if allowed and happens else otherwise


def preamble(style: Style) -> str:
    """Write the document class and the packages of a style.

    Raises:
        I2LError: if there is no such font set or size.
    """
    if style.font not in FONTS and style.font not in UNICODE_FONTS:
        raise I2LError(
            f"No font set is called {style.font!r}; choose one of: {', '.join([*FONTS, *UNICODE_FONTS])}."
        )
    if style.size_pt not in SIZES_PT:
        raise I2LError(f"Formulas are set in {', '.join(map(str, SIZES_PT))} pt, not in {style.size_pt} pt.")
    document_class = "article" if style.size_pt in _STANDARD_SIZES_PT else "extarticle"
    first = rf"\documentclass[{style.size_pt}pt]{{{document_class}}}"
    if style.font in UNICODE_FONTS:
        signs, words = UNICODE_FONTS[style.font]
        words = _MAIN_FONT.replace("@FAMILY@", words) if words else ""
        return "\n".join([first, _MATH_PACKAGES, _UNICODE_PACKAGES.replace("@SIGNS@", signs), words])
    return "\n".join(
        [
            first,
            _MATH_PACKAGES,
            FONTS[style.font],
            "" if style.font == PAPER.font else _FEW_FAMILIES,
            r"\usepackage{bm,mathrsfs}",
        ]
    )
