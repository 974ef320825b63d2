"""Errors a person can act on: each message says what went wrong and what to do about it."""

import importlib
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PACKAGE = "i2l"


class I2LError(Exception):
    """Base of every error this package raises on purpose; the CLI prints it and exits with status 1."""


class MissingDependencyError(I2LError):
    """An optional package or program that this call needs is not installed."""


def require_choice(value: object, choices: object, what: str) -> None:
    """Check a value against the `Literal` of its type hint, which Python itself does not.

    Args:
        value: what was given.
        choices: the type hint, such as `Literal["local", "ray"]`.
        what: the thing that has this name, such as "engine".

    Raises:
        I2LError: if the value is none of the literals; the message lists them.
    """
    literals = typing.get_args(choices)
    if value not in literals:
        raise I2LError(f"There is no {what} {value!r}; choose one of {', '.join(map(str, literals))}.")


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
            f"This needs the package '{error.name}'. Install it with: {install_command(extra)}"
        ) from error


def install_command(extra: str) -> str:
    """Give the command that adds an extra to this very installation; no index knows the package by name.

    It names the checkout or the wheel that this was installed from. Where that is gone, it names the
    packages of the extra instead.
    """
    origin = _find_origin()
    if origin.path is not None:
        return _pip([*(["-e"] if origin.editable else []), f"{origin.path}[{extra}]"])
    if origin.url:
        return _pip([f"{PACKAGE}[{extra}] @ {origin.url}"])
    assert origin.installed is not None
    return _pip(_packages(origin.installed, extra))


def weights_command(name: str) -> str:
    """Give the command that installs the weights that lie in the folder `models/NAME` of the repository.

    It names the checkout, or the address of the repository, that this was installed from. Where there is
    neither, as with a wheel, it says where to run it.
    """
    origin = _find_origin()
    if origin.path is not None and (origin.path / "models" / name).is_dir():
        return _pip([str(origin.path / "models" / name)])
    if origin.is_repository:
        return _pip([f"{PACKAGE}-{name} @ {origin.url}#subdirectory=models/{name}"])
    return f"{_pip([f'./models/{name}'])} (in a checkout of {PACKAGE})"


class _Origin(NamedTuple):
    """What this package was installed from: a path, or an address, or nobody knows."""

    path: Path | None = None  # of a checkout or a wheel that is still there
    editable: bool = False
    url: str = ""  # as pip takes it
    is_repository: bool = False  # of that address
    installed: "Distribution | None" = None


def _find_origin() -> _Origin:
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import unquote, urlsplit

    try:
        installed = distribution(PACKAGE)
    except PackageNotFoundError:  # run from a checkout by PYTHONPATH
        return _Origin(path=Path(__file__).parents[2])
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    url = urlsplit(origin.get("url", ""))
    source = Path(unquote(url.path))
    if url.scheme == "file" and source.exists():
        return _Origin(path=source, editable=origin.get("dir_info", {}).get("editable", False))
    if url.scheme in ("http", "https"):
        vcs = origin.get("vcs_info", {}).get("vcs")
        return _Origin(url=f"{vcs}+{origin['url']}" if vcs else origin["url"], is_repository=bool(vcs))
    return _Origin(installed=installed)


def _pip(arguments: list[str]) -> str:
    """Write a call of the pip that belongs to the running Python."""
    import shlex
    import shutil

    found = shutil.which("pip")
    own = found is not None and Path(found).parent == Path(sys.executable).parent
    pip = ["pip"] if own else [sys.executable, "-m", "pip"]
    return shlex.join([*pip, "install", *arguments])


def _packages(installed: "Distribution", extra: str) -> list[str]:
    """Give what an extra asks for, with what the other extras that it names ask for."""
    packages: list[str] = []
    for requirement in installed.requires or []:
        name, _, marker = requirement.partition(";")
        if f"'{extra}'" not in marker.replace('"', "'"):
            continue
        if name.startswith(f"{PACKAGE}["):
            inner = name.partition("[")[2].partition("]")[0]
            packages += [package for part in inner.split(",") for package in _packages(installed, part)]
        else:
            packages.append(name.strip().replace(" ", ""))
    return packages
