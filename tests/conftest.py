"""What all tests share: one thread a process, and a browser, since Playwright runs once in a process."""

import asyncio
import os
import shutil

import pytest

# Tests multiply small matrices, in a process for each processor: more threads would wait for each other. Set
# before torch is loaded, and for all that is started.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def without_the_loop_of_the_browser(request):
    """Let tests run event loops of their own, whichever tests came before.

    As long as the browser is open, Playwright's loop counts as running in this thread, though it only turns
    while the browser is asked for something; `asyncio.run` refuses to run beside it.
    """
    running = asyncio._get_running_loop()
    if running is None or "browser" in request.fixturenames:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(running)


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
