"""The canonical form, case by case: what im2markup does, and where we keep the picture and it does not."""

import pytest

from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula

IM2MARKUP = {
    r"x^2_i": r"x _ { i } ^ { 2 }",
    r"x^\alpha": r"x ^ { \alpha }",
    r"x_\mathrm{red}": r"x _ { \mathrm { r e d } }",
    r"{a+b \over c}": r"{ \frac { a + b } { c } }",
    r"{{a}\over c}": r"{ \frac { a } { c } }",
    r"\left(a \over b\right)": r"\left( \frac { a } { b } \right)",
    r"n \choose k": r"\binom { n } { k }",
    r"\frac12": r"\frac 1 2",
    r"\hat x\hat{y}": r"\hat { x } \hat { y }",
    r"\widehat Q": r"\widehat Q",
    r"\overline{x}\overline x": r"\overline { { x } } \overline { x }",
    r"\sin x": r"\operatorname { s i n } x",
    r"\lim_{x\to 0}": r"\operatorname* { l i m } _ { x \to 0 }",
    r"\left ( x \right )": r"\left( x \right)",
    r"\bigl[x\bigr]": r"\bigl [ x \bigr ]",
    r"f''": r"f ^ { \prime \prime }",
    r"f'_a": r"f _ { a } ^ { \prime }",
    r"x^{'}": r"x ^ { ' }",
    r"{\rm Tr}A": r"\mathrm { T r } A",
    r"x_{\rm eff}": r"x _ { \mathrm { e f f } }",
    r"\mbox{for all }x": r"\mathrm { f o r ~ a l l ~ } x",
    r"{\bf x}\cal L": r"{ \bf x } \cal L",
    r"a\ b~c\,d": r"a \ b ~ c \, d",
    r"\hspace{1cm}\hskip 0.5cm": r"\hspace { 1 c m } \hspace { 0 . 5 c m }",
    r"\Bbb R": r"\mathbb R",
    r"a -- b": r"a -- b",
    r"\begin{array}{lc}a&b\\c&d\end{array}": (
        r"\begin{array} { l c } { a } & { b } \\ { c } & { d } \\ \end{array}"
    ),
    r"\begin{pmatrix}a\\b\end{pmatrix}": r"\left( \begin{matrix} { a } \\ { b } \\ \end{matrix} \right)",
    r"\pmatrix{a&b\cr c&d\cr}": (
        r"\left( \begin{matrix} { a } & { b } \\ { c } & { d } \\ \end{matrix} \right)"
    ),
    r"\begin{aligned}a&=b\end{aligned}": r"\begin{aligned} { a } & { { } = b } \\ \end{aligned}",
    r"\sum\limits_i": r"\sum _ { i }",
    r"x \label{eq:1}": "x",
    r"{_6}x": r"{ _ 6 } x",
}

FAITHFUL = {
    r"\sqrt[3]{x}": r"\sqrt [ 3 ] { x }",
    r"\mathrm{\theta d}": r"\mathrm { \theta d }",
    r"\int\limits_0^1": r"\int \limits _ { 0 } ^ { 1 }",
    r"\frac{\sum\limits_i}{2}": r"\frac { \sum \limits _ { i } } { 2 }",
    r"\lim\nolimits_x": r"\operatorname { l i m } _ { x }",
    r"x'^2": r"x ^ { \prime 2 }",
    r"x^a^b": r"x ^ { a } { } ^ { b }",
    r"x^2'": r"x ^ { 2 } { } ^ { \prime }",
    r"\tfrac12": r"\tfrac 1 2",
    r"\dfrac12": r"\frac 1 2",
    r"\frac{\tfrac12}{3}": r"\frac { \frac 1 2 } { 3 }",
    r"\begin{cases}a&b\end{cases}": r"\begin{cases} { a } & { b } \\ \end{cases}",
    r"\begin{array}{c}a\\[2pt]\\b\end{array}": (
        r"\begin{array} { c } { a } \\ [ 2 p t ] { } \\ { b } \\ \end{array}"
    ),
    r"\begin{array}{l@{\,}r}a&b\end{array}": r"\begin{array} { l @ { \, } r } { a } & { b } \\ \end{array}",
    r"\begin{array}{*{2}{c}}a&b\end{array}": r"\begin{array} { c c } { a } & { b } \\ \end{array}",
    r"\begin{array}[t]{c}a\end{array}": r"\begin{array} [ t ] { c } { a } \\ \end{array}",
    r"\begin{array}{l}a\hfill\end{array}": r"\begin{array} { l } a \hfill \\ \end{array}",
    r"\mbox{non-linear}": r"\mbox { n o n - l i n e a r }",
    r"\text{if }x": r"\text { i f ~ } x",
    r"x_{\mbox{eff}}": r"x _ { \mbox { e f f } }",
    r"x_{\text{eff}}": r"x _ { \text { e f f } }",
    r"x_{\text{max}}": r"x _ { \mathrm { m a x } }",
    r"\textbf{A}": r"\mathbf { A }",
    r"\textit{N}": r"\textit { N }",
    r"\operatorname*{argmax}_x": r"\operatorname* { a r g m a x } _ { x }",
    r"\limsup_n": r"\operatorname* { l i m \, s u p } _ { n }",
    r"\substack{a\\b}": r"\substack { a \\ b }",
    r"{\bf a \over b}": r"{ \frac { \bf a } { \bf b } }",
    r"{\rm a \over b}": r"\mathrm { \frac { a } { b } }",
    r"\buildrel a \over =": r"\overset { a } =",
    r"\kern-.5em x": r"\kern - . 5 e m x",
    r"a\>b": r"a \: b",
    r"a \\ b": r"a b",
    r"10\%": r"1 0 \%",
    r"a % comment": "a",
    r"\tag{1}x\nonumber": "x",
    r"x_--1": r"x _ { - } - 1",
    r"\begin{align}a&=b\end{align}": r"a = b",
    r"\begin{align*}a&=b\\&=c\end{align*}": (
        r"\begin{aligned} { a } & { { } = b } \\ { } & { { } = c } \\ \end{aligned}"
    ),
    r"\begin{eqnarray}a&=&b\\&=&c\end{eqnarray}": (
        r"\begin{aligned} { a } & { { } = b } \\ { } & { { } = c } \\ \end{aligned}"
    ),
    r"\begin{gather}a\\b\end{gather}": r"\begin{gathered} { a } \\ { b } \\ \end{gathered}",
    r"\begin{equation}a=b\end{equation}": r"a = b",
    r"$$x$$": "x",
    r"\[x\]": "x",
    "α≤β": r"\alpha \leq \beta",
    r"\textcolor{red}{x}": r"{ x }",
}


