"""The data behind the model in the box: what is judged by stays out, and every list has its share."""

import lzma
from argparse import Namespace

import pytest

from benchmarks.wild.screens import draw_to_train
from i2l.dataset.format import DatasetReader
from i2l.formulas.normalize import normalize_formula
from recipes import box_data
from recipes.box_data import Mixture, Part, build, choose_lines, judged_keys

JUDGED = r"\sum _ { n } a _ { n } x ^ { n } = 0"


def test_what_looks_like_a_judged_formula_is_left_out_but_not_single_signs(tmp_path):
    (tmp_path / "val.txt").write_text(f"{JUDGED}\nx ^ 2\n")
    (tmp_path / "labels.tsv").write_text("one.png\t\\int a + b \\, d x\n")
    (tmp_path / "book.jsonl").write_text('{"latex": "p_1 + p_2 = p_3"}\n')
    keys = judged_keys(sorted(tmp_path.iterdir()))
    assert len(keys) == 3
    lines = [r"\sum_{n}a_{n}x^{n}=0", "x^{2}", r"\int a+b~dx", "{p_1}+p_2=p_3", "p_1 + p_2 = p_4", "{"]
    source = tmp_path / "list.txt"
    source.write_text("\n".join(lines))
    chosen = list(choose_lines([source], count=9, keys=keys, seed=0))
    assert sorted(chosen) == sorted(normalize_formula(line).formula for line in ("x^{2}", "p_1 + p_2 = p_4"))
    assert len(list(choose_lines([source], count=1, keys=keys, seed=0))) == 1


@pytest.mark.tex
@pytest.mark.slow
def test_lists_become_datasets_once_each_line_in_one(tmp_path, monkeypatch):
    folder = tmp_path / "formulas"
    folder.mkdir()
    lines = [f"a _ {{ {n} }} + b = \\frac {{ c }} {{ {n} }} - d ^ {{ {n} }} , " for n in range(40)]
    names = ("im2latex_train_part", "hepth2003_display", "arxiv_rows", "wikipedia_en", "hepth_arrays")
    for letter, name in zip("uvwxy", names, strict=True):
        (folder / f"{name}.norm.txt.xz").write_bytes(
            lzma.compress("\n".join(f"{letter} {line}" for line in [*lines, JUDGED]).encode())
        )
    books = tmp_path / "books"
    books.mkdir()
    for name in ("learnt", "judged"):
        body = "".join(f"\\[ {name[0]}_{{{n}}} + x = y \\]\n" for n in range(12))
        (books / f"{name}.tex").write_text(
            f"\\documentclass{{article}}\\begin{{document}}{body}\\end{{document}}"
        )
    (tmp_path / "judged.jsonl").write_text('{"latex": "a + b + c + d"}\n')
    parts = {name: Part(name, 8) for name in ("arxiv", "composed", "books", "signs", "short", "school")}
    mixtures = (
        Mixture(
            "first",
            "i2l-140k",
            tuple(Part(n, 6) for n in ("im2latex_train_part", "hepth2003", "arxiv", "everyday", "arrays")),
            boxes=False,
        ),
        Mixture("second", "clean", (*parts.values(), Part("physics", 4))),
    )
    monkeypatch.setattr(box_data, "MIXTURES", mixtures)
    out = tmp_path / "out"
    command = f"box_data {folder} --books {books} --judged {tmp_path / 'judged.jsonl'} --out {out}"
    monkeypatch.setattr("sys.argv", command.split())
    box_data.main()
    ids = [str(name) for mixture in mixtures for name in DatasetReader(out / mixture.name).split("train").ids]
    assert {name.split(".")[0] for name in ids} == {part.name for one in mixtures for part in one.parts}
    arxiv = [(out / "parts" / one.name / "arxiv.txt").read_text().splitlines() for one in mixtures]
    assert len(arxiv[0]) == 6
    assert len(arxiv[1]) == 8
    assert not set(arxiv[0]) & set(arxiv[1])
    assert all(line.startswith("l") for line in (out / "lists" / "books.txt").read_text().splitlines())
    made = {path: path.stat().st_mtime_ns for path in out.rglob("*.txt")}
    box_data.main()  # nothing is done twice
    assert made == {path: path.stat().st_mtime_ns for path in out.rglob("*.txt")}


@pytest.mark.slow
def test_pages_to_train_on_go_on_where_they_stopped(tmp_path):
    formulas = ["a + b", r"\frac { a } { b }", r"\notacommand"]
    assert draw_to_train(formulas, tmp_path, None, seed=1) == 2
    labels = (tmp_path / "labels.tsv").read_text().splitlines()
    assert labels == ["00000/0000.png\ta + b", "00000/0001.png\t\\frac { a } { b }"]
    first = (tmp_path / "00000" / "0000.png").stat().st_mtime_ns
    assert draw_to_train(formulas, tmp_path, None, seed=1) == 2
    assert (tmp_path / "00000" / "0000.png").stat().st_mtime_ns == first
    options = Namespace(out=tmp_path / "data", share=1.0, seed=1, mathjax=None)
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "few.txt").write_text("\n".join(formulas))
    build(options, Mixture("screens", "screens", (Part("few", 2),), boxes=False), tmp_path / "lists", {})
    assert len(DatasetReader(tmp_path / "data" / "screens").split("train").ids) == 2
