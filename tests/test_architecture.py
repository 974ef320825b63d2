"""The house rules as tests: folders import only from folders before them, and reading needs no torch."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "i2l"
FLOW = [
    "formulas",
    "formats",
    "extraction",
    "rendering",
    "images",
    "ink",
    "dataset",
    "model",
    "training",
    "inference",
    "pages",
    "evaluation",
    "explain",
    "web",
    "desktop",
]
OPEN_TO_ALL = {"errors", "config", "files", "html", ""}
MAX_MODULE_LINES = 750
MAX_MODULES = 139  # packages' own __init__.py aside: fewer, larger rooms

MODULES = sorted(SOURCE.rglob("*.py"))


def imported_parts(path):
    """The i2l folders and top-level modules that a source file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write imports in full"
            names = [node.module or ""]
            if node.module == "i2l":
                names = [f"i2l.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name == "i2l" or name.startswith("i2l."):
                yield [*name.split("."), ""][1]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_module_keeps_the_house_rules(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text)), "every file opens by saying its job"
    assert len(text.splitlines()) <= MAX_MODULE_LINES
    folder = path.relative_to(SOURCE).parts[0]
    if folder in FLOW:
        allowed = OPEN_TO_ALL | set(FLOW[: FLOW.index(folder) + 1])
        for part in imported_parts(path):
            assert part in allowed or part.startswith("__"), f"{folder} may not import i2l.{part}"


def test_there_are_not_too_many_modules():
    assert len([path for path in MODULES if path.name != "__init__.py"]) <= MAX_MODULES


def test_pictures_are_read_without_what_draws_them():
    for path in (SOURCE / "images").glob("*.py"):
        assert "rendering" not in set(imported_parts(path)), path


def loaded_modules(statement):
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
    )


@pytest.mark.parametrize("statement", ["import i2l", "import i2l.cli"])
def test_light_imports_load_nothing_heavy(statement):
    assert not loaded_modules(statement) & {"torch", "numpy", "pyarrow", "onnxruntime", "ray", "PIL"}


def test_calibrating_loads_no_torch():
    needed = "import i2l.explain.model_fit; from i2l.inference.model_folder import update_model_card"
    assert "torch" not in loaded_modules(needed)


def test_import_is_quick():
    code = "import time; start = time.perf_counter(); import i2l; print(time.perf_counter() - start)"
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)
        for _ in range(5)
    ]
    assert min(seconds) < 0.3


def test_every_command_shows_an_example():
    from i2l.cli import app

    for command in app.registered_commands:
        assert "xample" in (command.callback.__doc__ or ""), f"i2l {command.callback.__name__} --help"


def test_the_map_is_up_to_date():
    from benchmarks.map import MAP, write_map

    assert MAP.read_text(encoding="utf-8") == write_map(), "run `make map`"


@pytest.mark.slow
def test_the_site_builds_without_network(tmp_path):
    """Strict: a page outside of the navigation, a broken link or anchor, or a bad docstring is an error."""
    root = SOURCE.parents[1]
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",  # with --quiet beside it warnings are not counted
        "--site-dir",
        tmp_path / "site",
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "https_proxy": "http://127.0.0.1:9"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "site").glob("*.html")}
    assert {f"{page.stem}.html" for page in (root / "docs").glob("*.md")} <= set(pages)
    for name, text in pages.items():
        fetched = re.findall(r'<(?:script|img|iframe)[^>]* src="?(https?:[^" >]*)', text)
        fetched += re.findall(r'<link[^>]* href="?(https?:[^" >]*)', text)
        assert not fetched, name
    reference = pages["reference.html"]
    for public in ("Reader", "Reading", "Alternative", "I2LError", "NotAFormulaError", "DatasetReader"):
        assert re.search(rf'id="[a-z2.]*\.?\w*\.{public}"', reference), public


def test_every_verdict_stands_on_the_page_about_building():
    from i2l.dataset.verdicts import VERDICT_KINDS

    page = (SOURCE.parents[1] / "docs" / "building.md").read_text(encoding="utf-8")
    assert [kind.name for kind in VERDICT_KINDS if f"`{kind.name}`" not in page] == []
