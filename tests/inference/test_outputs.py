import xml.etree.ElementTree as ET

import pytest

from i2l.errors import MissingDependencyError
from i2l.formulas.pretty import pretty_formula
from i2l.inference.reading import OutputError, format_formula
from tests.inference.formulas import FORMULAS

RARE = [
    r"A ^ { \dag } B ^ { \ddag } \AA \o \l",
    r"x \sp 2 + y \sb { i }",
    r"\begin{gathered} { a } \\ { b } \\ \end{gathered}",
    r"{ \sl a } \relax b",
    r"\fbox { a = b } \vspace { 2 m m }",
    r"\lefteqn { a } \hfill \P",
]
# The tables of LaTeX and amssymb that formulas are written with.
SYMBOLS = r"""
\alpha \beta \gamma \delta \epsilon \varepsilon \zeta \eta \theta \vartheta \iota \kappa \varkappa
\lambda \mu \nu \xi \pi \varpi \rho \varrho \sigma \varsigma \tau \upsilon \phi \varphi \chi \psi \omega
\Gamma \Delta \Theta \Lambda \Xi \Pi \Sigma \Upsilon \Phi \Psi \Omega \aleph \hbar \imath \jmath \ell \wp
\Re \Im \partial \infty \prime \emptyset \varnothing \nabla \surd \top \bot \angle \measuredangle
\triangle \forall \exists \neg \lnot \flat \natural \sharp \clubsuit \diamondsuit \heartsuit \spadesuit
\Box \Diamond \square \lozenge \blacksquare \dag \ddag \S \P \pm \mp \times \div \ast \star \circ \bullet
\cdot \cap \cup \uplus \sqcap \sqcup \vee \wedge \lor \land \setminus \smallsetminus \wr \diamond \oplus
\ominus \otimes \oslash \odot \dagger \ddagger \amalg \ltimes \rtimes \boxplus \boxtimes \leq \geq \le
\ge \ll \gg \prec \succ \preceq \succeq \sim \simeq \asymp \approx \cong \equiv \propto \subset \supset
\subseteq \supseteq \sqsubset \sqsubseteq \sqsupseteq \in \ni \notin \vdash \dashv \models \perp \mid
\parallel \smile \frown \doteq \neq \ne \leqslant \geqslant \lesssim \gtrsim \lesseqgtr \triangleq
\shortparallel \vDash \Vdash \subsetneq \leftarrow \gets \rightarrow \to \leftrightarrow \Leftarrow
\Rightarrow \Leftrightarrow \mapsto \hookrightarrow \longleftarrow \longrightarrow \longleftrightarrow
\Longrightarrow \Longleftrightarrow \longmapsto \implies \iff \leadsto \uparrow \downarrow \updownarrow
\Uparrow \Downarrow \nearrow \searrow \rightharpoonup \rightleftharpoons \twoheadrightarrow \sum \prod
\coprod \int \iint \oint \bigcap \bigcup \bigsqcup \bigvee \bigwedge \bigodot \bigotimes \bigoplus
\biguplus \ldots \cdots \vdots \ddots \dots \dotsc \dotsb \quad \qquad \, \: \; \! \enspace \thinspace \%
\& \# \$ \_ \{ \} \| \lfloor \rfloor \lceil \rceil \langle \rangle \lvert \rvert \vert \Vert \backslash
\lbrace \rbrace
"""
DELIMITERS = r"( ) [ ] / | \| \{ \} \langle \rangle \lbrace \rbrace \vert \Vert \lceil \backslash < >"


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
    assert not any("\\" in text for text in root.itertext()), "a command that was not understood"


@pytest.mark.parametrize("symbol", SYMBOLS.split())
def test_mathml_of_every_symbol(symbol):
    texts = list(ET.fromstring(format_formula(f"a {symbol} b", (), "mathml")).itertext())
    assert not any(text.startswith("\\") for text in texts if text != "\\")


@pytest.mark.parametrize("delimiter", DELIMITERS.split())
@pytest.mark.parametrize("size", [r"\big", r"\Biggl"])
def test_mathml_of_large_delimiters(delimiter, size):
    (mark, *_) = ET.fromstring(format_formula(f"{size}{delimiter} b", (), "mathml")).itertext()
    assert len(mark) == 1
    assert mark not in "<>"


def test_mathml_that_cannot_be():
    with pytest.raises(OutputError, match="cannot express"):
        format_formula(r"\frac{a}{", (), "mathml")
    with pytest.raises(OutputError, match=r"cannot express \\unheardof"):
        format_formula(r"a \unheardof b", (), "mathml")


def test_mathml_not_installed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml", None)
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml.converter", None)
    with pytest.raises(MissingDependencyError, match=r"\[mathml\]"):
        format_formula("x", (), "mathml")
