"""Explanations as data and as pictures."""

import io
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from i2l.explain.drawings import (
    boxes_picture,
    boxes_svg,
    contact_sheet,
    explanation_page,
    image_url,
    scan_gif,
)
from i2l.explain.explanation import ExplanationError, build_explanation
from tests.explain.readings import FIELD, SYMBOLS, TOKENS, make_explanation


@pytest.mark.parametrize("zoom", [1, 3])
def test_boxes_are_in_pixels_of_the_file(zoom):
    explanation = make_explanation(zoom=zoom)
    assert [token.text for token in explanation.tokens] == [*TOKENS, "<eos>"]
    for step, token in enumerate(explanation.tokens):
        expected = SYMBOLS.get(step)
        assert token.visible == (expected is not None)
        assert token.box == (expected and pytest.approx([zoom * side for side in expected]))


def test_nothing_read_is_said():
    given = make_explanation()
    with pytest.raises(ExplanationError, match="nothing was read"):
        build_explanation(
            title="x", image=given.image, canvas=np.zeros((66, 322), np.uint8), latex="", tokens=[],
            probabilities=[], alternatives=[], attention=np.zeros((0, *FIELD.grid)), field=FIELD,
            placement=given.placement,
        )  # fmt: skip


def test_contact_sheet_has_a_panel_a_token_and_is_dark_where_the_model_looked():
    explanation = make_explanation()
    sheet = np.asarray(contact_sheet(explanation).convert("L"), np.float64)
    width = 2 * 180 + 20  # a panel is the image at 1.5 times its size, 360 pixels, and its margins
    height = 72 + 23 + 20
    assert sheet.shape == (3 * height, 4 * width)
    panels = sheet.reshape(3, height, 4, width).swapaxes(1, 2).reshape(12, height, width)[:, 33:105, 10:370]
    assert panels[0].min() < 40  # the image itself
    _, top, right, bottom = (int(1.5 * side) for side in SYMBOLS[5])
    own, other = panels[1 + 5], panels[1 + 0]
    beside = (slice(top, bottom), slice(right + 2, right + 8))  # paper next to the symbol
    assert own[beside].mean() < other[beside].mean() - 25


@pytest.mark.parametrize("zoom", [1, 3])
def test_on_the_canvas_margins_show_and_boxes_move_along(zoom):
    explanation = make_explanation(zoom=zoom)
    shown = explanation.on_canvas()
    assert shown.image.size == (322, 66), "all of it: every cell has attention"
    assert np.array_equal(np.asarray(shown.image), explanation.canvas)
    for step, token in enumerate(shown.tokens):
        expected = SYMBOLS.get(step)
        moved = expected and [side + offset for side, offset in zip(expected, (41, 9) * 2, strict=True)]
        assert token.box == (moved and pytest.approx(moved))
    panel = np.asarray(contact_sheet(shown, spread="nearest", columns=1, panel_width_px=322).convert("L"))
    panels = panel.reshape(len(TOKENS) + 2, 66 + 41, 322 + 20)[:, 31:97, 10:332]
    corner = panels[-1][1:33, 289:321]  # the last token looks at the upper right cell, white in the file
    assert corner.max() < 125 < 200 < panels[1][1:33, 289:321].min()


def test_on_the_canvas_only_what_the_model_can_look_at_is_shown():
    given = make_explanation()
    near = np.zeros(FIELD.grid, np.bool_)
    near[1, 2:8] = True
    seen = [replace(token, attention=np.where(near, token.attention, 0)) for token in given.tokens]
    explanation = replace(given, tokens=tuple(seen))
    assert explanation.on_canvas().image.size == (6 * 32, 33), "with the frame only where it is beside a cell"
    middle = explanation.on_canvas((40, 300))
    assert np.array_equal(np.asarray(middle.image), given.canvas[13:53, 11:311])


def test_scan_has_a_frame_a_token():
    with Image.open(io.BytesIO(scan_gif(make_explanation()))) as scan:
        assert scan.n_frames == len(TOKENS) + 1
        scan.seek(5)
        frame = np.asarray(scan.convert("RGB"), np.int64)
    _, top, right, _ = (2 * side + 10 for side in SYMBOLS[5])
    red, _, blue = frame[top:, right + 3 : right + 8][:20].reshape(-1, 3).mean(0)
    assert red > blue + 40  # warm where it looks
    red, _, blue = frame[20:40, -60:-20].reshape(-1, 3).mean(0)
    assert abs(red - blue) < 40


def test_boxes_as_svg_and_picture():
    explanation = make_explanation()
    drawing = ET.fromstring(boxes_svg(explanation))
    namespace = {"svg": "http://www.w3.org/2000/svg"}
    assert [text.text for text in drawing.findall(".//svg:text", namespace)] == ["a", "2", "+", "<b>&"]
    rectangles = [
        tuple(float(rectangle.get(name)) for name in ("x", "y", "width", "height"))
        for rectangle in drawing.findall("svg:g/svg:rect", namespace)
    ]
    assert rectangles == [(a, b, c - a, d - b) for a, b, c, d in SYMBOLS.values()]
    picture = np.asarray(boxes_picture(explanation).convert("RGB"), np.int64)
    assert (np.ptp(picture, axis=2) > 60).sum() > 500  # outlines in colour


def test_page_is_small_whatever_the_image_and_the_length():
    noise = np.random.default_rng(0).integers(0, 256, (2000, 3000, 3), np.uint8)
    url, shown = image_url(Image.fromarray(noise))
    assert len(url) < 330_000
    assert shown.width / shown.height == pytest.approx(1.5, rel=0.02)
    explanation = make_explanation()
    page = explanation_page(explanation)
    assert len(page.encode()) < 60_000
    assert "<formula>" not in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
