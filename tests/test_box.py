"""The model in the box: small, whole, and able to read the examples, with no download and no torch."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from i2l import Reader
from i2l.files import CHECKSUMS
from i2l.formulas.commands import respell, without_outer_space
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.vocabulary import Vocabulary
from i2l.inference.boxes import UNREAD_LIMIT
from i2l.inference.decoding import Hypothesis
from i2l.inference.model_folder import BUNDLED, ModelError, bundled_models, check_model_folder, load_model
from i2l.inference.policy import Attempt
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER
from tests.damage import copy_folder, damages

MAX_BYTES = 32 * 2**20
EXAMPLES = Path(__file__).parent.parent / "examples"
LABELS = dict(line.split("\t") for line in (EXAMPLES / "labels.tsv").read_text().splitlines())


@pytest.fixture(scope="module")
def reader():
    return Reader(threads=1)


@pytest.fixture(scope="module")
def readings(reader):
    return {name: reader.read(EXAMPLES / name) for name in LABELS}


def drawn(formula):
    """What shows of a formula: neither the spelling of fonts, nor braces, nor space around it."""
    return [token for token in without_outer_space(respell(formula).split()) if token not in "{}"]


def test_it_is_small_and_says_what_it_is(reader):
    size = sum(path.stat().st_size for path in BUNDLED.rglob("*"))
    assert size < MAX_BYTES
    assert reader.model.path.name == bundled_models()[0] == "pinpoint"
    assert reader.model.calibration.error < 0.03
    card = (reader.model.path / "README.md").read_text()
    assert all(f"## {title}" in card for title in ("Data", "Scores", "Limits"))


@pytest.mark.parametrize("name", LABELS)
def test_it_reads_the_examples(readings, name):
    reading = readings[name]
    assert drawn(reading.formula) == drawn(LABELS[name])
    assert drawn(normalize_formula(reading.latex).formula) == drawn(LABELS[name])
    assert reading.finished
    assert 0.4 < reading.confidence <= 1  # the least sure one is a matrix, of which half are read right


@pytest.mark.parametrize("name", LABELS)
def test_its_boxes_follow_the_formula(readings, name):
    """Every visible token has a box, within the picture."""
    reading = readings[name]
    width, height = reading.prepared.file_size_px
    boxes = [box for box in reading.boxes if box is not None]
    assert len(boxes) >= sum(token.isalpha() for token in reading.tokens)
    for left, top, right, bottom in boxes:
        assert -1 <= left < right <= width + 1
        assert -1 <= top < bottom <= height + 1


def test_it_points_at_each_symbol(readings):
    """In the sans one, a root over two squares: `a` left of `b`, both under the root's sign."""
    reading = readings["6-sans.png"]
    boxes = {token: box for token, box in zip(reading.tokens, reading.boxes, strict=True) if box}
    assert boxes["a"][0] < boxes["+"][0] < boxes["b"][0]
    assert boxes["a"][2] <= boxes["+"][0] + 1
    assert boxes[r"\sqrt"][0] < boxes["a"][0]


def test_company_changes_no_reading(readings):
    """Last digits may differ with what else is read, and eight bits make levels of them."""
    together = Reader(threads=2).read_many([EXAMPLES / name for name in LABELS])
    for name, reading in zip(LABELS, together, strict=True):
        alone = readings[name]
        assert reading.tokens == alone.tokens
        np.testing.assert_allclose(reading.token_probabilities, alone.token_probabilities, atol=0.05)


@pytest.mark.tex
def test_it_reads_what_is_short(reader):
    formulas = ["2", "A", r"\pi", r"\Gamma", "x y", "a = b", r"\lambda _ { 1 }", "N = 4", "f ( x )", r"\hbar"]
    for formula, render in zip(formulas, render_formulas(formulas), strict=True):
        assert drawn(reader.read(render.pixels, scale=1).formula) == drawn(formula)


@pytest.mark.tex
def test_it_reads_signs_whose_pieces_say_nothing_of_their_size(reader):
    formulas = ["!", "[", r"\Xi", r"\doteq", r"\because", r"a \ldots", r"\sum"]
    for render, formula in zip(render_formulas(formulas), formulas, strict=True):
        assert drawn(reader.read(render.pixels).formula) == drawn(formula)


@pytest.mark.tex
def test_three_dots_by_themselves_are_read_as_three_dots(reader):
    (dots,) = render_formulas([r"\cdots"])  # how high they stand does not show, and their name neither
    assert reader.read(dots.pixels).formula in (r"\cdots", r"\ldots", ". . .")


@pytest.mark.tex
def test_it_reads_symbols_that_touch(reader):
    formulas = ["x ^ { t }", "x ^ { I }", r"x ^ { \wp }"]
    style = replace(PAPER, font="times")  # the exponent stands on the letter: there is one piece of ink
    for render, formula in zip(render_formulas(formulas, style=style), formulas, strict=True):
        assert drawn(reader.read(render.pixels).formula) == drawn(formula)


