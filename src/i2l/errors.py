"""Errors a person can act on: each message says what went wrong and what to do about it."""

import importlib
from types import ModuleType


class I2LError(Exception):
    """Base of every error this package raises on purpose; the CLI prints it and exits with status 1."""


class MissingDependencyError(I2LError):
    """An optional package or program that this call needs is not installed."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import ``module``, or say which extra of this package brings it.

    Raises:
        MissingDependencyError: if the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingDependencyError(
            f"This needs the package '{error.name}'. Install it with: pip install 'i2l[{extra}]'"
        ) from error
