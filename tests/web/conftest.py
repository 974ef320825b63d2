"""A server with the small model of the reading tests, as `i2l serve` starts it."""

import io
import os
import subprocess
import sys
import threading
from dataclasses import dataclass

import httpx2
import pytest
from PIL import Image

from tests.inference.conftest import (  # noqa: F401
    checkpoint,
    draw_formula,
    exported,
    make_installed,
    shared_folder,
    taught_handwriting,
)

START_S = 60


def png(formula="b + c", **options):
    """The bytes of a picture of a formula."""
    file = io.BytesIO()
    Image.fromarray(draw_formula(formula, **options)).save(file, "PNG")
    return file.getvalue()


@dataclass
class Server:
    """A running `i2l serve`."""

    process: subprocess.Popen
    address: str
    log: list
    listener: threading.Thread

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def worker_pids(self):
        children = subprocess.run(
            ["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        return [int(line.split()[0]) for line in children if "i2l.web.worker" in line]

    def metric(self, name):
        lines = httpx2.get(f"{self.address}/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    def stop(self):
        self.process.terminate()
        status = self.process.wait(20)
        self.listener.join()
        self.process.stdout.close()
        return status


def start_server(model, *arguments, port=0, **environment):
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "i2l", "serve", "--no-browser", "--port", str(port)),
            *(["--model", str(model)] if model else []),
            *("--threads", "1", *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **environment},
    )
    log = []
    for line in process.stdout:
        log.append(line)
        if "I2L reads at" in line:
            address = line.split("reads at ")[1].split(" ")[0]
            break
    else:
        raise AssertionError("".join(log))
    listener = threading.Thread(target=lambda: log.extend(process.stdout), daemon=True)
    listener.start()
    server = Server(process, address, log, listener)
    wait_until(lambda: is_up(server))
    return server


def is_up(server):
    try:
        return httpx2.get(f"{server.address}/ready").status_code == 200
    except httpx2.TransportError:
        return False


def wait_until(condition, *, timeout_s=START_S):
    limit = threading.Event()
    for _ in range(int(timeout_s / 0.05)):
        if condition():
            return
        limit.wait(0.05)
    raise AssertionError("not in time")


@pytest.fixture(scope="session")
def model(exported):  # noqa: F811
    return exported["float32"]


@pytest.fixture(scope="session")
def server(model):
    running = start_server(model)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def several(model, tmp_path_factory):
    """A server that was given no model, where two are installed beside the one in the box."""
    folder = tmp_path_factory.mktemp("several")
    models = {"hand": taught_handwriting(model, folder / "hand"), "small": model}
    packages = make_installed(folder / "packages", "i2l_several", models)
    path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    running = start_server(None, PYTHONPATH=path)
    yield running
    running.stop()


@pytest.fixture
def client(server):
    with httpx2.Client(base_url=server.address, timeout=30) as opened:
        yield opened
