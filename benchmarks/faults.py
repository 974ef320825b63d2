"""Do the tests bite? Put small faults into a copy of the code, one at a time, and see which no test notices.

    python -m benchmarks.faults --seed 1 --count 100
    python -m benchmarks.faults --seed 1 --count 20 --only formulas -m ''

A fault is one place of the syntax tree changed: `<` for `<=`, `+` for `-`, `and` for `or`, `min` for `max`, a
number half as large again, `True` for `False`, a `not`, an error or a plain call left out. As many places are
drawn in each folder, and for each the tests of its folder run until one fails, those that name its module
first. Left alone are Triton's kernels, which need a GPU, and texts of messages. Some faults change nothing
that a person could see (how often progress is shown, a few seconds more of patience): read the list of what
survives before you count.
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
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (
    *("formulas", "formats", "extraction", "rendering", "images", "dataset", "model", "training"),
    *("inference", "evaluation", "explain", "web", "desktop", "cli"),
)
# Loaded once for all runs; not hypothesis, whose assertions pytest wants to see loaded by itself.
PRELOAD = ["torch", "numpy", "PIL.Image", "onnxruntime", "pyarrow.parquet", "rich", "typer"]
TAKES_LONG = re.compile(
    r"hypothesis|mark\.tex|subprocess|checkpoint|start_server|browser"
)  # seconds, not less
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


def tests_of(fault: Fault, copy: Path, *, quick: bool) -> list[str]:
    """Give the test files that name a fault's module or are of its folder, quick ones first."""
    _, _, folder, *rest = fault.path.with_suffix("").parts  # src, i2l, and the folder
    name = ".".join(rest)
    texts = {path: path.read_text() for path in sorted((copy / "tests").rglob("test_*.py"))}
    takes_long = {path for path, text in texts.items() if TAKES_LONG.search(text)}
    named = [path for path in texts if f"{folder}.{name}" in texts[path] or f"test_{rest[-1]}" in path.name]
    own = [path for path in texts if path.parent.name == folder]
    chosen = sorted(dict.fromkeys([*named, *own]), key=lambda path: path in takes_long)
    return [str(path.relative_to(copy)) for path in chosen if not (quick and path in takes_long)]


def run_tests(copy: Path, tests: list[str], marked: str, log: Path) -> None:
    """Run tests in the copy, in a process that has loaded all but our own modules; exits as pytest does."""
    import pytest

    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(copy)
    os.setpgid(0, 0)
    os.environ |= {
        "PYTHONPATH": str(copy / "src"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # they take seconds
    sys.path[:0] = [str(copy), str(copy / "src")]
    sys.path = [entry for entry in sys.path if entry != str(ROOT)]
    chosen = ["-m", marked] if marked else []
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "pytest_timeout", "--timeout", "600"]
    os._exit(pytest.main([*options, *chosen, *tests]))


def judge(fault: Fault, copy: Path, *, marked: str, quick: bool, limit_s: float) -> str:
    """Put a fault in, run the tests, take it out; give the test that noticed it, or nothing."""
    tests = tests_of(fault, copy, quick=quick)
    if not tests:  # pytest would run all there are
        return ""
    target, log = copy / fault.path, copy / "log.txt"
    source = target.read_bytes()
    target.write_bytes(fault.apply(source))
    process = multiprocessing.get_context("forkserver").Process(
        target=run_tests, args=(copy, tests, marked, log)
    )
    process.start()
    process.join(limit_s)
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
    target.write_bytes(source)
    if process.exitcode in NOTHING_FAILED:
        return ""
    said = log.read_text(errors="replace")
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if not failed and process.exitcode != -signal.SIGKILL:
        raise RuntimeError(f"pytest itself failed: {said[-2000:]}")
    return failed[0] if failed else "tests that do not end"


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
    parser.add_argument("-m", default="not slow", help="which tests, as pytest takes it; '' for all")
    parser.add_argument("--quick", action="store_true", help="only test files that take no seconds")
    parser.add_argument("--limit-s", type=float, default=900, help="for the tests of one fault")
    options = parser.parse_args()
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOAD)
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "copy"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "runs", "__pycache__", ".*cache")
        )
        for fault in draw(copy, options.only, options.count, options.seed):
            started = time.perf_counter()
            noticed = ""
            for quick in (True,) if options.quick else (True, False):
                noticed = noticed or judge(
                    fault, copy, marked=options.m, quick=quick, limit_s=options.limit_s
                )
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
