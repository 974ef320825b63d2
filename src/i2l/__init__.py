"""I2L: image of a printed formula in, LaTeX out, and every token points at the pixels it was read from."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from i2l.inference.reader import Reader
    from i2l.inference.reading import Reading

__all__ = ["Reader", "Reading", "__version__"]

_HOMES = {"Reader": "i2l.inference.reader", "Reading": "i2l.inference.reading"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of any public name; loaded when asked for, so import is fast
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'i2l' has no attribute {name!r}")
