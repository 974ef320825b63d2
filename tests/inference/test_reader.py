import dataclasses
import inspect
import io
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import i2l
from i2l.config import ReadingOptions
from i2l.errors import I2LError
from i2l.formulas.commands import picture_of
from i2l.formulas.normalize import normalize_formula
from i2l.images.open import NotAnImageError
from i2l.images.prepare import NotAFormulaError
from i2l.inference.model_folder import ModelError
from i2l.inference.reader import Reader
from i2l.inference.reading import MIN_PROBABILITY, Reading, is_formula
from i2l.model.checkpoint import load_network, save_checkpoint
from tests.inference.conftest import CONFIG, FORMULAS, draw_formula


@pytest.fixture(scope="module")
def reader(checkpoint):
    return Reader(checkpoint)


@pytest.fixture(scope="module")
def reading(reader):
    return reader.read(draw_formula("x ^ { 2 } = y"), scale=1)


def png(pixels):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_public_names():
    assert i2l.Reader is Reader
    assert i2l.Reading is Reading
    with pytest.raises(AttributeError, match="Writer"):
        i2l.Writer  # noqa: B018


def test_the_reader_loads_nothing_heavy():
    code = "import sys, i2l.inference.reader, i2l.inference.onnx_backend; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not set(loaded) & {
        "torch",
        "onnx",
        "scipy",
        "pyarrow",
        "pypdfium2",
        "typst",
        "rich",
        "typer",
    }


@pytest.mark.parametrize("formula", FORMULAS)
def test_what_was_learnt_is_read(reader, formula):
    reading = reader.read(draw_formula(formula), scale=1)
    assert reading.formula == formula
    assert reading.confidence > 0.6
    assert reading.finished


def test_any_source_gives_the_same(reader, tmp_path):
    pixels = draw_formula("b + c")
    path = tmp_path / "a.png"
    path.write_bytes(png(pixels))
    sources = [path, str(path), png(pixels), pixels, Image.fromarray(pixels), 255 - pixels]
    assert {reader.read(source, scale=1).latex for source in sources} == {"b + c"}


def test_a_reading_is_whole(reading):
    length = len(reading.tokens)
    assert reading.latex == "x^{2} = y"
    assert reading.attention.shape == (length, *CONFIG.grid)
    np.testing.assert_allclose(reading.attention.sum(axis=(1, 2)), 1, atol=1e-4)
    assert reading.token_probabilities.shape == (length,)
    assert np.log(reading.token_probabilities).sum() >= reading.log_prob - 1e-5
    assert reading.confidence == pytest.approx(np.exp(reading.log_prob))
    assert [box is None for box in reading.boxes] == [token in "^{}" for token in reading.tokens]
    width, height = reading.prepared.file_size_px
    for left, top, right, bottom in filter(None, reading.boxes):
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height


def test_a_reading_as_json(reading):
    content = json.loads(json.dumps(reading.to_dict()))
    assert content["latex"] == "x^{2} = y"
    assert [token["text"] for token in content["tokens"]] == list(reading.tokens)
    assert set(content["tokens"][0]) == {"text", "probability", "box", "alternatives"}
    assert set(content) >= {"confidence", "alternatives", "seconds", "size", "scale", "finished"}


def test_a_reading_in_a_notebook(reading):
    page = reading._repr_html_()
    assert "data:image/png;base64," in page
    assert page.count("<rect") == sum(box is not None for box in reading.boxes)
    assert "$$x^{2} = y$$" in page
    marked = replace(reading, latex="x<y", tokens=("<", *reading.tokens[1:]))._repr_html_()
    assert "$$x&lt;y$$" in marked
    assert "<code>x&lt;y</code>" in marked
    assert "<title>&lt;" in marked


def test_alternatives(checkpoint):
    reading = Reader(checkpoint, n_best=4).read(draw_formula("x ^ { a + b }"), scale=1)
    assert len(reading.alternatives) >= 3
    confidences = [reading.confidence, *(other.confidence for other in reading.alternatives)]
    assert len({reading.latex, *(other.latex for other in reading.alternatives)}) == len(confidences)


def test_no_alternative_is_surer_than_what_is_printed(checkpoint):
    reader = Reader(checkpoint, beam_width=6)
    for formula in FORMULAS:
        reading = reader.read(draw_formula(formula)[:, 14:-14], scale=1)  # cut off, so that it is in doubt
        confidences = [reading.confidence, *(other.confidence for other in reading.alternatives)]
        assert confidences == sorted(confidences, reverse=True)


