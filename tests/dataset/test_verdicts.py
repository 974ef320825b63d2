"""How often a token must be seen in training: as often as the recipe says is enough."""

from dataclasses import replace

import pytest

from i2l.dataset.sources import text_sources
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
