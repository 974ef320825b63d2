import xml.etree.ElementTree as ET

import pytest

from i2l.errors import MissingDependencyError
from i2l.formulas.pretty import pretty_formula
from i2l.inference.outputs import OutputError, format_formula
from tests.inference.formulas import FORMULAS

RARE = [
    r"A ^ { \dag } B ^ { \ddag } \AA \o \l",
    r"x \sp 2 + y \sb { i }",
    r"\begin{gathered} { a } \\ { b } \\ \end{gathered}",
    r"{ \sl a } \relax b",
]


def test_formats():
    latex, tokens = "x^{2}", ("x", "^", "{", "2", "}")
    assert format_formula(latex, tokens) == "x^{2}"
    assert format_formula(latex, tokens, "tokens") == "x ^ { 2 }"
    assert format_formula(latex, tokens, "display") == "$$x^{2}$$"
    assert format_formula(latex, tokens, "inline") == "$x^{2}$"
    with pytest.raises(OutputError, match="choose one of"):
        format_formula(latex, tokens, "word")


@pytest.mark.parametrize("formula", [*FORMULAS, *RARE])
def test_mathml_of_every_construct(formula):
    mathml = format_formula(pretty_formula(formula), (), "mathml")
    assert "\n" not in mathml
    root = ET.fromstring(mathml)
    assert root.tag == "{http://www.w3.org/1998/Math/MathML}math"
    assert "\\" not in "".join(root.itertext()), "a command that was not understood"


def test_mathml_that_cannot_be():
    with pytest.raises(OutputError, match="cannot express"):
        format_formula(r"\frac{a}{", (), "mathml")
    with pytest.raises(OutputError, match=r"cannot express \\unheardof"):
        format_formula(r"a \unheardof b", (), "mathml")


def test_mathml_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml", None)
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml.converter", None)
    with pytest.raises(MissingDependencyError, match=r"i2l\[mathml\]"):
        format_formula("x", (), "mathml")
