"""Part `tokens`: every token of a model's vocabulary that draws something, alone and in six contexts.

A token is shown by its fragment, the smallest formula in which it draws its ink. A token that canonical
formulas never hold has none, and is not counted.
"""

from collections import Counter
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
from i2l.formulas.signs import drawing_tokens
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


def draw_tokens(fragments: dict[str, str], *, limit: int | None) -> tuple[list[Sample], Counter[str]]:
    """Draw tokens in their contexts and fonts; what TeX does not take is counted by its context."""
    names = list(fragments)
    conditions = [(context, font) for font in FONTS for context in CONTEXTS]
    wanted = [
        (names[number], *conditions[place])
        for number, place in balanced(len(names), len(conditions), limit=limit)
    ]
    formulas = [CONTEXTS[context].format(fragments[token]) for token, context, _ in wanted]
    styles = [replace(PAPER, font=font) for _, _, font in wanted]
    renders = render_formulas(formulas, style=styles)
    samples, not_drawn = [], Counter[str]()
    for (token, context, font), formula, style, render in zip(wanted, formulas, styles, renders, strict=True):
        if render.pixels is None:
            not_drawn[context] += 1
        else:
            samples.append(Sample(f"{context}|{font}", token, render.pixels, formula, style))
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
