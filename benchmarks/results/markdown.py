"""Tables and numbers as Markdown."""

from collections.abc import Sequence

from i2l.evaluation.scores import FIGURE_BY_KEY, Interval, format_interval, format_score

NOTHING = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    """A table; the first ``words`` columns are text and go to the left."""
    marks = ["---"] * words + ["---:"] * (len(head) - words)
    lines = [head, marks, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def score(key: str, interval: Interval | None, *, with_interval: bool = False) -> str:
    """A score as people write it, its range in brackets."""
    if interval is None:
        return NOTHING
    figure = FIGURE_BY_KEY[key]
    text = format_score(figure, interval.value)
    return f"{text} ({format_interval(figure, interval)})" if with_interval else text


def percent(value: float | None, digits: int = 2) -> str:
    """A share."""
    return NOTHING if value is None else f"{100 * value:.{digits}f} %"


def distance(value: float | None) -> str:
    """Edits per token."""
    return NOTHING if value is None else f"{value:.4f}"


def code(token: str) -> str:
    """A token in a cell of a table."""
    return f"`{token}`".replace("|", "\\|") if token else "nothing"


def points(value: float) -> str:
    """A difference of shares, in points."""
    return f"{100 * value:+.2f}"
