"""The clipboard beyond what `i2l read --copy` tests: which program is taken, and in which encoding."""

import pytest
from PIL import Image, ImageGrab, UnidentifiedImageError

from i2l.desktop.clipboard import NoImageError, copy_text, paste_image
from i2l.errors import I2LError


def test_a_copier_of_another_desktop_does_not_stand_in_the_way(program, tmp_path):
    """On a screen of X11 wl-copy may be installed too, and fails."""
    program("wl-copy", "echo 'failed to connect to a Wayland server' >&2; exit 1")
    program("xclip", f"cat > {tmp_path}/copied")
    copy_text("α")
    assert (tmp_path / "copied").read_text() == "α"
    program("xclip", "echo cannot open display >&2; exit 1")
    with pytest.raises(I2LError, match="Wayland server"):
        copy_text("a")


def test_each_system_has_its_encoding(program, tmp_path):
    program("pbcopy", f"(echo $LC_CTYPE; cat) > {tmp_path}/copied")
    copy_text("α")
    assert (tmp_path / "copied").read_text() == "UTF-8\nα"
    (tmp_path / "bin" / "pbcopy").unlink()
    program("clip.exe", f"cat > {tmp_path}/copied")
    copy_text("α ≤ β")
    assert (tmp_path / "copied").read_bytes().decode("utf-16-le") == "α ≤ β"


def test_no_image_and_no_clipboard_are_two_things(monkeypatch):
    def fail(error):
        def grab():
            raise error

        return grab

    for nothing in (lambda: None, list, fail(UnidentifiedImageError("odd"))):
        monkeypatch.setattr(ImageGrab, "grabclipboard", nothing)
        with pytest.raises(NoImageError):
            paste_image()
    monkeypatch.setattr(ImageGrab, "grabclipboard", fail(ChildProcessError("xclip error: no display")))
    with pytest.raises(I2LError, match="no display") as caught:
        paste_image()
    assert not isinstance(caught.value, NoImageError)
    monkeypatch.setattr(ImageGrab, "grabclipboard", lambda: Image.new("L", (3, 2)))
    assert paste_image().size == (3, 2)
