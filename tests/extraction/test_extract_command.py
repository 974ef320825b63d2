"""`i2l extract` on the command line: the list, the verdicts, the filters, and the way to a trained model."""

import gzip
import json
import lzma
import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.dataset.build import EngineOptions
from i2l.dataset.extract import ExtractOptions, extract_formulas
from i2l.dataset.sources import InputError, text_sources
from i2l.extraction.harvest import ORIGINAL
from tests.extraction.book import BOOK, DISPLAYS
from tests.extraction.test_archives import tar_bytes


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.tar.gz"
    path.write_bytes(gzip.compress(tar_bytes(BOOK)))
    return path


def extract(*arguments):
    result = CliRunner().invoke(app, ["extract", *map(str, arguments), "--jobs", "1", "--quiet"])
    assert result.exit_code == 0, result.output
    return result


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_list_and_the_verdicts_are_written(book, tmp_path):
    out = tmp_path / "list" / "formulas.jsonl"
    extract(book, "-o", out, "--inline", 3)
    rows = rows_of(out)
    assert [row["latex"] for row in rows if row["environment"] != "$"] == [latex for latex, _ in DISPLAYS]
    assert set(rows[0]) == {"latex", "environment", "file", "span", "macros"}
    assert rows_of(out.with_name("formulas.verdicts.jsonl")) == []
    assert not list(out.parent.glob(".*"))  # the work folder is gone


@pytest.mark.parametrize(("suffix", "opener"), [(".xz", lzma.open), (".gz", gzip.open)])
def test_the_list_is_packed_by_its_suffix(book, tmp_path, suffix, opener):
    out = tmp_path / f"formulas.jsonl{suffix}"
    extract(book, "-o", out)
    with opener(out, "rt") as file:
        assert len(file.readlines()) == len(DISPLAYS)
    assert [line.text for line in text_sources([out])[0].lines()] == [latex.encode() for latex, _ in DISPLAYS]


def test_filters_of_the_original_leave_their_verdicts(book, tmp_path):
    body = " + ".join(f"x_{{{index}}}" for index in range(20))
    long = rf"\documentclass{{a}}\begin{{equation}}{body}\end{{equation}}"
    (tmp_path / "long.tex").write_text(
        long + r"\begin{equation}x = 1 \cite{y} + aaaaaaaaaaaaaaaaaaaaaaaaaaaa\end{equation}"
    )
    (tmp_path / "copy.tex").write_text(long)
    out = tmp_path / "formulas.jsonl"
    extract(book, tmp_path / "long.tex", tmp_path / "copy.tex", "-o", out, "--original", "--sample", 1)
    assert [row["file"] for row in rows_of(out)] == ["long.tex"]
    verdicts = [row["verdict"] for row in rows_of(tmp_path / "formulas.verdicts.jsonl")]
    assert set(verdicts) == {"other-environment", "too-short", "reference", "duplicate"}
    assert ORIGINAL.sample == 0.2
    extract(book, "-o", out, "--environment", "align", "--inline", 1)
    assert {row["environment"] for row in rows_of(out)} == {"align*"}
    extract(book, "-o", out, "--sample", 0.5, "--inline", 1)
    assert 0 < len(rows_of(out)) < len(DISPLAYS) + 1


def test_a_source_that_is_not_there_is_named(tmp_path):
    result = CliRunner().invoke(app, ["extract", str(tmp_path / "gone"), "-o", str(tmp_path / "out.jsonl")])
    assert "gone" in str(result.exception)
    assert not (tmp_path / "out.jsonl").exists()


def papers(tmp_path, count):
    for number in range(count):
        (tmp_path / "papers" / f"p{number}").mkdir(parents=True)
        text = rf"\documentclass{{a}}\def\x{{{number}}}\[ \x + 1 \]"
        (tmp_path / "papers" / f"p{number}" / "main.tex").write_text(text)
    return tmp_path / "papers"


def test_two_processes_and_one_write_the_same_list(tmp_path):
    folder = papers(tmp_path, 5)
    outs = []
    for jobs in (1, 2):
        outs.append(tmp_path / f"{jobs}.jsonl")
        counts = extract_formulas(
            [folder], out=outs[-1], options=ExtractOptions(), engine=EngineOptions(jobs=jobs), quiet=True
        )
        assert counts == {"formula": 5}
    assert outs[0].read_bytes() == outs[1].read_bytes()
    assert rows_of(outs[0])[4]["latex"] == "4+ 1"


def test_a_line_that_is_no_formula_is_named(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"latex": "x", "file": "a", "span": [0, 1]}\n{"latex": 3}\n')
    with pytest.raises(InputError, match="line 2"):
        list(text_sources([path])[0].lines())


CHAPTER = r"""\chapter{Sums}
\newcommand{\half}[1]{\frac{#1}{2}}
%s
"""


@pytest.mark.slow
@pytest.mark.tex
def test_from_a_book_to_a_model(tmp_path):
    """The three commands of docs/building.md, on a small book."""
    letters = "abcxyz"
    displays = "\n".join(
        rf"\[ \half{{{a}}} + {b} = {c} \]" for a in letters for b in letters for c in letters[:2]
    )
    book = tmp_path / "book"
    book.mkdir()
    (book / "book.tex").write_text(r"\documentclass{book}\begin{document}\include{sums}\end{document}")
    (book / "sums.tex").write_text(CHAPTER % displays)
    small = [
        "model.height_px=96",
        "model.width_px=256",
        "model.channels=[4, 4, 4, 4, 4]",
        "model.lstm_units=8",
    ]
    small += ["training.length_classes=[20]", "training.log_every=1", "training.validate_every=2"]
    commands = [
        ["extract", "book", "-o", "formulas.jsonl"],
        [
            "build",
            "--formulas",
            "formulas.jsonl",
            "--out",
            "data",
            "--min-token-count",
            "1",
            "--val-fraction",
            "0.2",
        ],
        [
            "train",
            "--data",
            "data",
            "--out",
            "run",
            "--device",
            "cpu",
            "--batch-size",
            "8",
            "--max-steps",
            "3",
        ],
    ]
    commands[-1] += [part for setting in small for part in ("--set", setting)]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "i2l", *command],
            cwd=tmp_path,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    origins = pq.read_table(tmp_path / "data" / "origins.parquet").to_pylist()
    assert len(origins) == 72
    assert origins[0]["file"] == "book/sums.tex"
    assert json.loads(origins[0]["macros"]) == {r"\half": r"\frac{#1}{2}"}
    ids = {
        row["id"]
        for row in pq.read_table(next((tmp_path / "data" / "data").glob("train-*.parquet"))).to_pylist()
    }
    assert ids <= {row["id"] for row in origins}
    assert (tmp_path / "run").exists()
