"""Run TeX on text we do not trust, and try the pages it makes before anyone else draws them.

TeX is a programming language that reads and writes files. What keeps it harmless:
  - isolation by the operating system (`i2l.rendering.isolation`): it reaches TeX's own files and a private
    folder that holds only this run's source, and is deleted after it;
  - CPU, memory, file-size and wall-clock limits, and the whole process group killed when one is passed;
  - an environment of a few variables, no shell escape, no font-making scripts, and `openin_any` and
    `openout_any` paranoid. A formula may find a way around these; they are a second fence, not the wall.

A formula with a process of its own can hand in any bytes as its page. So a child process that can open no
file and start nothing, with little time and memory, draws the page first; what it survives may be drawn
elsewhere.
"""

import contextlib
import errno
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, Final

from i2l.errors import MissingDependencyError, require_extra
from i2l.rendering import TIMEOUT, TOO_LARGE
from i2l.rendering.confine import confine, landlock_version, make_ruleset
from i2l.rendering.isolation import SHELL, IsolationError, Reach, find_isolation, reach_of, start_bare
from i2l.rendering.styles import LUALATEX, PDFLATEX

JOB: Final = "formulas"
# The shell sets the limits and becomes TeX: no Python runs between fork and exec, so threads are safe.
_LIMITED: Final = 'ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; ulimit -v "$3"; shift 3; exec "$@"'
_FLAGS: Final = (
    "-interaction=nonstopmode",
    "-no-shell-escape",
    "-no-mktex=tex",
    "-no-mktex=tfm",
    f"-jobname={JOB}",
)
_OWN_FLAGS: Final = {
    PDFLATEX: ("-no-mktex=pk", "-no-parse-first-line"),
    LUALATEX: ("-nosocket",),
}
_FONTS: Final = ("/usr/share/fonts",)  # some of Debian's trees link to it
# The wall limit only catches a process that waits for something; on a busy machine CPU seconds come slowly.
_WALL_START_S: Final = 30
_WALL_PER_CPU: Final = 10
_WATCH_S: Final = 0.2
_BLOCK_BYTES: Final = 4096
_MEMORY_BYTES: Final = 1 << 30  # pdfTeX's own tables take about 120 MB
MIN_FREE_BYTES: Final = 1 << 24  # with less room than this TeX may have failed for want of it


@dataclass(frozen=True)
class TexRunResult:
    """What one process of TeX left behind."""

    said: str  # on its standard output, which is also its log
    pdf: bytes  # empty if there is none
    timed_out: bool
    killed: bool  # by the file-size or the memory limit


@cache
def tex_path(engine: str = PDFLATEX) -> str:
    """Return the path of pdflatex or lualatex.

    Raises:
        MissingDependencyError: if it is not installed.
    """
    path = shutil.which(engine)
    if path is None:
        raise MissingDependencyError(
            f"Rendering needs {engine}. On Debian or Ubuntu: apt-get install texlive-latex-base"
            " texlive-latex-recommended texlive-latex-extra texlive-fonts-recommended lmodern;"
            " elsewhere install TeX Live."
        )
    return path


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{Path(tex_path()).parent}:/usr/bin:/bin",
        "HOME": str(folder),
        "TEXMFHOME": str(folder),
        "TEXMFCONFIG": str(folder),
        "TEXMFVAR": str(folder),
        "TEXMFOUTPUT": str(folder),
        "TEXINPUTS": ".:",  # then the system's trees
        "openin_any": "p",
        "openout_any": "p",
        "shell_escape": "f",
        "max_print_line": "10000",  # one log line per message
        "error_line": "254",
        "half_error_line": "238",
        "SOURCE_DATE_EPOCH": "0",
        "FORCE_SOURCE_DATE": "1",
        "LC_ALL": "C",
    }


