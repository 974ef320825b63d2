"""How the screen is asked for: programs by imitation, the portal over a real bus, Windows by its parts."""

import io
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from PIL import Image, ImageGrab

from i2l.desktop import screen
from i2l.desktop.screen import NothingChosenError, Region, ScreenError, find_screen
from i2l.errors import MissingDependencyError

REGION = Region(10, 5, 20, 10)


def size(content):
    return Image.open(io.BytesIO(content)).size


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "1,2,3,4,5", "1,2,-3,4", "a,b,c,d", "1,2,0,4", "1;2;3;4", "1,2,3,4 "]
)
def test_a_region_is_four_numbers(text):
    assert Region.parse("10,5,20,10") == REGION
    with pytest.raises(ScreenError):
        Region.parse(text)


# For each program: the variables of its desktop, and the arguments to choose and for a region.
PROGRAMS = {
    "maim": (
        {"DISPLAY": ":0"},
        ["--quiet", "--hidecursor", "--select", "FILE"],
        ["--quiet", "--hidecursor", "--geometry=20x10+10+5", "FILE"],
    ),
    "import": (
        {"DISPLAY": ":0"},
        ["FILE"],
        ["-window", "root", "-crop", "20x10+10+5", "+repage", "FILE"],
    ),
    "scrot": ({"DISPLAY": ":0"}, ["-z", "-s", "FILE"], ["-z", "-a", "10,5,20,10", "FILE"]),
    "gnome-screenshot": ({"DISPLAY": ":0"}, ["--area", "--file=FILE"], ["--file=FILE"]),
    "spectacle": (
        {"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0", "XDG_CURRENT_DESKTOP": "KDE"},
        ["--background", "--nonotify", "--region", "--output", "FILE"],
        ["--background", "--nonotify", "--fullscreen", "--output", "FILE"],
    ),
    "grim": (
        {"WAYLAND_DISPLAY": "wayland-1", "DISPLAY": ":0", "XDG_CURRENT_DESKTOP": "sway"},
        ["-g", "3,4 30x12", "FILE"],
        ["-g", "10,5 20x10", "FILE"],
    ),
    "screencapture": ({}, ["-i", "-x", "FILE"], ["-x", "-R10,5,20,10", "FILE"]),
}
WHOLE = {"gnome-screenshot", "spectacle"}  # which cannot cut


@pytest.fixture
def imitated(program, picture, monkeypatch):
    """Imitate a program of PROGRAMS and its desktop."""

    def imitate(name, script=f"for file; do :; done; cp {picture} ${{file#--file=}}"):
        monkeypatch.setattr(sys, "platform", "darwin" if name == "screencapture" else "linux")
        for variable, value in PROGRAMS[name][0].items():
            monkeypatch.setenv(variable, value)
        if name == "grim":
            program("slurp", "echo '3,4 30x12'")
        return program(name, script)

    return imitate


