"""Every format on every construct: what the format's own program makes of it shows what the formula shows."""

import io
import json
import re
import shutil
import unicodedata
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings

from benchmarks import format_readers as readers
from benchmarks.formats import (
    expected,
    open_in_libreoffice,
    read_mathml,
    read_omml,
    read_plain,
    read_typst,
)
from i2l.errors import I2LError
from i2l.formats.convert import TEXT_FORMATS, FormatError, choose_formats, formula_docx, write_formula
from i2l.formats.layout import in_alphabet
from i2l.formats.omml import _FONT
from i2l.formats.translate import _SPACES, read_layout
from i2l.formulas import commands
from i2l.formulas.lexer import FormulaError
from tests.formulas.test_kept import COMMANDS, RARE, SELDOM
from tests.formulas.test_properties import formulas
from tests.kept import assert_text_kept

FOLDER = Path(__file__).parent
FORMULAS = FOLDER.joinpath("formulas.txt").read_text().splitlines()
PRINTED = ("mathml", "omml", "typst", "asciimath", "unicode")


def read_as_xml(texts):
    """MathML as Python parses it; Chromium does in the slow test."""
    for text in texts:
        yield readers.form_of_mathml(ElementTree.fromstring(text), fonts=True)


READERS = {"mathml": read_as_xml, "omml": read_omml, "typst": read_typst, "unicode": read_plain}


def differences(sources, output, reader):
    """The formulas that come back as something else, and those that the format refuses."""
    said, refused = [], []
    for source in sources:
        try:
            said.append((source, write_formula(source, output)))
        except FormatError as error:
            refused.append(error.construct)
    found = list(reader([text for _, text in said]))
    wrong = [
        (source, text, form)
        for (source, text), form in zip(said, found, strict=True)
        if form != expected(read_layout(source), output)
    ]
    return wrong, refused


@pytest.mark.parametrize("output", READERS)
def test_every_construct_comes_back(output):
    wrong, refused = differences(FORMULAS, output, READERS[output])
    assert wrong == []
    assert len(refused) <= 4, refused


@pytest.mark.slow
def test_chromium_draws_every_construct(browser):
    wrong, refused = differences(FORMULAS, "mathml", lambda texts: read_mathml(texts, browser))
    assert wrong == []
    assert refused == []


def test_asciimath_is_what_mathjax_read():
    """The lines of asciimath.txt were read by MathJax and compared, by `python -m benchmarks.formats`."""
    judged = FOLDER.joinpath("asciimath.txt").read_text().splitlines()
    for source, line in zip(FORMULAS, judged, strict=True):
        if line:
            assert write_formula(source, "asciimath") == line
        else:
            with pytest.raises(FormatError, match="AsciiMath cannot say"):
                write_formula(source, "asciimath")


def said(source, output):
    """What is written for a formula on one line, or why it is refused."""
    try:
        return write_formula(source, output).replace("\n", "\\n").replace(_FONT, "~")
    except FormatError as error:
        return f"refused: {error.construct}"
    except FormulaError:
        return "no formula"


@pytest.mark.parametrize("output", ["mathml", "omml", "typst", "unicode"])
def test_what_programs_were_seen_to_show_is_what_is_written(output):
    """Word, browsers and Typst were shown these; also what no reader of ours looks at may matter."""
    assert_text_kept(output, [said(source, output) for source in FORMULAS])


# Signs that may be taken for others, or for words, where they touch.
SIGNS = [
    r"\vert",
    "[",
    "]",
    "(",
    ")",
    "/",
    ">",
    "=",
    "-",
    ".",
    ",",
    ":",
    "2",
    "x",
    r"\in",
    r"\sin",
    r"\Vert",
    "'",
]


@pytest.mark.parametrize("output", PRINTED)
def test_what_is_seldom_written_is_written_as_it_was(output):
    """Every command with its arguments, tables of few rows, scripts, and any two signs beside each other."""
    tables = [
        rf"\begin{{{kind}}} a & b {rows}\end{{{kind}}}"
        for kind in ("matrix", "pmatrix", "vmatrix", "Vmatrix", "cases", "aligned")
        for rows in ("", r"\\ c & d", r"\\ c & d \\ e & f")
    ]
    scripts = [
        f"{base}{limits}_{{a}}^{{b}}"
        for base in (
            r"\sum",
            r"\int",
            r"\lim",
            r"\sin",
            "f",
            "x",
            r"\hat{x}",
            r"\overbrace{x}",
            r"\vec{ab}",
            "(",
            "2",
        )
        for limits in ("", r"\limits", r"\nolimits")
    ]
    spaces = [f"a{space} b" for space in _SPACES]
    lines = [said(source, output) for source in (*SELDOM, *RARE, *COMMANDS, *tables, *scripts, *spaces)]
    if output in ("mathml", "omml"):
        lines = [re.sub(r"</[^>]*>", "/", line) for line in lines]
    else:
        lines += ["   ".join(said(f"a{first} {second} b", output) for second in SIGNS) for first in SIGNS]
    assert_text_kept(f"{output}_seldom", lines)


