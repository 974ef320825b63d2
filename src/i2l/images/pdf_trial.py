"""Draw pages that a formula may have forged in a process that has nothing to lose, before anyone else does.

A formula with a process of its own can hand in any bytes as its page. The child that draws them first can
open no file and start nothing, and its time and memory are limited; what it survives may be drawn elsewhere.
"""

import contextlib
import os
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Final

from i2l.errors import require_extra
from i2l.images.confine import confine, landlock_version, make_ruleset
from i2l.images.sandbox import guard

TIMEOUT, TOO_LARGE = "timeout", "too-large"

_DPI: Final = 300
_MAX_PIXELS: Final = 1 << 26
_MEMORY_BYTES: Final = 2 << 30
_WALL_START_S: Final = 30
_WALL_PER_CPU: Final = 10
_CHILD: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; from i2l.images.pdf_trial import draw_all; draw_all()"
)


def try_pdfs(pdfs: Sequence[bytes], *, cpu_s: int) -> list[str | None]:
    """The reason why each one-page PDF must not be drawn, or None if drawing it is harmless.

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
    """How many of the PDFs a child has drawn before it ended, and by which signal it ended."""
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
        with guard(process, Path(folder), wall_s=wall_s, max_bytes=_MEMORY_BYTES):
            status = process.wait()
        told.seek(0)
        return min(len(pdfs), len(told.read())), -status


def draw_all() -> None:
    """Draw the PDFs on standard input, each after its length, and write a byte for each: the child's work."""
    import resource

    raw = require_extra("pypdfium2.raw", "data")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
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
