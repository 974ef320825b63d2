"""Models that are distributions of their own: found by name, listed, used where handwriting is noticed."""

import io
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from i2l import Reader
from i2l.cli import app
from i2l.errors import weights_command
from i2l.explain.explanation import explain_image
from i2l.files import CHECKSUMS, write_checksums
from i2l.images.ink import looks_written
from i2l.images.prepare import FEW_PIECES, NotAFormulaError
from i2l.inference.model_folder import (
    BUNDLED,
    CONFIG,
    DISTRIBUTIONS,
    ENTRY_POINTS,
    ModelError,
    bundled_models,
    check_model_folder,
    find_model,
    list_models,
    read_model_folder,
)
from i2l.ink.pens import draw_ink
from i2l.ink.strokes import Ink
from i2l.rendering.render import render_formulas
from tests.inference.conftest import draw_formula, make_installed, taught_handwriting

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
QUICK = {"threads": 1, "beam_width": 1, "max_tokens": 50}


def scrawl(count=9, *, seed=0):
    """Ink as uneven as a hurried hand's, which means nothing: each sign of another size, none on the line."""
    source = np.random.default_rng(seed)
    t = np.linspace(0, 1, 24)[:, None]
    strokes = []
    for place in range(count):
        size, corner = source.uniform(45, 140), (160 * place, source.normal(0, 25))
        for turns in source.uniform(2, 7, (2, 2)):
            strokes.append(corner + size * (0.5 + 0.5 * np.sin(turns * t + source.uniform(0, 6, 2))))
    return Ink(tuple(strokes))


def picture_of(ink):
    return Image.fromarray(draw_ink(ink, margin_px=12)[0])


@pytest.fixture(scope="module")
def same_size(tmp_path_factory):
    """The model in the box once more, as one for handwriting."""
    folder = tmp_path_factory.mktemp("standin")
    return taught_handwriting(BUNDLED / "pinpoint", folder / "hand")


@pytest.fixture
def installed(same_size, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(make_installed(tmp_path / "packages", "i2l_standin", {"hand": same_size}))


@pytest.fixture
def missing(monkeypatch):
    """Nothing but the box, whatever is installed where the tests run."""
    monkeypatch.setattr("i2l.inference.model_folder.installed_models", dict)


@pytest.fixture(scope="module")
def reader():
    return Reader(**QUICK)


def test_the_known_models_are_those_of_the_repository():
    if not (ROOT / "models").is_dir():
        pytest.skip("not a checkout: an sdist has no weights but those of the box")
    named = {}
    for path in (ROOT / "models").glob("*/pyproject.toml"):
        project = tomllib.loads(path.read_text())["project"]
        assert project["name"] == f"i2l-{path.parent.name}"
        assert "dependencies" not in project, "no index knows i2l by name"
        assert (path.parent / "LICENSE").is_file()
        named |= dict.fromkeys(project["entry-points"][ENTRY_POINTS], path.parent.name)
    assert named == DISTRIBUTIONS


def test_a_distribution_is_installed_by_pip_and_found_by_name(exported, tmp_path, monkeypatch):
    project, target = tmp_path / "models" / "toys", tmp_path / "target"
    folder = project / "i2l_toys"
    taught_handwriting(exported["float32"], folder / "small", licence="")
    shutil.copytree(exported["int8"], folder / "tiny")
    (folder / "__init__.py").write_text("raise SystemExit('nobody imports this')\n")
    text = (ROOT / "models" / "hand" / "pyproject.toml").read_text()
    text = text.replace("i2l-hand", "i2l-toys").replace("i2l_hand", "i2l_toys")
    (project / "pyproject.toml").write_text(text.replace('hand = "', 'small = "i2l_toys"\ntiny = "'))
    for name in ("LICENSE", "README.md"):
        shutil.copy(ROOT / "models" / "hand" / name, project)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"),
            *("--no-build-isolation", "--no-deps", "--target", str(target), str(project)),
        ],
        check=True,
        capture_output=True,
    )
    monkeypatch.syspath_prepend(target)
    there = list_models()
    assert next(iter(there)) == "pinpoint"
    assert {"small", "tiny"} <= there.keys()
    check_model_folder(there["tiny"])
    picture = draw_formula("b + c")
    reading = Reader("tiny").read(picture, scale=1)
    assert (reading.latex, reading.model) == ("b + c", "tiny")
    assert Reader("small", threads=1).model.handwriting is True
    Image.fromarray(picture).save(tmp_path / "picture.png")
    run = CliRunner().invoke
    read = run(app, ["read", str(tmp_path / "picture.png"), "--model", "tiny", "--scale", "1", "--json"])
    assert json.loads(read.stdout)["model"] == "tiny"
    listed = run(app, ["models"]).stdout
    assert re.search(r"^pinpoint +in the box +reads print, \d+ MB, licence: MIT$", listed, re.M)
    assert re.search(r"^small +installed +reads handwriting, \d+ MB, licence: not stated$", listed, re.M)
    with pytest.raises(ModelError, match="small, tiny"):
        find_model("large")
    (target / "i2l_toys" / "small" / CONFIG).unlink()
    shutil.rmtree(target / "i2l_toys" / "tiny")
    assert not {"small", "tiny"} & list_models().keys(), "an entry point alone is no model"


