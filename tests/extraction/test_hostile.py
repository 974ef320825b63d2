"""Sources that are damaged or mean harm: a verdict, never an error, and never for long."""

import random
import time

import pytest

from i2l.extraction.archives import Bundle
from i2l.extraction.harvest import Formula, HarvestOptions, harvest
from tests.extraction.book import BOOK

HEAD = r"\documentclass{a}"
BOMBS = {
    "doubling": r"\def\a{x}"
    + "".join(rf"\let\c\a\edef\a{{\c\c}}\def\b{i}{{\a}}" for i in "qwerty" * 3)
    + r"\[\a\]",
    "powers": "".join(
        rf"\newcommand\{name}{{\{other}\{other}\{other}\{other}}}"
        for name, other in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    + r"\def\k{x}"
    + r"\[\a\]" * 200,
    "arguments": r"\def\d#1{#1#1#1#1#1#1#1#1}\[" + r"\d{" * 40 + "x" + "}" * 40 + r"\]",
    "text": r"\def\a{$x$\b\b}\def\b{$x$\a\a}\a",
    "self": r"\def\a{\[x\]\a}\a",
    "input": r"\input{a}\[x\]",
    "inputs": r"\input{b}\input{b}\input{b}",
    "braces": "{" * 100_000 + r"\def\a{x}$\a$" + "}" * 50_000,
    "displays": r"\[" * 30_000,
    "dollars": "$$ {" * 30_000,
    "environments": r"\begin{equation}" * 20_000,
    "verbatim": r"\begin{verbatim}" * 20_000,
    "verb": r"\verb|" * 30_000,
    "definitions": r"\def\a{" * 20_000,
    "delimited": r"\def\a#1\z{$#1$}" + r"\a x" * 20_000,
    "later": "".join(rf"\def\a{'b' * i}{{\z}}" for i in range(300)) + r"\def\z{\[}\def\z{x}" * 20_000,
    "conditions": r"\iffalse" * 20_000,
    "groups": r"{\def\a{x}" * 5_000 + r"$\a\a\a$" * 5_000,
    "stars": r"\newcommand\a[9][x]{#9}" + r"\[\a\]" * 1000,
    "nested": r"\[" + r"\sqrt{" * 3_000 + "}" * 3_000 + r"\]",
    "nothing": "",
    "nul": "\0" * 1000,
    "backslash": "\\",
    "names": r"\csname" * 1000 + r"\[\csname a\endcsname\]",
    "named as an environment": r"\expandafter\def\csname begin{b}\endcsname{\[}\begin{b}x\]",
}


def read(files):
    return list(harvest(Bundle("", files), HarvestOptions(min_inline=1)))


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_end_soon(name):
    files = {
        "a.tex": (HEAD + BOMBS[name]).encode(),
        "b.tex": rb"\input{c}" * 50,
        "c.tex": rb"\input{b}\[y\]" * 50,
    }
    start = time.process_time()
    rows = read(files)
    assert time.process_time() - start < 20
    assert sum(len(row.latex) for row in rows if isinstance(row, Formula)) < 5_000_000


def mutated(data, random_source):
    """Cut, double, swap and overwrite bytes, most of them where TeX is easily upset."""
    data = bytearray(data)
    for _ in range(random_source.randint(1, 8)):
        place = random_source.randrange(len(data)) if data else 0
        other = random_source.randrange(len(data)) if data else 0
        kind = random_source.randrange(6)
        if kind == 0:
            del data[place : place + random_source.randint(1, 30)]
        elif kind == 1:
            data[place:place] = data[other : other + random_source.randint(1, 200)]
        elif kind == 2:
            data[place : place + 1] = random_source.choice(
                [
                    b"\\",
                    b"{",
                    b"}",
                    b"$",
                    b"%",
                    b"#",
                    b"[",
                    b"]",
                    b"\\begin{",
                    b"\\end{",
                    b"\\def",
                    b"\0",
                    b"\xff",
                ]
            )
        elif kind == 3:
            data[place : place + 1] = bytes([random_source.randrange(256)])
        elif kind == 4:
            del data[place:]
        else:
            data[place:place] = random_source.choice(
                [b"\\newcommand", b"\\let", b"\\input{book}", b"\\fi", b"\\else"]
            )
    return bytes(data)


@pytest.mark.parametrize("count", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_mutated_books_are_read_without_an_error(count):
    random_source = random.Random(count)
    num_formulas = 0
    for _ in range(count):
        name = random_source.choice([name for name in BOOK if name.endswith(".tex")])
        rows = read(BOOK | {name: mutated(BOOK[name], random_source)})
        num_formulas += sum(isinstance(row, Formula) for row in rows)
    assert num_formulas > 3 * count  # most of a book survives
