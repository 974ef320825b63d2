"""Local processes: results, failures, and workers that do not outlive their build."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from i2l.dataset.stages import LocalEngine
from i2l.dataset.work import BuildError


def touch(folder, part):
    (folder / str(part)).write_text(str(os.getpid()))


def fail(part):
    raise BuildError(f"part {part} is bad")


def die(part):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_part_is_done_once(tmp_path, jobs):
    engine = LocalEngine(jobs=jobs, scratch=tmp_path)
    assert sorted(engine.run(partial(touch, tmp_path), [3, 5, 8])) == [3, 5, 8]
    workers = {(tmp_path / name).read_text() for name in "358"}
    assert (workers == {str(os.getpid())}) == (jobs == 1)


@pytest.mark.parametrize(("task", "message"), [(fail, "is bad"), (die, "worker process was killed")])
def test_failures_are_raised(tmp_path, task, message):
    with pytest.raises(BuildError, match=message):
        list(LocalEngine(jobs=2, scratch=tmp_path).run(task, [1, 2]))


PARENT = """
import sys
from functools import partial
from pathlib import Path
from i2l.dataset.stages import LocalEngine
from tests.dataset.test_engines import sleep
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    list(LocalEngine(jobs=2, scratch=folder).run(partial(sleep, folder), [1, 2]))
"""


def sleep(folder, part):
    touch(folder, part)
    time.sleep(60)


def test_workers_end_when_their_build_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, script, tmp_path], env={**os.environ, "PYTHONPATH": str(root)}
    )
    wait_until(lambda: all((tmp_path / name).exists() for name in "12"))
    process.kill()
    process.wait()
    workers = [int((tmp_path / name).read_text()) for name in "12"]
    wait_until(lambda: not any(map(is_alive, workers)))


def wait_until(condition):
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited 30 s in vain")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
