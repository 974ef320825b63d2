"""Writes docs/map.md: one line for each module of the package, taken from its docstring.

`python -m benchmarks.map` writes the page, `--check` only says whether it is up to date.
"""

import argparse
import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "i2l"
MAP = ROOT / "docs" / "map.md"
FLOW = ["", "formulas", "extraction", "rendering", "images", "ink", "dataset", "model", "training"]
FLOW += ["inference", "evaluation", "explain", "web", "cli"]
HEAD = """# Map of the code

Every module, in the order of the flow: a folder imports only from folders before it, and from the modules of
the first table. The lines are the first sentences of the modules themselves; `make map` writes the page anew.
"""


def first_sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.])\s+(?=[A-Z`])", paragraph)[0].rstrip(".")


def folder_order(folder: str) -> tuple[int, str]:
    """Sort a folder by its place in the flow; one that the flow does not name comes last."""
    top = folder.partition("/")[0]
    return (FLOW.index(top) if top in FLOW else len(FLOW), folder)


def write_map() -> str:
    """Compose the page."""
    folders: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        folder = path.parent.relative_to(SOURCE).as_posix().removeprefix(".")
        folders.setdefault(folder, []).append(path)
    parts = [HEAD]
    for folder in sorted(folders, key=folder_order):
        modules = {path.stem: first_sentence(path) for path in folders[folder]}
        about = modules.pop("__init__", "")
        parts.append(f"## {f'{folder}/' if folder else 'For all'}\n\n{about}.\n")
        rows = [f"| `{name}` | {_cell(line)} |" for name, line in modules.items()]
        if rows:
            parts.append("\n".join(["| module | its job |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is out of date")
    text = write_map()
    if parser.parse_args().check:
        sys.exit(None if MAP.read_text(encoding="utf-8") == text else "docs/map.md is old: run `make map`.")
    MAP.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
