"""From a page to its formulas, and from prose to the pages that a detector learns from, as it was."""

import math
import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from i2l.cli.read import _say_errors
from i2l.errors import I2LError
from i2l.images.prepare import ImageTooLargeError
from i2l.inference.reading import Reading
from i2l.pages import document
from i2l.pages.corpus import Part, Story, compose_document, draw_look, read_stories
from i2l.pages.document import PageFile, _Glyph
from i2l.pages.gather import DISPLAYED, NUMBER, FoundPage, Gathering, PageInk
from i2l.pages.marked import compose_web_page
from i2l.pages.order import Found
from i2l.pages.reader import (
    PageReader,
    _ascender_share,
    _keystone,
    _line_points,
    _Placed,
    _slope,
    _split_rows,
    homography,
    project,
)
from i2l.pages.train import learning_rate
from i2l.pages.variety import vary_story
from tests.kept import assert_kept, assert_text_kept
from tests.pages.test_pages import blank_pdf

# What a page has, by how often: letters, words that are names, signs, pauses, brackets, accents, references.
WORDS = [
    "a",
    "x",
    "I",
    "of",
    "the",
    "let",
    "sin",
    "max",
    "exp",
    "f(x)",
    "=",
    "+",
    "-",
    "<",
    "|",
    ",",
    ".",
    ";",
    ":",
    "(",
    ")",
    "(3)",
    "(12a)",
    "(1.2)",
    "[4]",
    "1",
    "25",
    "...",
    "^",
    "´",
    "¯",
    "α",
    "∑",
    "∈",
    "n",
    "i",
]


def line(source):
    """One line of glyphs in many sizes, fonts and gaps."""
    glyphs, x = [], 0
    while len(glyphs) < 60:
        word = source.choice(WORDS)
        mathematical, bold, leaning = (source.random() < share for share in (0.35, 0.15, 0.25))
        size = source.choice([20.0, 20.0, 20.0, 14.0, 13.0])
        shift = source.choice([0, 0, 0, 0, -9, 7, 25]) if len(word) == 1 else 0
        for text in word:
            width = source.choice([4, 8, 10, 12])
            height = source.choice([8, 10, 14])
            box = (x, 40 - height + shift, x + width, 40 + shift)
            glyphs.append(_Glyph(text, size, box, mathematical, bold, leaning and not mathematical))
            x += width + source.choice([0, 1, 1, 2, 3])
        x += source.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 19, 21, 30, 41])
    return glyphs


def test_glyphs_become_formulas_as_they_did():
    measured = {}
    for number in range(30):
        glyphs = line(random.Random(number))
        measured[f"runs {number}"] = [side for box in document._runs(glyphs) for side in box]
        measured[f"numbers {number}"] = [side for box in document._numbers(glyphs) for side in box]
        counted = document._with_leaning_letters([glyph._replace(mathematical=False) for glyph in glyphs])
        measured[f"leaning {number}"] = [place for place, one in enumerate(counted) if one.mathematical]
    assert sum(len(numbers) > 0 for numbers in measured.values()) > 50
    assert_kept("glyphs", measured)


@pytest.mark.parametrize(("count", "looked_at"), [(19, 0), (20, 20), (30, 30), (31, 0)])
def test_fonts_are_looked_at_where_there_are_neither_few_nor_many_letters(count, looked_at, monkeypatch):
    monkeypatch.setattr(document, "_MAX_GLYPHS", 30)
    content = f"BT /F1 12 Tf 20 700 Td ({'x' * count}) Tj ET"
    with document.require_extra("pypdfium2", "pages").PdfDocument(blank_pdf(content=content)) as pdf:
        assert len(document._read_glyphs(pdf[0], (595, 842))) == looked_at
    assert PageFile(blank_pdf(), "blank").num_pages == 1


def feet(source, *, size, lines=24, lean_deg=0.0, keystone_deg=0.0):
    """The feet of letters that stand on lines, which lean, the upper ones by more."""
    points = []
    for number in range(lines):
        y = (number + 0.5) * size[1] / lines
        slope = math.tan(math.radians(lean_deg + keystone_deg * (0.5 - y / size[1])))
        for _ in range(45):
            x = source.uniform(0, size[0])
            points.append((x, y + slope * (x - size[0] / 2) + source.gauss(0, 0.4)))
    return np.array(points)


def test_lines_are_levelled_as_they_were():
    size = np.array([900.0, 1200.0])
    measured = {}
    for number, (lean, keystone) in enumerate([(0, 0), (1.3, 0), (-2.4, 0), (0, 1.5), (0.5, -3), (0, 0.5)]):
        points = feet(random.Random(number), size=size, lean_deg=lean, keystone_deg=keystone)
        measured[f"{lean} {keystone} slope"] = _slope(points, 12.0, 0.0, 6.0)
        found = _keystone(points, size, 12.0)
        measured[f"{lean} {keystone} keystone"] = [] if found is None else found.ravel() * 1e3
    assert _slope(points[:3], 12.0, 0.7, 6.0) == (0.7, 1.0)
    assert_kept("levelled", measured)


