"""A region of the screen as a picture, chosen by a person or given in pixels.

`Screen` is the one interface. On X11, macOS and most Wayland desktops a program does it, and a table says how
each is called; GNOME is asked over D-Bus (`Portal`), and Windows has a snipping tool (`WindowsScreen`).
"""

import io
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from i2l.errors import I2LError, MissingDependencyError, require_extra

if TYPE_CHECKING:
    from PIL.Image import Image

TIMEOUT_S: Final = 30  # for whatever does not wait for a person
CHOICE_TIMEOUT_S: Final = 120  # for a person whom only the outcome is known of
_CANCELLED: Final = re.compile("cancel|abort", re.IGNORECASE)


class ScreenError(I2LError):
    """No picture of the screen could be taken."""


class NothingChosenError(ScreenError):
    """The person pressed Escape instead of choosing a region."""

    def __init__(self) -> None:
        super().__init__("Nothing was chosen.")


class Region(NamedTuple):
    """A rectangle in pixels of the screen, counted from its upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @classmethod
    def parse(cls, text: str) -> "Region":
        """Read `X,Y,WIDTH,HEIGHT`.

        Raises:
            ScreenError: if it is something else.
        """
        if not re.fullmatch(r"\d{1,6}(,\d{1,6}){3}", text):
            raise ScreenError(f"A region is X,Y,WIDTH,HEIGHT in pixels, as 100,200,640,120; not {text!r}.")
        region = cls(*map(int, text.split(",")))
        if not (region.width and region.height):
            raise ScreenError(f"The region {text} is empty.")
        return region


class Screen(Protocol):
    """What can take a picture of a part of the screen."""

    def take(self, region: Region | None = None) -> bytes:
        """Give the picture of a region as a PNG file; of one that the person chooses if None is given.

        Raises:
            NothingChosenError: if the person does not choose.
            ScreenError: if there can be no picture.
        """


@dataclass(frozen=True)
class ScreenProgram:
    """A program that takes pictures of the screen, and how it is called.

    In the arguments `{file}` stands for the file to write, `{x}`, `{y}`, `{width}` and `{height}` for the
    region, and `{picked}` for what the program `pick` prints, if another one does the choosing.
    """

    choose: tuple[str, ...]
    region: tuple[str, ...]
    pick: tuple[str, ...] = ()
    cuts: bool = True  # whether `region` gives the region; else it gives the whole screen

    @property
    def is_there(self) -> bool:
        """Whether all that it needs is installed."""
        programs = [command[0] for command in (self.choose, self.pick) if command]
        return all(shutil.which(program) for program in programs)

    def take(self, region: Region | None = None) -> bytes:
        """Give the picture of a region as a PNG file; of one that the person chooses if None is given.

        Raises:
            NothingChosenError: if the person does not choose.
            ScreenError: if the program fails.
        """
        with tempfile.TemporaryDirectory(prefix="i2l-") as folder:
            file = Path(folder) / "screen.png"
            if region is None:
                picked = _run(self.pick, waits=True).strip() if self.pick else ""
                _run([part.format(file=file, picked=picked) for part in self.choose], waits=not self.pick)
            else:
                _run([part.format(file=file, **region._asdict()) for part in self.region], waits=False)
            if not file.is_file():  # how several programs say that Escape was pressed
                raise (
                    NothingChosenError if region is None else ScreenError(f"{self.region[0]} wrote nothing.")
                )
            picture = file.read_bytes()
        return picture if region is None or self.cuts else _cut(picture, region)


def _run(command: tuple[str, ...] | list[str], *, waits: bool) -> str:
    """Run a program and give what it prints.

    Args:
        command: the program and its arguments.
        waits: whether it waits for a person, who may then cancel it, and take as long as they like.

    Raises:
        NothingChosenError: if the person does not choose.
        ScreenError: if it fails.
    """
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=None if waits else TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ScreenError(f"{command[0]} could not take a picture of the screen: {error}") from error
    if done.returncode == 0:
        return done.stdout
    reason = done.stderr.strip()
    if waits and (not reason or _CANCELLED.search(reason)):
        raise NothingChosenError
    reason = reason or f"exit status {done.returncode}"
    raise ScreenError(f"{command[0]} could not take a picture of the screen: {reason}")


def _cut(picture: bytes, region: Region) -> bytes:
    """Cut a region out of a picture of the whole screen."""
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as screen:
        x, y, width, height = region
        if x >= screen.width or y >= screen.height:
            raise ScreenError(f"The region {x},{y},{width},{height} is not on the screen, {screen.size}.")
        part = screen.crop((x, y, min(x + width, screen.width), min(y + height, screen.height)))
    return to_png(part)


def to_png(image: "Image") -> bytes:
    """Give an image as a PNG file, packed lightly: it is read at once, and thrown away."""
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=1)
    return file.getvalue()


GNOME_SCREENSHOT: Final = ScreenProgram(
    choose=("gnome-screenshot", "--area", "--file={file}"),
    region=("gnome-screenshot", "--file={file}"),
    cuts=False,
)
SPECTACLE: Final = ScreenProgram(
    choose=("spectacle", "--background", "--nonotify", "--region", "--output", "{file}"),
    region=("spectacle", "--background", "--nonotify", "--fullscreen", "--output", "{file}"),
    cuts=False,
)
GRIM: Final = ScreenProgram(
    pick=("slurp",),
    choose=("grim", "-g", "{picked}", "{file}"),
    region=("grim", "-g", "{x},{y} {width}x{height}", "{file}"),
)
X11: Final = (
    ScreenProgram(
        choose=("maim", "--quiet", "--hidecursor", "--select", "{file}"),
        region=("maim", "--quiet", "--hidecursor", "--geometry={width}x{height}+{x}+{y}", "{file}"),
    ),
    ScreenProgram(
        choose=("import", "{file}"),
        region=("import", "-window", "root", "-crop", "{width}x{height}+{x}+{y}", "+repage", "{file}"),
    ),
    ScreenProgram(
        choose=("scrot", "-z", "-s", "{file}"),
        region=("scrot", "-z", "-a", "{x},{y},{width},{height}", "{file}"),
    ),
    SPECTACLE,
    GNOME_SCREENSHOT,
)
MACOS: Final = ScreenProgram(
    choose=("screencapture", "-i", "-x", "{file}"),
    region=("screencapture", "-x", "-R{x},{y},{width},{height}", "{file}"),
)


class Portal:
    """The desktop portal, which Wayland desktops offer over D-Bus: the desktop's own tool to choose."""

    def take(self, region: Region | None = None) -> bytes:
        """Give the picture of a region as a PNG file; of one that the person chooses if None is given.

        Raises:
            MissingDependencyError: if there is no Python package for D-Bus.
            NothingChosenError: if the person does not choose.
            ScreenError: if the portal is not there or refuses.
        """
        require_extra("jeepney", "desktop")
        try:
            status, results = self._ask(interactive=region is None)
        except (OSError, KeyError) as error:  # no bus, or no address of one
            raise ScreenError(f"The desktop portal cannot be reached over D-Bus: {error}") from error
        if status == 1 or (status and region is None):
            raise NothingChosenError
        if status:
            raise ScreenError("The desktop portal took no picture of the screen.")
        file = Path(unquote(urlsplit(results["uri"][1]).path))
        picture = file.read_bytes()
        file.unlink()  # it was made for this call; the portal leaves it among the person's pictures
        return picture if region is None else _cut(picture, region)

    def _ask(self, *, interactive: bool) -> tuple[int, dict[str, Any]]:
        """Ask for a picture, and wait for the signal that says how it went.

        The connection stays open until then: when whoever asked is gone, the portal drops the request.
        """
        from jeepney import DBusAddress, MatchRule, MessageType, message_bus, new_method_call
        from jeepney.io.blocking import Proxy, open_dbus_connection

        portal = DBusAddress(
            "/org/freedesktop/portal/desktop",
            bus_name="org.freedesktop.portal.Desktop",
            interface="org.freedesktop.portal.Screenshot",
        )
        with open_dbus_connection("SESSION") as connection:
            token = f"i2l_{secrets.token_hex(8)}"
            sender = connection.unique_name.removeprefix(":").replace(".", "_")
            response = MatchRule(
                type="signal",
                interface="org.freedesktop.portal.Request",
                member="Response",
                path=f"/org/freedesktop/portal/desktop/request/{sender}/{token}",
            )
            Proxy(message_bus, connection).AddMatch(response)
            options = {"handle_token": ("s", token), "interactive": ("b", interactive)}
            with connection.filter(response) as signals:
                call = new_method_call(portal, "Screenshot", "sa{sv}", ("", options))
                reply = connection.send_and_get_reply(call, timeout=TIMEOUT_S)
                if reply.header.message_type == MessageType.error:
                    raise ScreenError(f"The desktop portal takes no pictures here: {reply.body[0]}")
                wait_s = None if interactive else TIMEOUT_S
                status, results = connection.recv_until_filtered(signals, timeout=wait_s).body
                return status, results