def test_a_model_that_is_known_is_said_with_its_command(missing):
    command = re.escape(weights_command("hand"))
    with pytest.raises(ModelError, match=f"^The model 'hand' is not installed; install it with: {command}$"):
        Reader("hand")
    listed = CliRunner().invoke(app, ["models"]).stdout
    assert re.search(rf"^hand +not here +install it with: {command}$", listed, re.M)


def test_the_command_is_that_for_how_this_was_installed(monkeypatch, tmp_path):
    from i2l import errors

    monkeypatch.setattr(errors, "_pip", lambda arguments: " ".join(["pip install", *arguments]))
    git = errors._Origin(url="git+https://example.org/i2l.git", is_repository=True)
    (tmp_path / "models" / "hand").mkdir(parents=True)
    for origin, command in (
        (errors._Origin(path=tmp_path), f"pip install {tmp_path}/models/hand"),
        (errors._Origin(path=tmp_path / "i2l.whl"), "pip install ./models/hand (in a checkout of i2l)"),
        (git, "pip install i2l-hand @ git+https://example.org/i2l.git#subdirectory=models/hand"),
        (
            errors._Origin(url="https://example.org/i2l.whl"),
            "pip install ./models/hand (in a checkout of i2l)",
        ),
    ):
        monkeypatch.setattr(errors, "_find_origin", lambda origin=origin: origin)
        assert weights_command("hand") == command


def test_print_does_not_look_written(reader):
    for path in sorted(EXAMPLES.glob("*.png")):
        for image in reader.prepare(str(path)):
            assert not looks_written(image.pixels), path.name


def test_writing_does_and_a_few_signs_are_too_few(reader):
    prepare = reader.prepare
    for seed in range(5):
        assert looks_written(prepare(picture_of(scrawl(seed=seed)))[-1].pixels), seed
    assert not looks_written(prepare(picture_of(scrawl(2)))[-1].pixels)


def test_without_the_model_for_it_handwriting_is_named(reader, missing, tmp_path):
    picture = picture_of(scrawl())
    free = reader.with_options(check=False)
    strokes, reading = free.read_strokes(scrawl()), free.read(picture)
    assert strokes.model == reading.model == "pinpoint"
    for note in (strokes.note, reading.note):
        assert "never taught handwriting" in note
        assert "`i2l models`" in note
    assert reading.note.startswith("This looks like handwriting")
    assert reading.to_dict()["note"] == reading.note
    assert free.with_options(handwriting=False).read(picture).note is None
    assert Reader("pinpoint", check=False, **QUICK).read(picture).note is None
    picture.save(tmp_path / "written.png")
    shutil.copy(tmp_path / "written.png", tmp_path / "again.png")
    names = [str(tmp_path / name) for name in ("written.png", "again.png")]
    said = CliRunner().invoke(app, ["read", *names, "--no-check", "--threads", "1", "--beam-width", "1"])
    assert said.stderr.count("This looks like handwriting") == 1


