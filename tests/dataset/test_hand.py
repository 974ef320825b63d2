"""`i2l build --recipe hand`: inks and formulas become one dataset, in both forms the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
from i2l.dataset.format import DatasetError, DatasetReader, decode_stored
from i2l.dataset.model_view import open_split
from i2l.dataset.sources import RECIPES, InputError, ink_sources, text_sources
from i2l.dataset.work import BuildError
from i2l.images.prepare import prepare_image
from i2l.ink.hand import hand_look
from i2l.ink.strokes import write_inkml
from i2l.rendering.styles import PAPER
from tests.dataset.fakes import folder_bytes
from tests.ink.written import LABELS, row_of, small_inks

pytestmark = pytest.mark.tex

RECIPE = replace(RECIPES["hand"], min_token_count=1)
FORMULAS = [
    *(
        r"x ^ { 2 } + y = 1",
        r"\frac { a + b } { \sqrt { x } }",
        r"\sin x \to 1",
        r"\sum _ { a = 1 } ^ { 3 } x",
    ),
    *(
        r"\left( x \, + y \right)",
        r"x \bowtie y",
        r"\mathbf { x } + y",
        r"\partial y",
        r"a _ { 1 } - b _ { 2 }",
    ),
    *(
        r"\left( \frac { x } { a } \right) ^ { 2 }",
        r"\left( \begin{array} { r r } 1 & 2 \\ 3 & 1 \end{array} \right) = x",
    ),
]
CANVAS = (640, 1600)


def write_lines(path, inks):
    path.write_text("".join(json.dumps(ink.to_dict()) + "\n" for ink in inks))
    return path


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Inks to train on and to judge with, and formulas; the first ink shows what an ink of val shows."""
    folder = tmp_path_factory.mktemp("inputs")
    train = [row_of(list("x+y=1"), name="s-1", latex="$x+y=1$", seed=3)]
    train += [
        row_of(["x", "-", "a", "2"], name=f"s-{n}", latex=r"\frac{x}{a2}" if n % 2 else "x-a2", seed=n)
        for n in (2, 3)
    ]
    train += [replace(ink, latex=" ".join(LABELS)) for ink in small_inks(2)]
    val = [
        row_of(list("x+y=1"), name="v-1", latex="$x+y=1$", seed=9),
        row_of(list("a+b"), name="v-2", latex="a+b"),
    ]
    (folder / "formulas.txt").write_text("\n".join(FORMULAS))
    return {
        "inks": write_lines(folder / "train.jsonl", train),
        "val": write_lines(folder / "val.jsonl", val),
        "formulas": folder / "formulas.txt",
    }


def build(inputs, out, **changes):
    sources = ink_sources([inputs["inks"]], [inputs["formulas"]], copies=3, val=inputs["val"])
    options = replace(BuildOptions(recipe=RECIPE, part_lines=200), **changes)
    return build_dataset(sources, out=out, options=options, engine=EngineOptions(jobs=1), quiet=True)


