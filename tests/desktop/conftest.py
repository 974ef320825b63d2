"""A screen that nobody sees, imitated programs that note how they were called, a folder for sockets."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
SCREEN = (800, 400)  # pixels
SHOW = """
import sys, tkinter
window = tkinter.Tk()
window.overrideredirect(True)
window.geometry("+40+30")
picture = tkinter.PhotoImage(file=sys.argv[1])
tkinter.Label(window, image=picture, borderwidth=0, padx=0, pady=0).pack()
window.update()
print("shown", flush=True)
window.mainloop()
"""


@pytest.fixture(autouse=True)
def nobody_logged_in(monkeypatch):
    """No desktop but the one that a test asks for; a folder for sockets, whose paths must be short."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_CURRENT_DESKTOP", "DBUS_SESSION_BUS_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    with tempfile.TemporaryDirectory(prefix="i2l-run-", dir="/tmp") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Imitate a program; what it was called with is in a file, one argument a line. Others are not found."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def make(name, script=""):
        calls = tmp_path / f"{name}.calls"
        file = folder / name
        file.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin\nprintf "%s\\n" "$@" >> {calls}\n{script}\n')
        file.chmod(0o755)
        return lambda: calls.read_text().splitlines() if calls.exists() else None

    return make


@pytest.fixture
def picture(tmp_path):
    """A small picture file."""
    file = tmp_path / "picture.png"
    Image.new("RGB", (40, 20), "red").save(file)
    return file


@pytest.fixture(scope="session")
def x_server():
    """One screen for all tests; its name."""
    if shutil.which("Xvfb") is None:
        pytest.skip("needs Xvfb: apt-get install xvfb")
    number, there = os.pipe()
    size = "{}x{}x24".format(*SCREEN)
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(there), "-nolisten", "tcp", "-screen", "0", size],
        pass_fds=[there],
        stderr=subprocess.DEVNULL,
    )
    os.close(there)
    with os.fdopen(number) as file:
        yield f":{file.readline().strip()}"
    server.terminate()
    server.wait()


@pytest.fixture
def display(x_server, monkeypatch, tmp_path):
    """The screen, with the real programs of X11 and an imitated notify-send, which notes its arguments."""
    links = tmp_path / "links"
    links.mkdir()
    for name in ("maim", "xclip", "xdotool", "sh"):
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}: apt-get install {name}")
        (links / name).symlink_to(shutil.which(name))
    notes = tmp_path / "notes"
    (links / "notify-send").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {notes}\n')
    (links / "notify-send").chmod(0o755)
    monkeypatch.setenv("PATH", str(links))
    monkeypatch.setenv("DISPLAY", x_server)
    return lambda: notes.read_text().splitlines() if notes.exists() else []


@pytest.fixture
def shown(display):
    """Show a picture file on the screen, 40 pixels from the left and 30 from the top."""
    windows = []

    def show(path):
        pytest.importorskip("tkinter", reason="needs tkinter: apt-get install python3-tk")
        window = subprocess.Popen([sys.executable, "-c", SHOW, str(path)], stdout=subprocess.PIPE, text=True)
        windows.append(window)
        assert window.stdout.readline() == "shown\n"
        with Image.open(path) as picture:
            return 40, 30, *picture.size

    yield show
    for window in windows:
        window.terminate()
        window.wait()
        window.stdout.close()


def until(condition, what, *, timeout_s=300):
    """Wait for something that happens in another process."""
    give_up = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < give_up, what
        time.sleep(0.05)


def i2l(*arguments, **options):
    """Start the command as a person does, with the sources here."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "i2l", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - as a person has it
        **options,
    )
