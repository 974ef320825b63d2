"""`i2l snip` and `i2l watch` as a person uses them, on a screen of X11 that nobody sees."""

import gc
import io
import itertools
import signal
import subprocess
import threading
from collections import deque

import pytest
from PIL import Image

from i2l.desktop import snip as snipping
from i2l.desktop.resident import Answer
from i2l.desktop.screen import NothingChosenError, Region, find_screen
from i2l.desktop.snip import SnipOptions, snip, watch_clipboard
from i2l.errors import I2LError
from tests.desktop.conftest import ROOT, i2l, until

EXAMPLE = ROOT / "examples" / "2-times-small.png"
LATEX = r"P(A_{i}\mid B) = \frac{P(B\mid A_{i})P(A_{i})}{\sum_{j = 1}^{n}P(B\mid A_{j})P(A_{j})}"
ANSWER = Answer(r"x < y", ("x", "<", "y"), 0.42, "confidence 0.42; compare it with the image.")


def pasted():
    paste = ["xclip", "-selection", "clipboard", "-o"]
    done = subprocess.run(paste, capture_output=True, check=True, timeout=30)
    return done.stdout.decode(errors="replace")


def put_picture(path):
    """Put a picture on the clipboard. The program stays to serve it, and must keep none of our pipes."""
    copy = ["xclip", "-selection", "clipboard", "-t", "image/png", "-i", str(path)]
    subprocess.run(copy, check=True, timeout=30, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def drag(x, y, width, height):
    moves = [
        f"mousemove {x} {y} mousedown 1",
        f"mousemove {x + 9} {y + 9}",
        f"mousemove {x + width} {y + height}",
    ]
    for words in [*moves, "mouseup 1"]:
        subprocess.run(["xdotool", *words.split(), "sleep", "0.05"], check=True, timeout=30)


def finish(process, act=lambda: None):
    """Do something until a process ends, which is ready for it at some time; give what it printed."""
    while True:
        try:
            out, err = process.communicate(timeout=0.2)
            return process.returncode, out, err
        except subprocess.TimeoutExpired:
            act()


def test_a_region_is_read_copied_and_notified(shown, display):
    left, top, width, height = shown(EXAMPLE)
    process = i2l("snip", "--region", f"{left},{top},{width},{height}", "--format", "inline")
    assert finish(process) == (0, "", "")
    assert pasted() == f"${LATEX}$"
    name, _, title, body = display()
    assert name == "--app-name=i2l"
    assert "Copied" in title
    assert "% sure" in title
    assert body == f"${LATEX}$"


def test_a_region_is_dragged_and_printed(shown, display):
    place = shown(EXAMPLE)
    status, out, _ = finish(i2l("snip", "--print"), lambda: drag(*place))
    assert (status, out) == (0, LATEX + "\n")
    assert display() == []


def test_what_is_dragged_is_what_is_taken(shown, tmp_path):
    picture = tmp_path / "red.png"
    Image.new("RGB", (200, 100), "red").save(picture)
    left, top, width, height = shown(picture)
    found = []
    chooser = threading.Thread(target=lambda: found.append(find_screen().take()))
    chooser.start()
    while chooser.is_alive():
        drag(left, top, width - 1, height - 1)
        chooser.join(0.2)
    taken = Image.open(io.BytesIO(found[0])).convert("RGB")
    assert abs(taken.width - width) <= 2
    assert abs(taken.height - height) <= 2
    assert taken.getpixel((width // 2, height // 2)) == (255, 0, 0)
    assert Image.open(io.BytesIO(find_screen().take(Region(left, top, 5, 6)))).size == (5, 6)


def test_a_right_click_ends_it_quietly(display):
    def right_click():
        subprocess.run(["xdotool", "click", "3"], check=True, timeout=30)

    status, out, err = finish(i2l("snip"), right_click)
    assert (status, out) == (1, "")
    assert "Nothing was chosen" in err
    assert display() == []


def test_an_error_is_notified_for_whoever_pressed_a_key(display):
    status, _, err = finish(i2l("snip", "--region", "300,200,50,50"))
    assert status == 1
    assert "error" in err
    title, body = display()[2:4]
    assert "could not read" in title
    assert body.split("\n")[0] in err.replace("\n", " ")


@pytest.mark.parametrize("command", ["snip", "watch"])
def test_an_unknown_format_is_refused_before_anything_is_chosen(command, program):
    status, out, err = finish(i2l(command, "--format", "papyrus"))
    assert (status, out) == (1, "")
    assert "mathml" in err


@pytest.fixture
def imitated(program, picture, monkeypatch, tmp_path):
    """A desktop of imitated programs, and a reader that knows its answer."""
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("i2l.desktop.resident.reads_here_or_there", lambda *_, **__: lambda picture: ANSWER)
    program("maim", f"for file; do :; done; cp {picture} $file")
    program("xclip", f"cat > {tmp_path}/copied")
    return program


def test_doubt_is_told_and_a_missing_notification_is_not_the_end(imitated, tmp_path):
    warnings = []
    assert snip(SnipOptions(), warn=warnings.append) == "x < y"
    assert (tmp_path / "copied").read_text() == "x < y"
    assert warnings == [ANSWER.doubt, "Notifications need notify-send: install libnotify-bin."]
    calls = imitated("notify-send")
    snip(SnipOptions(), warn=warnings.append)
    assert calls()[2:] == [f"Copied, 42% sure: {ANSWER.doubt}", "x &lt; y"]


def test_a_reading_that_cannot_be_copied_is_an_error_and_notified(imitated):
    imitated("xclip", "echo no display >&2; exit 1")
    calls = imitated("notify-send")
    with pytest.raises(I2LError, match="no display"):
        snip(SnipOptions(), warn=print)
    assert "no display" in calls()[3]


def test_cancelling_is_not_notified(imitated):
    imitated("maim", "exit 1")
    calls = imitated("notify-send")
    with pytest.raises(NothingChosenError):
        snip(SnipOptions(), warn=print)
    assert calls() is None


def test_delay_comes_before_choosing(imitated, monkeypatch):
    calls = imitated("maim", "exit 1")
    waited = []
    monkeypatch.setattr(snipping.time, "sleep", lambda seconds: waited.append((seconds, calls())))
    with pytest.raises(NothingChosenError):
        snip(SnipOptions(delay_s=3), warn=print)
    assert waited == [(3, None)]


def test_the_window(x_server, monkeypatch, picture):
    tkinter = pytest.importorskip("tkinter", reason="needs tkinter: apt-get install python3-tk")
    from i2l.desktop.resident import output_formats
    from i2l.desktop.window import ReadingWindow

    monkeypatch.setenv("DISPLAY", x_server)
    copied = []
    window = ReadingWindow(
        ANSWER, picture.read_bytes(), copy=copied.append, typeset=lambda _: picture.read_bytes()
    )
    assert "42%" in window.status.get()
    assert tuple(window.buttons) == output_formats()
    window.root.update()
    shown = [
        child for parent in (window.root, *window.root.winfo_children()) for child in parent.winfo_children()
    ]
    assert all(child.winfo_ismapped() for child in shown), "all that was made is seen"
    texts = [str(child.cget("textvariable")) for child in shown if isinstance(child, tkinter.Label)]
    assert str(window.status) in texts
    steps = iter(("display", "tokens"))

    def act():
        if not window.typeset_label.cget("image"):
            window.root.after(20, act)
        elif (step := next(steps, None)) is not None:
            window.buttons[step].invoke()
            assert "copied" in window.status.get()
            window.root.after(20, act)
        else:
            window.root.event_generate("<Escape>")

    window.root.after(20, act)
    window.root.focus_force()
    window.show()
    assert copied == ["$$x < y$$", "x < y"]
    # Nothing of Tk is left for the garbage collector, which may run in any thread; Tk knows only its own.
    # By their types: to be asked for its class, an object of another library may warn.
    held = [kept for kept in gc.get_objects() if issubclass(type(kept), (tkinter.Image, tkinter.Variable))]
    assert held == []


def test_a_window_without_a_screen(picture):
    pytest.importorskip("tkinter", reason="needs tkinter: apt-get install python3-tk")
    from i2l.desktop.window import ReadingWindow

    with pytest.raises(I2LError, match="cannot be shown"):
        ReadingWindow(ANSWER, picture.read_bytes())


@pytest.mark.tex
def test_the_formula_is_set_anew_by_tex():
    from i2l.desktop.window import typeset_formula

    drawn = Image.open(io.BytesIO(typeset_formula(r"\frac{a}{b}")))
    assert drawn.height > drawn.width
    assert typeset_formula(r"\frac{a}{") is None


def test_watch_reads_what_lands_and_never_its_own_output(display):
    put_picture(EXAMPLE)  # before it begins: left alone
    process = i2l("watch")
    assert "Waiting" in process.stderr.readline()
    other = ROOT / "examples" / "1-paper.png"
    put_picture(other)
    first = process.stdout.readline().strip()
    until(lambda: pasted() == first, "the reading was not copied")
    assert first
    assert first != LATEX
    put_picture(EXAMPLE)
    assert process.stdout.readline().strip() == LATEX
    until(lambda: pasted() == LATEX, "the second reading was not copied")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")


class Ended(Exception):
    pass


@pytest.fixture
def clipboard(monkeypatch):
    """A clipboard that shows one thing after the other, then ends the watch."""

    def shows(*things):
        rest = iter(things)

        def look():
            try:
                return next(rest)
            except StopIteration:
                raise Ended from None

        monkeypatch.setattr(snipping, "_look", look)
        monkeypatch.setattr(snipping, "load_in_background", lambda model: lambda picture: picture.decode())
        found = []
        with pytest.raises(Ended):
            deque(map(found.append, watch_clipboard(look_s=0)), maxlen=0)
        return found

    return shows


def test_a_picture_is_read_once_as_long_as_it_stays(clipboard):
    assert clipboard([b"old"], [b"old"], None, [b"a"], [b"a"], [b"b"], None, [b"b"]) == ["a", "b", "b"]
    assert clipboard(None, [b"a", b"b"], [b"a", b"b"], [b"a"]) == ["a", "b", "a"]


def test_looks_at_the_clipboard_have_time_between_them(clipboard, monkeypatch):
    """The more, the longer a look takes: at most a tenth of the time goes into looking."""
    clock, slept = itertools.count(0, 3), []
    monkeypatch.setattr(snipping.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(snipping.time, "sleep", slept.append)
    clipboard(None, None, None)
    assert slept == [pytest.approx(30)] * 2