def _ask_kpathsea(*words: str) -> str:
    """Ask the program that finds TeX's files; one that is not there is no error."""
    done = subprocess.run(
        [shutil.which("kpsewhich", path=str(Path(tex_path()).parent)) or "kpsewhich", *words],
        env=_environment(Path("/nonexistent")),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


def missing_files(names: Iterable[str]) -> list[str]:
    """Return those of these files that TeX does not find."""
    wanted = list(names)
    found = {Path(line).name for line in _ask_kpathsea(*wanted).splitlines()}
    return [name for name in wanted if name not in found]


@cache
def _tex_reach(engine: str) -> Reach:
    """Find what TeX needs of this machine: its program, and the trees it finds its files in."""
    path = tex_path(engine)
    told = _ask_kpathsea("--expand-braces=$TEXMF:$TEXMFCNF")
    trees = [tree.strip("!\n") for tree in told.split(":")]
    trees = [tree for tree in trees if tree.startswith("/") and tree != "/"]
    parts = [reach_of(SHELL), reach_of(path), Reach((os.path.realpath(path),), (*trees, *_FONTS))]
    return Reach(
        tuple(dict.fromkeys(program for part in parts for program in part.programs)),
        tuple(dict.fromkeys(place for part in parts for place in part.readable)),
    )


def run_tex(
    source: str,
    *,
    trusted: bool,
    engine: str = PDFLATEX,
    files: dict[str, bytes] | None = None,
    draft: bool = False,
    cpu_s: int = 10,
    max_file_bytes: int = 1 << 28,
) -> TexRunResult:
    """Run TeX once on ``source`` in a fresh folder that also holds ``files``; a draft writes no PDF.

    Args:
        source: a whole document.
        trusted: nothing in the source can act: it may run, if need be, where there is no isolation.
        engine: pdflatex, or lualatex. The latter runs Lua too, so its source must be trusted.
        files: content by name.
        draft: write no PDF.
        cpu_s: CPU seconds after which it is killed.
        max_file_bytes: the size of a file at which it is killed.

    Raises:
        MissingDependencyError: if the program is not installed.
        IsolationError: if the source is not trusted and nothing here isolates it.
        OSError: if there is no room for TeX's files.
    """
    isolation = find_isolation()
    if not trusted and (isolation is None or engine != PDFLATEX):
        raise IsolationError
    with tempfile.TemporaryDirectory(prefix="i2l-tex-") as name, tempfile.TemporaryFile() as said:
        folder = Path(os.path.realpath(name))
        (folder / f"{JOB}.tex").write_text(source, encoding="utf-8", errors="backslashreplace")
        for file_name, content in (files or {}).items():
            (folder / file_name).write_bytes(content)
        limits = [str(cpu_s), str(max_file_bytes // 512), str(_MEMORY_BYTES // 1024)]
        flags = [*_FLAGS, *_OWN_FLAGS[engine], *(["-draftmode"] if draft else [])]
        start = isolation.start if isolation else start_bare
        process = start(
            [SHELL, "-c", _LIMITED, "sh", *limits, tex_path(engine), *flags, f"{JOB}.tex"],
            replace(_tex_reach(engine), folder=str(folder)),
            env=_environment(folder),
            stdout=said.fileno(),
        )
        with guard(
            process, folder, wall_s=_WALL_START_S + cpu_s * _WALL_PER_CPU, max_bytes=2 * max_file_bytes
        ) as overfull:
            status = process.wait()
        if shutil.disk_usage(folder).free < MIN_FREE_BYTES:
            raise OSError(errno.ENOSPC, "no room for TeX", tempfile.gettempdir())
        ended_by = -status if status < 0 else status - 128  # bubblewrap tells it as a shell does
        said.seek(0)
        return TexRunResult(
            said=said.read(max_file_bytes).decode("utf-8", "replace"),
            pdf=_read(folder / f"{JOB}.pdf", max_file_bytes),
            timed_out=ended_by in (signal.SIGXCPU, signal.SIGKILL) and not overfull.is_set(),
            killed=overfull.is_set() or ended_by in (signal.SIGXFSZ, signal.SIGSEGV, signal.SIGABRT),
        )


@contextlib.contextmanager
def guard(
    process: subprocess.Popen[bytes], folder: Path, *, wall_s: float, max_bytes: int
) -> Iterator[threading.Event]:
    """Kill the process group when it is over time, or its folder over ``max_bytes`` (the event tells)."""
    done, overfull = threading.Event(), threading.Event()

    def kill() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def watch() -> None:
        deadline = time.monotonic() + wall_s
        while not done.wait(_WATCH_S):
            if _room_taken(folder) > max_bytes:
                overfull.set()
            if overfull.is_set() or time.monotonic() > deadline:
                kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield overfull
    finally:
        done.set()
        watcher.join()
        kill()


def _room_taken(folder: Path) -> int:
    """Count the bytes of the files in a folder; an empty one counts as the block it costs."""
    taken = 0
    for entry in os.scandir(folder):
        with contextlib.suppress(FileNotFoundError):
            taken += max(_BLOCK_BYTES, entry.stat(follow_symlinks=False).st_size)
    return taken


def _read(path: Path, max_bytes: int) -> bytes:
    # A plain file only: the folder belonged to code we do not trust.
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(max_bytes)


_DPI: Final = 300
_MAX_PIXELS: Final = 1 << 26
_TRIAL_MEMORY_BYTES: Final = 2 << 30
_CHILD: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from i2l.rendering.sandbox import draw_all; draw_all()"
)


def try_pdfs(pdfs: Sequence[bytes], *, cpu_s: int) -> list[str | None]:
    """Return the reason why each one-page PDF must not be drawn, or None if drawing it is harmless.

    Raises:
        MissingDependencyError: if pypdfium2 is not installed.
    """
    reasons: list[str | None] = []
    if pdfs:
        require_extra("pypdfium2", "data")
    while len(reasons) < len(pdfs):
        num_drawn, ended_by = _run_child(pdfs[len(reasons) :], cpu_s)
        reasons += [None] * num_drawn
        if len(reasons) < len(pdfs):
            late = ended_by in (signal.SIGPROF, signal.SIGKILL)
            reasons.append(TIMEOUT if late else TOO_LARGE)
    return reasons


def _run_child(pdfs: Sequence[bytes], cpu_s: int) -> tuple[int, int]:
    """Return how many of the PDFs a child drew before it ended, and by which signal it ended."""
    with (
        tempfile.TemporaryDirectory(prefix="i2l-pdf-") as folder,
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as told,
    ):
        for pdf in pdfs:
            given.write(struct.pack("Q", len(pdf)))
            given.write(pdf)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-c", _CHILD, str(cpu_s), *filter(None, map(os.path.abspath, sys.path))],
            cwd=folder,
            env={},
            stdin=given,
            stdout=told,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        wall_s = _WALL_START_S + len(pdfs) * cpu_s * _WALL_PER_CPU
        with guard(process, Path(folder), wall_s=wall_s, max_bytes=_TRIAL_MEMORY_BYTES):
            status = process.wait()
        told.seek(0)
        return min(len(pdfs), len(told.read())), -status


def draw_all() -> None:
    """Draw the PDFs on standard input, each after its length, and write a byte for each: the child's work."""
    import resource

    raw = require_extra("pypdfium2.raw", "data")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_TRIAL_MEMORY_BYTES, _TRIAL_MEMORY_BYTES))
    with contextlib.ExitStack() as stack:
        ruleset = make_ruleset([]) if landlock_version() else None
        if ruleset is not None:
            stack.callback(os.close, ruleset)
        confine(ruleset, no_files=True)
    while pdf := _next_pdf(sys.stdin.buffer):
        signal.setitimer(signal.ITIMER_PROF, int(sys.argv[1]))  # its signal ends the process
        _draw(raw, pdf)
        os.write(1, b".")


def _next_pdf(given: IO[bytes]) -> bytes:
    head = given.read(8)
    return given.read(struct.unpack("Q", head)[0]) if head else b""


def _draw(raw: ModuleType, pdf: bytes) -> None:
    document = raw.FPDF_LoadMemDocument64(pdf, len(pdf), None)
    page = raw.FPDF_LoadPage(document, 0)
    width, height = raw.FPDF_GetPageWidthF(page), raw.FPDF_GetPageHeightF(page)
    scale = min(_DPI / 72, (_MAX_PIXELS / max(1.0, width * height)) ** 0.5)
    size = max(1, int(width * scale)), max(1, int(height * scale))
    bitmap = raw.FPDFBitmap_CreateEx(*size, raw.FPDFBitmap_Gray, None, 0)
    raw.FPDF_RenderPageBitmap(bitmap, page, 0, 0, *size, 0, 0)
    raw.FPDFBitmap_Destroy(bitmap)
    raw.FPDF_ClosePage(page)
    raw.FPDF_CloseDocument(document)
