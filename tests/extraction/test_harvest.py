"""Documents of many files: every display is found, once, in its place, with its macros written out."""

import pytest

from i2l.extraction import document
from i2l.extraction.archives import Bundle, Verdict, decode
from i2l.extraction.harvest import Formula, HarvestOptions, harvest
from tests.extraction.book import BOOK, DISPLAYS


def found_in(files, **options):
    rows = list(harvest(Bundle("", dict(files)), HarvestOptions(**options)))
    return [row for row in rows if isinstance(row, Formula)], [r for r in rows if isinstance(r, Verdict)]


def latex_of(text, **options):
    """The formulas of one file with amsmath's own document around it."""
    source = rf"\documentclass{{article}}\begin{{document}}{text}\end{{document}}"
    return [formula.latex for formula in found_in({"a.tex": source.encode()}, **options)[0]]


def test_a_book_gives_its_displays_in_order():
    formulas, verdicts = found_in(BOOK)
    assert [(formula.latex, formula.environment) for formula in formulas] == DISPLAYS
    assert verdicts == []


def test_spans_are_those_of_the_file():
    for formula in found_in(BOOK, min_inline=1)[0]:
        text = decode(BOOK[formula.file])
        start, end = formula.span
        opening = {"$": "$", "$$": "$$", r"\[": r"\["}.get(formula.environment, "")
        assert text[start:end].startswith(opening or "\\"), formula
        assert text[start:end].endswith(("$", "}", r"\]", r"\ee")), formula
    (inline,) = [formula for formula in found_in(BOOK, min_inline=3)[0] if formula.environment == "$"]
    assert decode(BOOK[inline.file])[slice(*inline.span)] == "$a_1 + b_1$"


def test_macros_that_were_written_out_are_named():
    first = found_in(BOOK)[0][0]
    assert first.macros == {r"\E": r"\operatorname{E}", r"\norm": r"\left\|#1\right\|"}


def test_inline_formulas_are_taken_by_their_length():
    text = r"$x$ and \(y+z\) and $a+b+c$ and \begin{math}d+e\end{math}"
    assert latex_of(text) == []
    assert latex_of(text, min_inline=1) == ["x", "y+z", "a+b+c", "d+e"]
    assert latex_of(text, min_inline=4) == ["a+b+c"]


def test_rows_are_formulas_of_their_own_if_asked():
    text = r"\begin{align}a&=\begin{matrix}1&2\\3&4\end{matrix}\\ \label{x} b&=c\\[3pt] &=d\end{align}"
    assert latex_of(text, rows=True) == [r"a =\begin{matrix}1&2\\3&4\end{matrix}", "b =c", "=d"]
    assert len(latex_of(text)) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\begin{subequations}\begin{align}a\end{align}\end{subequations}", [r"\begin{align}a\end{align}"]),
        (r"\begin{dmath*}a\end{dmath*}", ["a"]),
        (r"$$a \mbox{ if $b$} c$$", [r"a \mbox{ if $b$} c"]),
        (r"a \\[2pt] b", []),
        (r"\newcommand{\eqn}[1]{\begin{equation}#1\end{equation}}\eqn{x_{1}}", ["x_{1}"]),
        (
            r"\def\bea{\begin{eqnarray}}\def\eea{\end{eqnarray}}\bea a\eea",
            [r"\begin{eqnarray}a\end{eqnarray}"],
        ),
        (r"\def\beq{\equation}\def\eeq{\endequation}\beq a\eeq", ["a"]),
        (r"\def\o{\[}\def\c{\]}\o a+b\c", ["a+b"]),
        (r"\def\be{$$}\def\ee{$$}\be a\ee", ["a"]),
        (r"\newcommand{\eq}[1]{\[#1\]}\newcommand{\named}[2]{\eq{#1=#2}}\named{a}{b}", ["a=b"]),
        (r"\newcommand{\hide}[1]{}\hide{\[a\]}\[b\]", ["b"]),
        (r"\newcommand{\x}{1}\begin{proof}\def\x{2}\[\x\]\end{proof}\[\x\]", ["2", "1"]),
        (r"\newcommand{\x}{1}{\gdef\x{2}}\[\x\]", ["2"]),
        (r"\newcommand{\x}{1}\begin{document}{\def\x{2}{\def\x{3}}}\[\x\]\end{document}", ["1"]),
        (r"\[ a \qedhere \eqno(3)\]", ["a"]),
        (r"\[ x \coloneqq \ket{y} \]", [r"x \mathrel{\mathop{:}}=|y\rangle"]),
        (r"\[ \begin{dcases} a \end{dcases} \]", [r"\begin{cases} a \end{cases}"]),
        (r"\[ \begin{tikzcd} a \end{tikzcd} \]", []),
        (r"\[ \nobodyknows \]", []),
        (r"\let\[\relax", []),
    ],
)
def test_the_habits_of_authors(text, expected):
    assert latex_of(text) == expected


