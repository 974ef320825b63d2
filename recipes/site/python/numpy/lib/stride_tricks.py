"""Windows on arrays, without copying."""


def sliding_window_view(values, width, axis):
    """Give the elements around each place along an axis, as a new last axis."""
    shape, strides = list(values.shape), values.strides
    shape[axis] -= width - 1
    return values._view((*shape, width), (*strides, strides[axis]))
