"""What the tests of the static site share: where it is made, and a server of files that can be shut off."""

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "site"


def node():
    """The command of Node, which comes with the packages of this environment."""
    if not (RECIPE / "node_modules" / ".done").is_file():
        pytest.skip("the packages of the site are missing: make site-packages")
    return (
        [Path(sys.executable).parent / "node"]
        if (Path(sys.executable).parent / "node").exists()
        else ["node"]
    )


class Quiet(http.server.SimpleHTTPRequestHandler):
    """As `python -m http.server`; counts what was asked."""

    asked: list[str]

    def log_message(self, *_):
        self.asked.append(self.path)


class FileServer:
    """Serves a folder until it is told to stop."""

    def __init__(self, folder):
        self.asked = []
        handler = functools.partial(type("Counting", (Quiet,), {"asked": self.asked}), directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def stop(self):
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def copy_site(site, folder):
    """Copy the site to where a test may change it; under a path, as that of a project."""
    target = folder / "projects" / "formulas"
    shutil.copytree(site, target)
    return target
