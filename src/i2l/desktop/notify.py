"""Notifications: a title and a sentence that the desktop shows for a while."""

import html
import os
import shutil
import subprocess
from typing import Final

from i2l.errors import I2LError, MissingDependencyError

TIMEOUT_S: Final = 10
SHOWN: Final = 300  # characters

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
            _run([program, *command[1:]], {"I2L_TITLE": title, "I2L_BODY": body})
            return
    raise MissingDependencyError("Notifications need notify-send: install libnotify-bin.")


def _run(command: list[str], texts: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
            env={**os.environ, **texts},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise I2LError(f"There was no notification: {error}") from error
    if done.returncode:
        reason = done.stderr.strip() or f"exit status {done.returncode}"
        raise I2LError(f"There was no notification: {reason}")
