"""Networks behind onnxruntime, without one."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from i2l.inference import onnx_backend
from i2l.inference.onnx_backend import OnnxBackend


@pytest.fixture
def loaded(monkeypatch):
    """Sessions that take a while to load, and how many were."""
    sessions = []

    def load(path, options, *, providers):
        time.sleep(0.05)
        sessions.append(path)
        return SimpleNamespace(path=path)

    monkeypatch.setattr(onnx_backend.onnxruntime, "InferenceSession", load)
    return sessions


def test_threads_that_ask_for_a_lane_at_once_share_one(loaded):
    backend = OnnxBackend(SimpleNamespace(path=Path("model")), threads=4)
    assert len(loaded) == 2
    lanes = []
    ready = threading.Barrier(8)

    def ask():
        ready.wait()
        lanes.append(backend.lane())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lanes) == 8
    assert len(set(map(id, lanes))) == 1
    assert len(loaded) == 4, "two networks once more, with one thread"
    assert lanes[0].num_lanes == 1
    assert lanes[0].lane() is lanes[0]
