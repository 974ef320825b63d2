"""`i2l build` as a user types it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from i2l.dataset.format import DatasetReader

pytestmark = pytest.mark.tex

FORMULAS = [f"{a}^{n} + x = {b}" for a in "abcd" for b in "abcd" for n in range(4)]

FEW = ["--min-token-count", "2"]


def run(*arguments, cwd):
    command = [sys.executable, "-m", "i2l", "build", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_formulas_in_a_dataset_out(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(FORMULAS[:32]))
    (tmp_path / "b.txt").write_text("\n".join(FORMULAS[32:]) + "\n\\frac{")
    done = run("--formulas", "a.txt", "b.txt", "--out", "set/one", *FEW, "--jobs", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "set/one: 64 samples of 65 lines" in done.stdout
    assert "1  rejected-by-normaliser" in done.stdout
    assert "lines/s" in done.stderr
    dataset = DatasetReader(tmp_path / "set/one")
    dataset.verify()
    split = dataset.split("train")
    assert all(boxes is not None for boxes in split.boxes(range(len(split))))
    # the same command again: nothing to do, and silence if asked for
    again = run("--formulas", "a.txt", "b.txt", "--out", "set/one", *FEW, "--quiet", cwd=tmp_path)
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_the_published_dataset(tmp_path):
    folder = tmp_path / "im2latex"
    folder.mkdir()
    (folder / "im2latex_formulas.lst").write_text("\n".join(FORMULAS))
    for name, numbers in (("train", range(60)), ("validate", [60, 61]), ("test", [62, 63])):
        lines = "".join(f"{number} 00{number:08x} basic\n" for number in numbers)
        (folder / f"im2latex_{name}.lst").write_text(lines)
    done = run("--from", "im2latex-100k", "im2latex", "--out", "set", *FEW, "-q", "--no-boxes", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    card = json.loads((tmp_path / "set/dataset.json").read_text())
    assert {name: split["num_samples"] for name, split in card["splits"].items()} == {
        "train": 60,
        "val": 2,
        "test": 2,
    }
    assert DatasetReader(tmp_path / "set").split("val").ids == [
        "im2latex_validate.lst:1",
        "im2latex_validate.lst:2",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--formulas", "none.txt"], "Cannot read none.txt: No such file or directory."),
        (
            ["--formulas", "a.txt", "--recipe", "95k"],
            "No recipe is called '95k'; choose one of: im2latex-90k",
        ),
        (["--from", "im2latex-100k"], "Name the folder of the dataset"),
        ([], "name one or more files with --formulas"),
    ],
)
def test_mistakes_get_one_line(tmp_path, arguments, message):
    (tmp_path / "a.txt").write_text("x\n")
    done = run(*arguments, "--out", "out", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers_first_s", [0, 0.2])
def test_ctrl_c_stops_and_the_same_command_goes_on(tmp_path, workers_first_s):
    """It reaches all processes, and not always ours first."""
    (tmp_path / "a.txt").write_text("\n".join(f"{f} + {n}" for f in FORMULAS for n in range(70)))
    command = [sys.executable, "-m", "i2l", "build", "a.txt", "--out", "out", "--no-boxes", "--jobs", "2"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # In the background, where tests may run, it would be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    while not list((tmp_path / ".out.work").glob("rendered/*.arrow")):
        assert process.poll() is None
    if workers_first_s:
        for worker in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            os.kill(int(worker), signal.SIGINT)
        time.sleep(workers_first_s)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert "Stopped. The same command goes on." in stderr
    assert "Traceback" not in stderr
    assert run("a.txt", "--out", "out", "--no-boxes", "-q", cwd=tmp_path).returncode == 0
    assert DatasetReader(tmp_path / "out").card["num_given"] == 4480
