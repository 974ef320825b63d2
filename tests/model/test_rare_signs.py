"""Rare signs get lower scores, common ones and everything else keep theirs."""

from collections import Counter

from i2l.formulas.vocabulary import Vocabulary
from i2l.model.rare_signs import (
    COMMON_COUNT,
    ITALIC_SCORE,
    RARE_COUNT,
    RARE_SCORE,
    count_tokens,
    score_changes,
)


def test_only_rare_signs_and_the_italic_alphabet_change():
    vocabulary = Vocabulary.from_formula_tokens(
        ["x", "+", r"\nabla", r"\triangledown", r"\oplus", r"\mathit", r"\begin{gathered}"]
    )
    changes = score_changes(
        vocabulary, Counter({r"\nabla": COMMON_COUNT, r"\oplus": round((RARE_COUNT * COMMON_COUNT) ** 0.5)})
    )
    found = {
        token: change for token, change in zip(vocabulary.tokens, changes.tolist(), strict=True) if change
    }
    assert set(found) == {r"\triangledown", r"\oplus", r"\mathit"}
    assert abs(found[r"\triangledown"] - RARE_SCORE) < 1e-6
    assert abs(found[r"\oplus"] - RARE_SCORE / 2) < 1e-2, "half way between rare and common"
    assert abs(found[r"\mathit"] - ITALIC_SCORE) < 1e-6


def test_signs_are_counted_in_lists_of_formulas(tmp_path):
    (tmp_path / "a.txt").write_text("x + \\nabla\nx x\n")
    (tmp_path / "b.txt").write_text("\\nabla\n")
    assert count_tokens([tmp_path / "a.txt", tmp_path / "b.txt"]) == {"x": 3, "+": 1, r"\nabla": 2}