@given(formulas)
@settings(max_examples=150, deadline=None)
def test_any_formula_comes_back_or_is_refused_by_name(source):
    for output, reader in READERS.items():
        if output == "unicode":
            continue  # brackets without a partner can be read in two ways there
        try:
            text = write_formula(source, output)
        except FormulaError:
            return
        except FormatError:
            continue
        (found,) = reader([text])
        assert found == expected(read_layout(source), output), (output, text)


@given(formulas)
@settings(max_examples=100, deadline=None)
def test_canonical_tokens_say_the_same(source):
    try:
        canonical = write_formula(source, "tokens")
    except FormulaError:
        return
    for output in PRINTED:
        try:
            text = write_formula(source, output)
        except FormatError:
            continue
        assert write_formula(canonical, output) == text


@pytest.mark.parametrize(
    ("latex", "typst"),
    [
        (r"\sum_{\substack{i<n\\j}} x", r"sum_(i < n \ j) x"),
        (r"A^{\begin{matrix}a&b\\c&d\end{matrix}}", "A^(mat(delim: #none, a, b ; c, d))"),
        ("x", "x"),
        (r"\frac{a}{b}", "frac(a, b)"),
        (r"f(x, y) = \frac{g(x,y)}{2}", "f(x, y) = frac(g(x, y), 2)"),
        (r"\frac{a, b}{c; d}", r"frac(a \, b, c \; d)"),
        (r"(\frac{a}{b})", r"\( frac(a, b) \)"),
        (r"\left(\frac{a}{b}\right)", "(frac(a, b))"),
        (r"i n", "i n"),
        (r"\mathrm{tr}\,\rho", '"tr" thin rho'),
        (r"\#", r"\#"),
        (r'\text{say "a\_b"}', r'"say \"a_b\""'),
        (r"x_{12}'", "x'_12"),
        (r"|x|^2", "|x|^2"),
        (r"||", "| |"),
        (r"\boldsymbol{,}", r"bold(\,)"),
        (r"\varinjlim_k", "limits(limits(lim)_(stretch(->)))_k"),
        (r"\left[ |a| \right]", "[ |a| ]"),  # `[|` and `|]` are other signs
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", r"a & = b \ c & = d"),
        (r"\begin{pmatrix} a & ~ \\ c & d \end{pmatrix}", 'mat(delim: "(", a, #h(0.333em) ; c, d)'),
    ],
)
def test_typst(latex, typst):
    assert write_formula(latex, "typst") == typst


@pytest.mark.parametrize(
    ("latex", "asciimath"),
    [
        (r"C^{(1,0)}", "C^(( 1 , 0 ) {::})"),  # not the matrix that `((1,0))` is
        (r"\frac{|x|}{2}", "( :|: x :|: )/(2)"),  # not the angle bracket that `(:` is
        (r"f\frac{a}{b}", "f {: (a)/(b) :}"),  # not f(a) over b
        (r"a \wedge^* b", "a ^^ ^(**) b"),  # not the large wedge
        (r"\frac{(a}{b}", '("(" a)/(b)'),  # a bracket that is not closed takes none of ours
        (r"\left. x \right|_0", "{: x :|_(0)"),
    ],
)
def test_asciimath(latex, asciimath):
    assert write_formula(latex, "asciimath") == asciimath


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{-b\pm\sqrt{b^2-4ac}}{2a}", "(−b ± √(b² − 4ac))/(2a)"),
        (r"x_i^2 + y_{\alpha}", "xᵢ² + y_α"),
        (r"\sum_{n=1}^\infty a_n", "∑_(n = 1)^∞aₙ"),
        (r"\mathbb{R} \mathcal{L} \mathbf{x}", "ℝℒ𝐱"),
        (r"\sin x + \hat{y}", "sin x + y\u0302"),
        (r"a/b", "a∕b"),
    ],
)
def test_plain_text(latex, text):
    assert write_formula(latex, "unicode") == text


