"""What a search asks for at every step, each by one kernel: NumPy's own functions for it take a dozen calls.

The numbers are those of `i2l.inference.decoding.NumpyArrays`, to the last bit.
"""

import numpy as np

_LOG_SOFTMAX, _GREATEST = 20, 21  # numbers of kernels


def log_softmax(logits):
    """Turn logits (N, K), float32, into log-probabilities."""
    given = np.ascontiguousarray(logits)
    out = np.zeros(given.shape, np.float32)
    np.call_kernel(_LOG_SOFTMAX, given.address, *given.shape, out.address)
    return out


def top_k(values, k):
    """Return the k largest of each row and where they are, largest first, and of equals the first one."""
    given = np.ascontiguousarray(values)
    rows, count = given.shape
    found, places = np.zeros((rows, k), given.dtype), np.zeros((rows, k), np.int64)
    np.call_kernel(
        *(_GREATEST, given.address, given.dtype.code, rows, count, k, found.address, places.address)
    )
    return found, places
