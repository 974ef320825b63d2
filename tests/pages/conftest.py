"""A small document with known formulas, set by TeX once for all tests of pages."""

import random
import shutil

import pytest

from i2l.pages.corpus import Look, compose_document, read_stories
from i2l.pages.find import Detector
from i2l.pages.marked import MarkedPage, mark_pages
from i2l.rendering.sandbox import run_tex

PARAGRAPHS = [
    r"""Consider a function $f(x)$ of one variable that is smooth near the point $a$, and write $h = x - a$
for the distance from it. The theorem of Taylor says that its values there follow
from its derivatives at one place:
\[ f(x) = \sum_{k=0}^{n} \frac{f^{(k)}(a)}{k!} h^{k} + R_{n}(x) \]
where the remainder $R_{n}(x)$ is small if the distance is small, as we shall see in the next paragraph.""",
    r"""To see how small it is we integrate by parts several times, which gives for it the formula
\begin{equation} R_{n}(x) = \frac{1}{n!} \int_{a}^{x} (x - t)^{n} f^{(n+1)}(t) \, dt \end{equation}
and from this formula a bound follows at once, whenever the next derivative is
bounded on the interval by $M$.""",
    r"""\begin{align} |R_{n}(x)| &\leq \frac{M}{n!} \int_{a}^{x} |x - t|^{n} \, dt \\
&\leq \frac{M}{(n+1)!} |x - a|^{n+1} \end{align}
So the series converges for all values of $x$ if the derivatives do not grow too fast with
their order, which is the case for the sine, for the cosine and for the exponential function but by no
means for every function.""",
    r"""There are other functions, whose series converges but to another value. The usual example
of them is known to every student, and has all of its derivatives equal to zero at the origin, although it
is not zero itself.""",
]
SOURCE = "\\documentclass{article}\n\\begin{document}\n%s\n\\end{document}\n"


@pytest.fixture(scope="session")
def story(tmp_path_factory):
    path = tmp_path_factory.mktemp("story") / "taylor.tex"
    path.write_text(SOURCE % "\n\n".join(PARAGRAPHS * 2))
    (found,) = read_stories([path])
    return found


def set_story(story, **changes) -> tuple[bytes, list[tuple[str, str]], Look]:
    """The PDF of the story, the formulas behind its marks, and its look."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex")
    settings = {
        "document_class": "article", "font": "computer-modern", "size_pt": 11, "columns": 1, "numbers": "all",
        "left_numbers": False, "text_width_cm": 15.0, "breaks": True, "spread": 1.0, "sheet": (21.0, 29.7),
    }  # fmt: skip
    look = Look(**{**settings, **changes})
    text, _, marked = compose_document(story, 0, look, random.Random(4))
    result = run_tex(text, trusted=False, cpu_s=30)
    assert result.pdf, result.said[-2000:]
    return result.pdf, [story.formulas[number] for number in marked], look


@pytest.fixture(scope="session")
def pdf(story) -> bytes:
    """A document of a page or two."""
    return set_story(story)[0]


@pytest.fixture(scope="session")
def marked(story) -> MarkedPage:
    """Its first page at 150 dpi, with all its boxes."""
    pdf, formulas, look = set_story(story)
    return next(iter(mark_pages(pdf, formulas, look.size_pt, iter([150] * 9))))


@pytest.fixture(scope="session")
def detector():
    return Detector(threads=1)
