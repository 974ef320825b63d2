"""A picture in, an answer out, by this process or by a reader that stays in the background.

An answer is what the desktop shows of a reading: texts, and how sure they are. Only the process that reads
needs numpy and the model; whoever shows an answer starts without them.

The reader that stays is a process with the model loaded, which ends when nobody needs it. It listens at a
Unix socket (a named pipe on Windows) in a folder that only its owner may enter. A file there says where: each
process has an address of its own, so one that was killed is in nobody's way, and of two that start at once
the later is found and the earlier ends. One request is one picture, the answer is JSON.
"""

import argparse
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from hashlib import sha256
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from i2l import __version__
from i2l.errors import I2LError
from i2l.files import atomic_write

if TYPE_CHECKING:
    from i2l.inference.reader import Reader

Read = Callable[[bytes], "Answer"]  # reads a picture


@dataclass(frozen=True)
class Answer:
    """One picture, read."""

    latex: str
    tokens: tuple[str, ...]
    confidence: float  # that all of it is right
    doubt: str | None  # what a person should know before using it

    def text(self, output: str) -> str:
        """Write it in one of `output_formats()`.

        Raises:
            FormatError: if it cannot be expressed in that format.
        """
        if output == "latex":  # whoever asks for no more need not wait until all formats are loaded
            return self.latex
        if output == "tokens":
            return " ".join(self.tokens)
        from i2l.formats.convert import write_formula

        return write_formula(self.latex, output)  # type: ignore[arg-type] # it says so if unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Answer":
        """Make it of what `to_dict` gave."""
        return cls(**{**content, "tokens": tuple(content["tokens"])})


def output_formats() -> tuple[str, ...]:
    """Name the formats that a reading can be written in, LaTeX first."""
    from i2l.formats.convert import TEXT_FORMATS

    return TEXT_FORMATS


def check_format(output: str) -> str:
    """Return the name of a format, if there is such a format.

    Raises:
        I2LError: if there is not; the message names those that there are.
    """
    if output != "latex" and output not in output_formats():
        raise I2LError(f"There is no format {output!r}; choose one of {', '.join(output_formats())}.")
    return output


def read_picture(reader: "Reader", picture: bytes) -> Answer:
    """Read a picture.

    Raises:
        ImageError: if it cannot be read.
    """
    from i2l.inference.reading import find_doubt

    reading = reader.read(picture)
    doubt = " ".join(filter(None, (find_doubt(reading), reading.note))) or None
    return Answer(reading.latex, reading.tokens, reading.confidence, doubt)


def load_in_background(model: str | None) -> Read:
    """Begin to load a model, and give what reads a picture with it as soon as it is there.

    A person takes longer to choose a region than a model to load.
    """

    def load() -> "Reader":
        from i2l.inference.reader import Reader

        return Reader(model)

    pool = ThreadPoolExecutor(1)
    loading = pool.submit(load)
    pool.shutdown(wait=False)
    return lambda picture: read_picture(loading.result(), picture)


IDLE_S: Final = 15 * 60
START_S: Final = 30  # that one may take to start before others stop waiting
ANSWER_S: Final = 60  # that a reading may take
PATIENCE_S: Final = 5  # that a client may be silent
LOOK_S: Final = 10  # between looks whether another one has taken over
MAX_BYTES: Final = 256 * 2**20  # of a picture
MAX_ADDRESS: Final = 100  # bytes; a Unix socket's path may have 103 (macOS) or 107 (Linux)


class ResidentError(I2LError):
    """The reader in the background does not answer."""


class ReadingError(I2LError):
    """The reader in the background could not read the picture; the message says why."""


def owned_folder() -> Path:
    """Give the folder of the addresses, which only its owner may enter; it is made if it is not there.

    Raises:
        ResidentError: if somebody else may.
    """
    if sys.platform == "win32":
        folder = Path(os.environ["LOCALAPPDATA"]) / "i2l"
        folder.mkdir(parents=True, exist_ok=True)
        return folder  # what is in there is the user's own
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(runtime) / "i2l" if runtime else Path(tempfile.gettempdir()) / f"i2l-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise ResidentError(f"{folder} must be a folder that only you may enter; remove it.")
    return folder


def _address_file(model: str | None) -> Path:
    """Give the file that says where the reader with a model listens; another version has another one."""
    kind = [__version__, str(Path(__file__).parent), sys.executable]
    if model is not None:  # a name, or a folder, whose files may be written again
        path = Path(model)
        kind += [model, str(path.absolute()), str(path.stat().st_mtime_ns) if path.exists() else ""]
    return owned_folder() / f"reader-{sha256(json.dumps(kind).encode()).hexdigest()[:12]}"


