"""docs/attention.md: what `python -m benchmarks.attention` measures, draws and writes."""

import json
from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from benchmarks import attention as benchmark
from benchmarks.results.page import fill_page
from i2l.explain.localization import LocalizationSample
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import save_checkpoint
from tests.dataset.conftest import fake_tex, small_build  # noqa: F401 - fixtures
from tests.explain.test_localization_run import CONFIG as NOPOOL
from tests.explain.test_localization_run import dataset  # noqa: F401 - fixture

FIELD = CalstmConfig(height_px=128, width_px=320).receptive_field()  # 4 x 10 cells of 32 x 32
FORMULA = r"a ^ { 2 } b _ { k } c \frac { x } { y }"
TOKENS = FORMULA.split()
# Where the visible ones lie on an image of 318 x 126, which is as large as the canvas without its frame.
BOXES = {
    0: (40, 50, 60, 70),
    3: (70, 20, 80, 30),
    5: (104, 50, 124, 70),
    8: (136, 90, 146, 100),
    10: (168, 50, 188, 70),
    11: (200, 60, 250, 64),
    13: (220, 20, 240, 40),
    16: (220, 90, 240, 110),
}


def looking_at(places):
    """Attention on one cell a step: that of the box of the last token, of those given, that has one."""
    seen = np.zeros((len(TOKENS) + 1, *FIELD.grid))
    box = BOXES[0]
    for step in range(len(TOKENS) + 1):
        box = BOXES[step] if step in places else box
        seen[step, int((box[1] + box[3]) / 2) // 32, int((box[0] + box[2]) / 2) // 32] = 1
    return seen


def sample(attention):
    pixels = np.full((126, 318), 255, np.uint8)
    for left, top, right, bottom in BOXES.values():
        pixels[top:bottom, left:right] = 0
    boxes = [BOXES.get(place) for place in range(len(TOKENS))]
    return LocalizationSample("one", pixels, TOKENS, boxes, TOKENS, attention)


def test_denominators_are_told_from_other_groups():
    formula = r"\frac { a } { \frac { { b } } { c } } { d } ^ { e } { f }"
    tokens = formula.split()
    assert [tokens[place + 1] for place in sorted(benchmark.denominator_starts(tokens))] == [r"\frac", "c"]
    assert benchmark.denominator_starts(["}", "{", "}", "{"]) == set()


def test_attention_that_follows_the_tokens_goes_every_way():
    moves = benchmark.measure_moves(sample(looking_at(BOXES)), FIELD)
    assert moves["up_goes"].tolist() == [1], "a to 2"
    assert moves["down_goes"].tolist() == [1], "b to k"
    assert moves["denominator_goes"].tolist() == [1], "x to y"
    assert moves["denominator_true_px"].tolist() == [70]
    assert moves["denominator_px"].tolist() == [96]
    assert moves["right_goes"].tolist() == [1], "c to the bar; the others are not on one line"
    assert moves["right_true_px"].tolist() == [47]


def test_attention_that_stays_goes_nowhere():
    moves = benchmark.measure_moves(sample(looking_at([])), FIELD)
    assert [moves[f"{kind}_goes"].tolist() for kind in benchmark.KINDS] == [[0]] * 4
    misread = replace(sample(looking_at(BOXES)), prediction=[*TOKENS[:3], "3", *TOKENS[4:]])
    assert benchmark.measure_moves(misread, FIELD)["up_goes"].tolist() == [], "3 is no 2, and b is no script"


def test_extent_is_in_pixels():
    extent = benchmark.measure_extent(sample(looking_at(BOXES)), FIELD)
    assert set(extent["width_px"]) == set(extent["height_px"]) == {32}
    even = np.full((len(TOKENS) + 1, 4, 10), 1 / 40)
    extent = benchmark.measure_extent(sample(even), FIELD)
    assert (extent["height_px"][0], extent["width_px"][0]) == (4 * 32, 9 * 32)


def test_ends_are_beyond_all_ink():
    seen = looking_at(BOXES)
    seen[0], seen[-1] = 0, 0
    seen[0, 0, 0], seen[0, 2, 1] = 0.75, 0.25
    seen[-1, 3, 8], seen[-1, 0, 0] = 0.5, 0.5
    ends = benchmark.measure_ends(sample(seen), FIELD)
    assert (ends["left_first"].tolist(), ends["right_eos"].tolist()) == ([0.75], [0.5])


def save(path, config, vocabulary):
    torch.manual_seed(3)
    model = Recognizer(config, vocab_size=len(vocabulary))
    with torch.no_grad():
        model.output.score.bias[vocabulary.encode(["+", "="])] = 0.1
    save_checkpoint(
        path,
        step=1,
        weights=model.state_dict(),
        config={"model": config.to_dict(), "objective": {}, "training": {}},
        vocabulary=vocabulary,
        metrics={},
        training_state=None,
    )
    return str(path)


def test_the_command_fills_the_page_and_draws_the_pictures(dataset, tmp_path, monkeypatch):  # noqa: F811
    vocabulary = dataset(boxes=True).vocabulary
    short = replace(NOPOOL, max_tokens=12)
    models = [save(tmp_path / "nopool", short, vocabulary)]
    models += [save(tmp_path / "strips", replace(short, pool_rows=2), vocabulary)]
    page, results, pictures = tmp_path / "attention.md", tmp_path / "attention.json", tmp_path / "pictures"
    names = benchmark.tables({})
    page.write_text("".join(f"Words.\n<!-- table: {name} -->\n<!-- end -->\n" for name in names))
    monkeypatch.setattr(benchmark, "PAGE", page)
    monkeypatch.setattr(benchmark, "RESULTS", results)
    monkeypatch.setattr(benchmark, "PICTURES", pictures)
    drawn = np.full((30, 90), 255, np.uint8)
    drawn[5:25, 10:30] = drawn[5:25, 50:70] = 0
    monkeypatch.setattr(benchmark, "render_examples", lambda: {"squares": drawn})
    benchmark.main([str(tmp_path / "out"), "--models", ",".join(models), "--split", "train", "--limit", "8"])
    text = page.read_text()
    assert text.count("Words.") == len(names)
    assert text.count("| NOPOOL | STRIPS |") == len(names)
    assert "| cells | 2 x 5 | 1 x 5 |" in text
    up = next(line for line in text.splitlines() if "goes up" in line)
    assert up.endswith("| – |"), "one row of cells goes neither up nor down"
    content = json.loads(results.read_text())
    for model in content["models"]:
        assert model["num_formulas"] == 8
        assert model["figures"]["mean_cells"]["low"] <= model["figures"]["mean_cells"]["value"]
    assert "\\\\" not in results.read_text(), "nothing of the data"
    with Image.open(pictures / "squares.png") as picture:
        assert picture.width == 2 * (324 + 20), "the canvas of 162 pixels at twice its size, a column a model"
        assert picture.convert("L").getextrema()[0] < 40
    again = page.read_text()
    benchmark.main([])
    assert page.read_text() == again


def test_the_page_is_what_was_measured():
    content = json.loads(benchmark.RESULTS.read_text(encoding="utf-8"))
    text = benchmark.PAGE.read_text(encoding="utf-8")
    assert fill_page(text, benchmark.tables(content)) == text, "run: python -m benchmarks.attention"
    assert "table: boxes" in text
    names = [model["name"] for model in content["models"]]
    assert names == benchmark.MODELS.split(",")


def test_the_pictures_are_there_and_small():
    files = sorted(benchmark.PICTURES.iterdir())
    assert [path.stem for path in files] == sorted(benchmark.FORMULAS)
    assert sum(path.stat().st_size for path in files) < 1_500_000
    text = benchmark.PAGE.read_text(encoding="utf-8")
    assert all(f"pictures/attention/{path.name}" in text for path in files)
