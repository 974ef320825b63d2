"""Do the tests bite? Put small faults into a copy of the code, one at a time, and see which no test notices.

    for part in tests/*/; do python -m benchmarks.executed $part; done
    python -m benchmarks.faults --seed 1 --count 100
    python -m benchmarks.faults --seed 1 --count 20 --only formulas

A fault is one place of the syntax tree changed: `<` for `<=`, `+` for `-`, `and` for `or`, `min` for `max`, a
number half as large again, `True` for `False`, a `not`, an error or a plain call left out. As many places are
drawn in each folder. For each the tests run that execute its line, as `benchmarks.executed` has recorded it,
the fastest first, until one fails, fails again, and passes without the fault. A constant of a module or a
default value is executed by no test: there it is the tests that execute a line with its name, or whose file
has it. Where there are none at all, it is the tests that execute or name the module, as far as the time for a
fault goes. Left alone are Triton's kernels, which need a GPU, and texts of messages. Some faults change
nothing that a person could see (how often progress is shown, a few seconds more of patience): read the list
of what survives before you count.
"""

import argparse
import ast
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.executed import MAP, ROOT, Executed, lines_of_functions

FOLDERS = (
    *("formulas", "formats", "extraction", "rendering", "images", "ink", "dataset", "model", "training"),
    *("inference", "evaluation", "explain", "pages", "web", "desktop", "cli"),
)
# Loaded once for all runs, as far as it is there.
PRELOAD = [
    *("torch", "numpy", "PIL.Image", "PIL.ImageFont", "onnxruntime", "pyarrow.parquet", "typer.testing"),
    *("hypothesis.extra.numpy", "scipy.optimize", "scipy.ndimage", "rapidfuzz", "sacrebleu", "jinja2"),
    *("fastapi", "httpx2", "uvicorn", "playwright.sync_api", "pypdfium2", "onnx", "filelock", "pytest"),
]
LATER = ("evaluation", "explain", "pages", "web", "desktop", "cli")  # have no part in making a model
NOTHING_FAILED = (0, 5)  # of pytest: all passed, no tests
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: (" in ", " not in "),
    ast.Is: (" is ", " is not "),
    ast.IsNot: (" is not ", " is "),
}
SUMS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.FloorDiv: ("//", "*"),
}


@dataclass(frozen=True)
class Fault:
    """One change of one file."""

    path: Path  # in the package's folder
    line: int
    start: int  # in the bytes of the file
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Give the source with the fault in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


