"""Whatever a formula tries: it gets a verdict, its neighbours their picture, and the canary stays unread."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from i2l.cli import app
from i2l.rendering import tex
from i2l.rendering.render import render_formulas
from i2l.rendering.sandbox import run_tex, try_pdfs
from i2l.rendering.tex import compile_formulas
from tests.rendering.attacks import SECRET, all_attacks, attempt, tells_secret
from tests.rendering.forged import nested_forms

pytestmark = pytest.mark.tex

REASONS = {None, "tex-error", "timeout", "too-large", "empty"}
NOBODY = 65534
HEAVY = "site-packages", "test", "idlelib", "tkinter", "lib2to3", "ensurepip", "config-*", "models", "web"


@pytest.fixture
def outside():
    """A folder that everybody may read, with the canary."""
    with tempfile.TemporaryDirectory(prefix="i2l-outside-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "secret.tex").write_text(f"{SECRET}\n")
        yield folder
        assert os.listdir(folder) == ["secret.tex"]
        assert (folder / "secret.tex").read_text() == f"{SECRET}\n"


def check(told, attacks):
    assert told["leaks"] == []
    assert told["disturbed"] == []
    assert len(told["verdicts"]) == len(attacks)
    for attack, (reason, message, drawn) in zip(attacks, told["verdicts"], strict=True):
        assert reason in REASONS, attack
        assert drawn == (reason is None), attack
        assert not tells_secret(message.encode()), attack


def test_the_canary_would_be_noticed():
    """Or no test here could fail: drawn digits stand in the page as they are."""
    assert tells_secret(compile_formulas([rf"\def\x{{{SECRET}}}\hbox{{\x}}"]).pdf)
    assert not tells_secret(compile_formulas(["x"]).pdf)


def test_the_worst_of_each_kind(outside):
    formulas = [
        rf"\openin5=$SELFAUTOPARENT{outside}/secret.tex \read5 to\x\hbox{{\x}}",
        r"\^^67def\alpha{HACKED}x",
        r"\immediate\write16{i2l:end 1 0v-1}\immediate\write16{i2l:begin 9}x",
        r"\pdffiledump offset 0 length 99{formulas.tex}",
        r"\loop\iftrue\repeat",
    ]
    told = attempt(formulas)
    check(told, formulas)
    reasons = [reason for reason, _, _ in told["verdicts"]]
    assert reasons == ["tex-error", None, None, "tex-error", "timeout"]
    assert told["verdicts"][3][1] == r"Undefined control sequence \pdffiledump"


def test_a_wild_formula_is_drawn_like_a_tame_one():
    wild, plain = render_formulas([r"\def\y{x^2}\y+1", "x^2+1"])
    assert np.array_equal(wild.pixels, plain.pixels)


def test_too_many_columns_cost_nothing():
    (result,) = render_formulas([r"\begin{array}{*{+77777}{c}}x\end{array}"], timeout_s=20)
    assert (result.reason, result.message) == ("tex-error", "Too many columns.")


def test_a_forged_page_holds_nobody():
    start = time.monotonic()
    sound = nested_forms(0)
    pdfs = [sound, nested_forms(12), sound, b"junk", sound]
    assert try_pdfs(pdfs, cpu_s=1) == [None, "timeout", None, None, None]
    assert time.monotonic() - start < 120
    assert try_pdfs([], cpu_s=1) == []


def test_a_formula_with_a_forged_page_gets_a_verdict(monkeypatch):
    def run(source, **options):
        result = run_tex(source, **options)
        return result if options["trusted"] else replace(result, pdf=nested_forms(12))

    monkeypatch.setattr(tex, "run_tex", run)
    batch = compile_formulas(["x", r"\def\y{y}\y", "z"], timeout_s=1)
    assert [(verdict.page, verdict.reason) for verdict in batch.formulas] == [
        (0, None),
        (None, "timeout"),
        (1, None),
    ]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_attack_fails(outside):
    attacks = all_attacks(outside)
    assert len(set(attacks)) >= 200
    check(attempt(attacks), attacks)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_every_attack_fails_for_an_ordinary_user_too(outside):
    with tempfile.TemporaryDirectory(prefix="i2l-nobody-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        python = python_for_everybody(folder)
        command = [python, folder / "attacks.py", outside]
        environment = {"PYTHONPATH": name, "PATH": os.environ["PATH"], "I2L_SECRET": SECRET, "HOME": name}
        done = subprocess.run(
            command,
            env=environment,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()[-2000:]
        told = json.loads(done.stdout)
    assert told["user"] == NOBODY
    check(told, all_attacks(outside))


def python_for_everybody(folder):
    """Copy what rendering needs to a folder that an ordinary user can enter; give a Python for him."""
    for name in ("i2l", "numpy", "PIL", "pypdfium2", "pypdfium2_raw", "pypdfium2_cfg"):
        place = Path(importlib.util.find_spec(name).origin).parent
        shutil.copytree(place, folder / name, ignore=shutil.ignore_patterns(*HEAVY, "tests"))
    for libraries in ("numpy.libs", "pillow.libs"):
        if (place := Path(np.__file__).parent.parent / libraries).exists():
            shutil.copytree(place, folder / libraries)
    shutil.copy(Path(__file__).with_name("attacks.py"), folder)
    python = os.path.realpath(sys.executable)
    try:
        subprocess.run([python, "-c", ""], user=NOBODY, group=NOBODY, extra_groups=[], check=True)
    except PermissionError:
        stdlib = Path(sysconfig.get_path("stdlib"))
        shutil.copytree(stdlib, folder / "lib" / stdlib.name, ignore=shutil.ignore_patterns(*HEAVY))
        (folder / "bin").mkdir()
        python = shutil.copy(python, folder / "bin")
    return python


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_attacks_in_a_file_end_neither_render_nor_build(outside, tmp_path, monkeypatch):
    """By the commands: one picture or one verdict a line, and no file that was written holds the canary.

    They draw as the tests above do, so a third of the attacks is enough.
    """
    attacks = [attack for attack in all_attacks(outside) if "\n" not in attack and len(attack) < 1000][::3]
    lines = tmp_path / "formulas.txt"
    good = [rf"x_{{{number}}} + \alpha" for number in range(30)]
    lines.write_text("\n".join([*good, *attacks]), errors="replace")
    leaks = []

    def watched(source, **options):
        result = run_tex(source, **options)
        leaks.extend([source] * tells_secret(result.said.encode() + result.pdf))
        return result

    monkeypatch.setattr(tex, "run_tex", watched)
    build = ["build", str(lines), "--out", str(tmp_path / "data"), "--min-token-count", "1"]
    result = CliRunner().invoke(app, [*build, "--jobs", "1", "--quiet"])
    assert result.exit_code == 0, result.output
    few = tmp_path / "few.txt"
    few.write_text("\n".join([*good[:2], *attacks[:20:2], *good[2:4]]))
    CliRunner().invoke(app, ["render", "--formulas", str(few), "--out", str(tmp_path / "pictures")])
    assert len(list((tmp_path / "pictures").iterdir())) >= 4
    assert leaks == []
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != lines]
    assert not [path for path in written if tells_secret(path.read_bytes())]


@pytest.mark.parametrize(("lines", "killed"), [(900, False), (1_150, True)])
def test_a_file_may_grow_to_its_limit_and_no_further(lines, killed):
    line = "x" * 1_023
    source = (
        r"\documentclass{article}\begin{document}\newwrite\w\immediate\openout\w=a.txt \newcount\n\n="
        rf"{lines} \loop\ifnum\n>0 \immediate\write\w{{{line}}}\advance\n-1 \repeat x\end{{document}}"
    )
    done = run_tex(source, trusted=True, max_file_bytes=1 << 20)
    assert done.killed == killed
    assert bool(done.pdf) != killed
