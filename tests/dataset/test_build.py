"""Builds without TeX: verdicts, vocabulary, resuming, refusals."""

import errno
import json
import lzma
import os
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import i2l.files
from i2l.dataset import build as build_module
from i2l.dataset import stages, work
from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
from i2l.dataset.sources import InputError, text_sources
from i2l.dataset.work import BuildError, WorkFolder, read_part
from i2l.errors import MissingDependencyError
from i2l.formulas.lexer import LinesError
from tests.dataset.fakes import RECIPE, fake_render, folder_bytes

COMMON = [f"x + {a} = {b}" for a in "abcdef" for b in "abcdef"]
TRAIN = [
    *COMMON,
    "",  # empty
    "% nothing but a comment",  # empty too
    r"\frac{a}",  # rejected-by-normaliser
    "+".join("abcdefabcdefabcdef"),  # too-long
    "x+a=a",  # duplicate of line 1
    r"a \, = b",  # leak of val line 1
    r"a = \undefined",  # tex-error
    "a = W",  # too-wide
    "a = H",  # too-high
    "a = z",  # rare-token
    "not UTF-8: \xff",
]
VAL = ["a = b", "b = q", "b = q", "a + H"]  # kept, kept with an unknown token, duplicate, too-high
TEST = ["c = d", "a = b"]  # the second turns val line 1 into a leak


