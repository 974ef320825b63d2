"""Which tests execute which lines of the package: recorded once, kept in a file, for `benchmarks.faults`.

    python -m benchmarks.executed tests/formulas tests/images -m 'not slow'

The tests run under coverage.py, which notes the lines of each test by itself. Lines that a fixture shared by
many tests executes are counted for all of them, and so are those of the Python processes that a test starts.
A later recording replaces what is known of its own tests only; lines of a file changed since are found again
by their text.
"""

import argparse
import ast
import difflib
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "build" / "executed.json.gz"
CONTEXT = "EXECUTED_BY"  # of the environment: the test or fixture that started a process
FOLDER = "EXECUTED_FOLDER"  # of the environment: where the recording goes
CONFIG = """
[run]
data_file = {folder}/lines
parallel = true
include = {root}/src/i2l/*
context = ${{EXECUTED_BY-}}
concurrency = thread,multiprocessing
disable_warnings = no-data-collected, module-not-imported, module-not-measured, already-imported,
    trace-changed, no-ctracer, dynamic-conflict, couldnt-parse
"""
Lines = dict[str, set[int]]  # of each file, by its path in the repository


@dataclass
class Test:
    """One test as it was recorded."""

    seconds: float
    passed: bool
    lines: Lines = field(default_factory=dict)


class Recorder:
    """The plugin of pytest that tells coverage.py which test or shared fixture is at work."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.folder = folder
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: set[str] = set()
        self.fixtures: dict[str, list[str]] = {}
        self.measured = coverage.Coverage(config_file=str(folder / "coverage.ini"))
        self.measured.start()

    def _enter(self, context: str) -> str:
        before = os.environ.get(CONTEXT, "")
        os.environ[CONTEXT] = context
        self.measured.switch_context(context)
        return before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Count what is executed now for this test, and know the shared fixtures that it asks for."""
        if isinstance(item, pytest.Function):
            definitions = item._fixtureinfo.name2fixturedefs.values()
            self.fixtures[item.nodeid] = [_name(each) for several in definitions for each in several]
        before = self._enter(item.nodeid)
        try:
            return (yield)
        finally:
            self._enter(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: "pytest.FixtureDef[object]") -> Iterator[None]:
        """Count what a fixture for many tests executes for the fixture."""
        if fixturedef.scope == "function":
            return (yield)
        before = self._enter(_name(fixturedef))
        try:
            return (yield)
        finally:
            self._enter(before)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how long a test took and whether it passed; one that was left out did not."""
        self.seconds[report.nodeid] += report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Leave behind all that coverage.py does not keep."""
        self.measured.stop()
        self.measured.save()
        kept = {"seconds": self.seconds, "failed": sorted(self.failed), "fixtures": self.fixtures}
        (self.folder / "tests.json").write_text(json.dumps(kept))


def _name(fixture: "pytest.FixtureDef[object]") -> str:
    return f"fixture {fixture.baseid} {fixture.argname}"


def pytest_configure(config: pytest.Config) -> None:
    """Take part where a recording was asked for, as `-p benchmarks.executed`."""
    if FOLDER in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ[FOLDER])))