def without_file(arguments):
    """The arguments with FILE for the name of the file, which must be gone by now."""
    files = [word.removeprefix("--file=") for word in arguments if word.endswith(".png")]
    assert len(files) == 1
    assert not Path(files[0]).exists()
    return [word.replace(files[0], "FILE") for word in arguments]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_person_chooses(name, imitated):
    calls = imitated(name)
    assert size(find_screen().take()) == (40, 20)
    assert without_file(calls()) == PROGRAMS[name][1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_region_in_pixels(name, imitated):
    calls = imitated(name)
    assert size(find_screen().take(REGION)) == ((20, 10) if name in WHOLE else (40, 20))
    assert without_file(calls()) == PROGRAMS[name][2]


@pytest.mark.parametrize(
    "script", ["echo 'Selection was cancelled by keystroke' >&2; exit 1", "exit 1", "exit 0"]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_escape(name, script, imitated, program):
    imitated(name, "exit 1")
    if name == "grim":
        program("slurp", script if script != "exit 0" else "echo 'selection cancelled' >&2; exit 1")
    else:
        imitated(name, script)
    with pytest.raises(NothingChosenError):
        find_screen().take()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_failure_is_told(name, imitated):
    imitated(name, "echo no such display >&2; exit 1")
    with pytest.raises(ScreenError, match="no such display"):
        find_screen().take(REGION)
    imitated(name, "exit 3")
    with pytest.raises(ScreenError, match="exit status 3"):
        find_screen().take(REGION)
    imitated(name, "exit 0")
    with pytest.raises(ScreenError, match="wrote nothing"):
        find_screen().take(REGION)


def test_a_program_that_hangs_is_a_failure(imitated, monkeypatch):
    monkeypatch.setattr(screen, "TIMEOUT_S", 0.3)
    imitated("maim", "exec sleep 60")
    with pytest.raises(ScreenError, match="maim"):
        find_screen().take(REGION)


def test_a_region_beside_the_screen(imitated):
    imitated("gnome-screenshot")
    for corner in ((40, 0), (0, 20), (400, 200)):  # the picture has 40 x 20 pixels
        with pytest.raises(ScreenError, match="not on the screen"):
            find_screen().take(Region(*corner, 5, 5))
    assert size(find_screen().take(Region(30, 0, 50, 50))) == (10, 20)


def test_nothing_is_there(program, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(ScreenError, match="no screen"):
        find_screen()
    monkeypatch.setenv("DISPLAY", ":0")
    with pytest.raises(MissingDependencyError, match="maim"):
        find_screen()


PORTAL = '''
"""Imitates the desktop portal: answers one request by a signal to whoever asked, as the real one does."""
import sys
from jeepney import DBusAddress, HeaderFields, message_bus, new_method_return, new_signal
from jeepney.io.blocking import Proxy, open_dbus_connection

status, uri = int(sys.argv[1]), sys.argv[2]
connection = open_dbus_connection("SESSION")
Proxy(message_bus, connection).RequestName("org.freedesktop.portal.Desktop")
print("there", flush=True)
while True:
    message = connection.receive()
    if message.header.fields.get(HeaderFields.member) == "Screenshot":
        break
options = message.body[1]
print(options["interactive"][1], flush=True)
sender = message.header.fields[HeaderFields.sender]
path = f"/org/freedesktop/portal/desktop/request/{sender[1:].replace('.', '_')}/{options['handle_token'][1]}"
connection.send(new_method_return(message, "o", (path,)))
request = DBusAddress(path, interface="org.freedesktop.portal.Request")
signal = new_signal(request, "Response", "ua{sv}", (status, {"uri": ("s", uri)}))
signal.header.fields[HeaderFields.destination] = sender
connection.send(signal)
'''


@pytest.fixture
def portal(monkeypatch, tmp_path):
    """A bus with an imitated portal on it, on a desktop that has nothing else."""
    pytest.importorskip("jeepney")
    if shutil.which("dbus-daemon") is None:
        pytest.skip("needs dbus-daemon: apt-get install dbus-daemon")
    bus = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"], stdout=subprocess.PIPE, text=True
    )
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", bus.stdout.readline().strip())
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("XDG_CURRENT_DESKTOP", "ubuntu:GNOME")
    monkeypatch.setattr(sys, "platform", "linux")
    processes = [bus]

    def start(status, file):
        one = subprocess.Popen(
            [sys.executable, "-c", PORTAL, str(status), file.as_uri()], stdout=subprocess.PIPE, text=True
        )
        processes.append(one)
        assert one.stdout.readline() == "there\n"
        return one

    yield start
    for process in processes:
        process.terminate()
        process.wait()
        process.stdout.close()


def test_the_portal(portal, picture, tmp_path):
    kept = tmp_path / "a screen shot.png"
    for region, expected, interactive in ((None, (40, 20), "True"), (REGION, (20, 10), "False")):
        shutil.copy(picture, kept)
        one = portal(0, kept)
        assert size(find_screen().take(region)) == expected
        assert one.stdout.readline().strip() == interactive
        assert not kept.exists()
        one.wait()


def test_the_portal_is_cancelled_or_fails_or_is_not_there(portal, picture):
    with pytest.raises(ScreenError, match="takes no pictures here"):
        find_screen().take()
    portal(1, picture).poll()
    with pytest.raises(NothingChosenError):
        find_screen().take()
    one = portal(2, picture)
    with pytest.raises(ScreenError, match="took no picture"):
        find_screen().take(REGION)
    one.wait()
    os.environ["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nowhere"
    with pytest.raises(ScreenError, match="cannot be reached"):
        find_screen().take()


@pytest.fixture
def windows(monkeypatch):
    """Windows as far as Python shows it: a clipboard, and a snipping tool that is started."""
    started = []
    clipboard = {"now": Image.new("RGB", (7, 7))}
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(os, "startfile", started.append, raising=False)
    monkeypatch.setattr(ImageGrab, "grabclipboard", lambda: clipboard["now"])
    return started, clipboard


def test_the_snipping_tool_of_windows(windows, picture):
    started, clipboard = windows
    later = threading.Timer(0.3, lambda: clipboard.update(now=Image.open(picture)))
    later.start()
    assert size(find_screen().take()) == (40, 20)
    assert started == ["ms-screenclip:"]
    later.join()


def test_the_old_picture_on_the_clipboard_is_not_what_was_chosen(windows, monkeypatch):
    monkeypatch.setattr(screen, "CHOICE_TIMEOUT_S", 0.3)
    with pytest.raises(NothingChosenError):
        find_screen().take()


def test_a_region_on_windows(windows, monkeypatch):
    def grab(box, all_screens):
        assert all_screens
        return Image.new("RGB", (box[2] - box[0], box[3] - box[1]))

    monkeypatch.setattr(ImageGrab, "grab", grab)
    assert size(find_screen().take(REGION)) == (20, 10)