def test_other_tokens_in_the_place_of_each(reader):
    reading = reader.read(draw_formula("x ^ { a + b }")[:, :-30], scale=1)  # cut off, so that it is in doubt
    assert len(reading.token_alternatives) == len(reading.tokens)
    for token, probability, others in zip(
        reading.tokens, reading.token_probabilities, reading.token_alternatives, strict=True
    ):
        chances = [chance for _, chance in others]
        assert len(others) <= 3
        assert token not in dict(others)
        assert chances == sorted(chances, reverse=True)
        assert probability + sum(chances) <= 1 + 1e-5
        assert chances == [] or min(chances) >= MIN_PROBABILITY
    assert any(reading.token_alternatives)


def test_other_tokens_leave_a_formula_and_another_picture(reader):
    """Whatever is cut off or turned over, so that all kinds of tokens are in doubt."""
    number = 0
    for formula in FORMULAS:
        whole = draw_formula(formula)
        for picture in (whole[:, :-20], whole[:, 20:], whole[::-1], whole[:, ::-1]):
            reading = reader.read(np.ascontiguousarray(picture), scale=1)
            total = reading.confidence + sum(other.confidence for other in reading.alternatives)
            assert 0 <= reading.confidence <= 1
            assert total <= 1 + 1e-9
            pictures = {picture_of(reading.latex), *(picture_of(one.latex) for one in reading.alternatives)}
            assert len(pictures) == 1 + len(reading.alternatives)
            for place, others in enumerate(reading.token_alternatives):
                for other, _ in others:
                    number += 1
                    changed = [*reading.tokens[:place], other, *reading.tokens[place + 1 :]]
                    assert is_formula(changed)
                    drawn = picture_of(normalize_formula(" ".join(changed)).formula)
                    assert drawn != picture_of(reading.formula)
    assert number > 10


