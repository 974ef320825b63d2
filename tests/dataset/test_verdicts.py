"""What becomes of formulas: how often their tokens must be seen, how the card counts and shows them."""

import base64
import io
from dataclasses import asdict, replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from i2l.dataset.card import MAX_CONTACT_PX, _contacts, count_steps
from i2l.dataset.format import VERDICTS_FILE
from i2l.dataset.shards import PICTURE_TEXT
from i2l.dataset.sources import text_sources
from i2l.dataset.verdicts import RARE, REJECTED, VERDICT_KINDS
from tests.dataset.fakes import RECIPE


@pytest.mark.parametrize("minimum", [1, 2, 3])
def test_a_token_seen_just_often_enough_is_kept(small_build, tmp_path, minimum):
    signs = ["+", "=", "-"]
    lines = [f"x {sign} {letter}" for letter in "ab" for sign in signs]  # so that nothing else is rare
    enough = [f"x {sign} q" for sign in signs[:minimum]]
    one_less = [f"x {sign} p" for sign in signs[: minimum - 1]]
    (tmp_path / "a.txt").write_text("\n".join([*lines, *enough, *one_less]))
    recipe = replace(RECIPE, min_token_count=minimum, val_fraction=0, test_fraction=0)
    dataset = small_build(text_sources([tmp_path / "a.txt"]), recipe=recipe)
    assert {*enough} <= {*dataset.split("train").formulas}
    assert "q" in dataset.vocabulary
    assert "p" not in dataset.vocabulary


def test_a_formula_may_be_as_long_as_the_recipe_says(small_build, tmp_path):
    (tmp_path / "a.txt").write_text("a + b = c\na + b = c d\n")
    recipe = replace(RECIPE, min_token_count=1, max_tokens=5, val_fraction=0, test_fraction=0)
    dataset = small_build(text_sources([tmp_path / "a.txt"]), recipe=recipe)
    assert dataset.split("train").formulas == ["a + b = c"]
    assert dataset.card["verdicts"]["none"] == {"too-long": 1}


def test_formulas_that_look_alike_are_drawn_into_one_split(small_build, tmp_path):
    plain = [f"{a} + {b}" for a in "abcdef" for b in "abcdef"]
    (tmp_path / "a.txt").write_text("\n".join([*plain, *(line.replace("+", r"\, +") for line in plain)]))
    recipe = replace(RECIPE, min_token_count=1, val_fraction=0.3, test_fraction=0.3)
    verdicts = small_build(text_sources([tmp_path / "a.txt"]), recipe=recipe).card["verdicts"]
    assert all(set(counts) == {"kept"} for counts in verdicts.values()), "none of them is a leak"
    assert len(verdicts) == 3


def test_of_several_rare_tokens_the_rarest_is_named(small_build, tmp_path):
    lines = [f"x {sign} {letter}" for letter in "abcd" for sign in "+=-<"]
    (tmp_path / "a.txt").write_text("\n".join([*lines, "x + p", "x - p", "p = q"]))
    recipe = replace(RECIPE, min_token_count=4, val_fraction=0, test_fraction=0)
    dataset = small_build(text_sources([tmp_path / "a.txt"]), recipe=recipe)
    verdicts = pq.read_table(dataset.path / VERDICTS_FILE).to_pylist()
    assert [row["message"].partition(" times")[0] for row in verdicts if row["verdict"] == RARE] == [
        *(["p occurs 3"] * 2),
        "q occurs 1",
    ]


def test_steps_count_what_is_left_of_every_split():
    """Splits are named from where no line is without one; a split without lines has none at any step."""
    verdicts = {
        "train": {"kept": 7, "too-long": 2, "duplicate": 1},
        "val": {"kept": 3, "leak": 4},
        "none": {REJECTED: 5, "empty": 1},
    }
    kinds = {verdict for counts in verdicts.values() for verdict in counts}
    assert kinds <= {kind.name for kind in VERDICT_KINDS}
    steps = count_steps(asdict(RECIPE), verdicts)
    given, normalised = steps[0], steps[1]
    assert given == {"name": "given", "all": 23}
    assert normalised == {"name": "normalised", "all": 17, "train": 10, "val": 7, "test": 0}
    assert [step["all"] for step in steps] == [23, 17, 15, 14, 10, 10, 10, 10]
    assert {step["test"] for step in steps[1:]} == {0}
    assert (steps[-1]["train"], steps[-1]["val"]) == (7, 3)


def test_photographs_on_the_card_are_no_wider_than_their_column():
    class Split:
        ids, formulas, styles = "ab", "xy", [PICTURE_TEXT] * 2

        def __len__(self):
            return 2

        def pixels(self, indices, *, jobs):
            return [np.full(((4, 3), (800, 1200))[index], 200, np.uint8) for index in indices]

    contacts = list(_contacts(Split()))
    images = [Image.open(io.BytesIO(base64.b64decode(one["url"].partition(",")[2]))) for one in contacts]
    assert [image.size for image in images] == [(3, 4), (MAX_CONTACT_PX, MAX_CONTACT_PX * 2 // 3)]
    assert [one["width"] for one in contacts] == [3, MAX_CONTACT_PX]
