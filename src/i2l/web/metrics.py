"""What the server counts, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """All counters of one server."""

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter("i2l_requests", "Requests answered.", ["path", "status"], registry=own)
        self.request_seconds = Histogram(
            "i2l_request_seconds", "Until the answer.", ["path"], buckets=_SECONDS, registry=own
        )
        self.images = Counter("i2l_images", "Images by what became of them.", ["outcome"], registry=own)
        self.batch_seconds = Histogram(
            "i2l_batch_seconds", "That a worker took for a batch.", buckets=_SECONDS, registry=own
        )
        self.batch_size = Histogram(
            "i2l_batch_size", "Images that were read together.", buckets=(1, 2, 4, 8, 16, 32), registry=own
        )
        self.waiting = Gauge("i2l_images_waiting", "Images in the queue.", registry=own)
        self.workers = Gauge("i2l_workers_ready", "Workers that can read.", registry=own)
        self.restarts = Counter("i2l_worker_restarts", "Workers that were replaced.", registry=own)

    def render(self) -> bytes:
        """Give the text that Prometheus reads."""
        return generate_latest(self._registry)