def test_macros_and_environments_may_be_defined_by_what_is_defined_later():
    text = (
        r"\newcommand{\a}[1]{\be #1=1\ee}\newcommand{\b}{\a{w}}\newcommand{\be}{\x}"
        r"\newenvironment{one}{\be}{\ee}\newenvironment{two}{\begin{one}}{\end{one}}"
        r"\newcommand{\x}{\begin{equation}}\newcommand{\ee}{\end{equation}}"
        r"\a{x}\b\begin{one}y\end{one}\begin{two}z\end{two}"
    )
    assert latex_of(text) == ["x=1", "w=1", "y", "z"]


def test_what_opens_no_formula_any_more_is_not_written_out():
    text = (
        r"\def\be{\[}\newenvironment{one}{\be}{\]}\begin{one}x\end{one}"
        r"\def\be{b}\renewenvironment{one}{\be}{}\[\be\]\begin{one}y\end{one}"
    )
    assert latex_of(text) == ["x", "b"]


def test_a_branch_that_does_not_hold_ends_at_its_own_fi():
    switches = r"\newif\ifa\newif\ifb"
    nested = r"\ifa \ifb \[ x \] \else \[ y \] \fi \[ z \] \else \[ u \] \fi \[ v \]"
    assert latex_of(switches + nested) == ["u", "v"]
    assert latex_of(switches + r"\atrue" + nested) == ["y", "z", "v"]


def test_a_chapter_of_two_documents_gives_its_formulas_once():
    root = rb"\documentclass{a}\input{chapter}"
    formulas, verdicts = found_in({"a.tex": root, "b.tex": root + rb"\[ y \]", "chapter.tex": rb"\[ x \]"})
    assert [(formula.latex, formula.file) for formula in formulas] == [("x", "chapter.tex"), ("y", "b.tex")]
    assert not verdicts


def test_a_loose_chapter_has_the_macros_of_the_first_document_that_has_them():
    files = {
        "a.tex": rb"\documentclass{a}\def\x{1}",
        "b.tex": rb"\documentclass{a}\def\x{2}\def\y{3}",
        "loose.tex": rb"\[ \x\y \]",
    }
    assert [formula.latex for formula in found_in(files)[0]] == ["13"]


def test_what_is_left_out_says_why():
    text = r"\documentclass{a}\[\xymatrix{a}\]\[\who\]\[ \]\input{gone} $a" + "\n\n" + r"\def\a{\a\a}\[\a\]"
    verdicts = found_in({"a.tex": text.encode()})[1]
    assert {verdict.verdict for verdict in verdicts} == {
        "diagram",
        "undefined-command",
        "empty",
        "missing-input",
        "unclosed",
        "macro-never-ends",
    }
    assert [verdict.message for verdict in verdicts if verdict.verdict == "undefined-command"] == [r"\who"]


