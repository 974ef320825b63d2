"""What a camera did: the `Photo` of a style, and random ones; `camera` turns them into pixels."""

import random
from dataclasses import dataclass
from typing import Final

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
        """Give a value of the range with that chance, else 0; powers over 1 favour what is near to none."""
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