@pytest.mark.parametrize(
    ("latex", "output", "construct"),
    [
        (r"a \unheardof b", "typst", r"Typst cannot say \\unheardof"),
        (r"a = b \tag{1}", "mathml", r"MathML cannot say \\tag"),
        (r"\begin{array}{c|c} a & b \end{array}", "omml", r"Word cannot say a rule in a table"),
        (r"\xcancel{x}", "asciimath", r"AsciiMath cannot say \\xcancel"),
        (r"a \hspace{-2em} b", "unicode", "Plain text cannot say negative space"),
        (r"\begin{tikzpicture} x \end{tikzpicture}", "omml", r"Word cannot say \\begin\{tikzpicture\}"),
        (r"\not", "typst", r"Typst cannot say \\not before nothing"),
    ],
)
def test_what_cannot_be_said_is_named(latex, output, construct):
    with pytest.raises(FormatError, match=construct):
        write_formula(latex, output)


def test_latex_formats():
    assert write_formula("x^2") == "x^2"
    assert write_formula("x^2", "inline") == "$x^2$"
    assert write_formula("x^2", "display") == "$$x^2$$"
    assert write_formula("x^2", "brackets") == r"\[ x^2 \]"
    assert write_formula("x^2", "equation") == r"\begin{equation} x^2 \end{equation}"
    assert write_formula("x^2", "tokens") == "x ^ { 2 }"
    with pytest.raises(I2LError, match="choose one of"):
        write_formula("x", "word")
    assert choose_formats("typst, docx") == ["typst", "docx"]
    for output in TEXT_FORMATS:
        assert "\n" not in write_formula(r"\begin{aligned} a &= b \\ c &= d \end{aligned}", output)


def test_every_sign_of_latex_is_known():
    every = [
        *commands.LETTERS,
        *commands.BINARIES,
        *commands.RELATIONS,
        *commands.ARROW_SIGNS,
        *commands.OPERATORS,
    ]
    for output in PRINTED:
        for sign in every:
            assert write_formula(f"a {sign} b", output)


def test_typst_of_empty_cells_comes_back():
    assert list(read_typst([write_formula(r"\begin{aligned} & \end{aligned}", "typst")])) == [[]]


def test_typst_knows_the_names(tmp_path):
    import typst

    wrong = {}
    for sign, name in commands.TYPST_NAMES.items():
        (tree,) = json.loads(typst.query(f"$ {name} $".encode(), "math.equation"))
        if tree["body"].get("text") != sign:
            wrong[name] = tree["body"]
    assert wrong == {}


def test_typst_takes_every_fence():
    """Neither a matrix in slashes or arrows nor an opening bracket without its partner did compile."""
    import typst

    pairs = [rf"\left{fence} %s \right{fence}" for fence in commands.SHOWN_FENCES]
    formulas = [pair % body for pair in pairs for body in ("x", r"\begin{matrix} a \\ b \end{matrix}")]
    formulas += [
        rf"\genfrac{{{fence}}}{{)}}{{{line}}}{{}}ab"
        for fence in commands.SHOWN_FENCES
        for line in ("", "0pt")
    ]
    formulas += [rf"\left( a \middle{fence} b \right] \big{fence}" for fence in commands.SHOWN_FENCES]
    written = [write_formula(formula, "typst") for formula in formulas]
    trees = json.loads(typst.query(" ".join(f"$ {text} $" for text in written).encode(), "math.equation"))
    assert len(trees) == len(formulas)


def test_a_name_in_another_format_stands_in_one_record():
    signs = [command for command in commands.COMMANDS.values() if command.name in commands.SHOWN]
    for fact in ("typst", "asciimath"):
        named = [command.unicode for command in signs if getattr(command, fact)]
        assert len(named) == len(set(named)), fact
        spoken = {*commands.SHOWN, *commands.ACCENT_MARKS, *commands.OPERATOR_LETTERS}
        assert {name for name, command in commands.COMMANDS.items() if getattr(command, fact)} <= spoken


def test_alphabets():
    assert in_alphabet("h", "", bold=False) == "ℎ"
    assert in_alphabet("B", "cal", bold=False) == "ℬ"
    assert in_alphabet("x", "rm", bold=True) == "𝐱"
    assert in_alphabet("+", "bb", bold=False) == "+"


def test_what_an_alphabet_has_not_stays_as_it_is():
    """By Unicode's own names: no script or Fraktur digits, no Greek but in roman, italic and sans-serif."""
    words = {"": "ITALIC", "it": "ITALIC", "cal": "SCRIPT", "frak": "FRAKTUR", "bb": "DOUBLE-STRUCK"}
    words |= {"sf": "SANS-SERIF", "tt": "MONOSPACE", "rm": "BOLD"}
    for font, word in words.items():
        for bold in (False, True):
            for sign in "AZaz09ΑΩαω":
                shown = in_alphabet(sign, font, bold=bold)
                if shown == sign:
                    upright = font in ("cal", "frak") or (not bold and font in ("", "it"))
                    assert sign in "ΑΩαω" or (sign in "09" and upright) or (font, bold) == ("rm", False)
                    continue
                assert unicodedata.normalize("NFKC", shown) == sign, (font, bold, sign)
                name = unicodedata.name(shown)
                assert word in name or (sign in "09ΑΩ" and "BOLD" in name) or shown in "ℤℨ", (font, name)