class WindowsScreen:
    """The snipping tool of Windows, which puts what the person chooses on the clipboard."""

    def take(self, region: Region | None = None) -> bytes:
        """Give the picture of a region as a PNG file; of one that the person chooses if None is given.

        Raises:
            NothingChosenError: if no new picture is on the clipboard after two minutes; that the person
                pressed Escape cannot be known.
        """
        from PIL import ImageGrab

        if region is not None:
            x, y, width, height = region
            return to_png(ImageGrab.grab((x, y, x + width, y + height), all_screens=True))
        before = self._picture()
        start: Callable[[str], None] = getattr(os, "startfile")  # noqa: B009 - which other systems lack
        start("ms-screenclip:")
        give_up = time.monotonic() + CHOICE_TIMEOUT_S
        while time.monotonic() < give_up:
            picture = self._picture()
            if picture is not None and picture != before:
                return picture
            time.sleep(0.1)
        raise NothingChosenError

    def _picture(self) -> bytes | None:
        """Give the picture on the clipboard as a PNG file, if there is one."""
        from PIL import Image, ImageGrab

        try:
            found = ImageGrab.grabclipboard()
        except OSError:  # another program is just using the clipboard
            return None
        return to_png(found) if isinstance(found, Image.Image) else None


def find_screen() -> Screen:
    """Give what takes pictures of the screen here.

    Raises:
        MissingDependencyError: if nothing that can is installed; the message says what to install.
        ScreenError: if there is no screen.
    """
    if sys.platform == "win32":
        return WindowsScreen()
    if sys.platform == "darwin":
        return MACOS
    if os.environ.get("WAYLAND_DISPLAY"):
        return _find_wayland()
    if not os.environ.get("DISPLAY"):
        raise ScreenError(
            "There is no screen: neither WAYLAND_DISPLAY nor DISPLAY is set. Read a file with: i2l read FILE"
        )
    for program in X11:
        if program.is_there:
            return program
    raise MissingDependencyError(
        "Choosing a region needs a program for it: install maim (or imagemagick, scrot)."
    )


def _find_wayland() -> Screen:
    """Give what the desktop lets take pictures: KDE has its own program, and GNOME knows only the portal."""
    desktop = os.environ.get("XDG_CURRENT_DESKTOP", "").upper()
    if "KDE" in desktop and SPECTACLE.is_there:
        return SPECTACLE
    if not {"KDE", "GNOME"} & set(desktop.split(":")) and GRIM.is_there:
        return GRIM
    return Portal()
