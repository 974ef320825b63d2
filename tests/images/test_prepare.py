import dataclasses
import io
import math

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from i2l.errors import I2LError
from i2l.images.ink import extract_ink
from i2l.images.open import EmptyImageError
from i2l.images.prepare import (
    ImageTooLargeError,
    NotAFormulaError,
    PreparedImage,
    choose_region,
    prepare_image,
)

CANVAS = (130, 1090)


def draw(text="x+y=1", *, size=32, ink=(0, 0, 0), paper=(255, 255, 255), margin=12, mode="RGB"):
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (right - left + 2 * margin, bottom - top + 2 * margin), paper)
    ImageDraw.Draw(image).text((margin - left, margin - top), text, ink, font)
    return image.convert(mode)


def prepared(image, **options):
    (result,) = prepare_image(image, canvas_shape=CANVAS, **({"scale": 1.0} | options))
    return result


REFERENCE = prepared(draw()).pixels


def difference(pixels):
    assert pixels.shape == REFERENCE.shape
    return np.abs(pixels.astype(int) - REFERENCE).max()


def looks_the_same(pixels):
    """Few colours lose the faintest pixels, so the crop may be a little smaller."""
    height, width = REFERENCE.shape
    assert height - 2 <= pixels.shape[0] <= height
    assert width - 2 <= pixels.shape[1] <= width
    return abs((pixels < 128).sum() - (REFERENCE < 128).sum()) < 0.1 * (REFERENCE < 128).sum()


def test_black_on_white_is_cropped_and_not_changed():
    image = draw()
    result = prepared(image)
    grey = np.asarray(image.convert("L"))
    rows, columns = np.nonzero(grey < 255)
    expected = grey[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
    np.testing.assert_array_equal(result.pixels, expected)
    assert (result.left_px, result.top_px) == (columns.min(), rows.min())
    assert result.file_size_px == image.size


@pytest.mark.parametrize("mode", ["L", "RGBA", "LA", "CMYK", "YCbCr", "HSV", "I", "F"])
def test_modes(mode):
    assert difference(prepared(draw(mode=mode)).pixels) <= 4


@pytest.mark.parametrize("mode", ["1", "P"])
def test_few_colours(mode):
    assert looks_the_same(prepared(draw(mode=mode)).pixels)


def test_sixteen_bits():
    grey = np.asarray(draw(mode="L")).astype(np.uint16) * 257
    assert difference(prepared(Image.fromarray(grey)).pixels) <= 1
    assert difference(prepared(grey).pixels) <= 1


def test_arrays():
    grey = np.asarray(draw(mode="L"))
    assert difference(prepared(grey).pixels) == 0
    assert difference(prepared(grey / 255.0).pixels) <= 1
    assert difference(prepared(np.asarray(draw())).pixels) == 0
    assert difference(prepared(grey[:, :, None]).pixels) == 0


@pytest.mark.parametrize(
    ("ink", "paper"),
    [
        ((255, 255, 255), (0, 0, 0)),
        ((230, 230, 230), (30, 30, 30)),
        ((0, 0, 160), (250, 240, 200)),
        ((90, 90, 90), (255, 255, 255)),
        ((180, 0, 0), (0, 140, 0)),  # the same grey
    ],
)
def test_colours(ink, paper):
    assert difference(prepared(draw(ink=ink, paper=paper)).pixels) <= 60


@pytest.mark.parametrize("ink", [0, 255])
def test_transparent_paper(ink):
    alpha = Image.fromarray(255 - np.asarray(draw(mode="L")))
    image = Image.merge("RGBA", [*[Image.new("L", alpha.size, ink)] * 3, alpha])
    assert difference(prepared(image).pixels) <= 1
    palette = io.BytesIO()
    image.quantize(32).save(palette, "PNG")
    assert looks_the_same(prepared(palette.getvalue()).pixels)


def test_camera_rotation():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    file = io.BytesIO()
    draw().transpose(Image.Transpose.ROTATE_90).save(file, "PNG", exif=exif)
    result = prepared(file.getvalue())
    assert difference(result.pixels) == 0
    assert result.file_size_px == draw().size


def test_first_frame_of_an_animation():
    file = io.BytesIO()
    frames = [draw(mode="L"), Image.new("L", draw().size, 255)]
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    assert difference(prepared(file.getvalue()).pixels) <= 2


def test_photograph_with_a_shadow_and_grain():
    image = draw(size=48, margin=60, mode="L")
    pixels = np.asarray(image).astype(float)
    shadow = np.linspace(1.0, 0.55, pixels.shape[1])[None, :]
    noisy = (60 + 0.7 * pixels) * shadow + np.random.default_rng(0).normal(0, 4, pixels.shape)
    file = io.BytesIO()
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=70)
    found = prepared(file.getvalue())
    clean = prepared(image)
    assert abs(found.pixels.shape[0] - clean.pixels.shape[0]) <= 4
    assert abs(found.pixels.shape[1] - clean.pixels.shape[1]) <= 4
    assert np.median(found.pixels) == 255