def _connect(file: Path) -> "Connection[Any, Any] | None":
    """Connect with the reader whose address is in a file, if there is one."""
    try:
        return Client(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never started, or killed
        return None


def is_running(model: str | None) -> bool:
    """Tell whether a reader with this model listens."""
    connection = _connect(_address_file(model))
    if connection is not None:
        connection.close()
    return connection is not None


def ask(picture: bytes, model: str | None, starting: "subprocess.Popen[bytes] | None" = None) -> Answer:
    """Let the reader in the background read a picture.

    Args:
        picture: an image file.
        model: that it was started with.
        starting: one that was just started, to wait for; None if one is running.

    Raises:
        ReadingError: if the picture cannot be read.
        ResidentError: if there is no such reader, or it is lost on the way.
    """
    file = _address_file(model)
    give_up = time.monotonic() + START_S
    while (connection := _connect(file)) is None:
        if starting is None or starting.poll() is not None or time.monotonic() >= give_up:
            raise ResidentError("No reader in the background answers.")
        time.sleep(0.02)
    with connection:
        try:
            connection.send_bytes(picture)
            if not connection.poll(ANSWER_S):
                raise ResidentError(f"The reader in the background did not answer within {ANSWER_S} seconds.")
            content = json.loads(connection.recv_bytes())
        except (OSError, EOFError, ValueError) as error:
            raise ResidentError(f"The reader in the background was lost ({error}).") from error
    if "error" in content:
        raise ReadingError(content["error"])
    return Answer.from_dict(content)


def start(model: str | None, *, idle_s: float = IDLE_S) -> "subprocess.Popen[bytes] | None":
    """Start a reader in the background, unless one listens already; do not wait for it."""
    if is_running(model):
        return None
    arguments = ["--idle-s", str(idle_s), *(["--model", model] if model is not None else [])]
    detached: dict[str, Any] = {"start_new_session": True}
    if sys.platform == "win32":
        detached = {"creationflags": subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "i2l.desktop.resident", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **detached,
    )


def reads_here_or_there(model: str | None, *, resident: bool) -> "Read":
    """Give what reads a picture: the reader in the background, or this process, which begins to load.

    Args:
        model: as in `Reader`.
        resident: start a reader in the background if none is running.
    """
    starting = start(model) if resident else None
    if not resident and not is_running(model):
        return load_in_background(model)

    def read(picture: bytes) -> Answer:
        try:
            return ask(picture, model, starting)
        except ResidentError:
            return load_in_background(model)(picture)

    return read


class Resident:
    """The process in the background: answers one picture after the other, and ends after a while without."""

    def __init__(self, reader: "Reader", file: Path, *, idle_s: float = IDLE_S) -> None:
        self._reader = reader
        self._file = file
        self._idle_s = idle_s
        self._last = time.monotonic()  # when it was last needed
        self._ended = False

    def serve(self) -> None:
        """Answer until nobody has asked for a while, or another process has taken over."""
        address = self._new_address()
        with Listener(address) as listener:
            with atomic_write(self._file) as file:
                file.write(address)
            try:
                threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
                while (left_s := self._last + self._idle_s - time.monotonic()) > 0 and self._is_found(
                    address
                ):
                    time.sleep(min(left_s, LOOK_S))
            finally:
                if self._is_found(address):
                    self._file.unlink(missing_ok=True)
                self._ended = True
                Client(address).close()  # wakes the thread that accepts
        if sys.platform != "win32" and Path(address).parent != self._file.parent:
            Path(address).parent.rmdir()

    def _new_address(self) -> str:
        """Give an address of its own; on Windows, where all may see it, one that nobody can foresee."""
        if sys.platform == "win32":
            return rf"\\.\pipe\i2l-{secrets.token_hex(16)}"
        name = f"{self._file.name}-{secrets.token_hex(4)}"
        address = str(self._file.with_name(name))
        if len(os.fsencode(address)) <= MAX_ADDRESS:
            return address
        return str(Path(tempfile.mkdtemp(prefix="i2l-", dir="/tmp")) / name)  # entered by its owner alone

    def _is_found(self, address: str) -> bool:
        try:
            return self._file.read_text(encoding="utf-8") == address
        except OSError:
            return False

    def _accept(self, listener: Listener) -> None:
        while not self._ended:
            try:
                with listener.accept() as connection:
                    self._answer(connection)
            except Exception:  # whoever asked is gone, or reads for themselves and sees the error
                traceback.print_exc()

    def _answer(self, connection: "Connection[Any, Any]") -> None:
        """Answer one client; one that is silent only wanted to know whether somebody is here."""
        if not connection.poll(PATIENCE_S):
            return
        try:
            picture = connection.recv_bytes(MAX_BYTES)
        except EOFError:
            return
        self._last = time.monotonic() + ANSWER_S
        try:
            content = read_picture(self._reader, picture).to_dict()
        except I2LError as error:
            content = {"error": str(error)}
        finally:
            self._last = time.monotonic()
        connection.send_bytes(json.dumps(content).encode())


def main() -> None:
    """Be the process in the background."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model")
    parser.add_argument("--idle-s", type=float, default=IDLE_S)
    arguments = parser.parse_args()
    from i2l.inference.reader import Reader

    os.umask(0o077)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    file = _address_file(arguments.model)
    reader = Reader(arguments.model)
    os.chdir(file.parent)  # the folder it was started in may be taken away
    Resident(reader, file, idle_s=arguments.idle_s).serve()


if __name__ == "__main__":
    main()
