"""The clipboard: text to it by whichever program is there, an image from it by Pillow."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from i2l.errors import I2LError, MissingDependencyError

if TYPE_CHECKING:
    from PIL.Image import Image


class Copier(NamedTuple):
    """A program that puts its standard input on the clipboard."""

    command: tuple[str, ...]
    encoding: str = "utf-8"
    environment: dict[str, str] = {}  # noqa: RUF012 - never changed


COPIERS: Final = (
    Copier(("wl-copy",)),
    Copier(("xclip", "-selection", "clipboard")),
    Copier(("xsel", "--clipboard", "--input")),
    # Started by a key and not by a terminal, pbcopy is told no locale and would take the text for Mac Roman.
    Copier(("pbcopy",), environment={"LC_CTYPE": "UTF-8"}),
    Copier(("clip.exe",), encoding="utf-16-le"),
)

TIMEOUT_S: Final = 10
_INSTALL: Final = "needs a clipboard program: install wl-clipboard (Wayland) or xclip (X11)."


class NoImageError(I2LError):
    """The clipboard holds something else than an image, or nothing."""


def copy_text(text: str) -> None:
    """Put text on the clipboard, by the first program that manages to.

    A program that is there may fail: wl-copy does so on a screen of X11, where xclip is the one that works.

    Raises:
        MissingDependencyError: if there is no program that can.
        I2LError: if every program fails, as without a display; the message is that of the first.
    """
    failure: I2LError = MissingDependencyError(f"Copying {_INSTALL}")
    for copier in COPIERS:
        program = shutil.which(copier.command[0])
        if program is None:
            continue
        try:
            _run(copier, program, text)
            return
        except I2LError as error:
            if isinstance(failure, MissingDependencyError):
                failure = error
    raise failure


def _run(copier: Copier, program: str, text: str) -> None:
    """Give text to a program that copies it.

    The program leaves a process behind that serves the clipboard and keeps what it inherited open. So
    stderr is a file: the end of a pipe would come only with the next copy.

    Raises:
        I2LError: if the program fails or does not end.
    """
    name = Path(program).name
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                [program, *copier.command[1:]],
                input=text.encode(copier.encoding),
                stdout=subprocess.DEVNULL,
                stderr=said,
                check=False,
                timeout=TIMEOUT_S,
                env={**os.environ, **copier.environment},
            )
        except subprocess.TimeoutExpired as error:
            raise I2LError(f"{name} did not copy to the clipboard within {TIMEOUT_S} seconds.") from error
        if done.returncode:
            said.seek(0)
            reason = said.read().decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise I2LError(f"{name} could not copy to the clipboard: {reason}")


def paste_image() -> "Image | list[str]":
    """Give the image on the clipboard, or the files if those were copied.

    Raises:
        MissingDependencyError: if there is no program to ask.
        NoImageError: if there is no image on the clipboard.
        I2LError: if the clipboard cannot be asked, as without a display.
    """
    from PIL import ImageGrab, UnidentifiedImageError

    try:
        found = ImageGrab.grabclipboard()
    except NotImplementedError as error:
        raise MissingDependencyError(f"Reading the clipboard {_INSTALL}") from error
    except UnidentifiedImageError as error:
        raise NoImageError(f"There is no image on the clipboard ({error}).") from error
    except OSError as error:  # a ChildProcessError, if the program failed
        raise I2LError(f"The clipboard cannot be read ({error}).") from error
    if not found:
        raise NoImageError("There is no image on the clipboard; copy one, such as a screenshot.")
    return [str(name) for name in found] if isinstance(found, list) else found
