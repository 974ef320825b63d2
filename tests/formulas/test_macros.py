"""Preamble macros are written out, and tokens still point at the formula the user gave."""

import pytest

from i2l.formulas.expansion import MacroError, Macros
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula

PREAMBLE = r"""
\newcommand{\be}{\beta} % \newcommand{\no}{x}
\renewcommand\norm[2][p]{\left\|#2x\right\|_{#1}}
\def\dd#1#2{\frac{d #1}{d #2}}
\DeclareMathOperator*{\argmax}{arg\,max}
\newcommand{\deep}{\be\be}
\newcommand{\forever}{\forever\forever}
"""
MACROS = Macros.parse(PREAMBLE)


@pytest.mark.parametrize(
    ("source", "canonical"),
    [
        (r"\be", r"\beta"),
        (r"\be x\deep", r"\beta x \beta \beta"),
        (r"\norm{\be}", r"\left\| \beta x \right\| _ { p }"),
        (r"\norm[q]y", r"\left\| y x \right\| _ { q }"),
        (r"\dd x\be", r"\frac { d x } { d \beta }"),
        (r"\argmax_x", r"\operatorname* { a r g \, m a x } _ { x }"),
        (r"\no", r"\no"),
    ],
)
def test_macros_are_written_out(source, canonical):
    assert normalize_formula(source, macros=MACROS).formula == canonical


def test_spans_are_those_of_the_original():
    source = r"a+\dd{u}{\be}"
    spans = {
        token.text: source[token.start : token.end]
        for token in normalize_formula(source, macros=MACROS).tokens
    }
    assert spans["u"] == "u"
    assert spans[r"\beta"] == r"\be"
    assert spans[r"\frac"] == r"\dd"


@pytest.mark.parametrize("source", [r"x\forever", r"x\dd{a}"])
def test_a_macro_that_cannot_be_written_out_is_named_in_its_place(source):
    with pytest.raises(FormulaError) as caught:
        normalize_formula(source, macros=MACROS)
    assert caught.value.position == 1


def test_an_error_behind_a_macro_points_at_the_original():
    with pytest.raises(FormulaError) as caught:
        normalize_formula(r"\be\be }", macros=MACROS)
    assert caught.value.position == 7


