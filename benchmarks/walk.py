"""The walk of one image through `i2l read`: which modules a person has to open who follows it.

    python -m benchmarks.walk [IMAGE]

The command is run on one image, and every call of a function in the package is written down, in order. Left
out is what is no step of the walk: calls while modules are imported, constructors that `dataclass` generates,
and lambdas and comprehensions, which stand in sight in the function that one is reading. A generator counts
when it is begun, not each time it goes on. What is counted of the rest:

- A module is *crossed* if a function of it is called at all.
- A *visit* of a module is an unbroken run of calls in it, as long as no function of another module is called.
- A *return* to the reader is a visit of `i2l.inference.reader` after the first: how often one has to come
  back to the module that leads through the reading, having followed it into another. The modules that it
  leads to call each other at every token, and are not held to this.
- The *folders* are listed in the order in which they are first entered.
"""

import inspect
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

MAX_MODULES = 25
MAX_RETURNS = 2
READER = "i2l.inference.reader"
EXAMPLE = Path(__file__).parent.parent / "examples" / "1-paper.png"
GENERATED = "<string>"  # the file name of code that `dataclass` and `namedtuple` write


@dataclass
class Walk:
    """The visits of modules, in order, each with the functions that were called in it."""

    visits: list[tuple[str, list[str]]] = field(default_factory=list)

    @property
    def modules(self) -> list[str]:
        """The modules that were crossed, in the order in which they were first entered."""
        return list(dict.fromkeys(module for module, _ in self.visits))

    @property
    def folders(self) -> list[str]:
        """Their folders, in the order in which they were first entered; a module on top is its own."""
        return list(dict.fromkeys(module.split(".")[1] for module in self.modules))

    def returns(self, module: str = READER) -> int:
        """Count the visits of a module after the first."""
        return max(sum(visited == module for visited, _ in self.visits) - 1, 0)

    def functions(self, module: str) -> list[str]:
        """The functions of a module that were called, each once, in the order of their first calls."""
        called = [name for visited, names in self.visits if visited == module for name in names]
        return list(dict.fromkeys(called))


class _Watcher:
    """Writes down calls. Several threads may be watched, whose calls then follow each other as they came."""

    def __init__(self) -> None:
        self.walk = Walk()
        self._importing: dict[int, int] = {}  # how many modules each thread is in the middle of importing
        self._generators: list[FrameType] = []  # kept, so that no later one can be taken for one of them

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:  # noqa: ANN401 - as sys.setprofile has it
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if not module.startswith("i2l."):
            return
        thread = threading.get_ident()
        if code.co_name == "<module>":
            change = {"call": 1, "return": -1}.get(event, 0)
            self._importing[thread] = self._importing.get(thread, 0) + change
            return
        unnamed = code.co_name.startswith("<") or code.co_filename == GENERATED
        if event != "call" or unnamed or self._importing.get(thread) or self._goes_on(frame):
            return
        visits = self.walk.visits
        if not visits or visits[-1][0] != module:
            visits.append((module, []))
        visits[-1][1].append(code.co_qualname)

    def _goes_on(self, frame: FrameType) -> bool:
        """Tell whether this is a generator that was begun before."""
        if not frame.f_code.co_flags & inspect.CO_GENERATOR:
            return False
        begun = any(frame is other for other in self._generators)
        self._generators.append(frame)
        return begun


def follow(command: Callable[[], object]) -> Walk:
    """Call something and return the walk through the package that came of it."""
    watcher = _Watcher()
    threading.setprofile(watcher)
    sys.setprofile(watcher)
    try:
        command()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return watcher.walk


def read_command(image: Path) -> Walk:
    """Return the walk of `i2l read IMAGE`."""
    from i2l.cli import app

    return follow(lambda: app(["read", str(image)], standalone_mode=False))


def main() -> int:
    """Print the walk; 1 if it is longer than it should be."""
    walk = read_command(Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE)
    for module in walk.modules:
        print(f"{module:32} {', '.join(walk.functions(module))[:120]}")
    print(f"{len(walk.modules)} modules (at most {MAX_MODULES}), folders {' > '.join(walk.folders)}")
    print(f"{walk.returns()} returns to {READER} (at most {MAX_RETURNS})")
    return int(len(walk.modules) > MAX_MODULES or walk.returns() > MAX_RETURNS)


if __name__ == "__main__":
    sys.exit(main())
