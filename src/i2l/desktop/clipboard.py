"""The clipboard, and the notification that says what is on it.

Text goes to the clipboard by whichever program is there, and an image comes from it by Pillow. A notification
is a title and a sentence that the desktop shows for a while.
"""

import html
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
SHOWN: Final = 300  # characters of a notification
_INSTALL: Final = "needs a clipboard program: install wl-clipboard (Wayland) or xclip (X11)."
_MACOS: Final = (
    "on run texts",
    "display notification (item 2 of texts) with title (item 1 of texts)",
    "end run",
)
# The texts come by the environment, where nothing in them can be taken for a command.
_WINDOWS: Final = r"""
[Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications,
  ContentType=WindowsRuntime] > $null
$manager = [Windows.UI.Notifications.ToastNotificationManager]
$xml = $manager::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $xml.GetElementsByTagName('text')
$texts.Item(0).AppendChild($xml.CreateTextNode($env:I2L_TITLE)) > $null
$texts.Item(1).AppendChild($xml.CreateTextNode($env:I2L_BODY)) > $null
$owner = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\WindowsPowerShell\v1.0\powershell.exe'
$manager::CreateToastNotifier($owner).Show([Windows.UI.Notifications.ToastNotification]::new($xml))
"""


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
            _run(
                [program, *copier.command[1:]],
                failure=f"{Path(program).name} could not copy to the clipboard",
                given=text.encode(copier.encoding),
                environment=copier.environment,
            )
            return
        except I2LError as error:
            if isinstance(failure, MissingDependencyError):
                failure = error
    raise failure


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


def notify(title: str, body: str) -> None:
    """Show a notification.

    Raises:
        MissingDependencyError: if there is no program that can.
        I2LError: if it fails, as without a desktop.
    """
    body = body if len(body) <= SHOWN else f"{body[:SHOWN]}…"
    # A desktop reads the body as markup: a formula with < in it would lose its end.
    commands = (
        ("notify-send", "--app-name=i2l", "--", title, html.escape(body, quote=False)),
        ("osascript", *(part for line in _MACOS for part in ("-e", line)), title, body),
        ("powershell.exe", "-NoProfile", "-NonInteractive", "-Command", _WINDOWS),
    )
    for command in commands:
        if program := shutil.which(command[0]):
            _run(
                [program, *command[1:]],
                failure="There was no notification",
                environment={"I2L_TITLE": title, "I2L_BODY": body},
            )
            return
    raise MissingDependencyError("Notifications need notify-send: install libnotify-bin.")


def _run(command: list[str], *, failure: str, environment: dict[str, str], given: bytes = b"") -> None:
    """Run a program that prints nothing.

    A program that copies leaves a process behind that serves the clipboard and keeps what it inherited open.
    So stderr is a file: the end of a pipe would come only with the next copy.

    Args:
        command: the program and its arguments.
        failure: what to say if it fails; the reason is added.
        environment: variables for it.
        given: its standard input.

    Raises:
        I2LError: if the program fails or does not end.
    """
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                command,
                input=given,
                stdout=subprocess.DEVNULL,
                stderr=said,
                check=False,
                timeout=TIMEOUT_S,
                env={**os.environ, **environment},
            )
        except subprocess.TimeoutExpired as error:
            raise I2LError(f"{failure} within {TIMEOUT_S} seconds.") from error
        except OSError as error:
            raise I2LError(f"{failure}: {error}") from error
        if done.returncode:
            said.seek(0)
            reason = said.read().decode(errors="replace").strip() or f"exit status {done.returncode}"
            raise I2LError(f"{failure}: {reason}")