def test_an_error_about_handwriting_says_so_too(reader, missing, monkeypatch):
    refused = NotAFormulaError("This makes no sense.")
    monkeypatch.setattr(reader._assembly, "assemble", lambda attempts, check: [refused] * len(attempts))
    with pytest.raises(NotAFormulaError, match=r"no sense\. This looks like handwriting, read by pinpoint"):
        reader.read(picture_of(scrawl()))
    with pytest.raises(NotAFormulaError, match=r"no sense\. Read by pinpoint"):
        reader.read_strokes(scrawl())
    with pytest.raises(NotAFormulaError, match=r"no sense\.$"):
        reader.read(str(EXAMPLES / "1-paper.png"))


def test_where_it_is_installed_it_reads_handwriting_and_print_is_read_as_before(installed):
    free = Reader(check=False, **QUICK)
    strokes = free.read_strokes(scrawl())
    assert (strokes.model, strokes.note) == ("hand", None)
    print_alone = Reader("pinpoint", check=False, **QUICK)
    assert "'hand' reads handwriting" in print_alone.read_strokes(scrawl()).note
    mixed = [str(EXAMPLES / "1-paper.png"), picture_of(scrawl()), str(EXAMPLES / "6-sans.png")]
    readings = free.read_many(mixed)
    assert [one.model for one in readings] == ["pinpoint", "hand", "pinpoint"]
    assert readings[1].note is None
    for image, reading in zip(mixed[::2], readings[::2], strict=True):
        before = print_alone.read(image)
        assert (reading.latex, reading.boxes) == (before.latex, before.boxes)
        assert reading.confidence == pytest.approx(before.confidence, abs=0.02)
    explained = explain_image(free, mixed[1], title="written")
    assert explained.latex == readings[1].latex


def test_the_surer_reading_is_kept(installed, monkeypatch):
    reader = Reader(check=False, **QUICK)
    picture = picture_of(scrawl())
    other = reader._reader_of_handwriting()
    sure, unsure = (lambda evidence, value=value: value for value in (0.4, 0.3))
    monkeypatch.setattr(reader._assembly, "confidence", sure)
    monkeypatch.setattr(other._assembly, "confidence", unsure)
    assert (reader.read(picture).model, reader.read(picture).confidence) == ("pinpoint", 0.4)
    monkeypatch.setattr(other._assembly, "confidence", sure)
    assert reader.read(picture).model == "hand"
    monkeypatch.setattr(reader._assembly, "confidence", lambda evidence: 0.6)
    assert reader.read(picture).model == "pinpoint", "what was read without doubt is not looked at again"


def test_what_print_makes_nothing_of_is_handwriting_if_that_model_is_sure(installed, monkeypatch):
    """Some handwriting is as even as print: it is known by what the two models make of it."""
    monkeypatch.setattr("i2l.inference.reader.looks_written", lambda pixels: False)
    reader = Reader(check=False, **QUICK)
    other = reader._reader_of_handwriting()

    def model_of(confidence: float, *, of_other: float) -> str:
        monkeypatch.setattr(reader._assembly, "confidence", lambda evidence: confidence)
        monkeypatch.setattr(other._assembly, "confidence", lambda evidence: of_other)
        return reader.read(str(EXAMPLES / "1-paper.png")).model

    assert model_of(0.04, of_other=0.5) == "hand"
    assert model_of(0.04, of_other=0.49) == "pinpoint"
    assert model_of(0.06, of_other=0.9) == "pinpoint"
    monkeypatch.setattr(reader, "_reader_of_handwriting", lambda: "It is not there.")
    monkeypatch.setattr(reader._assembly, "confidence", lambda evidence: 0.01)
    assert reader.read(str(EXAMPLES / "1-paper.png")).note is None, "print that is read badly stays print"


