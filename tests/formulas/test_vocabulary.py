"""Ids are stable, and nothing unknown gets one."""

import pytest

from i2l.formulas.vocabulary import UnknownTokenError, Vocabulary, VocabularyError


def test_special_tokens_come_first_and_the_rest_is_sorted():
    vocabulary = Vocabulary.from_formula_tokens(["b", "a", "a", r"\frac"])
    assert vocabulary.tokens == ("<eos>", "<bos>", r"\frac", "a", "b")
    assert vocabulary.encode(["a", r"\frac"]) == [3, 2]
    assert vocabulary.decode([1, 3, 2, 0, 4]) == ["a", r"\frac"]


def test_a_saved_vocabulary_comes_back_whole(tmp_path):
    vocabulary = Vocabulary.from_formula_tokens(["x", "\\", '"'])
    vocabulary.save(tmp_path / "vocab.json")
    assert Vocabulary.load(tmp_path / "vocab.json") == vocabulary
    assert [path.name for path in tmp_path.iterdir()] == ["vocab.json"]


def test_an_unknown_token_is_named():
    with pytest.raises(UnknownTokenError, match="zeta"):
        Vocabulary.from_formula_tokens(["x"]).encode([r"\zeta"])


@pytest.mark.parametrize(
    "tokens", [["x"], ["<eos>", "<bos>", "x", "x"], ["<eos>", "<bos>", "a b"], ["<eos>", "<bos>", ""]]
)
def test_a_bad_vocabulary_is_refused(tokens):
    with pytest.raises(VocabularyError):
        Vocabulary(tokens)


@pytest.mark.parametrize("content", ["", "[]", '{"format": "other"}'])
def test_a_file_that_is_no_vocabulary_is_refused(tmp_path, content):
    path = tmp_path / "vocab.json"
    path.write_text(content)
    with pytest.raises(VocabularyError, match=r"vocab\.json"):
        Vocabulary.load(path)


def test_a_vocabulary_grows_behind_its_last_token():
    old = Vocabulary.from_formula_tokens(["x", "+"])
    grown = old.grown(["z", "a", "x"])
    assert grown.tokens == (*old.tokens, "a", "z")
    assert old.begins(grown)
    assert not grown.begins(old)
    assert not Vocabulary.from_formula_tokens(["a", "x", "+"]).begins(grown)


def test_growing_by_what_is_known_changes_nothing_and_growing_twice_keeps_ids():
    old = Vocabulary.from_formula_tokens(["x", "+"])
    assert old.grown(["+", "x"]) == old
    twice = old.grown(["b"]).grown(["a"])
    assert twice.tokens == (*old.tokens, "b", "a")
    assert old.begins(twice)
    assert twice.encode(["x", "a"]) == [old.encode(["x"])[0], len(old) + 1]


def test_a_grown_vocabulary_keeps_its_order_in_its_file(tmp_path):
    grown = Vocabulary.from_formula_tokens(["x"]).grown(["z", "a"]).grown(["+"])
    grown.save(tmp_path / "vocab.json")
    assert Vocabulary.load(tmp_path / "vocab.json").tokens == grown.tokens
