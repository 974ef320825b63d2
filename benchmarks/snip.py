"""How long `i2l snip` takes from its start to the answer: alone, and with a reader in the background.

    python -m benchmarks.snip [--rounds 5]

Needs Xvfb and maim. A region is given, so no time goes by for choosing. Seconds are by the clock, thus of the
machine as it is; beside them those of the processor, which neighbours do not change.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[1-6]*.png"))
SHOW = """
import sys, tkinter
window = tkinter.Tk()
window.overrideredirect(True)
window.geometry("+0+0")
picture = tkinter.PhotoImage(file=sys.argv[1])
tkinter.Label(window, image=picture, borderwidth=0).pack()
window.update()
print("shown", flush=True)
window.mainloop()
"""


@contextmanager
def screen() -> Iterator[None]:
    """A screen that nobody sees, and a folder of its own for sockets."""
    number, there = os.pipe()
    command = ["Xvfb", "-displayfd", str(there), "-nolisten", "tcp", "-screen", "0", "1920x1080x24"]
    server = subprocess.Popen(command, pass_fds=[there], stderr=subprocess.DEVNULL)
    os.close(there)
    with os.fdopen(number) as file, tempfile.TemporaryDirectory() as folder:
        os.environ.update(DISPLAY=f":{file.readline().strip()}", XDG_RUNTIME_DIR=folder)
        os.environ.pop("WAYLAND_DISPLAY", None)
        yield
    server.terminate()
    server.wait()


@contextmanager
def shown(path: Path) -> Iterator[str]:
    """Show a picture in the upper left corner; give its region."""
    window = subprocess.Popen([sys.executable, "-c", SHOW, str(path)], stdout=subprocess.PIPE)
    assert window.stdout is not None
    window.stdout.readline()
    with Image.open(path) as picture:
        yield f"0,0,{picture.width},{picture.height}"
    window.terminate()
    window.wait()


def seconds(*options: str) -> tuple[float, float]:
    """Run `i2l snip` once; give the seconds by the clock, and those of the processor in the call itself."""
    before, started = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "i2l", "snip", "--print", *options], check=True, capture_output=True
    )
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - started, used


def main() -> None:
    """Measure every example in both ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    if not (shutil.which("Xvfb") and shutil.which("maim")):
        raise SystemExit("This needs Xvfb and maim: apt-get install xvfb maim")
    print(f"{'seconds, median of ' + str(rounds):28} {'alone':>8} {'(CPU)':>8} {'resident':>9} {'(CPU)':>8}")
    with screen():
        for path in EXAMPLES:
            with shown(path) as region:
                alone = [seconds("--region", region) for _ in range(rounds)]
                seconds("--region", region, "--resident")
                resident = [seconds("--region", region) for _ in range(rounds)]
                stop_resident()
            times = [
                statistics.median(column)
                for found in (alone, resident)
                for column in zip(*found, strict=True)
            ]
            print("{:28} {:8.2f} {:8.2f} {:9.2f} {:8.2f}".format(path.name, *times), flush=True)


def stop_resident() -> None:
    """Take the address of the reader in the background away, at which it ends by itself."""
    for file in (Path(os.environ["XDG_RUNTIME_DIR"]) / "i2l").iterdir():
        file.unlink()


if __name__ == "__main__":
    main()
