import gzip
import lzma
import pickle
from dataclasses import astuple

import pytest

from i2l.dataset.sources import RECIPES, InputError, LineNames, im2latex_sources, text_sources
from i2l.formulas.lexer import LinesError
from tests.kept import assert_kept


@pytest.mark.parametrize(("name", "opener"), [("f.txt", open), ("f.xz", lzma.open), ("f.gz", gzip.open)])
def test_plain_and_packed_files_give_the_same_lines(tmp_path, name, opener):
    with opener(tmp_path / name, "wb") as file:
        file.write(b"a\n\nb\r\nc")
    [source] = text_sources([tmp_path / name])
    assert [line.text for line in source.lines()] == [b"a", b"", b"b", b"c"]
    assert source.split is None


def test_a_cut_file_is_named_with_its_last_good_line(tmp_path):
    path = tmp_path / "cut.txt.xz"
    packed = lzma.compress(b"x + y\n" * 100_000)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(LinesError, match=r"cut\.txt\.xz is damaged after line \d+"):
        list(text_sources([path])[0].lines())


def test_given_splits_leave_the_rest_for_training(tmp_path):
    for name in ("a", "b", "v", "t"):
        (tmp_path / name).write_text("x\n" * 3)
    sources = text_sources([tmp_path / "a", tmp_path / "b"], val=tmp_path / "v", test=tmp_path / "t", limit=4)
    assert [(source.name, source.split) for source in sources] == [
        ("a", "train"),
        ("b", "train"),
        ("v", "val"),
        ("t", "test"),
    ]
    assert [len(list(source.lines())) for source in sources] == [3, 1, 3, 3]


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = [tmp_path / folder / "formulas.txt" for folder in ("one", "two")]
    assert [source.name for source in text_sources(paths)] == ["one/formulas.txt", "two/formulas.txt"]
    with pytest.raises(InputError, match="twice"):
        text_sources([paths[0], paths[0]])
    with pytest.raises(InputError, match="--formulas"):
        text_sources([])


@pytest.fixture
def published(tmp_path):
    r"""A carriage return inside a formula does not end its line, and é is one byte."""
    (tmp_path / "im2latex_formulas.lst").write_bytes("a\nb\rb\n\\text{é}\nd\n".encode("iso-8859-1"))
    (tmp_path / "im2latex_train.lst").write_text("2 60ee748793 basic\n1 66667cee5b basic\n")
    (tmp_path / "im2latex_validate.lst").write_text("3 1cbb05a562 basic\n")
    (tmp_path / "im2latex_test.lst").write_text("0 ed164cc822 basic\n")
    return tmp_path


def test_im2latex_as_published(published):
    train, val, test = im2latex_sources(published)
    assert (train.split, val.split, test.split) == ("train", "val", "test")
    assert [line.text for line in train.lines()] == ["\\text{é}".encode(), b"b\rb"]
    assert [line.text for line in val.lines()] == [b"d"]
    assert [line.text for line in test.lines()] == [b"a"]
    assert [len(list(s.lines())) for s in im2latex_sources(published, limit=1)] == [1, 1, 1]


def test_im2latex_normalised_as_im2markup_writes_it(tmp_path):
    (tmp_path / "formulas.norm.lst").write_text("a\nb\n")
    for name, index in (("train", 1), ("validate", 0), ("test", 0)):
        (tmp_path / f"im2latex_{name}_filter.lst").write_text(f"7944775fc9.png {index}\n")
    assert [[line.text for line in source.lines()] for source in im2latex_sources(tmp_path)] == [
        [b"b"],
        [b"a"],
        [b"a"],
    ]


def test_a_split_list_that_names_no_formula_is_an_error(published):
    (published / "im2latex_train.lst").write_text("2 60ee748793 basic\n99 66667cee5b basic\n")
    with pytest.raises(InputError, match=r"im2latex_train\.lst, line 2"):
        list(im2latex_sources(published)[0].lines())
    (published / "im2latex_test.lst").unlink()
    with pytest.raises(InputError, match=r"im2latex_test\.lst"):
        im2latex_sources(published)


def test_line_names():
    names = LineNames(names=["a", "b", "c"], num_lines=[2, 0, 1])
    assert [names[number] for number in range(len(names))] == ["a:1", "a:2", "c:1"]


def test_names_travel_to_another_process():
    names = pickle.loads(pickle.dumps(LineNames(names=["a"], num_lines=[2])))
    assert names[1] == "a:2"


def test_recipes_are_those_that_datasets_were_built_with():
    """Frequency, length, size and shares of splits: other numbers are another dataset by the same name."""
    numbers = {
        recipe.name: [each for each in astuple(recipe) if not isinstance(each, str)]
        for recipe in RECIPES.values()
    }
    assert_kept("recipes", numbers)
