"""What the pages say can be typed: every command is run in a small world, or named with the reason."""

import os
import re
import shutil
import signal
import subprocess
from contextlib import ExitStack, contextmanager

import pytest
from filelock import FileLock

from tests.documented import (
    NOT_RUN,
    PAGES,
    ROOT,
    clear_target,
    commands_of,
    environment,
    make_world,
    python_of,
    run,
)

WITH_COMMANDS = [page for page in PAGES if commands_of(page)]


def name(page):
    return str(page.relative_to(ROOT))


def test_the_pages_have_commands():
    assert {"README.md", "docs/reading.md", "docs/training.md"} <= {name(page) for page in WITH_COMMANDS}
    readme = [command.text.split("#")[0].strip() for command in commands_of(ROOT / "README.md")]
    assert readme[:3] == ["make demo", "make test", "i2l read examples/2-times-small.png"]
    joined = [
        command.text for command in commands_of(ROOT / "docs" / "training.md") if "fast.yaml" in command.text
    ]
    assert len(joined) == 1
    assert "--preset nopool" in joined[0]


def test_what_is_not_run_stands_on_a_page():
    texts = [command.text for page in PAGES for command in commands_of(page)]
    assert [start for start in NOT_RUN if not any(text.startswith(start) for text in texts)] == []


def test_every_option_on_the_pages_exists():
    """Also of commands that stand within a sentence."""
    import typer.main

    from i2l.cli import app

    group = typer.main.get_command(app)
    wrong = []
    for page in PAGES:
        inline = re.findall(r"`(i2l [^`]*)`", page.read_text(encoding="utf-8").replace("\n", " "))
        for text in [*inline, *(command.text for command in commands_of(page))]:
            for part in re.findall(r"\bi2l ([a-z][a-z-]*)((?: [^|`#]*)?)", text):
                command = group.commands.get(part[0])
                if command is None:
                    wrong.append(f"{name(page)}: there is no i2l {part[0]}")
                    continue
                known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {
                    "--help"
                }
                used = set(re.findall(r"(?<= )--?[a-z][a-z-]*", part[1]))
                wrong += [f"{name(page)}: i2l {part[0]} has no {option}" for option in used - known]
    assert not wrong


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """One for all worker processes of a test run."""
    root = tmp_path_factory.getbasetemp()
    root = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    folder = root / "world"
    with FileLock(root / "world.lock"):
        if not folder.exists():
            partial = root / "world.partial"
            partial.mkdir()
            make_world(partial)
            partial.rename(folder)
    return folder


@pytest.fixture
def own_world(world, tmp_path):
    shutil.copytree(world, tmp_path / "world", symlinks=True)
    return tmp_path / "world"


@contextmanager
def serving(command, folder):
    """A server as a page starts it, but here and on a port that is free: comes up, and ends when told to."""
    here = command.split(" #")[0].replace("0.0.0.0", "127.0.0.1")
    process = subprocess.Popen(
        ["bash", "-c", f"exec env {here} --no-browser --port 0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(folder),
    )
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "reads at" in line:
            break
    else:
        raise AssertionError("".join(lines))
    yield re.search(r"127\.0\.0\.1:\d+", line)[0]
    process.terminate()
    status = process.wait(60)
    process.stdout.close()
    assert status in (0, -signal.SIGTERM), "".join(lines)  # uvicorn passes the signal on when all is done


@pytest.mark.slow
@pytest.mark.tex
@pytest.mark.timeout(900)  # the first one also makes the world
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_the_commands_of_a_page_run(page, own_world):
    with ExitStack() as servers:
        address = None
        for command in commands_of(page):
            text = command.small
            if command.why_not:
                continue
            if re.search(r"\bi2l serve\b", text):
                with serving(text, own_world):
                    continue
            if text.startswith("curl "):
                address = address or servers.enter_context(serving("i2l serve", own_world))
                text = text.replace("localhost:8501", address).replace("curl", "curl -sSf", 1)
            clear_target(text, own_world)
            printed = run(text, own_world)
            if command.printed is not None:
                assert printed.strip() == command.printed.strip(), f"{name(page)}:{command.line}"


@pytest.mark.slow
@pytest.mark.tex
@pytest.mark.timeout(900)  # the first one also makes the world
@pytest.mark.parametrize("page", [page for page in PAGES if python_of(page)], ids=name)
def test_the_python_of_a_page_runs(page, own_world):
    (own_world / "page.py").write_text("\n".join(["paths = ['one.png', 'two.png']", *python_of(page)]))
    run("HF_HUB_OFFLINE=1 python page.py", own_world)
