"""Formulas of every construct the boxes must know, drawn by seed: for tests and benchmarks."""

import random

LETTERS = "abcdeghijkmnpqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NAMES = {
    "greek": r"\alpha \beta \gamma \delta \theta \lambda \mu \pi \phi \psi \omega \Gamma \Delta \Omega",
    "binary": r"+ - \cdot \times = < \leq \equiv \rightarrow \otimes , \in \sim",
    "accents": r"\hat \bar \vec \tilde \dot \ddot \widehat \widetilde \overline \underline \overrightarrow",
    "operators": r"\sum \prod \int \oint \bigcup",
}
GREEK, BINARY, ACCENTS, OPERATORS = (names.split() for names in _NAMES.values())
FENCES = [
    (r"\left(", r"\right)"),
    (r"\left[", r"\right]"),
    (r"\left\{", r"\right."),
    (r"\left|", r"\right\rangle"),
]


def random_formula(seed: int) -> str:
    """A formula of about 10 to 60 tokens."""
    return " ".join(_terms(random.Random(seed), depth=3))


def _terms(source: random.Random, depth: int) -> list[str]:
    tokens = _term(source, depth)
    for _ in range(source.randint(0, 2)):
        tokens += [source.choice(BINARY), *_term(source, depth)]
    return tokens


def _group(source: random.Random, depth: int) -> list[str]:
    return ["{", *_terms(source, depth - 1), "}"]


def _scripts(source: random.Random, depth: int) -> list[str]:
    below = ["_", *_group(source, depth)] if source.random() < 0.6 else []
    above = ["^", *_group(source, depth)] if source.random() < 0.6 else []
    return below + above


def _term(source: random.Random, depth: int) -> list[str]:
    if depth <= 0 or source.random() < 0.35:
        return _symbol(source)
    kind = source.randrange(11)
    if kind == 0:
        return [r"\frac", *_group(source, depth), *_group(source, depth)]
    if kind == 1:
        return [r"\sqrt", *(["[", "3", "]"] if source.random() < 0.3 else []), *_group(source, depth)]
    if kind == 2:
        return [source.choice(ACCENTS), "{", *_symbol(source), "}"]
    if kind == 3:
        return [source.choice(OPERATORS), *_scripts(source, depth), *_symbol(source)]
    if kind == 4:
        left, right = source.choice(FENCES)
        return [left, *_terms(source, depth - 1), right]
    if kind == 5:
        return [r"\mathrm", "{", *source.choice(["d i f f", "f l a t", "c o n s t", "e f f"]).split(), "}"]
    if kind == 6:
        return _array(source, depth)
    if kind == 7:
        name, mark = source.choice([(r"\overbrace", "^"), (r"\underbrace", "_")])
        return [name, *_group(source, depth), mark, "{", *_symbol(source), "}"]
    if kind == 8:
        return [r"\binom", *_group(source, 1), *_group(source, 1)]
    if kind == 9:
        return [source.choice([r"\big", r"\Big", r"\bigg"]), source.choice("()[|")]
    return [*_symbol(source), *_scripts(source, depth)]


def _array(source: random.Random, depth: int) -> list[str]:
    columns = source.choice(["c c", "c | c", "| l | r |"]).split()
    rows = []
    for _ in range(2):
        rows += ["{", *_terms(source, depth - 2), "}", "&", "{", *_terms(source, depth - 2), "}", "\\\\"]
    line = [r"\hline"] if "|" in columns else []
    return [r"\begin{array}", "{", *columns, "}", *line, *rows, *line, r"\end{array}"]


def _symbol(source: random.Random) -> list[str]:
    kind = source.random()
    if kind < 0.55:
        return [source.choice(LETTERS)]
    if kind < 0.85:
        return [source.choice(GREEK)]
    return [source.choice("0123456789")]
