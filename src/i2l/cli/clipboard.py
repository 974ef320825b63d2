"""The clipboard: text to it by whichever program is there, an image from it by Pillow."""

import shutil
import subprocess
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
        done = subprocess.run(
            [program, *command[1:]],
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=10,
        )
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip()
            raise I2LError(f"{command[0]} could not copy to the clipboard: {reason}")
        return
    raise MissingDependencyError(
        "--copy needs a clipboard program: install wl-clipboard (Wayland) or xclip (X11)."
    )


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
