"""As much of onnxruntime as reading takes: sessions whose networks run in its own WebAssembly, beside Python's.

A network is known by the name of its file, as networks.js was given it.
"""

from pathlib import Path

import numpy as np

_networks = None  # of networks.js; see `attach`
_CODES = {"bool": 9, "uint8": 2, "int8": 3, "int16": 5, "int32": 6, "int64": 7, "float32": 1, "float64": 11}
_KINDS = {
    **{1: np.float32, 2: np.uint8, 3: np.int8, 5: np.int16, 6: np.int32, 7: np.int64, 9: np.bool_},
    11: np.float64,
}


def attach(networks):
    """Take the networks; None takes them away, before Python's memory is saved."""
    global _networks
    _networks = networks


class SessionOptions:
    """Options, which the browser decides about."""

    def add_session_config_entry(self, name, value):
        """Threads sleep between calls as they are."""


class RunOptions:
    """Options of one call, likewise."""

    def add_run_config_entry(self, name, value):
        """WebAssembly's memory only grows."""


class InferenceSession:
    """One network."""

    def __init__(self, path, options=None, providers=()):
        self._name = Path(path).name
        self._given = {}  # by name; what a search gives at every step is copied once, and never written to

    def run(self, names, feeds, options=None):
        """Compute outputs from inputs, each by its name."""
        for name, given in feeds.items():
            if self._given.get(name) is given:
                continue
            values = np.ascontiguousarray(given)
            _networks.give(
                *(self._name, name, _CODES[values.dtype.name], values.address, values.size, *values.shape)
            )
            self._given[name] = given
        shapes = _networks.run(self._name, "\n".join(names)).split(";")
        outputs = []
        for index, described in enumerate(shapes):
            code, *shape = map(int, described.split(","))
            values = np.zeros(shape, _KINDS[code])
            _networks.take(index, values.address)
            outputs.append(values)
        return outputs
