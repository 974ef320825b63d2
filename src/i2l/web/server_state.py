"""What the parts of the server share: the options it was started with, its queue, its limits."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from i2l.web.batching import Batcher, Metrics, ReadingService
from i2l.web.connections import ConnectionLimits
from i2l.web.uploads import UploadBudget

PAGE = Path(str(files("i2l.web").joinpath("page")))
EXAMPLES = Path(str(files("i2l.web").joinpath("examples")))


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """How to serve."""

    # What reads
    model: str | None = None
    workers: int = 1
    threads: int | None = None  # of each worker

    # Under load
    max_batch: int = 32  # images that are read together; 1 is no batching
    queue_size: int = 128  # images that may wait
    timeout_s: float = 30.0  # for a request

    # Limits
    max_upload_bytes: int = 20_000_000
    max_pixels: int = 25_000_000
    max_buffered_bytes: int = 256_000_000  # of all uploads together
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)

    # Who may ask
    token: str | None = None
    hosts: tuple[str, ...] = ()  # names that the server goes by; any if empty
    origins: tuple[str, ...] = ()  # other sites that may ask (CORS)


@dataclass(frozen=True)
class ServerState:
    """What the routes share."""

    options: ServeOptions
    batcher: Batcher
    service: ReadingService
    budget: UploadBudget
    metrics: Metrics
    writer: ThreadPoolExecutor  # one thread that writes formulas