def shaded(image, *, grain, seed=0):
    """As a camera sees a page: less light to the right, and noise."""
    pixels = np.asarray(image.convert("L")).astype(float)
    shadow = np.linspace(1.0, 0.55, pixels.shape[1])[None, :]
    noisy = (60 + 0.7 * pixels) * shadow + np.random.default_rng(seed).normal(0, grain, pixels.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def test_thick_strokes_of_a_large_photograph_are_ink_all_through():
    """The cells in which light is measured grow with the picture, else strokes would pass for shadows."""
    image = Image.new("L", (1600, 1200), 255)
    ImageDraw.Draw(image).rectangle((300, 590, 1300, 625), 0)
    found = extract_ink(shaded(image, grain=4))
    assert np.median(found[600:615, 400:1200]) > 200
    assert np.median(found[:500]) == 0


def test_a_grainy_photograph_may_be_mirrored():
    """What smooths its grain favours no side."""
    image = shaded(draw(size=48, margin=64).crop((0, 0, 320, 160)), grain=40)  # whole cells of every kind
    found = extract_ink(image)
    for turned, back in (
        (Image.Transpose.FLIP_LEFT_RIGHT, np.fliplr),
        (Image.Transpose.FLIP_TOP_BOTTOM, np.flipud),
    ):
        assert np.array_equal(back(extract_ink(image.transpose(turned))), found)


def test_empty():
    for image in (
        Image.new("L", (50, 50), 255),
        Image.new("RGBA", (9, 9), (0, 0, 0, 0)),
        Image.new("1", (1, 1)),
    ):
        with pytest.raises(EmptyImageError, match="empty"):
            prepared(image)
    with pytest.raises(EmptyImageError):
        prepared(Image.fromarray(np.random.default_rng(0).integers(120, 130, (60, 60)).astype(np.uint8)))


def test_not_a_formula():
    random = np.random.default_rng(0)
    with pytest.raises(NotAFormulaError):
        prepare_image(random.integers(0, 2, (900, 900)).astype(np.uint8) * 255, canvas_shape=CANVAS)
    disc = Image.new("L", (300, 300), 255)
    ImageDraw.Draw(disc).ellipse((0, 0, 299, 299), 0)
    with pytest.raises(NotAFormulaError):
        prepare_image(disc, canvas_shape=CANVAS, scale=0.4)


def test_too_large_is_shrunk_a_little_or_refused():
    wide = draw("abcdefgh" * 9, size=32)
    result = prepared(wide)
    assert result.pixels.shape[1] <= 1088
    assert 0.6 < result.scale < 1
    with pytest.raises(ImageTooLargeError, match="Crop"):
        prepared(draw("abcdefgh" * 20, size=32))


def test_a_box_goes_back_to_the_file():
    image = draw("abc", size=64, margin=20)
    result = prepared(image, scale=0.5)
    height, width = result.pixels.shape
    left, top, right, bottom = result.to_file((0, 0, width, height))
    found = np.asarray(image.convert("L"))[round(top) : round(bottom), round(left) : round(right)]
    rows, columns = np.nonzero(np.asarray(image.convert("L")) < 200)
    assert abs(left - columns.min()) <= 2
    assert abs(bottom - rows.max()) <= 3
    assert (found < 128).any()
    assert PreparedImage(result.pixels, 2.0, 10, 20, (99, 99)).to_file((2, 4, 6, 8)) == (11, 22, 13, 24)


def test_a_box_of_the_file_comes_to_the_pixels():
    """Asked for when a reading is laid over its picture: the other way round than boxes go back."""
    result = PreparedImage(REFERENCE, 0.5, 10, 20, (99, 99))
    assert result.from_file((12, 24, 16, 30)) == (1, 2, 3, 5)
    assert result.to_file(result.from_file((12, 24, 16, 30))) == (12, 24, 16, 30)


def test_large_pictures_are_made_smaller_first():
    image = draw("abc", size=900, margin=500, mode="L")
    assert image.width * image.height > 4_000_000
    results = prepare_image(image, canvas_shape=CANVAS)
    assert all(result.pixels.shape[0] < 128 for result in results)
    height, width = results[-1].pixels.shape
    left, _, _, bottom = results[-1].to_file((0, 0, width, height))
    rows, columns = np.nonzero(np.asarray(image) < 128)
    assert abs(left - columns.min()) < 25
    assert abs(bottom - rows.max()) < 25


FORMULAS = [
    r"\frac { 1 } { 2 } \int _ { 0 } ^ { \infty } d x \, e ^ { - x ^ { 2 } } = \sqrt { \pi }",
    r"\sum _ { n = 1 } ^ { \infty } \frac { 1 } { n ^ { 2 } } = \frac { \pi ^ { 2 } } { 6 }",
    r"\left( \begin{array} { c c } { a } & { b } \\ { c } & { d } \\ \end{array} \right) x = y",
    r"\partial _ { \mu } F ^ { \mu \nu } = J ^ { \nu } , \quad \nabla \cdot B = 0",
    r"\langle \psi | \hat { H } | \psi \rangle \geq E _ { 0 }",
    r"S = \int d ^ { 4 } x \sqrt { - g } \left( R + \frac { 1 } { 2 } \partial _ { \mu } \phi \right)",
    r"x ^ { 2 } + y ^ { 2 } = z ^ { 2 }",
    r"\Gamma ( z ) = \operatorname* { l i m } _ { n \rightarrow \infty } \frac { n ! } { z ( z + n ) }",
    r"A _ { i j } = B _ { i k } C _ { k j } + \delta _ { i j }",
]


@pytest.fixture(scope="module")
def rendered():
    from i2l.rendering.render import render_formulas
    from i2l.rendering.styles import PAPER

    return {
        dpi: [
            result.pixels for result in render_formulas(FORMULAS, style=dataclasses.replace(PAPER, dpi=dpi))
        ]
        for dpi in (70, 100, 150, 200, 300, 400)
    }


@pytest.mark.tex
def test_what_the_renderer_draws_is_prepared(rendered):
    for pixels in rendered[200]:
        (own,) = (form for form in prepare_image(pixels, canvas_shape=CANVAS) if form.scale == 1)
        np.testing.assert_array_equal(own.pixels, pixels)


@pytest.mark.tex
@pytest.mark.parametrize("dpi", [70, 100, 150, 300, 400])
def test_pictures_of_any_size_come_to_the_scale_of_the_model(rendered, dpi):
    """The estimate is off by a tenth (see benchmarks/scale.py), more on formulas of few symbols."""
    errors = []
    for pixels, reference in zip(rendered[dpi], rendered[200], strict=True):
        margin = np.pad(pixels, 15, constant_values=255)
        last = prepare_image(margin, canvas_shape=CANVAS)[-1]
        errors.append(math.log(last.pixels.shape[1] / reference.shape[1]))
    assert abs(np.median(errors)) < 0.12, errors
    assert np.mean(np.abs(errors) < 0.25) > 0.7, errors


def test_integrals_and_sums_do_not_pass_for_letters_only():
    """Where every eighth sign is tall, a lower percentile gives the size of letters, which is tried too."""
    pixels = np.full((60, 500), 255, np.uint8)
    for place in range(24):
        height, width = (26, 12) if place % 8 == 0 else (10, 9)
        pixels[20 : 20 + height, 10 + 20 * place : 10 + 20 * place + width] = 0
        pixels[22 : 18 + height, 13 + 20 * place : 7 + 20 * place + width] = 255  # letters are strokes
    scales = [form.scale for form in prepare_image(pixels, canvas_shape=CANVAS)]
    assert scales[-1] < 1.3  # by the tall ones the picture is nearly at the scale of the model
    assert min(abs(math.log(scale / (21.6 / 10))) for scale in scales) < 0.2


@pytest.mark.tex
def test_a_blurred_zoom_is_estimated_by_the_size_of_symbols(rendered):
    errors = []
    for pixels in rendered[150]:
        zoomed = Image.fromarray(np.pad(pixels, 20, constant_values=255)).resize(
            (2 * pixels.shape[1] + 80, 2 * pixels.shape[0] + 80)
        )
        last = prepare_image(zoomed.filter(ImageFilter.GaussianBlur(1)), canvas_shape=CANVAS)[-1]
        errors.append(math.log(last.scale * 300 / 200))
    assert abs(np.median(errors)) < 0.2, errors


def test_faint_grain_is_not_ink():
    pixels = np.asarray(draw(mode="L")).astype(int)
    grain = np.random.default_rng(1).normal(0, 3, pixels.shape)
    noisy = np.clip(pixels * 0.9 + 10 + grain, 0, 255).astype(np.uint8)
    ink = extract_ink(Image.fromarray(noisy))
    assert (ink == 0).mean() > 0.5


@pytest.mark.parametrize("size", [(26, 2), (2, 33), (260, 20)])
def test_a_rule_by_itself_is_not_blown_up(size):
    """A minus: its height says nothing."""
    image = Image.new("L", (size[0] + 40, size[1] + 40), 255)
    ImageDraw.Draw(image).rectangle((20, 20, 19 + size[0], 19 + size[1]), 0)
    for result in prepare_image(image, canvas_shape=CANVAS):
        assert max(result.pixels.shape) <= 40


@pytest.mark.parametrize("turned", [False, True])
def test_a_bracket_cropped_to_its_ink_is_ink_on_white(turned):
    bracket = np.full((34, 6), 255, dtype=np.uint8)
    bracket[:, :2], bracket[:2], bracket[-2:], bracket[:, 2] = 0, 90, 90, 160
    picture = bracket.T if turned else bracket
    assert np.array_equal(extract_ink(Image.fromarray(picture)), 255 - picture)


@pytest.mark.parametrize("levels", [255, 4095, 65535])
def test_grey_of_any_depth(levels):
    grey = np.asarray(draw(mode="L")).astype(np.uint16)
    deep = Image.fromarray((grey.astype(int) * levels // 255).astype(np.uint16))
    np.testing.assert_allclose(extract_ink(deep).astype(int), 255 - grey.astype(int), atol=1)


@pytest.mark.parametrize("scale", [0, -1, math.inf, math.nan])
def test_a_scale_that_is_none(scale):
    with pytest.raises(I2LError, match="above 0"):
        prepared(draw("abc"), scale=scale)


def page(left=70, top=40, size=(420, 200)):
    """A formula somewhere on a page, with another one below it."""
    image = Image.new("RGB", size, (255, 255, 255))
    image.paste(draw(), (left, top))
    image.paste(draw("a-b"), (left + 20, top + 80))
    return image


@pytest.mark.parametrize("region", [(60, 30, 260, 100), (60.5, 30.2, 259.5, 99.3)])
def test_a_region_is_read_as_a_picture_of_its_own(region):
    image = page()
    result = prepared(image, region=region)
    alone = prepared(image.crop((60, 30, 260, 100)))
    np.testing.assert_array_equal(result.pixels, alone.pixels)
    np.testing.assert_array_equal(result.pixels, REFERENCE)
    assert (result.left_px, result.top_px) == (alone.left_px + 60, alone.top_px + 30)
    assert result.file_size_px == image.size
    box = (1.0, 2.0, 5.0, 9.0)
    assert result.from_file(result.to_file(box)) == pytest.approx(box)


def test_every_pixel_that_a_region_touches_is_in_it():
    image = Image.new("L", (300, 120))
    assert choose_region(image, (60.5, 30.2, 259.1, 99.3)) == (60, 30, 260, 100)
    assert choose_region(image, (60, 30, 260, 100)) == (60, 30, 260, 100)
    assert choose_region(image, (-0.1, -9, 299.5, 120.5)) == (0, 0, 300, 120)


def test_a_region_beyond_the_edges_is_cut_there():
    image = page()
    whole, around = prepared(image), prepared(image, region=(-50, -3, 9000, 201))
    np.testing.assert_array_equal(whole.pixels, around.pixels)
    assert (whole.left_px, whole.top_px) == (around.left_px, around.top_px)


@pytest.mark.parametrize(
    "region", [(500, 0, 600, 50), (10, 10, 10, 50), (50, 60, 40, 90), (-9, 0, 0, 50), (0, 0, math.nan, 9)]
)
def test_a_region_that_holds_nothing_is_refused(region):
    with pytest.raises(I2LError, match="region"):
        prepared(page(), region=region)
    with pytest.raises(EmptyImageError):
        prepared(page(), region=(0, 0, 30, 30))


def test_a_region_of_a_large_page_keeps_its_resolution():
    large = page(left=1900, top=1500, size=(3000, 2400))
    result = prepared(large, region=(1890, 1490, 2090, 1560))
    np.testing.assert_array_equal(result.pixels, REFERENCE)
    assert prepared(large.crop((1890, 1490, 2090, 1560))).left_px + 1890 == result.left_px


def test_the_turn_of_a_camera_comes_before_the_region():
    exif = Image.Exif()
    exif[0x0112] = 6
    file = io.BytesIO()
    page().rotate(90, expand=True).save(file, "PNG", exif=exif)
    np.testing.assert_array_equal(prepared(file.getvalue(), region=(60, 30, 260, 100)).pixels, REFERENCE)
