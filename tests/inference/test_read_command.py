import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from i2l.cli import app
from i2l.config import BEAM_WIDTH
from i2l.desktop import clipboard
from i2l.errors import I2LError, MissingDependencyError
from tests.inference.conftest import FORMULAS, draw_formula


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    for index, formula in enumerate(FORMULAS[:4]):
        Image.fromarray(draw_formula(formula)).save(path / f"{index}.png")
    (path / "notes.txt").write_text("not an image")
    return path


@pytest.fixture
def run(checkpoint):
    def run(*arguments, **options):
        return CliRunner().invoke(
            app, ["read", *map(str, arguments), "--model", str(checkpoint), "--scale", "1"], **options
        )

    return run


def test_a_line_an_image_in_order(run, folder):
    result = run(folder / "1.png", folder / "0.png", folder / "3.png", "--no-names")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["b + c", "a", "x^{2} = y"]


def test_several_images_are_named(run, folder):
    assert run(folder).stdout.splitlines() == [
        f"{folder}/0.png: a",
        f"{folder}/1.png: b + c",
        f"{folder}/2.png: a = b",
        f"{folder}/3.png: x^{{2}} = y",
    ]
    assert run(folder / "1.png", "--names").stdout == f"{folder}/1.png: b + c\n"
    lines = run(folder / "0.png", folder / "1.png", "--n-best", "2").stdout.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{folder}/{n}.png" for n in "0011"]


def test_folders_and_globs(run, folder):
    assert run(folder, "--no-names").stdout.splitlines() == ["a", "b + c", "a = b", "x^{2} = y"]
    assert run(folder / "[12].png", "--no-names").stdout.splitlines() == ["b + c", "a = b"]
    assert isinstance(run(folder / "x*.png").exception, I2LError)


def test_a_bad_file_does_not_stop_the_others(run, folder):
    result = run(folder / "0.png", folder / "notes.txt", folder / "1.png")
    assert result.exit_code == 1
    assert [line.rpartition("/")[2] for line in result.stdout.splitlines()] == [
        "0.png: a",
        "notes.txt:",
        "1.png: b + c",
    ]
    assert "notes.txt is not an image" in result.stderr


def test_json(run, folder):
    result = run(folder / "3.png", folder / "notes.txt", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    assert first["image"].endswith("3.png")
    assert first["latex"] == "x^{2} = y"
    assert first["tokens"][0]["box"] is not None
    assert "not an image" in second["error"]
    assert result.exit_code == 1


@pytest.mark.parametrize("arguments", [["-"], []])
def test_stdin(run, folder, arguments):
    assert run(*arguments, input=(folder / "2.png").read_bytes()).stdout == "a = b\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("tokens", "x ^ { 2 } = y"),
        ("display", "$$x^{2} = y$$"),
        ("inline", "$x^{2} = y$"),
        ("mathml", "<math"),
        ("omml", "<m:oMath"),
        ("typst", "x^2 = y"),
        ("asciimath", "x^(2) = y"),
        ("unicode", "x² = y"),
        ("equation", r"\begin{equation} x^{2} = y \end{equation}"),
    ],
)
def test_formats(run, folder, output, expected):
    assert run(folder / "3.png", "--format", output).stdout.startswith(expected)


def test_several_formats(run, folder):
    assert run(folder / "3.png", "--format", "typst,unicode").stdout == "typst\tx^2 = y\nunicode\tx² = y\n"
    assert run(folder / "3.png", "--format", "word").exit_code == 2


def test_files(run, folder, tmp_path):
    result = run(folder / "0.png", folder / "3.png", "--format", "docx", "--out", tmp_path, "--no-names")
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"0.docx", "3.docx"}
    assert run(folder / "3.png", "--format", "docx,typst", "-o", tmp_path / "x.docx").stdout == "x^2 = y\n"
    assert (tmp_path / "x.docx").read_bytes() == (tmp_path / "3.docx").read_bytes()
    nowhere = run(folder / "3.png", "--format", "docx")
    assert nowhere.exit_code == 1
    assert "--out" in str(nowhere.exception)


