"""Localisation of a model on a dataset, as `i2l evaluate --localization` runs it."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from i2l.cli import app
from i2l.dataset.sources import text_sources
from i2l.errors import I2LError
from i2l.explain.localization_report import _LINES, inked_cells, report_localization
from i2l.model.calstm.config import CalstmConfig
from i2l.model.calstm.network import Recognizer
from i2l.model.checkpoint import save_checkpoint
from tests.dataset.conftest import fake_tex, small_build  # noqa: F401 - fixtures
from tests.explain.test_localization import FIELD, sample

CONFIG = CalstmConfig(
    height_px=64,
    width_px=160,
    channels=(3, 4, 4, 4, 4),
    attention_units=(12, 8),
    embedding_units=5,
    lstm_units=9,
    init_units=6,
    output_units=13,
)


@pytest.fixture
def dataset(small_build, tmp_path):  # noqa: F811
    lines = [f"{a} + {b} = {c}" for a in "abc" for b in "abcx" for c in "xab"]
    path = tmp_path / "formulas.txt"
    path.write_text("\n".join(lines))

    def build(**changes):
        return small_build(text_sources([path]), **changes)

    return build


@pytest.fixture
def checkpoint(tmp_path):
    def save(vocabulary):
        torch.manual_seed(3)
        model = Recognizer(CONFIG, vocab_size=len(vocabulary))
        with torch.no_grad():
            model.output.score.bias[vocabulary.encode(["+", "="])] = 0.1
        path = tmp_path / "checkpoint"
        save_checkpoint(
            path,
            step=1,
            weights=model.state_dict(),
            config={"model": CONFIG.to_dict(), "objective": {}, "training": {}},
            vocabulary=vocabulary,
            metrics={},
            training_state=None,
        )
        return path

    return save


def run(*arguments):
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)], env={"COLUMNS": "140"})
    if isinstance(result.exception, I2LError):
        raise result.exception
    return result


@pytest.mark.slow
def test_evaluate_writes_figures_and_a_section_of_the_report(dataset, checkpoint, tmp_path):
    built = dataset(boxes=True)
    model = checkpoint(built.vocabulary)
    out = tmp_path / "results"
    done = run(
        "--model", model, "--data", tmp_path / "out", "--split", "train", "--localization", "--text-only",
        "--beam-width", "1", "--rounds", "20", "--limit", "12", "--jobs", "1", "--out", out,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "left to right" in done.output
    written = (out / "localization.json").read_text()
    assert written.endswith("}\n")
    content = json.loads(written)
    labels = [scores["label"] for scores in content["localization"]["systems"]]
    assert labels == ["model", "random", "uniform", "left to right"]
    assert content["localization"]["num_samples"] > 0
    assert content["attention"]["num_readings"] == 12
    assert content["source"]["model"]["sha256"]
    report = (out / "report.html").read_text()
    assert 'id="localization"' in report
    assert "What the paper says about attention" in report


def test_a_dataset_without_boxes_is_refused_before_anything_is_read(dataset, checkpoint, tmp_path):
    built = dataset(boxes=False)
    with pytest.raises(I2LError, match="build it again with --boxes"):
        run(
            "--model", checkpoint(built.vocabulary), "--data", tmp_path / "out", "--split", "train",
            "--localization",
        )  # fmt: skip
    assert run("--predictions", "x", "--references", "y", "--localization").exit_code == 2


def test_report_shows_fit_claims_and_gallery():
    stray = sample(name="two")
    attention = 0.8 * np.asarray(stray.attention)
    attention[:, 1, 0] += 0.2
    report = report_localization(
        [sample(), replace(stray, attention=attention)],
        field=FIELD,
        validation=[replace(stray, attention=attention)],
        share=0.99,
        rounds=20,
    )
    assert report.fit.share == report.result.share <= 0.8
    assert report.result.sample_iou == {"one": 1, "two": 1}
    assert report.section.count("<svg") == 4 + 2 * len(_LINES) + 2 * 3  # two of six charts have many scores
    assert "mean IoU 1.00" in report.section
    height, width = stray.pixels.shape
    frame = f'viewBox="-2 -2 {width + 4} {height + 4}" width="{1.5 * width:g}"'
    assert frame in report.section, "boxes at the edge are seen whole"
    unfitted = report_localization([sample()], field=FIELD, share=0.99, rounds=20)
    assert (unfitted.fit, unfitted.result.share) == (None, 0.99)


def test_cells_with_ink():
    inked = inked_cells(sample(), FIELD)
    assert np.argwhere(inked).tolist() == [[0, 1], [0, 3], [0, 5], [0, 8]]
