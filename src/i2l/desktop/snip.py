"""From a region of the screen, or a picture on the clipboard, to LaTeX on the clipboard."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from i2l.desktop.clipboard import NoImageError, copy_text, notify, paste_image
from i2l.desktop.resident import Answer, load_in_background
from i2l.desktop.screen import NothingChosenError, Region, find_screen, to_png
from i2l.errors import I2LError, MissingDependencyError

LOOK_S: Final = 0.5  # between looks at the clipboard, at least
LOOK_SHARE: Final = 0.1  # of the time that looking may take, as when a huge picture stays there


@dataclass(frozen=True)
class SnipOptions:
    """How to snip."""

    output: str = "latex"  # the format that is copied
    model: str | None = None  # as in `Reader`
    region: Region | None = None  # instead of letting the person choose
    delay_s: float = 0  # to wait before choosing, for whatever must be opened first
    resident: bool = False  # leave a reader in the background
    window: bool = False  # show a window instead of a notification
    copy: bool = True  # put the reading on the clipboard, and notify


def snip(options: SnipOptions, *, warn: Callable[[str], None]) -> str:
    """Let a person choose a region, read it, copy it and say so; give the text.

    Whoever pressed a key sees no terminal, so an error becomes a notification as well.

    Args:
        options: how.
        warn: is told what went wrong beside the reading itself, as a notification that could not be shown.

    Raises:
        NothingChosenError: if the person does not choose.
        I2LError: if there is no picture, it cannot be read, or the reading cannot be copied.
    """
    try:
        return _snip(options, warn)
    except NothingChosenError:
        raise
    except I2LError as error:
        if options.copy:
            _try_to_notify("i2l could not read this", str(error), warn)
        raise


def _snip(options: SnipOptions, warn: Callable[[str], None]) -> str:
    from i2l.desktop.resident import reads_here_or_there

    screen = find_screen()
    read = reads_here_or_there(options.model, resident=options.resident)
    time.sleep(options.delay_s)
    picture = screen.take(options.region)
    answer = read(picture)
    text = answer.text(options.output)
    if answer.doubt:
        warn(answer.doubt)
    if options.copy:
        copy_text(text)
    if options.window:
        _show_window(answer, picture)
    elif options.copy:
        _try_to_notify(_title(answer), text, warn)
    return text


def _title(answer: Answer) -> str:
    return f"Copied, {answer.confidence:.0%} sure" + (f": {answer.doubt}" if answer.doubt else "")


def _try_to_notify(title: str, body: str, warn: Callable[[str], None]) -> None:
    """Notify if that is possible: without it the reading is on the clipboard all the same."""
    try:
        notify(title, body)
    except I2LError as error:
        warn(str(error))


def _show_window(answer: Answer, picture: bytes) -> None:
    try:
        from i2l.desktop.window import ReadingWindow
    except ModuleNotFoundError as error:
        raise MissingDependencyError("The window needs tkinter: install python3-tk.") from error
    ReadingWindow(answer, picture).show()


def watch_clipboard(
    *, model: str | None = None, look_s: float = LOOK_S, ready: Callable[[], None] = lambda: None
) -> Iterator[Answer | I2LError]:
    """Read every picture that lands on the clipboard, for ever; one that cannot be read gives its error.

    What is on the clipboard at the beginning is left alone, and so is a picture that stays there after it was
    read. Our own output is text, which this never looks at.

    Args:
        model: as in `Reader`.
        look_s: seconds between looks at the clipboard.
        ready: is called once, when from now on no picture is missed.

    Raises:
        MissingDependencyError: if there is no program to ask for the clipboard.
        I2LError: if the clipboard cannot be asked, or the model cannot be loaded.
    """
    read = load_in_background(model)
    seen = _fingerprint(_look())
    ready()
    while True:
        started = time.monotonic()
        found = _look()
        mark = _fingerprint(found)
        taken_s = time.monotonic() - started
        if found is not None and mark != seen:
            for picture in found:
                try:
                    yield read(picture)
                except I2LError as error:
                    yield error
        seen = mark
        time.sleep(max(look_s, taken_s / LOOK_SHARE))


def _look() -> list[bytes] | None:
    """Give the picture on the clipboard, or those among copied files; None if there are none."""
    try:
        found = paste_image()
    except NoImageError:
        return None
    if not isinstance(found, list):
        return [to_png(found)]
    from i2l.images.open import SUFFIXES

    files = [Path(name) for name in found if Path(name).suffix.lower() in SUFFIXES]
    return [file.read_bytes() for file in files if file.is_file()] or None


def _fingerprint(pictures: list[bytes] | None) -> int | None:
    return None if pictures is None else hash(tuple(pictures))