def test_a_formula_that_a_format_cannot_say(run, folder, monkeypatch):
    from i2l.formulas import commands

    monkeypatch.delitem(commands.SHOWN, "+")
    result = run(folder / "0.png", folder / "1.png", "--format", "mathml", "--no-names")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("<math")
    assert result.stdout.splitlines()[1] == ""
    assert "MathML cannot say +" in result.stderr


def test_n_best(run, folder):
    lines = run(folder / "3.png", "--n-best", "3").stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].split("\t")[1] == "x^{2} = y"
    assert all(0 <= float(line.split("\t")[0]) <= 1 for line in lines)
    more = run(folder / "3.png", "--n-best", str(BEAM_WIDTH + 2))  # the beam is widened for them
    assert more.exit_code == 0
    assert more.stdout.splitlines()[0].split("\t")[1] == "x^{2} = y"


def test_nothing_to_read(run):
    assert "Nothing to read" in str(run().exception)


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Write a program that stands for the one that copies; a real one finds no screen."""
    monkeypatch.delenv("DISPLAY", raising=False)

    def write(name, script):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return write


def test_copy(run, folder, program, tmp_path):
    program("wl-copy", f"cat > {tmp_path}/copied")
    assert run(folder / "0.png", folder / "1.png", "--copy").exit_code == 0
    assert (tmp_path / "copied").read_text() == "a\nb + c"
    program("wl-copy", "echo no display >&2; exit 1")
    with pytest.raises(I2LError, match="no display"):
        clipboard.copy_text("a")


@pytest.mark.parametrize("kept", ["", ">/dev/null", "2>/dev/null"])
def test_a_copier_that_stays_to_serve_the_clipboard_keeps_nobody_waiting(program, tmp_path, kept):
    """As wl-copy and xclip do: a child keeps stdin, stdout and stderr open until the next copy."""
    program("wl-copy", f"cat > {tmp_path}/copied\nsleep 60 {kept} & echo $! > {tmp_path}/child")
    started = time.monotonic()
    try:
        clipboard.copy_text("a")
    finally:
        os.kill(int((tmp_path / "child").read_text()), signal.SIGTERM)
    assert time.monotonic() - started < 9
    assert (tmp_path / "copied").read_text() == "a"


def test_a_copier_that_hangs_is_an_error(program, monkeypatch):
    program("wl-copy", "exec sleep 60")
    monkeypatch.setattr(clipboard, "TIMEOUT_S", 0.5)
    with pytest.raises(I2LError, match="could not copy to the clipboard within"):
        clipboard.copy_text("a")


@pytest.fixture
def display(monkeypatch, tmp_path):
    """A screen that nobody sees."""
    if not (shutil.which("Xvfb") and shutil.which("xclip")):
        pytest.skip("needs Xvfb and xclip")
    number, there = os.pipe()
    server = subprocess.Popen(["Xvfb", "-displayfd", str(there), "-nolisten", "tcp"], pass_fds=[there])
    os.close(there)
    with os.fdopen(number) as file:
        monkeypatch.setenv("DISPLAY", f":{file.readline().strip()}")
    links = tmp_path / "links"
    links.mkdir()
    (links / "xclip").symlink_to(shutil.which("xclip"))
    monkeypatch.setenv("PATH", str(links))  # no wl-copy, which would come first
    yield
    server.terminate()
    server.wait()


def test_xclip_copies_and_lets_go(run, folder, display):
    result = run(folder / "3.png", "--copy")
    assert (result.exit_code, result.stdout) == (0, "x^{2} = y\n")
    paste = ["xclip", "-selection", "clipboard", "-o"]
    assert subprocess.run(paste, capture_output=True, check=True, timeout=30).stdout == b"x^{2} = y"


def test_no_clipboard_program(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="wl-clipboard"):
        clipboard.copy_text("a")


def test_clipboard(run, folder, monkeypatch):
    from PIL import ImageGrab

    monkeypatch.setattr(ImageGrab, "grabclipboard", lambda: Image.open(folder / "0.png"))
    assert run("--clipboard").stdout == "a\n"
    monkeypatch.setattr(ImageGrab, "grabclipboard", lambda: [str(folder / "1.png")])
    assert run("--clipboard").stdout == "b + c\n"
    monkeypatch.setattr(ImageGrab, "grabclipboard", lambda: None)
    assert "no image on the clipboard" in str(run("--clipboard").exception)


@pytest.mark.slow
def test_several_processes(folder, exported):
    files = [str(folder / f"{index % 4}.png") for index in range(40)]
    options = ["--model", str(exported["float32"]), "--scale", "1", "--jobs", "2"]
    result = CliRunner().invoke(app, ["read", "--no-names", *files, str(folder / "notes.txt"), *options])
    assert result.exit_code == 1
    assert result.stdout.splitlines() == ["a", "b + c", "a = b", "x^{2} = y"] * 10 + [""]


def test_a_doubtful_reading_is_printed_with_a_warning(run, folder, monkeypatch):
    assert run(folder / "3.png").stderr == ""
    monkeypatch.setattr("i2l.inference.reading.DOUBTFUL_CONFIDENCE", 1.1)
    result = run(folder / "0.png", folder / "3.png")
    assert result.exit_code == 0
    assert [line.partition(": ")[2] for line in result.stdout.splitlines()] == ["a", "x^{2} = y"]
    first, second = result.stderr.splitlines()
    assert "0.png: confidence" in first
    assert "3.png: confidence" in second


def test_json_has_one_form(run, folder):
    result = run(folder / "0.png", "--json", "--format", "tokens")
    assert isinstance(result.exception, I2LError)
    assert "leave out" in str(result.exception)


def test_a_region(run, folder, tmp_path):
    drawing = Image.open(folder / "3.png")
    page = Image.new("L", (drawing.width + 200, drawing.height + 150), 255)
    page.paste(drawing, (120, 90))
    page.paste(0, (0, 0, 60, 60))
    page.save(tmp_path / "page.png")
    region = f"120,90,{drawing.width},{drawing.height}"
    result = run(tmp_path / "page.png", "--region", region, "--json")
    reading = json.loads(result.stdout)
    assert reading["latex"] == "x^{2} = y"
    assert reading["size"] == [page.width, page.height]
    assert all(token["box"] is None or token["box"][0] >= 120 for token in reading["tokens"])
    assert "holds nothing" in run(tmp_path / "page.png", "--region", "0,999,5,5").stderr


@pytest.mark.parametrize("region", ["1,2,3", "a,b,c,d", "1 2 3 4", ""])
def test_a_region_is_four_numbers(run, folder, region):
    failure = run(folder / "0.png", "--region", region).exception
    assert isinstance(failure, I2LError)
    assert "X,Y,W,H" in str(failure)


def test_what_would_be_printed_goes_to_a_file_if_asked(run, folder, tmp_path):
    result = run(folder, "--json", "-o", tmp_path / "readings.jsonl")
    assert (result.exit_code, result.stdout) == (0, "")
    lines = (tmp_path / "readings.jsonl").read_text().splitlines()
    assert [Path(json.loads(line)["image"]).name for line in lines] == ["0.png", "1.png", "2.png", "3.png"]


@pytest.mark.parametrize("arguments", [["--format", "png"], []])
def test_a_picture_is_not_written_over(run, folder, arguments):
    before = (folder / "3.png").read_bytes()
    result = run(folder / "3.png", *arguments, "-o", folder / "3.png")
    assert isinstance(result.exception, I2LError)
    assert "written over" in str(result.exception)
    several = run(folder / "0.png", folder / "3.png", "--format", "png", "-o", folder)
    assert isinstance(several.exception, I2LError)
    assert (folder / "3.png").read_bytes() == before
