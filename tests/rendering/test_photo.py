"""Photographs of pages: what they do to pixels, where they put boxes, and whether their ink is found."""

import hashlib
import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from i2l.dataset.shards import style_from_text, style_text, styles_of_lines
from i2l.images.ink import extract_ink, ink_bounds
from i2l.rendering import camera
from i2l.rendering.camera import degrade, take_photo
from i2l.rendering.rasterize import PageImage
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER, SEEDS_PER_BLOCK, Photo, make_warp, photo_style, world_style

STEADY = (1.0, 0.0, 0.0, -1.0, 0.0, 60.0)
EM_PX = PAPER.dpi * PAPER.size_pt / 72


def page(width=400, height=60, seed=1):
    """A page of strokes and dots, without touching ones, as a formula has them."""
    image = Image.new("L", (width, height), 255)
    pen = ImageDraw.Draw(image)
    for left in range(6, width - 20, 24):
        top = 8 + (left * 7 + seed * 13) % (height - 40)
        pen.rectangle((left, top, left + 2, top + 22), 0)
        pen.rectangle((left + 6, top + 8, left + 16, top + 10), 0)
    return np.asarray(image)


PAGE = page()


def photograph(neighbour=lambda offset: None, ink=0, paper=255, **changes):
    style = replace(PAPER, ink=ink, paper=paper, photo=Photo(seed=5, **changes))
    return degrade(PageImage(PAGE, STEADY), style, neighbour)


def test_the_default_photograph_changes_nothing():
    assert np.array_equal(photograph().pixels, PAGE)


EFFECTS = [
    {"cut_top_em": 0.4},
    {"cut_bottom_em": 0.4},
    {"cut_left_em": 0.4},
    {"cut_right_em": 0.4},
    {"frame_sides": 6},
    {"ruling_mm": 5.0, "ruling": 60},
    {"ruling_mm": 5.0, "ruling": 60, "squared": False},
    {"back": 30},
    {"rotation_deg": 3.0},
    {"tilt_x_deg": 8.0},
    {"tilt_y_deg": 8.0},
    {"bend_em": 0.4, "bend_middle": 0.3},
    {"gradient": 0.4, "gradient_deg": 30.0},
    {"shadow": 0.4, "shadow_deg": 20.0, "shadow_place": 0.2, "shadow_soft": 0.05},
    {"vignette": 0.4},
    {"grain": 5.0},
    {"fibres": 10.0},
    {"moire": 10.0, "moire_px": 5.0, "moire_deg": 30.0},
    {"defocus_px": 1.5},
    {"defocus_px": 6.0},
    {"motion_px": 3.0, "motion_deg": 40.0},
    {"sharpen": 100},
    {"colour_noise": 3.0},
]


@pytest.mark.parametrize("effect", EFFECTS, ids=lambda effect: next(iter(effect)))
def test_every_effect_shows_and_is_the_same_each_time(effect):
    one, two = (
        photograph(neighbour=lambda offset: page(seed=offset), ink=30, paper=220, **effect).pixels
        for _ in range(2)
    )
    assert np.array_equal(one, two)
    assert not np.array_equal(one, photograph(ink=30, paper=220).pixels)
    assert one.min() < 150


def lightness_of_parts(effect):
    """Of the picture after an effect in 2 rows and 6 columns, and its size."""
    pixels = photograph(neighbour=lambda offset: page(seed=offset), ink=30, paper=220, **effect).pixels
    parts = [part.mean() for row in np.array_split(pixels, 2) for part in np.array_split(row, 6, axis=1)]
    return [*pixels.shape, *parts]


def test_effects_are_as_strong_as_they_always_were():
    """Datasets are stored as formulas and styles: the pictures that people trained on stay the same."""
    stored = (Path(__file__).parent / "photo_effects.txt").read_text().splitlines()
    assert len(stored) == len(EFFECTS)
    for effect, line in zip(EFFECTS, stored, strict=True):
        np.testing.assert_allclose(
            lightness_of_parts(effect), np.array(line.split(), dtype=float), atol=0.5, err_msg=str(effect)
        )


