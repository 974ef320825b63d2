"""What is given to others: the same bytes whenever they are built, and whole."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import i2l

ROOT = Path(__file__).parents[1]
NOT_IN_THE_SDIST = {".gitignore"}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_one_version_everywhere():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == i2l.__version__
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)[1] == i2l.__version__
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1] == i2l.__version__


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist and the wheel, built twice: from here, and by somebody else from a clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder / "clone")], check=True)
    for source, out, umask, zone in (
        (ROOT, "here", 0o022, "UTC"),
        (folder / "clone", "there", 0o077, "Asia/Tokyo"),
    ):
        subprocess.run(
            [sys.executable, str(source / "recipes" / "dist.py"), str(folder / out)],
            check=True,
            capture_output=True,
            umask=umask,
            env={**os.environ, "TZ": zone},
        )
    return folder


@pytest.mark.slow
def test_built_twice_the_bytes_are_the_same(built):
    here, there = (sorted((built / name).iterdir()) for name in ("here", "there"))
    assert [path.name for path in here] == [
        f"i2l-{i2l.__version__}-py3-none-any.whl",
        f"i2l-{i2l.__version__}.tar.gz",
    ]
    for one, other in zip(here, there, strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_the_sdist_has_all_that_is_committed(built):
    with tarfile.open(next((built / "here").glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    committed = set(git("ls-tree", "-r", "--name-only", "HEAD").splitlines())
    weights = {name for name in committed if name.startswith("models/")}
    assert committed - weights - names == NOT_IN_THE_SDIST
    assert not {name for name in names if name == "models" or name.startswith("models/")}
    assert weights, "distributions of their own lie in models/"


@pytest.mark.slow
def test_the_wheel_has_the_package_and_no_other_weights(built):
    with zipfile.ZipFile(next((built / "here").glob("*.whl"))) as wheel:
        names = wheel.namelist()
    assert {name.partition("/")[0] for name in names} == {"i2l", f"i2l-{i2l.__version__}.dist-info"}
    assert {name.split("/")[2] for name in names if name.startswith("i2l/models/")} == {
        "pinpoint",
        "detector",
    }


@pytest.mark.slow
def test_the_wheel_reads_without_torch(built, tmp_path):
    with zipfile.ZipFile(next((built / "here").glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    code = "import sys; sys.modules['torch'] = None; from i2l.cli import main; main()"
    images = sorted(str(path) for path in (ROOT / "examples").glob("*.png"))
    done = subprocess.run(
        [sys.executable, "-c", code, "read", "--json", *images],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == len(images)
    assert "error" not in done.stdout