@pytest.fixture
def hypothesis(reader):
    """Make a hypothesis that looks at all of the image, or at nothing."""

    def make(tokens, probability, *, looks=True):
        steps = len(tokens) + 1
        return Hypothesis(
            token_ids=reader.model.vocabulary.encode(tokens),
            log_prob=np.log(probability),
            score=np.log(probability),
            token_log_probs=np.full(steps, np.log(probability) / steps, np.float32),
            attention=np.full((steps, *reader.model.config.grid), float(looks), np.float32),
            finished=True,
        )

    return make


@pytest.fixture
def ink(reader):
    return reader._policy._find_ink(reader.prepare(EXAMPLES / "1-paper.png")[-1])


def test_ways_to_write_the_same_count_together(reader, hypothesis, ink):
    """`x` with a space behind it is no other reading than `x`."""
    found = [hypothesis(["y"], 0.3), hypothesis(["x", r"\,"], 0.2), hypothesis(["x"], 0.25)]
    best, other = reader._assembly.candidates(found, ink)
    assert (best.latex, best.tokens, other.latex) == ("x", ("x",), "y")
    assert np.exp(best.log_prob) == pytest.approx(0.45)


def test_what_leaves_ink_out_comes_last(reader, hypothesis, ink):
    found = [hypothesis(["y"], 0.9, looks=False), hypothesis(["x"], 0.1)]
    best, other = reader._assembly.candidates(found, ink)
    assert (best.latex, best.unread) == ("x", 0)
    assert (other.latex, other.unread) == ("y", 1)
    attempt = Attempt(ink, found, 0.0)
    lost, whole = (
        reader._assembly.confidence(reader._assembly.evidence(one, [], attempt)) for one in (other, best)
    )
    assert lost == reader.model.calibration(0) < whole


@pytest.mark.parametrize("dpi", [120, 200])
def test_it_leaves_no_line_out(reader, dpi):
    formula = (
        r"\begin{aligned} \int_0^1 x \, dx &= \left[ \frac{x^2}{2} \right]_0^1 \\ &= \frac12 \end{aligned}"
    )
    latex = normalize_formula(formula).latex
    (drawn,) = render_formulas([latex], style=replace(PAPER, size_pt=10, dpi=dpi))
    reading = reader.read(drawn.pixels)
    assert reading.unread < UNREAD_LIMIT
    assert reading.tokens.count(r"\frac") == reading.tokens.count("=") == 2


@pytest.mark.tex
def test_it_reads_several_lines_a_matrix_and_rare_signs(reader):
    formulas = [
        r"\begin{aligned} a &= b + c \\ &= d - e \\ &\leq f \end{aligned}",
        r"A = \begin{pmatrix} 1 & 0 & 2 \\ 0 & x & y \end{pmatrix}",
        r"a \div b = c \therefore d",
        r"f(x) = \begin{cases} x & x \geq 0 \\ -x & x < 0 \end{cases}",
    ]
    canonical = [normalize_formula(formula) for formula in formulas]
    for one, render in zip(canonical, render_formulas([one.latex for one in canonical]), strict=True):
        assert drawn(reader.read(render.pixels).formula) == drawn(one.formula)


def test_it_needs_no_torch():
    script = (
        "import sys; sys.modules['torch'] = None; from i2l import Reader;"
        f"print(Reader().read({str(EXAMPLES / '6-sans.png')!r}).latex)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(r"\sqrt{a^{2} + b^{2}}")


def test_its_checksums_are_those_of_its_files():
    """Whoever changes a file of the box writes them again: i2l.files.write_checksums(folder)."""
    for name in bundled_models():
        check_model_folder(BUNDLED / name)
        assert (BUNDLED / name / CHECKSUMS).is_file()


def test_whatever_is_damaged_in_a_model_is_named(tmp_path):
    folder = copy_folder(BUNDLED / "pinpoint", tmp_path / "model")
    names = set()
    for name in damages(folder):
        names.add(name)
        with pytest.raises(ModelError) as caught:
            check_model_folder(folder)
        assert name in str(caught.value) or name == CHECKSUMS
        assert "\n" not in str(caught.value)
    assert len(names) == 7
    vocabulary = Vocabulary.load(folder / "vocab.json")
    Vocabulary((*vocabulary.tokens[:2], *vocabulary.tokens[:1:-1])).save(folder / "vocab.json")
    with pytest.raises(ModelError, match=r"vocab\.json is damaged"):
        load_model(folder)
    (folder / CHECKSUMS).unlink()
    assert load_model(folder, threads=1).vocabulary.tokens[2] == vocabulary.tokens[-1], "as before"