def test_after_twenty_definitions_that_are_cut_off_no_more_are_read():
    """Each is searched to the end of the document, so a document of nothing else would take for ever."""
    broken = "".join(rf"\def\x{letter}#1" + "}" for letter in "abcdefghijklmnopqrstuvwxyz")
    for count, expected in ((20, ["y"]), (21, [])):
        text = broken[: count * len(r"\def\xa#1}")] + r"\newcommand{\be}{\[}\be y\]"
        assert latex_of(text) == expected, count


def test_after_fifty_formulas_that_never_end_a_document_is_left():
    """Each takes all the time that a macro may take."""
    endless = r"\documentclass{a}\def\a{\a\a}" + r"\[\a\]" * 60 + r"\[ x \]"
    formulas, verdicts = found_in({"a.tex": endless.encode()})
    assert [verdict.verdict for verdict in verdicts] == ["macro-never-ends"] * 50 + ["given-up"]
    assert formulas == []


@pytest.mark.parametrize(
    "command",
    [r"\input two", r"\input{two.tex}", r"\include{two}", r"\import{./}{two}", r"\subimport{}{two}"],
)
def test_files_are_put_in_where_they_stand(command):
    files = {"x/a.tex": rf"\documentclass{{b}}\[1\]{command} \[3\]".encode(), "x/two.tex": rb"\[2\]"}
    assert [formula.latex for formula in found_in(files)[0]] == ["1", "2", "3"]


def test_packages_of_the_paper_define_and_draw_nothing():
    files = {
        "a.tex": rb"\documentclass{b}\usepackage{mine}\begin{document}\[\mine\]",
        "mine.sty": rb"\newcommand{\mine}{m}\[ not drawn \]",
    }
    assert [formula.latex for formula in found_in(files)[0]] == ["m"]


def test_chapters_without_their_book_get_the_macros_of_the_others():
    files = {"a.tex": rb"\documentclass{b}\newcommand{\R}{\mathbb R}", "chapter.tex": rb"\section{x}\[\R\]"}
    assert [formula.latex for formula in found_in(files)[0]] == [r"\mathbb R"]


