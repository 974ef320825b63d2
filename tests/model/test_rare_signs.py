"""Rare signs get lower scores, common ones and everything else keep theirs."""

from collections import Counter

from i2l.formulas.vocabulary import Vocabulary
from i2l.model.rare_signs import ITALIC_SCORE, RARE_COUNT, RARE_SCORE, score_changes


def test_only_rare_signs_and_the_italic_alphabet_change():
    vocabulary = Vocabulary.from_formula_tokens(
        ["x", "+", r"\nabla", r"\triangledown", r"\mathit", r"\begin{gathered}"]
    )
    changes = score_changes(vocabulary, Counter({r"\nabla": RARE_COUNT}))
    found = {
        token: change for token, change in zip(vocabulary.tokens, changes.tolist(), strict=True) if change
    }
    assert set(found) == {r"\triangledown", r"\mathit"}
    assert abs(found[r"\triangledown"] - RARE_SCORE) < 1e-6
    assert abs(found[r"\mathit"] - ITALIC_SCORE) < 1e-6
