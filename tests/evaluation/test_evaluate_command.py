"""`i2l evaluate` as a person types it."""

import importlib
import json

import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.errors import I2LError

TARGETS = [f"x _ {{ {number} }} + y" for number in range(30)]


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "targets.txt").write_text("\n".join(TARGETS))

    def run_command(*arguments):
        result = CliRunner().invoke(app, ["evaluate", *arguments], env={"COLUMNS": "120"})
        if isinstance(result.exception, I2LError):
            raise result.exception
        return result

    return run_command


def test_what_was_written_is_named_as_it_is_called(run, tmp_path):
    """Brackets in a name are no markup."""
    (tmp_path / "predictions.txt").write_text("\n".join(TARGETS))
    files = (
        "--predictions",
        "predictions.txt",
        "--references",
        "targets.txt",
        "--text-only",
        "--rounds",
        "10",
    )
    done = run(*files, "--out", "[bold]out")
    assert "Written: [bold]out/results.json" in done.output


def test_prediction_files(run, tmp_path):
    lines = [*TARGETS[:25], "", "x + y", r"\frac { a", *TARGETS[28:], "z", "too many"]
    (tmp_path / "predictions.txt").write_text("\n".join(lines))
    done = run(
        "--predictions", "predictions.txt", "--references", "targets.txt", "--text-only", "--out", "out"
    )
    assert done.exit_code == 0, done.output
    assert "90.00 %" in done.output  # 27 of 30 are right
    for said in ("1 × empty: 26", "2 × extra: line 31, line 32", "1 × unparsed prediction: 28"):
        assert said in done.output
    content = json.loads((tmp_path / "out" / "results.json").read_text())
    assert content["faults"]["extra"]["count"] == 2
    assert content["source"]["predictions"]["sha256"]
    assert (tmp_path / "out" / "report.html").stat().st_size > 10_000


def test_comparison(run, tmp_path):
    (tmp_path / "bad.txt").write_text("\n".join(["x + y"] * 15 + TARGETS[15:]))
    for name, file in (("bad", "bad.txt"), ("good", "targets.txt")):
        run("--predictions", file, "--references", "targets.txt", "--text-only", "--out", name)
    done = run("--compare", "bad", "good")
    assert done.exit_code == 0
    assert "+50.00 %" in done.output
    assert "0.001" in done.output


def test_what_is_missing_is_said(run):
    done = run("--predictions", "targets.txt")
    assert done.exit_code == 2
    assert "--references" in done.output
    with pytest.raises(I2LError, match="Cannot read"):
        run("--predictions", "nowhere.txt", "--references", "targets.txt", "--text-only")


@pytest.mark.tex
def test_with_renders(run, tmp_path):
    (tmp_path / "predictions.txt").write_text("\n".join([*TARGETS[:28], r"\mathrm { 1 }", r"\bad"]))
    (tmp_path / "targets.txt").write_text("\n".join([*TARGETS[:28], "1", "b"]))
    done = run("--predictions", "predictions.txt", "--references", "targets.txt", "--jobs", "1")
    assert done.exit_code == 0, done.output
    figures = json.loads((tmp_path / "evaluation" / "results.json").read_text())["figures"]
    assert figures["exact_match"]["value"] == pytest.approx(28 / 30)
    assert figures["strict_match"]["value"] == pytest.approx(29 / 30)
    assert figures["compiles"]["value"] == pytest.approx(29 / 30)
    assert figures["compiles_somehow"]["value"] == 1


@pytest.mark.parametrize(
    ("given", "canonical"),
    [
        (("--data", "data"), False),
        (("--images", "images", "--labels", "labels"), True),
        (("--images", "images", "--labels", "labels", "--as-is"), False),
    ],
)
def test_tokens_of_a_dataset_are_compared_as_they_are(run, monkeypatch, given, canonical):
    """They are canonical, and so is what a model was taught; what it writes otherwise is an error."""
    chosen = []

    def stop(*arguments):
        chosen.append(arguments[5].canonical)
        raise I2LError("enough")

    monkeypatch.setattr("i2l.evaluation.judge.BatchReader", lambda _: None)
    module = importlib.import_module("i2l.cli.evaluate")  # the command has the same name
    monkeypatch.setattr(module, "_find_samples", lambda *_: None)
    monkeypatch.setattr(module, "_try_model", stop)
    with pytest.raises(I2LError, match="enough"):
        run("--model", "m", *given)
    assert chosen == [canonical]
