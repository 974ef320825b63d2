"""Part `tokens`: every token of a model's vocabulary that draws something, alone and in six contexts.

`fragment` names the smallest formula in which a token draws its ink: an accent needs a letter below it, a
delimiter another one. A token that canonical formulas never hold has none, and is not counted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from benchmarks.wild.judging import (
    Judged,
    Row,
    Sample,
    balanced,
    judge,
    read_samples,
    show_progress,
    summarize,
)
from i2l.formulas.commands import FONT_SWITCHES, MATH_FONTS, SIGNATURES
from i2l.formulas.lexer import FormulaError
from i2l.formulas.normalize import normalize_formula
from i2l.inference.reader import Reader
from i2l.rendering.render import render_formulas
from i2l.rendering.styles import PAPER

CONTEXTS: Final = {
    "alone": "{}",
    "after a letter": "a {}",
    "subscript": "x _ {{ {} }}",
    "superscript": "x ^ {{ {} }}",
    "in a fraction": r"\frac {{ {} }} {{ 2 }}",
    "between letters": "a {} b",
    "doubled": "{0} {0}",
}
FONTS: Final = ("computer-modern", "times", "palatino", "stix2")
# What arguments hold, by the letters of `SIGNATURES`; commands that want lengths draw nothing by themselves.
_ARGUMENTS: Final = {"m": "{ a }", "t": "{ a }", "o": "", "*": "", "L": ""}
_FRACTION: Final = r"\frac { a } { b }"
_INSIDE: Final = {  # tokens that draw only inside others
    r"\hline": r"\begin{array} { c } { a } \\ \hline { b } \\ \end{array}",
    r"\not": r"\not =",
}


def fragment(token: str) -> str | None:
    """Give the smallest canonical formula that shows a token; None if it draws nothing of its own."""
    for candidate in _candidates(token):
        try:
            result = normalize_formula(candidate)
        except FormulaError:
            continue
        own = [one for one in result.tokens if one.text == token]
        if own and (own[0].visible or token in MATH_FONTS or token in _INSIDE):
            return result.formula
    return None


def _candidates(token: str) -> Iterator[str]:
    if token in _INSIDE:
        yield _INSIDE[token]
    elif token.startswith(r"\left") and not token[5:6].isalpha():
        yield rf"{token} {_FRACTION} \right."
    elif token.startswith(r"\right") and not token[6:7].isalpha():
        yield rf"\left. {_FRACTION} {token}"
    elif token.startswith(r"\begin{"):
        end = token.replace("begin", "end", 1)
        yield rf"{token} {{ a }} & {{ b }} \\ {{ c }} & {{ d }} \\ {end}"
    elif token in MATH_FONTS:
        yield rf"{token} {{ R }}"
    elif token in SIGNATURES:
        arguments = [_ARGUMENTS.get(letter) for letter in SIGNATURES[token]]
        if None not in arguments:
            yield " ".join([token, *(argument for argument in arguments if argument)])
    elif token not in FONT_SWITCHES and token not in ("{", "}", "^", "_", "&", "~", r"\\"):
        yield token
        yield f"{token} ("  # \\big wants a delimiter


def drawing_tokens(vocabulary: Iterable[str]) -> dict[str, str]:
    """Give the tokens that draw something, each with its fragment."""
    found = {token: fragment(token) for token in vocabulary if not token.startswith("<") or len(token) == 1}
    return {token: formula for token, formula in found.items() if formula}


def draw_tokens(fragments: dict[str, str], *, limit: int | None) -> tuple[list[Sample], Counter[str]]:
    """Draw tokens in their contexts and fonts; what TeX does not take is counted by its context."""
    names = list(fragments)
    conditions = [(context, font) for font in FONTS for context in CONTEXTS]
    wanted = [
        (names[number], *conditions[place])
        for number, place in balanced(len(names), len(conditions), limit=limit)
    ]
    formulas = [CONTEXTS[context].format(fragments[token]) for token, context, _ in wanted]
    renders = render_formulas(formulas, style=[replace(PAPER, font=font) for _, _, font in wanted])
    samples, not_drawn = [], Counter[str]()
    for (token, context, font), formula, render in zip(wanted, formulas, renders, strict=True):
        if render.pixels is None:
            not_drawn[context] += 1
        else:
            samples.append(Sample(f"{context}|{font}", token, render.pixels, formula))
    return samples, not_drawn


def measure_tokens(
    reader: Reader, *, limit: int | None
) -> tuple[list[Row], list[Judged], dict[str, list[int]]]:
    """Read every token; also give for each how often it was drawn and how often read right."""
    fragments = drawing_tokens(reader.model.vocabulary.tokens)
    samples, not_drawn = draw_tokens(fragments, limit=limit)
    show_progress(f"tokens: {len(fragments)} draw something; not drawn: {dict(not_drawn)}")
    judged = judge(samples, read_samples(reader, samples, part="tokens"))
    table = [summarize("all", judged)]
    for place, labels in ((0, CONTEXTS), (1, FONTS)):
        for label in labels:
            members = [one for one in judged if one.group.split("|")[place] == label]
            table += [summarize(label, members)] if members else []
    by_token: dict[str, list[int]] = {}
    for one in judged:
        drawn, right = by_token.get(one.name, [0, 0])
        by_token[one.name] = [drawn + 1, right + one.right]
    return table, judged, by_token
