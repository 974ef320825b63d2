"""Requests that no client would send, files that no reader should trust: never a 500, never much memory."""

import base64
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.images.hostile import hostile_file
from tests.web.conftest import start_server

pytestmark = pytest.mark.slow

NUM_FILES = 2000

NUM_CASES = 60  # of each operation and kind
MAX_GROWTH_MB = 400  # one image of 25 million pixels, and what is made of it


def peak_mb(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


@pytest.fixture(scope="module")
def fuzzed(model):
    server = start_server(model)
    pids = [server.process.pid, *server.worker_pids()]
    before = [peak_mb(pid) for pid in pids]
    yield server
    assert server.worker_pids() == pids[1:], "no worker died"
    for pid, start in zip(pids, before, strict=True):
        assert peak_mb(pid) - start < MAX_GROWTH_MB
    server.stop()
    assert not any("Traceback" in line for line in server.log)


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["as-described", "not"]
)
def test_whatever_is_sent_is_answered_as_described(fuzzed, mode):
    schema = schemathesis.openapi.from_url(f"{fuzzed.address}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    assert len(operations) == 12
    for operation in operations:

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(
            max_examples=NUM_CASES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        def ask(case):
            # A schema cannot say what is an image or a formula: what fits it may still be refused.
            case.call_and_validate(timeout=30, excluded_checks=[positive_data_acceptance])

        if mode is GenerationMode.NEGATIVE and not operation.body and not operation.query:
            continue  # there is nothing to send that could be wrong
        ask()


def test_hostile_files_one_by_one(fuzzed):
    with httpx2.Client(base_url=fuzzed.address, timeout=60) as client:

        def send(seed):
            data = hostile_file(seed)
            return client.post("/api/read", content=data, headers={"Content-Type": "image/png"})

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(send, range(NUM_FILES)))
    statuses = {
        status: sum(answer.status_code == status for answer in answers) for status in (200, 413, 415, 422)
    }
    assert sum(statuses.values()) == NUM_FILES
    assert min(statuses.values()) > 10, statuses
    for answer in answers:
        content = answer.json()
        assert ("latex" in content) if answer.status_code == 200 else content["detail"]


def test_hostile_files_together(fuzzed):
    sources = [base64.b64encode(hostile_file(seed)).decode() or "AA==" for seed in range(160)]
    with httpx2.Client(base_url=fuzzed.address, timeout=60) as client:
        for first in range(0, len(sources), 32):
            answer = client.post("/api/read/batch", json={"images": sources[first : first + 32]})
            readings = answer.json()["readings"]
            assert len(readings) == 32
            assert all(
                "latex" in reading or reading["status"] in (400, 413, 415, 422) for reading in readings
            )
