"""Puts the tables into the pages: what stands between two markers is replaced, the words around it are kept.

<!-- table: test-scores -->
...
<!-- end -->
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.results import box, error_tables, left_out, paper_tables, score_tables
from benchmarks.results.curves import draw_curves
from benchmarks.results.store import Run, load_runs
from i2l.files import atomic_write
from i2l.inference.model_folder import BUNDLED, CARD, bundled_models

DOCS: Final = Path(__file__).parents[2] / "docs"
TABLES: Final[dict[str, Callable[[Sequence[Run]], str]]] = (
    paper_tables.TABLES | score_tables.TABLES | error_tables.TABLES | {"whole-split": left_out.whole_split}
)
_BLOCK: Final = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def render_pages(runs: Sequence[Run] | None = None) -> dict[Path, str]:
    """The content of every page and picture that follows from the results."""
    runs = load_runs() if runs is None else runs
    made = {name: partial(make, runs) for name, make in TABLES.items()}
    made |= {name: partial(make, box.load_box()) for name, make in box.TABLES.items()}
    card = BUNDLED / bundled_models()[0] / CARD
    pages = {
        path: fill_page(path.read_text(encoding="utf-8"), made)
        for path in (DOCS / "results.md", DOCS / "errors.md", DOCS / "model.md", card)
    }
    return pages | {DOCS / "results" / "curves.svg": draw_curves(runs)}


def fill_page(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with its tables as they should be."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{tables[block[2]]()}\n\n{block[4]}", text)


def write_pages() -> list[Path]:
    """Write what has changed; give those files."""
    changed = []
    for path, text in render_pages().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(text)
            changed.append(path)
    return changed
