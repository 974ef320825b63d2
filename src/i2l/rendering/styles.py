"""How a formula looks: the `Style` of a sample, the paper's own, and random ones for models of the world."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from i2l.errors import I2LError
from i2l.rendering.photo import Photo, draw_photo

T = TypeVar("T")

# The packages of each font set, and its share of the world's formulas in percent. The first four need only
# texlive-fonts-recommended and lmodern, the others texlive-fonts-extra and texlive-plain-generic. Left out:
# iwona and kurier have no \|; garamond is not free; concrete is not in Debian; libertine, cochineal and
# erewhon with newtxmath print a bold \mathfrak as roman.
_FONTS: Final = (
    ("computer-modern", 32, r"\usepackage{amssymb}"),
    ("latin-modern", 8, r"\usepackage{amssymb,lmodern}"),
    ("times", 8, r"\usepackage{amssymb,mathptmx}"),
    ("palatino", 4, r"\usepackage{amssymb,mathpazo}"),
    ("newtx", 6, r"\usepackage{newtxtext,newtxmath}"),
    ("newpx", 3, r"\usepackage{newpxtext,newpxmath}"),
    ("stix2", 6, r"\usepackage{stix2}"),
    ("utopia", 4, r"\usepackage{amssymb,fourier}"),
    ("libertinus", 4, r"\usepackage{amssymb,libertinus-type1,libertinust1math}"),
    ("euler", 3, r"\usepackage{amssymb,eulervm}"),
    ("kpfonts", 3, r"\usepackage{kpfonts}"),
    ("charter", 3, r"\usepackage[charter]{mathdesign}"),
    ("xcharter", 2, r"\usepackage{XCharter}\usepackage[charter]{newtxmath}"),
    ("century", 2, r"\usepackage{amssymb,fouriernc}"),
    ("baskerville", 2, r"\usepackage{baskervillef}\usepackage[baskerville]{newtxmath}"),
    ("antykwa", 2, r"\usepackage{amssymb}\usepackage[math]{anttor}"),
    ("mlmodern", 2, r"\usepackage{amssymb,mlmodern}"),
    ("bright", 2, r"\usepackage{amssymb,cmbright}"),
    ("arev", 2, r"\usepackage{amssymb,arev}"),
    ("noto", 2, r"\usepackage{notomath}"),
)
FONTS: Final = {name: packages for name, _, packages in _FONTS}
_FONT_SHARES: Final = [name for name, share, _ in _FONTS for _ in range(share)]
# mathtools draws braces over and under a little further off than amsmath does, so these stay as they were.
_MATH_PACKAGES: Final = (
    r"\usepackage{amsmath}\let\itlover\overbrace \let\itlunder\underbrace"
    r"\usepackage{mathtools,cancel}\let\overbrace\itlover \let\underbrace\itlunder"
)
# bm asks for families of its own, of which these sets leave too few.
_FEW_FAMILIES: Final = r"\newcommand\bmmax{0}\newcommand\hmmax{0}"
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


PAPER: Final = Style()

# Seeds of one block share what TeX does, so that their formulas can share a process.
SEEDS_PER_BLOCK: Final = 512


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
    if style.font not in FONTS:
        raise I2LError(f"No font set is called {style.font!r}; choose one of: {', '.join(FONTS)}.")
    if style.size_pt not in SIZES_PT:
        raise I2LError(f"Formulas are set in {', '.join(map(str, SIZES_PT))} pt, not in {style.size_pt} pt.")
    document_class = "article" if style.size_pt in _STANDARD_SIZES_PT else "extarticle"
    return "\n".join(
        [
            rf"\documentclass[{style.size_pt}pt]{{{document_class}}}",
            _MATH_PACKAGES,
            FONTS[style.font],
            "" if style.font == PAPER.font else _FEW_FAMILIES,
            r"\usepackage{bm,mathrsfs}",
        ]
    )
