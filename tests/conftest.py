"""A real browser for the tests of pages: one for all, since Playwright runs once in a process."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """Chromium, without a window; `make test` installs it."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no Chromium: apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield chromium
        chromium.close()
