"""Start a program that reaches nothing but what it is given: by Landlock, else by bubblewrap.

The operating system holds the line, so it does not matter what the program is talked into: every other file,
`/proc`, the devices and the network are out of its reach. A mechanism counts as working only after a shell
started by it has failed to read a file outside, once for each process.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from i2l.errors import I2LError
from i2l.rendering import confine

SHELL: Final = "/bin/sh"
_LOADER_CACHE: Final = "/etc/ld.so.cache"
_LIBRARY: Final = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(", re.MULTILINE)
_NOBODY: Final = 65534
# Reads the file inside, and must fail at the file outside; both by what is built into the shell.
_PROBE: Final = 'read -r line < inside && ! read -r line < "$1"'


class IsolationError(I2LError):
    """The operating system offers no way to run a formula that could act."""

    def __init__(self) -> None:
        super().__init__(
            "This formula can act, not only draw, and TeX runs such formulas only in isolation, which needs"
            " Landlock (Linux 5.13 or newer) or bubblewrap (apt-get install bubblewrap): neither works here."
        )


@dataclass(frozen=True)
class Reach:
    """All that a program may touch."""

    programs: tuple[str, ...]  # may be started and read
    readable: tuple[str, ...]  # files, or folders with all that is in them
    folder: str = os.devnull  # its own: it works here, and may write


class Isolation(Protocol):
    """A mechanism of the operating system."""

    name: str

    def start(
        self, command: Sequence[str], reach: Reach, *, env: Mapping[str, str], stdout: int
    ) -> "subprocess.Popen[bytes]":
        """Start a command in its folder and in its own session, without input; its errors go nowhere."""


class Landlock:
    """A thread locks itself in and starts the program, which inherits the lock. Costs less than 1 ms."""

    name = "landlock"

    def start(
        self, command: Sequence[str], reach: Reach, *, env: Mapping[str, str], stdout: int
    ) -> "subprocess.Popen[bytes]":
        """Start a command that reaches nothing else."""
        rules = [(path, confine.EXECUTE | confine.READ_FILE) for path in reach.programs]
        rules += [(path, confine.READ) for path in reach.readable]
        own = confine.READ | confine.WRITE_FILE | confine.MAKE_FILE | confine.REMOVE_FILE | confine.TRUNCATE
        ruleset = confine.make_ruleset([*rules, (reach.folder, own)])
        silence = os.open(os.devnull, os.O_RDWR)  # the locked thread could not

        def start_locked() -> "subprocess.Popen[bytes]":
            confine.confine(ruleset)
            return _popen(command, reach, env=env, stdout=stdout, silence=silence)

        try:
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(start_locked).result()
        finally:
            os.close(silence)
            os.close(ruleset)


class Bubblewrap:
    """Namespaces with a file system of their own, made by the program `bwrap`. Costs about 10 ms."""

    name = "bubblewrap"

    def start(
        self, command: Sequence[str], reach: Reach, *, env: Mapping[str, str], stdout: int
    ) -> "subprocess.Popen[bytes]":
        """Start a command that sees nothing else."""
        seen = [*reach.programs, *reach.readable]
        binds = [
            ("--ro-bind-try", path, path) for path in dict.fromkeys([*seen, *map(os.path.realpath, seen)])
        ]
        wrapped = [_bwrap() or "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
        wrapped += [word for bind in binds for word in bind]
        wrapped += ["--bind", reach.folder, reach.folder, "--chdir", reach.folder, "--", *command]
        silence = os.open(os.devnull, os.O_RDWR)
        try:
            return _popen(wrapped, reach, env=env, stdout=stdout, silence=silence)
        finally:
            os.close(silence)


def start_bare(
    command: Sequence[str], reach: Reach, *, env: Mapping[str, str], stdout: int
) -> "subprocess.Popen[bytes]":
    """Start a command without isolation, for input that cannot act; instead of root it runs as nobody.

    Raises:
        OSError: if root may not become nobody here.
    """
    silence = os.open(os.devnull, os.O_RDWR)
    user = None
    if os.geteuid() == 0:
        user = _NOBODY
        os.chown(reach.folder, user, user)
    try:
        return _popen(command, reach, env=env, stdout=stdout, silence=silence, user=user)
    finally:
        os.close(silence)


@cache
def find_isolation() -> Isolation | None:
    """Return the first mechanism that really shuts files out here, or None."""
    mechanisms: list[Isolation] = [Landlock()] if confine.landlock_version() else []
    mechanisms += [Bubblewrap()] if _bwrap() else []
    return next((mechanism for mechanism in mechanisms if holds(mechanism)), None)


def holds(mechanism: Isolation) -> bool:
    """Tell whether a shell started by a mechanism reads the file it is given, and none beside its folder."""
    with tempfile.TemporaryDirectory(prefix="i2l-probe-") as name:
        Path(name).chmod(0o755)  # nothing but the mechanism stands in the way
        outside, own = Path(name) / "outside", Path(name) / "own"
        own.mkdir()
        outside.write_text("canary\n")
        (own / "inside").write_text("known\n")
        reach = replace(reach_of(SHELL), folder=str(own))
        command = [SHELL, "-c", _PROBE, "sh", str(outside)]
        with tempfile.TemporaryFile() as said:
            try:
                process = mechanism.start(command, reach, env={}, stdout=said.fileno())
            except OSError:
                return False
            return process.wait() == 0


@cache
def reach_of(program: str) -> Reach:
    """Find what a program needs to start: itself and its shared libraries, which the loader tells."""
    told = subprocess.run(
        [program],
        env={"LD_TRACE_LOADED_OBJECTS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    libraries = _LIBRARY.findall(told) or ["/lib", "/lib64", "/usr/lib", "/usr/local/lib"]
    loaders = [path for path in libraries if Path(path).name.startswith("ld")]
    return Reach((program, *loaders), (*libraries, _LOADER_CACHE))


@cache
def _bwrap() -> str | None:
    return shutil.which("bwrap")


def _popen(
    command: Sequence[str],
    reach: Reach,
    *,
    env: Mapping[str, str],
    stdout: int,
    silence: int,
    user: int | None = None,
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=reach.folder,
        env=env,
        stdin=silence,
        stdout=stdout,
        stderr=silence,
        start_new_session=True,
        user=user,
        group=user,
        extra_groups=None if user is None else [],
    )
