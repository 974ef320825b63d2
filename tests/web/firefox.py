"""Firefox, driven over its own Marionette protocol: no driver is needed beside what Debian's package has."""

import json
import shutil
import socket
import subprocess
import time

START_S = 90
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # WebDriver's name for a reference to an element
PREFERENCES = {
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.enabled": False,
    "intl.accept_languages": "en",
    "dom.serviceWorkers.testing.enabled": False,
}


class Firefox:
    """One Firefox without a window."""

    def __init__(self, folder):
        """Start it with a profile of its own in a folder."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        lines = [f'user_pref("{name}", {json.dumps(value)});' for name, value in PREFERENCES.items()]
        (folder / "user.js").write_text("\n".join([*lines, f'user_pref("marionette.port", {port});']))
        self._process = subprocess.Popen(
            [shutil.which("firefox-esr"), "--headless", "--marionette", "--profile", folder, "--no-remote"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._number = 0
        self._socket = self._connect(port)
        self._receive()  # it says its version first
        self("WebDriver:NewSession", capabilities={"alwaysMatch": {"timeouts": {"script": 120_000}}})

    def _connect(self, port):
        end = time.monotonic() + START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=180)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def _receive(self):
        length = b""
        while (byte := self._socket.recv(1)) != b":":
            length += byte
        content = b""
        while len(content) < int(length):
            content += self._socket.recv(int(length) - len(content))
        return json.loads(content)

    def __call__(self, command, **parameters):
        """Send a command of WebDriver; give its value."""
        self._number += 1
        message = json.dumps([0, self._number, command, parameters]).encode()
        self._socket.sendall(f"{len(message)}:".encode() + message)
        _, _, error, value = self._receive()
        assert error is None, error["message"]
        return value.get("value") if isinstance(value, dict) else value

    def open(self, address):
        self("WebDriver:Navigate", url=address)

    def run(self, script, *values):
        return self("WebDriver:ExecuteScript", script=script, args=list(values))

    def wait(self, script, *values, seconds=120):
        """Wait until a script gives something true; give that."""
        end = time.monotonic() + seconds
        while not (found := self.run(script, *values)):
            assert time.monotonic() < end, script
            time.sleep(0.1)
        return found

    def choose_file(self, selector, path):
        found = self("WebDriver:FindElement", using="css selector", value=selector)
        self("WebDriver:ElementSendKeys", id=found[ELEMENT], text=str(path))

    def stop(self):
        self._socket.close()
        self._process.terminate()
        self._process.wait(30)
