"""What a program that was started in isolation can reach, and what happens where there is no isolation."""

import errno
import os
import platform
import struct
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from i2l.rendering import isolation, sandbox, tex
from i2l.rendering.isolation import SHELL, Bubblewrap, Landlock, find_isolation, holds, reach_of, start_bare
from i2l.rendering.render import render_formulas
from i2l.rendering.sandbox import run_tex
from i2l.rendering.styles import PAPER
from i2l.rendering.tex import document, formula_lines

pytestmark = pytest.mark.tex

LOOP = document(PAPER, [formula_lines(0, r"\loop\iftrue\repeat")], trusted=False)


class Nothing:
    """No isolation at all."""

    name = "nothing"
    start = staticmethod(start_bare)


@pytest.fixture(params=[Landlock, Bubblewrap], ids=["landlock", "bubblewrap"])
def mechanism(request):
    if not holds(request.param()):
        pytest.skip(f"{request.param.name} does not work here")
    return request.param()


@pytest.fixture
def unprotected(monkeypatch):
    for module in (isolation, sandbox):
        monkeypatch.setattr(module, "find_isolation", lambda: None)


def shell(mechanism, folder, script, *words):
    """The exit status and the words of a shell script in isolation."""
    with (folder / "said").open("w+b") as said:
        reach = replace(reach_of(SHELL), folder=str(folder))
        command = [SHELL, "-c", script, "sh", *words]
        status = mechanism.start(command, reach, env={}, stdout=said.fileno()).wait()
        said.seek(0)
        return status, said.read().decode()


def test_this_machine_isolates():
    """Without it no test below and no formula that acts means anything here."""
    assert find_isolation() is not None


def test_the_probe_notices_what_does_not_isolate():
    assert not holds(Nothing())


def test_a_mechanism_that_cannot_start_does_not_hold():
    class Broken:
        name = "broken"

        def start(self, *_, **__):
            raise OSError(errno.EPERM, "no")

    assert not holds(Broken())


def test_a_program_reaches_its_own_folder_and_nothing_else(mechanism, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "outside").write_text("canary\n")
    own = tmp_path / "own"
    own.mkdir()
    script = 'echo x > written; read -r line < written; echo "$line"'
    assert shell(mechanism, own, script) == (0, "x\n")
    hidden = [
        tmp_path / "outside",
        "../outside",
        "/etc/passwd",
        "/proc/self/environ",
        f"/proc/{os.getpid()}/environ",
        "/proc/1/cmdline",
        "/dev/zero",
        "/dev/tty",
    ]
    script = 'for name; do read -r line < "$name" && echo "read $name"; done'
    assert shell(mechanism, own, script, *map(str, hidden))[1] == ""
    for place in (tmp_path / "new", "../new", tmp_path / "outside"):
        shell(mechanism, own, 'echo x > "$1"', str(place))
    assert sorted(os.listdir(tmp_path)) == ["outside", "own"]
    assert (tmp_path / "outside").read_text() == "canary\n"


def test_a_program_starts_no_other(mechanism, tmp_path):
    assert shell(mechanism, tmp_path, "/bin/cat said || /usr/bin/env || ! echo none")[1] == "none\n"


def test_isolation_changes_no_byte(mechanism, monkeypatch):
    pdfs = []
    for chosen in (mechanism, None):
        monkeypatch.setattr(sandbox, "find_isolation", lambda chosen=chosen: chosen)
        pdfs.append(tex.compile_formulas([r"\frac{x}{y}", r"\mathcal{A}_1"]).pdf)
    assert pdfs[0]
    assert pdfs[0] == pdfs[1]


def confined(code, *, no_files=False):
    """What a Python process says that has given up its rights after its imports."""
    imports = "import socket; from i2l.rendering.confine import confine"
    code = f"{imports}; confine(None, no_files={no_files})\n{code}"
    command = [sys.executable, "-c", code]
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stderr


def test_a_confined_process_has_no_network_and_no_powers():
    assert "PermissionError" in confined("socket.socket()")
    assert "PermissionError" in confined("socket.socketpair()")
    assert not confined("open('/proc/self/status').read()")
    no_powers = "assert 'CapEff:\\t0000000000000000' in open('/proc/self/status').read()"
    assert not confined(no_powers)


def test_a_confined_process_without_files_opens_and_starts_nothing():
    assert "PermissionError" in confined("open('/proc/self/status')", no_files=True)
    assert "PermissionError" in confined("import os; os.fork()", no_files=True)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only these processors have such calls")