def test_a_cut_off_preamble_is_refused(tmp_path):
    with pytest.raises(MacroError, match="closing brace"):
        Macros.parse(r"\newcommand{\a}{b")
    with pytest.raises(MacroError, match="nowhere"):
        Macros.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("preamble", "source", "written"),
    [
        (r"\def\pair(#1,#2){<#1|#2>}", r"\pair(a,{b,c})", "<a|b,c>"),
        (r"\let\old\phi\renewcommand\phi{\varphi}", r"\phi\old", r"\varphi\phi"),
        (r"\let\a=\b", r"\a x", r"\b x"),
        (r"\def\a{x}\let\b\a\def\a{y}", r"\a\b", "yx"),
        (r"\newcommandx{\f}[3][1=p,3=q]{#1#2#3}", r"\f{y}+\f[a]{b}[c]", "pyq+abc"),
        (
            r"\NewDocumentCommand\f{s o m O{z}}{\IfBooleanTF{#1}{S}{}\IfValueTF{#2}{(#2)}{}#3#4}",
            r"\f*[a]{b}\f{c}[d]",
            "S(a)bzcd",
        ),
        (
            r"\DeclarePairedDelimiter\abs{\lvert}{\rvert}",
            r"\abs*{x}",
            r"\mathopen{}\left\lvert x\right\rvert\mathclose{}",
        ),
        (r"\DeclarePairedDelimiter\abs{|}{|}", r"\abs[\big]{x}", r"\mathopen{\big|}x\mathclose{\big|}"),
        (r"\providecommand{\frac}{no}\providecommand{\mine}{yes}", r"\frac\mine", r"\frac yes"),
        (r"\newcommand{\d}[2][ ]{\ifx #1 { }D_#2\else D^{#1}_#2\fi}", r"\d x+\d[2]x", r"{ }D_x+D^{2}_x"),
        (r"\def\f#1{\@ifnextchar\bgroup{#1,\f}{#1.}}", r"\f{a}{b}{c}d", "a,b,c.d"),
        (r"\newcommand{\g}{\@ifstar{s}{n}}", r"\g*\g", "sn"),
        (r"\def\f#1{\if\relax\detokenize{#1}\relax e\else f\fi}", r"\f{}\f{x}", "ef"),
        (
            r"\newcommand{\c}{\mathchoice{D}{T}{S}{SS}}",
            r"\c x_{\c}+\c y^\c\textstyle\c z^{\c}\scriptstyle\c z_{\c}",
            r"Dx_{S}+Dy^S\textstyle Tz^{S}\scriptstyle Sz_{SS}",
        ),
        (r"\def\f{\csname alpha\endcsname}", r"\f x", r"\alpha x"),
        (r"\expandafter\def\csname 1st\endcsname{y}\def\f{\csname 1st\endcsname}", r"a\f b", "ayb"),
        (r"\expandafter\newcommand\csname two\endcsname[1]{#1#1}", r"\two x", "xx"),
        (r"\expandafter\let\csname oldbeta\endcsname\beta", r"\oldbeta x", r"\beta x"),
        (r"\def\f{\csname 2nd\endcsname}", r"a\f b", "ab"),  # of no letter, and nobody's: nothing
        (r"\newcommand{\X}[1]{\ensuremath{#1}\xspace}", r"\X{a}b", r"\ensuremath{a}b"),
        # arguments that may be left out, by every kind of sign
        (r"\NewDocumentCommand\f{g m}{\IfNoValueTF{#1}{n}{#1}#2}", r"\f{a}b", "ab"),
        (r"\NewDocumentCommand\f{m g}{#1\IfNoValueTF{#2}{n}{#2}}", r"\f a\f b{c}", "anbc"),
        (r"\NewDocumentCommand\f{d() m}{\IfValueT{#1}{<#1>}#2}", r"\f(a)b\f c", "<a>bc"),
        (r"\NewDocumentCommand\f{D<>{z} m}{#1#2}", r"\f<a>b\f c", "abzc"),
        (
            r"\NewDocumentCommand\f{o m}{\IfValueF{#1}{F}\IfNoValueT{#1}{T}\IfNoValueF{#1}{G}#2}",
            r"\f[a]b\f c",
            "GbFTc",
        ),
        (r"\NewDocumentCommand\f{s m}{\IfBooleanT{#1}{T}\IfBooleanF{#1}{F}#2}", r"\f*a\f b", "TaFb"),
        (r"\NewDocumentCommand\f{+m !o}{#1}\ProvideDocumentCommand\f{m}{no}", r"\f a[b]", "a"),
        (r"\RenewDocumentCommand\f{z}{a}", r"\f x", r"\f x"),  # of a kind that is not understood
        (r"\NewDocumentCommand\f{d(}{a}", r"\f x", r"\f x"),
        # conditions
        (r"\def\f#1{\ifthenelse{\equal{#1}{a}}{y}{n}}", r"\f a\f b\f{ a }", "yny"),
        (r"\def\f#1{\ifstrequal{#1}{a}{y}{n}}", r"\f a\f b", "yn"),
        (r"\def\f#1{\ifblank{#1}{y}{n}\ifstrempty{#1}{y}{n}}", r"\f{ }\f{}\f{ a}", "yyyynn"),
        (r"\def\f{\iftrue a\else b\fi\iffalse c\else d\fi\ifmmode e\fi}", r"\f", "ade"),
        (r"\def\f{\iffalse\iftrue a\else b\fi c\else\iffalse d\fi e\fi f}", r"\f", "ef"),
        (r"\def\a{x}\def\b{x}\def\f{\ifx\a\b s\else d\fi\ifx\a\undefined u\else k\fi}", r"\f", "sk"),
        (r"\def\f{\ifx\nobody\undefined u\else k\fi}", r"\f", "u"),
        (r"\def\f#1{\if a#1 y\else n\fi\if\alpha\beta s\fi}", r"\f a\f b", " ysns"),
        (r"\def\a{x}\def\f{\expandafter\g\a}\def\g#1{(#1)}", r"\f", "(x)"),
        (r"\def\f{\expandafter\g\beta}\def\g#1{(#1)}", r"\f", r"(\beta)"),
        # definitions of every form
        (
            r"\DeclareMathOperator\tr{tr}\DeclareMathOperator*\am{a m}",
            r"\tr\am",
            r"\operatorname{tr}\operatorname*{a m}",
        ),
        (r"\newcommand *{\f}[1]{#1#1}", r"\f x", "xx"),
        (r"\newcommand{\f}[x]{a}\newcommand{\g}[12]{b}", r"\f\g", "ab"),
        (r"\newcommandx*\f[2][1=p, 7=q, x=y]{#1#2}", r"\f a", "pa"),
        (
            r"\DeclarePairedDelimiterX\ip[2]{(}{)}{#1\,\delimsize|\,#2}",
            r"\ip[\big]{a}{b}",
            r"\mathopen{\big(}a\,\big|\,b\mathclose{\big)}",
        ),
        (
            r"\DeclarePairedDelimiterX\ip[2]{(}{)}{#1\delimsize|#2}",
            r"\ip*{a}{b}",
            r"\mathopen{}\left( a\middle|b\right) \mathclose{}",
        ),
        (r"\newenvironment{e}[1][x]{a}{b}\NewDocumentEnvironment{g}{m}{a}{b}\newcommand{\f}{c}", r"\f", "c"),
        (r"\def\f{\def\g##1{(##1)}}\def\h{x}", r"\h", "x"),
        (r"\let\f\frac\let\frac=\frac", r"\f12\frac", r"\frac12\frac"),
        (r"\let\x\y\let\y\y", r"\x\y", r"\y\y"),
        (r"\def\f[#1]{<#1>}", r"\f[a]\f [b]", "<a><b>"),
        (r"\def\f#1.{<#1>}", r"\f ab.\f{a.b}.", "<ab><a.b>"),
        (r"\newcommand{\f}[2][d]{#1#2}", r"\f[{]}]x\f [a]y\f z", "]xaydz"),
        (r"\newcommand{\f}[1]{#1}", r"\f %c" + "\n a", "a"),
        (r"\gdef\f{a}\xdef\g{b}\edef\h{c}", r"\f\g\h", "abc"),
    ],
)
def test_macros_are_read_as_tex_reads_them(preamble, source, written):
    assert Macros.parse(preamble).expand(source).source == written