def test_what_print_refuses_is_handwriting_too_if_that_model_is_sure(installed, monkeypatch):
    """Nothing at all is no more than next to nothing: such a picture was refused, unless it was uneven."""
    monkeypatch.setattr("i2l.inference.reader.looks_written", lambda pixels: False)
    reader = Reader(check=False, **QUICK)
    other = reader._reader_of_handwriting()
    refused = NotAFormulaError("This makes no sense.")
    monkeypatch.setattr(reader._assembly, "assemble", lambda attempts, check: [refused] * len(attempts))
    monkeypatch.setattr(other._assembly, "confidence", lambda evidence: 0.5)
    assert reader.read(str(EXAMPLES / "1-paper.png")).model == "hand"
    monkeypatch.setattr("i2l.inference.reader._TELLING_TOKENS", 1000)
    with pytest.raises(NotAFormulaError, match=r"no sense\.$"):
        reader.read(str(EXAMPLES / "1-paper.png"))
    monkeypatch.setattr("i2l.inference.reader._TELLING_TOKENS", 1)
    monkeypatch.setattr(other._assembly, "confidence", lambda evidence: 0.49)
    with pytest.raises(NotAFormulaError, match=r"no sense\.$"):
        reader.read(str(EXAMPLES / "1-paper.png"))


def test_a_model_of_another_size_gets_the_picture_at_its_own(exported, tmp_path, monkeypatch):
    small = taught_handwriting(exported["float32"], tmp_path / "hand")
    monkeypatch.syspath_prepend(make_installed(tmp_path / "packages", "i2l_small", {"hand": small}))
    monkeypatch.setattr("i2l.inference.reader.looks_written", lambda pixels: True)
    reader = Reader(check=False, **QUICK)
    short, long = picture_of(scrawl(3)), picture_of(scrawl(24))
    ink = np.nonzero(np.asarray(short) < 128)
    for reading in (reader.read(short), reader.read_many([short])[0]):
        assert reading.model == "hand"
        assert reading.prepared.file_size_px == short.size
        left, top, right, bottom = reading.prepared.to_file((0, 0, *reading.prepared.pixels.shape[::-1]))
        edges = ink[1].min(), ink[0].min(), ink[1].max() + 1, ink[0].max() + 1
        assert (left, top, right, bottom) == pytest.approx(edges, abs=3)
    assert reader.read(long).model == "pinpoint", "it is too large for the other one"


def test_handwriting_is_read_at_several_scales_however_large_it_is(same_size):
    """Print that is about as large as the model knows it is read as it is; nobody writes in such a size."""
    hand, box = Reader(same_size), Reader(BUNDLED / "pinpoint")
    picture = picture_of(scrawl(FEW_PIECES + 4))  # of fewer print is looked at in more sizes
    size, step = hand.prepare(picture)[-1].scale, hand.model.limits.scale_step
    for factor in (1.0, 1.3, 0.4):
        again = picture.resize([round(side * size * factor) for side in picture.size])
        written = [form.scale for form in hand.prepare(again)]
        assert written == pytest.approx([written[-1] / step, written[-1] * step, written[-1]])
        assert written[-1] == pytest.approx(1 / factor, rel=0.1)
        assert len(box.prepare(again)) == {1.0: 1, 1.3: 2, 0.4: 3}[factor]


def test_a_model_of_another_scale_gets_the_picture_anew(same_size, tmp_path, monkeypatch):
    """What the picture shows at the finer scale is not what the coarser one shows, enlarged."""
    shutil.copytree(same_size, tmp_path / "hand", symlinks=True)
    config = json.loads((tmp_path / "hand" / "config.json").read_text())
    config["model"]["dpi"] = 300.0
    (tmp_path / "hand" / "config.json").unlink()
    (tmp_path / "hand" / "config.json").write_text(json.dumps(config))
    write_checksums(tmp_path / "hand")
    monkeypatch.syspath_prepend(
        make_installed(tmp_path / "packages", "i2l_fine", {"hand": tmp_path / "hand"})
    )
    monkeypatch.setattr("i2l.inference.reader.looks_written", lambda pixels: True)
    large = picture_of(scrawl(3)).resize((900, 300), Image.Resampling.LANCZOS)
    stream = io.BytesIO()
    large.save(stream, "png")
    reader = Reader(check=False, **QUICK)
    monkeypatch.setattr(reader._assembly, "confidence", lambda evidence: 0.0)  # the other one is surer
    own = reader.prepare(large)[-1]
    anew = Reader("hand", check=False, **QUICK).prepare(
        large
    )  # at several scales, as of three signs none is sure
    assert anew[-1].scale == pytest.approx(1.5 * own.scale, rel=0.05)
    for reading in (reader.read(large), reader.read_many([large])[0], reader.read(stream.getvalue())):
        assert reading.model == "hand"
        assert any(np.array_equal(reading.prepared.pixels, form.pixels) for form in anew)
    stream.seek(0)
    reading = reader.read(stream)  # it cannot be read twice
    assert reading.model == "hand"
    assert reading.prepared.file_size_px == large.size


