"""Notifications, by imitated programs: what they are called with, and that no formula can break out of it."""

import pytest

from i2l.desktop.clipboard import SHOWN, notify
from i2l.errors import I2LError, MissingDependencyError


def test_notify_send_takes_markup_and_options_for_text(program):
    calls = program("notify-send")
    notify("--help", r"a < b & c \rangle")
    assert calls() == ["--app-name=i2l", "--", "--help", r"a &lt; b &amp; c \rangle"]


def test_a_long_formula_is_cut(program):
    calls = program("notify-send")
    notify("title", "x" * 1000)
    assert calls()[-1] == "x" * SHOWN + "…"


def test_osascript_gets_the_texts_beside_the_script(program):
    calls = program("osascript")
    notify("90 % sure", '" & do shell script "date')
    assert calls()[-2:] == ["90 % sure", '" & do shell script "date']
    assert not any("date" in line for line in calls()[:-1])


def test_powershell_gets_the_texts_by_the_environment(program, tmp_path):
    calls = program("powershell.exe", f'printf "%s|%s" "$I2L_TITLE" "$I2L_BODY" > {tmp_path}/texts')
    notify("title", "$(Stop-Computer)")
    assert (tmp_path / "texts").read_text() == "title|$(Stop-Computer)"
    assert not any("Stop-Computer" in line for line in calls())


def test_a_desktop_without_notifications(program):
    with pytest.raises(MissingDependencyError, match="libnotify-bin"):
        notify("a", "b")
    program("notify-send", "echo no bus >&2; exit 1")
    with pytest.raises(I2LError, match="no bus"):
        notify("a", "b")