@pytest.mark.parametrize(
    ("preamble", "source"),
    [
        (r"\def\f[#1]{a}", r"\f(x)"),
        (r"\def\f#1.{a}", r"{\f x}."),
        (r"\def\f#1.{a}", r"\f x"),
        (r"\newcommand{\f}[2]{a}", r"{\f x}"),
        (r"\newcommand{\f}[1]{a}", r"\f{x"),
        (r"\def\f#1{\ifthenelse{#1}{a}{b}}", r"\f{x}"),
        (r"\def\f#1{\ifthenelse{\isodd{1}{2}}{a}{b}}", r"\f{x}"),
        (r"\def\f{\ifnum 1<2 a\fi}", r"\f"),
        (r"\def\f{\ifcat ab c\fi}", r"\f"),
        (r"\def\f{\ifx\a}", r"\f"),
        (r"\def\f{\expandafter\g}", r"\f"),
        (r"\def\f{\ifblank}", r"\f{a}{b}"),
    ],
)
def test_macros_without_their_arguments_are_refused(preamble, source):
    with pytest.raises(FormulaError) as caught:
        Macros.parse(preamble).expand(source)
    assert caught.value.position == source.index(r"\f")


@pytest.mark.parametrize(
    "preamble",
    [
        r"\newcommand{\a \b}{c}\newcommand{x}{y}",
        r"\def\f}",
        r"\def x{a}",
        r"\def\f" + "x" * 102 + "{a}",
        r"\newcommand{\f}}",
        r"\NewDocumentCommand\f{d}{a}",
    ],
)
def test_what_defines_nothing_is_passed_over(preamble):
    macros = Macros.parse(preamble + r" \newcommand{\last}{z}")
    assert macros.expand(r"\last").source == "z"
    assert macros.expand(r"\f x").source == r"\f x"


@pytest.mark.parametrize(
    "preamble",
    [
        r"\def\a{\b\b\b\b\b\b\b\b}\def\b{\c\c\c\c\c\c\c\c}\def\c{\d\d\d\d\d\d\d\d}\def\d{\e\e\e\e\e\e\e\e}\def\e{x}",
        r"\def\a#1{\a{#1#1}}",
        r"\def\a{x\a}",
    ],
)
def test_bombs_of_macros_end(preamble):
    with pytest.raises(FormulaError, match=r"never ends|without its argument"):
        Macros.parse(preamble).expand(r"\a{xxxxxxxxxxxxxxxx}")