@pytest.mark.parametrize(
    ("name", "before", "after"), [("mod", "1em", "0.3333em"), ("bmod", "0.2222em", "0.2222em")]
)
def test_spaces_around_mod(name, before, after):
    """As amsmath has them, in quads."""
    written = write_formula(rf"a \{name} b", "mathml")
    assert re.findall(r'width="([^"]+)"', written) == [before, after]


def test_word_document():
    import docx

    content = formula_docx(*[latex for latex in FORMULAS if "hline" not in latex])
    assert content == formula_docx(*[latex for latex in FORMULAS if "hline" not in latex])
    document = docx.Document(io.BytesIO(content))
    paragraphs = document.element.body.findall("{*}p/{*}oMathPara/{*}oMath")
    assert len(paragraphs) == len(FORMULAS) - 2
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        text = archive.read("word/document.xml").decode()
    assert not re.search(r"<m:e></m:e>|<m:e/>", text), "Word shows an empty place as a dotted box"


def test_brackets_under_an_exponent_are_one_thing():
    """As Word keeps them; LibreOffice ended the formula at a closing bracket that stood alone."""
    written = write_formula("x (a + (b)^2)_3 [c) (d", "omml")
    pair = '<m:begChr m:val="("/><m:endChr m:val=")"/><m:grow m:val="0"/>'
    assert written.count(pair) == 2
    assert written.count("<m:sSub>") == written.count("<m:sSup>") == 1
    assert list(read_omml([written])) == [expected(read_layout("x (a + (b)^2)_3 [c) (d"), "omml")]


@pytest.mark.slow
def test_libreoffice_opens_the_document():
    if shutil.which("soffice") is None:
        pytest.skip(
            "LibreOffice is not installed: apt install libreoffice-writer-nogui libreoffice-math-nogui"
        )
    said = [latex for latex in FORMULAS if "hline" not in latex]
    found = open_in_libreoffice(formula_docx(*said))
    assert len(found) == len(said)
    (shown, *_) = open_in_libreoffice(formula_docx(r"(a+b)^{2} = \frac{1}{\sqrt{x}}"))[0][0]
    assert readers.form_of_mathml(shown) == expected(read_layout(r"(a+b)^{2} = \frac{1}{\sqrt{x}}"), "typst")


def test_spaces_are_as_wide_as_tex_has_them():
    eighteenths = {
        r"\,": 3, r"\:": 4, r"\;": 5, r"\enspace": 9, r"\quad": 18, r"\qquad": 36,
        r"\!": -3, r"\negmedspace": -4, r"\negthickspace": -5,
    }  # fmt: skip
    assert {name: pytest.approx(18 * _SPACES[name]) for name in eighteenths} == eighteenths
    assert {_SPACES[name] for name in _SPACES.keys() - eighteenths} == {
        1 / 3
    }  # between words, in Computer Modern


@pytest.mark.parametrize("output", ["mathml", "omml"])
@pytest.mark.parametrize(
    "latex", [r"a<b>c\&d", r"\text{a<b>c\&d}", r"\mathbf{a<b>c\&d}", r"x^{\text{a<b>c\&d}}"]
)
def test_signs_of_markup_come_back_as_they_were(latex, output):
    shown = "".join(ElementTree.fromstring(write_formula(latex, output)).itertext())
    assert unicodedata.normalize("NFKC", shown).removeprefix("x") == "a<b>c&d"


@pytest.mark.parametrize("sign", ["+", "-", r"\pm", r"\mp", "=", ","])
def test_in_word_a_sum_takes_along_one_term(sign):
    root = ElementTree.fromstring(write_formula(rf"\sum_n -a {sign} b", "omml"))
    (taken,) = root.iterfind("./{*}nary/{*}e")
    assert "".join(taken.itertext()) == "−a"


def test_two_signs_make_a_space_positive_and_a_slash_takes_no_space():
    assert [item.em for item in read_layout(r"\hspace{--1em}\hspace{-1em}").items] == [1.0, -1.0]
    assert read_layout(r"\not \, =").items[-1].text == "="
    assert read_layout(r"\not \! =").items[-1].text == "≠"
