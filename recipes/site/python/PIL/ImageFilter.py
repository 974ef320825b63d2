"""Filters, by what they are told; `Image.filter` applies them."""


class BoxBlur:
    """The mean of a square around each pixel."""

    def __init__(self, radius):
        self.radius = radius


class Kernel:
    """The weighed mean of a pixel and its neighbours."""

    def __init__(self, size, kernel):
        self.size, self.kernel = size, kernel