class Finder(ast.NodeVisitor):
    """Finds all places of a file where a fault can be put."""

    def __init__(self, path: Path, source: bytes) -> None:
        self.path, self.source = path, source
        self.faults: list[Fault] = []
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def _at(self, line: int | None, column: int | None) -> int:
        assert line is not None
        assert column is not None
        return self._starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, node: ast.expr | ast.stmt, start: int, end: int, text: str) -> None:
        self.faults.append(Fault(self.path, node.lineno, start, end, text))

    def _between(self, node: ast.expr, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Exchange the sign between two operands, where it stands on one line with nothing but spaces."""
        start, end = self._span(left)[1], self._span(right)[0]
        gap = self.source[start:end].decode()
        if gap.strip(" ()") == old.strip():
            self._add(node, start, end, gap.replace(old, new))

    def visit_Compare(self, node: ast.Compare) -> None:
        """Another comparison."""
        if len(node.ops) == 1 and (signs := COMPARISONS.get(type(node.ops[0]))):
            self._between(node, node.left, node.comparators[0], *signs)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another sign."""
        if not _is_text(node) and (signs := SUMS.get(type(node.op))):
            self._between(node, node.left, node.right, *signs)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` for `or`."""
        old, new = (" and ", " or ") if isinstance(node.op, ast.And) else (" or ", " and ")
        self._between(node, node.values[0], node.values[1], old, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """No `not`."""
        if isinstance(node.op, ast.Not):
            self._add(node, self._span(node)[0], self._span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Another number."""
        start, end = self._span(node)
        if isinstance(node.value, bool):
            self._add(node, start, end, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, start, end, str(node.value + max(1, node.value // 2)))
        elif isinstance(node.value, float):
            self._add(node, start, end, repr(node.value * 1.5 if node.value else 1.0))

    def visit_Call(self, node: ast.Call) -> None:
        """`min` for `max`."""
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            self._add(node, *self._span(node.func), "max" if node.func.id == "min" else "min")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call whose result nobody takes, left out; strings that stand alone are documentation."""
        if isinstance(node.value, ast.Call):
            self._add(node, *self._span(node), "pass")
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """How a dataclass is stored cannot be seen."""
        if node.arg not in ("slots", "frozen"):
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """An error that is not raised; what it says is left alone."""
        self._add(node, *self._span(node), "pass")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Values, not types."""
        if node.value is not None:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """An argument's type is left alone."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text is left alone."""


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def find_faults(copy: Path, folder: str) -> list[Fault]:
    """Give all faults that can be put into the modules of a folder."""
    faults = []
    for path in sorted((copy / "src" / "i2l" / folder).rglob("*.py")):
        if "triton" not in path.name:
            source = path.read_bytes()
            finder = Finder(path.relative_to(copy), source)
            finder.visit(ast.parse(source))
            faults += finder.faults
    return faults


def statement_of(fault: Fault, source: str) -> tuple[set[int], list[str]]:
    """Give the lines of the statement that has a fault, and the names that it defines.

    Of a statement with a body it is the part before the body.
    """
    lines: set[int] = {fault.line}
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):  # from the outside inwards, so the innermost comes last
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            body = getattr(node, "body", None)
            if body:
                last = max(node.lineno, body[0].lineno - 1)
            if node.lineno <= fault.line <= last:
                lines, names = set(range(node.lineno, last + 1)), _defined(node)
    return lines, names


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
    return []


def tests_of(fault: Fault, copy: Path, known: Executed) -> list[str]:
    """Give the tests that may notice a fault, those of files that name its module first, then the fastest."""
    path, source = str(fault.path), known.sources[str(fault.path)]
    _, _, folder, *rest = fault.path.with_suffix("").parts  # src, i2l, and the folder
    texts = {str(file.relative_to(copy)): file.read_text() for file in (copy / "tests").rglob("test_*.py")}
    naming = {
        name
        for name, text in texts.items()
        if f"{folder}.{'.'.join(rest)}" in text or f"test_{rest[-1]}" in Path(name).name
    }
    lines, names = statement_of(fault, source)
    if lines & lines_of_functions(source):
        tests = known.of_lines(path, lines)
    else:  # runs when the module is loaded
        tests = list(dict.fromkeys(test for name in names for test in known.of_word(name)))
        using = {file for file in naming if any(re.search(rf"\b{name}\b", texts[file]) for name in names)}
        tests = [*known.of_files(using), *tests]
    if not tests:
        tests = [*known.of_lines(path, lines_of_functions(source)), *known.of_files(naming)]
    return sorted(dict.fromkeys(tests), key=lambda name: name.split("::")[0] not in naming)


def batches_of(fault: Fault, copy: Path, known: Executed, limit_s: float) -> Iterator[list[str]]:
    """Give the tests to run for a fault in some portions, small ones first, of limited time in all."""
    left, tests = limit_s, []
    for name in tests_of(fault, copy, known):
        if known.tests[name].seconds <= left or not tests:
            left -= known.tests[name].seconds
            tests.append(name)
    for batch in (tests[:12], tests[12:100], tests[100:]):
        if batch:
            yield batch


class Chosen:
    """The plugin of pytest that runs the chosen tests and no others, in their order."""

    def __init__(self, tests: dict[str, float]) -> None:
        self.tests = tests  # with their seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what was chosen, with a limit of time by which a fault that never ends is noticed."""
        place = {name: number for number, name in enumerate(self.tests)}
        items[:] = [item for item in items if item.nodeid in place]
        items.sort(key=lambda item: place[item.nodeid])
        for item in items:
            limit_s = max(60.0, 10 * self.tests[item.nodeid])
            item.add_marker(pytest.mark.timeout(limit_s), append=False)


def run_tests(copy: Path, chosen: Chosen, log: Path, shared: Path) -> None:
    """Run tests in the copy, in a process that has loaded all but our own modules; exits as pytest does."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(copy)
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    sys.dont_write_bytecode = False  # the next fault is in one other file
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    path = [str(copy), str(copy / "src")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(path), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # seconds each
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() not in (ROOT, ROOT / "src")]
    sys.path[:0] = path
    # Models that tests share are made once for all processes of a run, and this is one of them.
    os.environ["PYTEST_XDIST_WORKER"] = "one of several"
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "pytest_timeout", "--rootdir", str(copy)]
    options += ["--basetemp", str(shared / "own"), "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    files = dict.fromkeys(name.split("::")[0] for name in chosen.tests)
    os._exit(pytest.main([*options, *files], plugins=[chosen]))


def first_failure(copy: Path, tests: list[str], known: Executed, *, shared: Path) -> str:
    """Run tests in the copy until one fails, and give its name, or nothing.

    Args:
        copy: of the repository.
        tests: their names.
        known: how long each takes.
        shared: the folder for what one run leaves to the next.
    """
    log = copy / "log.txt"
    shared.mkdir(exist_ok=True)
    chosen = Chosen({name: known.tests[name].seconds for name in tests})
    process = multiprocessing.get_context("forkserver").Process(
        target=run_tests, args=(copy, chosen, log, shared)
    )
    process.start()
    process.join(120 + 10 * sum(chosen.tests.values()))
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    if process.exitcode in NOTHING_FAILED:
        return ""
    said = log.read_text(errors="replace")
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed and process.exitcode != -signal.SIGKILL:
        return f"pytest, which failed itself: {said[-300:]!r}"
    return failed[0].split(" - ")[0].split(" ", 1)[1] if failed else "tests that do not end"


@contextmanager
def put_in(fault: Fault, copy: Path) -> Iterator[None]:
    """Have a fault in the copy for a while."""
    target = copy / fault.path
    source, stat = target.read_bytes(), target.stat()
    target.write_bytes(fault.apply(source))
    # Compiled files are known by size and second: this one must not pass for that of another fault.
    os.utime(target, (stat.st_atime, stat.st_mtime - fault.start - 1))
    try:
        yield
    finally:
        target.write_bytes(source)
        os.utime(target, (stat.st_atime, stat.st_mtime))


def judge(fault: Fault, copy: Path, known: Executed, *, limit_s: float) -> str:
    """Run the tests with a fault and give the one that noticed it, or nothing.

    A test that fails only now and then has not noticed: it must fail twice, and pass without the fault.
    """
    faulty, sound = copy.parent / "faulty", copy.parent / "sound"
    shutil.rmtree(faulty, ignore_errors=True)
    if fault.path.parts[2] in LATER:
        faulty = sound
    for tests in batches_of(fault, copy, known, limit_s):
        left = list(tests)
        while left:
            with put_in(fault, copy):
                noticed = first_failure(copy, left, known, shared=faulty)
                if noticed not in left:  # nothing, or that a module cannot be loaded or that tests do not end
                    break
                twice = first_failure(copy, [noticed], known, shared=faulty)
            if twice and not first_failure(copy, [noticed], known, shared=sound):
                break
            del left[: left.index(noticed) + 1]
            noticed = ""
        if noticed:
            return noticed
    return ""


def draw(copy: Path, folders: list[str], count: int, seed: int) -> Iterator[Fault]:
    """Draw as many faults from each folder, other ones for another seed."""
    for folder in folders:
        faults = find_faults(copy, folder)
        yield from random.Random(f"{seed} {folder}").sample(faults, min(count // len(folders), len(faults)))


def main() -> None:
    """Put the faults in, one at a time, and print what became of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=list(FOLDERS), choices=FOLDERS)
    parser.add_argument("--map", type=Path, default=MAP, help="what benchmarks.executed has recorded")
    parser.add_argument("--limit-s", type=float, default=90, help="for the tests of one fault")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in the tests, which come too late for what is loaded
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOAD)
    known = Executed(options.map)
    if not known.tests:
        parser.error(f"no tests are known in {options.map}: run benchmarks.executed first")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*cache")
        )
        for fault in draw(copy, options.only, options.count, options.seed):
            started = time.perf_counter()
            noticed = judge(fault, copy, known, limit_s=options.limit_s)
            outcomes["noticed" if noticed else "survived"] += 1
            old = (copy / fault.path).read_bytes()[fault.start : fault.end].decode()
            verdict = f"noticed by {noticed}" if noticed else "SURVIVED"
            print(
                f"{fault.path}:{fault.line}: {old.strip()!r} -> {fault.text.strip()!r}: {verdict}"
                f" ({time.perf_counter() - started:.0f} s)",
                flush=True,
            )
    print(f"{outcomes['survived']} of {outcomes.total()} faults were noticed by no test")


if __name__ == "__main__":
    main()
