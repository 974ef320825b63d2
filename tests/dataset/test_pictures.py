"""Pictures that come with their formulas: into a dataset, and out of it as a model will see them."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image, ImageDraw, ImageFont

from i2l.dataset import build as build_module
from i2l.dataset import shards, stages
from i2l.dataset.build import BuildOptions, EngineOptions, build_dataset
from i2l.dataset.format import DatasetReader
from i2l.dataset.model_view import open_split
from i2l.dataset.sources import InputError, picture_sources, pictures_sha256, text_sources
from i2l.dataset.verdicts import VERDICT_KINDS
from i2l.dataset.work import BuildError
from i2l.images.prepare import prepare_image
from tests.dataset.fakes import RECIPE, folder_bytes

CANVAS = (128, 1088)
ALL_TRAIN = replace(RECIPE, val_fraction=0, test_fraction=0, min_token_count=1)
FORMULAS = [f"{a} + {b} = {n}" for a in "abc" for b in "xyz" for n in range(4)]


def draw(text, *, ink=(20, 40, 160), paper=(250, 245, 230), size=60):
    """A formula in coloured ink, larger than a model reads it."""
    image = Image.new("RGB", (40 * len(text), 140), paper)
    ImageDraw.Draw(image).text((30, 30), text, fill=ink, font=ImageFont.load_default(size))
    return image


def test_a_plan_knows_the_pictures_by_their_bytes(tmp_path):
    """Else a build would go on, or be taken for done, with other pictures under the same names."""
    (tmp_path / "labels.tsv").write_text("one.png\tx\ngone.png\ty\n")
    (tmp_path / "one.png").write_bytes(b"one")
    (source,) = picture_sources([tmp_path], [tmp_path / "labels.tsv"])
    before = pictures_sha256(source)
    assert before == pictures_sha256(source)
    (tmp_path / "one.png").write_bytes(b"two")
    assert pictures_sha256(source) not in (None, before)
    (rendered,) = text_sources([tmp_path / "labels.tsv"])
    assert pictures_sha256(rendered) is None


@pytest.fixture
def folder(tmp_path):
    """36 pictures of several kinds, and after them one line for everything that can be wrong."""
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    lines = []
    for number, formula in enumerate(FORMULAS):
        name = f"{number}.{('png', 'jpg', 'webp')[number % 3]}"
        draw(formula.replace(" ", "")).save(pictures / name)
        lines.append(f"{name}\t{formula}")
    (pictures / "again.png").write_bytes((pictures / "0.png").read_bytes())
    draw(FORMULAS[0].replace(" ", ""), size=50).save(pictures / "other-hand.png")
    Image.new("L", (80, 80), 255).save(pictures / "blank.png")
    (pictures / "broken.png").write_bytes((pictures / "0.png").read_bytes()[:60])
    lines += [
        f"again.png\t{FORMULAS[0]}",
        f"other-hand.png\t{FORMULAS[0]}",
        "blank.png\tx",
        "broken.png\tx",
        "missing.png\tx",
        "1.jpg\tx",
        "../pictures.tsv\tx",
        "no tab",
        "",
        r"3.png\t\frac{".replace(r"\t", "\t").replace("3.png", "unread.png"),
    ]
    (tmp_path / "pictures.tsv").write_text("\n".join(lines))
    return pictures


VERDICTS = {
    "again.png": "duplicate",
    "other-hand.png": "kept",
    "blank.png": "no-ink",
    "broken.png": "bad-picture",
    "missing.png": "no-picture",
}
BAD_LINES = {42: "bad-label", 43: "bad-label", 44: "bad-label", 45: "empty"}


@pytest.fixture
def without_tex(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("pictures need no TeX")

    monkeypatch.setattr(stages, "render_formulas", fail)
    monkeypatch.setattr(build_module, "tex_path", fail)
    monkeypatch.setattr(build_module, "check_styles", fail)


def build(folder, out, *, part_lines=7, engine=None, recipe=ALL_TRAIN):
    sources = picture_sources([folder], [folder.with_suffix(".tsv")])
    options = BuildOptions(recipe=recipe, part_lines=part_lines)
    engine = engine or EngineOptions(jobs=1)
    return build_dataset(sources, out=out, options=options, engine=engine, quiet=True)


def verdicts_of(dataset):
    return {row["id"]: row for row in pq.read_table(dataset.path / "verdicts.parquet").to_pylist()}


def test_every_line_gets_its_verdict(folder, without_tex, tmp_path):
    dataset = build(folder, tmp_path / "out")
    dataset.verify()
    verdicts = verdicts_of(dataset)
    assert len(verdicts) == dataset.card["num_given"] == len(FORMULAS) + 10
    for number, suffix in enumerate(("png", "jpg", "webp")):
        assert verdicts[f"pictures.tsv:{number}.{suffix}"]["verdict"] == "kept"
    for name, verdict in VERDICTS.items():
        assert verdicts[f"pictures.tsv:{name}"]["verdict"] == verdict, name
    for line, verdict in BAD_LINES.items():
        assert verdicts[f"pictures.tsv:{line}"]["verdict"] == verdict, line
    assert verdicts["pictures.tsv:42"]["message"] == "line 2 has labelled this picture"
    assert verdicts["pictures.tsv:unread.png"]["verdict"] == "rejected-by-normaliser"
    assert {row["verdict"] for row in verdicts.values()} <= {kind.name for kind in VERDICT_KINDS}
    assert dataset.card["sources"] == [
        {"name": "pictures.tsv", "holds": "pictures", "num_given": 46, "num_kept": 37}
    ]
    assert "pdflatex" not in dataset.card["plan"]["versions"]
    assert "boxes" not in pq.read_schema(dataset.path / dataset.card["splits"]["train"]["files"][0]).names


def test_a_model_sees_what_it_would_see_of_the_file(folder, without_tex, tmp_path):
    dataset = build(folder, tmp_path / "out")
    split = open_split(dataset, "train", canvas_shape=CANVAS)
    assert len(split) == 37
    assert split.formulas[:3] == FORMULAS[:3]
    for index, pixels in enumerate(split.pixels(range(len(split)))):
        file = folder / split.ids[index].partition(":")[2]
        expected = prepare_image(file, canvas_shape=CANVAS, check=False)[-1].pixels
        np.testing.assert_array_equal(pixels, expected)
    buffer = split.load_all()
    assert len(buffer.data) == sum(height * width for height, width in split.sizes.tolist())
    stored = dataset.split("train")
    assert [tuple(size) for size in stored.sizes[:2]] == [pixels.shape for pixels in stored.pixels([0, 1])]


def test_stored_bytes_are_those_of_the_file(folder, without_tex, tmp_path):
    dataset = build(folder, tmp_path / "out")
    table = pq.read_table(dataset.path / dataset.card["splits"]["train"]["files"][0]).to_pylist()
    for row in table:
        assert row["image"]["bytes"] == (folder / row["id"].partition(":")[2]).read_bytes()
        with Image.open(io.BytesIO(row["image"]["bytes"])) as image:
            assert image.size == (row["width"], row["height"])
        assert row["style"] == "picture"


def test_a_build_that_was_stopped_goes_on(folder, without_tex, tmp_path, monkeypatch):
    whole = folder_bytes(build(folder, tmp_path / "whole").path)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "write_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            build(folder, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(stages, "open_image", stop)  # all pictures have been looked at
        assert folder_bytes(build(folder, tmp_path / "out").path) == whole


def test_a_changed_picture_is_not_mixed_in(folder, without_tex, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "write_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            build(folder, tmp_path / "out")
    draw("q").save(folder / "0.png")
    with pytest.raises(BuildError, match=r"differs in: inputs\[0\].pictures"):
        build(folder, tmp_path / "out")
    with pytest.raises(BuildError, match="has changed since the build began"):
        shards._read_picture(folder / "0.png", "0" * 64)


def test_pictures_beside_formulas(folder, fake_tex, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(FORMULAS))
    sources = text_sources([tmp_path / "a.txt"])
    sources += picture_sources([folder], [folder.with_suffix(".tsv")])
    options = BuildOptions(recipe=ALL_TRAIN, part_lines=25)
    dataset = build_dataset(
        sources, out=tmp_path / "out", options=options, engine=EngineOptions(jobs=1), quiet=True
    )
    assert [source["num_kept"] for source in dataset.card["sources"]] == [36, 37]
    split = open_split(dataset, "train", canvas_shape=CANVAS)
    boxes = split.boxes(range(len(split)))
    assert all(found is not None for found in boxes[: split.ids.index("pictures.tsv:0.png")])
    assert boxes[-1] is None
    with pytest.raises(BuildError, match="leave out --compact"):
        build_dataset(sources, out=tmp_path / "x", options=replace(options, compact=True), quiet=True)


def test_a_photograph_keeps_its_orientation_and_colours(without_tex, tmp_path):
    folder = tmp_path / "pictures"
    folder.mkdir()
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    for number in range(3):
        draw(f"a+{number}=b").rotate(90, expand=True).save(folder / f"{number}.jpg", exif=exif, quality=95)
    (tmp_path / "pictures.tsv").write_text("".join(f"{n}.jpg\ta + {n} = b\n" for n in range(3)))
    dataset = build(folder, tmp_path / "out")
    height, width = dataset.split("train").sizes[0]
    assert height < width
    [pixels] = open_split(dataset, "train", canvas_shape=CANVAS, limit=1).pixels([0])
    assert pixels.shape[0] < pixels.shape[1]


@pytest.mark.slow
def test_several_processes_write_the_same_bytes(folder, tmp_path):
    """Ray does too: `test_ray_gives_the_same_bytes` has one at hand."""
    alone = folder_bytes(build(folder, tmp_path / "alone").path)
    assert folder_bytes(build(folder, tmp_path / "local", engine=EngineOptions(jobs=2)).path) == alone


def test_the_command(folder, tmp_path, capsys):
    from i2l.cli import app

    arguments = [
        "build",
        "--images",
        folder,
        "--labels",
        folder.with_suffix(".tsv"),
        "--out",
        tmp_path / "set",
    ]
    with pytest.raises(SystemExit) as ended:
        app([*map(str, arguments), "--min-token-count", "1", "--jobs", "1"])
    assert not ended.value.code
    assert "samples of 46 lines" in capsys.readouterr().out
    card = json.loads((tmp_path / "set" / "dataset.json").read_text())
    assert card["verdicts"]["none"] == {
        "bad-label": 3,
        "empty": 1,
        "no-picture": 1,
        "rejected-by-normaliser": 1,
    }
    assert DatasetReader(tmp_path / "set").split("train").styles[0] == "picture"


def test_what_is_given_wrong_is_said(folder):
    labels = folder.with_suffix(".tsv")
    with pytest.raises(InputError, match="Give every --images its --labels"):
        picture_sources([folder], [])
    with pytest.raises(InputError, match="There is no folder"):
        picture_sources([Path("nowhere")], [labels])
    options = BuildOptions(recipe=ALL_TRAIN)
    twice = [*picture_sources([folder], [labels]), *picture_sources([folder], [labels])]
    with pytest.raises(InputError, match=r"Two inputs are called pictures\.tsv"):
        build_dataset(twice, out=folder.parent / "out", options=options, quiet=True)


def test_a_limit_is_one_of_the_pool_and_not_of_what_judges(tmp_path):
    """What is held back to judge by is read whole, also where training takes a part."""
    for name in ("a.tsv", "val.tsv", "test.tsv"):
        (tmp_path / name).write_text("1.png\tx\n" * 9)
    held_back = {"val": tmp_path / "val.tsv", "test": tmp_path / "test.tsv"}
    for extra in ({}, held_back):
        sources = picture_sources([tmp_path], [tmp_path / "a.tsv"], limit=4, **extra)
        assert [source.limit for source in sources] == [4, *[None] * len(extra)]
        assert [len(list(source.lines())) for source in sources] == [4, *[9] * len(extra)]
