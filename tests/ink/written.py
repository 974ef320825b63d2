"""Inks that no person wrote: every symbol of a small alphabet as simple strokes, for tests without data."""

import numpy as np

from i2l.ink.strokes import Ink, Symbol

LABELS = [
    "-",
    "1",
    "2",
    "+",
    "x",
    "y",
    "a",
    "b",
    "(",
    ")",
    "=",
    r"\sqrt",
    r"\sin",
    r"\sum",
    r"\rightarrow",
    "3",
]


def glyph(label, source, *, points=12):
    """Two strokes that differ for each label and each time, in a box of about 100."""
    number = LABELS.index(label)
    t = np.linspace(0, 1, points)
    wave = np.column_stack([100 * t, 50 + 40 * np.sin((1 + number % 4) * 3 * t + number)])
    tall = np.column_stack([50 + 30 * np.cos(number + 4 * t), 100 * t])
    strokes = [wave] if label == "-" else [wave, tall]
    if label == "-":
        strokes = [np.column_stack([100 * t, 50 + 2 * np.sin(5 * t)])]
    return [np.rint(stroke + source.normal(0, 2, stroke.shape)) for stroke in strokes]


def row_of(labels, *, name="ink", latex="", seed=0, writer=""):
    """An ink with these symbols from left to right."""
    source = np.random.default_rng(seed)
    strokes, symbols = [], []
    for place, label in enumerate(labels):
        drawn = [stroke + np.array([150 * place, 0]) for stroke in glyph(label, source)]
        symbols.append(Symbol(label, tuple(range(len(strokes), len(strokes) + len(drawn)))))
        strokes += drawn
    return Ink(tuple(strokes), latex=latex, symbols=tuple(symbols), name=name, writer=writer)


def small_inks(count=6):
    """Some inks by two writers, with every label of the alphabet."""
    return [
        row_of(LABELS, name=f"sheet{number % 2}-{number}", latex="x + y", seed=number)
        for number in range(count)
    ]