def test_many_in_order_and_as_one_by_one(reader):
    pictures = [draw_formula(formula) for formula in FORMULAS]
    together = reader.read_many(pictures, scale=1)
    assert [reading.formula for reading in together] == FORMULAS
    for picture, reading in zip(pictures, together, strict=True):
        alone = reader.read(picture, scale=1)
        assert alone.tokens == reading.tokens
        np.testing.assert_allclose(alone.attention, reading.attention, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
def test_side_by_side_as_one_by_one(exported, threads):
    """Three lanes of five images: each gets other company, and the readings come in order."""
    reader = Reader(exported["float32"], threads=threads)
    formulas = [FORMULAS[index % len(FORMULAS)] for index in range(5 * 3 - 1)]
    sources = [draw_formula(formula) for formula in formulas]
    sources[4] = np.full((20, 20), 255, np.uint8)
    together = reader.read_many(sources, scale=1, errors="return")
    for index, (formula, reading) in enumerate(zip(formulas, together, strict=True)):
        if index == 4:
            assert isinstance(reading, I2LError)
        else:
            assert reading.formula == formula
            alone = reader.read(sources[index], scale=1)
            assert reading.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
            assert reading.boxes == alone.boxes
    with pytest.raises(I2LError):
        reader.read_many(sources, scale=1)


def test_one_open_image_for_several_threads(exported):
    """It is decoded when it is first looked at, and must not be by two threads at once."""
    page = np.full((1500, 1500), 255, np.uint8)
    drawing = draw_formula("b + c")
    page[: drawing.shape[0], : drawing.shape[1]] = drawing
    reader = Reader(exported["float32"], threads=3)
    for _ in range(3):
        image = Image.open(io.BytesIO(png(page)))
        assert {reading.formula for reading in reader.read_many([image] * 9, scale=1)} == {"b + c"}


def test_many_with_bad_ones_among_them(reader):
    sources = [draw_formula("a"), b"nonsense", draw_formula("b + c")]
    first, second, third = reader.read_many(sources, scale=1, errors="return")
    assert (first.latex, third.latex) == ("a", "b + c")
    assert isinstance(second, NotAnImageError)
    with pytest.raises(NotAnImageError):
        reader.read_many(sources, scale=1)
    assert reader.read_many([]) == []


def test_a_reading_without_sense_ends_a_list_unless_errors_are_asked_for(reader, monkeypatch):
    """One that is found out only when it has been read, not when its picture is opened."""

    def assemble(attempts, *, check):
        return [NotAFormulaError("nonsense") for _ in attempts]

    monkeypatch.setattr(reader._assembly, "assemble", assemble)
    with pytest.raises(NotAFormulaError, match="nonsense"):
        reader.read_many([draw_formula("a")], scale=1)
    (found,) = reader.read_many([draw_formula("a")], scale=1, errors="return")
    assert isinstance(found, NotAFormulaError)


def test_threads_share_a_reader(reader):
    pictures = [draw_formula(formula) for formula in FORMULAS] * 3
    with ThreadPoolExecutor(4) as pool:
        readings = list(pool.map(lambda picture: reader.read(picture, scale=1), pictures))
    assert [reading.formula for reading in readings] == FORMULAS * 3


def test_of_two_scales_the_surer_one_is_taken(reader, monkeypatch):
    """Half the size is hard to read: the model itself decides which form of the image to believe."""
    picture = draw_formula("y = x ^ { 2 } + c")
    right, wrong = (reader.prepare(picture, scale=scale)[0] for scale in (1.0, 0.55))
    monkeypatch.setattr("i2l.inference.policy.SURE_PROBABILITY", 1.1)
    for forms in ([right, wrong], [wrong, right]):
        monkeypatch.setattr(reader, "prepare", lambda source, scale, region, forms=forms: forms)
        assert reader.read(picture).formula == "y = x ^ { 2 } + c"
        assert reader.read_many([picture])[0].formula == "y = x ^ { 2 } + c"


def watch_searches(reader, monkeypatch):
    """A list that has the scale and the width of each search that is made from now on."""
    seen = []
    search = reader._policy._search

    def watch(inks, options, backend, memories):
        seen.extend((ink.image.scale, options.width) for ink in inks)
        return search(inks, options, backend, memories)

    monkeypatch.setattr(reader._policy, "_search", watch)
    return seen


@pytest.mark.parametrize(
    ("sure", "n_best", "searched"),
    [
        (0.0, 1, [(1.0, 1)]),  # the likeliest scale, greedily
        (1.1, 1, [(1.0, 1), (0.9, 1), (1.0, 5)]),  # in doubt the others too, and the best with the beam
        (0.0, 2, [(1.0, 1), (1.0, 5)]),  # who asks for more readings gets the beam
    ],
)
def test_a_sure_reading_stands(reader, monkeypatch, sure, n_best, searched):
    picture = draw_formula("y = x ^ { 2 } + c")
    forms = [reader.prepare(picture, scale=scale)[0] for scale in (0.9, 1.0)]
    reader = reader.with_options(beam_width=5, n_best=n_best)
    seen = watch_searches(reader, monkeypatch)
    monkeypatch.setattr(reader, "prepare", lambda source, scale, region: forms)
    monkeypatch.setattr("i2l.inference.policy.SURE_PROBABILITY", sure)
    assert reader.read(picture).formula == "y = x ^ { 2 } + c"
    assert seen == searched
    assert reader.read_many([picture, picture])[1].formula == "y = x ^ { 2 } + c"
    assert sorted(seen) == sorted(3 * searched)


def test_several_readings_of_one_form_take_one_search(reader, monkeypatch):
    """Where the whole beam has lost a part of the picture, a greedy one follows, and stands if it has not."""
    picture = draw_formula("y = x ^ { 2 } + c")
    reader = reader.with_options(beam_width=5, n_best=2)
    seen = watch_searches(reader, monkeypatch)
    assert reader.read(picture, scale=1).alternatives
    assert seen == [(1.0, 5)]
    seen.clear()
    monkeypatch.setattr(reader._policy, "_is_whole", lambda attempt: len(attempt.found) == 1)
    assert reader.read(picture, scale=1).alternatives == ()
    assert seen == [(1.0, 5), (1.0, 1)]
    monkeypatch.setattr(reader._policy, "_is_whole", lambda attempt: False)
    assert reader.read(picture, scale=1).alternatives


def test_what_is_read_again_is_not_looked_at_again(reader, monkeypatch):
    looked = []
    encode = reader.model.backend.encode
    monkeypatch.setattr(
        reader.model.backend, "encode", lambda pixels: (looked.append(len(pixels)), encode(pixels))[1]
    )
    again = reader.with_options(beam_width=5, n_best=2)
    one = again.read(draw_formula("x ^ { 2 }"), scale=1)
    assert looked == [1]
    looked.clear()
    assert again.read_many([draw_formula("x ^ { 2 }")] * 3, scale=1)[2].latex == one.latex
    assert sum(looked) == 3


def test_greedy_and_unguarded(checkpoint):
    reader = Reader(checkpoint, beam_width=1, guard=False, max_tokens=5)
    reading = reader.read(draw_formula("a + b + c = x"), scale=1)
    assert reading.tokens == ("a", "+", "b", "+", "c", "=")[:6]
    assert not reading.finished


def test_a_model_that_has_nothing_to_say(checkpoint, tmp_path):
    model, source = load_network(checkpoint)
    with torch.no_grad():
        model.output.score.bias[0] = 50.0
    save_checkpoint(
        tmp_path / "silent",
        step=0,
        weights=model.state_dict(),
        config=source.config,
        vocabulary=source.vocabulary,
        metrics={},
        training_state=None,
    )
    reading = Reader(tmp_path / "silent", guard=False).read(draw_formula("a"), scale=1)
    assert (reading.latex, reading.tokens, reading.boxes) == ("", (), ())
    assert Reader(tmp_path / "silent").read(draw_formula("a"), scale=1).tokens


def test_models_that_are_not_there(tmp_path, checkpoint):
    with pytest.raises(ModelError, match="neither a folder nor an installed one"):
        Reader("no-such-model")
    with pytest.raises(ModelError, match="not a model folder"):
        Reader(tmp_path)
    (tmp_path / "config.json").write_text('{"format": "i2l-model-0"}')
    with pytest.raises(ModelError, match="i2l-model-0"):
        Reader(tmp_path)
    with pytest.raises(I2LError, match="at least 1"):
        Reader(checkpoint, beam_width=0)


def test_no_model_in_the_box(monkeypatch, tmp_path):
    monkeypatch.setattr("i2l.inference.model_folder.BUNDLED", tmp_path)
    with pytest.raises(ModelError, match="no model in the box"):
        Reader()


def test_the_model_in_the_box(monkeypatch, tmp_path, checkpoint):
    monkeypatch.setattr("i2l.inference.model_folder.BUNDLED", tmp_path)
    for name in ("another", "pinpoint"):
        (tmp_path / name).symlink_to(checkpoint)
    assert Reader().read(draw_formula("a"), scale=1).latex == "a"
    assert Reader("another").model.path.name == "another"


def test_another_search_with_the_same_model(reader):
    greedy = reader.with_options(beam_width=1, n_best=1, guard=False)
    assert greedy.model is reader.model
    image = draw_formula(FORMULAS[0])
    alone = Reader(reader.model.path, beam_width=1, guard=False)
    assert greedy.read(image).latex == alone.read(image).latex
    assert greedy.with_options(guard=True).read(image).finished
    with pytest.raises(I2LError, match="at most the beam"):
        reader.with_options(n_best=100)


def test_a_folder_is_read_whole(reader, tmp_path):
    for number in (1, 0):
        Image.fromarray(draw_formula(FORMULAS[number])).save(tmp_path / f"{number}.png")
    (tmp_path / "notes.txt").write_text("no image")
    for folder in (tmp_path, str(tmp_path)):
        assert [reading.latex for reading in reader.read_many(folder, scale=1)] == ["a", "b + c"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(I2LError, match="no image in the folder"):
        reader.read_many(tmp_path / "empty")
    for one in (str(tmp_path / "0.png"), (tmp_path / "0.png").read_bytes(), draw_formula("a")):
        with pytest.raises(I2LError, match="give a list of images"):
            reader.read_many(one)


def test_a_region_of_a_page(reader):
    """Boxes and sizes are those of the page; what stands beside the region does not matter."""
    drawing = draw_formula("x ^ { 2 } = y")
    height, width = drawing.shape
    sheet = np.full((3 * height, 2 * width + 60), 255, np.uint8)
    sheet[height : 2 * height, 50 : 50 + width] = drawing
    sheet[:height, -40:] = 0
    region = (50, height, 50 + width, 2 * height)
    alone, reading = reader.read(drawing, scale=1), reader.read(sheet, scale=1, region=region)
    assert reading.formula == alone.formula == "x ^ { 2 } = y"
    assert reading.prepared.file_size_px == sheet.shape[::-1]
    assert reading.to_dict()["size"] == list(sheet.shape[::-1])
    for box, other in zip(reading.boxes, alone.boxes, strict=True):
        if other is None:
            assert box is None
        else:
            left, top, right, bottom = other
            assert box == (left + 50, top + height, right + 50, bottom + height)
    (together,) = reader.read_many([sheet], scale=1, region=region)
    assert together.boxes == reading.boxes
    with pytest.raises(I2LError, match="holds nothing of the picture"):
        reader.read(sheet, region=(0, 900, 10, 910))


def test_one_object_has_all_that_a_reader_can_be_told(checkpoint):
    arguments = set(inspect.signature(Reader).parameters)
    fields = {field.name: field.default for field in dataclasses.fields(ReadingOptions)}
    assert set(fields) == arguments | {"length_penalty"}
    for name, parameter in inspect.signature(Reader).parameters.items():
        assert parameter.default == fields[name], name
    options = ReadingOptions(model=checkpoint, beam_width=2, guard=False)
    reader = Reader.from_options(options)
    assert reader.options == options == Reader(checkpoint, beam_width=2, guard=False).options
    changed = reader.with_options(n_best=2, check=False).options
    assert changed == replace(options, n_best=2, check=False)
    with pytest.raises(I2LError, match="at least 1"):
        Reader.from_options(ReadingOptions(model=checkpoint, batch_size=-1))


def test_a_reading_is_shown_in_a_line(reading):
    assert re.fullmatch(r"Reading\('x\^\{2\} = y', confidence=[01]\.\d\d, 7 tokens\)", repr(reading))
    assert len(repr(replace(reading, latex="x" * 1000))) < 150