def record(arguments: list[str]) -> dict[str, Test]:
    """Run pytest with these arguments and give what each test executed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = folder / "coverage.ini"
        config.write_text(CONFIG.format(folder=folder, root=ROOT))
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        environment = os.environ | {
            **{FOLDER: temporary, CONTEXT: "", "PYTHONPATH": path, "COVERAGE_PROCESS_START": str(config)},
            "COVERAGE_CORE": "ctrace",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.executed", *arguments]
        subprocess.run(command, cwd=ROOT, env=environment, check=False)
        return _gather(folder)


def _gather(folder: Path) -> dict[str, Test]:
    import coverage

    kept = json.loads((folder / "tests.json").read_text())
    executed: dict[str, Lines] = defaultdict(lambda: defaultdict(set))
    for part in folder.glob("lines.*"):
        data = coverage.CoverageData(basename=str(part))
        data.read()
        for name in data.measured_files():
            path = str(Path(name).relative_to(ROOT))
            for line, contexts in data.contexts_by_lineno(name).items():
                for context in contexts:
                    executed[context][path].add(line)
    tests = {}
    for name, seconds in kept["seconds"].items():
        lines: Lines = defaultdict(set)
        for context in (name, *kept["fixtures"].get(name, ())):
            for path, those in executed.get(context, {}).items():
                lines[path] |= those
        tests[name] = Test(seconds, name not in kept["failed"], dict(lines))
    return tests


class Executed:
    """What is known: the tests, and the sources that their lines are counted in."""

    def __init__(self, path: Path = MAP) -> None:
        self.path = path
        self.tests: dict[str, Test] = {}
        self.sources = {
            str(file.relative_to(ROOT)): file.read_text()
            for file in sorted((ROOT / "src" / "i2l").rglob("*.py"))
        }
        if path.exists():
            self._load(json.loads(gzip.decompress(path.read_bytes())))

    def _load(self, stored: dict[str, dict[str, object]]) -> None:
        moved = {
            path: _moved(str(old), self.sources.get(path, "")) for path, old in stored["sources"].items()
        }
        for name, test in stored["tests"].items():
            assert isinstance(test, dict)
            lines = {
                path: {moved[path][line] for line in lines if line in moved[path]}
                for path, lines in test["lines"].items()
                if path in moved
            }
            self.tests[name] = Test(test["seconds"], test["passed"], lines)

    def save(self) -> None:
        """Write everything to the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        stored = {
            "sources": self.sources,
            "tests": {name: asdict(test) for name, test in self.tests.items()},
        }
        text = json.dumps(stored, default=sorted)  # sets as lists
        self.path.write_bytes(gzip.compress(text.encode(), 3))

    def of_lines(self, path: str, lines: set[int]) -> list[str]:
        """Give the tests that execute one of some lines, fastest first."""
        found = [
            name for name, test in self.tests.items() if test.passed and lines & test.lines.get(path, set())
        ]
        return sorted(found, key=lambda name: self.tests[name].seconds)

    def of_files(self, files: Collection[str]) -> list[str]:
        """Give the tests of some files, fastest first."""
        found = [name for name, test in self.tests.items() if test.passed and name.split("::")[0] in files]
        return sorted(found, key=lambda name: self.tests[name].seconds)

    def of_word(self, word: str) -> list[str]:
        """Give the tests that execute a line within a function that has some word, fastest first."""
        found: set[str] = set()
        has_word = re.compile(rf"\b{re.escape(word)}\b")
        for path, source in self.sources.items():
            if has_word.search(source):
                numbered = enumerate(source.splitlines(), 1)
                lines = {number for number, line in numbered if has_word.search(line)}
                found.update(self.of_lines(path, lines & lines_of_functions(source)))
        return sorted(found, key=lambda name: self.tests[name].seconds)


def _moved(old: str, new: str) -> dict[int, int]:
    """Tell where the lines of a file are in a later version of it."""
    if old == new:
        return {line: line for line in range(1, len(old.splitlines()) + 1)}
    blocks = difflib.SequenceMatcher(
        None, old.splitlines(), new.splitlines(), autojunk=False
    ).get_matching_blocks()
    return {block.a + offset + 1: block.b + offset + 1 for block in blocks for offset in range(block.size)}


def lines_of_functions(source: str) -> set[int]:
    """Give the lines that run when a function is called, not when the module is loaded."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines |= set(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return lines


def main() -> None:
    """Record the tests that are named, as pytest takes them, and add them to what is known."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--map", type=Path, default=MAP)
    options, arguments = parser.parse_known_args()
    # A shell's background ignores interrupts, and so would all that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fresh = record(arguments)
    known = Executed(options.map)
    known.tests |= fresh
    known.save()
    failed = [name for name, test in fresh.items() if not test.passed]
    print(f"{len(fresh)} tests recorded, {len(known.tests)} known; failed or left out: {len(failed)}")


if __name__ == "__main__":
    main()
