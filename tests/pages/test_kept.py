"""Ink becomes formulas, and formulas an order, as when the detector's scores were measured."""

import numpy as np

from i2l.images.ink import measure_pieces
from i2l.pages.find import SYMBOL_PX
from i2l.pages.gather import CELL_PX, KINDS, NUM_CLASSES, Gathering, GlyphHints, PageInk
from tests.kept import assert_kept

SYMBOL = 12  # height of small letters
CELL = SYMBOL / SYMBOL_PX * CELL_PX
TEXT, INLINE, DISPLAYED, NUMBER = range(NUM_CLASSES)


def sheet(number):
    """A page of two columns: words, formulas among them, displays of one and two rows, and their numbers."""
    random = np.random.default_rng(number)
    ink = np.zeros((760, 900), np.uint8)
    marks = []  # kind and box of each sign
    for left, right in ((20, 430), (470, 880)):
        y = 20
        while y < 700:
            display = random.random() < 0.3
            rows = int(random.integers(1, 3)) if display else 1
            for row in range(rows):
                x = left + (int(random.integers(30, 120)) if display else 0)
                limit = right - (90 if display else 0)
                kind = DISPLAYED if display else TEXT
                while x < limit:
                    if not display and random.random() < 0.12:
                        kind = INLINE if kind == TEXT else TEXT
                    width, height = (
                        int(random.integers(4, 15)),
                        int(random.choice([9, 12, 12, 17, 25 if display else 17])),
                    )
                    top = y + 12 - height + int(random.integers(-4, 5) if kind != TEXT else 0)
                    marks.append((kind, (x, max(top, 0), min(x + width, limit), max(top, 0) + height)))
                    x += width + int(random.choice([3, 3, 4, 9, 22 if display else 9]))
                    if display and random.random() < 0.06:
                        break
                if display and row == 0 and random.random() < 0.6:
                    marks += [
                        (NUMBER, (right - 40 + 11 * place, y, right - 33 + 11 * place, y + 13))
                        for place in range(3)
                    ]
                y += 26 if display else 0
            y += int(random.choice([20, 24, 44, 60])) if display else 24
    for _, (left, top, right, bottom) in marks:
        ink[top:bottom, left:right] = 255
    return random, ink, marks


def answer(random, ink, marks, *, sure):
    """What a network might say of each cell: mostly right, sometimes undecided."""
    rows, columns = (int(np.ceil(side / CELL)) for side in ink.shape)
    regions = random.random((NUM_CLASSES, rows, columns)) * 0.15
    owners = random.random((NUM_CLASSES, rows, columns)) * 0.15
    regions[TEXT] += 0.4
    owners[TEXT] += 0.2
    for kind, (left, top, right, bottom) in marks:
        span = (
            slice(int(top / CELL), int(np.ceil(bottom / CELL))),
            slice(int(left / CELL), int(np.ceil(right / CELL)) + 2),
        )
        share = 0.5 + random.random()
        regions[kind][span] += share
        owners[kind][span] += share * (random.random() < 0.93)
    return np.concatenate([part / part.sum(axis=0) for part in (regions**sure, owners**sure)]).astype(
        np.float32
    )


def hints_of(marks):
    boxes = np.array([box for _, box in marks], np.float64)
    runs, before = [], TEXT
    for kind, box in marks:
        if kind == before == INLINE and box[0] > runs[-1][2]:
            first = runs.pop()
            runs.append((first[0], min(box[1], first[1]), box[2], max(box[3], first[3])))
        elif kind == INLINE:
            runs.append(box)
        before = kind
    numbers = [box for kind, box in marks if kind == NUMBER]
    joined = tuple(
        (one[0], one[1], last[2], last[3]) for one, last in zip(numbers[::3], numbers[2::3], strict=True)
    )
    return GlyphHints(
        boxes, np.array([kind in (INLINE, DISPLAYED) for kind, _ in marks]), tuple(runs[::2]), joined
    )


def test_pages_are_put_together_as_they_were():
    measured = {}
    for number in range(4):
        random, ink, marks = sheet(number)
        page = PageInk(ink, measure_pieces(ink > 0)[0], float(SYMBOL))
        cells = answer(random, ink, marks, sure=2 + 2 * (number % 2))
        for name, hints in (("picture", None), ("fonts", hints_of(marks))):
            found = Gathering(page, cells, hints, SYMBOL_PX).found
            measured[f"{number} {name}"] = [
                value
                for kind, box, score in (*found.formulas, *found.numbers)
                for value in (KINDS.index(kind), *box, round(score, 4))
            ]
            measured[f"{number} {name}, owners of numbers"] = found.number_of
    assert sum(map(len, measured.values())) > 1_000
    assert_kept("pages", measured)
