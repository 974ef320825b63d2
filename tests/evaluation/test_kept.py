"""Symbols are counted as found, and pictures laid over each other, as for the scores that were published."""

import numpy as np

from i2l.evaluation.detection import Symbol, detect_symbols
from i2l.evaluation.visual import find_difference
from tests.evaluation.test_image_match import constructed_pairs
from tests.kept import assert_kept


def moved(random, symbols):
    """A reading of symbols: some moved, resized, renamed, exchanged or lost, by little and by much."""
    read = []
    shift = random.integers(-3, 40, 2) * (random.random() < 0.5)
    for number, symbol in enumerate(symbols):
        left, top, right, bottom = symbol.box
        kind = random.random()
        if kind < 0.08:
            continue
        across, down = shift if number > len(symbols) // 2 else (0, 0)
        if kind < 0.5:
            across, down = across + int(random.integers(-4, 12)), down + int(random.integers(-7, 8))
        scale = random.choice([1.0, 1.1, 1.19, 1.25, 1.45]) if kind > 0.85 else 1.0
        width, height = round(scale * (right - left)), round(scale * (bottom - top))
        name = "z" if 0.5 < kind < 0.55 else symbol.name
        box = (left + across, top + down, left + across + width, top + down + height)
        read.append(Symbol(name, None if kind > 0.98 else box, symbol.fixed_size))
    if random.random() < 0.4 and len(read) > 2:
        place = int(random.integers(len(read) - 1))
        read[place], read[place + 1] = read[place + 1], read[place]
    return read


def test_symbols_are_found_as_they_were():
    measured = {}
    for number in range(60):
        random = np.random.default_rng(number)
        target, x = [], 0
        for name in random.choice(list("aabbxy+=()2"), int(random.integers(1, 16))):
            width, height, top = random.integers(8, 24), random.integers(12, 40), random.integers(0, 60)
            target.append(Symbol(str(name), (x, int(top), x + int(width), int(top + height)), name.isalnum()))
            x += int(width) + int(random.integers(2, 30))
        result = detect_symbols(target, moved(random, target), em_px=33.2)
        measured[str(number)] = [result.found, result.target_symbols, result.predicted_symbols]
    assert_kept("detection", measured)


def test_pictures_are_laid_over_each_other_as_they_were():
    measured = {}
    for number, (target, prediction) in enumerate(constructed_pairs()):
        if number % 6 == 0:
            found = find_difference(target, prediction)
            measured[str(number)] = [found.shift_px, *np.ravel(found.blocks)]
    assert_kept("differences", measured)