def test_a_broken_model_for_handwriting_is_named_and_print_is_read(same_size, tmp_path, monkeypatch):
    shutil.copytree(same_size, tmp_path / "hand", symlinks=True)
    (tmp_path / "hand" / "vocab.json").unlink()
    monkeypatch.syspath_prepend(
        make_installed(tmp_path / "packages", "i2l_broken", {"hand": tmp_path / "hand"})
    )
    reader = Reader(check=False, **QUICK)
    reading = reader.read(picture_of(scrawl()))
    assert reading.model == "pinpoint"
    assert re.search(r"cannot be used: .*vocab\.json", reading.note)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_weights_in_the_repository_are_whole(name):
    project = ROOT / "models" / DISTRIBUTIONS[name]
    folder = project / f"i2l_{DISTRIBUTIONS[name]}" / name
    check_model_folder(folder)
    assert (folder / CHECKSUMS).is_file()
    model = read_model_folder(folder)
    assert model.calibration is not None
    assert bool(model.source.get("handwriting")) == (name == "hand")
    assert name != "hand" or "CC BY-NC-SA 3.0" in model.source["licence"]
    assert sum(path.stat().st_size for path in folder.iterdir()) < (32e6 if name == "hand" else 40e6)


@pytest.mark.tex
@pytest.mark.parametrize("name", ["nopool", "strips"])
def test_the_networks_of_the_paper_read_and_look_where_they_read(name):
    """They were told no boxes; all the same, what they look at moves over the formula from left to right."""
    formula = r"E = \frac { 1 } { 2 } m v ^ { 2 } + \int _ { 0 } ^ { 1 } f ( x ) d x"
    image = render_formulas([formula])[0].pixels
    reading = Reader(ROOT / "models" / "paper" / "i2l_paper" / name, threads=1).read(image, scale=1)
    assert reading.formula == formula
    columns = reading.attention.sum(axis=1)
    places = columns @ np.arange(columns.shape[1])
    first, middle, last = (places[reading.tokens.index(token)] for token in ("E", "+", "d"))
    assert first < middle < last


@pytest.mark.parametrize("name", ["nopool", "strips"])
def test_the_networks_of_the_paper_are_also_shown_a_picture_as_it_is(name):
    """Its few large signs are taken for type of twice the size, and these networks know one size alone."""
    reader = Reader(ROOT / "models" / "paper" / "i2l_paper" / name, threads=1)
    reading = reader.read(ROOT / "examples" / "1-paper.png")
    assert reading.prepared.scale == 1
    assert reading.latex.startswith(r"\oint_{\partial\Sigma}\mathbf{E}\cdot d")
    assert 1 not in [form.scale for form in Reader().prepare(ROOT / "examples" / "1-paper.png")]


@pytest.mark.tex
def test_brackets_of_handwriting_are_written_as_tall_as_they_are(same_size):
    """The tokens are what the model saw, and the LaTeX is what a person would write for it."""
    image = render_formulas([r"( \frac { a } { b } ) = 1"])[0].pixels
    plain, written = (Reader(model, **QUICK).read(image) for model in ("pinpoint", same_size))
    assert plain.tokens == written.tokens
    assert plain.tokens[0] == "("
    assert written.latex == plain.latex.replace("(", r"\left(").replace(")", r"\right)")


def test_no_distribution_takes_the_place_of_a_model_in_the_box(monkeypatch, tmp_path):
    strange = {bundled_models()[0]: tmp_path, "another": tmp_path}
    monkeypatch.setattr("i2l.inference.model_folder.installed_models", lambda: strange)
    there = list_models()
    assert there[bundled_models()[0]] == BUNDLED / bundled_models()[0]
    assert there["another"] == tmp_path