def test_an_extracted_list_keeps_its_origins(small_build, tmp_path):
    rows = [
        {
            "latex": latex,
            "environment": "$",
            "file": f"p{i % 3}.tex",
            "span": [i, i + 9],
            "macros": {r"\R": "r"},
        }
        for i, latex in enumerate(COMMON)
    ]
    path = tmp_path / "list.jsonl.xz"
    path.write_bytes(lzma.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    (tmp_path / "plain.txt").write_text("a = b\n")
    small_build(text_sources([path, tmp_path / "plain.txt"]))
    ids = [f"{row['file']}:{row['span'][0]}-{row['span'][1]}" for row in rows]
    verdicts = pq.read_table(tmp_path / "out" / "verdicts.parquet")
    assert verdicts["id"].to_pylist() == [*ids, "plain.txt:1"]
    origins = pq.read_table(tmp_path / "out" / "origins.parquet").to_pylist()
    assert [row["id"] for row in origins] == ids
    assert origins[5]["macros"] == json.dumps({r"\R": "r"})
    kept = pq.read_table(next((tmp_path / "out" / "data").glob("train-*.parquet")))["id"].to_pylist()
    assert set(kept) <= set(ids) | {"plain.txt:1"}


@pytest.fixture
def sources(tmp_path):
    for name, lines in (("train.txt", TRAIN), ("val.txt", VAL), ("test.txt", TEST[:1])):
        (tmp_path / name).write_bytes("\n".join(lines).encode("iso-8859-1") + b"\n")
    return text_sources([tmp_path / "train.txt"], val=tmp_path / "val.txt", test=tmp_path / "test.txt")


def verdicts(dataset):
    return {row["id"]: row for row in pq.read_table(dataset.path / "verdicts.parquet").to_pylist()}


def test_every_line_gets_one_verdict(small_build, sources):
    dataset = small_build(sources)
    found = verdicts(dataset)
    assert len(found) == len(TRAIN) + len(VAL) + 1
    assert {row["verdict"] for row in list(found.values())[: len(COMMON)]} == {"kept"}
    tail = [(row["verdict"], row["message"]) for row in list(found.values())[len(COMMON) : len(TRAIN)]]
    assert tail == [
        ("empty", "an empty line"),
        ("empty", "empty at character 0"),
        ("rejected-by-normaliser", "missing argument at character 8"),
        ("too-long", "35 tokens, at most 20"),
        ("duplicate", "like train.txt:1"),
        ("leak", "like val.txt:1"),
        ("tex-error", "Undefined control sequence"),
        ("too-wide", "1200 px wide, at most 1086"),
        ("too-high", "300 px high, at most 126"),
        ("rare-token", "z occurs 1 times in training, at least 2 are needed"),
        ("rejected-by-normaliser", "not UTF-8 at character 11: b'\\xff'"),
    ]
    assert [found[f"val.txt:{n}"]["verdict"] for n in (1, 2, 3, 4)] == [
        "kept",
        "kept",
        "duplicate",
        "too-high",
    ]
    card = dataset.card
    assert card["num_given"] == len(found)
    assert sum(sum(counts.values()) for counts in card["verdicts"].values()) == card["num_given"]
    assert [step["all"] for step in card["steps"]] == [52, 48, 47, 45, 44, 43, 40, 39]
    assert card["steps"][-1] == {
        "name": "tokens seen 2 times in training",
        "all": card["num_kept"],
        **{split: len(dataset.split(split)) for split in ("train", "val", "test")},
    }


def test_vocabulary_is_of_training_and_judging_formulas_keep_their_rare_tokens(small_build, sources):
    dataset = small_build(sources)
    train = {token for formula in dataset.split("train").formulas for token in formula.split()}
    assert set(dataset.vocabulary.tokens[2:]) == train  # neither the rare z nor the q of val
    assert dataset.split("val").formulas == ["a = b", "b = q"]
    assert dataset.card["splits"]["val"]["unknown_tokens"] == {"q": 1}
    assert dataset.card["splits"]["val"]["num_with_unknown_tokens"] == 1
    [tokens] = pq.read_table(dataset.path / "data/val-00000-of-00001.parquet")["tokens"].to_pylist()[1:]
    assert tokens == ["b", "=", "q"]


def test_a_token_counts_only_where_its_formula_rendered(small_build, tmp_path):
    lines = [*COMMON, "a = z", r"z = \undefined", "z + W"]
    (tmp_path / "a.txt").write_text("\n".join(lines))
    dataset = small_build(
        text_sources([tmp_path / "a.txt"]), recipe=replace(RECIPE, val_fraction=0, test_fraction=0)
    )
    assert "z" not in dataset.vocabulary
    assert verdicts(dataset)["a.txt:37"]["message"] == "z occurs 1 times in training, at least 2 are needed"


def test_seeded_splits_depend_on_the_formula_and_the_seed_alone(small_build, tmp_path):
    def split_of(lines, seed, out):
        (tmp_path / "a.txt").write_text("\n".join(lines))
        recipe = replace(RECIPE, val_fraction=0.2, test_fraction=0.2, min_token_count=1)
        dataset = small_build(text_sources([tmp_path / "a.txt"]), out=out, seed=seed, recipe=recipe)
        return {f: name for name in dataset.splits for f in dataset.split(name).formulas}

    one = split_of(COMMON, 1, "one")
    assert split_of(COMMON[::-1], 1, "reversed") == one
    assert split_of(COMMON, 2, "other") != one
    assert set(one.values()) == {"train", "val", "test"}


def test_processes_and_parts_do_not_change_the_rows(sources, small_build, fake_tex, monkeypatch):
    one, other = small_build(sources, out="one"), small_build(sources, out="other", part_lines=50)
    for name in ("verdicts.parquet", "data/val-00000-of-00001.parquet"):
        assert pq.read_table(one.path / name).equals(pq.read_table(other.path / name))


class Killed(BaseException):
    """As sudden as a signal: no except clause of ours catches it."""


def test_killed_again_and_again_and_resumed(small_build, sources, monkeypatch, tmp_path):
    expected = folder_bytes(small_build(sources, out="undisturbed").path)
    replaced = os.replace
    count = 0

    def counted_replace(one, other):
        nonlocal count
        count += 1
        if count == fatal:
            raise Killed
        return replaced(one, other)

    monkeypatch.setattr(i2l.files.os, "replace", counted_replace)
    fatal, finished = 0, False
    while not finished:
        fatal, count = fatal + 1, 0
        try:
            small_build(sources)
            finished = True
        except Killed:
            assert not (tmp_path / "out").exists()
    assert fatal > 3  # each run dies one write later than the one before, counted from what was left
    assert folder_bytes(tmp_path / "out") == expected
    assert not (tmp_path / ".out.work").exists()


def test_a_kill_at_the_last_moment_leaves_nothing_to_do(small_build, sources, monkeypatch, tmp_path):
    with monkeypatch.context() as patch:
        patch.setattr("i2l.dataset.build.shutil.rmtree", lambda *_, **__: None)
        expected = folder_bytes(small_build(sources).path)
    assert (tmp_path / ".out.work").exists()
    monkeypatch.setattr(stages, "render_formulas", None)  # nothing is drawn again
    assert folder_bytes(small_build(sources).path) == expected
    assert not (tmp_path / ".out.work").exists()


def test_what_a_kill_leaves_behind_is_cleared(sources, small_build, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "render_formulas", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        small_build(sources)
    folder = WorkFolder(tmp_path / ".out.work")
    (folder.result).mkdir(exist_ok=True)
    (folder.result / "README.md.77.partial").write_text("half")
    (folder.scratch / "tex").mkdir()
    monkeypatch.setattr(stages, "render_formulas", fake_render)
    assert not [name for name in folder_bytes(small_build(sources).path) if "partial" in name]


def test_other_options_or_inputs_are_refused_by_name(small_build, sources, tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "render_formulas", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        small_build(sources)
    with pytest.raises(BuildError, match=r"unfinished build .* in: recipe.max_tokens \(20, now 30\)"):
        small_build(sources, recipe=replace(RECIPE, max_tokens=30))
    monkeypatch.setattr(stages, "render_formulas", fake_render)
    small_build(sources)
    with pytest.raises(BuildError, match=r"differs in: seed \(0, now 5\)"):
        small_build(sources, seed=5)
    (tmp_path / "train.txt").write_text("x\n")
    with pytest.raises(BuildError, match=r"inputs\[0\].sha256"):
        small_build(sources)


def test_two_builds_do_not_share_a_folder(small_build, sources, tmp_path):
    folder = WorkFolder(tmp_path / ".out.work")
    with folder.claimed({}), pytest.raises(BuildError, match="Another build"):
        small_build(sources)


def test_a_folder_in_use_is_left_alone(small_build, sources, tmp_path):
    (tmp_path / "out").mkdir()
    small_build(sources)  # an empty one is fine
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("precious")
    with pytest.raises(BuildError, match="in use"):
        small_build(sources, out="full")
    assert (tmp_path / "full" / "thesis.tex").read_text() == "precious"


@pytest.mark.parametrize("victim", ["rendered", "result/data", "result/report"])
def test_a_full_disk_is_an_error_and_the_build_goes_on(small_build, sources, tmp_path, monkeypatch, victim):
    synced = os.fsync
    full = True

    def fsync(file):
        if full and victim in os.readlink(f"/proc/self/fd/{file}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        synced(file)

    monkeypatch.setattr(i2l.files.os, "fsync", fsync)
    with pytest.raises(BuildError, match="is full; make room"):
        small_build(sources)
    assert not (tmp_path / "out").exists()
    full = False
    assert folder_bytes(small_build(sources).path) == folder_bytes(small_build(sources, out="again").path)


def test_no_room_for_tex_names_the_temporary_folder(small_build, sources, monkeypatch):
    def render(*_, **__):
        raise OSError(errno.ENOSPC, "no room for TeX", "/full")

    monkeypatch.setattr(stages, "render_formulas", render)
    with pytest.raises(BuildError, match="The disk of /full is full; make room"):
        small_build(sources)


def test_a_damaged_input_leaves_nothing(small_build, tmp_path):
    packed = lzma.compress("\n".join(COMMON * 1000).encode())
    (tmp_path / "cut.xz").write_bytes(packed[:-100])
    with pytest.raises(LinesError, match="damaged after line"):
        small_build(text_sources([tmp_path / "cut.xz"]))
    assert not (tmp_path / "out").exists()


def test_nothing_left_to_train_on_is_an_error(small_build, tmp_path):
    (tmp_path / "a.txt").write_text("x\ny\n")
    with pytest.raises(BuildError, match=r"left \(2 rare-token\)\. With few .* --min-token-count 1"):
        small_build(text_sources([tmp_path / "a.txt"]))
    (tmp_path / "b.txt").write_text("")
    with pytest.raises(BuildError, match="no lines"):
        small_build(text_sources([tmp_path / "b.txt"]), out="b")


def test_shares_must_leave_something_for_training(sources, tmp_path):
    options = BuildOptions(recipe=replace(RECIPE, val_fraction=0.6, test_fraction=0.5))
    with pytest.raises(BuildError, match="less than 1"):
        build_dataset(sources, out=tmp_path / "out", options=options)


def test_an_engine_that_is_not_installed_leaves_nothing(fake_tex, sources, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    before = set(tmp_path.iterdir())
    with pytest.raises(MissingDependencyError, match=r"\[cluster\]"):
        build_dataset(
            sources,
            out=tmp_path / "out",
            options=BuildOptions(recipe=RECIPE),
            engine=EngineOptions(name="ray"),
        )
    assert set(tmp_path.iterdir()) == before


def test_macros_are_written_out(small_build, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join([*COMMON, r"\eq{a}{b}"]))
    (tmp_path / "macros.tex").write_text(r"\newcommand{\eq}[2]{#1 = #2}")
    recipe = replace(RECIPE, val_fraction=0, test_fraction=0)
    sources = text_sources([tmp_path / "a.txt"], macros=[tmp_path / "macros.tex"])
    dataset = small_build(sources, recipe=recipe)
    assert dataset.split("train").formulas[-1] == "a = b"


def test_every_list_can_have_macros_of_its_own(small_build, tmp_path):
    for name, sign in (("a", "="), ("b", "+")):
        (tmp_path / f"{name}.txt").write_text("\n".join([*COMMON, rf"\both{{{name}}}{{x}}"]))
        (tmp_path / f"{name}.tex").write_text(rf"\newcommand{{\both}}[2]{{#1 {sign} #2}}")
    lists, preambles = ([tmp_path / f"{name}.{end}" for name in "ab"] for end in ("txt", "tex"))
    recipe = replace(RECIPE, val_fraction=0, test_fraction=0, min_token_count=1)
    split = small_build(text_sources(lists, macros=preambles), recipe=recipe).split("train")
    formulas = dict(zip(split.ids, split.formulas, strict=True))
    place = len(COMMON) + 1
    assert formulas[f"a.txt:{place}"] == "a = x"
    assert formulas[f"b.txt:{place}"] == "b + x"
    with pytest.raises(InputError, match="one for each"):
        text_sources(lists, macros=[*preambles, preambles[0]])


def test_the_card_checks_its_files(small_build, sources):
    dataset = small_build(sources)
    dataset.verify()
    names = {name for name in folder_bytes(dataset.path) if name not in ("dataset.json", "SHA256SUMS")}
    assert set(json.loads((dataset.path / "dataset.json").read_text())["sha256"]) == names
    (dataset.path / "vocab.json").write_text("{}")
    with pytest.raises(work.I2LError, match=r"vocab\.json is missing or damaged"):
        dataset.verify()


def test_damaged_work_is_noticed_when_a_build_goes_on(small_build, sources, tmp_path, monkeypatch):
    whole = folder_bytes(small_build(sources, out="whole").path)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(build_module, "write_report", stop)
        with pytest.raises(KeyboardInterrupt):
            small_build(sources)
    folder = tmp_path / ".out.work"
    parts = sorted(folder.rglob("*.arrow"))
    assert {path.parent.name for path in parts} >= {"counts", "lines", "normalized", "selected", "rendered"}
    for path in parts[:: max(1, len(parts) // 12)]:
        content = path.read_bytes()
        for changed in (
            content[:40] + bytes([content[40] ^ 1]) + content[41:],
            content[:-1],
            content[:7],
            b"",
        ):
            path.write_bytes(changed)
            with pytest.raises(BuildError, match=rf"{path.parent.name}/{path.name} is missing or damaged"):
                read_part(path)
        path.write_bytes(content)
    plan = (folder / "plan.json").read_bytes()
    (folder / "plan.json").write_bytes(plan[:-9])
    with pytest.raises(BuildError, match=r"plan\.json is damaged"):
        small_build(sources)
    (folder / "plan.json").write_bytes(plan)
    (rendered,) = folder.glob("rendered/000000.arrow")
    content = bytearray(rendered.read_bytes())
    content[len(content) // 2] ^= 1
    rendered.write_bytes(content)
    with pytest.raises(BuildError, match=r"rendered/000000\.arrow is missing or damaged"):
        small_build(sources)
    content[len(content) // 2] ^= 1
    rendered.write_bytes(content)
    (shard,) = folder.glob("result/data/train-*")
    shard.write_bytes(shard.read_bytes()[:-1])
    assert folder_bytes(small_build(sources).path) == whole, "a file of the result is written again"


def test_work_of_an_earlier_version_is_read(tmp_path):
    table = pa.table({"a": [1, 2, 3]})
    work.write_part(tmp_path / "new.arrow", table)
    (tmp_path / "old.arrow").write_bytes((tmp_path / "new.arrow").read_bytes()[:-32])
    assert read_part(tmp_path / "old.arrow") == read_part(tmp_path / "new.arrow") == table


def test_boxes_come_back_as_they_were(small_build, sources):
    split = small_build(sources).split("val")
    assert split.boxes([0]) == [[None, (1, 0, 2, 10), None]]
    assert small_build(sources, out="bare", boxes=False).split("val").boxes([0, 1]) == [None, None]


def test_pixels_come_back_as_they_were(small_build, sources):
    split = small_build(sources).split("train")
    indices = [3, 0, 3]
    drawn = fake_render([split.formulas[index] for index in indices], style=[], boxes=False)
    for index, pixels, result in zip(indices, split.pixels(indices), drawn, strict=True):
        np.testing.assert_array_equal(pixels, result.pixels)
        assert tuple(split.sizes[index]) == pixels.shape
    buffer = split.load_all(jobs=1)
    np.testing.assert_array_equal(buffer[3], drawn[0].pixels)
    assert len(buffer) == len(split)
