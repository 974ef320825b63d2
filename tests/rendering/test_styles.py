"""Styles by seed, and what they do to pixels."""

import hashlib
import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from i2l.rendering.camera import degrade
from i2l.rendering.rasterize import PageImage
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import FONTS, PAPER, SEEDS_PER_BLOCK, SIZES_PT, Style, clean_style, world_style

PLAIN = np.full((20, 30), 255, dtype=np.uint8)
PLAIN[8:12, 5:25] = 0
STEADY = (1.0, 0.0, 0.0, -1.0, 0.0, 20.0)


def after(**changes):
    return degrade(PageImage(PLAIN, STEADY), replace(PAPER, **changes))


def test_the_paper_style_changes_nothing():
    assert np.array_equal(after().pixels, PLAIN)


def test_margins_move_the_matrix_along():
    image = after(margin_left_px=3, margin_top_px=4, margin_right_px=5, margin_bottom_px=6)
    assert image.pixels.shape == (30, 38)
    assert np.array_equal(image.pixels[4:24, 3:33], PLAIN)
    assert image.matrix[4:] == (3.0, 24.0)


def test_shades():
    pixels = after(ink=40, paper=230).pixels
    assert set(np.unique(pixels)) == {40, 230}


def test_blur_keeps_the_mean_and_flat_paper():
    pixels = after(blur_px=1.0).pixels
    assert abs(pixels.mean() - PLAIN.mean()) < 1
    assert pixels[0, 0] == 255
    assert 0 < pixels[7, 10] < 255


def test_noise_has_its_deviation_and_its_seed():
    grey = PageImage(np.full((200, 200), 128, dtype=np.uint8), STEADY)
    one, same, other = (
        degrade(grey, replace(PAPER, noise=5.0, noise_seed=seed)).pixels.astype(int) for seed in (1, 1, 2)
    )
    assert abs(one.mean() - 128) < 0.2
    assert 4.8 < one.std() < 5.2
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_jpeg_is_lossy_and_keeps_the_shape():
    pixels = after(jpeg_quality=30).pixels
    assert pixels.shape == PLAIN.shape
    assert not np.array_equal(pixels, PLAIN)


def test_the_same_bytes_on_every_machine():
    pixels = after(ink=20, paper=240, blur_px=0.8, noise=3.0, noise_seed=7).pixels
    assert hashlib.sha256(pixels.tobytes()).hexdigest()[:16] == "7589e86f96740f23"


def test_a_world_style_depends_on_its_seed_only():
    assert world_style(5) == world_style(5)
    assert len({world_style(seed) for seed in range(100)}) == 100
    block = {world_style(seed).tex_part() for seed in range(SEEDS_PER_BLOCK)}
    assert len(block) == 1
    assert world_style(999).dpi == 256  # whatever the version of Python


def test_world_styles_cover_the_world():
    styles = [world_style(seed) for seed in range(0, 60_000, 20)]
    assert {style.font for style in styles} == set(FONTS)
    assert {style.size_pt for style in styles} == set(SIZES_PT)
    assert all(style.display for style in styles)  # in a line of text the label would have to say so
    assert min(style.dpi for style in styles) < 75
    assert max(style.dpi for style in styles) > 290
    assert all(style.paper - style.ink >= 100 for style in styles)
    clean = [s for s in styles if not (s.rotation_deg or s.blur_px or s.noise or s.jpeg_quality)]
    assert 0.3 < len(clean) / len(styles) < 0.6


def test_clean_styles_have_fonts_and_sizes_and_no_blemish():
    styles = [clean_style(seed) for seed in range(0, 60_000, 20)]
    assert all(style == Style(font=style.font, size_pt=style.size_pt, dpi=style.dpi) for style in styles)
    assert {style.font for style in styles} == set(FONTS)
    usual = sum(style.font in ("computer-modern", "times", "palatino", "stix2") for style in styles)
    assert 0.45 < usual / len(styles) < 0.55
    assert min(style.dpi for style in styles) < 75
    assert max(style.dpi for style in styles) > 290
    assert len({clean_style(seed).tex_part() for seed in range(SEEDS_PER_BLOCK)}) == 1
    heights_px = [
        (look.dpi * look.size_pt, world_style(seed))
        for seed, look in zip(range(0, 60_000, 20), styles, strict=True)
    ]
    assert all(
        abs(px - world.dpi * world.size_pt) < 10 for px, world in heights_px
    )  # as large on the picture


def test_a_style_is_plain_json():
    style = world_style(77)
    assert Style(**json.loads(json.dumps(asdict(style)))) == style


@pytest.mark.tex
def test_each_formula_in_its_own_style():
    styles = [
        PAPER,
        Style(font="latin-modern", size_pt=14, bold=True),
        replace(PAPER, dpi=100),
        Style(display=False),
        PAPER,
    ]
    results = render_formulas([r"\frac{A}{\sum_x B}"] * 5, style=styles)
    shapes = [result.pixels.shape for result in results]
    assert shapes[0] == shapes[4]
    assert len(set(shapes)) == 4
    assert shapes[1][0] > shapes[0][0] > shapes[3][0]


@pytest.mark.tex
def test_rotation_turns_counter_clockwise():
    flat, turned = render_formulas(
        [r"\rule{100pt}{1pt}"] * 2, style=[PAPER, replace(PAPER, rotation_deg=2.0)]
    )
    assert turned.pixels.shape[0] > flat.pixels.shape[0] + 5
    left, right = turned.pixels[:, :20], turned.pixels[:, -20:]
    assert np.argmin(left.min(axis=1)) > np.argmin(right.min(axis=1))


@pytest.mark.tex
@pytest.mark.slow
def test_several_processes_give_the_same():
    formulas = [rf"x_{{{number}}}" for number in range(40)]
    one, two = (render_formulas(formulas, jobs=jobs) for jobs in (1, 2))
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(one, two, strict=True))
