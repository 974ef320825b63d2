"""One image through `i2l read`: few modules, only the folders of reading, and hardly a way back."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.walk import MAX_MODULES, MAX_RETURNS, Walk, follow
from i2l.formulas.vocabulary import Vocabulary
from tests.test_architecture import FLOW

ROOT = Path(__file__).parent.parent
# Prints what was counted; a process of its own, as what other tests have read is kept in caches.
CODE = """
import sys
from pathlib import Path
from benchmarks.walk import read_command
walk = read_command(Path(sys.argv[1]))
print(len(walk.modules), walk.returns(), *walk.folders)
"""


@pytest.mark.parametrize("name", ["1-paper.png", "8-photo.png"])
def test_the_walk_of_an_image_is_short(name):
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(ROOT / "examples" / name)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    modules, returns, *folders = done.stdout.splitlines()[-1].split()
    assert 10 < int(modules) <= MAX_MODULES, "python -m benchmarks.walk lists them"
    assert 0 < int(returns) <= MAX_RETURNS
    # It begins at the command, which reads names of formats, and goes nowhere that is not of reading.
    assert folders[0] == "cli"
    assert set(folders) & set(FLOW) == {"formats", "formulas", "images", "model", "inference"}


def test_what_counts_as_a_return():
    walk = Walk([("i2l.cli", ["read"]), ("i2l.a", ["f", "g"]), ("i2l.b", ["h"]), ("i2l.a", ["f"])])
    assert walk.modules == ["i2l.cli", "i2l.a", "i2l.b"]
    assert (walk.returns("i2l.a"), walk.returns("i2l.b"), walk.returns("i2l.c")) == (1, 0, 0)
    assert walk.functions("i2l.a") == ["f", "g"]


def test_what_counts_as_a_call():
    def count():
        vocabulary = Vocabulary.from_formula_tokens(["x", "y"])
        return [vocabulary.encode(["x"]), vocabulary.decode([2])]

    walk = follow(count)
    assert walk.modules == ["i2l.formulas.vocabulary"]
    assert len(walk.visits) == 1
    assert "Vocabulary.decode" in walk.functions("i2l.formulas.vocabulary")
    assert not any("<" in name.rpartition(".")[2] for name in walk.functions("i2l.formulas.vocabulary"))
