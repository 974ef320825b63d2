"""I2L: image of a printed formula in, LaTeX out, and every token points at the pixels it was read from."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from i2l.errors import I2LError, MissingDependencyError
    from i2l.images.open import ImageError
    from i2l.images.prepare import NotAFormulaError
    from i2l.inference.reader import Reader
    from i2l.inference.reading import Alternative, Reading
    from i2l.pages.reader import PageFormula, PageReader, PageReading

__all__ = [
    "Alternative",
    "I2LError",
    "ImageError",
    "MissingDependencyError",
    "NotAFormulaError",
    "PageFormula",
    "PageReader",
    "PageReading",
    "Reader",
    "Reading",
    "__version__",
]

_HOMES = {
    "Alternative": "i2l.inference.reading",
    "I2LError": "i2l.errors",
    "ImageError": "i2l.images.open",
    "MissingDependencyError": "i2l.errors",
    "NotAFormulaError": "i2l.images.prepare",
    "PageFormula": "i2l.pages.reader",
    "PageReader": "i2l.pages.reader",
    "PageReading": "i2l.pages.reader",
    "Reader": "i2l.inference.reader",
    "Reading": "i2l.inference.reading",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any public name; loaded when asked for, so import is fast
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'i2l' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