@pytest.fixture(scope="module")
def both(inputs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("built")
    return build(inputs, folder / "pixels"), build(inputs, folder / "compact", compact=True)


def test_both_forms_hold_the_same_pictures_and_boxes(both):
    pixels, compact = both
    for name in ("train", "val"):
        one, other = pixels.split(name), compact.split(name)
        everything = range(len(one))
        assert one.ids == other.ids
        assert one.formulas == other.formulas
        assert one.boxes(everything) == other.boxes(everything)
        for first, second in zip(one.pixels(everything), other.pixels(everything), strict=True):
            np.testing.assert_array_equal(first, second)
    compact.verify()


def test_the_same_build_gives_the_same_bytes(both, inputs, tmp_path):
    again = build(inputs, tmp_path / "again", compact=True)
    assert folder_bytes(again.path) == folder_bytes(both[1].path)


def test_inks_are_drawn_plainly_first_and_then_other_ways(both):
    train, val = both[0].split("train"), both[0].split("val")
    kinds = dict(zip(train.ids, train.styles, strict=True))
    assert kinds["train.jsonl:s-2"] == "hand:0"
    assert kinds["train.jsonl:s-2#2"] != kinds["train.jsonl:s-2#3"] != "hand:0"
    assert set(val.styles) == {"hand:0"}
    assert len(val) == 2


def test_every_formula_has_its_fate_and_the_card_says_why(both):
    card = both[0].card
    verdicts = card["verdicts"]["train"]
    assert verdicts["no-hand"] == 2
    assert verdicts["leak"] >= 3, "the ink that shows what one of val shows, three times"
    assert set(card["unwritten"]) == {r"no ink has \bowtie", r"no ink has \mathbf"}
    readme = (both[0].path / "README.md").read_text()
    assert r"no ink has \bowtie" in readme
    assert "CC BY-NC-SA" in readme
    assert r"`\partial`" in readme
    formulas = both[0].split("train").formulas
    assert "( x + y )" in formulas, "no \\left, no space"


def test_brackets_are_as_tall_as_what_they_hold(both):
    r"""The label has no \left, but TeX must see one, or all brackets are as low as letters."""
    train = both[0].split("train")
    formulas = train.formulas
    for formula, tall, low in [
        (r"( \frac { x } { a } ) ^ { 2 }", "(", "x"),
        (r"( \begin{matrix} { 1 } & { 2 } \\ { 3 } & { 1 } \\ \end{matrix} ) = x", "(", "2"),
    ]:
        index = formulas.index(formula)
        (boxes,) = train.boxes([index])
        heights = {
            token: box[3] - box[1]
            for token, box in zip(formula.split(), boxes, strict=True)
            if box is not None
        }
        assert heights[tall] > 1.6 * heights[low], formula


def test_boxes_of_inks_are_those_of_their_symbols(both):
    train = both[0].split("train")
    for index in [i for i, name in enumerate(train.ids) if name.startswith("train.jsonl:s-")]:
        (boxes,) = train.boxes([index])
        tokens = train.formulas[index].split()
        visible = [box for box in boxes if box is not None]
        assert len(visible) == 4, (tokens, boxes)
        height, width = train.sizes[index]
        assert all(0 <= b[0] < b[2] <= width and 0 <= b[1] < b[3] <= height for b in visible)
        (pixels,) = train.pixels([index])
        if train.styles[index] == "hand:0":
            for left, top, right, bottom in visible:
                assert (pixels[top:bottom, left:right] < 128).any()


def test_clean_handwriting_is_prepared_as_a_reader_prepares_it(both):
    split = both[0].split("train")
    prepared = open_split(both[0], "train", canvas_shape=CANVAS, jobs=1)
    assert prepared.left_out == []
    images = prepared.load_all()
    checked = 0
    for index, style in enumerate(split.styles):
        if hand_look(int(style.removeprefix("hand:"))).style == PAPER:
            (pixels,) = split.pixels([index])
            (expected,) = prepare_image(pixels, canvas_shape=CANVAS, scale=1.0, check=False)
            np.testing.assert_array_equal(images[index], expected.pixels)
            checked += 1
    assert checked > 5


def test_a_model_of_another_scale_gets_strokes_that_were_drawn_at_it(both):
    """Stored strokes are drawn anew, which shows more than enlarged pixels; boxes go along."""
    enlarged, drawn = (open_split(form, "train", canvas_shape=CANVAS, dpi=300) for form in both)
    plain = open_split(both[1], "train", canvas_shape=CANVAS)
    assert enlarged.ids == drawn.ids == plain.ids
    steps = [[], []]
    styles = both[1].split("train").styles
    clean = [index for index in range(len(drawn)) if hand_look(int(styles[index][5:])).style == PAPER]
    assert len(clean) > 5
    for index in clean:
        pixels, other = drawn.pixels([index])[0], enlarged.pixels([index])[0]
        assert np.abs(np.array(pixels.shape) - 1.5 * plain.sizes[index]).max() < 6
        boxes, old = drawn.boxes([index])[0], plain.boxes([index])[0]
        for box, before in zip(boxes, old, strict=True):
            assert (box is None) == (before is None)
            if box is not None:
                assert np.abs(np.subtract(box, np.multiply(before, 1.5))).max() < 6
                assert (pixels[max(box[1], 0) : box[3], max(box[0], 0) : box[2]] < 200).any()
        for found, image in zip(steps, (pixels, other), strict=True):
            found.append(np.abs(np.diff(image.astype(int), axis=1)).max())
    assert np.mean(steps[0]) > np.mean(steps[1]) + 5, "edges of strokes are sharper"
    stored = both[0].split("train")
    indices = np.arange(len(stored))
    samples = stored.stored(indices, indices)[0]
    with pytest.raises(DatasetError, match="is not"):
        list(decode_stored(replace(samples, shapes=samples.shapes + 7), zoom=1.5))


def test_a_damaged_bank_is_noticed(both, tmp_path):
    import shutil

    folder = shutil.copytree(both[1].path, tmp_path / "copy")
    (folder / "ink" / "bank.npz").write_bytes(b"PK")
    with pytest.raises(DatasetError, match=r"bank\.npz"):
        DatasetReader(folder).verify()
    with pytest.raises(DatasetError, match="bank"):
        DatasetReader(folder).split("train").pixels([0])


def test_what_does_not_go_together_is_refused(inputs, tmp_path):
    formulas = text_sources([inputs["formulas"]])
    with pytest.raises(BuildError, match="--inks"):
        build_dataset(formulas, out=tmp_path / "a", options=BuildOptions(recipe=RECIPE), quiet=True)
    inks = ink_sources([inputs["inks"]])
    with pytest.raises(BuildError, match="--recipe hand"):
        build_dataset(inks, out=tmp_path / "b", options=BuildOptions(recipe=RECIPES["world"]), quiet=True)
    with pytest.raises(InputError, match="--inks"):
        ink_sources([])
    with pytest.raises(InputError, match="no file"):
        ink_sources([tmp_path / "missing"])


def test_the_command_builds_from_a_folder_of_inkml(inputs, tmp_path):
    folder = tmp_path / "inkml"
    folder.mkdir()
    for number, formula in enumerate(("x+y", "a-b", "1=2", "x+1", "y=a", "b+2")):
        write_inkml(row_of(list(formula), latex=formula, seed=number), folder / f"{number}.inkml")
    result = CliRunner().invoke(
        app,
        [
            *("build", "--inks", str(folder), "--ink-copies", "2", "--recipe", "hand", "--compact"),
            *(
                "--min-token-count",
                "1",
                "--jobs",
                "1",
                "--val-fraction",
                "0.3",
                "--out",
                str(tmp_path / "out"),
            ),
        ],
    )
    assert result.exit_code == 0, result.output
    dataset = DatasetReader(tmp_path / "out")
    assert (
        dataset.card["num_kept"]
        + dataset.card["verdicts"].get("val", {}).get("duplicate", 0)
        + (dataset.card["verdicts"].get("test", {}).get("duplicate", 0))
        == 12
    )
    assert all(len(pixels) for pixels in dataset.split("train").pixels([0, 1]))