def test_seeds_mean_the_same_styles_in_every_version():
    styles = [make(seed) for make in (world_style, photo_style) for seed in range(0, 90_000, 311)]
    text = json.dumps([asdict(style) for style in styles], sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "bbe38cc41be9050e"


@pytest.mark.parametrize("tilts", [(8.0, 0.0), (0.0, 8.0), (-5.0, 6.0)])
def test_the_middle_of_a_page_stays_where_it_is_when_the_camera_tilts(tilts):
    photo = Photo(tilt_x_deg=tilts[0], tilt_y_deg=tilts[1], rotation_deg=3.0)
    warp = make_warp(photo, width=400, height=60, em_px=EM_PX)
    np.testing.assert_allclose(warp.forward @ [0, 0, 1], [0, 0, 1], atol=1e-12)


def test_no_field_of_a_photograph_is_left_out():
    used = {name for effect in EFFECTS for name in effect}
    assert used | {"seed", "gap_em"} == {field.name for field in fields(Photo)}


@pytest.mark.parametrize("seed", range(40))
def test_boxes_hold_the_marks_of_their_tokens(seed):
    photo = photo_style(seed).photo
    geometry = Photo(
        rotation_deg=photo.rotation_deg,
        tilt_x_deg=8 - seed / 2.5,
        tilt_y_deg=photo.tilt_y_deg,
        bend_em=0.4 if seed % 2 else -0.4,
        bend_middle=photo.bend_middle,
    )
    random = np.random.default_rng(seed)
    height = (80, 900)[seed % 3 == 0]
    marked = np.full((height, 500), 255, dtype=np.uint8)
    boxes = []
    for left in range(5, 490, 30):
        top, width = int(random.integers(2, height - 10)), int(random.integers(2, 14))
        boxes.append((left, top, left + width, top + 5))
        marked[top : top + 5, left : left + width] = 0
    pixels, warp = take_photo(
        marked, replace(PAPER, margin_left_px=4, margin_top_px=3), geometry, lambda _: None
    )
    for box in boxes:
        left, top, right, bottom = warp.box(box)
        assert 0 <= left < right <= pixels.shape[1]
        assert 0 <= top < bottom <= pixels.shape[0]
        reach = pixels[max(0, top - 6) : bottom + 6, max(0, left - 6) : right + 6] < 128
        found = ink_bounds(reach.astype(np.uint8))
        offset = np.array([max(0, left - 6), max(0, top - 6)] * 2)
        assert np.abs(np.array(found) + offset - (left, top, right, bottom)).max() <= 2


@pytest.mark.tex
def test_tokens_of_a_photograph_are_in_their_boxes():
    formulas = [r"\frac { a + b } { c } = \sqrt { x _ { i } }", r"\int _ { 0 } ^ { 1 } f ( t ) \, d t"]
    photo = Photo(rotation_deg=3.0, tilt_x_deg=6.0, tilt_y_deg=-8.0, bend_em=0.4)
    for result in render_formulas(formulas, style=replace(PAPER, margin_left_px=9, photo=photo), boxes=True):
        covered = np.zeros(result.pixels.shape, dtype=bool)
        for left, top, right, bottom in filter(None, result.boxes):
            covered[max(0, top - 2) : bottom + 2, max(0, left - 2) : right + 2] = True
            assert result.pixels[top:bottom, left:right].min() < 200
        assert result.pixels[~covered].min() > 200
        assert not covered.all()


def test_the_size_does_not_depend_on_the_neighbours():
    cut = {"cut_top_em": 0.5, "cut_left_em": 0.5, "gap_em": 0.6, "rotation_deg": 0.7, "back": 20}
    shapes = {
        photograph(neighbour=neighbour, **cut).pixels.shape
        for neighbour in (lambda _: None, lambda _: page(90, 50), lambda offset: page(900, 90, seed=offset))
    }
    assert len(shapes) == 1


@pytest.mark.parametrize("height", [12, 40, 200])
def test_lines_above_and_below_are_cut_off_by_the_edge(height):
    line = np.zeros((height, 300), dtype=np.uint8)
    pixels = photograph(neighbour=lambda _: line, cut_top_em=0.5, cut_bottom_em=0.5, gap_em=0.5).pixels
    room = round(EM_PX)
    assert pixels.shape[0] == PAGE.shape[0] + 2 * room
    assert np.array_equal(pixels[room:-room], PAGE)
    for outside in (pixels[:room], pixels[-room:]):
        shown = (outside == 0).any(axis=1).sum()
        assert shown <= 0.6 * EM_PX
        assert 0 < shown <= 0.62 * height
    assert (pixels[0] == 0).any()
    assert (pixels[-1] == 0).any()


def test_photo_styles_are_like_world_styles_for_tex():
    assert photo_style(5) == photo_style(5)
    assert len({photo_style(seed) for seed in range(100)}) == 100
    for seed in (0, 7, SEEDS_PER_BLOCK, 99_999):
        assert photo_style(seed).tex_part() == world_style(seed).tex_part()


def test_photo_styles_cover_what_cameras_do():
    styles = [photo_style(seed) for seed in range(0, 60_000, 20)]
    photos = [style.photo for style in styles]
    cut = [p for p in photos if p.cut_top_em or p.cut_bottom_em or p.cut_left_em or p.cut_right_em]
    assert 0.1 < len(cut) / len(photos) < 0.16
    assert 0.1 < np.mean([style.ink > style.paper for style in styles]) < 0.25
    assert 3.5 < max(p.rotation_deg for p in photos) <= 4
    assert 7 < max(p.tilt_x_deg for p in photos) <= 8
    for field in fields(Photo):
        assert len({getattr(photo, field.name) for photo in photos}) > 1, field.name
    assert all(abs(style.paper - style.ink) >= 40 for style in styles)


def test_a_photo_style_is_stored_as_plain_values():
    for seed in range(50):
        style = photo_style(seed)
        text = style_text(style)
        assert style_from_text(text) == style
        assert json.loads(text)["photo"].get("seed", 0) == seed
    assert "photo" not in style_text(world_style(3))
    assert asdict(world_style(3))["photo"] is None


def test_three_of_four_lines_of_the_recipe_are_photographs():
    styles = styles_of_lines("photo", seed=1, lines=range(40))
    assert sum(style.photo is not None for style in styles) == 30
    assert {style.tex_part() for style in styles} == {world_style(1 << 32).tex_part()}


def is_found(photo):
    """Whether the strokes of the page are dark in what is extracted, and everything else is white."""
    ink = extract_ink(Image.fromarray(photo))
    grown = np.asarray(Image.fromarray(255 - PAGE).filter(ImageFilter.MaxFilter(7))) > 0
    return (ink[PAGE < 50] > 100).mean() > 0.97 and (ink[~grown] > 0).mean() < 0.005


@pytest.mark.parametrize(
    "effect",
    [
        {"shadow": 0.5, "shadow_deg": 20.0, "shadow_place": 0.1, "shadow_soft": 0.06},
        {"shadow": 0.45, "shadow_deg": 70.0, "shadow_place": 0.3, "shadow_soft": 0.04},
        {"gradient": 0.45, "gradient_deg": 40.0, "vignette": 0.4, "grain": 4.0},
        {"gradient": 0.75, "gradient_deg": 5.0},
        {"grain": 6.0, "colour_noise": 3.0},
        {"moire": 9.0, "moire_px": 3.0, "moire_deg": 30.0},
        {"ruling_mm": 5.0, "ruling": 15, "gradient": 0.3},
    ],
    ids=lambda effect: next(iter(effect)),
)
@pytest.mark.parametrize(("ink", "paper"), [(20, 240), (60, 170), (210, 40), (150, 25)])
def test_ink_is_found_in_photographs(effect, ink, paper):
    style = replace(PAPER, ink=ink, paper=paper, noise=2.0, photo=Photo(seed=5, **effect))
    pixels, _ = take_photo(PAGE, style, style.photo, lambda _: None)
    assert is_found(pixels)


@pytest.mark.parametrize("length_px", [1.0, 2.0, 3.0])
def test_motion_smears_along_its_direction_and_nowhere_else(length_px):
    level, upright = (np.reshape(camera._streak(length_px, angle).filterargs[3], (5, 5)) for angle in (0, 90))
    assert level[[0, 1, 3, 4]].sum() == 0
    assert (upright == level.T).all()
    along = level[2] / level.sum()
    assert (along == along[::-1]).all()
    places = np.arange(5) - 2
    spread = (along * places**2).sum()  # of a line of that length, and of the pixel that it is spread over
    assert spread == pytest.approx(length_px**2 / 12 + 1 / 6, abs=0.06)


def test_a_thousand_photographs_keep_few_kernels():
    """Blurs are told apart by tenths of a pixel, so that the kernels of a long build take no memory."""
    photos = [photo_style(seed).photo for seed in range(0, 60_000, 20)]
    streaks = {
        id(one) for photo in photos for one in camera._lens(replace(photo, defocus_px=0, motion_deg=30))
    }
    discs = {id(one) for photo in photos for one in camera._lens(replace(photo, motion_px=0))}
    assert 20 < len(streaks) <= 10 * camera._MAX_MOTION_PX
    assert 10 < len(discs) <= 10 * camera._MAX_RADIUS_PX


def test_a_ruled_line_starts_at_its_pixel():
    sheet = camera._Sheet(np.full((4, 4), 255, np.uint8), (2, 2), (20, 30), em_px=20.0)
    sheet.draw_line(column=0)
    sheet.draw_line(row=7)
    dark = sheet.pixels < 255
    thickness = int(dark[0].sum())
    assert dark[:, :thickness].all()
    assert dark[7 : 7 + thickness].all()
    assert dark.sum() == thickness * (20 + 30 - thickness)