def test_calls_by_the_numbers_of_another_kind_are_refused():
    """A socket by the number that x32 has for it: without the filter the kernel would look at it."""
    call = "import ctypes; ctypes.CDLL(None, use_errno=True).syscall(0x40000000 + 41, 1, 1, 0)"
    assert "EPERM" in confined(f"{call}; import errno; raise OSError(errno.errorcode[ctypes.get_errno()])")


def test_what_tries_pages_has_little_and_can_start_nothing():
    """Asked while it draws, in the place of drawing."""
    code = """
import os, resource, signal, sys
from i2l.rendering import sandbox
def look(raw, pdf):
    tried = []
    for act in (os.fork, lambda: open("/proc/self/status"), lambda: open(os.devnull)):
        try:
            act()
            tried.append("done")
        except PermissionError:
            tried.append("refused")
    memory = resource.getrlimit(resource.RLIMIT_AS)[0]
    print(pdf, tried, memory, 0 < signal.getitimer(signal.ITIMER_PROF)[0] < 8, file=sys.stderr)
sandbox._draw = look
sys.argv[1:] = ["7"]
sandbox.draw_all()
"""
    given = struct.pack("Q", 3) + b"one" + struct.pack("Q", 3) + b"two"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        input=given,
        capture_output=True,
        check=False,
    )
    refused = "['refused', 'refused', 'refused']"
    assert done.stderr.decode().splitlines() == [
        f"b'{pdf}' {refused} {sandbox._TRIAL_MEMORY_BYTES} True" for pdf in ("one", "two")
    ]
    assert done.stdout == b".."


def test_only_a_plain_file_is_taken_for_the_page(tmp_path):
    page, link = tmp_path / "page", tmp_path / "link"
    page.write_bytes(b"page")
    link.symlink_to(page)
    assert [sandbox._read(path, 3) for path in (page, link, tmp_path, tmp_path / "none")] == [
        b"pag",
        b"",
        b"",
        b"",
    ]


def test_without_isolation_formulas_that_can_act_are_refused(unprotected, monkeypatch):
    users = []

    def start(command, reach, **options):
        process = start_bare(command, reach, **options)
        users.append(os.stat(f"/proc/{process.pid}").st_uid)
        return process

    monkeypatch.setattr(sandbox, "start_bare", start)
    plain, wild = render_formulas([r"\alpha_1", r"\def\y{y}\y"])
    assert plain.pixels is not None
    assert (wild.reason, wild.pixels) == ("refused", None)
    assert "only in isolation" in wild.message
    assert "apt-get install bubblewrap" in wild.message
    assert users
    assert 0 not in users  # never as root
    with pytest.raises(isolation.IsolationError):
        run_tex(LOOP, trusted=False)


def test_tex_has_little_memory(monkeypatch):
    """Its tables alone take more than this; without the limit the page appears."""
    source = document(PAPER, [formula_lines(0, "x")])
    assert run_tex(source, trusted=True).pdf
    monkeypatch.setattr(sandbox, "_MEMORY_BYTES", 1 << 25)
    assert not run_tex(source, trusted=True).pdf


def test_tex_is_ended_at_its_deadline(monkeypatch):
    """CPU seconds may come slowly, or not at all."""
    monkeypatch.setattr(sandbox, "_WALL_START_S", 1)
    monkeypatch.setattr(sandbox, "_WALL_PER_CPU", 0)
    start = time.monotonic()
    assert run_tex(LOOP, trusted=False, cpu_s=150).timed_out
    assert time.monotonic() - start < 120


def test_tex_that_floods_its_folder_is_ended(tmp_path):
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    for number in range(100):
        (tmp_path / str(number)).touch()  # empty, but each takes its place
    with sandbox.guard(process, tmp_path, wall_s=60, max_bytes=99 * 4096) as overfull:
        assert process.wait() < 0
    assert overfull.is_set()


def test_no_room_is_an_error_at_once(monkeypatch):
    monkeypatch.setattr(sandbox, "MIN_FREE_BYTES", 1 << 62)
    runs = []
    monkeypatch.setattr(tex, "run_tex", lambda *a, **k: runs.append(a) or run_tex(*a, **k))
    with pytest.raises(OSError, match="no room for TeX") as caught:
        render_formulas(["x", "y"])
    assert caught.value.errno == errno.ENOSPC
    assert len(runs) == 1
