"""The clipboard: text to it by whichever program is there, an image from it by Pillow."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from i2l.errors import I2LError, MissingDependencyError

if TYPE_CHECKING:
    from PIL.Image import Image

COPIERS: Final = (
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("pbcopy",),
    ("clip.exe",),
)

TIMEOUT_S: Final = 10


def copy_text(text: str) -> None:
    """Put text on the clipboard.

    Raises:
        MissingDependencyError: if there is no program that can.
        I2LError: if the program fails, as without a display.
    """
    for command in COPIERS:
        program = shutil.which(command[0])
        if program is None:
            continue
        _run([program, *command[1:]], text)
        return
    raise MissingDependencyError(
        "--copy needs a clipboard program: install wl-clipboard (Wayland) or xclip (X11)."
    )


def _run(command: list[str], text: str) -> None:
    """Give text to a program that copies it.

    The program leaves a process behind that serves the clipboard and keeps what it inherited open. So
    stderr is a file: the end of a pipe would come only with the next copy.

    Raises:
        I2LError: if the program fails or does not end.
    """
    name = Path(command[0]).name
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                command,
                input=text.encode(),
                stdout=subprocess.DEVNULL,
                stderr=said,
                check=False,
                timeout=TIMEOUT_S,
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
        I2LError: if there is no image on the clipboard.
    """
    from PIL import ImageGrab

    try:
        found = ImageGrab.grabclipboard()
    except NotImplementedError as error:
        raise MissingDependencyError(
            "--clipboard needs a clipboard program: install wl-clipboard (Wayland) or xclip (X11)."
        ) from error
    except (OSError, ChildProcessError) as error:
        raise I2LError(f"There is no image on the clipboard ({error}).") from error
    if not found:
        raise I2LError("There is no image on the clipboard; copy one, such as a screenshot.")
    return [str(name) for name in found] if isinstance(found, list) else found
