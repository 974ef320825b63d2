"""The reader in the background: answers its owner alone, survives bad requests, ends when nobody needs it."""

import os
import stat
import subprocess
import sys
import threading
import time
from multiprocessing.connection import Client
from pathlib import Path

import pytest

from i2l.desktop import resident
from i2l.desktop.resident import Answer, ReadingError, Resident, ResidentError, ask, is_running
from i2l.errors import I2LError
from tests.desktop.conftest import ROOT, until

ANSWER = Answer("x^{2}", ("x", "^", "{", "2", "}"), 0.9, None)


@pytest.fixture
def reads(monkeypatch):
    """Stands for a model: knows one picture, refuses another, breaks over a third."""

    def read(reader, picture):
        if picture == b"no formula":
            raise I2LError("This does not look like a formula.")
        if picture == b"broken":
            raise RuntimeError("a fault of ours")
        if picture == b"slow":
            time.sleep(1.5)
        return ANSWER

    monkeypatch.setattr(resident, "read_picture", read)


@pytest.fixture
def serving(reads, monkeypatch):
    """A resident reader in a thread."""
    monkeypatch.setattr(resident, "LOOK_S", 0.1)
    threads = []

    def serve(idle_s=0.6):
        thread = threading.Thread(target=Resident(None, resident._address_file(None), idle_s=idle_s).serve)
        thread.start()
        threads.append(thread)
        until(lambda: is_running(None), "the reader did not start")
        return thread

    yield serve
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_a_picture_in_an_answer_out(serving):
    serving()
    assert ask(b"formula", None) == ANSWER
    with pytest.raises(ReadingError, match="not look like a formula"):
        ask(b"no formula", None)
    assert ask(b"formula", None) == ANSWER


def test_it_ends_when_nobody_asks_and_leaves_nothing_behind(serving):
    thread = serving(idle_s=0.4)
    thread.join(30)
    assert not thread.is_alive()
    assert not is_running(None)
    assert list(resident.owned_folder().iterdir()) == []
    with pytest.raises(ResidentError):
        ask(b"formula", None)


def test_it_ends_in_peace_where_its_file_vanishes_at_the_last_moment(serving, monkeypatch):
    found = Resident._is_found

    def found_and_gone(self, address):
        if time.monotonic() < self._last + self._idle_s:
            return found(self, address)
        self._file.unlink()
        return True

    thread = serving(idle_s=0.4)
    monkeypatch.setattr(Resident, "_is_found", found_and_gone)
    faults = []
    monkeypatch.setattr(threading, "excepthook", faults.append)
    thread.join(30)
    assert (thread.is_alive(), faults) == (False, [])


def test_a_folder_whose_path_is_too_long_for_a_socket(serving, monkeypatch, tmp_path):
    long = tmp_path / ("long" * 20) / ("longer" * 10)
    long.mkdir(parents=True, mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    thread = serving(idle_s=0.4)
    folder = Path(resident._address_file(None).read_text()).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert ask(b"formula", None) == ANSWER
    thread.join(30)
    assert not folder.exists()
    assert list(resident.owned_folder().iterdir()) == []


def test_a_long_reading_is_not_idleness(serving):
    serving(idle_s=0.7)
    assert ask(b"slow", None) == ANSWER


def test_bad_clients_keep_nobody_out(serving, monkeypatch):
    monkeypatch.setattr(resident, "PATIENCE_S", 0.2)
    monkeypatch.setattr(resident, "MAX_BYTES", 1000)
    monkeypatch.setattr("traceback.print_exc", lambda: None)
    serving(idle_s=2)
    address = resident._address_file(None).read_text()
    silent = Client(address)
    Client(address).close()
    with pytest.raises(ResidentError, match="lost"):
        ask(b"broken", None)
    with pytest.raises(ResidentError):
        ask(b"x" * 100_000, None)
    garbled = Client(address)
    os.write(garbled.fileno(), b"\xff\xff")
    garbled.close()
    assert ask(b"formula", None) == ANSWER
    silent.close()


def test_only_its_owner_may_come_in(serving):
    serving()
    folder = resident.owned_folder()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    with pytest.raises(ResidentError, match="only you"):
        ask(b"formula", None)
    folder.chmod(0o700)


def test_a_folder_put_there_by_somebody_else(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = resident.owned_folder()
    assert folder == tmp_path / f"i2l-{os.getuid()}"
    folder.rmdir()
    (tmp_path / "theirs").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "theirs")
    with pytest.raises(ResidentError):
        resident.owned_folder()


def test_of_two_the_later_is_found_and_the_earlier_ends(serving):
    first = serving(idle_s=60)
    address = resident._address_file(None).read_text()
    second = serving(idle_s=2)
    until(lambda: resident._address_file(None).read_text() != address, "the second did not take over")
    first.join(30)
    assert not first.is_alive()
    assert second.is_alive()
    assert ask(b"formula", None) == ANSWER


def test_another_model_or_the_model_written_again_has_another_address(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    before = resident._address_file(str(model))
    assert before != resident._address_file(None)
    os.utime(model, ns=(1, 1))
    assert resident._address_file(str(model)) != before


def test_without_an_answer_this_process_reads(serving, monkeypatch):
    monkeypatch.setattr("traceback.print_exc", lambda: None)
    monkeypatch.setattr(resident, "load_in_background", lambda model: lambda picture: "read here")
    assert resident.reads_here_or_there(None, resident=False)(b"formula") == "read here"
    serving(idle_s=1)
    read = resident.reads_here_or_there(None, resident=False)
    assert read(b"formula") == ANSWER
    assert read(b"broken") == "read here"


def test_one_that_cannot_start_is_not_waited_for(reads, monkeypatch):
    monkeypatch.setattr(resident, "load_in_background", lambda model: lambda picture: "read here")
    read = resident.reads_here_or_there("no-such-model", resident=True)
    started = time.monotonic()
    assert read(b"formula") == "read here"
    assert time.monotonic() - started < resident.START_S


def test_a_real_one_reads_and_is_told_to_go_or_killed(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    picture = (ROOT / "examples" / "2-times-small.png").read_bytes()
    for kill, left in ((False, 0), (True, 2)):
        process = resident.start(None, idle_s=60)
        answer = ask(picture, None, process)
        assert answer.latex.startswith("P(A_{i}")
        assert resident.start(None) is None
        mode = Path(resident._address_file(None).read_text()).stat().st_mode
        assert stat.S_ISSOCK(mode)
        assert not mode & 0o077
        process.kill() if kill else process.terminate()
        process.wait(30)
        assert not is_running(None)
        assert len(list(resident.owned_folder().iterdir())) == left


def test_asking_needs_neither_numpy_nor_the_model():
    code = "import i2l.desktop.snip, i2l.desktop.resident, sys; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert not set(done.stdout.split()) & {"numpy", "onnxruntime", "PIL", "tkinter", "rich"}


def test_a_person_may_choose_while_the_model_loads(monkeypatch):
    """Loading does not hold up what comes next, and a reading waits for it."""
    loaded = threading.Event()

    def load(model):
        assert loaded.wait(60)
        return f"reader of {model}"

    monkeypatch.setattr("i2l.inference.reader.Reader", load)
    monkeypatch.setattr(resident, "read_picture", lambda reader, picture: (reader, picture))
    found = []
    thread = threading.Thread(target=lambda: found.append(resident.load_in_background("a")))
    thread.start()
    thread.join(30)
    came_back = bool(found)
    loaded.set()
    thread.join(30)
    assert came_back
    assert found[0](b"picture") == ("reader of a", b"picture")