def test_a_link_that_became_a_file_leads_to_its_target():
    files = {
        "x/a.tex": rb"\documentclass{b}\input{header}\[\R\]",
        "x/header.tex": b"../header.tex",
        "header.tex": rb"\newcommand{\R}{r}",
    }
    assert [formula.latex for formula in found_in(files)[0]] == ["r"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252"])
def test_any_encoding_is_read(encoding):
    text = "\\documentclass{a}\r\nna\u00efve \\[ \\text{caf\u00e9} \\]"
    formulas, _ = found_in({"a.tex": text.encode(encoding)})
    assert [formula.latex for formula in formulas] == ["\\text{caf\u00e9}"]


def test_a_declared_encoding_is_believed():
    text = "\\documentclass{a}\\usepackage[koi8-r]{inputenc}\\[ \\text{\u0434\u0430} \\]"
    (formula,) = found_in({"a.tex": text.encode("koi8-r")})[0]
    assert formula.latex == "\\text{\u0434\u0430}"


def chain(kind, length):
    """A document whose display stands so many macros, or files, inside of others."""
    if kind == "macros":
        steps = "".join(rf"\def\m{letter(n)}{{\m{letter(n + 1)}}}" for n in range(length - 1))
        body = rf"{steps}\def\m{letter(length - 1)}{{\[a+b+c\]}}\ma"
        return {"a.tex": rf"\documentclass{{article}}\begin{{document}}{body}\end{{document}}".encode()}
    files = {f"f{n}.tex": rf"\input{{f{n + 1}}}".encode() for n in range(1, length)}
    top = rb"\documentclass{article}\begin{document}\input f1 \end{document}"
    return {"a.tex": top, **files, f"f{length}.tex": rb"\[a+b+c\]"}


def letter(number):
    return "abcdefghijklmnop"[number]


@pytest.mark.parametrize(
    ("limit", "kind", "most"),
    [
        ("MAX_DEPTH", "macros", 6),
        ("MAX_DEPTH", "files", 6),
        ("MAX_CALLS", "macros", 6),
        ("MAX_INPUTS", "files", 6),
    ],
)
def test_macros_and_files_stand_inside_each_other_up_to_a_limit(limit, kind, most, monkeypatch):
    monkeypatch.setattr(document, limit, most)
    formulas, verdicts = found_in(chain(kind, most))
    assert ([formula.latex for formula in formulas], verdicts) == (["a+b+c"], [])
    formulas, verdicts = found_in(chain(kind, most + 1))
    loop = "macro-loop" if kind == "macros" else "input-loop"
    assert loop in [verdict.verdict for verdict in verdicts]
    assert kind == "files" or formulas == []  # a file that was not reached is read by itself


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\ifx\mine\undefined\[a+b\]\else\[c+d\]\fi", ["a+b"]),
        (r"\def\mine{x}\ifx\mine\undefined\[a+b\]\else\[c+d\]\fi", ["c+d"]),
        (r"\def\mine{x}\ifx\@undefined\mine\[a+b\]\fi\[e+f\]", ["e+f"]),
        (r"\ifx\one\two\[a+b\]\else\[c+d\]\fi", ["a+b", "c+d"]),  # nobody can tell
        (r"\newif\ifmine\minetrue\ifmine\[a+b\]\else\[c+d\]\fi\minefalse\ifmine\[e+f\]\fi", ["a+b"]),
        (r"\newif\ifmine\ifmine\ifx\a\b\[a+b\]\fi\[g+h\]\else\[c+d\]\fi", ["c+d"]),
        (r"\[a+b\]\providecommand{\x}{y}\newcommand{\x}{z}\providecommand{\x}{w}\[\x+\x\]", ["a+b", "z+z"]),
        (r"\begin{eqnarray}a&=&\mbox{b {c} \& d}\\e&=&\begin{matrix}f&g\end{matrix}\end{eqnarray}", None),
    ],
)
def test_conditions_and_definitions_of_documents(text, expected):
    found = latex_of(text)
    if expected is None:
        assert any(r"\begin{matrix}f&g\end{matrix}" in latex for latex in found)
    else:
        assert found == expected


def test_what_is_imported_and_missing_is_said():
    body = rb"\import{parts/}{one}\subimport{x/}{y}\[a+b\]"
    source = rb"\documentclass{article}\begin{document}" + body + rb"\end{document}"
    formulas, verdicts = found_in({"a.tex": source, "parts/one.tex": rb"\[c+d+e\]"})
    assert [formula.latex for formula in formulas] == ["c+d+e", "a+b"]
    assert [(verdict.verdict, verdict.message) for verdict in verdicts] == [("missing-input", "x/y")]


def test_styles_of_old_documents_are_read():
    source = rb"\documentstyle[12pt,mine]{article}\begin{document}\[\x+\x\]\end{document}"
    assert found_in({"a.tex": source, "mine.sty": rb"\def\x{y}"})[0][0].latex == "y+y"


@pytest.mark.parametrize(("kind", "loop"), [("macros", "macro-loop"), ("files", "input-loop")])
def test_a_document_is_written_out_up_to_a_length(kind, loop, monkeypatch):
    """Nothing more is put into it as soon as what stands before is longer than the limit."""
    files = chain(kind, 1)
    before, call, after = files["a.tex"].rpartition(rb"\ma" if kind == "macros" else rb"\input")
    if kind == "macros":  # counts what stands before the last of them
        before, after = before + b"word " * 20 + call, b" " + call + after
    else:
        before, after = before + b"word " * 20, call + after
    files["a.tex"] = before + after
    refused = []
    for limit in range(60, 160):
        monkeypatch.setattr(document, "MAX_DOCUMENT_CHARACTERS", limit)
        refused.append(loop in [verdict.verdict for verdict in found_in(files)[1]])
    length = len(b"word " * 20) + (len(r"\[a+b+c\]") if kind == "macros" else 0)
    assert refused.index(False) + 60 == length
    assert refused == [limit < length for limit in range(60, 160)]