@pytest.mark.parametrize(("source", "canonical"), [*IM2MARKUP.items(), *FAITHFUL.items()])
def test_canonical_form_and_its_fixed_point(source, canonical):
    assert normalize_formula(source).formula == canonical
    assert normalize_formula(canonical).formula == canonical


LATEX = {
    r"\hspace { 1 . 5 c m } x": r"\hspace {1.5cm} x",
    r"\kern - 2 p t x": r"\kern -2pt x",
    r"\mbox { n o n - l i n ~ \bf a ~ b }": r"\mbox {non-lin \bf a b}",
    r"\text { a - ~ ~ b }": r"\text {a- ~b}",
    r"\begin{array} { l @ { ~ } r } { a } & { b } \\ [ 2 p t ] \end{array}": (
        r"\begin{array} {l@{~}r } { a } & { b } \\[2pt] \end{array}"
    ),
}


@pytest.mark.parametrize(("formula", "latex"), LATEX.items())
def test_lengths_and_text_reach_tex_in_one_piece(formula, latex):
    assert normalize_formula(formula).latex == latex


REJECTED = {
    "": "empty",
    "   ": "empty",
    r"\label{x}": "empty",
    "{": "unmatched brace",
    "}": "unmatched brace",
    r"\frac{a}": "missing argument",
    "x^": "missing argument",
    r"\left( x": r"\left without \right",
    r"x \right)": r"\right without \left",
    r"\leftx y \right)": None,  # an unknown command, not a delimiter: only the \right is wrong
    r"\left( x \right": "bad delimiter",
    r"\left= x \right)": "bad delimiter",
    r"\begin{array}{c} x": r"\begin without \end",
    r"\begin{array}{c} x \end{matrix}": r"\end of another environment",
    r"x \end{array}": r"\end without \begin",
    "a & b": "alignment outside an array",
    r"a \over b \over c": "two fractions in one group",
    r"\kern x": "missing length",
    "a\x00b": "control character",
    "漢": "unknown character",
    "{" * 100_000: "too long",
    "{" * 50_000: "nested too deeply",
    r"\hat" * 20_000: "nested too deeply",
    r"\sqrt [ [object Object] ] { x }": "root index lost by im2markup",
    r"\begin{array}{*{9999}{c}}x\end{array}": "bad column specification",
}


@pytest.mark.parametrize(("source", "reason"), REJECTED.items(), ids=lambda text: repr(text)[:20])
def test_what_is_no_formula_gets_a_reason_and_a_place(source, reason):
    with pytest.raises(FormulaError) as caught:
        normalize_formula(source if len(source) != 100_000 else source + "x")
    if reason:
        assert caught.value.reason == reason
    assert 0 <= caught.value.position <= 100_001


def test_tokens_point_at_their_source_and_say_whether_they_draw():
    source = r"\frac{a}{b}+\sin x'^{2}\phantom{y}\left.z\right|"
    found = {
        (token.text, source[token.start : token.end], token.visible)
        for token in normalize_formula(source).tokens
    }
    assert (r"\frac", r"\frac", True) in found
    assert ("a", "a", True) in found
    assert ("s", r"\sin", True) in found
    assert (r"\operatorname", r"\sin", False) in found
    assert (r"\prime", "'", True) in found
    assert ("y", "y", False) in found
    assert (r"\left.", r"\left.", False) in found
    assert (r"\right|", r"\right|", True) in found
    assert all(not visible for text, _, visible in found if text in "{}_^")


def test_the_position_of_an_array_draws_nothing():
    tokens = normalize_formula(r"\begin{array}[t]{c}x\end{array}").tokens
    assert [token.text for token in tokens if token.visible] == ["x"]


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (
            r"\begin{alignat}{2} a&=b & c&=d \\ e&=f & g&=h\end{alignat}",
            r"\begin{alignedat} { 2 } { a } & { { } = b } & { c } & { { } = d } \\ "
            r"{ e } & { { } = f } & { g } & { { } = h } \\ \end{alignedat}",
        ),
        (
            r"\begin{alignedat}{1} a&=b \\ e&=f\end{alignedat}",
            r"\begin{aligned} { a } & { { } = b } \\ { e } & { { } = f } \\ \end{aligned}",
        ),
    ],
)
def test_alignedat_keeps_its_number_of_columns(written, canonical):
    assert normalize_formula(written).formula == canonical
    assert normalize_formula(canonical).formula == canonical


def test_a_row_that_ends_outside_of_an_array_may_leave_room():
    """TeX sets what follows on the same line, and takes the room for a length."""
    for room in ("", "[2pt]", " [1em]"):
        assert normalize_formula(rf"a\\{room} b").formula == "a b"