def test_four_points_go_where_they_shall():
    given = [(0.0, 10.0), (100.0, 0.0), (120.0, 80.0), (-5.0, 90.0)]
    wanted = [(3.0, 4.0), (90.0, 7.0), (100.0, 99.0), (0.0, 70.0)]
    np.testing.assert_allclose(project(homography(given, wanted), np.array(given)), wanted, atol=1e-9)


def letters(source, count, *, head):
    """Boxes of small letters and of such that stand above the line, or hang below it on the head."""
    boxes = []
    for number in range(count):
        left, line_y = 14 * (number % 60), 40 * (number // 60)
        kind = source.random()
        top, bottom = line_y, line_y + 12
        if kind < 0.3:
            top -= 5
        elif kind < 0.4:
            bottom += 5
        if head:
            top, bottom = 1000 - bottom, 1000 - top
        boxes.append((left, top, left + 9 + 30 * (kind > 0.97), bottom))
    return np.array(boxes, np.float64)


def test_letters_show_where_is_up_as_they_did():
    source = random.Random(5)
    measured = {}
    for count in (30, 120, 600):
        for head in (False, True):
            boxes = letters(source, count, head=head)
            measured[f"{count} {head}"] = [
                _ascender_share(boxes, 12.0),
                *_line_points(boxes, 12.0).mean(axis=0),
            ]
            measured[f"{count} {head} letters"] = [
                len(_line_points(boxes, size)) for size in (6.0, 8.0, 12.0, 19.0)
            ]
    assert_kept("ascenders", measured)


def test_displays_are_cut_at_rows_without_ink():
    """Rows of ink nearer than .7 of a small letter are one line; faint ink is none."""
    ink = np.zeros((100, 50), np.uint8)
    for top, bottom, dark in ((10, 20, 200), (26, 30, 61), (37, 45, 255), (60, 70, 60), (80, 90, 255)):
        ink[top:bottom, 5:40] = dark
    page = PageInk(ink, np.zeros((0, 4), np.int64), 10.0)
    assert _split_rows(page, (5, 5, 45, 95)) == [(5, 10, 45, 30), (5, 37, 45, 45), (5, 80, 45, 90)]
    assert _split_rows(page, (5, 12, 45, 28)) == [(5, 12, 45, 28)]
    assert _split_rows(page, (42, 5, 45, 95)) == []


def test_a_number_that_no_display_has_is_none_of_an_equation():
    display, own = Found(DISPLAYED, (100, 100, 300, 140), 1.0), Found(NUMBER, (400, 110, 430, 130), 1.0)
    gathering = object.__new__(Gathering)
    gathering._hints, gathering._symbol, gathering._pieces = None, 10.0, np.zeros((0, 4), np.int64)
    gathering._numbers = lambda: [Found(NUMBER, (250, 900, 270, 915), 1.0), own]  # the first is the page's
    gathering._displays, gathering._inline = lambda: [display], lambda: []
    found = gathering.found
    assert (found.formulas, found.numbers, found.number_of) == ((display,), (own,), (0,))


def test_of_a_page_so_many_formulas_are_taken_and_no_more(monkeypatch):
    monkeypatch.setattr("i2l.pages.reader._MAX_FORMULAS", 2)
    boxes = [(0, top, 9, top + 5) for top in (0, 10, 20)]
    formulas = tuple(Found(DISPLAYED, box, 1.0) for box in boxes)
    found = FoundPage(formulas, (formulas[0], formulas[2]), (1, 2))
    taken = PageReader._formulas(None, _Placed(None, (90, 90), 1), None, found, read=False)
    assert [formula.box for formula in taken] == [(0, 0, 9, 5), (0, 10, 9, 15)]
    assert [formula.number_box for formula in taken] == [None, None]  # they are not read either


def test_a_display_too_large_for_the_model_is_read_in_lines():
    ink = np.zeros((120, 60), np.uint8)
    ink[10:30, 10:50] = ink[60:80, 10:50] = 255
    page = PageInk(ink, np.zeros((0, 4), np.int64), 10.0)
    error = ImageTooLargeError("too large")
    from i2l.pages.reader import PageFormula

    fields = dict.fromkeys(PageFormula.__dataclass_fields__)
    formula = PageFormula(**fields | {"latex": "", "error": ""})

    def read(answers):
        asked = SimpleNamespace(_read_boxes=lambda _, boxes: answers[: len(boxes)])
        return PageReader._by_rows(asked, formula, (0, 0, 60, 120), page, error)

    def said(latex, confidence):
        known = dict.fromkeys(Reading.__dataclass_fields__)
        return Reading(**known | {"latex": latex, "confidence": confidence})

    found = read([said(r"\begin{aligned} a &= b \end{aligned}", 0.5), said("c", 0.25)])
    assert found.latex == r"\begin{gathered}  a = b  \\ c \end{gathered}"
    assert found.confidence == 0.125
    assert read([said("a", 1.0), I2LError("no")]).error == "too large"
    ink[30:60] = 255
    assert read([said("a", 1.0)]).error == "too large"


def test_the_rate_of_learning_rises_and_falls():
    assert [learning_rate(2.0, step, 0.0) for step in (0, 24, 49, 50, 1000)] == [0.04, 1.0, 2.0, 2.0, 2.0]
    assert [round(learning_rate(2.0, 100, done), 6) for done in (0.25, 0.5, 0.9, 0.95, 1.0)] == [
        1.707107, 1.0, 0.048943, 0.04, 0.04,
    ]  # fmt: skip


SOURCE = r"""
\documentclass{article}\newcommand{\R}{\mathbb{R}}
\begin{document}
\section{Of $x$ and fields}
Let $x \in \R$ be a number, see \cite[p.~3]{knuth} and Section~\ref{sec:one} and \eqref{eq:a}, which is
\emph{dense} --- ``quoted'' \textbf{and \textit{bold}} at 50\% of the R\&D, \dots\ and \LaTeX{} \foo[a] \S 3.
\label{a}\footnote{Never {mind} this $y$.}

\begin{theorem}[Main] All $y_1$ are
\[ y = \sum_i x_i \] and \begin{equation} a = b \label{eq:a} \end{equation} hold. Also $z$.
\end{theorem}
\begin{proof} It is clear that $a$ is $b$. \end{proof}
\begin{lemma} A lemma that leans, with many words so that this is prose. \end{lemma}
\begin{itemize}
\item The first of the items has $n$ words in it.
\item[b] The second has none, but a_bad sign.
\item A third one has an open brace {\em here, and $m$.
\end{itemize}
\begin{verbatim}
$not$ a formula
\end{verbatim}
After that there are words again, as there must be many of them for all of this to count as prose at all, and
so it goes on and on for a while until there are enough of them, with $k$, $l$ and $m$ among them; a paper has
a lot more of them than any test would like to write down, which is why this sentence does not come to an end
before it has said a few things twice, a few things twice, and then some more, for good measure, of course.
WORDS WITHOUT END
\begin{align} a &= b \\ c &= d \end{align}

\subsection*{The end} That is all that there is to say about the fields of numbers and their names.
\end{document}
""".replace("WORDS WITHOUT END", "Many words more are needed here. " * 12)


def test_prose_becomes_pages_as_it_did(tmp_path):
    (tmp_path / "a.tex").write_text(SOURCE)
    (story,) = read_stories([tmp_path])
    lines = [f"{part.kind} {part.leaning}: {part.text}" for part in story.parts]
    lines += [f"{environment}: {latex}" for environment, latex in story.formulas]
    for seed in range(5):
        source = random.Random(seed)
        look = draw_look(source, ["article", "amsart", "beamer", "memoir", "report"][seed % 5 :])
        text, end, marked = compose_document(story, seed, look, source, row_gap_pt=[None, 5.0][seed % 2])
        lines += [repr(look), text.partition(r"\begin{document}")[2], f"{end} {marked}"]
        varied = vary_story(story, source)
        lines += [f"{part.kind} {part.leaning}: {part.text}" for part in varied.parts]
        page = compose_web_page(varied, source, "katex")
        lines += [page.body, page.style, repr(page.formulas)]
    text = "\n".join(lines).replace("\x01", "<").replace("\x02", ">")
    assert_text_kept("prose", [line.rstrip() for line in text.splitlines()])


def test_few_words_are_no_prose(tmp_path):
    (tmp_path / "a.tex").write_text(SOURCE.replace("with many words", "$a$ " * 200))
    assert list(read_stories([tmp_path])) == []
    assert replace(Story("a"), parts=[Part("text", "b")]).parts[0].text == "b"


@pytest.mark.parametrize("markup", ["<h2>Words</h2>", '<p align="center">', "latex a amp;amp; b", "</a>"])
def test_pages_of_the_web_are_no_prose_of_tex(tmp_path, markup):
    many = "Many words more are needed here."
    (tmp_path / "a.tex").write_text(SOURCE.replace(many, f"Words {markup} here."))
    assert list(read_stories([tmp_path])) == []
    (tmp_path / "a.tex").write_text(SOURCE.replace(many, 6 * many).replace("Also", f"Also {markup}"))
    assert len(list(read_stories([tmp_path]))) == 1


def test_a_word_with_an_accent_stays_one(tmp_path):
    (tmp_path / "a.tex").write_text(SOURCE.replace("A lemma that leans", r"It\^o and Cram\'{e}r, Erd\H{o}s"))
    (story,) = read_stories([tmp_path])
    assert any("Ito and Cram{e}r" in part.text for part in story.parts)


def test_pages_that_could_not_be_read_are_named(capsys):
    pages = [
        SimpleNamespace(file="a.pdf", page=number, error=error) for number, error in ((1, ""), (2, "torn"))
    ]
    assert _say_errors(pages) is True
    assert capsys.readouterr() == ("", "a.pdf page 2: torn\n")
    assert _say_errors(pages[:1]) is False
    assert capsys.readouterr() == ("", "")
