"""A command is added to the language by one line of the table: everything else follows from its record."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import i2l
from i2l.formulas.commands import COMMANDS, ENVIRONMENTS, TableError, read_table

# Two commands of mathtools that the table does not have: an accent with its mark and its name in Typst, and a
# relation that is read from a character, and shown by it.
ACCENT = r"  \overbracket braces=one package=mathtools sign=wide-accent unicode=⎴ typst=overbracket"
RELATION = r"  \colonsim characters=∻ package=mathtools tame pretty=spaced"

QUESTIONS = r"""
import json
from i2l.errors import I2LError
from i2l.evaluation.breakdown import find_constructs
from i2l.explain.localization import token_class
from i2l.formulas import commands
from i2l.formulas.normalize import normalize_formula
from i2l.formulas.pretty import pretty_formula
from i2l.inference.grammar import START, advance
from i2l.formats.convert import write_formula
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import find_wild

def answer(question, *arguments):
    try:
        return question(*arguments)
    except I2LError as error:
        return type(error).__name__

both = r"\overbracket{x} \colonsim y"
drawn, = render_formulas([both], boxes=True)
print(json.dumps({
    "lexed": answer(lambda: normalize_formula("x ∻ y").formula),
    "normalised": normalize_formula(r"\overbracket x").formula,
    "shares a TeX process": find_wild([both], PAPER) == set(),
    "drawn": drawn.pixels is not None,
    "boxes": drawn.boxes is not None and [box is not None for box in drawn.boxes],
    "guarded": advance(advance(START, r"\overbracket"), "^") is None,
    "printed": pretty_formula(r"x \colonsim y"),
    "MathML": answer(write_formula, both, "mathml"),
    "Typst": answer(write_formula, both, "typst"),
    "plain text": answer(write_formula, both, "unicode"),
    "class": token_class(r"\overbracket"),
    "constructs": find_constructs([r"\overbracket", "{", "x", "}"]),
    "composed": r"\colonsim" in commands.RELATIONS,
}))
"""


def answers(folder: Path, *records: str) -> dict[str, object]:
    """Ask a copy of the package, in whose table records stand in their sections."""
    package = shutil.copytree(
        Path(i2l.__file__).parent,
        folder / "i2l",
        ignore=shutil.ignore_patterns("models", "page", "examples", "__pycache__"),
    )
    table = package / "formulas" / "commands.txt"
    text = table.read_text(encoding="utf-8")
    for record, section in zip(records, ("accent", "relation"), strict=False):
        head = re.findall(rf"^@ {section}\b.*\n", text, re.MULTILINE)
        assert len(head) == 1
        text = text.replace(head[0], f"{head[0]}{record}\n")
    table.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", QUESTIONS],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.tex
def test_one_record_adds_a_command_to_the_whole_language(tmp_path):
    known = answers(tmp_path, ACCENT, RELATION)
    mathml = str(known.pop("MathML"))
    assert known == {
        "lexed": r"x \colonsim y",
        "normalised": r"\overbracket { x }",
        "shares a TeX process": True,
        "drawn": True,
        "boxes": [True, False, True, False, True, True],
        "guarded": True,
        "printed": r"x \colonsim y",
        "Typst": "overbracket(x) ∻ y",
        "plain text": "x⎴ ∻ y",
        "class": "accents",
        "constructs": ["accents"],
        "composed": True,
    }
    assert "<mover" in mathml
    assert "⎴" in mathml
    assert "<mo>∻</mo>" in mathml


@pytest.mark.slow
@pytest.mark.tex
def test_without_its_record_the_command_is_not_known(tmp_path):
    unknown = answers(tmp_path)
    assert unknown == {
        "lexed": "FormulaError",
        "normalised": r"\overbracket x",
        "shares a TeX process": False,
        "drawn": True,  # by itself, since TeX knows it
        "boxes": unknown["boxes"],
        "guarded": False,
        "printed": r"x\colonsim y",
        "MathML": "FormatError",
        "Typst": "FormatError",
        "plain text": "FormatError",
        "class": "operators and relations",
        "constructs": ["none of these"],
        "composed": False,
    }


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("@ letter\n  \\new tamed", "no fact 'tamed'"),
        ("@ letter\n  \\new unicode", "needs a value"),
        ("@ letter\n  \\new tame=yes", "a word by itself"),
        ("@ leter\n  \\new", "kind is one of accent,"),
        ("@ letter\n  \\new guard=words,nevr", "guard is one of braced, never,"),
        ("@ letter\n  \\new limits=below", "limits is one of brace, display, side"),
        ("@ letter\n  \\new unicode=U+03XY", "03XY"),
        ("@ letter\n  \\new\n  \\new", "already"),
        ("  \\new", "kind"),
        ("@ environment\n  new columns=many", "many"),
    ],
)
def test_a_line_that_is_no_record_is_named(table, reason):
    with pytest.raises(TableError, match=reason) as caught:
        read_table(table)
    assert "Line " in str(caught.value)


def test_records_point_at_records():
    """What a record names elsewhere is in the table, and one step away."""
    for command in COMMANDS.values():
        for other in (command.same_as, command.glyph, command.infix, command.switch, command.pair):
            assert not other or other in COMMANDS or len(other) == 1, (command.name, other)
        assert not command.rows or command.rows == "substack" or command.rows in ENVIRONMENTS
    for environment in ENVIRONMENTS.values():
        for other in (environment.becomes, environment.printed):
            assert not other or other in ENVIRONMENTS, (environment.name, other)


def test_a_character_is_read_as_one_command():
    characters = "".join(command.characters for command in COMMANDS.values())
    assert len(set(characters)) == len(characters)
