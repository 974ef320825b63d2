"""Pictures in which nothing looks like a formula are errors that say so; formulas are not refused."""

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFilter
from typer.testing import CliRunner

from i2l import I2LError, ImageError, NotAFormulaError, Reader
from i2l.cli import app
from i2l.images.ink import MAX_DEEP_SHARE, deep_share, is_grain
from i2l.inference.reading import find_nonsense
from tests.images.other_pictures import KINDS, other_pictures
from tests.inference.conftest import draw_formula

EXAMPLES = Path(__file__).parents[2] / "examples"
# Errors among ten pictures of each kind, at least. Stripes may pass for `=`, a face for `\odot`.
LEAST = {
    "gradient": 8,
    "grain": 9,
    "texture": 6,
    "shape": 10,
    "scene": 7,
    "icon": 2,
    "empty page": 10,
}


@pytest.fixture(scope="module")
def reader():
    return Reader(threads=1, max_tokens=150)  # what is no formula may be read to the last token allowed


def ramp(height, width):
    return np.broadcast_to(np.linspace(0, 255, width), (height, width)).astype(np.uint8)


def photograph(seed):
    """Sky and ground with the light of a lens that darkens the corners."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[-1:1:200j, -1:1:300j]
    light = 230 - 90 * (x**2 + y**2) - 60 * (y > 0.2 * np.sin(3 * x))
    return np.clip(light + random.normal(0, 4, light.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize(
    "picture",
    [ramp(100, 400), ramp(400, 100).T, 255 - ramp(60, 60), photograph(0), photograph(1)],
    ids=["ramp", "tall ramp", "small ramp", "photograph", "another"],
)
def test_shades_and_photographs_are_refused(reader, picture):
    with pytest.raises(ImageError, match=r"does not look like a formula|nothing stands out"):
        reader.read(picture)


@pytest.mark.slow
def test_most_pictures_of_other_things_are_refused(reader):
    named = other_pictures(10, seed=5)
    found = reader.read_many([picture for _, picture in named], errors="return")
    refused = Counter(
        name.rpartition(" ")[0]
        for (name, _), reading in zip(named, found, strict=True)
        if isinstance(reading, I2LError)
    )
    assert set(LEAST) == set(KINDS)
    assert {kind: refused[kind] for kind in LEAST if refused[kind] < LEAST[kind]} == {}


def test_grain_is_told_by_its_ink(reader):
    """No model is asked: one that is sure of nonsense read thousands of specks as a matrix."""
    pictures = dict(other_pictures(20, seed=5))
    grains = [pictures[f"grain {number}"] for number in (3, 6)]
    for grain in grains:
        with pytest.raises(NotAFormulaError, match="only grain"):
            reader.prepare(grain)
        assert reader.with_options(check=False).prepare(grain)
        assert reader.prepare(grain, scale=1.0), "who says the scale says that it is a formula"


def test_formulas_among_specks_are_no_grain(reader):
    """As a scan may have them: two hundred specks, or of thousands of pieces a few that are single pixels."""
    random = np.random.default_rng(0)
    page = np.pad(np.tile(draw_formula("x ^ { 2 } = y", size=60), (4, 3)), 20, constant_values=255)
    rows, columns = random.integers(page.shape[0], size=200), random.integers(page.shape[1], size=200)
    page[rows, columns] = 0
    assert not is_grain(page < 128)
    squares = np.zeros((400, 400), bool)
    for shift in (0, 1):
        squares[shift::6, ::6] = squares[shift::6, 1::6] = True
    squares[::60, 3::6] = True
    assert not is_grain(squares)
    squares[::6, 3::6] = True
    assert is_grain(squares)


def signs():
    """Short things that a person may well crop, plain, blurred and as photographs show them."""
    for formula in ("a", "x ^ { 2 } = y", "c _ { 2 } + x"):
        for size in (30, 90):
            plain = draw_formula(formula, size=size)
            yield f"{formula} {size}", plain
            blurred = Image.fromarray(plain).filter(ImageFilter.GaussianBlur(size / 20))
            yield f"{formula} {size} blurred", np.asarray(blurred)
            yield f"{formula} {size} in the shade", draw_formula(formula, size=size, ink=60, paper=180)
    for name, height, width in (("minus", 3, 30), ("bar", 60, 4), ("thick bar", 30, 200), ("dot", 12, 12)):
        page = np.full((height + 40, width + 40), 255, np.uint8)
        page[20:-20, 20:-20] = 0
        yield name, page


def test_signs_are_not_refused(reader):
    named = dict(signs())
    readings = reader.read_many(named.values(), errors="return")
    refused = [name for name, reading in zip(named, readings, strict=True) if isinstance(reading, I2LError)]
    assert refused == []


def test_the_examples_are_not_refused(reader):
    assert len(reader.read_many(EXAMPLES)) == 8


def test_the_check_can_be_left_out(reader):
    board = np.where((np.arange(300)[:, None] // 20 + np.arange(300) // 20) % 2, 255, 0).astype(np.uint8)
    with pytest.raises(NotAFormulaError):
        reader.read(board)
    assert reader.with_options(check=False).read(board).tokens


def test_the_command_says_so(tmp_path):
    Image.fromarray(photograph(0)).save(tmp_path / "photo.png")
    result = CliRunner().invoke(app, ["read", str(tmp_path / "photo.png")])
    assert result.exit_code == 1
    assert result.stdout == "\n"
    assert "does not look like a formula" in result.stderr


def test_depth_of_strokes():
    page = np.zeros((200, 200), np.uint8)
    page[20:180, 90:110] = 255  # a stroke
    assert deep_share(page, symbol_px=160) == 0
    page[20:180, 20:180] = 255  # an area, of large signs and of small ones
    assert deep_share(page, symbol_px=40) > MAX_DEEP_SHARE
    assert deep_share(page, symbol_px=8) > MAX_DEEP_SHARE


def test_a_page_of_dots_is_refused_and_a_sure_matrix_of_zeros_is_not(reader):
    dots = np.full((400, 400), 255, np.uint8)
    for row in range(20, 390, 24):
        for column in range(20, 390, 24):
            dots[row : row + 6, column : column + 6] = 0
    with pytest.raises(NotAFormulaError):
        reader.read(dots)
    zeros = reader.with_options(check=False).read(dots)
    row = ["0", *["&", "0"] * 7, r"\\"]
    matrix = [r"\begin{matrix}", *row * 8, r"\end{matrix}"]
    sure = dataclasses.replace(
        zeros, tokens=matrix, token_probabilities=np.full(len(matrix), 0.99), confidence=0.6, log_prob=-0.5
    )
    assert find_nonsense(sure) is None
    assert isinstance(find_nonsense(dataclasses.replace(sure, confidence=0.001)), NotAFormulaError)
